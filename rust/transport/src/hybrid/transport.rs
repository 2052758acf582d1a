//! Sending side of a rank, and its view of the other ranks, each through the transport that reaches it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mpjdev_buffer::Slab;

use super::net_poll::NetPollPolicy;
use crate::shm::{ProgressFutex, ShmTransport};
use crate::tcp::TcpTransport;
use crate::{Header, Outgoing, PeerState, ShortSend, Transport, Unacked};

/// Sending side of one rank.
#[derive(Debug)]
pub struct HybridTransport {
    pub(super) intra: Arc<ShmTransport>,
    inter: Arc<TcpTransport>,
    /// World rank of the first rank of the site, and the number of its ranks.
    pub(super) base: u32,
    count: u32,
    /// World rank of this rank.
    rank: u32,
    pub(super) net_poll: NetPollPolicy,
    /// The first reported failure, on either side.
    abort: OnceLock<(u32, String)>,
    /// The intra-node epoch of the last check for a failure of this rank.
    relayed: AtomicU32,
}

impl HybridTransport {
    pub(super) fn new(
        rank: u32,
        intra: Arc<ShmTransport>,
        inter: Arc<TcpTransport>,
        (base, count): (u32, u32),
    ) -> HybridTransport {
        let (net_poll, abort, relayed) = Default::default();
        HybridTransport { intra, inter, base, count, rank, net_poll, abort, relayed }
    }

    /// The futex of this rank's progress thread, which intra-node ranks and the monitor wake.
    pub fn progress_futex(&self) -> ProgressFutex {
        self.intra.progress_futex()
    }

    /// The number of a rank within the site; `None` for an inter-node rank.
    #[inline(always)]
    fn intra_rank(&self, rank: u32) -> Option<u32> {
        let intra = rank.wrapping_sub(self.base);
        (intra < self.count).then_some(intra)
    }

    /// Whether the connections have packets, or a read is due. Writes pending octets to them otherwise.
    #[inline]
    pub(super) fn should_poll_inter(&self) -> bool {
        self.relay(self.intra.epoch());
        if self.inter.has_ready_packets() || self.net_poll.is_due() {
            return true;
        }
        self.flush_inter();
        false
    }

    /// Writes pending octets to inter-node ranks.
    #[inline]
    pub(super) fn flush_inter(&self) {
        self.inter.write_waiting();
    }

    /// Relays a failure of this rank to the inter-node ranks. The rank fails by itself if an intra-node rank
    /// has written invalid words.
    #[inline(always)]
    fn relay(&self, epoch: u32) {
        if epoch != self.relayed.load(Relaxed) {
            self.relay_failure(epoch);
        }
    }

    #[cold]
    fn relay_failure(&self, epoch: u32) {
        self.relayed.store(epoch, Relaxed);
        if let Some((rank, why)) = self.intra.abort()
            && self.base + rank == self.rank
        {
            self.inter.fail(&why);
        }
    }
}

/// Calls a method of the transport that reaches a rank, which is the first argument. Intra-node ranks have
/// other numbers there. The call is direct: the small-message path has no room for a table of functions.
macro_rules! to_rank {
    ($self:ident . $method:ident ( $rank:expr $(, $argument:expr)* )) => {
        match $self.intra_rank($rank) {
            Some(intra) => $self.intra.$method(intra $(, $argument)*),
            None => $self.inter.$method($rank $(, $argument)*),
        }
    };
}

