//! Cancel of a message: the sender's request, the receiver's answer, and packets that cross them (IMPI 8.6).

use super::event::{Control, Event};
use super::message_tx::{Cancel, MessageTx, Phase};
use super::packet::PacketType;
use super::pair::Pair;
use super::pair_error::ProtocolError;

/// The outcome of a [`Pair::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Cancelled {
    /// The message was not sent: it is removed, its octets and its token are free.
    Here,
    /// The peer is asked: [`Event::Cancelled`] or [`Event::NotCancelled`] follows exactly once.
    Asked,
    /// The message is matched, complete or unknown, or the peer has refused a cancel before.
    TooLate,
}

impl Pair {
    /// Cancels a message if that is still possible. A second call has no effect.
    pub fn cancel(&mut self, token: u64) -> Cancelled {
        if self.message_tx.remove_queued(token) {
            return Cancelled::Here;
        }
        let Some(active) = self.message_tx.active(token) else { return Cancelled::TooLate };
        if active.is_answer_due() {
            return Cancelled::Asked;
        }
        let is_open = matches!(active.phase, Phase::Eager | Phase::Unmatched);
        if !is_open || active.cancel == Cancel::Refused {
            return Cancelled::TooLate;
        }
        active.cancel = Cancel::Queued;
        self.controls.push_back(Control { kind: PacketType::Cancel, srqid: token, drqid: 0 });
        Cancelled::Asked
    }

    /// The request of a cancellable short standard message is complete: its token is free, after a cancel
    /// request with the answer to it. Has no effect on other messages.
    pub fn forget(&mut self, token: u64) {
        if self.message_tx.active(token).is_some_and(|a| a.phase == Phase::Eager && !a.is_answer_due()) {
            self.message_tx.remove(token);
        }
    }

    /// The peer requests a cancel. It always gets exactly one answer, also for a matched or unknown message
    /// (rules 2 and 3). The first packet of the message came before, on the same channel (rule 1).
    pub(super) fn handle_cancel(&mut self, srqid: u64) -> Event {
        let withdrawn = self.message_rx.withdraw(srqid);
        let kind = if withdrawn.is_some() { PacketType::CancelYes } else { PacketType::CancelNo };
        self.answer(Control { kind, srqid, drqid: 0 });
        withdrawn.map_or(Event::Nothing, |arrival| Event::Withdraw { arrival })
    }
}

impl MessageTx {
    /// The cancel request of this message is sent.
    pub(super) fn cancel_left(&mut self, token: u64) {
        if let Some(active) = self.active(token) {
            debug_assert_eq!(active.cancel, Cancel::Queued);
            active.cancel = Cancel::Asked;
        }
    }

    /// The message is cancelled, so it was not matched and no SyncAck follows (rule 3).
    pub(super) fn handle_cancelyes(&mut self, srqid: u64) -> Result<Event, ProtocolError> {
        let is_open = self.active(srqid).is_some_and(|active| {
            active.cancel == Cancel::Asked && matches!(active.phase, Phase::Eager | Phase::Unmatched)
        });
        if !is_open {
            return Err(ProtocolError::Answer { kind: PacketType::CancelYes, srqid });
        }
        self.remove(srqid);
        Ok(Event::Cancelled { token: srqid })
    }

    /// The message was matched, or the peer is LAM, which always refuses. A SyncAck came before or follows
    /// (rule 5).
    pub(super) fn handle_cancelno(&mut self, srqid: u64) -> Result<Event, ProtocolError> {
        let Some(active) = self.active(srqid).filter(|active| active.cancel == Cancel::Asked) else {
            return Err(ProtocolError::Answer { kind: PacketType::CancelNo, srqid });
        };
        active.cancel = Cancel::Refused;
        if active.phase == Phase::Eager {
            active.phase = Phase::Done;
        }
        self.remove_if_over(srqid);
        Ok(Event::NotCancelled { token: srqid })
    }
}
