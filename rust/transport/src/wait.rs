//! Waiting of threads: a thread polls with pauses, then yields, then sleeps, and any waiting thread drives
//! the rank's progress.
//!
//! At most one thread of a rank sleeps on the transport itself. Each other one sleeps on a [`Waiter`] of its
//! own, which is signalled when a request of its own completes or when the thread must take over.

use std::cell::RefCell;
use std::sync::Arc;
// State that no thread waits for stays `std`'s, which spares the model checker its interleavings.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mpjdev_sys::futex::Futex;
use mpjdev_sys::sync::{AtomicBool, thread_local};

use crate::config::Config;

/// A sleeping thread that another thread may wake.
#[derive(Debug, Default)]
pub struct Waiter {
    signalled: AtomicBool,
    futex: Futex,
}

impl Waiter {
    /// Wakes the thread, now or when it goes to sleep.
    pub fn signal(&self) {
        self.signalled.store(true, Ordering::SeqCst);
        self.futex.wake();
    }

    /// Whether it was woken since the last reset.
    pub fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::SeqCst)
    }

    /// Forgets earlier signals.
    pub fn reset(&self) {
        self.signalled.store(false, Ordering::SeqCst);
    }

    /// Sleeps until signalled, or until `most` has passed.
    pub fn sleep(&self, most: Duration) {
        self.futex.sleep(most, || self.is_signalled());
    }

    /// The waiter of the calling thread.
    pub fn mine() -> Arc<Waiter> {
        thread_local! {
            static MINE: RefCell<Arc<Waiter>> = RefCell::default();
        }
        MINE.with(|mine| mine.borrow().clone())
    }
}

/// A longer yield has given the processor to a thread that used its whole time slice.
const LONG_YIELD: Duration = Duration::from_micros(200);

/// Oversubscription of the processors, in which waits should not yield. A yielding thread gets its next turn
/// after all others had theirs, milliseconds later; a sleeper is woken within microseconds.
///
/// The state begins with a yield of that length and lasts for some time, twice as long if the next such yield
/// follows soon. It is measured in time, not in waits, because waits for other ranks become longer
/// while it lasts.
#[derive(Debug)]
pub struct Oversubscription {
    made: Instant,
    /// Microseconds from then on until which the state lasts; 0 when it is inactive.
    until: AtomicU64,
    /// End of the last period, and its length.
    last: AtomicU64,
    held: AtomicU64,
}

impl Default for Oversubscription {
    fn default() -> Self {
        Oversubscription::new()
    }
}

impl Oversubscription {
    /// The longest period is long enough for one more long yield after it to matter little.
    const SHORTEST_MICROS: u64 = 1000;
    const LONGEST_MICROS: u64 = 64_000;
    /// A whole time slice of another thread.
    const SOON_MICROS: u64 = 4000;

    /// The inactive state.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Oversubscription { made: Instant::now(), until: zero(), last: zero(), held: zero() }
    }

    /// Whether the processors are oversubscribed now.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.until.load(Ordering::Relaxed) != 0 && self.is_active_at(self.micros())
    }

    #[cold]
    fn is_active_at(&self, now: u64) -> bool {
        let holds = now < self.until.load(Ordering::Relaxed);
        if !holds {
            self.until.store(0, Ordering::Relaxed);
        }
        holds
    }

    /// Records a yield that has cost a whole time slice of another thread.
    fn record_long_yield(&self, now: u64) {
        let held = self.held.load(Ordering::Relaxed);
        let is_soon = held > 0 && now < self.last.load(Ordering::Relaxed) + held + Self::SOON_MICROS;
        let holds = if is_soon { (2 * held).min(Self::LONGEST_MICROS) } else { Self::SHORTEST_MICROS };
        self.held.store(holds, Ordering::Relaxed);
        self.last.store(now + holds, Ordering::Relaxed);
        self.until.store(now + holds, Ordering::Relaxed);
    }

    fn micros(&self) -> u64 {
        self.made.elapsed().as_micros() as u64
    }
}

/// Action before the next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Pause the processor for a moment.
    Pause,
    /// Let other threads run.
    Yield,
    /// Sleep until woken.
    Sleep,
}

/// Counts the steps of one wait.
#[derive(Debug)]
pub struct Backoff {
    pauses: u32,
    yields: u32,
    yield_max: Duration,
}

impl Backoff {
    /// Backoff of a wait that begins.
    #[inline]
    pub fn new(config: &Config) -> Self {
        Backoff { pauses: config.spins, yields: config.yields, yield_max: config.yield_max }
    }

    /// Backoff of a wait that has polled without success already.
    pub fn after_pauses(config: &Config) -> Self {
        Backoff { pauses: 0, ..Backoff::new(config) }
    }

    /// Lets other threads run. If one did, the processors are busy, and the wait proceeds to sleep: a sleeper
    /// is woken at once, while a yielding thread gets its turn after all others.
    pub fn yield_now(&mut self, oversubscription: &Oversubscription) {
        let begun = Instant::now();
        std::thread::yield_now();
        let took = begun.elapsed();
        if took > self.yield_max {
            self.yields = 0;
        }
        if took > LONG_YIELD {
            oversubscription.record_long_yield(oversubscription.micros());
        }
    }

    /// Shortens the spinning before the sleep if the processors are oversubscribed.
    #[inline]
    pub fn adapt_to(&mut self, oversubscription: &Oversubscription) {
        if oversubscription.is_active() {
            self.pauses = self.pauses.min(60);
            self.yields = 0;
        }
    }

    /// The action before the next poll.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        if self.pauses > 0 {
            self.pauses -= 1;
            Step::Pause
        } else if self.yields > 0 {
            self.yields -= 1;
            Step::Yield
        } else {
            Step::Sleep
        }
    }
}

/// Condition checked before each sleep; false ends the wait.
pub trait WaitControl {
    /// Whether to keep waiting.
    fn keep_waiting(&mut self) -> bool;
}

/// Waits without a limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uninterruptible;

impl WaitControl for Uninterruptible {
    fn keep_waiting(&mut self) -> bool {
        true
    }
}

impl<F: FnMut() -> bool> WaitControl for F {
    fn keep_waiting(&mut self) -> bool {
        self()
    }
}

/// The end of a wait of this length from now on; `None` when it is further than clocks count.
pub fn deadline_after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn oversubscription_lasts_longer_when_the_next_long_yield_follows_soon() {
        let oversubscription = Oversubscription::new();
        assert!(!oversubscription.is_active());
        let mut now = 10_000;
        for holds in [1, 2, 4, 8, 16, 32, 64, 64] {
            oversubscription.record_long_yield(now);
            now += holds * 1000;
            assert!(oversubscription.is_active_at(now - 1), "{holds} ms");
            assert!(!oversubscription.is_active_at(now), "{holds} ms");
            assert!(!oversubscription.is_active(), "inactive");
            // The wait after it has yielded for a whole time slice once more.
            now += 3000;
        }
        now += 2 * Oversubscription::LONGEST_MICROS;
        oversubscription.record_long_yield(now);
        assert!(
            oversubscription.is_active_at(now + 999) && !oversubscription.is_active_at(now + 1000),
            "long ago counts no more"
        );
    }
}
