//! Sending side of a rank, its view of the other ranks, and its sleep.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::datagram::network::Network;
use mpjdev_proto::datagram::reliable::connection::Connection;
use mpjdev_proto::datagram::reliable::counters::Counters;
use mpjdev_proto::datagram::reliable::settings::Settings;
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sys::datagram::offload::Offload;
use mpjdev_sys::datagram::options;
use tracing::{debug, info, warn};

use super::gso::Outgoing;
use super::ids::Ids;
use super::liveness::{Ended, LivenessConnections};
use super::peer::Peer;
use super::stage::StagingBuffer;
use super::timers::{Sleeper, Timers};
use super::{Job, Terms};
use crate::net::control::ControlMessage;
use crate::net::loopback::Loopback;
use crate::net::peer_table::{PeerTable, Reaction};
use crate::net::poller::Poller;
use crate::net::progress_thread::{ProgressShared, ProgressTarget};
use crate::stats::UdpStats;
use crate::{Header, Kind, Outgoing as Body, PeerState, StatusReporter, Transport, Unacked};

/// Time for which a rank still answers peers that have finished.
const ANSWERING: Duration = Duration::from_millis(300);
/// Interval of the checks whether they have.
const LINGER_STEP: Duration = Duration::from_micros(200);

/// Sending side of one rank.
#[derive(Debug)]
pub struct UdpTransport {
    pub(super) rank: u32,
    pub(super) terms: Terms,
    pub(super) source: Arc<dyn SlabSource>,
    pub(super) socket: UdpSocket,
    /// By rank; `None` for this rank, and for those that are reached otherwise.
    pub(super) peers: Vec<Option<Peer>>,
    /// Connection ids of their packets.
    pub(super) ids: Ids,
    pub(super) loopback: Loopback,
    pub(super) peer_table: PeerTable,
    pub(super) timers: Timers,
    pub(super) stage: Mutex<StagingBuffer>,
    /// The staging buffer has datagrams.
    pub(super) is_staged: AtomicBool,
    /// A send that found no room may find some.
    pub(super) has_room: AtomicBool,
    /// 1 more than the peer with a new prediction; 0 when the staging buffer has the current one.
    pub(super) expecting: AtomicU32,
    /// Number of peers with messages that wait for others.
    pub(super) waiting_count: AtomicUsize,
    /// Number of times the rank has sent the waiting messages.
    pub(super) write_rounds: AtomicU32,
    pub(super) poller: Poller,
    /// State shared with the progress thread.
    pub(super) progress: Arc<ProgressShared>,
    pub(super) liveness: LivenessConnections,
    /// Whether this rank has announced the end of its packets to all.
    has_finished: AtomicBool,
    /// Error that the system has reported for the socket.
    pub(super) fault: OnceLock<String>,
}

/// Whether the kernel cuts GSO batches. The probe runs once.
fn supports_gso() -> bool {
    static CUTS: OnceLock<bool> = OnceLock::new();
    *CUTS.get_or_init(|| Offload::probe(false).is_ok_and(|offload| offload.cuts))
}

