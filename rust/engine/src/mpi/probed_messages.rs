//! Messages that were taken from the library, indexed by source and tag.

use mpjdev_buffer::layout::PRIMARY_HEADER_LEN;
use mpjdev_buffer::message::parse_first_section;
use mpjdev_buffer::octets::load_word;
use mpjdev_buffer::{SectionHeader, Slab, Type};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::Matcher;
use mpjdev_proto::rts::Rts;
use mpjdev_proto::send_policy::HEADERS_LEN;
use mpjdev_sys::mpi::{Matched, MpiError, Operation};

use super::memory::Octets;
use super::{Rank, Wanted};

/// Receives on a communicator between two spills, while spills find many messages.
const RECEIVES: u32 = 64;
/// The same while spills find few. To spill a message costs as much as to receive it.
const RECEIVES_MAX: u32 = 2048;
/// A spill that finds more messages has found many. A library searches fewer faster than they are spilled.
const FEW: usize = 64;

/// A message that was taken from the library.
#[derive(Debug)]
pub(super) struct ProbedMessage {
    /// Its sender in the group.
    pub(super) source: u32,
    pub(super) tag: i32,
    /// Octets of its first physical message.
    pub(super) len: usize,
    pub(super) what: ProbedForm,
}

/// The form of a spilled message.
#[derive(Debug)]
pub(super) enum ProbedForm {
    Physical(Physical),
    /// The RTS of a rendezvous message.
    Rts(Rts),
}

/// A physical message that was taken.
#[derive(Debug)]
pub(super) enum Physical {
    Here(Slab),
    Arriving(Operation<Octets>),
    /// The library still has its octets.
    Matched(Matched),
}

impl Physical {
    /// The physical message of a taken message with few octets, which have usually arrived.
    pub(super) fn of_short(rank: &Rank, matched: Matched, len: usize) -> Result<Physical, MpiError> {
        let Ok(slab) = rank.source.take_arrived(len) else { return Ok(Physical::Matched(matched)) };
        let mut operation = Operation::receive_matched(rank.mpi, Box::new(Octets(slab)), len, matched)?;
        // No wait here: a library may have to ask the sender for the octets.
        match operation.test()? {
            None => Ok(Physical::Arriving(operation)),
            Some(_) => operation
                .into_owner()
                .map(|Octets(slab)| Physical::Here(slab))
                .or_else(|operation| Ok(Physical::Arriving(operation))),
        }
    }
}

impl ProbedMessage {
    /// Continues the receive of its octets, if they are arriving. A failed one is to be dropped.
    fn advanced(self, failed: &mut Option<MpiError>) -> ProbedMessage {
        let ProbedForm::Physical(Physical::Arriving(mut operation)) = self.what else { return self };
        let physical = match operation.test() {
            Ok(None) => Physical::Arriving(operation),
            Ok(Some(_)) => {
                operation.into_owner().map_or_else(Physical::Arriving, |Octets(slab)| Physical::Here(slab))
            }
            Err(error) => {
                *failed = Some(error);
                Physical::Arriving(operation)
            }
        };
        ProbedMessage { what: ProbedForm::Physical(physical), ..self }
    }

    /// Whether its octets are arriving.
    pub(super) fn is_arriving(&self) -> bool {
        matches!(self.what, ProbedForm::Physical(Physical::Arriving(_)))
    }

    /// The header of its first section, if there is one and it is here.
    pub(super) fn first_section(&self) -> Option<SectionHeader> {
        match &self.what {
            ProbedForm::Physical(Physical::Here(slab)) if self.len >= HEADERS_LEN => {
                parse_first_section([0, PRIMARY_HEADER_LEN].map(|at| load_word(slab.words(), at)))
            }
            ProbedForm::Physical(_) => None,
            ProbedForm::Rts(rts) => rts.first_section.and_then(|(element, count)| {
                Some(SectionHeader { element: Type::from_code(element)?, count: count as usize })
            }),
        }
    }
}

