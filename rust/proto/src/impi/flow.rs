//! Flow control between two processes: how many packets may be under way, each way (IMPI 9).
//!
//! ```text
//!   s -> d, as s sees it                          d's side of the same
//!
//!   sent: counted packets that no                 rcvd: counted packets taken off the channel
//!         ProtoAck has answered yet                     that no ProtoAck has answered yet
//!   a counted packet leaves: sent + 1             a counted packet comes: rcvd + 1
//!   sent = hiwater: none may leave                rcvd = hiwater and one more comes: violation
//!   ProtoAck comes: sent - ackmark                rcvd >= ackmark: ProtoAck leaves, rcvd - ackmark
//! ```
//!
//! Whatever is under way, rcvd at the one end is at most sent at the other: so the receiver can hold its peer to hiwater,
//! also while it holds ProtoAcks back. Both ends use the same two marks, the minima of the whole job (IMPI 5.5).

use thiserror::Error;

use super::layout::ACKMARK_MIN;

/// Both counters of one process for one other: what it has sent there, and what has come from there.
#[derive(Clone, Debug)]
pub struct Flow {
    ackmark: u32,
    hiwater: u32,
    sent: u32,
    rcvd: u32,
    held: bool,
}

/// Marks with which nothing could flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("ackmark {ackmark} and hiwater {hiwater}: 1 <= ackmark <= hiwater must hold")]
pub struct MarksError {
    /// Packets that one ProtoAck stands for.
    pub ackmark: u32,
    /// Most packets without a ProtoAck.
    pub hiwater: u32,
}

/// A peer that does not keep to the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FlowError {
    /// A ProtoAck for packets that were never sent.
    #[error("ProtoAck for {ackmark} packets, {sent} are not acknowledged")]
    TooManyAcks {
        /// Packets that a ProtoAck stands for.
        ackmark: u32,
        /// Packets sent and not acknowledged.
        sent: u32,
    },
    /// A packet that had to wait for a ProtoAck.
    #[error("more than hiwater, {hiwater}, packets without a ProtoAck")]
    Violation {
        /// Packets that may come without one.
        hiwater: u32,
    },
}

impl Flow {
    /// Nothing sent, nothing received.
    ///
    /// # Errors
    /// Unless 1 <= ackmark <= hiwater (IMPI 3.5).
    pub const fn new(ackmark: u32, hiwater: u32) -> Result<Self, MarksError> {
        if ackmark < ACKMARK_MIN || ackmark > hiwater {
            return Err(MarksError { ackmark, hiwater });
        }
        Ok(Self { ackmark, hiwater, sent: 0, rcvd: 0, held: false })
    }

    /// Whether a counted packet may leave.
    #[inline]
    pub const fn is_open(&self) -> bool {
        self.sent < self.hiwater
    }

    /// Whether a ProtoAck may leave, and should, before anything else.
    #[inline]
    pub const fn is_ack_due(&self) -> bool {
        self.rcvd >= self.ackmark && !self.held
    }

    /// Counted packets that have left and that no ProtoAck has answered yet; at most hiwater.
    #[inline]
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    /// Counted packets that have come and that no ProtoAck has answered yet; at most hiwater.
    #[inline]
    pub const fn rcvd(&self) -> u32 {
        self.rcvd
    }

    /// Most counted packets without a ProtoAck.
    #[inline]
    pub const fn hiwater(&self) -> u32 {
        self.hiwater
    }

    /// Whether ProtoAcks are held back.
    #[inline]
    pub const fn is_holding_acks(&self) -> bool {
        self.held
    }

    /// Holds ProtoAcks back from now on, or no longer; then those that are due are due at once. Meanwhile the peer
    /// sends at most hiwater packets, so what it can make its receiver keep is bounded (IMPI 18, 8).
    #[inline]
    pub const fn hold_acks(&mut self, hold: bool) {
        self.held = hold;
    }

    /// A counted packet leaves; only while [`is_open`](Self::is_open).
    #[inline]
    pub const fn count_sent(&mut self) {
        debug_assert!(self.is_open());
        self.sent += 1;
    }

    /// A counted packet has been taken off the channel, whether or not anybody waits for it: if this waited for a
    /// receive, one that waits for a later message would wait for ever (IMPI 9).
    ///
    /// # Errors
    /// The peer has sent more than it may; nothing changes.
    #[inline]
    pub const fn count_received(&mut self) -> Result<(), FlowError> {
        if self.rcvd >= self.hiwater {
            return Err(FlowError::Violation { hiwater: self.hiwater });
        }
        self.rcvd += 1;
        Ok(())
    }

    /// A ProtoAck has come.
    ///
    /// # Errors
    /// It answers more packets than have left; nothing changes.
    #[inline]
    pub const fn handle_protoack(&mut self) -> Result<(), FlowError> {
        if self.sent < self.ackmark {
            return Err(FlowError::TooManyAcks { ackmark: self.ackmark, sent: self.sent });
        }
        self.sent -= self.ackmark;
        Ok(())
    }

    /// Takes a ProtoAck that is due; true once for each.
    #[inline]
    pub const fn poll_protoack(&mut self) -> bool {
        let due = self.is_ack_due();
        if due {
            self.rcvd -= self.ackmark;
        }
        due
    }

    /// Panics when the counters are not what they must be after every step.
    pub fn check_invariants(&self) {
        assert!(ACKMARK_MIN <= self.ackmark && self.ackmark <= self.hiwater, "{self:?}");
        assert!(self.sent <= self.hiwater && self.rcvd <= self.hiwater, "{self:?}");
    }
}
