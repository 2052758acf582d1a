//! Hints between ranks: doorbells, bells, and who waits for room. All stand where everybody may write, so nothing rests on
//! them alone: what a sleep that nobody ended finds is told once more, and the queue of a rank that is gone is polled without.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use std::time::Duration;

use super::Job;
use super::layout::{BELLS, DOORBELLS, EPOCH, HELPER, WAITS, bell_words};
use super::wire::ShmWire;
use crate::PeerState;

/// What a rank's helper sleeps on; it keeps nothing of the rank alive.
#[derive(Debug)]
pub struct HelperBell {
    job: Arc<Job>,
    word: usize,
    /// Calls that were answered.
    seen: u32,
}

/// Calls a helper.
#[derive(Debug)]
pub struct HelperCaller {
    job: Arc<Job>,
    word: usize,
}

impl HelperCaller {
    /// Ends its sleep, this one or the next.
    pub fn call(&self) {
        self.job.pages.common.bell(self.word).call();
    }
}

impl HelperBell {
    /// What calls the helper.
    pub fn caller(&self) -> HelperCaller {
        HelperCaller { job: self.job.clone(), word: self.word }
    }

    /// Sleeps until a rank calls the helper, unless one has since the last sleep, or the time is over. Gives whether one has.
    pub fn sleep(&mut self, most: Duration) -> bool {
        let bell = self.job.pages.common.bell(self.word);
        bell.sleep(most, || bell.rings() != self.seen);
        std::mem::replace(&mut self.seen, bell.rings()) != self.seen
    }
}

/// What a rank has noticed of the others' ends.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// Both epochs, as they were seen last.
    hints: AtomicU64,
    /// Changes with them, and is never zero again.
    epoch: AtomicU32,
    /// Ranks that are not alive, of those that this one knows, when it looked last.
    gone: AtomicU32,
}

impl Noticed {
    #[inline(always)]
    pub(super) fn epoch(&self, hints: u64) -> u32 {
        if hints != self.hints.load(Acquire) {
            // Before the hints are taken as seen: who sees those sees this.
            self.advance();
            self.hints.store(hints, SeqCst);
        }
        self.epoch.load(Acquire)
    }

    #[cold]
    fn advance(&self) {
        let _ = self.epoch.fetch_update(SeqCst, SeqCst, |epoch| Some(epoch.wrapping_add(1).max(1)));
    }
}

/// That a queue to another rank had no room, and how far that rank had come then.
#[derive(Debug, Default)]
pub(super) struct Room {
    waits: AtomicBool,
    seen: AtomicU64,
}

/// Where the bells of a rank stand.
pub(super) fn bell_at(ranks: usize, rank: u32) -> usize {
    BELLS + rank as usize * bell_words(ranks)
}

impl ShmWire {
    fn bell(&self, rank: u32) -> usize {
        bell_at(self.job.ranks(), rank)
    }

    /// What this rank's helper sleeps on.
    pub fn helper_bell(&self) -> HelperBell {
        let word = self.bell(self.rank) + HELPER;
        HelperBell { job: self.job.clone(), word, seen: self.job.pages.common.bell(word).rings() }
    }

    /// The doorbells of those that have put something into their queue to `dest`: 64 of them from `source` on.
    pub(super) fn doorbells(&self, dest: u32, source: u32) -> &AtomicU64 {
        &self.job.pages.common.words()[self.bell(dest) + DOORBELLS + source as usize / 64]
    }

    /// Clears the doorbells of a rank as a hostile one can, for tests of what is above.
    #[doc(hidden)]
    pub fn clear_doorbells(&self, dest: u32) {
        self.doorbells(dest, 0).store(0, SeqCst);
    }

    /// Clears the epoch as a hostile rank can, for tests of what is above.
    #[doc(hidden)]
    pub fn clear_epoch(&self) {
        self.job.pages.common.words()[EPOCH].store(0, SeqCst);
    }

    /// Tells a rank that there is something in this rank's queue to it.
    #[inline]
    pub(super) fn notify(&self, dest: u32) {
        fence(SeqCst);
        let (doorbells, bit) = (self.doorbells(dest, self.rank), 1 << (self.rank % 64));
        // Set already as long as the receiver looks at the queue by itself.
        if doorbells.load(Relaxed) & bit == 0 {
            doorbells.fetch_or(bit, SeqCst);
            fence(SeqCst);
        }
        self.job.pages.common.bell(self.bell(dest)).ring_after_fence();
    }

