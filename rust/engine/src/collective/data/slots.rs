//! Vectors of an operation that pass through slots: each rank publishes its own once, and reads those of
//! all others where they lie.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Message, Octets};
use mpjdev_schedule::Run;
use mpjdev_transport::slots::SLOT_MAX;

use super::DataRun;
use super::caller::BlockPart;
use crate::collective::exchange::{Arrival, Label, Refusal};
use crate::collective::failure::FAILURE_MAX;
use crate::error::DeviceError;

/// The vector of a rank in an exchange.
pub(super) enum Published {
    /// It is there.
    Vector,
    /// The operation has failed, here or there.
    Nothing,
    /// It is a message, which has arrived already if it is given.
    ByMessage(Option<Message>),
}

impl<'a> DataRun<'a> {
    /// Publishes elements to all ranks, if the operation is an exchange in slots. False if they have to be
    /// sent.
    pub(super) fn publish(&mut self, from: Run) -> Result<bool, DeviceError> {
        let Some(exchange) = self.exchange else { return Ok(false) };
        let label = Label::Vector { element: self.element, count: from.len as u32 };
        let len = from.len * self.element.size();
        if len > SLOT_MAX && self.failed_at.is_none() {
            let Some(place) = exchange.long_place(len)? else { return Ok(false) };
            let is_packed = self.area.pack_vector(self.caller, from, place)?;
            self.note(is_packed);
            if is_packed {
                exchange.publish_long(label);
                return Ok(true);
            }
        }
        self.fetch(from)?;
        Ok(match self.failed_at {
            Some(rank) => exchange.publish(Label::Failure { rank }, &[]),
            None => exchange.publish(label, self.area.octets_mut(from)?),
        })
    }

    /// Waits for what a rank has published.
    pub(super) fn await_vector(&mut self, source: u32, into: Run) -> Result<Published, DeviceError> {
        let Some(exchange) = self.exchange else { return Ok(Published::ByMessage(None)) };
        if !exchange.poll(source, &mut self.has_woken) {
            if exchange.sends_messages(source) {
                return Ok(Published::ByMessage(None));
            }
            let octets = self.sent_len(into) * self.element.size();
            let capacity = (MESSAGE_OVERHEAD + octets + 8).max(FAILURE_MAX);
            let mut keep_waiting = || self.caller.keep_waiting();
            match exchange.await_arrival(source, self.tag, capacity, &mut keep_waiting)? {
                Arrival::InSlot => {}
                Arrival::ByMessage(message) => return Ok(Published::ByMessage(message)),
            }
        }
        match exchange.check_vector(source, self.element, self.sent_len(into), self.tag) {
            Ok(()) if self.failed_at.is_none() => return Ok(Published::Vector),
            Ok(()) => {}
            Err(Refusal::Misfit(error)) => self.note_misfit(error),
            Err(Refusal::Failure { rank }) => {
                self.failed_at.get_or_insert(rank);
            }
        }
        Ok(Published::Nothing)
    }

    /// The elements that a step takes of a vector that is there. They lie in the slot.
    fn taken_octets(&self, source: u32, into: Run) -> Option<Octets<'a>> {
        let size = self.element.size();
        let skip = self.taken.map_or(0, |taken| taken.skip);
        let octets = self.exchange?.octets(source, self.sent_len(into) * size)?;
        Some(octets.range(skip * size, into.len * size))
    }

    /// Copies elements of a vector that is there to their place.
    pub(super) fn copy_vector(&mut self, source: u32, into: Run) -> Result<(), DeviceError> {
        if let Some(octets) = self.taken_octets(source, into) {
            octets.get_octets(self.area.octets_mut(into)?);
        }
        self.area.note_written(into);
        Ok(())
    }

    /// Stores elements of a vector that is there in the output.
    pub(super) fn store_vector(&mut self, source: u32, into: Run, part: BlockPart) {
        if let Some(octets) = self.taken_octets(source, into) {
            let is_stored = self.caller.store(part, octets, false);
            self.note(is_stored);
        }
        self.area.note_stored(into);
    }

    /// Combines elements of a vector that is there with as many others.
    pub(super) fn combine_vector(
        &mut self,
        source: u32,
        into: Run,
        is_lower: bool,
    ) -> Result<(), DeviceError> {
        self.fetch(into)?;
        if let Some(octets) = self.taken_octets(source, into).filter(|_| self.failed_at.is_none()) {
            let is_combined = self.combine_octets(octets, false, into, is_lower)?;
            self.note(is_combined);
        }
        Ok(())
    }
}
