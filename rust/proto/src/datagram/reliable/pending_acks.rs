//! The delay of acknowledgments that no packet carries (5.6).
//!
//! | event | action | source |
//! |---|---|---|
//! | a packet with a sequence number leaves | it carries the acknowledgment | 5.6 |
//! | a packet behind a gap, into a gap, a second time, with FIN, with ACK_REQ | now | 5.6 |
//! | a quarter of the window has come since the last one | now | 5.6 |
//! | every n packets, where the driver wants that | now | 5.6, eager mode |
//! | the socket is drained, the peer is not being answered, and the oldest has waited for 50 us, and as long as between two questions, twice | now | 5.6; but for the 50 us choices of ours |
//! | the oldest has waited for max_ack_delay | now | 5.6 |
//! | the window has opened again that was closed | now | 5.4 |
//!
//! On a link that is slower than one packet in 50 us the socket is drained behind each packet of a stream. Its sender asks four times
//! in a window, so it need not be told in between; one that has not asked for twice as long as before has stopped.
//!
//! A program that answers takes longer than 50 us now and then, and a thread that computes before each answer does so always. The peer is
//! being answered from the first message that carries an acknowledgment, or would have carried one that had left within max_ack_delay
//! before, until an acknowledgment has waited for max_ack_delay in vain. The peer's timer allows for that wait.

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
pub(super) struct PendingAcks {
    max_delay: Nanos,
    /// Packets after which one leaves at once.
    every: u32,
    /// Packets since the last one.
    count: u32,
    /// When the first of them came.
    oldest: Nanos,
    /// Why one leaves now, if it does.
    urgency: Option<Urgency>,
    /// When the peer asked last, and how long after the time before.
    requested_at: Option<Nanos>,
    request_interval: Nanos,
    /// Whether the program answers what comes.
    is_answered: bool,
    /// Since when an answer was waited for that an acknowledgment has left before, if it may still come.
    reply_awaited_since: Option<Nanos>,
}

/// Why an acknowledgment leaves now, alone if it has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The peer has asked or has to know, or a quarter of the window has come.
    Needed,
    /// The socket is drained.
    Drained,
    /// The oldest has waited for max_ack_delay.
    Late,
}

impl PendingAcks {
    /// `window` packets may come; `every` is 0 unless the driver wants one more often than each quarter of it.
    pub(super) const fn new(max_delay: Nanos, window: u16, every: u16) -> Self {
        let quarter = quarter(window as u64) as u32;
        let every = if every == 0 || every as u32 > quarter { quarter } else { every as u32 };
        Self {
            max_delay,
            every,
            count: 0,
            oldest: 0,
            urgency: None,
            requested_at: None,
            request_interval: 0,
            is_answered: false,
            reply_awaited_since: None,
        }
    }

    /// A packet that is to be acknowledged has come; at once, if it is of those that may not wait.
    #[inline]
    pub(super) const fn packet_received(&mut self, now: Nanos, at_once: bool) {
        if self.count == 0 {
            self.oldest = now;
        }
        self.count += 1;
        self.reply_awaited_since = None;
        if at_once || self.count >= self.every {
            self.urge();
        }
    }

    /// Whatever else there is: the peer has to know, or has asked.
    #[inline]
    pub(super) const fn urge(&mut self) {
        self.urgency = Some(Urgency::Needed);
    }

    /// The peer has asked: then it is told, and will ask again.
    #[inline]
    pub(super) const fn ack_requested(&mut self, now: Nanos) {
        if let Some(before) = self.requested_at.replace(now) {
            self.request_interval = now.saturating_sub(before);
        }
    }

    /// There is nothing left in the socket.
    #[inline]
    pub(super) fn handle_drained(&mut self, now: Nanos) {
        let wait = REPLY_WAIT.max(self.request_interval.saturating_mul(2));
        if !self.is_answered && self.count > 0 && now.saturating_sub(self.oldest) >= wait {
            self.urgency.get_or_insert(Urgency::Drained);
        }
    }

