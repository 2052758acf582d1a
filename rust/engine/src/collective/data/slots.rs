//! Vectors of a short operation that pass through slots: each rank publishes its own once, and reads those of
//! all others where they lie.

use mpjdev_buffer::Message;
use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_schedule::Run;

use super::DataRun;
use crate::collective::exchange::{Arrival, Label, Refusal};
use crate::collective::failure::FAILURE_MAX;
use crate::collective::short_messages::SHORT_MAX;
use crate::error::DeviceError;

/// Octets of a vector for which a smaller place is prepared.
const ONE_LINE: usize = 64;

/// The vector of a rank in an exchange.
pub(super) enum Published {
    /// It is there.
    Vector,
    /// The operation has failed, here or there.
    Nothing,
    /// It is a message, which has arrived already if it is given.
    ByMessage(Option<Message>),
}

impl DataRun<'_> {
    /// Publishes elements to all ranks, if the operation is an exchange in slots. False if they have to be
    /// sent.
    pub(super) fn publish(&mut self, from: Run) -> Result<bool, DeviceError> {
        let Some(exchange) = self.exchange else { return Ok(false) };
        Ok(match self.failed_at {
            Some(rank) => exchange.publish(Label::Failure { rank }, &[]),
            None => {
                let label = Label::Vector { element: self.element, count: from.len as u32 };
                exchange.publish(label, self.area.octets_mut(from)?)
            }
        })
    }

    /// Waits for what a rank has published.
    pub(super) fn await_vector(&mut self, source: u32, into: Run) -> Result<Published, DeviceError> {
        let Some(exchange) = self.exchange else { return Ok(Published::ByMessage(None)) };
        if !exchange.poll(source, &mut self.has_woken) {
            if exchange.sends_messages(source) {
                return Ok(Published::ByMessage(None));
            }
            let capacity = (MESSAGE_OVERHEAD + into.len * self.element.size() + 8).max(FAILURE_MAX);
            let mut keep_waiting = || self.caller.keep_waiting();
            match exchange.await_arrival(source, self.tag, capacity, &mut keep_waiting)? {
                Arrival::InSlot => {}
                Arrival::ByMessage(message) => return Ok(Published::ByMessage(message)),
            }
        }
        match exchange.check_vector(source, self.element, into.len, self.tag) {
            Ok(()) if self.failed_at.is_none() => return Ok(Published::Vector),
            Ok(()) => {}
            Err(Refusal::Misfit(error)) => self.note_misfit(error),
            Err(Refusal::Failure { rank }) => {
                self.failed_at.get_or_insert(rank);
            }
        }
        Ok(Published::Nothing)
    }

    /// Copies a vector that is there to its place.
    pub(super) fn copy_vector(&mut self, source: u32, into: Run) -> Result<(), DeviceError> {
        let place = self.area.octets_mut(into)?;
        self.exchange.inspect(|exchange| exchange.copy(source, 0, place));
        Ok(())
    }

    /// Combines a vector that is there with as many elements.
    pub(super) fn combine_vector(
        &mut self,
        source: u32,
        into: Run,
        is_lower: bool,
    ) -> Result<(), DeviceError> {
        let (mut short, mut long);
        let len = into.len * self.element.size();
        let vector: &mut [u8] = if len <= ONE_LINE {
            short = [0; ONE_LINE];
            &mut short[..len]
        } else {
            long = [0; SHORT_MAX];
            &mut long[..len]
        };
        self.exchange.inspect(|exchange| exchange.copy(source, 0, vector));
        self.combine_short(vector, into, is_lower)
    }
}
