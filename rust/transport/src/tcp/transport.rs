//! Sending side of a rank, its view of the other ranks, and its sleep.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::time::{Duration, Instant};

use mpjdev_buffer::SlabSource;
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::pair::{Pair, Settings};
use tracing::{debug, info, warn};

use super::channel::Channel;
use super::channel_state::{Backlog, Fault, TxState};
use super::peer_timeout::PeerTimeout;
use super::rx_stream::RxStream;
use super::tx_stream::{PeerSession, TxStream};
use super::{Job, Terms};
use crate::config::UNMATCHED_MAX;
use crate::net::control::ControlMessage;
use crate::net::net_rank::NetRank;
use crate::net::packed_octets::GIVEN_UP;
use crate::net::poller::Poller;
use crate::net::progress_thread::{ProgressShared, ProgressTarget};
use crate::net::transport::NetTransport;
use crate::{Header, Kind, Outgoing, PeerState, StatusReporter, Unacked};

/// Octets of a message between our own ranks that leave before it is matched, if a packet has room for them:
/// 4 MiB of elements with all headers.
pub(super) const EAGER_MAX: usize = (4 << 20) + (1 << 10);
/// Octets from which a message from an array is sent before it is packed: more than 1 MiB of elements. The
/// copies at both ends then overlap, which is worth a round trip.
const AHEAD_FROM: usize = (1 << 20) + (1 << 10);
/// Longest time that a finishing rank waits until the other systems have taken its last octets.
const LINGER: Duration = Duration::from_secs(5);

/// Sending side of one rank.
#[derive(Debug)]
pub struct TcpTransport {
    pub(super) net: NetRank,
    pub(super) terms: Terms,
    pub(super) channels: Vec<Channel>,
    /// Channel by rank; none to this rank, and to those that are reached otherwise.
    channel_of: Vec<Option<usize>>,
    /// Site by rank; empty if there is one.
    site_of: Vec<u32>,
    pub(super) is_foreign: Vec<bool>,
    /// Number of channels with packets to take.
    pub(super) ready_count: AtomicUsize,
    /// The most recently active channel.
    pub(super) hot: AtomicUsize,
    pub(super) polls: AtomicU32,
    pub(super) peer_timeout: PeerTimeout,
}

impl TcpTransport {
    pub(super) fn new(job: Job, source: Arc<dyn SlabSource>) -> io::Result<TcpTransport> {
        let Job { rank, members, site_of, terms, sockets } = job;
        let count = sockets.iter().flatten().count();
        let net = NetRank::new(rank, members.len(), count, source)?;
        let ours = members[rank as usize].proc;
        let mut channels = Vec::new();
        let mut channel_of = vec![None; members.len()];
        for (host, socket) in sockets.into_iter().enumerate() {
            let Some(socket) = socket else { continue };
            let here = members.iter().enumerate().filter(|(_, member)| member.host as usize == host);
            let sessions = here.map(|(peer, member)| {
                channel_of[peer] = Some(channels.len());
                let settings = Settings {
                    dialect: terms.dialect,
                    ours,
                    theirs: member.proc,
                    maxdatalen: terms.maxdatalen,
                    ackmark: terms.ackmark,
                    hiwater: terms.hiwater,
                    // The rank bounds them first, with an error that names the receiver. The bound here would
                    // stop all later packets.
                    sends_max: 2 * UNMATCHED_MAX as usize,
                    arrivals_max: 2 * UNMATCHED_MAX as usize + 4 * terms.hiwater as usize,
                };
                let pair = Pair::new(settings).map_err(io::Error::other)?;
                Ok(PeerSession::new(peer as u32, !member.is_ours, pair))
            });
            let sessions: Vec<PeerSession> = sessions.collect::<io::Result<_>>()?;
            net.poller.add(channels.len(), socket.as_fd())?;
            net.progress.poller.add(channels.len(), socket.as_fd())?;
            let ranks: Vec<u32> = sessions.iter().map(|session| session.rank).collect();
            let foreign = !members[ranks.first().map_or(0, |rank| *rank as usize)].is_ours;
            debug!(target: "mpjdev::tcp", rank, peers = ?ranks, foreign, "channel is open");
            channels.push(Channel::new(
                socket,
                ranks,
                RxStream::new()?,
                TxStream::new(sessions, terms.dialect)?,
            ));
        }
        Ok(TcpTransport {
            net,
            terms,
            peer_timeout: PeerTimeout::of(channels.iter().map(|channel| channel.socket.as_fd())),
            channels,
            channel_of,
            site_of,
            is_foreign: members.iter().map(|member| !member.is_ours).collect(),
            ready_count: AtomicUsize::new(0),
            hot: AtomicUsize::new(0),
            polls: AtomicU32::new(0),
        })
    }

