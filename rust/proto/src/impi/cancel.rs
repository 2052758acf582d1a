//! Cancel requests of a peer and the answers to them (IMPI 8.6).
//!
//! Ranks of this project request no cancel over IMPI; ranks of other implementations do.

use super::event::{Control, Event};
use super::packet::PacketType;
use super::pair::Pair;

impl Pair {
    /// The peer requests a cancel. It always gets exactly one answer, also for a matched or unknown message
    /// (rules 2 and 3). The first packet of the message arrived before, on the same channel (rule 1).
    pub(super) fn handle_cancel(&mut self, srqid: u64) -> Event {
        let withdrawn = self.message_rx.withdraw(srqid);
        let kind = if withdrawn.is_some() { PacketType::CancelYes } else { PacketType::CancelNo };
        self.answer(Control { kind, srqid, drqid: 0 });
        withdrawn.map_or(Event::Nothing, |arrival| Event::Withdraw { arrival })
    }
}
