//! The remains of a rank that has finished.

use std::sync::Arc;
use std::time::Duration;

use mpjdev_buffer::SlabSource;
use mpjdev_transport::{Header, Outgoing, PacketHandler, PacketSource, PeerState, Transport, Unacked};

use crate::packet::engine::PacketEngine;

/// The transport of a rank that has ended. It answers the queries that are still possible.
#[derive(Debug)]
struct EndedTransport {
    abort: Option<(u32, String)>,
}

impl Transport for EndedTransport {
    fn try_send(&self, _: u32, _: Header, _: Outgoing<'_>) -> bool {
        true
    }

    fn is_ready(&self) -> bool {
        false
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        if !ready() {
            std::thread::sleep(most);
        }
    }

    fn wake(&self) {}

    fn epoch(&self) -> u32 {
        1
    }

    fn peer(&self, _: u32) -> PeerState {
        PeerState::Finished
    }

    fn abort(&self) -> Option<(u32, String)> {
        self.abort.clone()
    }

    fn finish(&self) -> Vec<Unacked> {
        Vec::new()
    }

    fn fail(&self, _: &str) {}

    fn credits_returned_by(&self, _: u32) -> u64 {
        0
    }

    fn return_credit(&self, _: u32, _: u64) {}

    fn heartbeat(&self) {}

    fn heartbeat_of(&self, _: u32) -> u64 {
        0
    }

    fn name(&self) -> &'static str {
        "none"
    }
}

/// A packet source without packets.
#[derive(Debug)]
struct EmptySource;

impl PacketSource for EmptySource {
    fn receive(&mut self, _: usize, _: &mut PacketHandler<'_>) -> usize {
        0
    }
}

impl PacketEngine {
    /// The remains of a rank that is no longer used for communication. They have no transport and no
    /// threads, answer as the rank itself would, and keep the outcomes of its requests.
    pub fn remains(&self, source: &Arc<dyn SlabSource>) -> Arc<PacketEngine> {
        let transport = Arc::new(EndedTransport { abort: self.transport.abort() });
        let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport, Box::new(EmptySource));
        let remains = PacketEngine::new(self.rank, self.size, self.config.clone(), ends, source.clone());
        let outcomes = self.lock().state.requests.outcomes(self.rank);
        let has_finished = self.transport.abort().is_none() || self.lock().state.end.has_begun();
        {
            let state = &mut remains.lock().state;
            state.requests = outcomes;
            if has_finished {
                state.end.begin(&remains.end_flags);
            }
        }
        remains.progress_threads.note_ended();
        remains.end_flags.note_stats_printed();
        Arc::new(remains)
    }
}
