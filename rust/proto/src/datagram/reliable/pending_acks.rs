//! Delayed acks: when a pure ack is sent (5.6).
//!
//! | event | action | source |
//! |---|---|---|
//! | a packet with a sequence number is sent | it carries the ack | 5.6 |
//! | a packet behind a gap, into a gap, a second time, with FIN, with ACK_REQ | now | 5.6 |
//! | a quarter of the window was received since the last ack | now | 5.6 |
//! | every n packets, by a setting | now | 5.6, eager mode |
//! | the socket is drained, no reply is sent, and the oldest packet has waited for D | now | 5.6; D |
//! | the oldest has waited for max_ack_delay | now | 5.6 |
//! | a closed window has opened | now | 5.4 |
//!
//! D is 50 us (5.6) and two intervals between ACK_REQs; the intervals, and the wait for a reply of the
//! program, are choices of ours.
//!
//! On a link slower than one packet in 50 us the socket is drained after each packet of a stream. Its sender
//! requests four acks in a window, so none is needed in between. A sender that has not requested one for
//! twice the usual interval has stopped.
//!
//! A program may need more than 50 us for a reply. It counts as replying from the first message that carries
//! an ack, or that follows a pure ack within max_ack_delay, until an ack has waited max_ack_delay without a
//! reply. The peer's timer allows for that wait.

use super::time::{MICROSECOND, Nanos};

/// The wait for a reply when the socket is drained (5.6).
pub(super) const REPLY_WAIT: Nanos = 50 * MICROSECOND;

/// A quarter of a window, but at least 2 packets if it has 2. A window of 4 would otherwise ack each packet
/// at once, also in a ping-pong, which needs no pure ack.
#[inline]
pub(super) const fn quarter(window: u64) -> u64 {
    match window {
        0 | 1 => 1,
        2..12 => 2,
        _ => window / 4,
    }
}

/// The acks that are pending.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAcks {
    max_delay: Nanos,
    /// Packets after which an ack is sent at once.
    every: u32,
    /// Packets since the last ack.
    count: u32,
    /// When the first of them was received.
    oldest: Nanos,
    /// The cause of an ack that is due now.
    urgency: Option<Urgency>,
    /// When the peer requested an ack last, and the interval to the request before.
    requested_at: Option<Nanos>,
    request_interval: Nanos,
    /// Whether the program replies to messages.
    is_answered: bool,
    /// The receipt that a pure ack has acked before a reply, if a reply may still follow.
    reply_awaited_since: Option<Nanos>,
}

/// The cause of an ack that is due now, if necessary as a pure ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The peer has requested it or needs it, or a quarter of the window was received.
    Needed,
    /// The socket is drained.
    Drained,
    /// The oldest packet has waited for max_ack_delay.
    Late,
}

impl PendingAcks {
    /// For a receive window of `window` packets. `every` is 0, or the number of packets after which an ack is
    /// sent, if less than a quarter of the window.
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

    /// A packet that needs an ack was received; `at_once` if the ack must not wait.
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

    /// Requests an ack now.
    #[inline]
    pub(super) const fn urge(&mut self) {
        self.urgency = Some(Urgency::Needed);
    }

    /// The peer has requested an ack.
    #[inline]
    pub(super) const fn ack_requested(&mut self, now: Nanos) {
        if let Some(before) = self.requested_at.replace(now) {
            self.request_interval = now.saturating_sub(before);
        }
    }

    /// The socket is empty.
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

    /// A message is sent and carries the pending ack.
    #[inline]
    pub(super) fn message_sent(&mut self, now: Nanos) {
        let since = if self.count > 0 { Some(self.oldest) } else { self.reply_awaited_since.take() };
        self.is_answered |= since.is_some_and(|since| now.saturating_sub(since) < self.max_delay);
    }

    /// The cause of an ack that is due now, if necessary as a pure ack.
    #[inline]
    pub(super) const fn urgency(&self) -> Option<Urgency> {
        self.urgency
    }

    /// Whether a received packet is not acked.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.count > 0
    }

    /// When the pending ack is sent at the latest.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Nanos> {
        (self.count > 0 && self.urgency.is_none()).then(|| self.oldest.saturating_add(self.max_delay))
    }

    /// An ack with a complete report was sent.
    #[inline]
    pub(super) const fn ack_sent(&mut self) {
        if self.count > 0 && matches!(self.urgency, Some(Urgency::Drained)) {
            self.reply_awaited_since = Some(self.oldest);
        }
        self.count = 0;
        self.urgency = None;
    }

    /// The ack number was sent, without room for the complete report.
    #[inline]
    pub(super) const fn ack_sent_in_part(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::MILLISECOND;
    use super::*;

    /// Proves that a quarter of the window, or fewer packets by a setting, is acked at once, in small windows
    /// 2 packets.
    #[test]
    fn quarter_of_the_window_is_acked_at_once() {
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

    /// Proves that neither a drained socket nor a timer sends an ack early or without a packet to ack.
    #[test]
    fn ack_waits_50_us_on_a_drained_socket_and_else_max_ack_delay() {
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

    /// Proves that a stream with ACK_REQs is acked on request, and that a drained socket sends the last ack
    /// when the requests stop.
    #[test]
    fn stream_with_ack_requests_is_acked_on_request() {
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
