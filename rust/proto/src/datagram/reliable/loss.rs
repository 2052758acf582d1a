//! Loss detection, and the detection of spurious retransmissions (5.5).
//!
//! | a packet is lost when | source |
//! |---|---|
//! | a transmission 3 or more behind it is acked | 5.5; RFC 9002, 6.1.1 |
//! | a later one is acked, and 9/8 max(S, latest) have passed since it was sent | 5.5; RFC 9002, 6.1.2 |
//!
//! The peer reports duplicates. If a packet was retransmitted for a loss, long enough ago for that report,
//! the retransmission was spurious: the threshold rises by 1, up to 16, and the time by 1/16 of max(S,
//! latest) (a choice of ours; 5.5 has the threshold only). When all retransmissions since the last cut were
//! spurious, the cut is undone.
//!
//! The peer does not report which packet was a duplicate, and networks duplicate packets as well. A duplicate
//! without a retransmission comes from the network; reports are not trusted for a while after it (a choice of
//! ours).

use std::collections::VecDeque;

use super::rtt::Rtt;
use super::time::Nanos;

/// Initial reordering threshold: a packet counts as lost when a transmission this far behind it is acked.
pub const PACKET_THRESHOLD_MIN: u64 = 3;
/// Largest reordering threshold.
pub const PACKET_THRESHOLD_MAX: u64 = 16;
/// Retransmissions that are remembered.
const REMEMBERED: usize = 64;
/// Transmissions for which reports are not trusted after the network has duplicated a packet.
const DISTRUST: u64 = 1024;
/// PTOs after which a retransmission is forgotten: its report was lost, or it was needed.
const FORGOTTEN_AFTER: u64 = 2;

/// Why a packet was retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It counted as lost.
    Loss,
    /// The PTO timer expired: it is a probe.
    Probe,
}

/// The meaning of a reported duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spurious {
    /// A retransmission was spurious.
    pub(super) is_ours: bool,
    /// The last cut is to be undone.
    pub(super) undo: bool,
}

/// Thresholds, and recent retransmissions.
#[derive(Clone, Debug)]
pub(super) struct Detection {
    packet_threshold: u64,
    retransmissions: VecDeque<Retransmission>,
    /// Retransmissions for a loss since the last cut, and how many of those were spurious.
    since_cut: (u32, u32),
    cuts: u64,
    /// The transmission from which on reports are trusted.
    trusted_from: u64,
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    sent_at: Nanos,
    cause: Cause,
    cuts: u64,
}

impl Detection {
    pub(super) const fn new() -> Self {
        Self {
            packet_threshold: PACKET_THRESHOLD_MIN,
            retransmissions: VecDeque::new(),
            since_cut: (0, 0),
            cuts: 0,
            trusted_from: 0,
        }
    }

    #[inline]
    pub(super) const fn packet_threshold(&self) -> u64 {
        self.packet_threshold
    }

    /// The time after which a packet counts as lost if a later one is acked.
    #[inline]
    pub(super) fn time_threshold(&self, rtt: &Rtt) -> Nanos {
        let longest = rtt.longest();
        let more = longest / 8 + longest / 16 * (self.packet_threshold - PACKET_THRESHOLD_MIN);
        longest.saturating_add(more).max(rtt.granularity())
    }

    /// The window was cut.
    pub(super) const fn window_cut(&mut self) {
        self.cuts += 1;
        self.since_cut = (0, 0);
    }

    /// A packet is retransmitted.
    pub(super) fn retransmitted(&mut self, now: Nanos, cause: Cause) {
        if self.retransmissions.len() == REMEMBERED {
            self.retransmissions.pop_front();
        }
        self.retransmissions.push_back(Retransmission { sent_at: now, cause, cuts: self.cuts });
        self.since_cut.0 += u32::from(cause == Cause::Loss);
    }

