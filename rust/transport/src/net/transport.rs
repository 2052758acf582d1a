//! Common behaviour of the network transports: [`Transport`] for each [`NetTransport`].

use std::fmt::Debug;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;

use tracing::warn;

use super::net_rank::NetRank;
use super::peer_fault::PeerFault;
use super::peer_table::Reaction;
use crate::stats::UdpStats;
use crate::{Header, Outgoing, PeerState, Transport, Unacked};

/// Network of a rank: its connections, and the packets on them.
pub(in super::super) trait NetTransport: Debug + Send + Sync {
    /// Name of the transport for users.
    const NAME: &'static str;

    fn net(&self) -> &NetRank;

    /// Sends a packet to another rank, as [`Transport::try_send`] does.
    fn send_packet(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool;

    /// As [`Transport::is_remote`]: whether there is a connection to a rank.
    fn is_remote(&self, rank: u32) -> bool;

    /// As [`Transport::site_of`].
    fn site_of(&self, rank: u32) -> u32;

    /// As [`Transport::is_foreign`].
    fn is_foreign(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }

    /// As [`Transport::eager_max`].
    fn eager_max(&self, dest: u32) -> usize;

    /// As [`Transport::ahead_from`].
    fn ahead_from(&self, dest: u32) -> usize {
        let _ = dest;
        usize::MAX
    }

    /// As [`Transport::send_packed`].
    fn send_packed(&self, dest: u32) {
        let _ = dest;
    }

    /// As [`Transport::set_backpressure`].
    fn set_backpressure(&self, source: u32, full: bool) {
        let _ = (source, full);
    }

    /// Reads what has arrived and writes what waits. Returns whether there is work for the rank.
    fn poll(&self) -> bool;

    /// Sleeps until something arrives or a thread wakes this one, at most for `most`. Returns whether
    /// something has arrived.
    fn sleep(&self, most: Duration) -> bool;

    /// Whether work becomes due even if nothing arrives from now on. `has_arrived`: something has, and is not
    /// handled.
    fn has_timers(&self, has_arrived: bool) -> bool {
        let _ = has_arrived;
        false
    }

    /// As [`Transport::tx_pending`].
    fn tx_pending(&self) -> Option<u64>;

    /// Sends everything that is pending, and the end of this rank's packets. Returns the data that the
    /// machines of running ranks had not acked at the deadline.
    fn drain(&self) -> Vec<Unacked>;

    /// Sends to all ranks of ours that the job has failed.
    fn send_failure(&self, why: &str);

    /// Sends the credit of a rank with a connection.
    fn send_credit(&self, dest: u32, octets: u64);

    fn request_heartbeat(&self, dest: u32);

    /// Answers a request for a heartbeat with the number of calls of the program.
    fn send_heartbeat(&self, dest: u32, calls: u64);

    /// As [`Transport::datagrams`].
    fn datagrams(&self) -> Option<UdpStats> {
        None
    }

    /// Handles a control message from one of our own ranks.
    ///
    /// # Errors
    /// No control message has this tag and length.
    fn handle_control(&self, rank: u32, tag: i32, octets: &[u8]) -> Result<(), PeerFault> {
        let net = self.net();
        match net.peer_table.handle(rank, tag, octets)? {
            Reaction::Nothing => {}
            Reaction::Heartbeat => self.send_heartbeat(rank, net.progress.calls.load(Relaxed)),
            Reaction::Wake => {
                warn!(target: "mpjdev::failure", rank = net.rank, peer = rank, "peer has ended the job");
                net.note_change();
            }
        }
        Ok(())
    }
}

/// Queues a packet of a rank to itself, and wakes a thread of the rank that sleeps on the channels.
#[cold]
fn send_to_self(net: &NetRank, header: Header, body: Outgoing<'_>) -> bool {
    let sent = net.loopback.send(header, body);
    if sent {
        // The sleeper records its sleep before it checks the queue, so it finds the packet or is woken.
        fence(SeqCst);
        net.wake();
    }
    sent
}

impl<T: NetTransport> Transport for T {
    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        if dest == self.net().rank {
            return send_to_self(self.net(), header, body);
        }
        self.send_packet(dest, header, body)
    }

    fn is_remote(&self, rank: u32) -> bool {
        NetTransport::is_remote(self, rank)
    }

    fn site_of(&self, rank: u32) -> u32 {
        NetTransport::site_of(self, rank)
    }

    fn is_foreign(&self, rank: u32) -> bool {
        NetTransport::is_foreign(self, rank)
    }

    fn eager_max(&self, dest: u32) -> usize {
        NetTransport::eager_max(self, dest)
    }

    fn ahead_from(&self, dest: u32) -> usize {
        NetTransport::ahead_from(self, dest)
    }

    fn send_packed(&self, dest: u32) {
        NetTransport::send_packed(self, dest);
    }

    fn set_backpressure(&self, source: u32, full: bool) {
        NetTransport::set_backpressure(self, source, full);
    }

    fn is_ready(&self) -> bool {
        self.poll()
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        let progress = &self.net().progress;
        progress.begin_sleep();
        let has_arrived = !ready() && !self.poll() && self.sleep(most);
        progress.end_sleep(self.has_timers(has_arrived));
    }

    fn has_progress_threads(&self) -> bool {
        true
    }

    fn kick_progress_thread(&self, rank: u32) {
        // Packets wake the progress threads of the other ranks.
        if rank == self.net().rank {
            self.net().progress.kick();
        }
    }

    #[inline]
    fn wake(&self) {
        self.net().wake();
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.net().peer_table.epoch()
    }

    fn peer(&self, rank: u32) -> PeerState {
        self.net().peer_table.peer(rank)
    }

    fn abort(&self) -> Option<(u32, String)> {
        self.net().peer_table.abort().cloned()
    }

    fn tx_pending(&self) -> Option<u64> {
        NetTransport::tx_pending(self)
    }

    fn finish(&self) -> Vec<Unacked> {
        let unacked = self.drain();
        self.net().peer_table.finish(self.net().rank);
        self.net().note_change();
        unacked
    }

    fn fail(&self, why: &str) {
        if self.net().peer_table.set_abort(self.net().rank, why.to_owned()) {
            self.send_failure(why);
            self.net().note_change();
        }
    }

    fn report_failed_peer(&self, rank: u32) {
        self.net().peer_table.report_failed_peer(rank);
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        self.net().peer_table.matched(dest)
    }

    fn return_credit(&self, source: u32, octets: u64) {
        match NetTransport::is_remote(self, source) {
            true => self.send_credit(source, octets),
            false => self.net().peer_table.set_matched(source, octets),
        }
    }

    #[inline]
    fn heartbeat(&self) {
        self.net().progress.heartbeat();
    }

    #[inline]
    fn note_send(&self) {
        self.net().progress.note_send();
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        let peer_table = &self.net().peer_table;
        peer_table.heartbeats_due().for_each(|peer| self.request_heartbeat(peer));
        peer_table.heartbeat_of(rank)
    }

    fn name(&self) -> &'static str {
        T::NAME
    }

    fn datagrams(&self) -> Option<UdpStats> {
        NetTransport::datagrams(self)
    }
}
