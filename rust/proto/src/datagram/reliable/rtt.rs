//! The round-trip estimate and the probe timeout (5.3).
//!
//! ```text
//! first sample R:   S = R, V = R/2
//! later sample R:   V = 3/4 V + 1/4 |S - R|,  S = 7/8 S + 1/8 R
//! PTO = S + max(4 V, G) + max_ack_delay, not below the floor and not above the ceiling
//! ```
//!
//! An expiry sends a probe and declares no loss, so it changes no estimate. It doubles the time to the next
//! expiry. An ack of a new packet ends the backoff.

use super::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Limits of the estimate; 5.3 gives the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// G: the granularity of the driver's timers.
    pub granularity: Nanos,
    /// The least PTO. Below it scheduling dominates, not the network.
    pub floor: Nanos,
    /// The longest PTO, with backoff.
    pub ceiling: Nanos,
    /// The PTO before any sample.
    pub initial: Nanos,
}

impl Timing {
    /// A LAN or this machine, where each end polls on a core of its own (5.3).
    pub const POLLING: Self = Self {
        granularity: 100 * MICROSECOND,
        floor: 5 * MILLISECOND,
        ceiling: SECOND,
        initial: 200 * MILLISECOND,
    };
    /// A LAN or this machine, where threads share cores (5.3).
    pub const SHARED: Self = Self { floor: 25 * MILLISECOND, ..Self::POLLING };
    /// No progress thread answers for a program that computes (5.3).
    pub const NO_PROGRESS: Self = Self { floor: 100 * MILLISECOND, ..Self::POLLING };
    /// An unknown path (5.3; ceiling of RFC 6298).
    pub const UNKNOWN_PATH: Self =
        Self { granularity: MILLISECOND, floor: 25 * MILLISECOND, ceiling: 60 * SECOND, initial: SECOND };
}

/// S, V, the shortest and the latest sample, and the backoff.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    timing: Timing,
    peer_max_ack_delay: Nanos,
    estimate: Option<Estimate>,
    /// Consecutive expiries.
    expiries: u32,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    smoothed: Nanos,
    variation: Nanos,
    min: Nanos,
    latest: Nanos,
    /// Whether the next sample becomes the minimum.
    renews_min: bool,
}

impl Rtt {
    /// No sample yet. `peer_max_ack_delay` is what the peer announced at setup.
    #[must_use]
    pub const fn new(timing: Timing, peer_max_ack_delay: Nanos) -> Self {
        Self { timing, peer_max_ack_delay, estimate: None, expiries: 0 }
    }

    /// S, when there is a sample.
    #[inline]
    #[must_use]
    pub fn smoothed(&self) -> Option<Nanos> {
        self.estimate.map(|estimate| estimate.smoothed)
    }

    /// V, when there is a sample.
    #[must_use]
    pub fn variation(&self) -> Option<Nanos> {
        self.estimate.map(|estimate| estimate.variation)
    }

    /// The shortest sample, without subtraction of ack delays.
    #[inline]
    #[must_use]
    pub fn min(&self) -> Option<Nanos> {
        self.estimate.map(|estimate| estimate.min)
    }

    /// The latest sample.
    #[must_use]
    pub fn latest(&self) -> Option<Nanos> {
        self.estimate.map(|estimate| estimate.latest)
    }

    /// Max(S, latest), the base of the time threshold of loss (5.5); before any sample the initial PTO.
    #[inline]
    #[must_use]
    pub fn longest(&self) -> Nanos {
        self.estimate.map_or(self.timing.initial, |estimate| estimate.smoothed.max(estimate.latest))
    }

    /// G.
    #[inline]
    #[must_use]
    pub const fn granularity(&self) -> Nanos {
        self.timing.granularity
    }

    /// Consecutive expiries since a new packet was acked.
    #[inline]
    #[must_use]
    pub const fn expiries(&self) -> u32 {
        self.expiries
    }

    /// A packet that was sent once was acked `elapsed` after it was sent; the peer had delayed the ack by
    /// `ack_delay`. The delay is subtracted, down to the shortest round trip, and at most by the peer's
    /// max_ack_delay (RFC 9002, 5.3). Retransmitted packets give no samples (Karn).
    pub fn sample(&mut self, elapsed: Nanos, ack_delay: Nanos) {
        let Some(estimate) = &mut self.estimate else {
            self.estimate = Some(Estimate {
                smoothed: elapsed,
                variation: elapsed / 2,
                min: elapsed,
                latest: elapsed,
                renews_min: false,
            });
            return;
        };
        let ack_delay = ack_delay.min(self.peer_max_ack_delay);
        let renews_min = std::mem::take(&mut estimate.renews_min);
        estimate.min = if renews_min { elapsed } else { estimate.min.min(elapsed) };
        let sample = elapsed.saturating_sub(ack_delay).max(estimate.min);
        estimate.variation = weighted(estimate.variation, 3, estimate.smoothed.abs_diff(sample));
        estimate.smoothed = weighted(estimate.smoothed, 7, sample);
        estimate.latest = sample;
    }

    /// The path changed, as persistent congestion shows: the next sample is the new minimum (RFC 9002, 5.2).
    ///
    /// Nothing else renews the minimum. The window of a declared link is a multiple of it, so a minimum that
    /// follows the queue would let the queue grow without end.
    pub fn forget_min(&mut self) {
        if let Some(estimate) = &mut self.estimate {
            estimate.renews_min = true;
        }
    }