    /// Sets the receiver of status reports: the first peer that this rank sees fail, and its finish.
    pub fn report_to(&self, reporter: Arc<dyn StatusReporter>) {
        self.net.peer_table.report_to(reporter);
    }

    pub(super) fn channel(&self, rank: u32) -> Option<&Channel> {
        self.channel_of[rank as usize].map(|at| &self.channels[at])
    }

    /// Closes a channel. Its ranks have failed, unless they had finished.
    pub(super) fn close(&self, channel: &Channel, tx: &mut TxStream, why: &str) {
        if tx.state == TxState::Closed {
            return;
        }
        let (rank, peers) = (self.net.rank, &channel.ranks);
        tx.close(untaken(channel));
        let host = channel.host.load(Relaxed).closed();
        if host.has_finished() {
            info!(target: "mpjdev::tcp", rank, ?peers, why, "channel of a finished host is closed");
        } else {
            info!(target: "mpjdev::tcp", rank, ?peers, why, "channel is closed before its end");
        }
        channel.host.store(host, SeqCst);
        self.note_waiting(channel, tx);
        self.note_room(tx);
        self.unwatch(channel);
        let _ = rustix::net::shutdown(&channel.socket, rustix::net::Shutdown::Both);
        if !host.has_finished() {
            for peer in peers {
                warn!(target: "mpjdev::failure", rank, peer, why, "peer has failed");
                self.net.peer_table.set_failed(*peer, why);
            }
        }
        self.net.note_change();
    }

    /// Stops sending on a channel. Octets that the other end has sent before are still taken: a closed peer
    /// may have finished, and left answers unread. The end of reading decides its state.
    pub(super) fn stop_sending(&self, channel: &Channel, tx: &mut TxStream, error: &io::Error) {
        let (rank, peers) = (self.net.rank, &channel.ranks);
        info!(
            target: "mpjdev::tcp", rank, ?peers, %error,
            "channel is broken, the octets before are still read"
        );
        self.note_fault(tx, error);
        tx.stop_sending(untaken(channel));
        self.note_waiting(channel, tx);
        self.note_room(tx);
        let _ = rustix::net::shutdown(&channel.socket, rustix::net::Shutdown::Both);
    }

    /// Records that the system reports a broken channel.
    pub(super) fn note_fault(&self, tx: &mut TxStream, error: &io::Error) {
        let fault = std::mem::replace(&mut tx.fault, Fault::None);
        tx.fault = fault.after(error, self.terms.dialect);
    }

    /// Records that all packets of the ranks behind a channel have arrived, and no more follow. The locked
    /// send side keeps a thread that sends from closing the channel meanwhile.
    pub(super) fn note_finished(&self, channel: &Channel, _tx: &mut TxStream) {
        debug!(target: "mpjdev::tcp", rank = self.net.rank, peers = ?channel.ranks, "peers have finished");
        channel.host.store(channel.host.load(Relaxed).finished(), SeqCst);
        for rank in &channel.ranks {
            self.net.peer_table.set(*rank, PeerState::Finished);
        }
        self.net.note_change();
    }

    pub(super) fn unwatch(&self, channel: &Channel) {
        self.net.poller.remove(channel.socket.as_fd());
        self.net.progress.poller.remove(channel.socket.as_fd());
    }

    /// Watches for room where octets wait, or stops watching.
    pub(super) fn watch_room(&self, poller: &Poller, watch: bool) {
        let room = |channel: &'_ Channel| watch && channel.backlog.load(SeqCst) == Backlog::Full;
        poller.watch_room(self.channels.iter().map(|channel| (channel.socket.as_fd(), room(channel))));
    }

    /// Sends the end of packets, in dialects that have a packet for it.
    pub(super) fn send_fini(&self) {
        for channel in &self.channels {
            let mut tx = channel.tx();
            if tx.is_open() {
                self.write_fini(channel, &mut tx);
            }
        }
    }

    /// Writes pending octets, and then the Fini when it is due and there is room. An answer that waits for
    /// flow control delays it: the Fini states that all packets were sent.
    fn write_fini(&self, channel: &Channel, tx: &mut TxStream) {
        self.write(channel, tx);
        if tx.has_queued() {
            return;
        }
        tx.ending.finish();
        if tx.has_room()
            && let Some(fini) = tx.ending.poll_transmit()
        {
            tx.put(0, &fini, None);
            self.write(channel, tx);
        }
    }

