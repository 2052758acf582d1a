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

/// The vector of a rank in an exchange.
pub(super) enum Published<'v> {
    /// The octets of at most as many elements as there is room for.
    Octets(&'v [u8]),
    /// The operation has failed, here or there.
    Nothing,
    /// Its vector is a message, which has arrived already if it is given.
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

    /// Waits for what a rank has published, and copies its elements to `vector`.
    pub(super) fn take_published<'v>(
        &mut self,
        source: u32,
        into: Run,
        vector: &'v mut [u8; SHORT_MAX],
    ) -> Result<Published<'v>, DeviceError> {
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
        let mut octets = 0;
        let label = exchange.take(source, |label, copy| {
            if let Some(Label::Vector { element: found, count }) = label
                && found == element
                && count as usize <= into.len
            {
                octets = count as usize * size;
                copy(&mut vector[..octets]);
            }
            label
        });
        Ok(match label {
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
            Some(Label::Vector { .. }) if self.failed_at.is_none() => Published::Octets(&vector[..octets]),
            Some(Label::Vector { .. }) => Published::Nothing,
            Some(Label::Failure { rank }) => {
                self.failed_at.get_or_insert(rank);
                Published::Nothing
            }
            Some(Label::Barrier) | None => {
                self.note_misfit(self.other_operation(source));
                Published::Nothing
            }
        })
    }

    /// Waits until a rank has published its vector. Returns what has arrived instead.
    fn await_published(
        &mut self,
        exchange: Exchange<'_>,
        source: u32,
        into: Run,
    ) -> Result<Option<Published<'static>>, DeviceError> {
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
                Ok(Some(_)) if !exchange.note_message(source) => return Err(self.other_operation(source)),
                // A rank without slots sends a vector of this length.
                Err(DeviceError::Truncated { .. } | DeviceError::Damaged { .. }) => {
                    return Err(self.other_operation(source));
                }
                Ok(Some(done)) => return Ok(Some(Published::ByMessage(done.message))),
                Err(error) => return Err(error),
            }
            if let Some(error) = comm.check_abandonment()? {
                return Err(error);
            }
            exchange.wait(source, id, &mut || self.caller.keep_waiting())?;
        }
    }
    fn other_operation(&self, source: u32) -> DeviceError {
        DeviceError::OtherOperation { rank: self.comm.all_members()[source as usize] }
    }
}
