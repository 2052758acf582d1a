//! State of a rank about hints, which every rank may write: futexes, epochs, and requests for room.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;

use super::Job;
use super::layout::{FUTEXES, futex_words};

/// Futex that the progress thread of a rank sleeps on. It does not keep the rank alive.
#[derive(Debug)]
pub struct ProgressFutex {
    job: Arc<Job>,
    word: usize,
    /// Number of wakes at the last sleep.
    seen: u32,
}

/// Handle that wakes a progress thread.
#[derive(Debug)]
pub struct ProgressWaker {
    job: Arc<Job>,
    word: usize,
}

impl ProgressWaker {
    /// Ends the current sleep, or the next one.
    pub fn wake(&self) {
        self.job.pages.common.futex(self.word).wake_counted();
    }
}

impl ProgressFutex {
    /// The futex in this word of the common page.
    pub(super) fn new(job: Arc<Job>, word: usize) -> ProgressFutex {
        let seen = job.pages.common.futex(word).wakes();
        ProgressFutex { job, word, seen }
    }

    /// A handle that wakes the progress thread.
    pub fn waker(&self) -> ProgressWaker {
        ProgressWaker { job: self.job.clone(), word: self.word }
    }

    /// Sleeps until a rank wakes the progress thread, at most for `most`. A wake since the last sleep returns
    /// at once. Returns whether there was a wake.
    pub fn sleep(&mut self, most: Duration) -> bool {
        let futex = self.job.pages.common.futex(self.word);
        futex.sleep(most, || futex.wakes() != self.seen);
        std::mem::replace(&mut self.seen, futex.wakes()) != self.seen
    }
}

/// Tracker of changes of other ranks' states.
#[derive(Debug, Default)]
pub(super) struct EpochTracker {
    /// Both epochs as last read.
    hints: AtomicU64,
    /// Changes with the hints. It starts at zero and never returns to zero.
    epoch: AtomicU32,
    /// Number of mapped ranks that were not alive at the last recovery of lost wake-ups.
    pub(super) ended: AtomicU32,
}

impl EpochTracker {
    #[inline(always)]
    pub(super) fn epoch(&self, hints: u64) -> u32 {
        if hints != self.hints.load(Acquire) {
            // The epoch advances before the hints are stored: a thread that reads the new hints reads the new
            // epoch.
            self.advance();
            self.hints.store(hints, SeqCst);
        }
        self.epoch.load(Acquire)
    }

    #[cold]
    pub(super) fn advance(&self) {
        let _ = self.epoch.fetch_update(SeqCst, SeqCst, |epoch| Some(epoch.wrapping_add(1).max(1)));
    }
}

/// A queue to another rank that had no room, and the position of that rank at that time.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) waits: AtomicBool,
    pub(super) seen: AtomicU64,
}

/// Index of the first hint word of a rank on the common page.
pub(super) fn futex_at(ranks: usize, rank: u32) -> usize {
    FUTEXES + rank as usize * futex_words(ranks)
}
