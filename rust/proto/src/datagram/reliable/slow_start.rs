//! The end of slow start: HyStart++ (RFC 9406).
//!
//! A window that doubles until a loss loses a whole window, more than acks can report. The round trip grows
//! before that, since packets wait in the queue of the path. CSS is conservative slow start.
//!
//! | state | event | action | next |
//! |---|---|---|---|
//! | slow start | the shortest round trip of a round exceeds that of the round before by T | | CSS |
//! | CSS | an ack | a quarter of the growth | CSS |
//! | CSS | a round trip shorter than at its beginning | | slow start |
//! | CSS | 5 rounds | slow start ends | |
//!
//! T is an eighth of the round trip before, at least 4 and at most 16 ms.
//!
//! RFC 9406 wants 8 samples in a round. Here a round has four acks, so two samples are enough (a choice of
//! ours). A wrong decision costs some rounds of slower growth.

use super::time::{MILLISECOND, Nanos};

/// Least samples of a round (`N_RTT_SAMPLE`).
const SAMPLES_MIN: u32 = 2;
/// Bounds of the threshold (`MIN_RTT_THRESH`, `MAX_RTT_THRESH`).
const RTT_THRESHOLD_MIN: Nanos = 4 * MILLISECOND;
const RTT_THRESHOLD_MAX: Nanos = 16 * MILLISECOND;
/// The round trip divided by this is the threshold (`MIN_RTT_DIVISOR`).
const RTT_DIVISOR: u64 = 8;
/// Growth in CSS is divided by this (`CSS_GROWTH_DIVISOR`).
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// Rounds of CSS (`CSS_ROUNDS`).
const CSS_ROUNDS: u32 = 5;

/// The first slow start of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowStart {
    /// The first transmission of the next round.
    end: u64,
    /// The shortest round trips of this round and of the one before.
    shortest: Option<Nanos>,
    before: Option<Nanos>,
    samples: u32,
    css: Option<Css>,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    /// The shortest round trip at its beginning.
    shortest: Nanos,
    rounds: u32,
}

impl SlowStart {
    pub(super) const fn new() -> Self {
        Self { end: 0, shortest: None, before: None, samples: 0, css: None }
    }

    /// A round trip was measured.
    pub(super) fn sample(&mut self, sample: Nanos) {
        self.samples += 1;
        let shortest = self.shortest.map_or(sample, |shortest| shortest.min(sample));
        self.shortest = Some(shortest);
        if self.samples < SAMPLES_MIN {
            return;
        }
        match (self.css, self.before) {
            (Some(css), _) if shortest < css.shortest => self.css = None,
            (None, Some(before)) => {
                let longer = (before / RTT_DIVISOR).clamp(RTT_THRESHOLD_MIN, RTT_THRESHOLD_MAX);
                if shortest >= before.saturating_add(longer) {
                    self.css = Some(Css { shortest, rounds: 0 });
                }
            }
            _ => {}
        }
    }

    /// The largest acked transmission and the next one; returns whether slow start ends.
    pub(super) fn end_round(&mut self, largest_acked_tx: u64, next_tx: u64) -> bool {
        if largest_acked_tx < self.end {
            return false;
        }
        self.end = next_tx;
        (self.before, self.shortest, self.samples) = (self.shortest.or(self.before), None, 0);
        let Some(css) = &mut self.css else { return false };
        css.rounds += 1;
        // The round in which CSS began counts (RFC 9406, 4.2).
        css.rounds >= CSS_ROUNDS
    }

    /// The growth for `count` acked packets.
    pub(super) fn growth(&self, count: f64) -> f64 {
        if self.css.is_some() { count / CSS_GROWTH_DIVISOR } else { count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: u64 = 100;

    /// Runs rounds with these round trips in milliseconds. Returns for each whether slow start is over, and
    /// the growth.
    fn run(round_trips: &[u64]) -> Vec<(bool, f64)> {
        let mut slow_start = SlowStart::new();
        let mut rounds = Vec::new();
        for (round, round_trip) in (1..).zip(round_trips) {
            for _ in 0..SAMPLES_MIN {
                slow_start.sample(round_trip * MILLISECOND);
            }
            let is_over = slow_start.end_round(round * ROUND, (round + 1) * ROUND);
            rounds.push((is_over, slow_start.growth(1.0)));
        }
        rounds
    }

    #[test]
    fn growing_rtt_changes_slow_start_to_css() {
        let rounds = run(&[10, 10, 13, 18, 19, 20, 25, 30, 31, 32]);
        let css = rounds.iter().position(|(_, growth)| *growth < 1.0);
        assert_eq!(css, Some(3), "the eighth of 13 ms is less than 4 ms, 5 ms are more: {rounds:?}");
        assert_eq!(rounds.iter().position(|(is_over, _)| *is_over), Some(7), "{rounds:?}");
    }

    /// Proves that the round that detects the longer round trip is the first of the five (RFC 9406, 4.2).
    #[test]
    fn css_ends_after_its_fifth_round() {
        let rounds = run(&[10, 10, 20, 20, 20, 20, 20, 20]);
        let css = rounds.iter().filter(|(is_over, growth)| *growth < 1.0 && !is_over).count();
        assert_eq!(css + 1, CSS_ROUNDS as usize, "{rounds:?}");
        assert_eq!(rounds.iter().position(|(is_over, _)| *is_over), Some(6), "{rounds:?}");
    }

    #[test]
    fn single_long_rtt_does_not_end_slow_start() {
        let rounds = run(&[10, 20, 10, 10, 10, 10, 10, 10, 10]);
        assert_eq!(rounds.iter().filter(|(_, growth)| *growth < 1.0).count(), 1, "{rounds:?}");
        assert!(rounds.iter().all(|(is_over, _)| !is_over), "{rounds:?}");
    }

    #[test]
    fn round_needs_two_samples_and_an_empty_one_keeps_the_minimum() {
        let mut slow_start = SlowStart::new();
        slow_start.sample(10 * MILLISECOND);
        slow_start.end_round(1, 2);
        slow_start.end_round(2, 3);
        slow_start.sample(30 * MILLISECOND);
        assert_eq!(slow_start.growth(1.0), 1.0);
        slow_start.sample(31 * MILLISECOND);
        assert_eq!(slow_start.growth(1.0), 0.25);
    }
}