    /// Ends the stream after all pending octets. The progress thread may have put an answer since the last
    /// write, which must not hide the end from the peer.
    pub(super) fn end_stream(&self, channel: &Channel) {
        let mut tx = channel.tx();
        if tx.is_open() {
            self.write(channel, &mut tx);
        }
        if tx.tx_pending().is_none() {
            let (rank, peers) = (self.net.rank, &channel.ranks);
            debug!(target: "mpjdev::tcp", rank, ?peers, "end of packets is sent");
            let _ = rustix::net::shutdown(&channel.socket, rustix::net::Shutdown::Write);
        }
    }

    /// Octets given to a channel that the peer's system has not acked. Ranks that have finished, or whose end
    /// has closed the channel, take nothing more and count as zero.
    fn unacked(&self, channel: &Channel, given: u64) -> Option<Unacked> {
        let has_left = self.has_left(channel);
        let tx = channel.tx();
        if channel.has_finished() || (has_left && !matches!(tx.fault, Fault::Unreachable(_))) {
            return None;
        }
        // The Fini of this rank is no message.
        let octets = given.saturating_sub(tx.acked(untaken(channel)));
        (octets > 0).then_some(Unacked { rank: channel.ranks[0], messages: None, octets })
    }

    /// Whether the peer's system has acked all octets of a channel.
    pub(super) fn has_left(&self, channel: &Channel) -> bool {
        let mut tx = channel.tx();
        if !tx.is_open() {
            return true;
        }
        // A peer that has ended its own direction takes nothing more.
        if channel.try_rx().is_some_and(|rx| rx.is_over) {
            return true;
        }
        tx.fill_from_sessions();
        self.write_fini(channel, &mut tx);
        // A peer that has finished returns no credit for answers any more.
        let waits = tx.has_queued() && !channel.has_finished();
        !waits && tx.waiting_len() == 0 && untaken(channel) == 0
    }
}

/// Written octets that the peer's system has not acked.
fn untaken(channel: &Channel) -> u64 {
    mpjdev_sys::stream::untaken_len(channel.socket.as_fd()).unwrap_or(0) as u64
}

impl ProgressTarget for TcpTransport {
    fn progress(&self) -> &Arc<ProgressShared> {
        &self.net.progress
    }

    fn tick(&self) {
        self.check_peer_timeouts();
    }

    fn prepare_wait(&self) -> bool {
        self.check_peer_timeouts();
        self.watch_room(&self.net.progress.poller, true);
        !self.poll()
    }

    fn end_wait(&self) {
        self.watch_room(&self.net.progress.poller, false);
    }

    fn has_pending_work(&self) -> bool {
        self.net.waiting_count.load(SeqCst) > 0
            || self.channels.iter().any(|channel| {
                let tx = channel.tx();
                tx.tx_pending().is_some() || tx.sessions.iter().any(PeerSession::has_rest)
            })
    }

    fn progress_for_sleeper(&self, drive: &dyn Fn()) {
        self.drive_for_sleeper(drive);
    }
}

impl Drop for TcpTransport {
    fn drop(&mut self) {
        self.net.progress.kick();
    }
}

impl NetTransport for TcpTransport {
    const NAME: &'static str = "tcp";

    fn net(&self) -> &NetRank {
        &self.net
    }

    fn send_packet(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        let Some(channel) = self.channel(dest) else { return true };
        let mut tx = channel.tx();
        if !tx.is_open() {
            // Packets to a dead rank are dropped.
            return true;
        }
        let at = if tx.sessions.len() == 1 { 0 } else { tx.session_of(dest) };
        let sent = match header.kind {
            Kind::MatchAck => {
                tx.matched(at, header.token, header.context, &self.net.source);
                tx.fill_from_sessions();
                true
            }
            _ => tx.has_room() && self.send_message(&mut tx, at, header, body),
        };
        if sent {
            // Every wait, poll and receive of the rank writes pending octets.
            if header.kind == Kind::Eager && tx.may_wait(self.net.write_rounds.load(Relaxed)) {
                self.note_waiting(channel, &tx);
                self.net.progress.kick();
            } else {
                self.write(channel, &mut tx);
                if tx.tx_pending().is_some() || tx.sessions[at].has_rest() {
                    // The packet leaves when the other end answers or takes octets, whatever the program does
                    // until then.
                    self.net.progress.kick();
                }
            }
        } else {
            tx.has_refused = true;
            tx.fill_from_sessions();
            self.note_waiting(channel, &tx);
        }
        sent
    }

