//! Timers of all peers, and the sleepers that wait for them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use mpjdev_proto::datagram::reliable::time::Nanos;

/// A thread that may sleep until a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleeper {
    /// A thread of the program.
    Program,
    /// The progress thread.
    ProgressThread,
}

/// Time of a timer that is not armed.
pub(super) const NEVER: Nanos = Nanos::MAX;

/// The earliest timer of all peers, or an earlier time. An earlier time is corrected only when it has passed.
#[derive(Debug)]
pub(super) struct Timers {
    start: Instant,
    earliest: AtomicU64,
    /// End of each sleeper's sleep, for which an earlier timer wakes it; 0 while it does not sleep.
    until: [AtomicU64; 2],
}

impl Timers {
    pub(super) fn new() -> Timers {
        let until = [AtomicU64::new(0), AtomicU64::new(0)];
        Timers { start: Instant::now(), earliest: AtomicU64::new(NEVER), until }
    }

    /// The time, in nanoseconds.
    pub(super) fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos
    }

    /// Whether a timer has expired.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.earliest.load(Relaxed) <= now
    }

    /// Whether a timer is armed.
    pub(super) fn are_armed(&self) -> bool {
        self.earliest.load(Relaxed) != NEVER
    }

    /// Arms a timer for `at`. Returns the sleepers to wake for it.
    pub(super) fn arm(&self, at: Nanos) -> impl Iterator<Item = Sleeper> {
        let is_earlier = at < self.earliest.load(SeqCst) && at < self.earliest.fetch_min(at, SeqCst);
        let sleepers = [Sleeper::Program, Sleeper::ProgressThread].into_iter();
        sleepers.filter(move |sleeper| is_earlier && at < self.until[*sleeper as usize].load(SeqCst))
    }

    /// Resets the earliest timer and arms those of `later` again, after a check of all timers. Returns the
    /// sleepers to wake: one that began to sleep meanwhile has not seen all timers.
    pub(super) fn rearm(&self, later: impl Iterator<Item = Nanos>) -> impl Iterator<Item = Sleeper> {
        self.earliest.store(NEVER, SeqCst);
        let mut is_woken = [false; 2];
        for sleeper in later.flat_map(|at| self.arm(at)) {
            is_woken[sleeper as usize] = true;
        }
        [Sleeper::Program, Sleeper::ProgressThread]
            .into_iter()
            .filter(move |sleeper| is_woken[*sleeper as usize])
    }

    /// Begins a sleep. Returns its longest duration. A timer armed from now on wakes the sleeper.
    pub(super) fn begin_sleep(&self, sleeper: Sleeper) -> Duration {
        let until = &self.until[sleeper as usize];
        until.store(NEVER, SeqCst);
        let earliest = self.earliest.load(SeqCst);
        until.store(earliest, SeqCst);
        // A timer armed between the two stores has already woken the sleeper, or is seen here.
        let earliest = earliest.min(self.earliest.load(SeqCst));
        match earliest {
            NEVER => Duration::MAX,
            at => Duration::from_nanos(at.saturating_sub(self.now())),
        }
    }

    pub(super) fn end_sleep(&self, sleeper: Sleeper) {
        self.until[sleeper as usize].store(0, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arm_wakes_only_sleepers_with_a_later_deadline() {
        let timers = Timers::new();
        assert_eq!(timers.arm(NEVER - 1).count(), 0, "no thread sleeps");
        assert!(timers.begin_sleep(Sleeper::Program) > Duration::from_secs(1 << 30));
        assert_eq!(timers.arm(1 << 40).collect::<Vec<_>>(), [Sleeper::Program]);
        timers.begin_sleep(Sleeper::ProgressThread);
        assert_eq!(timers.arm(1 << 41).count(), 0, "it is not the earliest");
        assert_eq!(timers.arm(1).collect::<Vec<_>>(), [Sleeper::Program, Sleeper::ProgressThread]);
        assert!(timers.is_due(1) && !timers.is_due(0));
        timers.end_sleep(Sleeper::Program);
        timers.end_sleep(Sleeper::ProgressThread);
        assert_eq!(timers.rearm(std::iter::empty()).count(), 0);
        assert!(!timers.is_due(NEVER - 1));
        assert_eq!(timers.arm(5).count(), 0);
    }

    /// Another thread may begin to sleep during a check of all timers. It has seen none, or not the earliest.
    #[test]
    fn sleeper_that_begins_during_a_timer_check_is_woken() {
        let timers = Timers::new();
        timers.begin_sleep(Sleeper::Program);
        assert_eq!(timers.arm(1).count(), 1, "it sleeps until then");
        timers.begin_sleep(Sleeper::Program);
        let later = [1 << 41, 1 << 40].into_iter().inspect(|at| {
            if *at == 1 << 40 {
                timers.begin_sleep(Sleeper::ProgressThread);
            }
        });
        assert_eq!(timers.rearm(later).collect::<Vec<_>>(), [Sleeper::ProgressThread]);
        assert!(timers.is_due(1 << 40) && !timers.is_due((1 << 40) - 1));
    }
}