impl UdpTransport {
    pub(super) fn new(job: Job, source: Arc<dyn SlabSource>) -> io::Result<UdpTransport> {
        let Job { rank, members, terms, socket, receive_window, early, liveness } = job;
        let (poller, progress, timers) = (Poller::new(1)?, Arc::new(ProgressShared::new(1)?), Timers::new());
        socket.set_nonblocking(true)?;
        let has_liveness: Vec<bool> = liveness.iter().map(Option::is_some).collect();
        let liveness = LivenessConnections::new(liveness)?;
        poller.add_other(liveness.as_fd())?;
        progress.poller.add_other(liveness.as_fd())?;
        let cuts = supports_gso();
        let mut others = members.iter().flatten();
        let only = others.next().filter(|_| others.next().is_none());
        if let Some(member) = only {
            // A connected socket saves the system the route lookup of each send.
            socket.connect(member.address)?;
        }
        let is_connected = only.is_some();
        let peer = |(peer, member): (usize, Option<super::Member>)| {
            let Some(member) = member else { return Ok(None) };
            let has_liveness = has_liveness.get(peer).is_some_and(|has_liveness| *has_liveness);
            // The end of the liveness connection is authoritative, and no outsider can end it.
            let settings =
                Settings { trusts_resets: !has_liveness, ..terms.settings(&member, receive_window) };
            let connection = Connection::new(settings, timers.now()).map_err(io::Error::other)?;
            let network = terms.impairment.map(|(impairment, seed)| {
                Network::new(impairment, seed.wrapping_add(u64::from(rank) << 32 | peer as u64))
            });
            let outgoing = Outgoing::new((!is_connected).then_some(member.address), cuts, network);
            let limits = [terms.eager_len(&member), terms.eager_max as usize];
            let (octets, window) = (member.datagram_len_max, member.send_window);
            debug!(
                target: "mpjdev::udp", rank, peer, address = %member.address, octets, window,
                checked = member.is_checked, "peer is open"
            );
            Ok(Some(Peer::new(peer as u32, member.address, limits, connection, outgoing)))
        };
        let ids: Vec<_> =
            (0..).zip(&members).filter_map(|(rank, member)| Some((member.as_ref()?.ours, rank))).collect();
        let peers: Vec<_> = members.into_iter().enumerate().map(peer).collect::<io::Result<_>>()?;
        Ok(UdpTransport {
            rank,
            terms,
            source,
            socket,
            loopback: Loopback::default(),
            peer_table: PeerTable::new(peers.len()),
            stage: Mutex::new(StagingBuffer::new(peers.len(), early)?),
            peers,
            ids: Ids::new(&ids),
            timers,
            is_staged: AtomicBool::new(false),
            has_room: AtomicBool::new(false),
            expecting: AtomicU32::new(0),
            waiting_count: AtomicUsize::new(0),
            write_rounds: AtomicU32::new(0),
            poller,
            progress,
            liveness,
            has_finished: AtomicBool::new(false),
            fault: OnceLock::new(),
        })
    }

    /// Sets the receiver of status reports: the first peer that this rank sees fail, and its finish.
    pub fn report_to(&self, reporter: Arc<dyn StatusReporter>) {
        self.peer_table.report_to(reporter);
    }

    /// Counters of a peer's connection; `None` for this rank itself.
    pub fn counters(&self, rank: u32) -> Option<Counters> {
        Some(self.peer_of(rank)?.session().connection.counters())
    }

