//! Waits over a C MPI: a thread polls, then yields between polls, then sleeps for short times.
//!
//! The library wakes no thread, so the sleeps are short. Many libraries move a long message only while they
//! are called, one part per call. A poll that takes long has moved a part, and the next poll without a sleep
//! moves the next one.

use std::time::{Duration, Instant};

use mpjdev_transport::wait::{Backoff, Step, WaitControl};

use super::Rank;
use crate::error::DeviceError;
use crate::wait::WaitLimit;

/// The shortest sleep.
const SHORTEST: Duration = Duration::from_micros(20);
/// The longest sleep.
const LONGEST: Duration = Duration::from_micros(500);
/// The fraction of the time since the first sleep that a sleep lasts at most: a message waits no longer than
/// this fraction.
const NAP_PART: u32 = 8;
/// A poll that takes longer, and longer than its requests need, has moved octets.
const MOVED: Duration = Duration::from_micros(2);
/// The bound on the time of an empty poll of one request.
const EMPTY_POLL: Duration = Duration::from_nanos(250);
/// Yields after which a wait checks its limit: the wait control takes microseconds if Java answers.
const CHECKED: u32 = 256;
/// Yields after which a wait drives all progress, beyond its own requests.
const YIELDS: u32 = 16;
/// Polls before a wait yields. More than elsewhere: a library may move a MiB in this number of polls, and
/// only while it is called.
pub(super) const SPINS: u32 = 1000;

/// Whether a wait checks its limit in this round: never while it spins.
fn checks_limit(step: Step, round: u32) -> bool {
    match step {
        Step::Pause => false,
        Step::Yield => round.is_multiple_of(CHECKED),
        Step::Sleep => true,
    }
}

/// The sleeps of one wait.
#[derive(Debug, Default)]
struct Naps {
    first: Option<Instant>,
}

impl Naps {
    fn have_begun(&self) -> bool {
        self.first.is_some()
    }

    /// Ends the sleeps if a poll of this number of requests took so long that it has moved octets; true if it
    /// has.
    fn end_after(&mut self, poll: Duration, requests: usize) -> bool {
        let has_moved = poll > MOVED + EMPTY_POLL * requests as u32;
        if has_moved {
            self.first = None;
        }
        has_moved
    }

    /// The length of the next sleep.
    fn next(&mut self, now: Instant) -> Duration {
        let since = now - *self.first.get_or_insert(now);
        (since / NAP_PART).clamp(SHORTEST, LONGEST)
    }
}

impl Rank {
    /// Waits until `ready` returns a value.
    pub(super) fn block<R>(
        &self,
        deadline: Option<Instant>,
        backoff: Backoff,
        wait_control: &mut dyn WaitControl,
        ready: impl FnMut() -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        self.block_for(1, deadline, backoff, wait_control, ready)
    }

    /// Waits until `ready` returns a value; each call of it polls `requests` requests.
    pub(super) fn block_for<R>(
        &self,
        requests: usize,
        deadline: Option<Instant>,
        mut backoff: Backoff,
        wait_control: &mut dyn WaitControl,
        mut ready: impl FnMut() -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        backoff.adapt_to(&self.oversubscription);
        let mut limit = WaitLimit::begin(deadline, wait_control);
        let mut naps = Naps::default();
        let mut rounds = 0_u32;
        loop {
            let polled_at = naps.have_begun().then(Instant::now);
            if let Some(result) = ready()? {
                return Ok(result);
            }
            if polled_at.is_some_and(|at| naps.end_after(at.elapsed(), requests)) {
                backoff = Backoff::after_pauses(&self.config);
                // On an oversubscribed machine the poll may have taken long because of other processes.
                backoff.adapt_to(&self.oversubscription);
            }
            rounds = rounds.wrapping_add(1);
            let step = backoff.step();
            match step {
                // A call of the library takes longer than a pause.
                Step::Pause => {}
                Step::Yield => {
                    if rounds.is_multiple_of(YIELDS) {
                        self.progress();
                    }
                    backoff.yield_now(&self.oversubscription);
                }
                Step::Sleep => self.progress(),
            }
            if !checks_limit(step, rounds) {
                continue;
            }
            limit.check()?;
            if step == Step::Sleep {
                std::thread::sleep(naps.next(Instant::now()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_a_fraction_of_the_time_since_the_first() {
        let (mut naps, start) = (Naps::default(), Instant::now());
        assert!(!naps.have_begun());
        let next = |naps: &mut Naps, micros| naps.next(start + Duration::from_micros(micros)).as_micros();
        assert_eq!([0, 100, 800, 1600, 1_000_000].map(|at| next(&mut naps, at)), [20, 20, 100, 200, 500]);
        assert!(naps.have_begun());
    }

    #[test]
    fn spinning_wait_skips_the_interrupt_check() {
        let asked = |step| (1..=2048).filter(|round| checks_limit(step, *round)).count();
        assert_eq!([Step::Pause, Step::Yield, Step::Sleep].map(asked), [0, 8, 2048]);
    }

    #[test]
    fn poll_that_moves_octets_restarts_polling_without_sleep() {
        let (mut naps, start) = (Naps::default(), Instant::now());
        let later = start + Duration::from_secs(1);
        naps.next(start);
        assert!(!naps.end_after(Duration::from_nanos(300), 1), "empty");
        assert_eq!(naps.next(later), LONGEST);
        // MPICH copies 512 KiB or a MiB.
        assert!(naps.end_after(Duration::from_micros(90), 1));
        assert!(!naps.have_begun());
        assert_eq!(naps.next(later), SHORTEST, "it begins anew");
    }

    #[test]
    fn long_poll_of_many_requests_counts_as_empty() {
        let mut naps = Naps::default();
        naps.next(Instant::now());
        let poll = Duration::from_micros(20);
        assert!(!naps.end_after(poll, 200));
        assert!(naps.end_after(poll, 20));
    }
}
