//! Loss detection: packets that count as lost, and losses that turned out to be none (5.5).
//!
//! | a packet is lost when | source |
//! |---|---|
//! | one that left 3 transmissions or more behind it has come | 5.5; RFC 9002, 6.1.1 |
//! | a later one has come, and 9/8 max(S, latest) have passed since it left | 5.5; RFC 9002, 6.1.2 |
//!
//! The peer says when something came twice. If a packet was sent again for a loss, and long enough ago for that answer, it
//! was no loss: the threshold rises by 1, up to 16, and the time by 1/16 of max(S, latest) with it (a choice of ours; 5.5
//! has the first alone). When all that was sent again since the last cut was in vain, so was the cut.
//!
//! The peer does not say what came twice, and networks make copies as well. One that comes while nothing was sent again is
//! such a copy: for a while the peer's word proves nothing then (a choice of ours).

use std::collections::VecDeque;

use super::rtt::Rtt;
use super::time::Nanos;

/// Transmissions behind a packet after which it is lost, at first.
pub const PACKET_THRESHOLD_MIN: u64 = 3;
/// The same at most.
pub const PACKET_THRESHOLD_MAX: u64 = 16;
/// Packets sent again that are remembered.
const REMEMBERED: usize = 64;
/// Transmissions for which nothing is believed after the network has made a copy.
const DISTRUST: u64 = 1024;
/// What was sent again is forgotten after so many PTOs: the answer to it was lost, or it was needed.
const FORGOTTEN_AFTER: u64 = 2;

/// Why a packet was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It counted as lost.
    Loss,
    /// The timer expired: it was a question.
    Probe,
}

/// What a packet that came twice means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spurious {
    /// A packet was sent twice, and the second time in vain.
    pub(super) is_ours: bool,
    /// The last cut had no reason.
    pub(super) undo: bool,
}

/// Thresholds, and what was sent again.
#[derive(Clone, Debug)]
pub(super) struct Detection {
    packet_threshold: u64,
    retransmissions: VecDeque<Retransmission>,
    /// Packets sent again for a loss since the last cut, and how many of those came twice.
    since_cut: (u32, u32),
    cuts: u64,
    /// The transmission from which on the peer's word is believed.
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

    /// After so long a packet is lost if a later one has come.
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

    /// A packet leaves again.
    pub(super) fn retransmitted(&mut self, now: Nanos, cause: Cause) {
        if self.retransmissions.len() == REMEMBERED {
            self.retransmissions.pop_front();
        }
        self.retransmissions.push_back(Retransmission { sent_at: now, cause, cuts: self.cuts });
        self.since_cut.0 += u32::from(cause == Cause::Loss);
    }

    /// Something came twice, says the peer; `transmission` is the one that leaves next.
    pub(super) fn handle_duplicate(&mut self, now: Nanos, rtt: &Rtt, transmission: u64) -> Spurious {
        let forgotten = rtt.pto().saturating_mul(FORGOTTEN_AFTER);
        while self
            .retransmissions
            .front()
            .is_some_and(|retransmission| now.saturating_sub(retransmission.sent_at) > forgotten)
        {
            self.retransmissions.pop_front();
        }
        // The latest that can be meant: some answers are lost, and what they were about must not be mistaken for this.
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

    /// Each loss that was none raises the threshold, up to 16.
    #[test]
    fn the_threshold_rises_with_each_loss_that_was_none() {
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

    /// What comes twice without having left twice is the network's: then nothing is believed for a while. The same holds
    /// for answers that come too early or too late to be answers.
    #[test]
    fn copies_that_the_network_makes_prove_nothing() {
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

    /// A cut is undone when nothing that was sent again since it was lost.
    #[test]
    fn a_cut_is_undone_when_all_that_followed_was_in_vain() {
        let mut detection = Detection::new();
        detection.retransmitted(0, Cause::Loss);
        detection.window_cut();
        detection.retransmitted(1, Cause::Loss);
        detection.retransmitted(2, Cause::Probe);
        detection.retransmitted(3, Cause::Loss);
        let undo = [(); 4].map(|()| detection.handle_duplicate(2 * RTT, &rtt(), 4).undo);
        assert_eq!(undo, [false, false, true, false], "one of two, a question, the other, an earlier cut's");
    }

    /// What is remembered has a limit.
    #[test]
    fn only_the_latest_are_remembered() {
        let mut detection = Detection::new();
        for number in 0..1000 {
            detection.retransmitted(number, Cause::Loss);
            detection.check();
        }
    }
}