    /// Time has passed.
    #[inline]
    pub(super) fn expire(&mut self, now: Nanos) {
        if self.count > 0 && now.saturating_sub(self.oldest) >= self.max_delay {
            self.is_answered = false;
            self.urgency.get_or_insert(Urgency::Late);
        }
    }

    /// A message leaves, and takes with it what is owed.
    #[inline]
    pub(super) fn message_sent(&mut self, now: Nanos) {
        let since = if self.count > 0 { Some(self.oldest) } else { self.reply_awaited_since.take() };
        self.is_answered |= since.is_some_and(|since| now.saturating_sub(since) < self.max_delay);
    }

    /// Why one leaves now, alone if it has to.
    #[inline]
    pub(super) const fn urgency(&self) -> Option<Urgency> {
        self.urgency
    }

    /// Whether anything has come that is not acknowledged.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.count > 0
    }

    /// When it leaves at the latest.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Nanos> {
        (self.count > 0 && self.urgency.is_none()).then(|| self.oldest.saturating_add(self.max_delay))
    }

    /// It has left; everything about it was said.
    #[inline]
    pub(super) const fn ack_sent(&mut self) {
        if self.count > 0 && matches!(self.urgency, Some(Urgency::Drained)) {
            self.reply_awaited_since = Some(self.oldest);
        }
        self.count = 0;
        self.urgency = None;
    }

    /// The number has left, but there was no room for all that had to be said.
    #[inline]
    pub(super) const fn ack_sent_in_part(&mut self) {
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
            let mut acks = PendingAcks::new(MILLISECOND, window, every);
            for _ in 1..expected {
                acks.packet_received(0, false);
                assert!(acks.urgency().is_none());
            }
            acks.packet_received(0, false);
            assert!(acks.urgency().is_some() && acks.deadline().is_none());
            acks.ack_sent();
            assert!(acks.urgency().is_none() && !acks.is_pending());
        }
    }

    /// Neither a drained socket nor a timer is in a hurry, and none owes what it does not have.
    #[test]
    fn a_reply_has_50_us_when_the_socket_is_drained_and_else_max_ack_delay() {
        let mut acks = PendingAcks::new(MILLISECOND, 64, 0);
        acks.handle_drained(REPLY_WAIT);
        acks.expire(MILLISECOND);
        assert!(acks.urgency().is_none());
        acks.packet_received(1, false);
        assert_eq!(acks.deadline(), Some(1 + MILLISECOND));
        acks.handle_drained(REPLY_WAIT);
        acks.expire(MILLISECOND);
        assert!(acks.urgency().is_none());
        let mut spinning = acks;
        spinning.handle_drained(1 + REPLY_WAIT);
        acks.expire(1 + MILLISECOND);
        assert!(spinning.urgency().is_some() && acks.urgency().is_some());
    }

    /// Who asks now and then is told then; who has asked before and does not any more is told soon all the same.
    #[test]
    fn a_stream_that_asks_is_told_when_it_asks() {
        let mut acks = PendingAcks::new(100 * MILLISECOND, 1000, 0);
        for packet in 1..100 {
            let now = packet * MILLISECOND;
            let asks = packet % 10 == 0;
            acks.packet_received(now, asks);
            if asks {
                acks.ack_requested(now);
            }
            acks.handle_drained(now);
            assert_eq!(acks.urgency().is_some(), asks || (packet < 20 && packet % 2 == 0), "packet {packet}");
            if acks.urgency().is_some() {
                acks.ack_sent();
            }
        }
        acks.handle_drained(91 * MILLISECOND + 20 * MILLISECOND - 1);
        assert!(acks.urgency().is_none());
        acks.handle_drained(91 * MILLISECOND + 20 * MILLISECOND);
        assert!(acks.urgency().is_some());
    }
}
