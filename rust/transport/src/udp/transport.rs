//! Sending side of a rank, its view of the other ranks, and its sleep.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mpjdev_buffer::SlabSource;
use mpjdev_proto::datagram::reliable::connection::Connection;
use mpjdev_proto::datagram::reliable::counters::Counters;
use mpjdev_proto::datagram::reliable::settings::Settings;
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sys::datagram::offload::Offload;
use mpjdev_sys::datagram::options;
use mpjdev_sys::sync::{LockRank, Mutex};
use tracing::{debug, info, warn};

use super::gso::Outgoing;
use super::ids::Ids;
use super::liveness::{Ended, LivenessConnections};
use super::peer::Peer;
use super::session_state::{Lost, SessionState};
use super::staging_buffer::StagingBuffer;
use super::timers::{Sleeper, Timers};
use super::{Job, Terms};
use crate::net::control::ControlMessage;
use crate::net::net_rank::NetRank;
use crate::net::packed_octets::GIVEN_UP;
use crate::net::poller::Poller;
use crate::net::progress_thread::{ProgressShared, ProgressTarget};
use crate::net::transport::NetTransport;
use crate::stats::UdpStats;
use crate::{Header, Kind, Outgoing as Body, StatusReporter, Unacked};

/// Time for which a rank still answers peers that have finished.
const ANSWERING: Duration = Duration::from_millis(300);
/// Interval of the checks whether they have.
const LINGER_STEP: Duration = Duration::from_micros(200);