    /// The peer reports a duplicate; `transmission` is the next transmission.
    pub(super) fn handle_duplicate(&mut self, now: Nanos, rtt: &Rtt, transmission: u64) -> Spurious {
        let forgotten = rtt.pto().saturating_mul(FORGOTTEN_AFTER);
        while self
            .retransmissions
            .front()
            .is_some_and(|retransmission| now.saturating_sub(retransmission.sent_at) > forgotten)
        {
            self.retransmissions.pop_front();
        }
        // The latest retransmission that the report can be about: reports of earlier ones may be lost.
        let is_answered = |retransmission: &Retransmission| {
            now.saturating_sub(retransmission.sent_at) >= rtt.min().unwrap_or(0)
        };
        let place = self.retransmissions.iter().rposition(is_answered);
        let Some(retransmission) = place.and_then(|place| self.retransmissions.remove(place)) else {
            self.trusted_from = transmission + DISTRUST;
            return Spurious::default();
        };
        if retransmission.cause == Cause::Probe {
            return Spurious { is_ours: true, undo: false };
        }
        if transmission < self.trusted_from {
            return Spurious::default();
        }
        self.packet_threshold = (self.packet_threshold + 1).min(PACKET_THRESHOLD_MAX);
        let is_since_cut = retransmission.cuts == self.cuts;
        self.since_cut.1 += u32::from(is_since_cut);
        Spurious { is_ours: true, undo: is_since_cut && self.since_cut.0 == self.since_cut.1 }
    }

    pub(super) fn check(&self) {
        assert!((PACKET_THRESHOLD_MIN..=PACKET_THRESHOLD_MAX).contains(&self.packet_threshold), "{self:?}");
        assert!(self.retransmissions.len() <= REMEMBERED && self.since_cut.1 <= self.since_cut.0, "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::rtt::Timing;
    use super::super::time::MILLISECOND;
    use super::*;

    const RTT: Nanos = 10 * MILLISECOND;

    fn rtt() -> Rtt {
        let mut rtt = Rtt::new(Timing::POLLING, MILLISECOND);
        rtt.sample(RTT, 0);
        rtt
    }

    /// Each spurious loss raises the threshold, up to 16.
    #[test]
    fn threshold_rises_with_each_spurious_loss() {
        let mut detection = Detection::new();
        for round in 0..20 {
            detection.retransmitted(round * 2 * RTT, Cause::Loss);
            assert!(detection.handle_duplicate(round * 2 * RTT + RTT, &rtt(), round).is_ours);
            detection.check();
        }
        assert_eq!(detection.packet_threshold(), PACKET_THRESHOLD_MAX);
        let times = [Detection::new(), detection].map(|detection| detection.time_threshold(&rtt()));
        assert_eq!(times, [RTT * 9 / 8, RTT * 31 / 16]);
    }

    /// Proves that a duplicate without a retransmission makes reports untrusted for a while, and so does a
    /// report that arrives too early or too late.
    #[test]
    fn duplicates_of_the_network_change_no_threshold() {
        for (sent_at, heard_at) in [(RTT, RTT + RTT / 2), (0, 10 * RTT)] {
            let mut detection = Detection::new();
            detection.retransmitted(sent_at, Cause::Loss);
            assert!(!detection.handle_duplicate(heard_at, &rtt(), 100).is_ours);
            detection.retransmitted(11 * RTT, Cause::Loss);
            assert!(!detection.handle_duplicate(13 * RTT, &rtt(), 101).is_ours);
            assert_eq!(detection.packet_threshold(), PACKET_THRESHOLD_MIN);
            detection.retransmissions.clear();
            detection.retransmitted(14 * RTT, Cause::Loss);
            assert!(detection.handle_duplicate(15 * RTT, &rtt(), 100 + DISTRUST).is_ours);
        }
    }

    /// Proves that a cut is undone when all later retransmissions were spurious.
    #[test]
    fn cut_is_undone_when_all_later_retransmissions_were_spurious() {
        let mut detection = Detection::new();
        detection.retransmitted(0, Cause::Loss);
        detection.window_cut();
        detection.retransmitted(1, Cause::Loss);
        detection.retransmitted(2, Cause::Probe);
        detection.retransmitted(3, Cause::Loss);
        let undo = [(); 4].map(|()| detection.handle_duplicate(2 * RTT, &rtt(), 4).undo);
        assert_eq!(undo, [false, false, true, false], "one of two, a question, the other, an earlier cut's");
    }

    /// Proves that the number of remembered retransmissions is bounded.
    #[test]
    fn number_of_remembered_retransmissions_is_bounded() {
        let mut detection = Detection::new();
        for number in 0..1000 {
            detection.retransmitted(number, Cause::Loss);
            detection.check();
        }
    }
}
