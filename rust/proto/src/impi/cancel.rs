//! Taking a message back: the sender's request, the receiver's answer, and what may cross them (IMPI 8.6).

use super::message_tx::{Cancel, MessageTx, Phase};
use super::packet::PacketType;
use super::pair::{Control, Event, Pair};
use super::pair_error::ProtocolError;

/// What became of a [`Pair::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Cancelled {
    /// The message had not left: it is gone, its octets and its token are free.
    Here,
    /// The peer is asked: [`Event::Cancelled`] or [`Event::NotCancelled`] comes, exactly once, whatever comes before it.
    Asked,
    /// The message is matched or complete, or was asked for before and refused, or is not known.
    TooLate,
}

impl Pair {
    /// Takes a message back if that is still possible. To ask twice is to ask once.
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

    /// The request of a short standard message that could be cancelled is complete: its token is free. If its cancel was
    /// asked for, it is free with the answer to that. Means nothing for other messages.
    pub fn forget(&mut self, token: u64) {
        if self.message_tx.active(token).is_some_and(|a| a.phase == Phase::Eager && !a.is_answer_due()) {
            self.message_tx.remove(token);
        }
    }

    /// The peer wants a message back: exactly one answer, always, also for a message that was matched or that the machine
    /// does not know (rules 2 and 3). Its first packet came before, on the same channel (rule 1).
    pub(super) fn handle_cancel(&mut self, srqid: u64) -> Event {
        let withdrawn = self.message_rx.withdraw(srqid);
        let kind = if withdrawn.is_some() { PacketType::CancelYes } else { PacketType::CancelNo };
        self.answer(Control { kind, srqid, drqid: 0 });
        withdrawn.map_or(Event::Nothing, |arrival| Event::Withdraw { arrival })
    }
}

impl MessageTx {
    /// The request of this message has left.
    pub(super) fn cancel_left(&mut self, token: u64) {
        if let Some(active) = self.active(token) {
            debug_assert_eq!(active.cancel, Cancel::Queued);
            active.cancel = Cancel::Asked;
        }
    }

    /// The message is gone, so it was not matched; no SyncAck comes any more (rule 3).
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

    /// The message was matched; or the peer is LAM, which refuses always. A SyncAck came before, or comes (rule 5).
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