/// Sending side of one rank.
#[derive(Debug)]
pub struct UdpTransport {
    pub(super) net: NetRank,
    pub(super) terms: Terms,
    pub(super) socket: UdpSocket,
    /// By rank; `None` for this rank, and for those that are reached otherwise.
    pub(super) peers: Vec<Option<Peer>>,
    /// Site by rank; empty if there is one.
    site_of: Vec<u32>,
    /// Connection ids of their packets.
    pub(super) ids: Ids,
    pub(super) timers: Timers,
    pub(super) stage: Mutex<StagingBuffer>,
    /// The staging buffer has datagrams.
    pub(super) is_staged: AtomicBool,
    /// Empty polls.
    pub(super) polls: AtomicU32,
    /// 1 more than the peer with a new prediction; 0 when the staging buffer has the current one.
    pub(super) expecting: AtomicU32,
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
        let Job { rank, members, site_of, terms, socket, receive_window, early, liveness, mut networks } =
            job;
        let (net, timers) = (NetRank::new(rank, members.len(), 1, source)?, Timers::new());
        socket.set_nonblocking(true)?;
        let has_liveness: Vec<bool> = liveness.iter().map(Option::is_some).collect();
        let liveness = LivenessConnections::new(liveness)?;
        net.poller.add_other(liveness.as_fd())?;
        net.progress.poller.add_other(liveness.as_fd())?;
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
            let network = networks.get_mut(peer).and_then(Option::take);
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
            net,
            terms,
            socket,
            stage: Mutex::new(LockRank::ReceiveSide, StagingBuffer::new(peers.len(), early)?),
            peers,
            site_of,
            ids: Ids::new(&ids),
            timers,
            is_staged: AtomicBool::new(false),
            polls: AtomicU32::new(0),
            expecting: AtomicU32::new(0),
            liveness,
            has_finished: AtomicBool::new(false),
            fault: OnceLock::new(),
        })
    }

    /// Sets the receiver of status reports: the first peer that this rank sees fail, and its finish.
    pub fn report_to(&self, reporter: Arc<dyn StatusReporter>) {
        self.net.peer_table.report_to(reporter);
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

    /// Fails a peer, and closes its connection.
    pub(super) fn close(&self, peer: &Peer, why: &str, is_unreachable: bool) {
        let rank = self.net.rank;
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
        self.net.peer_table.set_failed(peer.rank, why);
        self.net.has_room.store(true, SeqCst);
        // The memory of its predicted fragment is released.
        self.expecting.store(peer.rank + 1, Relaxed);
        self.net.note_change();
    }

    /// Handles ended liveness connections, after all earlier datagrams were handled.
    pub(super) fn handle_ended(&self, ended: Vec<Ended>) {
        for Ended { rank, why, is_unreachable, .. } in ended {
            let Some(peer) = self.peer_of(rank) else { continue };
            if peer.has_finished.load(Relaxed) || self.has_finished.load(Relaxed) {
                // No packet is expected from it, and it takes none.
                debug!(target: "mpjdev::udp", rank = self.net.rank, peer = rank, why, "peer is closed");
                let mut session = peer.session();
                session.close(is_unreachable);
                self.transmit(peer, &mut session, self.timers.now());
            } else {
                self.close(peer, &why, is_unreachable);
            }
        }
    }

    /// Whether a peer has received everything from a finishing rank. A peer that has finished needs no
    /// packet. But after packet loss the ack of its last packet may be lost too, so that packet is acked
    /// again for some time.
    fn has_got_all(&self, peer: &Peer, is_late: bool) -> bool {
        let session = peer.session();
        if session.is_closed() || session.connection.is_over() {
            return true;
        }
        if !peer.has_finished.load(Relaxed) {
            return session.state == SessionState::FinSent && session.connection.is_flushed();
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
        let (messages, octets) = match session.state {
            SessionState::Closed(Lost { messages, octets }) => (messages, octets),
            _ => session.store.held_messages(),
        };
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
        &self.net.progress
    }

    fn prepare_wait(&self) -> bool {
        let is_idle = !self.poll();
        if is_idle {
            self.listen(&self.net.progress.poller);
        }
        is_idle
    }

    fn end_wait(&self) {
        self.net.progress.poller.remove(self.socket());
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
        self.net.progress.kick();
    }
}

impl NetTransport for UdpTransport {
    const NAME: &'static str = "udp";

    fn net(&self) -> &NetRank {
        &self.net
    }

    fn send_packet(&self, dest: u32, header: Header, body: Body<'_>) -> bool {
        let Some(peer) = self.peer_of(dest) else { return true };
        let mut session = peer.session();
        if session.is_closed() {
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
                session.matched(header.token, header.context, &*self.net.source, self.terms.datagram_len_max);
                if session.expected.is_some() {
                    self.expecting.store(dest + 1, Relaxed);
                }
                true
            }
            _ => self.send_message(&mut session, header, body),
        };
        if !sent {
            session.has_refused = true;
        } else if header.kind == Kind::Eager && session.may_wait(self.net.write_rounds.load(Relaxed)) {
            // Every wait, poll and receive of the rank sends waiting messages.
            session.waiting.0 += octets_len;
            session.waiting.1 += 1;
            self.note_waiting(peer);
            self.net.progress.kick();
            return true;
        }
        let now = self.timers.now();
        if self.transmit(peer, &mut session, now) || session.has_rest() {
            // The packet leaves when this rank has read earlier datagrams, whatever the program does until
            // then.
            self.net.progress.kick();
        }
        sent
    }

    fn is_remote(&self, rank: u32) -> bool {
        self.peer_of(rank).is_some()
    }

    fn site_of(&self, rank: u32) -> u32 {
        self.site_of.get(rank as usize).copied().unwrap_or(0)
    }

    fn eager_max(&self, dest: u32) -> usize {
        self.peer_of(dest).map_or(usize::MAX, |peer| peer.eager_len)
    }

    fn ahead_from(&self, dest: u32) -> usize {
        NetTransport::eager_max(self, dest).saturating_add(1)
    }

    fn send_packed(&self, dest: u32) {
        let Some(peer) = self.peer_of(dest) else { return };
        let mut session = peer.session();
        if session.is_closed() {
            return;
        }
        if session.store.has_given_up() {
            drop(session);
            return self.close(peer, GIVEN_UP, false);
        }
        if self.transmit(peer, &mut session, self.timers.now()) || session.has_rest() {
            self.net.progress.kick();
        }
    }

    fn poll(&self) -> bool {
        UdpTransport::poll(self)
    }

    fn sleep(&self, most: Duration) -> bool {
        self.listen(&self.net.poller);
        let most = self.begin_sleep(Sleeper::Program, most);
        let mut has_arrived = false;
        self.net.poller.wait(most, &mut |_| has_arrived = true);
        self.net.poller.remove(self.socket());
        self.timers.end_sleep(Sleeper::Program);
        has_arrived
    }

    /// Acks, also those of datagrams that are still to be read, do not wait for a call of the program.
    fn has_timers(&self, has_arrived: bool) -> bool {
        has_arrived || self.is_staged.load(Acquire) || self.timers.are_armed()
    }

    fn tx_pending(&self) -> Option<u64> {
        // A peer that has finished takes nothing more.
        let live = self.peers().filter(|peer| !peer.has_finished.load(Relaxed));
        let left = live.filter_map(|peer| {
            let mut session = peer.session();
            if session.is_closed() || session.connection.is_over() || !session.store.holds_messages() {
                return None;
            }
            session.connection.flush();
            self.transmit(peer, &mut session, self.timers.now());
            Some(session.connection.counters().sent.wrapping_sub(session.connection.unacknowledged()))
        });
        left.reduce(u64::wrapping_add)
    }

    fn drain(&self) -> Vec<Unacked> {
        let (late, deadline) = (Instant::now() + ANSWERING, Instant::now() + self.terms.linger);
        self.has_finished.store(true, SeqCst);
        let now = self.timers.now();
        for peer in self.peers() {
            let mut session = peer.session();
            if !session.is_closed() {
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
            self.net.progress.kick();
            std::thread::sleep(LINGER_STEP);
        }
        self.peers().filter_map(Self::unacked).collect()
    }

    fn send_failure(&self, why: &str) {
        let now = self.timers.now();
        for peer in self.peers() {
            let mut session = peer.session();
            if !session.is_closed() {
                session.failure = Some(why.to_owned());
                self.transmit(peer, &mut session, now);
            }
        }
    }

    fn send_credit(&self, dest: u32, octets: u64) {
        let Some(peer) = self.peer_of(dest) else { return };
        let mut session = peer.session();
        if !session.is_closed() {
            session.pending_credit = Some(octets);
            self.transmit(peer, &mut session, self.timers.now());
        }
    }

    fn request_heartbeat(&self, dest: u32) {
        let Some(peer) = self.peer_of(dest) else { return };
        let mut session = peer.session();
        if !session.is_closed() && self.put_control(&mut session, &ControlMessage::HeartbeatRequest) {
            self.transmit(peer, &mut session, self.timers.now());
        }
    }

    fn send_heartbeat(&self, dest: u32, calls: u64) {
        let Some(peer) = self.peer_of(dest) else { return };
        let mut session = peer.session();
        session.alive = Some(calls);
        self.transmit(peer, &mut session, self.timers.now());
    }

    fn datagrams(&self) -> Option<UdpStats> {
        Some(self.counted())
    }
}
