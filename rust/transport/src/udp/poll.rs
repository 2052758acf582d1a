//! Polling: a rank reads its socket, and handles expired timers.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use mpjdev_proto::datagram::reliable::connection::Event;
use mpjdev_proto::datagram::reliable::error::{Cause, Failure};
use mpjdev_proto::datagram::reliable::time::Nanos;
use tracing::{Level, debug};

use super::path_mtu::LEN_SAFE;
use super::peer::{Peer, PeerSession};
use super::staging_buffer::StagingBuffer;
use super::transport::UdpTransport;
use crate::{Header, Incoming, Kind, PacketHandler, PeerState};

/// Empty polls for each check of the timers. A poll takes less than a microsecond, the shortest timer many.
const TIMED_POLLS: u32 = 8;

/// Events of the state machine of a peer.
#[derive(Debug, Default)]
pub(super) struct PeerEvents {
    /// Requests that are answered.
    matched: Vec<u64>,
    /// Messages that were cancelled.
    withdrawn: Vec<u64>,
    has_finished: bool,
    /// Reason why its connection has failed, and whether its machine timed out.
    failure: Option<(String, bool)>,
}

impl UdpTransport {
    /// Polls: reads the socket and sends delayed messages. Returns whether there is work for the rank.
    pub(super) fn poll(&self) -> bool {
        if self.is_staged.load(Acquire) || self.net.has_local_work() {
            return true;
        }
        if self.liveness.have_ended() || self.has_liveness_event() && self.liveness.poll() {
            return true;
        }
        self.send_waiting();
        // The thread that holds the stage does the work.
        let Some(mut stage) = self.stage.try_lock() else { return false };
        if self.fill(&mut stage, || self.timers.now()) {
            self.is_staged.store(true, Release);
            return true;
        }
        let polls = self.polls.load(Relaxed);
        self.polls.store(polls.wrapping_add(1), Relaxed);
        polls.is_multiple_of(TIMED_POLLS) && self.timers.are_armed() && self.timers.is_due(self.timers.now())
    }

    /// Whether a wait has ended because of a liveness connection.
    fn has_liveness_event(&self) -> bool {
        self.net.poller.take_other() | self.net.progress.poller.take_other()
    }

    /// Reads datagrams from the socket. Returns whether the stage has some.
    pub(super) fn fill(&self, stage: &mut StagingBuffer, now: impl FnOnce() -> Nanos) -> bool {
        if self.expecting.load(Relaxed) != 0 {
            let peer = self.peer_of(self.expecting.swap(0, Relaxed) - 1);
            stage.expect(peer.and_then(|peer| peer.session().expected.take()));
        }
        stage.poll(self.socket(), now).unwrap_or_else(|error| {
            // No packets arrive from any peer after this.
            if self.fault.set(error.to_string()).is_ok() {
                let why = format!("this rank's socket is broken: {error}");
                self.peers().for_each(|peer| self.close(peer, &why, true));
            }
            false
        })
    }

    /// Handles expired timers and the peers that datagrams arrived from. Returns the number of packets passed
    /// on.
    pub(super) fn process_peers(
        &self,
        stage: &mut StagingBuffer,
        events: &mut PeerEvents,
        now: Nanos,
        each: &mut PacketHandler<'_>,
    ) -> usize {
        let mut n = 0;
        if self.timers.is_due(now) {
            let later = self.peers().filter_map(|peer| {
                let at = peer.next_timeout.load(SeqCst);
                let is_later = at > now && !stage.is_touched(peer.rank as usize);
                if !is_later {
                    stage.touch(peer.rank as usize);
                }
                is_later.then_some(at)
            });
            self.wake_sleepers(self.timers.rearm(later));
        }
        while let Some(rank) = stage.take_touched() {
            if let Some(peer) = &self.peers[rank] {
                n += self.process_peer(peer, events, now, each);
            }
        }
        n
    }

