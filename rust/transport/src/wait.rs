//! Waiting of threads: a thread polls with pauses, then yields, then sleeps, and any waiting thread drives
//! the rank's progress.
//!
//! At most one thread of a rank sleeps on the transport itself. Each other one sleeps on a [`Waiter`] of its
//! own, which is signalled when a request of its own completes or when the thread must take over.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
// State that no thread waits for stays `std`'s, which spares the model checker its interleavings.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mpjdev_sys::futex::Futex;
use mpjdev_sys::sync::{AtomicBool, thread_local};

use crate::config::Config;

mod shared_processor;

pub use shared_processor::SharedProcessor;

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

/// Least length of a long yield, in which another thread has used its whole time slice. A wait that tolerates
/// longer yields has a higher limit.
const LONG_YIELD: Duration = Duration::from_micros(200);

/// Length of the yields and sleeps in which the peer has run for a short time, so that most of the length is
/// that of the two switches. A yield to no thread is shorter. A peer that runs longer, with a long message,
/// gains little from a processor that it shares with a busy thread.
const SWITCHED: Range<Duration> = Duration::from_nanos(700)..Duration::from_micros(15);

/// Oversubscription of the processors, in which waits should not yield. A yielding thread gets its next turn
/// after all others had theirs, milliseconds later; a sleeper is woken within microseconds.
///
/// The state begins with a long yield and lasts for some time, twice as long if the next long yield follows
/// soon. It is measured in time, not in waits, because waits for other ranks become longer while it lasts.
#[derive(Debug)]
pub struct Oversubscription {
    made: Instant,
    /// Microseconds from then on until which the state lasts; 0 when it is inactive.
    until: AtomicU64,
    /// End of the last period, and its length.
    last: AtomicU64,
    held: AtomicU64,
    /// Long yields without a shorter one between.
    long_yields: AtomicU32,
    shared_processor: SharedProcessor,
}

impl Default for Oversubscription {
    fn default() -> Self {
        Oversubscription::new()
    }
}

impl Oversubscription {
    /// Bounds of a period. After the longest one a further long yield matters little.
    const SHORTEST_MICROS: u64 = 1000;
    const LONGEST_MICROS: u64 = 64_000;
    /// A whole time slice of another thread.
    const SOON_MICROS: u64 = 4000;

