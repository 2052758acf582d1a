//! The word that a thread sleeps on until another one rings.
//!
//! Ringing is one fence and one load while nobody sleeps. A sleeper announces itself, looks once more for what it
//! waits for, and only then sleeps: whoever provided it after that look sees the announcement.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use crate::sync::{AtomicU32, fence};

/// A word to sleep on.
#[derive(Debug)]
pub struct Bell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

impl Bell {
    /// A bell that nobody sleeps on.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Bell { rings: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// A bell that nobody sleeps on.
    #[cfg(loom)]
    pub fn new() -> Self {
        Bell { rings: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// Wakes whoever sleeps. What the caller did before is seen by those who wake or are about to sleep.
    #[inline(always)]
    pub fn ring(&self) {
        fence(SeqCst);
        if self.sleepers.load(Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.rings.fetch_add(1, SeqCst);
        futex_wake_all(&self.rings);
    }

    /// Sleeps until someone rings or the time is over, unless `ready` says that there is no need to.
    ///
    /// May return early without a ring; the caller looks again.
    pub fn sleep(&self, most: Duration, ready: impl FnOnce() -> bool) {
        let seen = self.rings.load(SeqCst);
        self.sleepers.fetch_add(1, SeqCst);
        fence(SeqCst);
        if !ready() {
            futex_wait(&self.rings, seen, most);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(not(loom))]
fn futex_wake_all(word: &AtomicU32) {
    use rustix::thread::futex;
    // The only failures are a bad address or bad flags, neither of which can be.
    let _ = futex::wake(word, futex::Flags::PRIVATE, u32::MAX >> 1);
}

#[cfg(not(loom))]
fn futex_wait(word: &AtomicU32, seen: u32, most: Duration) {
    use rustix::thread::{Timespec, futex};
    let Ok(timeout) = Timespec::try_from(most) else { return };
    // Woken, changed before, interrupted by a signal, time over: in each case the caller looks again.
    let _ = futex::wait(word, futex::Flags::PRIVATE, seen, Some(&timeout));
}

#[cfg(loom)]
fn futex_wake_all(_: &AtomicU32) {}

#[cfg(loom)]
fn futex_wait(word: &AtomicU32, seen: u32, _: Duration) {
    // The model checker has no futex: a wait is a loop that only a changed word ends, so a lost ring is a hang.
    while word.load(SeqCst) == seen {
        loom::thread::yield_now();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    #[test]
    fn a_ring_ends_a_sleep_long_before_its_time() {
        let (bell, flag) = (Bell::new(), AtomicBool::new(false));
        std::thread::scope(|s| {
            let sleeper = s.spawn(|| {
                let begun = Instant::now();
                while !flag.load(SeqCst) {
                    bell.sleep(Duration::from_secs(30), || flag.load(SeqCst));
                }
                begun.elapsed()
            });
            flag.store(true, SeqCst);
            bell.ring();
            assert!(sleeper.join().unwrap() < Duration::from_secs(20));
        });
    }

    #[test]
    fn time_ends_a_sleep_without_a_ring() {
        Bell::new().sleep(Duration::from_millis(1), || false);
    }
}
