//! Hints between ranks: doorbells, futexes, and requests for room in a queue.
//!
//! Every rank may write the hints, so correctness never depends on them. A sleep that no wake ended recovers
//! lost wake-ups, and the queue of a rank that has ended is polled without a doorbell.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;

use mpjdev_sys::processors;

use super::hints::{ProgressFutex, futex_at};
use super::layout::{DOORBELLS, EPOCH, PROGRESS, WAITS, WAKER};
use super::transport::ShmTransport;
use crate::PeerState;

impl ShmTransport {
    fn futex_word(&self, rank: u32) -> usize {
        futex_at(self.job.ranks(), rank)
    }

    /// The futex that this rank's progress thread sleeps on.
    pub fn progress_futex(&self) -> ProgressFutex {
        let word = self.futex_word(self.rank) + PROGRESS;
        ProgressFutex::new(self.job.clone(), word)
    }

    /// The doorbells of 64 ranks from `source` on. A set bit means that the rank has put a record into its
    /// queue to `dest`.
    pub(super) fn doorbells(&self, dest: u32, source: u32) -> &AtomicU64 {
        &self.job.pages.common.words()[self.futex_word(dest) + DOORBELLS + source as usize / 64]
    }

    /// Clears the doorbells of a rank as a hostile rank can, for tests of the layers above.
    #[doc(hidden)]
    pub fn clear_doorbells(&self, dest: u32) {
        self.doorbells(dest, 0).store(0, SeqCst);
    }

    /// Clears the epoch as a hostile rank can, for tests of the layers above.
    #[doc(hidden)]
    pub fn clear_epoch(&self) {
        self.job.pages.common.words()[EPOCH].store(0, SeqCst);
    }

    /// Rings this rank's doorbell at `dest` and wakes it.
    #[inline]
    pub(super) fn notify(&self, dest: u32) {
        fence(SeqCst);
        let (doorbells, bit) = (self.doorbells(dest, self.rank), 1 << (self.rank % 64));
        // The bit stays set while the receiver polls the queue without a doorbell.
        if doorbells.load(Relaxed) & bit == 0 {
            doorbells.fetch_or(bit, SeqCst);
            fence(SeqCst);
        }
        self.wake_if_parked(dest);
    }

    /// Wakes a rank that is parked. The caller has just passed a sequentially consistent fence.
    #[inline]
    pub(super) fn wake_if_parked(&self, dest: u32) {
        if self.job.pages.common.futex(self.futex_word(dest)).has_sleepers() {
            self.wake_for_packet(dest);
        }
    }

    /// Wakes a sleeping rank, and records the processor of this one for it.
    #[cold]
    fn wake_for_packet(&self, dest: u32) {
        self.waker_of(dest).store(1 + u64::from(processors::current()), Relaxed);
        self.wake(dest);
    }

    /// The processor of the last rank that woke a rank for a packet, plus 1; 0 for no processor.
    fn waker_of(&self, rank: u32) -> &AtomicU64 {
        &self.job.pages.common.words()[self.futex_word(rank) + WAKER]
    }

    /// Wakes the thread of a rank that is parked in the transport.
    #[inline]
    pub(super) fn wake(&self, rank: u32) {
        self.job.pages.common.futex(self.futex_word(rank)).wake();
    }

    /// Wakes the progress thread of a rank, whether it sleeps or not.
    pub(super) fn wake_progress_thread(&self, rank: u32) {
        self.job.pages.common.futex(self.futex_word(rank) + PROGRESS).wake_counted();
    }

    /// The doorbells that other ranks ring for this rank.
    #[inline(always)]
    pub(super) fn own_doorbells(&self) -> &[AtomicU64] {
        &self.job.pages.common.words()[self.own_futex + DOORBELLS..]
    }

    /// Whether a doorbell is set for a source whose queue is not polled yet.
    #[inline]
    pub(super) fn has_new_doorbells(&self) -> bool {
        let known = self.active.iter().zip(&self.ignored).map(|(a, b)| a.load(Relaxed) | b.load(Relaxed));
        self.own_doorbells().iter().zip(known).any(|(rung, known)| rung.load(Relaxed) & !known != 0)
    }

    /// Announces to all ranks that the state of this one has changed.
    pub(super) fn wake_all(&self) {
        self.job.pages.common.words()[EPOCH].fetch_add(1, SeqCst);
        for rank in 0..self.job.ranks() as u32 {
            self.wake(rank);
        }
    }

    /// Both epochs in one number.
    #[inline(always)]
    pub(super) fn hints(&self) -> u64 {
        let pages = &self.job.pages;
        u64::from(pages.epoch()) << 32 | u64::from(pages.common.words()[EPOCH].load(Acquire) as u32)
    }

    /// Parks until a packet arrives, a rank wakes this one, or `most` has passed.
    pub(super) fn sleep_on_futex(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        let futex = self.job.pages.common.futex(self.futex_word(self.rank));
        let before = futex.wakes();
        self.waker_of(self.rank).store(0, Relaxed);
        futex.sleep(most, ready);
        if futex.wakes() == before {
            self.recover_lost_wakeups();
        }
    }

    /// The processor of the rank whose packet has ended the last sleep.
    pub(super) fn waker_processor(&self) -> Option<u32> {
        let waker = self.waker_of(self.rank).load(Relaxed).checked_sub(1)?;
        u32::try_from(waker).ok()
    }

    /// Recovers lost wake-ups after a sleep that no wake ended.
    #[cold]
    fn recover_lost_wakeups(&self) {
        for dest in 0..self.job.ranks() as u32 {
            if self.has_unread(dest) {
                self.notify(dest);
            }
        }
        let known = self.peers.iter().filter_map(|peer| peer.get());
        let ended = known.filter(|peer| peer.state() != PeerState::Alive).count() as u32;
        if self.epochs.ended.swap(ended, Relaxed) != ended {
            self.epochs.advance();
        }
    }

    // ---- Room

    /// Asks `dest` for a wake when this rank's queue to it has room. `seen` is the position of `dest` when
    /// the queue was full.
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

    /// Withdraws the request for room, because there was room or none is needed. The caller holds the lock of
    /// the queue, as for [`ask_for_room`](Self::ask_for_room).
    #[inline(always)]
    pub(super) fn note_room(&self, dest: u32) {
        let room = &self.room[dest as usize];
        if room.waits.load(Relaxed) {
            room.waits.store(false, Relaxed);
            self.about(dest, WAITS).store(0, Relaxed);
            self.room_asked.fetch_sub(1, SeqCst);
        }
    }

    /// Whether a packet still waits for room in some queue.
    pub(crate) fn asks_for_room(&self) -> bool {
        self.room_asked.load(Acquire) > 0
    }

    /// Whether a rank whose queue had no room has advanced since.
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

    /// Wakes a rank because its queue to this one has room. Its progress thread is woken too, since its
    /// program may be computing.
    #[cold]
    pub(super) fn notify_room(&self, source: u32) {
        self.wake(source);
        self.wake_progress_thread(source);
    }
}
