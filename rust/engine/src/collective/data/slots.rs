//! Vectors of a short operation that pass through slots: each rank publishes its own once, and reads those of
//! all others where they lie.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{BufferError, Message};
use mpjdev_schedule::Run;

use super::area::SHORT_MAX;
use super::failure::FAILURE_MAX;
use super::{DataRun, Posted};
use crate::collective::exchange::{Exchange, Label};
use crate::error::DeviceError;

/// Octets of a vector for which a smaller place is prepared.
const ONE_LINE: usize = 64;

/// The vector of a rank in an exchange.
pub(super) enum Published {
    /// It is there: as many elements, for which there is room.
    Vector(usize),
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

    /// Waits for what a rank has published. A shorter vector than there is room for is one of another call if
    /// `is_exact`.
    pub(super) fn await_vector(
        &mut self,
        source: u32,
        into: Run,
        is_exact: bool,
    ) -> Result<Published, DeviceError> {
        let Some(exchange) = self.exchange else { return Ok(Published::ByMessage(None)) };
        if !exchange.poll(source, &mut self.has_woken) {
            if exchange.sends_messages(source) {
                return Ok(Published::ByMessage(None));
            }
            if let Some(other) = self.await_published(exchange, source, into)? {
                return Ok(other);
            }
        }
        let (element, size) = (self.element, self.element.size());
        Ok(match exchange.label(source) {
            Some(Label::Vector { element: found, .. }) if found != element => {
                let mismatch = BufferError::TypeMismatch { wanted: element, found, section: 0 };
                self.note_misfit(self.damaged(source, mismatch));
                Published::Nothing
            }
            Some(Label::Vector { count, .. }) if count as usize > into.len => {
                let len = |count: usize| (MESSAGE_OVERHEAD + count * size) as u64;
                let too_long = BufferError::TooLong { needed: len(count as usize), capacity: len(into.len) };
                self.note_misfit(self.damaged(source, too_long));
                Published::Nothing
            }
            Some(Label::Vector { count, .. }) if is_exact && count as usize != into.len => {
                self.note_misfit(exchange.other_operation(source));
                Published::Nothing
            }
            Some(Label::Vector { count, .. }) if self.failed_at.is_none() => {
                Published::Vector(count as usize)
            }
            Some(Label::Vector { .. }) => Published::Nothing,
            Some(Label::Failure { rank }) => {
                self.failed_at.get_or_insert(rank);
                Published::Nothing
            }
            Some(Label::Barrier) | None => {
                self.note_misfit(exchange.other_operation(source));
                Published::Nothing
            }
        })
    }

    /// Copies a vector that is there to its place.
    pub(super) fn copy_vector(&mut self, source: u32, into: Run) -> Result<(), DeviceError> {
        let place = self.area.octets_mut(into)?;
        self.exchange.inspect(|exchange| exchange.copy(source, place));
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
        self.exchange.inspect(|exchange| exchange.copy(source, vector));
        self.combine_short(vector, into, is_lower)
    }

    /// Waits until a rank has published its vector. Returns what has arrived instead.
    fn await_published(
        &mut self,
        exchange: Exchange<'_>,
        source: u32,
        into: Run,
    ) -> Result<Option<Published>, DeviceError> {
        let capacity = MESSAGE_OVERHEAD + into.len * self.element.size() + 8;
        let comm = self.comm;
        let id = match comm.receive_collective(source, self.tag, capacity.max(FAILURE_MAX), false) {
            Ok(id) => id,
            // The rank may have published its vector before it ended.
            Err(_) if exchange.is_there(source) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut posted = Posted { comm, id, is_done: false };
        loop {
            if exchange.is_there(source) {
                return Ok(None);
            }
            let tested = comm.test(id);
            posted.is_done = !matches!(tested, Ok(None));
            match tested {
                Ok(None) => {}
                Err(_) if exchange.is_there(source) => return Ok(None),
                Ok(Some(_)) if !exchange.note_message(source) => return Err(exchange.other_operation(source)),
                // A rank without slots sends a vector of this length.
                Err(DeviceError::Truncated { .. } | DeviceError::Damaged { .. }) => {
                    return Err(exchange.other_operation(source));
                }
                Ok(Some(done)) => return Ok(Some(Published::ByMessage(done.message))),
                Err(error) => return Err(error),
            }
            if let Some(error) =
                exchange.ended_member().map_or_else(|| comm.check_abandonment(), |e| Ok(Some(e)))?
            {
                return Err(error);
            }
            exchange.wait(source, id, &mut || self.caller.keep_waiting())?;
        }
    }
}
