//! The sending side of a rank, and what it knows of the others: each by the transport that leads there.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mpjdev_buffer::Slab;

use super::turns::Turns;
use crate::shm::{HelperBell, ShmWire};
use crate::tcp::TcpWire;
use crate::{Header, Outgoing, PeerState, Unacked, Wire};

/// The sending side of one rank.
#[derive(Debug)]
pub struct SitesWire {
    pub(super) near: Arc<ShmWire>,
    far: Arc<TcpWire>,
    /// World rank of the first near rank, and how many there are.
    pub(super) base: u32,
    count: u32,
    /// This rank, in the world.
    rank: u32,
    pub(super) turns: Turns,
    /// The first failure that was heard of, on either side.
    abort: OnceLock<(u32, String)>,
    /// The near epoch for which this rank's failure was looked for.
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

    /// What this rank's helper sleeps on, which near ranks and the monitor call.
    pub fn helper_bell(&self) -> HelperBell {
        self.near.helper_bell()
    }

    /// The number of a near rank among those; none of a far one.
    #[inline(always)]
    fn near_rank(&self, rank: u32) -> Option<u32> {
        let near = rank.wrapping_sub(self.base);
        (near < self.count).then_some(near)
    }

    /// Whether something of the connections is here, or it is time to read. What waits to be written there is written.
    #[inline]
    pub(super) fn is_far_worth_a_look(&self) -> bool {
        self.relay(self.near.epoch());
        if self.far.has_news() || self.turns.is_far_due() {
            return true;
        }
        self.write_to_far();
        false
    }

    /// Writes what waits to be written to far ranks.
    #[inline]
    pub(super) fn write_to_far(&self) {
        self.far.write_waiting();
    }

    /// This rank fails by itself when what a near one has written makes no sense: then the far ones must hear of it, too.
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
        // Near ranks are ours.
        self.far.hold_back(source, full);
    }

    /// Far ones get copies of any memory.
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
        // Whatever it was woken for is looked for on both sides.
        self.turns.note_far();
    }

    fn has_helpers(&self) -> bool {
        true
    }

    fn call(&self, rank: u32) {
        // This rank is called when something is queued, which wakes no near helper unless it is for a near rank.
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
        // Both only grow.
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
        // Who hears from near that this rank has finished may end its process.
        let unacked = self.far.finish();
        self.near.finish();
        unacked
    }

    fn fail(&self, why: &str) {
        // What comes of another rank's failure is not told, in whichever way that one was heard of.
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
