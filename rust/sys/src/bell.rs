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
    #[cfg(loom)]
    futex: futex::Futex,
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
        Bell { rings: AtomicU32::new(0), sleepers: AtomicU32::new(0), futex: futex::Futex::new() }
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
        self.wake_all();
    }

    /// Sleeps until someone rings or the time is over, unless `ready` says that there is no need to.
    ///
    /// May return early without a ring; the caller looks again.
    pub fn sleep(&self, most: Duration, ready: impl FnOnce() -> bool) {
        let seen = self.rings.load(SeqCst);
        self.sleepers.fetch_add(1, SeqCst);
        fence(SeqCst);
        if !ready() {
            self.wait(seen, most);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(not(loom))]
impl Bell {
    fn wake_all(&self) {
        use rustix::thread::futex;
        // The only failures are a bad address or bad flags, neither of which can be.
        let _ = futex::wake(&self.rings, futex::Flags::PRIVATE, u32::MAX >> 1);
    }

    fn wait(&self, seen: u32, most: Duration) {
        use rustix::thread::{Timespec, futex};
        let Ok(timeout) = Timespec::try_from(most) else { return };
        // Woken, changed before, interrupted by a signal, time over: in each case the caller looks again.
        let _ = futex::wait(&self.rings, futex::Flags::PRIVATE, seen, Some(&timeout));
    }
}

#[cfg(loom)]
impl Bell {
    fn wake_all(&self) {
        self.futex.wake_all();
    }

    fn wait(&self, seen: u32, _: Duration) {
        self.futex.wait(&self.rings, seen);
    }
}

/// The model checker has no futex. This one's time is never over, so that a lost ring is a deadlock, which it reports.
#[cfg(loom)]
mod futex {
    use super::{AtomicU32, SeqCst};
    use crate::sync::{Condvar, Mutex};

    #[derive(Debug)]
    pub(super) struct Futex {
        /// As in the kernel: comparing the word and going to sleep are one step for whoever wakes.
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        pub(super) fn new() -> Self {
            Futex { queue: Mutex::new(()), woken: Condvar::new() }
        }

        pub(super) fn wake_all(&self) {
            drop(self.queue.lock().expect("no panic under the lock"));
            self.woken.notify_all();
        }

        pub(super) fn wait(&self, word: &AtomicU32, seen: u32) {
            let queue = self.queue.lock().expect("no panic under the lock");
            if word.load(SeqCst) == seen {
                drop(self.woken.wait(queue).expect("no panic under the lock"));
            }
        }
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