    fn process_peer(
        &self,
        peer: &Peer,
        events: &mut PeerEvents,
        now: Nanos,
        each: &mut PacketHandler<'_>,
    ) -> usize {
        let mut session = peer.session();
        if peer.next_timeout.load(Relaxed) <= now {
            self.handle_timeout(peer, &mut session, now);
        }
        session.connection.handle_drained(now);
        session.take_events(events);
        if !session.is_closed() {
            self.note_room(&mut session);
        }
        self.transmit(peer, &mut session, now);
        drop(session);
        self.deliver_events(peer, events, each)
    }

    /// Passes an expired timer to the state machine. An event reports a retransmission timeout.
    fn handle_timeout(&self, peer: &Peer, session: &mut PeerSession, now: Nanos) {
        let is_logged = tracing::enabled!(target: "mpjdev::udp", Level::DEBUG);
        let before = is_logged.then(|| session.connection.counters().timeouts);
        session.connection.handle_timeout(now);
        let Some(before) = before else { return };
        let counters = session.connection.counters();
        if before != counters.timeouts {
            let (rtt_us, timeouts) = (counters.smoothed_rtt / 1000, counters.timeouts);
            let window = counters.congestion_window;
            debug!(
                target: "mpjdev::udp", rank = self.net.rank, peer = peer.rank, timeouts, rtt_us, window,
                "retransmission timeout"
            );
        }
    }

    /// Passes on the events of a state machine.
    fn deliver_events(&self, peer: &Peer, events: &mut PeerEvents, each: &mut PacketHandler<'_>) -> usize {
        let n = events.matched.len() + events.withdrawn.len();
        let matched = events.matched.drain(..).map(|token| (Kind::MatchAck, token));
        let withdrawn = events.withdrawn.drain(..).map(|token| (Kind::Cancelled, token));
        for (kind, token) in matched.chain(withdrawn) {
            let header = Header { kind, token, ..Header::default() };
            // Answers and cancellations are always allowed.
            let _ = each(peer.rank, header, Incoming::Nothing);
        }
        if std::mem::take(&mut events.has_finished) && !peer.has_finished.swap(true, SeqCst) {
            debug!(target: "mpjdev::udp", rank = self.net.rank, peer = peer.rank, "peer has finished");
            self.net.peer_table.set(peer.rank, PeerState::Finished);
            self.net.note_change();
        }
        if let Some((why, is_unreachable)) = events.failure.take()
            && !peer.has_finished.load(Relaxed)
        {
            self.close(peer, &why, is_unreachable);
        }
        n
    }
}

impl PeerSession {
    /// The reason of a failed connection, with advice to the user.
    #[cold]
    fn describe(&self, failure: &Failure) -> String {
        if failure.cause == Cause::Silence && self.connection.counters().received == 0 {
            return format!("{failure}; no datagram has arrived from it: a firewall may drop them");
        }
        let len_max = self.connection.settings().datagram_len_max;
        if failure.cause == Cause::Silence && failure.unacknowledged > 0 && len_max > LEN_SAFE {
            return format!(
                "{failure}; if short messages arrive, a router on the path drops datagrams of {len_max} \
                 octets silently: --datagram-len {LEN_SAFE} makes them shorter"
            );
        }
        failure.to_string()
    }

    /// Takes the events of the state machine.
    fn take_events(&mut self, events: &mut PeerEvents) {
        events.failure = self.fault.take().map(|why| (why, true));
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Released { token } => {
                    self.outgoing.forget(token);
                    self.store.release(token);
                }
                Event::Matched { token } => events.matched.extend(self.store.answer(token)),
                Event::Withdraw { arrival } => {
                    let token = u64::from(arrival.destination_id());
                    self.arrivals.remove(&token);
                    events.withdrawn.push(token);
                }
                Event::PeerFinished => events.has_finished = true,
                Event::Failed(failure) if !self.is_closed() => {
                    let is_unreachable = matches!(failure.cause, Cause::Silence | Cause::Deadline);
                    events.failure = Some((self.describe(&failure), is_unreachable));
                }
                Event::Failed(_) | Event::Closed => {}
                Event::Cancelled { token } => {
                    self.outgoing.forget(token);
                    self.store.answer(token);
                    self.store.release(token);
                }
                Event::NotCancelled { .. } => {}
            }
        }
    }
}
