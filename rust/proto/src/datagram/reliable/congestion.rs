//! The congestion window: the packets that may be in flight (5.7).
//!
//! | path | algorithm | source |
//! |---|---|---|
//! | loopback, declared private link | fixed window, halved on loss, 1 packet more per window acked | 5.7 |
//! | any other | CUBIC, or NewReno | RFC 9438; RFC 9002, 7 |
//!
//! A private link with a declared rate has a least window, which fills the link. It has no other traffic, and
//! pacing keeps its queues empty, so a loss is no sign of congestion (a choice of ours).
//!
//! The first slow start ends when the round trip grows (`slow_start.rs`).
//!
//! The first loss within a round trip cuts the window (RFC 9002, 7.3.2): an epoch lasts until a packet that
//! was sent after the cut is acked or lost. ECN is not used. A spurious cut is undone. An expired timer cuts
//! nothing.

use super::slow_start::SlowStart;
use super::time::{Nanos, SECOND};

/// The congestion control algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// For paths without other traffic: additive increase, multiplicative decrease, a large initial window.
    Private,
    /// RFC 9002, 7: half the window on loss, one packet more each round trip.
    NewReno,
    /// RFC 9438: as TCP on Linux, and so fair to it. With frequent losses it grows as NewReno does.
    #[default]
    Cubic,
}

/// The least window (RFC 9002, 7.2).
pub const WINDOW_MIN: u32 = 2;

/// Beta of CUBIC: the factor of a cut (RFC 9438, 4.6).
const CUBIC_BETA: f64 = 0.7;
/// C of CUBIC, packets in a second cubed (RFC 9438, 5.1).
const CUBIC_C: f64 = 0.4;
/// Alpha of CUBIC where it is friendly to Reno (RFC 9438, 4.3).
const CUBIC_ALPHA: f64 = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
/// Largest growth in a round trip (RFC 9438, 4.4).
const CUBIC_STEP_MAX: f64 = 1.5;

/// The window and the state of its algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    algorithm: Algorithm,
    max: f64,
    state: State,
    /// The state before the last cut.
    before_cut: Option<State>,
    /// The first transmission after the last cut: earlier ones neither cut nor grow the window.
    epoch: u64,
    /// The least window of a link with a declared rate, once the round trip is known.
    declared: f64,
    /// Packets that must be acked after persistent congestion before the least window applies again.
    doubted: u64,
    /// The first slow start, until it ends.
    slow_start: Option<SlowStart>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    window: f64,
    threshold: f64,
    cubic: Cubic,
}

/// Variables of RFC 9438, 4.1.2.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    /// W_max.
    max: f64,
    /// K, in seconds.
    k: f64,
    /// When congestion avoidance began.
    began: Option<Nanos>,
    /// W_est: what Reno would have.
    reno: f64,
    /// cwnd_prior.
    prior: f64,
    /// The time of the last ack.
    acked_at: Nanos,
}

/// Newly acked packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    /// Packets sent after the last cut.
    pub(super) count: u32,
    /// S.
    pub(super) smoothed: Nanos,
    /// Whether the window limited the sender; else an ack says nothing about the path.
    pub(super) is_limited: bool,
}

impl Congestion {
    pub(super) fn new(algorithm: Algorithm, initial: u32, max: u32) -> Self {
        let max = f64::from(max.max(WINDOW_MIN));
        let window = f64::from(initial).clamp(f64::from(WINDOW_MIN), max);
        // A private path needs no slow start.
        let threshold = if algorithm == Algorithm::Private { window } else { max };
        let state = State { window, threshold, cubic: Cubic::default() };
        let slow_start = (algorithm != Algorithm::Private).then(SlowStart::new);
        Self { algorithm, max, state, before_cut: None, epoch: 0, declared: 0.0, doubted: 0, slow_start }
    }

    /// Packets that may be in flight, at least 2.
    #[inline]
    pub(super) fn window(&self) -> u32 {
        let window = self.state.window;
        if self.doubted > 0 { window as u32 } else { window.max(self.declared) as u32 }
    }

    /// Sets the least window to the packets that fill a private link.
    pub(super) fn declare(&mut self, packets: u64) {
        self.declared = (packets as f64).min(self.max);
    }

