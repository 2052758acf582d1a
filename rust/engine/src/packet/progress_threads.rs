//! The progress threads of a rank, and the remains of a rank that has finished.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::packet::engine::PacketEngine;

/// The progress threads of a rank, which drive its progress while its program computes.
#[derive(Debug, Default)]
pub(crate) struct ProgressThreads {
    threads: Mutex<Vec<Thread>>,
    /// The rank has finished: its progress threads end.
    has_ended: AtomicBool,
}

struct Thread {
    handle: JoinHandle<()>,
    wake: Box<dyn Fn() + Send>,
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.thread().fmt(f)
    }
}

impl PacketEngine {
    /// Ends the progress threads of this rank and waits for their ends: a finished rank needs none. Blocks
    /// for a moment.
    pub fn end_progress_threads(&self) {
        self.progress_threads.has_ended.store(true, Ordering::SeqCst);
        let threads = std::mem::take(
            &mut *self.progress_threads.threads.lock().unwrap_or_else(PoisonError::into_inner),
        );
        threads.iter().for_each(|thread| (thread.wake)());
        for thread in threads {
            // A thread that has panicked has ended as well.
            let _ = thread.handle.join();
        }
    }

    /// Whether this rank has reached the end of its finish.
    pub fn has_ended(&self) -> bool {
        self.progress_threads.has_ended.load(Ordering::SeqCst)
    }
}

#[cfg(not(loom))]
impl mpjdev_transport::Progress for PacketEngine {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn drive_progress(&self) {
        PacketEngine::progress_for_other(self);
    }

    fn has_pending(&self) -> bool {
        PacketEngine::has_pending(self)
    }

    fn has_ended(&self) -> bool {
        PacketEngine::has_ended(self)
    }

    fn spawn_progress_thread(
        &self,
        name: String,
        run: Box<dyn FnOnce() + Send>,
        wake: Box<dyn Fn() + Send>,
    ) -> std::io::Result<()> {
        let handle = std::thread::Builder::new().name(name).spawn(run)?;
        let thread = Thread { handle, wake };
        self.progress_threads.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }
}

#[cfg(not(loom))]
mod remains {
    use std::sync::Arc;
    use std::time::Duration;

    use mpjdev_buffer::SlabSource;

    use super::*;
    use mpjdev_transport::{Header, Outgoing, PacketHandler, PacketSource, PeerState, Transport, Unacked};

    /// The transport of a rank that has ended. It answers the queries that are still possible.
    #[derive(Debug)]
    struct Gone {
        abort: Option<(u32, String)>,
    }

    impl Transport for Gone {
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

    #[derive(Debug)]
    struct Nothing;

    impl PacketSource for Nothing {
        fn receive(&mut self, _: usize, _: &mut PacketHandler<'_>) -> usize {
            0
        }
    }

    impl PacketEngine {
        /// The remains of a rank that is no longer used for communication. They have no transport and no
        /// threads, answer as the rank itself would, and keep the outcomes of its requests.
        pub fn remains(&self, source: &Arc<dyn SlabSource>) -> Arc<PacketEngine> {
            let transport = Arc::new(Gone { abort: self.transport.abort() });
            let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport, Box::new(Nothing));
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
            remains.progress_threads.has_ended.store(true, Ordering::Relaxed);
            remains.end_flags.note_stats_printed();
            Arc::new(remains)
        }
    }
}
