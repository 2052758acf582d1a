//! Futex that threads sleep on until another thread wakes them.
//!
//! A wake costs one fence and one load while no thread sleeps. A sleeper announces itself, checks its
//! condition once more, and only then sleeps: a thread that fulfils the condition after that check sees the
//! announcement.

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
    /// A futex without sleepers.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Bell { rings: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// A futex without sleepers.
    #[cfg(loom)]
    pub fn new() -> Self {
        Bell { rings: AtomicU32::new(0), sleepers: AtomicU32::new(0), futex: futex::Futex::new() }
    }

    /// Wakes all sleepers. They see the caller's earlier stores, and so do threads about to sleep.
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

    /// Sleeps until a wake, at most for `most`. Returns at once if `ready`.
    ///
    /// May return early without a wake, so the caller polls again.
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
        // The only failures are a bad address or bad flags, and neither is possible.
        let _ = futex::wake(&self.rings, futex::Flags::PRIVATE, u32::MAX >> 1);
    }

    fn wait(&self, seen: u32, most: Duration) {
        use rustix::thread::{Timespec, futex};
        let Ok(timeout) = Timespec::try_from(most) else { return };
        // Woken, changed before, interrupted by a signal, timed out: the caller polls again in each case.
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

/// The model checker has no futex. This one never times out, so that a lost wake is a deadlock, which the
/// checker reports.
#[cfg(loom)]
mod futex {
    use super::{AtomicU32, SeqCst};
    use crate::sync::{Condvar, Mutex};

    #[derive(Debug)]
    pub(super) struct Futex {
        /// As in the kernel: the comparison of the word and the sleep are one step for a waking thread.
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
