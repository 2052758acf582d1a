//! How a thread waits: it tests, with pauses at first, then it yields, then it sleeps for moments. Nobody wakes it, since the library
//! tells nobody; so the moments are short.

use std::time::{Duration, Instant};

use super::Rank;
use crate::error::DeviceError;
use crate::waiting::{Backoff, Patience, Step};

/// The first sleep, and the longest.
const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];
/// Looks in vain after which a wait asks whether it may go on.
const ROUNDS: u32 = 64;
/// Yields after which a wait looks after what it does not wait for.
const YIELDS: u32 = 16;

impl Rank {
    /// Waits until `ready` gives something.
    pub(super) fn block<R>(
        &self,
        deadline: Option<Instant>,
        mut backoff: Backoff,
        patience: &mut dyn Patience,
        mut ready: impl FnMut() -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        if self.crowd.is_here() {
            backoff.hurry();
        }
        let begun = deadline.map(|_| Instant::now());
        let [mut nap, longest] = NAPS;
        let mut rounds = 0_u32;
        loop {
            if let Some(result) = ready()? {
                return Ok(result);
            }
            rounds = rounds.wrapping_add(1);
            let step = backoff.step();
            match step {
                Step::Pause => std::hint::spin_loop(),
                Step::Yield => {
                    if rounds.is_multiple_of(YIELDS) {
                        self.progress();
                    }
                    backoff.yield_now(&self.crowd);
                }
                Step::Sleep => self.progress(),
            }
            if step != Step::Sleep && !rounds.is_multiple_of(ROUNDS) {
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
                std::thread::sleep(nap);
                nap = (2 * nap).min(longest);
            }
        }
    }
}
