//! Pacing: bursts are limited, and packets are spread over the round trip (5.7).
//!
//! ```text
//! declared rate          len, and 48 for the headers of UDP and IP, / rate between packets
//! S at least 50 us       S / (1.25 x window) between packets, S / (2 x window) in slow start
//! S shorter, or unknown  no time between packets; a burst ends the driver's pass, so that it can receive
//! ```
//!
//! In slow start each acked window permits two; a pace of 1.25 would not send them within a round trip (a
//! choice of ours).
//!
//! A token bucket: a burst follows a pause or a late timer.

use super::time::{MICROSECOND, Nanos, SECOND};

/// Most packets of a burst (5.7).
pub const BURST_MAX: u32 = 10;
/// Round trips that are shorter are not paced (5.7).
pub const PACED_FROM: Nanos = 50 * MICROSECOND;

/// Octets of the UDP and IPv6 headers, which count against a link's rate. Those of IPv4 are fewer.
const HEADERS_LEN: u64 = 48;

/// The token bucket, as the time at which it would be full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    /// The declared rate of a private link in octets per second.
    declared: Option<u64>,
    full_at: Nanos,
    /// Packets sent in this pass of the driver, when there is no time between packets.
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
    /// Windows sent in a round trip, in hundredths.
    pub(super) gain: u64,
}

impl Pace {
    /// 10, or a quarter of the advertised window (5.7), at least 1.
    fn burst(&self) -> u32 {
        u32::try_from(self.advertised / 4).unwrap_or(u32::MAX).clamp(1, BURST_MAX)
    }
}

impl Pacing {
    pub(super) const fn new(declared: Option<u64>) -> Self {
        Self { declared, full_at: 0, passed: 0 }
    }

    /// The driver has read its socket: the next burst may begin.
    #[inline]
    pub(super) const fn pass(&mut self) {
        self.passed = 0;
    }

    /// The earliest time at which a packet may be sent, which may be in the past.
    #[inline]
    pub(super) fn ready_at(&self, now: Nanos, pace: &Pace) -> Nanos {
        match self.cost(pace, pace.len) {
            Some(cost) => {
                let allowance = cost.saturating_mul(u64::from(pace.burst() - 1));
                self.full_at.saturating_sub(allowance)
            }
            // At once, in the driver's next pass.
            None if self.passed >= pace.burst() => now.saturating_add(1),
            None => now,
        }
    }

    /// A packet of `len` octets is sent.
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

    /// Sends as early as possible until `until`; returns the number of packets.
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

    /// Proves that 1.25 windows are sent in a round trip, after a burst.
    #[test]
    fn window_is_spread_over_the_round_trip() {
        let count = run(&mut Pacing::new(None), &PACE, 100 * MILLISECOND);
        assert!((1250..=1260).contains(&count), "{count} packets in 10 round trips");
    }

    /// Proves that the declared rate is reached and not exceeded, whatever the window.
    #[test]
    fn declared_rate_is_reached_and_not_exceeded() {
        let pace = Pace { window: 2, ..PACE };
        let count = run(&mut Pacing::new(Some(12_500_000)), &pace, SECOND);
        let expected = 12_500_000 / 1048;
        assert!((expected..=expected + 10).contains(&count), "{count} packets of 1000 octets in a second");
    }

    /// Proves that a burst is 10 packets or a quarter of the advertised window, also after a pause.
    #[test]
    fn burst_is_limited_with_and_without_pacing() {
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
