//! Lock that its owner releases with one store.
//!
//! A lock with sleepers in its word needs a read-modify-write for the release, which waits until the stores
//! before it have left the processor. Here sleepers are counted beside the word. The owner stores, then reads
//! the count; a thread counts itself, then reads the word. The fence between both is an asymmetric one
//! (`crate::barrier`): the thread that is about to sleep pays for it, the owner does not.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::barrier;
use crate::sync::AtomicU32;

/// Polls of a taken lock before a thread sleeps.
const POLLS: u32 = if cfg!(loom) { 0 } else { 100 };
/// A sleeper in `waiting`, whose low bits count polling threads.
const SLEEPER: u32 = 1 << 8;
/// Polling threads that are counted. A few more may be at a time, far from the bits of the sleepers.
const POLLING_MAX: u32 = 64;

/// A lock without a value.
#[derive(Debug)]
pub struct RawLock {
    /// 1 while a thread has the lock.
    word: AtomicU32,
    /// Threads that poll the lock, and in the higher bits those that sleep or are about to.
    waiting: AtomicU32,
    #[cfg(loom)]
    model: crate::futex::model::Futex,
}

impl Default for RawLock {
    fn default() -> Self {
        RawLock::new()
    }
}

impl RawLock {
    /// A lock that no thread has.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        RawLock { word: AtomicU32::new(0), waiting: AtomicU32::new(0) }
    }

    /// A lock that no thread has.
    #[cfg(loom)]
    pub fn new() -> Self {
        RawLock {
            word: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            model: crate::futex::model::Futex::new(),
        }
    }

    /// Takes the lock if no thread has it.
    #[inline(always)]
    pub fn try_lock(&self) -> bool {
        self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Takes the lock. Waits for the thread that has it.
    #[inline(always)]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_slowly();
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        let is_counted = self.waiting.load(Relaxed) % SLEEPER < POLLING_MAX;
        self.waiting.fetch_add(u32::from(is_counted), Relaxed);
        let is_taken = (0..POLLS).any(|_| {
            std::hint::spin_loop();
            self.word.load(Relaxed) == 0 && self.try_lock()
        });
        self.waiting.fetch_sub(u32::from(is_counted), Relaxed);
        if !is_taken {
            self.lock_sleeping();
        }
    }

    fn lock_sleeping(&self) {
        barrier::prepare();
        self.waiting.fetch_add(SLEEPER, SeqCst);
        // An owner that has not seen this sleeper has released the lock before, and this thread sees that.
        let may_sleep = barrier::heavy();
        while !self.try_lock() {
            match may_sleep {
                true => self.sleep(),
                false => crate::sync::yield_now(),
            }
        }
        self.waiting.fetch_sub(SLEEPER, Relaxed);
    }

    /// Releases the lock. The caller has it.
    #[inline(always)]
    pub fn unlock(&self) {
        self.word.store(0, Release);
        barrier::light();
        if self.waiting.load(Relaxed) >= SLEEPER {
            self.wake();
        }
    }

    /// Whether a thread waits for the lock.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    /// Sleeps while the lock is taken; may return earlier.
    #[cfg(not(loom))]
    fn sleep(&self) {
        use rustix::thread::futex;
        // Woken, released before, interrupted by a signal: the caller tries again in each case.
        let _ = futex::wait(&self.word, futex::Flags::PRIVATE, 1, None);
    }

    #[cfg(not(loom))]
    #[cold]
    fn wake(&self) {
        use rustix::thread::futex;
        // The only failures are a bad address or bad flags, and neither is possible.
        let _ = futex::wake(&self.word, futex::Flags::PRIVATE, 1);
    }

    #[cfg(loom)]
    fn sleep(&self) {
        self.model.wait(&self.word, 1);
    }

    #[cfg(loom)]
    fn wake(&self) {
        self.model.wake_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn contended_lock_keeps_threads_apart() {
        const TIMES: u32 = 20_000;
        let (lock, value) = (RawLock::new(), AtomicU32::new(0));
        let add = || {
            lock.lock();
            value.store(value.load(Relaxed) + 1, Relaxed);
            lock.unlock();
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| (0..TIMES).for_each(|_| add())))));
        assert_eq!(value.load(Relaxed), 4 * TIMES);
        assert!(!lock.is_wanted());
    }

    #[test]
    fn owner_sees_that_its_lock_is_wanted_and_wakes_the_sleeper() {
        let lock = RawLock::new();
        assert!(lock.try_lock() && !lock.try_lock() && !lock.is_wanted());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                lock.lock();
                lock.unlock();
            });
            while lock.waiting.load(Relaxed) < SLEEPER {
                std::thread::yield_now();
            }
            assert!(lock.is_wanted());
            lock.unlock();
        });
        assert!(lock.try_lock() && !lock.is_wanted());
    }
}
