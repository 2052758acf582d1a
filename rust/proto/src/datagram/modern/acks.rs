//! When an acknowledgment leaves without waiting for a packet to ride on (5.6).
//!
//! | event | action | source |
//! |---|---|---|
//! | a packet with a sequence number leaves | it carries the acknowledgment | 5.6 |
//! | a packet behind a gap, into a gap, a second time, with FIN, with ACK_REQ, with a mark of congestion | now | 5.6 |
//! | a quarter of the window has come since the last one | now | 5.6 |
//! | every n packets, where the driver wants that | now | 5.6, eager mode |
//! | the socket is drained, and the oldest has waited for 50 us, and as long as between two questions, twice | now | 5.6; the latter a choice of ours |
//! | the oldest has waited for max_ack_delay | now | 5.6 |
//! | the window has opened again that was closed | now | 5.4 |
//!
//! On a link that is slower than one packet in 50 us the socket is drained behind each packet of a stream. Its sender asks four times
//! in a window, so it need not be told in between; one that has not asked for twice as long as before has stopped.

use super::time::{MICROSECOND, Nanos};

/// How long a reply is waited for when there is nothing else to do (5.6).
pub(super) const REPLY_WAIT: Nanos = 50 * MICROSECOND;

/// A quarter of a window, but at least 2 of the packets that it has: a window of 4 would have each of them acknowledged at
/// once, also in a ping-pong, which needs no acknowledgment of its own at all.
#[inline]
pub(super) const fn quarter(window: u64) -> u64 {
    match window {
        0 | 1 => 1,
        2..12 => 2,
        _ => window / 4,
    }
}

/// What is owed to the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acks {
    max_delay: Nanos,
    /// Packets after which one leaves at once.
    every: u32,
    /// Packets since the last one.
    count: u32,
    /// When the first of them came.
    oldest: Nanos,
    is_urgent: bool,
    /// When the peer asked last, and how long after the time before.
    asked_at: Option<Nanos>,
    between: Nanos,
}

impl Acks {
    /// `window` packets may come; `every` is 0 unless the driver wants one more often than each quarter of it.
    pub(super) const fn new(max_delay: Nanos, window: u16, every: u16) -> Self {
        let quarter = quarter(window as u64) as u32;
        let every = if every == 0 || every as u32 > quarter { quarter } else { every as u32 };
        Self { max_delay, every, count: 0, oldest: 0, is_urgent: false, asked_at: None, between: 0 }
    }

    /// A packet that is to be acknowledged has come; at once, if it is of those that may not wait.
    #[inline]
    pub(super) const fn came(&mut self, now: Nanos, at_once: bool) {
        if self.count == 0 {
            self.oldest = now;
        }
        self.count += 1;
        self.is_urgent = self.is_urgent || at_once || self.count >= self.every;
    }

    /// Whatever else there is: the peer has to know, or has asked.
    #[inline]
    pub(super) const fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// The peer has asked: then it is told, and will ask again.
    #[inline]
    pub(super) const fn asked(&mut self, now: Nanos) {
        if let Some(before) = self.asked_at.replace(now) {
            self.between = now.saturating_sub(before);
        }
    }

    /// There is nothing left in the socket.
    #[inline]
    pub(super) fn drained(&mut self, now: Nanos) {
        let wait = REPLY_WAIT.max(self.between.saturating_mul(2));
        self.is_urgent |= self.count > 0 && now.saturating_sub(self.oldest) >= wait;
    }

    /// Time has passed.
    #[inline]
    pub(super) const fn expire(&mut self, now: Nanos) {
        if self.count > 0 && now.saturating_sub(self.oldest) >= self.max_delay {
            self.is_urgent = true;
        }
    }

    /// Whether one leaves now, alone if it has to.
    #[inline]
    pub(super) const fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Whether anything has come that is not acknowledged.
    #[inline]
    pub(super) const fn is_owed(&self) -> bool {
        self.count > 0
    }

    /// When it leaves at the latest.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Nanos> {
        (self.count > 0 && !self.is_urgent).then(|| self.oldest.saturating_add(self.max_delay))
    }

    /// It has left; everything about it was said.
    #[inline]
    pub(super) const fn left(&mut self) {
        self.count = 0;
        self.is_urgent = false;
    }

    /// The number has left, but there was no room for all that had to be said.
    #[inline]
    pub(super) const fn left_in_part(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::MILLISECOND;
    use super::*;

    /// A quarter of the window, or fewer where that is asked for; of small windows 2 packets.
    #[test]
    fn a_quarter_of_the_window_is_acknowledged_at_once() {
        for (window, every, expected) in
            [(64, 0, 16), (64, 2, 2), (64, 100, 16), (64, 1, 1), (3, 0, 2), (1, 0, 1)]
        {
            let mut acks = Acks::new(MILLISECOND, window, every);
            for _ in 1..expected {
                acks.came(0, false);
                assert!(!acks.is_urgent());
            }
            acks.came(0, false);
            assert!(acks.is_urgent() && acks.deadline().is_none());
            acks.left();
            assert!(!acks.is_urgent() && !acks.is_owed());
        }
    }

    /// Neither a drained socket nor a timer is in a hurry, and none owes what it does not have.
    #[test]
    fn a_reply_has_50_us_when_the_socket_is_drained_and_else_max_ack_delay() {
        let mut acks = Acks::new(MILLISECOND, 64, 0);
        acks.drained(REPLY_WAIT);
        acks.expire(MILLISECOND);
        assert!(!acks.is_urgent());
        acks.came(1, false);
        assert_eq!(acks.deadline(), Some(1 + MILLISECOND));
        acks.drained(REPLY_WAIT);
        acks.expire(MILLISECOND);
        assert!(!acks.is_urgent());
        let mut spinning = acks;
        spinning.drained(1 + REPLY_WAIT);
        acks.expire(1 + MILLISECOND);
        assert!(spinning.is_urgent() && acks.is_urgent());
    }

    /// Who asks now and then is told then; who has asked before and does not any more is told soon all the same.
    #[test]
    fn a_stream_that_asks_is_told_when_it_asks() {
        let mut acks = Acks::new(100 * MILLISECOND, 1000, 0);
        for packet in 1..100 {
            let now = packet * MILLISECOND;
            let asks = packet % 10 == 0;
            acks.came(now, asks);
            if asks {
                acks.asked(now);
            }
            acks.drained(now);
            assert_eq!(acks.is_urgent(), asks || (packet < 20 && packet % 2 == 0), "packet {packet}");
            if acks.is_urgent() {
                acks.left();
            }
        }
        acks.drained(91 * MILLISECOND + 20 * MILLISECOND - 1);
        assert!(!acks.is_urgent());
        acks.drained(91 * MILLISECOND + 20 * MILLISECOND);
        assert!(acks.is_urgent());
    }
}