    /// The timer has expired.
    pub const fn expired(&mut self) {
        self.expiries = self.expiries.saturating_add(1);
    }

    /// A new packet was acked.
    #[inline]
    pub const fn progressed(&mut self) {
        self.expiries = 0;
    }

    /// PTO without backoff.
    #[must_use]
    pub fn base_pto(&self) -> Nanos {
        let Timing { granularity, floor, ceiling, initial } = self.timing;
        let pto = self.estimate.map_or(initial, |estimate| {
            let margin = estimate.variation.saturating_mul(4).max(granularity);
            estimate.smoothed.saturating_add(margin).saturating_add(self.peer_max_ack_delay)
        });
        pto.max(floor).min(ceiling)
    }

    /// The PTO, doubled for each consecutive expiry.
    #[inline]
    #[must_use]
    pub fn pto(&self) -> Nanos {
        let base = self.base_pto();
        if self.expiries == 0 {
            return base;
        }
        let factor = 1_u64.checked_shl(self.expiries).unwrap_or(u64::MAX);
        base.saturating_mul(factor).min(self.timing.ceiling)
    }

    /// Panics when an invariant does not hold. For tests, after every step.
    pub fn check(&self) {
        let pto = self.pto();
        assert!(pto <= self.timing.ceiling && self.base_pto() <= pto, "{self:?}");
        if let Some(estimate) = self.estimate {
            assert!(estimate.min <= estimate.latest, "{self:?}");
        }
    }
}

/// (weight old + new) / (weight + 1), without overflow.
const fn weighted(old: Nanos, weight: u64, new: Nanos) -> Nanos {
    let sum = weight as u128 * old as u128 + new as u128;
    (sum / (weight as u128 + 1)) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt() -> Rtt {
        Rtt::new(Timing::POLLING, MILLISECOND)
    }

    /// Proves the formulas of 5.3, V before S.
    #[test]
    fn samples_are_weighted_by_rfc_6298() {
        let mut rtt = rtt();
        assert_eq!((rtt.smoothed(), rtt.pto()), (None, 200 * MILLISECOND));
        rtt.sample(8 * MILLISECOND, 0);
        assert_eq!((rtt.smoothed(), rtt.variation()), (Some(8 * MILLISECOND), Some(4 * MILLISECOND)));
        assert_eq!(rtt.pto(), (8 + 16 + 1) * MILLISECOND);
        rtt.sample(16 * MILLISECOND, 0);
        assert_eq!((rtt.smoothed(), rtt.variation()), (Some(9 * MILLISECOND), Some(5 * MILLISECOND)));
        assert_eq!((rtt.min(), rtt.latest()), (Some(8 * MILLISECOND), Some(16 * MILLISECOND)));
    }

    /// Proves that the PTO has a floor for any round trip, and that a sample is never below the shortest,
    /// whatever delay the peer reports.
    #[test]
    fn pto_has_a_floor_and_samples_are_never_below_the_shortest() {
        let mut rtt = rtt();
        rtt.sample(20 * MICROSECOND, 0);
        rtt.sample(30 * MICROSECOND, u64::MAX);
        assert_eq!(rtt.latest(), Some(20 * MICROSECOND));
        assert_eq!(rtt.pto(), 5 * MILLISECOND);
        rtt.check();
    }

    /// Proves that a reported delay above the peer's maximum is not subtracted (RFC 9002, 5.3).
    #[test]
    fn sample_subtracts_no_more_than_max_ack_delay() {
        let mut rtt = Rtt::new(Timing::UNKNOWN_PATH, 25 * MILLISECOND);
        rtt.sample(10 * MILLISECOND, 0);
        rtt.sample(75 * MILLISECOND, 60 * MILLISECOND);
        assert_eq!((rtt.min(), rtt.latest()), (Some(10 * MILLISECOND), Some(50 * MILLISECOND)));
    }

    #[test]
    fn min_is_renewed_by_one_sample_after_forget_min() {
        let mut rtt = rtt();
        rtt.forget_min();
        for (sample, min) in [(10, 10), (50, 10)] {
            rtt.sample(sample * MILLISECOND, 0);
            assert_eq!(rtt.min(), Some(min * MILLISECOND));
        }
        rtt.forget_min();
        for (sample, min) in [(50, 50), (60, 50), (40, 40)] {
            rtt.sample(sample * MILLISECOND, 0);
            assert_eq!(rtt.min(), Some(min * MILLISECOND));
            rtt.check();
        }
    }

    /// Proves that the backoff doubles with each expiry up to the ceiling, also after many, and is reset at
    /// once.
    #[test]
    fn backoff_doubles_up_to_the_ceiling_and_is_reset() {
        let mut rtt = rtt();
        rtt.sample(20 * MICROSECOND, 0);
        for expiry in 0..200 {
            let expected = (5 * MILLISECOND).saturating_mul(1 << expiry.min(30)).min(SECOND);
            assert_eq!(rtt.pto(), expected, "expiry {expiry}");
            rtt.expired();
            rtt.check();
        }
        rtt.progressed();
        assert_eq!(rtt.pto(), 5 * MILLISECOND);
    }

    /// Proves that extreme times do not overflow.
    #[test]
    fn extreme_times_do_not_overflow() {
        let mut rtt = rtt();
        rtt.sample(u64::MAX, 0);
        rtt.sample(0, u64::MAX);
        rtt.sample(u64::MAX, u64::MAX);
        rtt.check();
        assert_eq!(rtt.pto(), SECOND);
    }
}
