//! An exchange in slots in progress: this rank publishes a vector, and reads those of all others.

use std::sync::Arc;

use mpjdev_buffer::layout::{MESSAGE_OVERHEAD, SECTION_HEADER_LEN};
use mpjdev_buffer::{BufferError, Message, Octets, SectionHeader, SlabError, Type};
use mpjdev_proto::context::collective;
use mpjdev_schedule::Placement;
use mpjdev_transport::slots::{Awaited, LONG_SLOT_MAX, Slots};
use mpjdev_transport::wait::WaitControl;

use super::posted::Posted;
use super::traffic::misfit;
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::exchanges::{Exchanges, Way};
use crate::packet::PacketEngine;
use crate::request::RequestId;

/// Each rank reads the vectors of all others, so there must not be too many.
const RANKS_MAX: usize = 32;
/// Polls between the publication of a vector and the wake of its readers.
const EARLY_POLLS: u32 = 8;

/// Label of what a rank has published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// It has entered a barrier.
    Barrier,
    /// Elements.
    Vector { element: Type, count: u32 },
    /// It has no vector, because the operation has failed at this world rank.
    Failure { rank: u32 },
}

impl Label {
    const BARRIER: u8 = 1;
    const VECTOR: u8 = 2;
    const FAILURE: u8 = 3;

    fn word(self) -> u64 {
        let (kind, element, value) = match self {
            Label::Barrier => (Self::BARRIER, 0, 0),
            Label::Vector { element, count } => (Self::VECTOR, element as u8, count),
            Label::Failure { rank } => (Self::FAILURE, 0, rank),
        };
        u64::from(value) << 32 | u64::from(element) << 8 | u64::from(kind)
    }

    /// Octets of a message in place of the vector, for the profile.
    fn payload_len(self) -> usize {
        let octets = match self {
            Label::Vector { element, count } => SectionHeader { element, count: count as usize }.padded_len(),
            Label::Barrier | Label::Failure { .. } => 0,
        };
        SECTION_HEADER_LEN + octets
    }

    /// The label of a word that another rank has written; `None` if it is none.
    fn of_word(word: u64) -> Option<Label> {
        let value = (word >> 32) as u32;
        match word as u8 {
            Self::BARRIER => Some(Label::Barrier),
            Self::VECTOR => {
                let element = Type::from_code((word >> 8) as u8)?;
                Some(Label::Vector { element, count: value })
            }
            Self::FAILURE => Some(Label::Failure { rank: value }),
            _ => None,
        }
    }
}

/// The reason why the vector of a rank cannot be used.
pub(super) enum Refusal {
    /// A vector that does not fit, or its part in another operation.
    Misfit(DeviceError),
    /// It has no vector: the operation has failed at this world rank.
    Failure { rank: u32 },
}

/// The arrival of a rank's part.
pub(super) enum Arrival {
    InSlot,
    /// By a message: a vector of elements, if there is one.
    ByMessage(Option<Message>),
}

/// An exchange in progress.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    comm: &'a Comm,
    engine: &'a Arc<PacketEngine>,
    slots: &'a dyn Slots,
    exchanges: &'a Exchanges,
    number: u64,
}

impl Comm {
    /// Whether ranks of this communicator exchange short vectors in slots. All members know it alike.
    pub(super) fn has_slots(&self) -> bool {
        matches!(self.placement(), Placement::OneMachine { has_slots: true })
    }

    /// Whether the transport has slots, and all members can read them. [`has_slots`](Self::has_slots) takes
    /// the answer from the placement.
    pub(super) fn finds_slots(&self) -> bool {
        let members = self.all_members();
        (2..=RANKS_MAX).contains(&members.len())
            && self.packet_engine().is_some_and(|engine| {
                engine.transport.slots().is_some()
                    && engine.are_local(members)
                    && engine.first_foreign(members).is_none()
            })
    }

    fn exchanges(&self) -> Option<&Exchanges> {
        self.state().exchanges(|| {
            let engine = self.packet_engine().filter(|_| self.finds_slots())?;
            let (context, members) = (collective(self.context()), self.all_members());
            Exchanges::new(&engine.transport, context, members, self.world_rank())
        })
    }

    /// Begins an exchange in which all vectors are known to pass in slots. `None` if one may be a message.
    pub(super) fn begin_exchange_of_slots(&self) -> Option<Exchange<'_>> {
        let exchanges = self.exchanges().filter(|exchanges| exchanges.are_all_slots())?;
        self.exchange(exchanges.next())
    }

    /// Begins an exchange; `None` if the ranks of this communicator send messages.
    pub(super) fn begin_exchange(&self) -> Option<Exchange<'_>> {
        let exchanges = self.exchanges()?;
        self.exchange(exchanges.next())
    }

    /// The exchange with this number, which has begun.
    pub(super) fn exchange(&self, number: u64) -> Option<Exchange<'_>> {
        let (engine, exchanges) = (self.packet_engine()?, self.exchanges()?);
        Some(Exchange { comm: self, engine, slots: engine.transport.slots()?, exchanges, number })
    }
}

