//! Sending side of a rank, and its view of the other ranks, each through the transport that reaches it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mpjdev_buffer::Slab;

use super::turns::Turns;
use crate::shm::{ProgressFutex, ShmTransport};
use crate::tcp::TcpTransport;
use crate::{Header, Outgoing, PeerState, Transport, Unacked};

/// Sending side of one rank.
#[derive(Debug)]
pub struct HybridTransport {
    pub(super) near: Arc<ShmTransport>,
    far: Arc<TcpTransport>,
    /// World rank of the first rank of the site, and the number of its ranks.
    pub(super) base: u32,
    count: u32,
    /// World rank of this rank.
    rank: u32,
    pub(super) turns: Turns,
    /// The first reported failure, on either side.
    abort: OnceLock<(u32, String)>,
    /// The intra-node epoch of the last check for a failure of this rank.
    relayed: AtomicU32,
}

impl HybridTransport {
    pub(super) fn new(
        rank: u32,
        near: Arc<ShmTransport>,
        far: Arc<TcpTransport>,
        (base, count): (u32, u32),
    ) -> HybridTransport {
        let (turns, abort, relayed) = Default::default();
        HybridTransport { near, far, base, count, rank, turns, abort, relayed }
    }

    /// The futex of this rank's progress thread, which intra-node ranks and the monitor wake.
    pub fn progress_futex(&self) -> ProgressFutex {
        self.near.progress_futex()
    }

    /// The number of a rank within the site; `None` for an inter-node rank.
    #[inline(always)]
    fn near_rank(&self, rank: u32) -> Option<u32> {
        let near = rank.wrapping_sub(self.base);
        (near < self.count).then_some(near)
    }

    /// Whether the connections have packets, or a read is due. Writes pending octets to them otherwise.
    #[inline]
    pub(super) fn is_far_worth_a_look(&self) -> bool {
        self.relay(self.near.epoch());
        if self.far.has_news() || self.turns.is_far_due() {
            return true;
        }
        self.write_to_far();
        false
    }

    /// Writes pending octets to inter-node ranks.
    #[inline]
    pub(super) fn write_to_far(&self) {
        self.far.write_waiting();
    }

    /// Relays a failure of this rank to the inter-node ranks. The rank fails by itself if an intra-node rank
    /// has written nonsense.
    #[inline(always)]
    fn relay(&self, epoch: u32) {
        if epoch != self.relayed.load(Relaxed) {
            self.relay_failure(epoch);
        }
    }

    #[cold]
    fn relay_failure(&self, epoch: u32) {
        self.relayed.store(epoch, Relaxed);
        if let Some((rank, why)) = self.near.abort()
            && self.base + rank == self.rank
        {
            self.far.fail(&why);
        }
    }
}

impl Transport for HybridTransport {
    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        match self.near_rank(dest) {
            Some(near) => self.near.try_send(near, header, body),
            None => self.far.try_send(dest, header, body),
        }
    }

    fn cancel_room_request(&self, dest: u32) {
        match self.near_rank(dest) {
            Some(near) => self.near.cancel_room_request(near),
            None => self.far.cancel_room_request(dest),
        }
    }

    fn is_remote(&self, rank: u32) -> bool {
        self.far.is_remote(rank)
    }

    fn is_foreign(&self, rank: u32) -> bool {
        self.far.is_foreign(rank)
    }

    fn eager_max(&self, dest: u32) -> usize {
        match self.near_rank(dest) {
            Some(near) => self.near.eager_max(near),
            None => self.far.eager_max(dest),
        }
    }

    fn set_backpressure(&self, source: u32, full: bool) {
        // Intra-node ranks are of this implementation, and need no flow control.
        self.far.set_backpressure(source, full);
    }

    /// Inter-node ranks get copies of any memory.
    #[inline]
    fn can_send_by_reference(&self, slab: &Slab) -> bool {
        self.near.can_send_by_reference(slab)
    }

    #[inline]
    fn is_ready(&self) -> bool {
        self.near.is_ready() || (self.is_far_worth_a_look() && self.far.is_ready())
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.far.sleep_elsewhere(most, ready);
        // The cause of the wake may be on either side.
        self.turns.note_far();
    }

    fn has_progress_threads(&self) -> bool {
        true
    }

    fn kick_progress_thread(&self, rank: u32) {
        // This rank wakes itself when a packet is queued. That wakes no intra-node progress thread unless the
        // packet is for an intra-node rank.
        if let Some(near) = self.near_rank(rank)
            && (rank != self.rank || self.near.asks_for_room())
        {
            self.near.kick_progress_thread(near);
        }
        self.far.kick_progress_thread(rank);
    }

    fn wake(&self) {
        self.near.wake();
    }

    #[inline]
    fn epoch(&self) -> u32 {
        let near = self.near.epoch();
        self.relay(near);
        // Both epochs only grow.
        near.wrapping_add(self.far.epoch())
    }

    fn peer(&self, rank: u32) -> PeerState {
        match self.near_rank(rank) {
            Some(near) => self.near.peer(near),
            None => self.far.peer(rank),
        }
    }

    fn abort(&self) -> Option<(u32, String)> {
        if let Some(abort) = self.abort.get() {
            return Some(abort.clone());
        }
        let near = self.near.abort().map(|(rank, why)| (self.base + rank, why));
        near.or_else(|| self.far.abort()).map(|failed| self.abort.get_or_init(|| failed).clone())
    }

    fn tx_pending(&self) -> Option<u64> {
        self.far.tx_pending()
    }

    fn finish(&self) -> Vec<Unacked> {
        // A process may end once this finish is visible to the site, so the connections are finished first.
        let unacked = self.far.finish();
        self.near.finish();
        unacked
    }

    fn fail(&self, why: &str) {
        // A failure that follows from another rank's failure is not reported, whichever transport reported
        // that one.
        if self.abort().is_none() {
            self.near.fail(why);
            self.far.fail(why);
        }
    }

    fn report_failed_peer(&self, rank: u32) {
        self.far.report_failed_peer(rank);
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        match self.near_rank(dest) {
            Some(near) => self.near.credits_returned_by(near),
            None => self.far.credits_returned_by(dest),
        }
    }

    fn return_credit(&self, source: u32, octets: u64) {
        match self.near_rank(source) {
            Some(near) => self.near.return_credit(near, octets),
            None => self.far.return_credit(source, octets),
        }
    }

    #[inline]
    fn heartbeat(&self) {
        self.near.heartbeat();
        self.far.heartbeat();
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        match self.near_rank(rank) {
            Some(near) => self.near.heartbeat_of(near),
            None => self.far.heartbeat_of(rank),
        }
    }

    fn name(&self) -> &'static str {
        "shm and tcp"
    }
}