    fn is_remote(&self, rank: u32) -> bool {
        self.channel_of[rank as usize].is_some()
    }

    fn site_of(&self, rank: u32) -> u32 {
        self.site_of.get(rank as usize).copied().unwrap_or(0)
    }

    fn is_foreign(&self, rank: u32) -> bool {
        self.is_foreign[rank as usize]
    }

    fn eager_max(&self, dest: u32) -> usize {
        let packet = self.terms.maxdatalen as usize;
        // An unexpected message costs its receiver memory and caches.
        if self.is_foreign[dest as usize] { packet } else { packet.min(EAGER_MAX) }
    }

    fn ahead_from(&self, dest: u32) -> usize {
        match self.is_foreign[dest as usize] {
            true => usize::MAX,
            false => NetTransport::eager_max(self, dest).saturating_add(1).min(AHEAD_FROM),
        }
    }

    fn send_packed(&self, dest: u32) {
        let Some(channel) = self.channel(dest) else { return };
        let mut tx = channel.tx();
        if !tx.is_open() {
            return;
        }
        if tx.has_broken_send() {
            return self.close(channel, &mut tx, GIVEN_UP);
        }
        tx.fill_from_sessions();
        self.write(channel, &mut tx);
        if tx.tx_pending().is_some() {
            self.net.progress.kick();
        }
    }

    fn set_backpressure(&self, source: u32, full: bool) {
        if let Some(channel) = self.channel(source) {
            let mut tx = channel.tx();
            let at = tx.session_of(source);
            tx.sessions[at].set_backpressure(full);
            tx.fill_from_sessions();
            self.note_waiting(channel, &tx);
        }
    }

    fn poll(&self) -> bool {
        TcpTransport::poll(self)
    }

    fn sleep(&self, most: Duration) -> bool {
        self.watch_room(&self.net.poller, true);
        let has_arrived = self.wait_for_channels(most);
        self.watch_room(&self.net.poller, false);
        has_arrived
    }

    fn tx_pending(&self) -> Option<u64> {
        // A peer that has finished takes nothing more.
        let live = self.channels.iter().filter(|channel| !channel.has_finished());
        let left = live.filter_map(|channel| channel.tx().tx_pending());
        left.reduce(u64::wrapping_add)
    }

    fn drain(&self) -> Vec<Unacked> {
        let deadline = Instant::now() + LINGER;
        let given: Vec<u64> = self.channels.iter().map(|channel| channel.tx().given()).collect();
        self.send_fini();
        // An octet that the peer's system has not acked may be lost when this process ends.
        while Instant::now() < deadline && !self.channels.iter().all(|channel| self.has_left(channel)) {
            self.wait_for_channels(Duration::from_millis(1));
        }
        let channels = self.channels.iter().zip(given);
        let unacked = channels.filter_map(|(channel, given)| self.unacked(channel, given)).collect();
        if self.terms.dialect == Dialect::Draft {
            // Only the end of the stream states that this rank has finished.
            self.channels.iter().for_each(|channel| self.end_stream(channel));
        }
        unacked
    }

    fn send_failure(&self, why: &str) {
        for channel in &self.channels {
            let mut tx = channel.tx();
            if tx.state != TxState::Closed {
                let ours = tx.sessions.iter_mut().filter(|session| !session.is_foreign);
                ours.for_each(|session| session.failure = Some(why.to_owned()));
                self.write(channel, &mut tx);
            }
        }
    }

    fn send_credit(&self, dest: u32, octets: u64) {
        let Some(channel) = self.channel(dest).filter(|_| !self.is_foreign[dest as usize]) else { return };
        let mut tx = channel.tx();
        if tx.state != TxState::Closed {
            let at = tx.session_of(dest);
            tx.sessions[at].pending_credit = Some(octets);
            self.flush_control(&mut tx);
            self.write(channel, &mut tx);
            if tx.tx_pending().is_some() || tx.sessions[at].has_rest() {
                self.net.progress.kick();
            }
        }
    }

    fn request_heartbeat(&self, dest: u32) {
        self.send_control(dest, &ControlMessage::HeartbeatRequest);
    }

    fn send_heartbeat(&self, dest: u32, calls: u64) {
        self.send_control(dest, &ControlMessage::Heartbeat(calls));
    }
}