    /// Datagrams that the system has dropped because this rank's socket was full.
    ///
    /// # Errors
    /// The system does not report them.
    pub fn drops(&self) -> io::Result<u32> {
        Ok(options::memory(self.socket())?.drops)
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn peer_of(&self, rank: u32) -> Option<&Peer> {
        self.peers.get(rank as usize)?.as_ref()
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().flatten()
    }

    /// Gives up a peer.
    pub(super) fn close(&self, peer: &Peer, why: &str, is_unreachable: bool) {
        let rank = self.rank;
        info!(
            target: "mpjdev::udp", rank, peer = peer.rank, is_unreachable, why,
            "peer is closed before its end"
        );
        warn!(target: "mpjdev::failure", rank, peer = peer.rank, why, "peer has failed");
        let mut session = peer.session();
        let now = self.timers.now();
        session.close(is_unreachable);
        self.transmit(peer, &mut session, now);
        drop(session);
        self.liveness.end(peer.rank);
        self.peer_table.set_failed(peer.rank, why);
        self.has_room.store(true, SeqCst);
        // The memory of its predicted fragment is released.
        self.expecting.store(peer.rank + 1, Relaxed);
        self.note_change();
    }

    /// Handles ended liveness connections, after all earlier datagrams were handled.
    pub(super) fn judge(&self, ended: Vec<Ended>) {
        for Ended { rank, why, is_unreachable, .. } in ended {
            let Some(peer) = self.peer_of(rank) else { continue };
            if peer.has_finished.load(Relaxed) || self.has_finished.load(Relaxed) {
                // No packet is expected from it, and it takes none.
                debug!(target: "mpjdev::udp", rank = self.rank, peer = rank, why, "peer is closed");
                let mut session = peer.session();
                session.close(is_unreachable);
                self.transmit(peer, &mut session, self.timers.now());
            } else {
                self.close(peer, &why, is_unreachable);
            }
        }
    }

    pub(super) fn note_change(&self) {
        self.peer_table.note_change();
        self.wake();
    }

    /// Handles a control message from one of our own ranks.
    pub(super) fn handle_control(&self, rank: u32, tag: i32, octets: &[u8]) -> Result<(), String> {
        match (self.peer_table.handle(rank, tag, octets)?, self.peer_of(rank)) {
            (Reaction::Heartbeat, Some(peer)) => {
                let mut session = peer.session();
                session.alive = Some(self.progress.calls.load(Relaxed));
                self.transmit(peer, &mut session, self.timers.now());
            }
            (Reaction::Wake, _) => {
                warn!(target: "mpjdev::failure", rank = self.rank, peer = rank, "peer has ended the job");
                self.note_change();
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a peer has received everything from a finishing rank. A peer that has finished needs no
    /// packet. But after packet loss the ack of its last packet may be lost too, so that packet is acked
    /// again for some time.
    fn has_got_all(&self, peer: &Peer, is_late: bool) -> bool {
        let session = peer.session();
        if session.is_gone || session.connection.is_over() {
            return true;
        }
        if !peer.has_finished.load(Relaxed) {
            return session.has_fin_left && session.connection.is_flushed();
        }
        let counters = session.connection.counters();
        is_late || (counters.retransmitted == 0 && counters.duplicates == 0 && counters.buffered == 0)
    }

    /// Data that a peer has not acked. A peer that has finished takes nothing more.
    fn unacked(peer: &Peer) -> Option<Unacked> {
        let session = peer.session();
        if peer.has_finished.load(Relaxed) {
            return None;
        }
        let (messages, octets) = if session.is_gone { session.lost } else { session.store.held_messages() };
        (messages > 0).then_some(Unacked { rank: peer.rank, messages: Some(messages), octets })
    }

    /// Makes the socket end a sleep from now on, also for datagrams that arrived before. While no thread
    /// sleeps, the report of each datagram would cost its sender a tenth of a send.
    fn listen(&self, poller: &Poller) {
        // A thread without the report polls again soon, since sleeps are short.
        let _ = poller.add(0, self.socket());
    }

    /// Longest time without a timer.
    fn begin_sleep(&self, sleeper: Sleeper, most: Duration) -> Duration {
        self.timers.begin_sleep(sleeper).min(most)
    }
}

impl ProgressTarget for UdpTransport {
    fn progress(&self) -> &Arc<ProgressShared> {
        &self.progress
    }

    fn prepare_wait(&self) -> bool {
        let is_idle = !self.poll();
        if is_idle {
            self.listen(&self.progress.poller);
        }
        is_idle
    }

    fn end_wait(&self) {
        self.progress.poller.remove(self.socket());
        self.timers.end_sleep(Sleeper::ProgressThread);
    }

    fn tick(&self) {
        self.liveness.poll();
    }

    fn idle(&self) -> Duration {
        self.begin_sleep(Sleeper::ProgressThread, Duration::MAX)
    }

    fn has_pending_work(&self) -> bool {
        self.timers.are_armed() || self.peers().any(|peer| peer.session().has_rest())
    }
}

impl Drop for UdpTransport {
    fn drop(&mut self) {
        if !self.has_finished.load(Relaxed) {
            // No thread drives this rank any more. The peers are notified, as the end of a stream would
            // notify them.
            for peer in self.peers.iter().flatten() {
                let mut session = peer.session();
                session.close(false);
                self.transmit(peer, &mut session, self.timers.now());
            }
        }
        self.progress.kick();
    }
}

impl Transport for UdpTransport {
    fn try_send(&self, dest: u32, header: Header, body: Body<'_>) -> bool {
        if dest == self.rank {
            return self.loopback.send(header, body);
        }
        let Some(peer) = self.peer_of(dest) else { return true };
        let mut session = peer.session();
        if session.is_gone {
            // Packets to a dead rank are dropped.
            return true;
        }
        let octets_len = match &body {
            Body::Nothing => 0,
            Body::Payload(payload) => payload.len(),
            Body::Message(message) => message.first_len(),
        };
        let sent = match header.kind {
            Kind::MatchAck => {
                session.matched(header.token, header.context, &*self.source, self.terms.datagram_len_max);
                if session.expected.is_some() {
                    self.expecting.store(dest + 1, Relaxed);
                }
                true
            }
            _ => self.send_message(&mut session, header, body),
        };
        if !sent {
            peer.has_refused.store(true, SeqCst);
        } else if header.kind == Kind::Eager && session.may_wait(self.write_rounds.load(Relaxed)) {
            // Every wait, poll and receive of the rank sends waiting messages.
            session.waiting.0 += octets_len;
            session.waiting.1 += 1;
            self.note_waiting(peer);
            self.progress.kick();
            return true;
        }
        let now = self.timers.now();
        if self.transmit(peer, &mut session, now) || session.has_rest() {
            // The packet leaves when this rank has read earlier datagrams, whatever the program does until
            // then.
            self.progress.kick();
        }
        sent
    }

    fn is_remote(&self, rank: u32) -> bool {
        self.peer_of(rank).is_some()
    }

    fn eager_max(&self, dest: u32) -> usize {
        self.peer_of(dest).map_or(usize::MAX, |peer| peer.eager_len)
    }

    fn can_send_by_reference(&self, _: &Slab) -> bool {
        true
    }

    fn is_ready(&self) -> bool {
        self.poll()
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.progress.begin_sleep();
        if !ready() && !self.poll() {
            self.listen(&self.poller);
            let most = self.begin_sleep(Sleeper::Program, most);
            self.poller.wait(most, &mut |_| ());
            self.poller.remove(self.socket());
            self.timers.end_sleep(Sleeper::Program);
        }
        // Pending acks do not wait for a call of the program.
        self.progress.end_sleep(self.timers.are_armed());
    }

    fn has_progress_threads(&self) -> bool {
        true
    }

    fn kick_progress_thread(&self, rank: u32) {
        // Packets wake the progress threads of the other ranks.
        if rank == self.rank {
            self.progress.kick();
        }
    }

    fn wake(&self) {
        if self.progress.is_asleep.load(SeqCst) {
            self.poller.wake();
        }
    }

    fn epoch(&self) -> u32 {
        self.peer_table.epoch()
    }

    fn peer(&self, rank: u32) -> PeerState {
        self.peer_table.peer(rank)
    }

    fn abort(&self) -> Option<(u32, String)> {
        self.peer_table.abort().cloned()
    }

    fn tx_pending(&self) -> Option<u64> {
        // A peer that has finished takes nothing more.
        let live = self.peers().filter(|peer| !peer.has_finished.load(Relaxed));
        let left = live.filter_map(|peer| {
            let mut session = peer.session();
            if session.is_gone || session.connection.is_over() || !session.store.holds_messages() {
                return None;
            }
            session.connection.flush();
            self.transmit(peer, &mut session, self.timers.now());
            Some(session.connection.counters().sent.wrapping_sub(session.connection.unacknowledged()))
        });
        left.reduce(u64::wrapping_add)
    }

    fn finish(&self) -> Vec<Unacked> {
        let (late, deadline) = (Instant::now() + ANSWERING, Instant::now() + self.terms.linger);
        self.has_finished.store(true, SeqCst);
        let now = self.timers.now();
        for peer in self.peers() {
            let mut session = peer.session();
            if !session.is_gone {
                session.finish(now + self.terms.linger.as_nanos() as Nanos);
                self.transmit(peer, &mut session, now);
            }
        }
        // The progress thread of this rank handles the answers.
        loop {
            let now = Instant::now();
            if now >= deadline || self.peers().all(|peer| self.has_got_all(peer, now >= late)) {
                break;
            }
            self.progress.kick();
            std::thread::sleep(LINGER_STEP);
        }
        let unacked = self.peers().filter_map(Self::unacked).collect();
        self.peer_table.finish(self.rank);
        self.note_change();
        unacked
    }

    fn fail(&self, why: &str) {
        if self.peer_table.set_abort(self.rank, why.to_owned()) {
            let now = self.timers.now();
            for peer in self.peers() {
                let mut session = peer.session();
                if !session.is_gone {
                    session.failure = Some(why.to_owned());
                    self.transmit(peer, &mut session, now);
                }
            }
            self.note_change();
        }
    }

    fn report_failed_peer(&self, rank: u32) {
        self.peer_table.report_failed_peer(rank);
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        self.peer_table.matched(dest)
    }

    fn return_credit(&self, source: u32, octets: u64) {
        let Some(peer) = self.peer_of(source) else {
            return self.peer_table.set_matched(source, octets);
        };
        let mut session = peer.session();
        if !session.is_gone {
            session.pending_credit = Some(octets);
            self.transmit(peer, &mut session, self.timers.now());
        }
    }

    fn heartbeat(&self) {
        self.progress.heartbeat();
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        for peer in self.peer_table.to_ask().filter_map(|peer| self.peer_of(peer)) {
            let mut session = peer.session();
            if !session.is_gone && self.say(&mut session, &ControlMessage::HeartbeatRequest) {
                self.transmit(peer, &mut session, self.timers.now());
            }
        }
        self.peer_table.heartbeat_of(rank)
    }

    fn name(&self) -> &'static str {
        "udp"
    }

    fn datagrams(&self) -> Option<UdpStats> {
        Some(self.counted())
    }
}
