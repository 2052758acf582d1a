//! How a thread waits: it tests, then it yields in between, then it sleeps for moments. Nobody wakes it, since the library tells
//! nobody; so the moments are short. And many libraries move a long message only when they are called, a part each time: a
//! look that takes long has moved one, and who looks again at once gets the next.

use std::time::{Duration, Instant};

use mpjdev_transport::waiting::{Backoff, Patience, Step};

use super::Rank;
use crate::error::DeviceError;

/// The shortest sleep.
const SHORTEST: Duration = Duration::from_micros(20);
/// The longest.
const LONGEST: Duration = Duration::from_micros(500);
/// A sleep is at most such a part of the time since the first one: what comes meanwhile waits for no more.
const NAP_PART: u32 = 8;
/// A look that takes longer, and longer than it takes to look at its requests, has moved octets.
const MOVED: Duration = Duration::from_micros(2);
/// A look at one request in vain takes less.
const LOOK: Duration = Duration::from_nanos(250);
/// Yields after which a wait asks whether it may go on; that costs microseconds where Java is asked.
const ASKED: u32 = 256;
/// Yields after which a wait looks after what it does not wait for.
const YIELDS: u32 = 16;
/// Looks before a wait yields, longer than elsewhere: a library may move a MiB in so many, and only while it is called.
pub(super) const SPINS: u32 = 1000;

/// Whether a wait asks in this round whether it may go on, and what the time is: never while it only looks.
fn asks(step: Step, round: u32) -> bool {
    match step {
        Step::Pause => false,
        Step::Yield => round.is_multiple_of(ASKED),
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

    /// A look at so many requests has taken so long: whether it has moved octets, which ends the sleeping.
    fn end_after(&mut self, look: Duration, requests: usize) -> bool {
        let has_moved = look > MOVED + LOOK * requests as u32;
        if has_moved {
            self.first = None;
        }
        has_moved
    }

    /// How long the next one is.
    fn next(&mut self, now: Instant) -> Duration {
        let since = now - *self.first.get_or_insert(now);
        (since / NAP_PART).clamp(SHORTEST, LONGEST)
    }
}

impl Rank {
    /// Waits until `ready` gives something.
    pub(super) fn block<R>(
        &self,
        deadline: Option<Instant>,
        backoff: Backoff,
        patience: &mut dyn Patience,
        ready: impl FnMut() -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        self.block_for(1, deadline, backoff, patience, ready)
    }

    /// The same, where each time so many requests are looked at.
    pub(super) fn block_for<R>(
        &self,
        requests: usize,
        deadline: Option<Instant>,
        mut backoff: Backoff,
        patience: &mut dyn Patience,
        mut ready: impl FnMut() -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        if self.crowd.is_here() {
            backoff.hurry();
        }
        let begun = deadline.map(|_| Instant::now());
        let mut naps = Naps::default();
        let mut rounds = 0_u32;
        loop {
            let looks = naps.have_begun().then(Instant::now);
            if let Some(result) = ready()? {
                return Ok(result);
            }
            if looks.is_some_and(|begun| naps.end_after(begun.elapsed(), requests)) {
                backoff = Backoff::after_pauses(&self.config);
                // There a look may have taken long for others.
                if self.crowd.is_here() {
                    backoff.hurry();
                }
            }
            rounds = rounds.wrapping_add(1);
            let step = backoff.step();
            match step {
                // A look into the library takes longer than a pause.
                Step::Pause => {}
                Step::Yield => {
                    if rounds.is_multiple_of(YIELDS) {
                        self.progress();
                    }
                    backoff.yield_now(&self.crowd);
                }
                Step::Sleep => self.progress(),
            }
            if !asks(step, rounds) {
                continue;
            }
            if let (Some(deadline), Some(begun)) = (deadline, begun)
                && Instant::now() >= deadline
            {
                return Err(DeviceError::TimedOut { after: begun.elapsed() });
            }
            if !patience.goes_on() {
                return Err(DeviceError::Interrupted);
            }
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
    fn sleeps_are_a_part_of_the_time_since_the_first() {
        let (mut naps, start) = (Naps::default(), Instant::now());
        assert!(!naps.have_begun());
        let next = |naps: &mut Naps, micros| naps.next(start + Duration::from_micros(micros)).as_micros();
        assert_eq!([0, 100, 800, 1600, 1_000_000].map(|at| next(&mut naps, at)), [20, 20, 100, 200, 500]);
        assert!(naps.have_begun());
    }

    #[test]
    fn a_wait_that_looks_asks_nobody() {
        let asked = |step| (1..=2048).filter(|round| asks(step, *round)).count();
        assert_eq!([Step::Pause, Step::Yield, Step::Sleep].map(asked), [0, 8, 2048]);
    }

    #[test]
    fn a_look_that_has_moved_octets_is_followed_by_others_without_sleep() {
        let (mut naps, start) = (Naps::default(), Instant::now());
        let later = start + Duration::from_secs(1);
        naps.next(start);
        assert!(!naps.end_after(Duration::from_nanos(300), 1), "in vain");
        assert_eq!(naps.next(later), LONGEST);
        // MPICH copies 512 KiB, or twice that.
        assert!(naps.end_after(Duration::from_micros(90), 1));
        assert!(!naps.have_begun());
        assert_eq!(naps.next(later), SHORTEST, "it begins anew");
    }

    #[test]
    fn a_look_at_many_requests_takes_long_without_moving_anything() {
        let mut naps = Naps::default();
        naps.next(Instant::now());
        let look = Duration::from_micros(20);
        assert!(!naps.end_after(look, 200));
        assert!(naps.end_after(look, 20));
    }
}