    /// Wakes the thread of a rank that sleeps on the transport.
    #[inline]
    pub(super) fn wake(&self, rank: u32) {
        self.job.pages.common.bell(self.bell(rank)).ring();
    }

    /// Calls the helper of a rank, awake or not.
    pub(super) fn ring_helper(&self, rank: u32) {
        self.job.pages.common.bell(self.bell(rank) + HELPER).call();
    }

    /// What the others have rung for this rank.
    #[inline(always)]
    pub(super) fn own_doorbells(&self) -> &[AtomicU64] {
        &self.job.pages.common.words()[self.own_bell + DOORBELLS..]
    }

    /// Whether there is a doorbell of a source that is not looked at.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        let known = self.active.iter().zip(&self.ignored).map(|(a, b)| a.load(Relaxed) | b.load(Relaxed));
        self.own_doorbells().iter().zip(known).any(|(rung, known)| rung.load(Relaxed) & !known != 0)
    }

    /// Tells all ranks that the state of this one has changed.
    pub(super) fn ring_all(&self) {
        self.job.pages.common.words()[EPOCH].fetch_add(1, SeqCst);
        for rank in 0..self.job.ranks() as u32 {
            self.wake(rank);
        }
    }

    /// Both epochs.
    #[inline(always)]
    pub(super) fn hints(&self) -> u64 {
        let pages = &self.job.pages;
        u64::from(pages.epoch()) << 32 | u64::from(pages.common.words()[EPOCH].load(Acquire) as u32)
    }

    /// Sleeps until something arrives, somebody rings, or the time is over.
    pub(super) fn sleep_on_bell(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        let bell = self.job.pages.common.bell(self.bell(self.rank));
        let before = bell.rings();
        bell.sleep(most, ready);
        if bell.rings() == before {
            self.look_around();
        }
    }

    /// Nobody has rung: perhaps somebody should have.
    #[cold]
    fn look_around(&self) {
        for dest in 0..self.job.ranks() as u32 {
            if self.has_unread(dest) {
                self.notify(dest);
            }
        }
        let known = self.peers.iter().filter_map(|peer| peer.get());
        let gone = known.filter(|peer| peer.state() != PeerState::Alive).count() as u32;
        if self.noticed.gone.swap(gone, Relaxed) != gone {
            self.noticed.advance();
        }
    }

    // ---- Room

    /// Has `dest` tell when there is room in this rank's queue to it; `seen` is how far it had come when there was none.
    #[cold]
    pub(super) fn ask_for_room(&self, dest: u32, seen: u64) {
        let room = &self.room[dest as usize];
        room.seen.store(seen, Relaxed);
        if !room.waits.swap(true, SeqCst) {
            self.about(dest, WAITS).store(1, Relaxed);
            self.room_asked.fetch_add(1, SeqCst);
        }
        fence(SeqCst);
    }

    /// There was room, or it is not needed any more. Under the lock of the queue, as asking is.
    #[inline(always)]
    pub(super) fn note_room(&self, dest: u32) {
        let room = &self.room[dest as usize];
        if room.waits.load(Relaxed) {
            room.waits.store(false, Relaxed);
            self.about(dest, WAITS).store(0, Relaxed);
            self.room_asked.fetch_sub(1, SeqCst);
        }
    }

    /// Whether some queue had no room, and what found none waits still.
    pub(crate) fn asks_for_room(&self) -> bool {
        self.room_asked.load(Acquire) > 0
    }

    /// Whether a rank whose queue had no room has come further since.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.room_asked.load(Acquire) > 0 && self.finds_room()
    }

    #[cold]
    fn finds_room(&self) -> bool {
        self.room.iter().zip(&self.peers).any(|(room, peer)| {
            room.waits.load(Acquire)
                && peer.get().is_some_and(|peer| peer.consumed() != room.seen.load(Relaxed))
        })
    }

    /// Tells a rank that there is room in its queue to this one; its program may be computing.
    #[cold]
    pub(super) fn tell_of_room(&self, source: u32) {
        self.wake(source);
        self.ring_helper(source);
    }
}
