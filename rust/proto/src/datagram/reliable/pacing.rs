//! Pacing: bursts are limited, and packets are spread over the round trip (5.7).
//!
//! ```text
//! declared rate          len, and 48 for the headers of UDP and IP, / rate between packets
//! S at least 50 us       S / (1.25 x window) between packets, S / (2 x window) in slow start
//! S shorter, or unknown  no time between packets; a burst ends the driver's pass, so that it can receive
//! ```
//!
//! In slow start a window that has come lets two of them leave; at 1.25 they would not within a round trip (a
//! choice of ours).
//!
//! A token bucket: after a pause, and after a timer that fired late, a burst makes up for it.

use super::time::{MICROSECOND, Nanos, SECOND};

/// Most packets of a burst (5.7).
pub const BURST_MAX: u32 = 10;
/// Round trips that are shorter are not paced (5.7).
pub const PACED_FROM: Nanos = 50 * MICROSECOND;

/// Octets in front of a datagram that take their part of a link's rate: those of UDP and of IPv6, which are
/// more than those of IPv4.
const HEADERS_LEN: u64 = 48;

/// The token bucket, as the time at which it would be full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    /// Octets in a second that a private link was declared to have.
    declared: Option<u64>,
    full_at: Nanos,
    /// Packets of this pass of the driver, when there is no time between packets.
    passed: u32,
}

/// The inputs of the pace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The congestion window, in packets.
    pub(super) window: u32,
    /// The window that the peer advertises, in packets.
    pub(super) advertised: u64,
    /// S.
    pub(super) smoothed: Option<Nanos>,
    /// Octets of a full datagram.
    pub(super) len: usize,
    /// Windows that leave in a round trip, in hundredths.
    pub(super) gain: u64,
}

impl Pace {
    /// 10, or a quarter of the advertised window (5.7), but a packet at least.
    fn burst(&self) -> u32 {
        u32::try_from(self.advertised / 4).unwrap_or(u32::MAX).clamp(1, BURST_MAX)
    }
}

impl Pacing {
    pub(super) const fn new(declared: Option<u64>) -> Self {
        Self { declared, full_at: 0, passed: 0 }
    }

    /// The driver has looked what has come: the next burst may begin.
    #[inline]
    pub(super) const fn pass(&mut self) {
        self.passed = 0;
    }

    /// When a packet may leave: now or before, or later.
    #[inline]
    pub(super) fn ready_at(&self, now: Nanos, pace: &Pace) -> Nanos {
        match self.cost(pace, pace.len) {
            Some(cost) => {
                let allowance = cost.saturating_mul(u64::from(pace.burst() - 1));
                self.full_at.saturating_sub(allowance)
            }
            // At once, but in the driver's next pass.
            None if self.passed >= pace.burst() => now.saturating_add(1),
            None => now,
        }
    }

    /// A packet of `len` octets leaves.
    #[inline]
    pub(super) fn sent(&mut self, now: Nanos, pace: &Pace, len: usize) {
        self.passed = self.passed.saturating_add(1);
        if let Some(cost) = self.cost(pace, len) {
            self.full_at = self.full_at.max(now).saturating_add(cost);
        }
    }

    fn cost(&self, pace: &Pace, len: usize) -> Option<Nanos> {
        if let Some(rate) = self.declared {
            return Some((len as u64 + HEADERS_LEN).saturating_mul(SECOND) / rate.max(1));
        }
        let smoothed = pace.smoothed.filter(|smoothed| *smoothed >= PACED_FROM)?;
        Some(smoothed.saturating_mul(100) / (u64::from(pace.window.max(1)) * pace.gain.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::MILLISECOND;
    use super::*;

    const PACE: Pace =
        Pace { window: 100, advertised: 1000, smoothed: Some(10 * MILLISECOND), len: 1000, gain: 125 };

    /// Sends as early as possible until `until`; how many packets left.
    fn run(pacing: &mut Pacing, pace: &Pace, until: Nanos) -> u64 {
        let (mut now, mut count) = (0, 0);
        loop {
            now = pacing.ready_at(now, pace).max(now);
            if now >= until {
                return count;
            }
            pacing.sent(now, pace, pace.len);
            count += 1;
        }
    }

    /// 1.25 windows in a round trip, and a burst in front of them.
    #[test]
    fn a_window_is_spread_over_the_round_trip() {
        let count = run(&mut Pacing::new(None), &PACE, 100 * MILLISECOND);
        assert!((1250..=1260).contains(&count), "{count} packets in 10 round trips");
    }

    /// A declared link is filled and no more, whatever the window.
    #[test]
    fn a_declared_rate_is_kept() {
        let pace = Pace { window: 2, ..PACE };
        let count = run(&mut Pacing::new(Some(12_500_000)), &pace, SECOND);
        let expected = 12_500_000 / 1048;
        assert!((expected..=expected + 10).contains(&count), "{count} packets of 1000 octets in a second");
    }

    /// A burst is 10 packets, or a quarter of the advertised window, also after a pause.
    #[test]
    fn a_burst_is_limited_with_and_without_pacing() {
        for (advertised, expected) in [(1000, 10), (16, 4), (1, 1)] {
            for smoothed in [None, Some(PACED_FROM - 1), Some(MILLISECOND)] {
                let pace = Pace { advertised, smoothed, ..PACE };
                let mut pacing = Pacing::new(None);
                let now = 5 * SECOND;
                let mut burst = 0;
                while pacing.ready_at(now, &pace) <= now {
                    pacing.sent(now, &pace, pace.len);
                    burst += 1;
                }
                assert_eq!(burst, expected, "window {advertised}, S {smoothed:?}");
                pacing.pass();
                let is_paced = smoothed == Some(MILLISECOND);
                assert_eq!(pacing.ready_at(now, &pace) <= now, !is_paced);
            }
        }
    }
}