/// The spilled messages of a group, or of a rank.
#[derive(Debug)]
pub(super) struct ProbedMessages {
    matcher: Matcher<(), ProbedMessage>,
    /// Receives until the next spill.
    receives: u32,
    /// Receives between the last spill and the next one.
    interval: u32,
}

impl Default for ProbedMessages {
    fn default() -> ProbedMessages {
        ProbedMessages { matcher: Matcher::default(), receives: RECEIVES, interval: RECEIVES }
    }
}

/// The spilled messages of a communicator, and memory for its next receive.
#[derive(Debug, Default)]
pub(super) struct SpillState {
    /// Spilled messages, which precede all messages that the library has.
    pub(super) messages: ProbedMessages,
    /// The memory of the last receive whose message had arrived before it.
    pub(super) memory: Option<Box<Octets>>,
}

fn selector(wanted: Wanted) -> Selector {
    Selector { context: 0, source: wanted.source, tag: wanted.tag }
}

impl ProbedMessages {
    pub(super) fn add(&mut self, spilled: ProbedMessage) {
        let envelope = Envelope { context: 0, source: spilled.source, tag: spilled.tag };
        self.matcher.add_unexpected(envelope, spilled);
    }

    /// Takes the earliest matching message.
    #[inline]
    pub(super) fn take(&mut self, wanted: Wanted) -> Option<ProbedMessage> {
        match self.matcher.unexpected_len() {
            0 => None,
            _ => self.matcher.take(&selector(wanted)).map(|(_, spilled)| spilled),
        }
    }

    /// Continues the receive of the earliest matching message, if its octets are arriving. Returns the error
    /// of the library; the message is to be dropped then.
    pub(super) fn advance(&mut self, wanted: Wanted) -> Option<MpiError> {
        let mut failed = None;
        self.matcher.update(&selector(wanted), |spilled| spilled.advanced(&mut failed));
        failed
    }

    pub(super) fn find(&mut self, wanted: Wanted) -> Option<&ProbedMessage> {
        self.matcher.probe(&selector(wanted)).map(|(_, spilled)| spilled)
    }

    pub(super) fn take_all(&mut self) -> Vec<ProbedMessage> {
        let taken = std::mem::take(&mut self.matcher).remove_unexpected(|_, _| true);
        taken.into_iter().map(|(_, spilled)| spilled).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.matcher.unexpected_len()
    }

    /// Whether the library's messages are to be spilled before this receive.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.receives -= 1;
        self.receives == 0
    }

    /// Schedules the next spill: after twice as many receives when this one has found few messages.
    pub(super) fn schedule(&mut self, found: usize) {
        self.interval = if found > FEW { RECEIVES } else { (2 * self.interval).min(RECEIVES_MAX) };
        self.receives = self.interval;
    }

    /// Schedules another spill before the next receive, since the last one reached its limit.
    pub(super) fn make_due(&mut self) {
        self.receives = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of receives until a spill is due, when the last one has found this number of messages.
    fn receives_after(messages: &mut ProbedMessages, found: usize) -> usize {
        messages.schedule(found);
        1 + (0..).take_while(|_| !messages.is_due()).count()
    }

    #[test]
    fn spills_of_few_messages_become_rare_and_those_of_many_do_not() {
        let mut messages = ProbedMessages::default();
        assert_eq!(1 + (0..).take_while(|_| !messages.is_due()).count(), 64);
        assert_eq!([0, 64, 1].map(|found| receives_after(&mut messages, found)), [128, 256, 512]);
        assert_eq!([0, 0, 0].map(|found| receives_after(&mut messages, found)), [1024, 2048, 2048]);
        assert_eq!([65, 1000, 0].map(|found| receives_after(&mut messages, found)), [64, 64, 128]);
        messages.make_due();
        assert!(messages.is_due());
    }
}