    /// Whether the window grows by each acked packet.
    #[inline]
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.state.window < self.state.threshold
    }

    /// A round trip was measured.
    #[inline]
    pub(super) fn rtt_sampled(&mut self, sample: Nanos) {
        if let Some(slow_start) = &mut self.slow_start {
            slow_start.sample(sample);
        }
    }

    /// The largest acked transmission and the next one: ends the rounds of slow start.
    #[inline]
    pub(super) fn round_acked(&mut self, largest_acked_tx: u64, next_tx: u64) {
        if let Some(slow_start) = &mut self.slow_start
            && slow_start.end_round(largest_acked_tx, next_tx)
        {
            self.slow_start = None;
            self.state.threshold = self.state.window;
        }
    }

    /// The first transmission whose ack grows the window.
    #[inline]
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    #[inline]
    pub(super) fn acked(&mut self, now: Nanos, acked: &Acked) {
        let since = self.state.cubic.acked_at;
        self.state.cubic.acked_at = now;
        if acked.count == 0 {
            return;
        }
        self.doubted = self.doubted.saturating_sub(u64::from(acked.count));
        if !acked.is_limited {
            // Time in which the window was not used does not count (RFC 9438, 5.8).
            if let Some(began) = &mut self.state.cubic.began {
                *began = began.saturating_add(now.saturating_sub(since)).min(now);
            }
            return;
        }
        let count = f64::from(acked.count);
        let window = self.state.window;
        let grown = if window < self.state.threshold {
            let count = self.slow_start.map_or(count, |slow_start| slow_start.growth(count));
            (window + count).min(self.state.threshold.max(window))
        } else if self.algorithm == Algorithm::Cubic {
            self.cubic(now, acked)
        } else {
            window + count / window
        };
        self.state.window = grown.min(self.max);
    }

    /// Congestion avoidance of RFC 9438, 4.2 to 4.5.
    fn cubic(&mut self, now: Nanos, acked: &Acked) -> f64 {
        let State { window, ref mut cubic, .. } = self.state;
        let began = *cubic.began.get_or_insert_with(|| {
            // There was no cut, or an idle time: the plateau is the current window.
            cubic.max = cubic.max.max(window);
            cubic.k = ((cubic.max - window).max(0.0) / CUBIC_C).cbrt();
            cubic.reno = window;
            cubic.prior = cubic.prior.max(window);
            now
        });
        let (k, max) = (cubic.k, cubic.max);
        let at = |time: Nanos| {
            let t = time as f64 / SECOND as f64 - k;
            CUBIC_C * t * t * t + max
        };
        let elapsed = now.saturating_sub(began);
        let alpha = if cubic.reno >= cubic.prior { 1.0 } else { CUBIC_ALPHA };
        cubic.reno += alpha * f64::from(acked.count) / window;
        if at(elapsed) < cubic.reno {
            return window.max(cubic.reno);
        }
        let target = at(elapsed.saturating_add(acked.smoothed)).clamp(window, window * CUBIC_STEP_MAX);
        window + (target - window) / window * f64::from(acked.count)
    }

    /// A packet is lost. `transmission` is its latest transmission, `next` the next transmission. Returns
    /// whether the window was cut, at most once for each epoch.
    pub(super) fn packet_lost(&mut self, transmission: u64, next: u64) -> bool {
        if transmission < self.epoch {
            return false;
        }
        self.before_cut = Some(self.state);
        self.epoch = next;
        self.slow_start = None;
        let State { window, .. } = self.state;
        let left = match self.algorithm {
            Algorithm::Private | Algorithm::NewReno => window / 2.0,
            Algorithm::Cubic => window * CUBIC_BETA,
        };
        let left = left.max(f64::from(WINDOW_MIN));
        let cubic = &mut self.state.cubic;
        // Fast convergence (RFC 9438, 4.7).
        cubic.max = if window < cubic.max { window * (1.0 + CUBIC_BETA) / 2.0 } else { window };
        cubic.prior = window;
        cubic.began = None;
        self.state.window = left;
        self.state.threshold = left;
        true
    }

    /// Persistent congestion (RFC 9002, 7.6).
    pub(super) fn collapse(&mut self, next: u64) {
        self.before_cut = None;
        self.epoch = next;
        let window = f64::from(WINDOW_MIN);
        if self.algorithm == Algorithm::Private {
            // Returns to the former window in doublings: the path has no other traffic.
            self.state.threshold = self.state.threshold.max(f64::from(self.window()));
        }
        self.state.window = window;
        // The next congestion avoidance begins a new epoch at its own window, with K = 0 (RFC 9438, 4.8).
        let Cubic { prior, acked_at, .. } = self.state.cubic;
        self.state.cubic = Cubic { prior, acked_at, ..Cubic::default() };
        self.doubted = self.declared as u64;
    }

    /// Undoes the last cut, which a spurious loss caused; false if there is none.
    pub(super) fn undo(&mut self) -> bool {
        let Some(before) = self.before_cut.take() else { return false };
        self.state.window = self.state.window.max(before.window);
        self.state.threshold = self.state.threshold.max(before.threshold);
        self.state.cubic = Cubic { acked_at: self.state.cubic.acked_at, ..before.cubic };
        true
    }

    pub(super) fn check(&self) {
        let State { window, threshold, .. } = self.state;
        assert!((f64::from(WINDOW_MIN)..=self.max).contains(&window), "{self:?}");
        assert!(threshold >= f64::from(WINDOW_MIN), "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::MILLISECOND;
    use super::*;
    use mpjdev_sim::Random;

    const SMOOTHED: Nanos = 10 * MILLISECOND;

    fn acked(count: u32) -> Acked {
        Acked { count, smoothed: SMOOTHED, is_limited: true }
    }

    /// Acks a whole window in each of `rounds` round trips.
    fn run(congestion: &mut Congestion, now: &mut Nanos, rounds: u32) {
        run_with(congestion, now, rounds, SMOOTHED);
    }

    fn run_with(congestion: &mut Congestion, now: &mut Nanos, rounds: u32, smoothed: Nanos) {
        for _ in 0..rounds {
            *now += smoothed;
            let count = congestion.window();
            congestion.acked(*now, &Acked { count, smoothed, is_limited: true });
            congestion.check();
        }
    }

    /// Proves that only the first loss of a round trip cuts the window.
    #[test]
    fn window_is_cut_once_in_an_epoch() {
        for (algorithm, left) in [(Algorithm::Private, 32), (Algorithm::NewReno, 32), (Algorithm::Cubic, 44)]
        {
            let mut congestion = Congestion::new(algorithm, 64, 1024);
            assert!(congestion.packet_lost(10, 74));
            assert!(!congestion.packet_lost(11, 75) && !congestion.packet_lost(73, 75));
            assert_eq!(congestion.window(), left, "{algorithm:?}");
            assert!(congestion.packet_lost(74, 106));
        }
    }

    /// Proves that slow start doubles, that avoidance adds one packet each round trip, and that a private
    /// path has no slow start.
    #[test]
    fn windows_grow_by_their_rule() {
        let mut now = 0;
        let mut reno = Congestion::new(Algorithm::NewReno, 10, 1024);
        run(&mut reno, &mut now, 3);
        assert_eq!(reno.window(), 80);
        reno.packet_lost(0, 1);
        run(&mut reno, &mut now, 11);
        assert!((50..=52).contains(&reno.window()), "{reno:?}");
        let mut private = Congestion::new(Algorithm::Private, 64, 1024);
        run(&mut private, &mut now, 11);
        assert!((74..=76).contains(&private.window()), "{private:?}");
    }

    /// Proves the curve of RFC 9438, figure 1: concave up to the old window, which it reaches after K, then
    /// convex. The round trip is long, since Reno would be faster on a short one.
    #[test]
    fn cubic_returns_to_the_old_window_after_k() {
        let (mut now, smoothed) = (0, 20 * SMOOTHED);
        let mut cubic = Congestion::new(Algorithm::Cubic, 800, 16383);
        cubic.packet_lost(0, 1);
        let k = (800.0_f64 * 0.3 / 0.4).cbrt();
        let half = (k * 5.0 / 2.0) as u32;
        let start = cubic.window();
        run_with(&mut cubic, &mut now, half, smoothed);
        let middle = cubic.window();
        assert!(start < middle && middle - start > 800 - middle, "not concave: {start}, {middle}");
        run_with(&mut cubic, &mut now, half, smoothed);
        assert!((780..=810).contains(&cubic.window()), "{cubic:?}");
        run_with(&mut cubic, &mut now, 2 * half, smoothed);
        assert!(cubic.window() > 1000, "not convex: {cubic:?}");
    }

    /// Proves that the plateau after a collapse is the window at which congestion avoidance begins (RFC 9438,
    /// 4.8).
    #[test]
    fn cubic_begins_a_new_epoch_after_a_collapse() {
        let (mut now, smoothed) = (0, 20 * SMOOTHED);
        let mut cubic = Congestion::new(Algorithm::Cubic, 800, 16383);
        cubic.packet_lost(0, 1);
        cubic.collapse(2);
        let threshold = 560;
        while cubic.window() < threshold {
            run_with(&mut cubic, &mut now, 1, smoothed);
        }
        run_with(&mut cubic, &mut now, 1, smoothed);
        let Cubic { max, k, .. } = cubic.state.cubic;
        assert_eq!((max as u32, k), (threshold, 0.0), "{cubic:?}");
        run_with(&mut cubic, &mut now, 4, smoothed);
        assert!(cubic.window() <= threshold + 10, "concave towards the old maximum: {cubic:?}");
    }

    /// Proves that with short round trips and 1 % loss the mean window of CUBIC is that of Reno (RFC 9438,
    /// 4.3).
    #[test]
    fn cubic_has_the_window_of_reno_at_one_percent_loss() {
        let mut means = Vec::new();
        for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
            let mut congestion = Congestion::new(algorithm, 10, 1024);
            let (mut now, mut sum, mut transmission, mut random) = (0, 0_u64, 0_u64, Random::new(1));
            for _ in 0..20_000 {
                now += SMOOTHED;
                let window = congestion.window();
                sum += u64::from(window);
                let mut arrived = 0;
                for _ in 0..window {
                    if random.up_to(99) == 0 {
                        congestion.packet_lost(transmission, transmission + u64::from(window));
                    } else {
                        arrived += 1;
                    }
                    transmission += 1;
                }
                congestion.acked(now, &acked(arrived));
            }
            means.push(sum as f64 / 20_000.0);
        }
        assert!(means[1] >= 0.9 * means[0] && means[1] <= 1.3 * means[0], "NewReno and CUBIC: {means:?}");
        assert!(means[0] > 10.0, "{means:?}");
    }

    /// Proves that a spurious cut is undone once, and that undoing without a cut changes nothing.
    #[test]
    fn undone_cut_restores_the_window_once() {
        let mut congestion = Congestion::new(Algorithm::Cubic, 64, 1024);
        assert!(!congestion.undo());
        congestion.packet_lost(0, 64);
        assert!(congestion.undo() && !congestion.undo());
        assert_eq!(congestion.window(), 64);
        congestion.collapse(70);
        assert_eq!(congestion.window(), WINDOW_MIN);
        assert!(!congestion.undo());
    }

    /// Proves that a declared link is filled despite losses, and after persistent congestion only when as
    /// many packets were acked.
    #[test]
    fn window_fills_a_declared_link() {
        let mut congestion = Congestion::new(Algorithm::Private, 64, 1024);
        congestion.declare(170);
        for loss in 0..10 {
            assert!(congestion.packet_lost(loss * 100, loss * 100 + 50));
            assert_eq!(congestion.window(), 170);
        }
        congestion.collapse(2000);
        assert_eq!(congestion.window(), WINDOW_MIN);
        let mut now = 0;
        run(&mut congestion, &mut now, 1);
        assert_eq!(congestion.window(), 2 * WINDOW_MIN);
        run(&mut congestion, &mut now, 10);
        assert!((170..180).contains(&congestion.window()), "{congestion:?}");
        congestion.declare(5000);
        assert_eq!(congestion.window(), 1024, "the limit holds");
    }

    /// Proves that a sender without data does not grow its window, and that idle time does not count for
    /// CUBIC.
    #[test]
    fn unused_windows_do_not_grow() {
        let mut congestion = Congestion::new(Algorithm::Cubic, 64, 1024);
        congestion.packet_lost(0, 1);
        let mut now = 0;
        run(&mut congestion, &mut now, 1);
        let window = congestion.window();
        for _ in 0..1000 {
            now += SMOOTHED;
            congestion.acked(now, &Acked { is_limited: false, ..acked(1) });
        }
        assert_eq!(congestion.window(), window);
        run(&mut congestion, &mut now, 1);
        assert!(congestion.window() <= window + 2, "{congestion:?}");
    }
}
