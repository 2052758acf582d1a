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
pub struct Futex {
    wakes: AtomicU32,
    sleepers: AtomicU32,
    #[cfg(loom)]
    model: model::Futex,
}

impl Default for Futex {
    fn default() -> Self {
        Self::new()
    }
}

impl Futex {
    /// A futex without sleepers.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Futex { wakes: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// A futex without sleepers.
    #[cfg(loom)]
    pub fn new() -> Self {
        Futex { wakes: AtomicU32::new(0), sleepers: AtomicU32::new(0), model: model::Futex::new() }
    }

    /// Whether a thread sleeps, or is about to. The caller has just passed a sequentially consistent fence.
    #[inline(always)]
    pub fn has_sleepers(&self) -> bool {
        self.sleepers.load(Relaxed) != 0
    }

    /// Wakes all sleepers. They see the caller's earlier stores, and so do threads about to sleep.
    #[inline(always)]
    pub fn wake(&self) {
        fence(SeqCst);
        if self.has_sleepers() {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        self.wakes.fetch_add(1, SeqCst);
        self.wake_all();
    }

    /// Sleeps until a wake, at most for `most`. Returns at once if `ready`.
    ///
    /// May return early without a wake, so the caller polls again.
    pub fn sleep(&self, most: Duration, ready: impl FnOnce() -> bool) {
        let seen = self.wakes.load(SeqCst);
        self.sleepers.fetch_add(1, SeqCst);
        fence(SeqCst);
        if !ready() {
            self.wait(seen, most);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(not(loom))]
impl Futex {
    fn wake_all(&self) {
        use rustix::thread::futex;
        // The only failures are a bad address or bad flags, and neither is possible.
        let _ = futex::wake(&self.wakes, futex::Flags::PRIVATE, u32::MAX >> 1);
    }

    fn wait(&self, seen: u32, most: Duration) {
        use rustix::thread::{Timespec, futex};
        let Ok(timeout) = Timespec::try_from(most) else { return };
        // Woken, changed before, interrupted by a signal, timed out: the caller polls again in each case.
        let _ = futex::wait(&self.wakes, futex::Flags::PRIVATE, seen, Some(&timeout));
    }
}

#[cfg(loom)]
impl Futex {
    fn wake_all(&self) {
        self.model.wake_all();
    }

    fn wait(&self, seen: u32, _: Duration) {
        self.model.wait(&self.wakes, seen);
    }
}

/// The model checker has no futex. This one never times out, so that a lost wake is a deadlock, which the
/// checker reports.
#[cfg(loom)]
pub(crate) mod model {
    use super::{AtomicU32, SeqCst};
    use loom::sync::{Condvar, Mutex};

    #[derive(Debug)]
    pub(crate) struct Futex {
        /// As in the kernel: the comparison of the word and the sleep are one step for a waking thread.
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        pub(crate) fn new() -> Self {
            Futex { queue: Mutex::new(()), woken: Condvar::new() }
        }

        pub(crate) fn wake_all(&self) {
            drop(self.queue.lock().expect("no panic under the lock"));
            self.woken.notify_all();
        }

        pub(crate) fn wait(&self, word: &AtomicU32, seen: u32) {
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
    fn wake_ends_a_sleep_before_its_timeout() {
        let (futex, flag) = (Futex::new(), AtomicBool::new(false));
        std::thread::scope(|s| {
            let sleeper = s.spawn(|| {
                let begun = Instant::now();
                while !flag.load(SeqCst) {
                    futex.sleep(Duration::from_secs(30), || flag.load(SeqCst));
                }
                begun.elapsed()
            });
            flag.store(true, SeqCst);
            futex.wake();
            assert!(sleeper.join().unwrap() < Duration::from_secs(20));
        });
    }

    #[test]
    fn sleep_ends_at_its_timeout_without_a_wake() {
        Futex::new().sleep(Duration::from_millis(1), || false);
    }
}