impl Transport for HybridTransport {
    // ---- Of a rank

    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        to_rank!(self.try_send(dest, header, body))
    }

    #[inline]
    fn try_send_short(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        words: &[AtomicU64],
        len: usize,
    ) -> ShortSend {
        to_rank!(self.try_send_short(dest, context, tag, words, len))
    }

    fn try_send_copy(&self, dest: u32, context: u64, tag: i32, words: &[AtomicU64], len: usize) -> ShortSend {
        to_rank!(self.try_send_copy(dest, context, tag, words, len))
    }

    fn prepay(&self, dest: u32, octets: u64) {
        to_rank!(self.prepay(dest, octets))
    }

    fn cancel_room_request(&self, dest: u32) {
        to_rank!(self.cancel_room_request(dest))
    }

    fn eager_max(&self, dest: u32) -> usize {
        to_rank!(self.eager_max(dest))
    }

    fn peer(&self, rank: u32) -> PeerState {
        to_rank!(self.peer(rank))
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        to_rank!(self.credits_returned_by(dest))
    }

    fn return_credit(&self, source: u32, octets: u64) {
        to_rank!(self.return_credit(source, octets))
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        to_rank!(self.heartbeat_of(rank))
    }

    // ---- Of a rank, known to the connections alone

    fn is_remote(&self, rank: u32) -> bool {
        self.inter.is_remote(rank)
    }

    fn site_of(&self, rank: u32) -> u32 {
        self.inter.site_of(rank)
    }

    fn is_foreign(&self, rank: u32) -> bool {
        self.inter.is_foreign(rank)
    }

    fn ahead_from(&self, dest: u32) -> usize {
        self.inter.ahead_from(dest)
    }

    fn send_packed(&self, dest: u32) {
        self.inter.send_packed(dest);
    }

    fn set_backpressure(&self, source: u32, full: bool) {
        // Intra-node ranks are of this implementation, and need no flow control.
        self.inter.set_backpressure(source, full);
    }

    fn report_failed_peer(&self, rank: u32) {
        self.inter.report_failed_peer(rank);
    }

    fn tx_pending(&self) -> Option<u64> {
        self.inter.tx_pending()
    }

    // ---- Of this rank, on both sides

    /// Inter-node ranks get copies of any memory.
    #[inline]
    fn can_send_by_reference(&self, slab: &Slab) -> bool {
        self.intra.can_send_by_reference(slab)
    }

    #[inline]
    fn is_ready(&self) -> bool {
        self.intra.is_ready() || (self.should_poll_inter() && self.inter.is_ready())
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.inter.park_external(most, ready);
        // The cause of the wake may be on either side.
        self.net_poll.record_inter_packet();
    }

    fn has_progress_threads(&self) -> bool {
        true
    }

    fn kick_progress_thread(&self, rank: u32) {
        // This rank wakes itself when a packet is queued. That wakes no intra-node progress thread unless the
        // packet is for an intra-node rank.
        if let Some(intra) = self.intra_rank(rank)
            && (rank != self.rank || self.intra.asks_for_room())
        {
            self.intra.kick_progress_thread(intra);
        }
        self.inter.kick_progress_thread(rank);
    }

    fn wake(&self) {
        self.intra.wake();
    }

    #[inline]
    fn epoch(&self) -> u32 {
        let intra = self.intra.epoch();
        self.relay(intra);
        // Both epochs only grow.
        intra.wrapping_add(self.inter.epoch())
    }

    fn abort(&self) -> Option<(u32, String)> {
        if let Some(abort) = self.abort.get() {
            return Some(abort.clone());
        }
        let intra = self.intra.abort().map(|(rank, why)| (self.base + rank, why));
        intra.or_else(|| self.inter.abort()).map(|failed| self.abort.get_or_init(|| failed).clone())
    }

    fn finish(&self) -> Vec<Unacked> {
        // A process may end once this finish is visible to the site, so the connections are finished first.
        let unacked = self.inter.finish();
        self.intra.finish();
        unacked
    }

    fn fail(&self, why: &str) {
        // A failure that follows from another rank's failure is not reported, whichever transport reported
        // that one.
        if self.abort().is_none() {
            self.intra.fail(why);
            self.inter.fail(why);
        }
    }

    #[inline]
    fn heartbeat(&self) {
        self.intra.heartbeat();
        self.inter.heartbeat();
    }

    #[inline]
    fn note_send(&self) {
        self.inter.note_send();
    }

    fn name(&self) -> &'static str {
        "shm and tcp"
    }
}