impl<'a> Exchange<'a> {
    /// The number of this exchange in its communicator.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Publishes a vector to all other ranks. False if this rank has no slots, and has to send messages.
    pub(super) fn publish(&self, label: Label, octets: &[u8]) -> bool {
        let Some(own) = self.exchanges.own() else { return false };
        self.slots.publish(own, self.number, label.word(), octets);
        self.count(label);
        true
    }

    fn count(&self, label: Label) {
        let others = self.comm.all_members().iter().filter(|world| **world != self.comm.world_rank());
        others.for_each(|world| mpjdev_profile::sent(*world, || label.payload_len()));
    }

    /// The place of a vector that is not short, to be filled before it is [published](Self::publish_long).
    /// `None` if this rank has no slots.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub(super) fn long_place(&self, len: usize) -> Result<Option<Octets<'a>>, DeviceError> {
        let Some(own) = self.exchanges.own() else { return Ok(None) };
        let memory = DeviceError::Memory(SlabError::System { asked: LONG_SLOT_MAX as u64 });
        let words = self.slots.long_part(own, self.number).ok_or(memory)?;
        Ok(Some(Octets::new(words, 0, len)))
    }

    /// Publishes the vector that is in its place.
    pub(super) fn publish_long(&self, label: Label) {
        if let Some(own) = self.exchanges.own() {
            self.slots.publish_long(own, self.number, label.word());
            self.count(label);
        }
    }

    /// Whether a rank is known to send messages.
    pub(super) fn sends_messages(&self, source: u32) -> bool {
        self.exchanges.way(source).get() == Some(&Way::Messages)
    }

    /// Records that a rank has sent a message in its first exchange. False if it has slots, so that it runs
    /// another operation.
    pub(super) fn note_message(&self, source: u32) -> bool {
        *self.exchanges.way(source).get_or_init(|| Way::Messages) == Way::Messages
    }

    /// The error of a rank that takes part in another operation.
    pub(super) fn other_operation(&self, source: u32) -> DeviceError {
        DeviceError::OtherOperation { rank: self.exchanges.world(source) }
    }

    /// Whether the vector of a rank is there.
    #[inline]
    pub(super) fn is_there(&self, source: u32) -> bool {
        let world = self.exchanges.world(source);
        match self.exchanges.way(source).get() {
            Some(Way::Slots(pair)) => self.slots.is_published(world, *pair, self.number),
            Some(Way::Messages) => false,
            None => self.finds(source, world),
        }
    }

    #[cold]
    fn finds(&self, source: u32, world: u32) -> bool {
        let Some(pair) = self.slots.find(world, self.exchanges.context()) else { return false };
        let way = self.exchanges.way(source).get_or_init(|| Way::Slots(pair));
        matches!(way, Way::Slots(pair) if self.slots.is_published(world, *pair, self.number))
    }

    /// The label of a rank that has published; `None` if it has written none.
    pub(super) fn label(&self, source: u32) -> Option<Label> {
        let Some(Way::Slots(pair)) = self.exchanges.way(source).get() else { return None };
        let world = self.exchanges.world(source);
        let label = Label::of_word(self.slots.label(world, *pair, self.number));
        mpjdev_profile::received(world, || label.map_or(0, Label::payload_len));
        label
    }

    /// Checks that a rank has published a vector of `len` elements. A shorter one is part of another call.
    pub(super) fn check_vector(
        &self,
        source: u32,
        element: Type,
        len: usize,
        tag: i32,
    ) -> Result<(), Refusal> {
        let misfit = |error| Refusal::Misfit(misfit(error, self.exchanges.world(source), tag));
        match self.label(source) {
            Some(Label::Vector { element: found, .. }) if found != element => {
                Err(misfit(BufferError::TypeMismatch { wanted: element, found, section: 0 }))
            }
            Some(Label::Vector { count, .. }) if count as usize > len => {
                let octets = |count: usize| (MESSAGE_OVERHEAD + count * element.size()) as u64;
                Err(misfit(BufferError::TooLong { needed: octets(count as usize), capacity: octets(len) }))
            }
            Some(Label::Vector { count, .. }) if count as usize == len => Ok(()),
            Some(Label::Failure { rank }) => Err(Refusal::Failure { rank }),
            Some(Label::Vector { .. } | Label::Barrier) | None => {
                Err(Refusal::Misfit(self.other_operation(source)))
            }
        }
    }

    /// The `len` octets of the vector of a rank that has published, where they lie.
    pub(super) fn octets(&self, source: u32, len: usize) -> Option<Octets<'a>> {
        let Some(Way::Slots(pair)) = self.exchanges.way(source).get() else { return None };
        let words = self.slots.vector(self.exchanges.world(source), *pair, self.number, len)?;
        Some(Octets::new(words, 0, len))
    }

    /// Copies octets from `skip` on of the vector of a rank that has published.
    pub(super) fn copy(&self, source: u32, skip: usize, into: &mut [u8]) {
        if let Some(Way::Slots(pair)) = self.exchanges.way(source).get() {
            self.slots.copy(self.exchanges.world(source), *pair, self.number, skip, into);
        }
    }

    /// The error of a member that has ended and takes no part in this exchange: no rank can complete it.
    ///
    /// A finished member whose way is unknown may have sent a message before. The receive of it tells.
    pub(super) fn ended_member(&self) -> Option<DeviceError> {
        if self.engine.transport.epoch() == 0 {
            return None;
        }
        let others = (0..).zip(&**self.comm.all_members()).filter(|(member, _)| *member != self.comm.place());
        others.filter(|(member, _)| !self.sends_messages(*member)).find_map(|(member, world)| {
            let error = self.engine.peer_error(*world)?;
            let is_unknown = self.exchanges.way(member).get().is_none();
            // It may have published before it ended.
            let is_missing = !self.is_there(member);
            let may_have_sent = is_unknown && matches!(error, DeviceError::PeerFinished { .. });
            (is_missing && !may_have_sent).then_some(error)
        })
    }

    /// Wakes the ranks that are parked until this one publishes its vector.
    pub(super) fn wake_readers(&self) {
        self.slots.wake_readers(self.comm.all_members());
    }

    /// Spins and yields until the vector of a rank is there. False if the rank sends messages, or the thread
    /// should park.
    ///
    /// The first call wakes the readers of this rank's vector after some polls. By then the store has mostly
    /// left the processor, so that the fence does not wait for it.
    #[inline]
    pub(super) fn poll(&self, source: u32, has_woken: &mut bool) -> bool {
        let is_there = || self.is_there(source);
        let is_early = (0..EARLY_POLLS).any(|_| is_there());
        if !std::mem::replace(has_woken, true) {
            self.wake_readers();
        }
        is_early || !self.sends_messages(source) && self.engine.poll_for(is_there)
    }

    /// Waits until a rank has published its part, or has sent it in a message of this tag and of at most
    /// `capacity` octets. Blocks.
    ///
    /// # Errors
    /// The rank takes part in another operation; a member has ended; the operation was abandoned;
    /// interrupted.
    pub(super) fn await_arrival(
        &self,
        source: u32,
        tag: i32,
        capacity: usize,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Arrival, DeviceError> {
        let comm = self.comm;
        let id = match comm.receive_collective(source, tag, capacity, false) {
            Ok(id) => id,
            // The rank may have published its part before it ended.
            Err(_) if self.is_there(source) => return Ok(Arrival::InSlot),
            Err(error) => return Err(error),
        };
        let mut posted = Posted { comm, id, is_done: false };
        loop {
            if self.is_there(source) {
                return Ok(Arrival::InSlot);
            }
            let tested = comm.test(id);
            posted.is_done = !matches!(tested, Ok(None));
            match tested {
                Ok(None) => {}
                Err(_) if self.is_there(source) => return Ok(Arrival::InSlot),
                Ok(Some(_)) if !self.note_message(source) => return Err(self.other_operation(source)),
                // A rank without slots sends a vector of this length.
                Err(DeviceError::Truncated { .. } | DeviceError::Damaged { .. }) => {
                    return Err(self.other_operation(source));
                }
                Ok(Some(done)) => return Ok(Arrival::ByMessage(done.message)),
                Err(error) => return Err(error),
            }
            if let Some(error) =
                self.ended_member().map_or_else(|| comm.check_abandonment(), |e| Ok(Some(e)))?
            {
                return Err(error);
            }
            self.wait(source, id, wait_control)?;
        }
    }

    /// Waits until the vector of a rank is there, the receive of its message is complete, a member has ended,
    /// or a notice has arrived. Blocks.
    ///
    /// # Errors
    /// Interrupted.
    pub(super) fn wait(
        &self,
        source: u32,
        posted: RequestId,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let world = self.exchanges.world(source);
        let awaited = Awaited { source: world, context: self.exchanges.context(), number: self.number };
        self.slots.begin_wait(awaited);
        let mut is_over = || self.is_there(source) || self.ended_member().is_some();
        let waited = self.comm.wait_collective_or(posted, &mut is_over, wait_control);
        self.slots.end_wait(awaited);
        waited
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn label_is_the_one_of_its_word_and_other_words_have_none() {
        let vector = Label::Vector { element: Type::Double, count: 128 };
        for label in [Label::Barrier, vector, Label::Failure { rank: u32::MAX }] {
            assert_eq!(Label::of_word(label.word()), Some(label));
        }
        assert_eq!([0, 4, 9 << 8 | 2, u64::MAX].map(Label::of_word), [None; 4]);
    }
}
