//! Sending side of a rank, and its view of the other ranks, each through the transport that reaches it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mpjdev_buffer::Slab;

use super::turns::Turns;
use crate::shm::{HelperBell, ShmWire};
use crate::tcp::TcpWire;
use crate::{Header, Outgoing, PeerState, Unacked, Wire};

/// Sending side of one rank.
#[derive(Debug)]
pub struct SitesWire {
    pub(super) near: Arc<ShmWire>,
    far: Arc<TcpWire>,
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

impl SitesWire {
    pub(super) fn new(
        rank: u32,
        near: Arc<ShmWire>,
        far: Arc<TcpWire>,
        (base, count): (u32, u32),
    ) -> SitesWire {
        let (turns, abort, relayed) = Default::default();
        SitesWire { near, far, base, count, rank, turns, abort, relayed }
    }

    /// The futex of this rank's progress thread, which intra-node ranks and the monitor wake.
    pub fn helper_bell(&self) -> HelperBell {
        self.near.helper_bell()
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

impl Wire for SitesWire {
    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        match self.near_rank(dest) {
            Some(near) => self.near.try_send(near, header, body),
            None => self.far.try_send(dest, header, body),
        }
    }

    fn forget_room(&self, dest: u32) {
        match self.near_rank(dest) {
            Some(near) => self.near.forget_room(near),
            None => self.far.forget_room(dest),
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

    fn hold_back(&self, source: u32, full: bool) {
        // Intra-node ranks are of this implementation, and need no flow control.
        self.far.hold_back(source, full);
    }

    /// Inter-node ranks get copies of any memory.
    #[inline]
    fn carries(&self, slab: &Slab) -> bool {
        self.near.carries(slab)
    }

    #[inline]
    fn is_ready(&self) -> bool {
        self.near.is_ready() || (self.is_far_worth_a_look() && self.far.is_ready())
    }

    fn sleep(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.far.sleep_elsewhere(most, ready);
        // The cause of the wake may be on either side.
        self.turns.note_far();
    }

    fn has_helpers(&self) -> bool {
        true
    }

    fn call(&self, rank: u32) {
        // This rank wakes itself when a packet is queued. That wakes no intra-node progress thread unless the
        // packet is for an intra-node rank.
        if let Some(near) = self.near_rank(rank)
            && (rank != self.rank || self.near.asks_for_room())
        {
            self.near.call(near);
        }
        self.far.call(rank);
    }

    fn ring(&self) {
        self.near.ring();
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

    fn leaving(&self) -> Option<u64> {
        self.far.leaving()
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

    fn blame(&self, rank: u32) {
        self.far.blame(rank);
    }

    fn matched_by(&self, dest: u32) -> u64 {
        match self.near_rank(dest) {
            Some(near) => self.near.matched_by(near),
            None => self.far.matched_by(dest),
        }
    }

    fn tell_matched(&self, source: u32, octets: u64) {
        match self.near_rank(source) {
            Some(near) => self.near.tell_matched(near, octets),
            None => self.far.tell_matched(source, octets),
        }
    }

    #[inline]
    fn show_life(&self) {
        self.near.show_life();
        self.far.show_life();
    }

    fn life(&self, rank: u32) -> u64 {
        match self.near_rank(rank) {
            Some(near) => self.near.life(near),
            None => self.far.life(rank),
        }
    }

    fn name(&self) -> &'static str {
        "shm and tcp"
    }
}
