//! Limit of a wait: the deadline and the wait control that end it without a result.
//!
//! Both engines check it. The loops around it differ: the packet engine parks, a C MPI wakes no thread.

use std::time::{Duration, Instant};

use mpjdev_transport::wait::WaitControl;

use crate::error::DeviceError;

/// The limit of one wait.
pub(crate) struct WaitLimit<'a> {
    period: Option<Period>,
    control: &'a mut dyn WaitControl,
}

/// The time that a wait may take.
struct Period {
    begun: Instant,
    deadline: Instant,
}

impl Period {
    /// The time left, which is not zero.
    fn left_at(&self, now: Instant) -> Result<Duration, DeviceError> {
        match self.deadline.saturating_duration_since(now) {
            Duration::ZERO => Err(DeviceError::TimedOut { after: now.saturating_duration_since(self.begun) }),
            left => Ok(left),
        }
    }
}

impl<'a> WaitLimit<'a> {
    /// Begins a wait. Reads the clock only if there is a deadline.
    #[inline]
    pub(crate) fn begin(deadline: Option<Instant>, control: &'a mut dyn WaitControl) -> Self {
        let period = deadline.map(|deadline| Period { begun: Instant::now(), deadline });
        WaitLimit { period, control }
    }

    /// The time left, without a deadline the longest that there is. Reads the clock only if there is a
    /// deadline, and asks the wait control only before the deadline.
    ///
    /// # Errors
    /// Timed out; interrupted.
    pub(crate) fn check(&mut self) -> Result<Duration, DeviceError> {
        let left = match &self.period {
            Some(period) => period.left_at(Instant::now())?,
            None => Duration::MAX,
        };
        if self.control.keep_waiting() { Ok(left) } else { Err(DeviceError::Interrupted) }
    }
}

#[cfg(test)]
mod tests {
    use mpjdev_transport::wait::Uninterruptible;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn period_ends_at_its_deadline_with_the_time_since_it_began() {
        let begun = Instant::now();
        let period = Period { begun, deadline: begun + HOUR };
        let left = |after| period.left_at(begun + after).map_err(|error| error.to_string());
        let timed_out = |after| Err(DeviceError::TimedOut { after }.to_string());
        assert_eq!(left(Duration::ZERO), Ok(HOUR));
        assert_eq!(left(HOUR - Duration::from_nanos(1)), Ok(Duration::from_nanos(1)));
        assert_eq!(left(HOUR), timed_out(HOUR));
        assert_eq!(left(2 * HOUR), timed_out(2 * HOUR));
    }

    #[test]
    fn deadline_before_the_wait_times_out_without_asking_the_control() {
        let mut asked = 0;
        let mut control = || {
            asked += 1;
            true
        };
        let passed = Instant::now();
        let result = WaitLimit::begin(Some(passed), &mut control).check();
        assert!(matches!(result, Err(DeviceError::TimedOut { after }) if after < HOUR), "{result:?}");
        assert_eq!(asked, 0);
    }

    #[test]
    fn control_interrupts_with_and_without_a_deadline() {
        for deadline in [None, Some(Instant::now() + HOUR)] {
            let mut answers = [true, true, false].into_iter();
            let mut control = || answers.next().expect("three questions");
            let mut limit = WaitLimit::begin(deadline, &mut control);
            assert!(limit.check().is_ok());
            assert!(limit.check().is_ok());
            let third = limit.check();
            assert!(matches!(third, Err(DeviceError::Interrupted)), "{third:?}");
        }
    }

    #[test]
    fn time_left_is_unlimited_without_a_deadline() {
        let left = |deadline| WaitLimit::begin(deadline, &mut Uninterruptible).check();
        assert!(matches!(left(None), Ok(Duration::MAX)));
        let bounded = left(Some(Instant::now() + HOUR));
        assert!(matches!(bounded, Ok(most) if most <= HOUR), "{bounded:?}");
    }
}
