//! Flow control between two processes: the packets that may be in flight in each direction (IMPI 9).
//!
//! ```text
//!   s -> d, as s sees it                          d's side of the same
//!
//!   sent: counted packets that no                 rcvd: counted packets taken off the channel
//!         ProtoAck has answered yet                     that no ProtoAck has answered yet
//!   a counted packet is sent: sent + 1            a counted packet arrives: rcvd + 1
//!   sent = hiwater: no packet may be sent         rcvd = hiwater and one more arrives: violation
//!   ProtoAck arrives: sent - ackmark              rcvd >= ackmark: ProtoAck is sent, rcvd - ackmark
//! ```
//!
//! At any time rcvd at one end is at most sent at the other, so the receiver can enforce hiwater, also while
//! it holds ProtoAcks. Both ends use the same two marks, the minima of the whole job (IMPI 5.5).

use thiserror::Error;

use super::layout::ACKMARK_MIN;

/// The counters of one process for one peer: packets sent to it and received from it.
#[derive(Clone, Debug)]
pub struct Flow {
    ackmark: u32,
    hiwater: u32,
    sent: u32,
    rcvd: u32,
    held: bool,
}

/// Invalid marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("ackmark {ackmark} and hiwater {hiwater}: 1 <= ackmark <= hiwater must hold")]
pub struct MarksError {
    /// Packets that one ProtoAck stands for.
    pub ackmark: u32,
    /// Most packets without a ProtoAck.
    pub hiwater: u32,
}

/// A peer that violates the flow control.
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
    /// A packet beyond hiwater.
    #[error("more than hiwater, {hiwater}, packets without a ProtoAck")]
    Violation {
        /// Most packets without a ProtoAck.
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

    /// Whether a counted packet may be sent.
    #[inline]
    pub const fn is_open(&self) -> bool {
        self.sent < self.hiwater
    }

    /// Whether a ProtoAck is to be sent before anything else.
    #[inline]
    pub const fn is_ack_due(&self) -> bool {
        self.rcvd >= self.ackmark && !self.held
    }

    /// Counted packets that are sent and not answered by a ProtoAck; at most hiwater.
    #[inline]
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    /// Counted packets that are received and not answered by a ProtoAck; at most hiwater.
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

    /// Holds or releases ProtoAcks; due ones are sent at once when released. While they are held the peer
    /// sends at most hiwater packets, which bounds the memory at the receiver (IMPI 18, 8).
    #[inline]
    pub const fn hold_acks(&mut self, hold: bool) {
        self.held = hold;
    }

    /// A counted packet is sent; only while [`is_open`](Self::is_open).
    #[inline]
    pub const fn count_sent(&mut self) {
        debug_assert!(self.is_open());
        self.sent += 1;
    }

    /// A counted packet was read from the channel, whether or not a receive matches it: if counting waited
    /// for a receive, the receive of a later message could deadlock (IMPI 9).
    ///
    /// # Errors
    /// The packet is beyond hiwater; nothing changes.
    #[inline]
    pub const fn count_received(&mut self) -> Result<(), FlowError> {
        if self.rcvd >= self.hiwater {
            return Err(FlowError::Violation { hiwater: self.hiwater });
        }
        self.rcvd += 1;
        Ok(())
    }

    /// A ProtoAck was received.
    ///
    /// # Errors
    /// It acks more packets than were sent; nothing changes.
    #[inline]
    pub const fn handle_protoack(&mut self) -> Result<(), FlowError> {
        if self.sent < self.ackmark {
            return Err(FlowError::TooManyAcks { ackmark: self.ackmark, sent: self.sent });
        }
        self.sent -= self.ackmark;
        Ok(())
    }

    /// Whether a ProtoAck is to be sent now; true once for each.
    #[inline]
    pub const fn poll_protoack(&mut self) -> bool {
        let due = self.is_ack_due();
        if due {
            self.rcvd -= self.ackmark;
        }
        due
    }

    /// Panics when an invariant does not hold. For tests, after every step.
    pub fn check_invariants(&self) {
        assert!(ACKMARK_MIN <= self.ackmark && self.ackmark <= self.hiwater, "{self:?}");
        assert!(self.sent <= self.hiwater && self.rcvd <= self.hiwater, "{self:?}");
    }
}