    /// The inactive state.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Oversubscription {
            made: Instant::now(),
            until: zero(),
            last: zero(),
            held: zero(),
            long_yields: AtomicU32::new(0),
            shared_processor: SharedProcessor::default(),
        }
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

    /// Records whether a yield was long. The state begins with `most` long ones in a row.
    fn record_yield(&self, is_long: bool, most: u32, now: impl FnOnce() -> u64) {
        if !is_long {
            if self.long_yields.load(Ordering::Relaxed) != 0 {
                self.long_yields.store(0, Ordering::Relaxed);
            }
            return;
        }
        let in_row = self.long_yields.load(Ordering::Relaxed) + 1;
        if in_row >= most {
            self.long_yields.store(0, Ordering::Relaxed);
            self.record_long_yield(now());
        } else {
            self.long_yields.store(in_row, Ordering::Relaxed);
        }
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

    /// Records the end of a wait. Returns whether the thread should leave its processor, because the rank
    /// that it waits for takes turns with it there.
    #[inline]
    pub fn note_wait(&self, backoff: &Backoff) -> bool {
        backoff
            .gave_way_to_peer
            .is_some_and(|is_shared| self.shared_processor.note_wait(is_shared, || self.micros()))
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
    /// Time for further yields: a wait checks its limit when it sleeps.
    yield_time: Duration,
    long_yields: u32,
    spin_time: SpinTime,
    /// Whether the peer ran on this processor during the last yield or sleep; `None` before the first.
    gave_way_to_peer: Option<bool>,
}

impl Backoff {
    /// Backoff of a wait that begins.
    #[inline]
    pub fn new(config: &Config) -> Self {
        Backoff {
            pauses: config.spins,
            yields: config.yields,
            yield_max: config.yield_max,
            yield_time: config.slice,
            long_yields: config.long_yields,
            spin_time: SpinTime { most: config.oversubscribed_spin, begun: None, polls: 0, is_on: false },
            gave_way_to_peer: None,
        }
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
        self.gave_way_to_peer = Some(SWITCHED.contains(&took));
        self.note_yield(took);
        let is_long = took > self.yield_max.max(LONG_YIELD);
        oversubscription.record_yield(is_long, self.long_yields, || oversubscription.micros());
    }

    /// Ends the yields of this wait after a long one, or when they have taken the time between two checks of
    /// its limit.
    fn note_yield(&mut self, took: Duration) {
        self.yield_time = self.yield_time.saturating_sub(took);
        if took > self.yield_max || self.yield_time.is_zero() {
            self.yields = 0;
        }
    }

    /// Records a sleep of this length, and whether the rank that ended it ran on this processor.
    pub fn note_sleep(&mut self, took: Duration, is_shared: bool) {
        self.gave_way_to_peer = Some(is_shared && SWITCHED.contains(&took));
    }

    /// Ends the yielding if the processors are oversubscribed, and then spins for the time of the
    /// configuration or, without one, not longer than a moment.
    #[inline]
    pub fn adapt_to(&mut self, oversubscription: &Oversubscription) {
        if oversubscription.is_active() {
            self.yields = 0;
            self.spin_time.is_on = !self.spin_time.most.is_zero();
            if !self.spin_time.is_on {
                self.pauses = self.pauses.min(60);
            }
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
        } else if self.spin_time.is_on && self.spin_time.continues(Instant::now) {
            Step::Pause
        } else {
            Step::Sleep
        }
    }
}

/// Spinning for a time.
#[derive(Debug)]
struct SpinTime {
    most: Duration,
    begun: Option<Instant>,
    polls: u32,
    is_on: bool,
}

impl SpinTime {
    /// Polls between two readings of the clock: about a microsecond.
    const POLLS: u32 = 32;

    /// Whether time is left. The first false ends the spinning of this wait.
    #[cold]
    fn continues(&mut self, now: impl FnOnce() -> Instant) -> bool {
        self.polls = self.polls.wrapping_add(1);
        if self.polls % Self::POLLS == 1 {
            let now = now();
            self.is_on = now.duration_since(*self.begun.get_or_insert(now)) < self.most;
        }
        self.is_on
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

    /// The pauses and the yields of a wait until its first sleep.
    fn steps(config: &Config, oversubscription: &Oversubscription) -> (u32, u32) {
        let mut backoff = Backoff::new(config);
        backoff.adapt_to(oversubscription);
        let (mut pauses, mut yields) = (0, 0);
        loop {
            match backoff.step() {
                Step::Pause => pauses += 1,
                Step::Yield => yields += 1,
                Step::Sleep => return (pauses, yields),
            }
        }
    }

    #[test]
    fn oversubscribed_wait_yields_no_more_and_spins_for_a_time_or_a_moment() {
        let calm = Oversubscription::new();
        let active = Oversubscription { until: AtomicU64::new(u64::MAX), ..Oversubscription::new() };
        let config =
            Config { spins: 300, yields: 7, oversubscribed_spin: Duration::ZERO, ..Config::default() };
        assert_eq!(steps(&config, &calm), (300, 7));
        assert_eq!(steps(&config, &active), (60, 0));
        let config = Config { oversubscribed_spin: Duration::from_nanos(1), ..config };
        assert_eq!(steps(&config, &calm), (300, 7));
        let (pauses, yields) = steps(&config, &active);
        assert!(pauses > 300 && yields == 0, "{pauses} {yields}");
    }

    #[test]
    fn timed_spin_ends_with_its_time_and_reads_the_clock_rarely() {
        let (begin, mut asked) = (Instant::now(), 0);
        let most = Duration::from_micros(10);
        let mut spin = SpinTime { most, begun: None, polls: 0, is_on: true };
        let mut polls = 0;
        while spin.continues(|| {
            begin
                + Duration::from_micros({
                    asked += 1;
                    asked
                })
        }) {
            polls += 1;
        }
        assert_eq!((polls, asked), (10 * SpinTime::POLLS, 11));
    }

    #[test]
    fn peer_on_this_processor_is_seen_in_the_last_yield_or_sleep() {
        let oversubscription = Oversubscription::new();
        let noted = |gave_way_to_peer| {
            let backoff = Backoff { gave_way_to_peer, ..Backoff::new(&Config::default()) };
            (0..8).filter(|_| oversubscription.note_wait(&backoff)).count()
        };
        assert_eq!([None, Some(false), Some(true)].map(noted), [0, 0, 1]);
        let mut backoff = Backoff::new(&Config::default());
        let mut noted = |micros, is_shared| {
            backoff.note_sleep(Duration::from_micros(micros), is_shared);
            backoff.gave_way_to_peer
        };
        assert_eq!(noted(5, true), Some(true));
        assert_eq!(noted(5, false), Some(false), "the last one counts");
        assert_eq!(noted(20, true), Some(false), "a long message");
    }

    #[test]
    fn yields_end_after_a_long_one_or_a_slice() {
        let config = Config::default().for_ranks_on(3, 2);
        let yields_after = |took: &[Duration]| {
            let mut backoff = Backoff::after_pauses(&config);
            took.iter().for_each(|took| backoff.note_yield(*took));
            backoff.step() == Step::Yield
        };
        let (longest, moment) = (config.yield_max, Duration::from_nanos(1));
        assert!(yields_after(&[longest; 2]) && !yields_after(&[longest + moment]));
        let in_slice = config.slice.as_nanos() / longest.as_nanos();
        assert_eq!(in_slice, 8);
        assert!(yields_after(&[longest; 7]) && !yields_after(&[longest; 8]));
    }

    #[test]
    fn long_yields_begin_the_state_when_no_shorter_one_is_between() {
        let (long, short) = (true, false);
        let begins = |most, yields: &[bool]| {
            let oversubscription = Oversubscription::new();
            yields.iter().for_each(|is_long| oversubscription.record_yield(*is_long, most, || 5));
            oversubscription.is_active_at(6)
        };
        assert!(begins(1, &[long]) && !begins(1, &[short]));
        assert!(begins(2, &[short, long, long]) && !begins(2, &[long, short, long]));
    }

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
