//! Receives of an operation with data.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{BufferError, Encoding, Message, Octets, SectionHeader, sole_section};
use mpjdev_schedule::{Run, TakenPart};

use super::area::PART;
use super::caller::BlockPart;
use super::slots::Published;
use super::{CHUNK, DataRun, ELEMENTS, SHORT, elements_of};
use crate::collective::failure::{FAILURE_MAX, failure};
use crate::collective::short_messages::SHORT_MAX;
use crate::collective::traffic::{misfit, swap};
use crate::comm::Status;
use crate::error::DeviceError;

/// A received vector.
pub(super) struct Arrived {
    pub(super) message: Message,
    pub(super) source: u32,
    /// Elements before those that this rank takes.
    skip: usize,
    /// Those elements.
    pub(super) count: usize,
    pub(super) is_foreign: bool,
}

impl DataRun<'_> {
    pub(super) fn receive(&mut self, source: u32, into: Run) -> Result<(), DeviceError> {
        let mut spins = self.comm.config().spins;
        let early = match self.await_vector(source, into)? {
            Published::Vector => return self.copy_vector(source, into),
            Published::Nothing => return Ok(()),
            Published::ByMessage(early) => early,
        };
        if early.is_none()
            && let Some(octets) = self.take_short(source, into, &mut spins, &mut [0; SHORT_MAX])
        {
            self.area.octets_mut(into)?[..octets.len()].copy_from_slice(octets);
            return Ok(());
        }
        self.receive_message(early, source, into, spins)
    }

    /// Receives a message, which has arrived already if it is given.
    fn receive_message(
        &mut self,
        early: Option<Message>,
        source: u32,
        into: Run,
        spins: u32,
    ) -> Result<(), DeviceError> {
        let arrived = self.arrive_after(early, source, into, spins)?;
        if let Some(Arrived { mut message, source, skip, count, is_foreign }) = arrived {
            self.await_all(source, &mut message)?;
            let size = self.element.size();
            let dest = &mut self.area.octets_mut(into)?[..count * size];
            Octets::new(message.first_slab().words(), ELEMENTS + skip * size, count * size).get_octets(dest);
            if is_foreign {
                swap(dest, size);
            }
        }
        self.area.note_written(into);
        Ok(())
    }

    /// Receives elements that are output only.
    pub(super) fn store(&mut self, source: u32, into: Run) -> Result<(), DeviceError> {
        let part = self.area.output_part(self.caller, into).filter(|_| !self.area.is_short());
        let Some(part) = part else { return self.receive(source, into) };
        if self.exchange.is_some() || self.taken.is_some() {
            match self.await_vector(source, into)? {
                Published::Vector => self.store_vector(source, into, part),
                Published::Nothing => {}
                Published::ByMessage(early) => {
                    self.receive_message(early, source, into, self.comm.config().spins)?;
                }
            }
            return Ok(());
        }
        let Some(Arrived { mut message, source, count, is_foreign, .. }) =
            self.arrive(source, into, self.comm.config().spins)?
        else {
            return Ok(());
        };
        let part = BlockPart { len: count, ..part };
        let is_stored = match message.is_packing() && !is_foreign {
            true => {
                let size = message.first_len() - MESSAGE_OVERHEAD;
                let status = Status { source, tag: self.tag, size, first: None };
                self.caller.store_begun(part, self.comm, &mut message, &status)
            }
            false => {
                self.await_all(source, &mut message)?;
                let octets = elements_of(&message, count * self.element.size());
                self.caller.store(part, octets, is_foreign)
            }
        };
        if let Some(error) = self.caller.take_error() {
            return Err(error);
        }
        self.note(is_stored);
        self.area.note_stored(into);
        Ok(())
    }

    pub(super) fn receive_combine(
        &mut self,
        source: u32,
        into: Run,
        is_lower: bool,
    ) -> Result<(), DeviceError> {
        let mut spins = self.comm.config().spins;
        let early = match self.await_vector(source, into)? {
            Published::Vector => return self.combine_vector(source, into, is_lower),
            Published::Nothing => return Ok(()),
            Published::ByMessage(early) => early,
        };
        if early.is_none()
            && let Some(octets) = self.take_short(source, into, &mut spins, &mut [0; SHORT_MAX])
        {
            return self.combine_short(octets, into, is_lower);
        }
        self.fetch(into)?;
        let arrived = self.arrive_after(early, source, into, spins)?;
        let Some(Arrived { mut message, source, skip, count, is_foreign }) = arrived else {
            return Ok(());
        };
        let size = self.element.size();
        let start = ELEMENTS + skip * size;
        let into = Run { len: count, ..into };
        let len = count * size;
        if len == 0 {
            return Ok(());
        }
        if !self.caller.combines_parts() {
            self.await_all(source, &mut message)?;
            let mut from = vec![0; len];
            Octets::new(message.first_slab().words(), start, len).get_octets(&mut from);
            if is_foreign {
                swap(&mut from, size);
            }
            let is_combined = self.caller.combine(&from, self.area.octets_mut(into)?, is_lower);
            self.note(is_combined);
            return Ok(());
        }
        // The slab stays where it is while the message changes its state.
        let slab = message.first_slab().clone();
        let octets = Octets::new(slab.words(), start, len);
        let mut there = if message.is_packing() { 0 } else { skip * size + len };
        let mut is_combined = true;
        for at in (0..len).step_by(PART) {
            let part = PART.min(len - at);
            there = self.await_part(source, &mut message, skip * size + at + part, there)?;
            let run = Run { start: into.start + at / size, len: part / size };
            is_combined =
                is_combined && self.combine_octets(octets.range(at, part), is_foreign, run, is_lower)?;
        }
        drop(slab);
        self.note(is_combined);
        self.await_all(source, &mut message)?;
        Ok(())
    }

    /// Combines the octets of a short vector with as many elements.
    pub(super) fn combine_short(
        &mut self,
        octets: &[u8],
        into: Run,
        is_lower: bool,
    ) -> Result<(), DeviceError> {
        let into = &mut self.area.octets_mut(into)?[..octets.len()];
        let is_combined = octets.is_empty() || self.caller.combine(octets, into, is_lower);
        self.note(is_combined);
        Ok(())
    }

    /// Waits until `wanted` octets of elements have arrived; `there` have before. Returns the number that
    /// have.
    pub(super) fn await_part(
        &mut self,
        source: u32,
        message: &mut Message,
        wanted: usize,
        there: usize,
    ) -> Result<usize, DeviceError> {
        if wanted <= there {
            return Ok(there);
        }
        let mut keep_waiting = || self.caller.keep_waiting();
        let packed = self.comm.await_packed(source, message, ELEMENTS + wanted, &mut keep_waiting)?;
        Ok(packed - ELEMENTS)
    }

    /// Combines octets of a message with as many elements. False if the caller has failed.
    pub(super) fn combine_octets(
        &mut self,
        octets: Octets<'_>,
        is_foreign: bool,
        into: Run,
        is_lower: bool,
    ) -> Result<bool, DeviceError> {
        let (mut short, mut long);
        let chunk: &mut [u8] = if octets.len() <= SHORT {
            short = [0; SHORT];
            &mut short
        } else {
            long = [0; CHUNK];
            &mut long
        };
        let (size, into) = (self.element.size(), self.area.octets_mut(into)?);
        let mut is_combined = true;
        for (at, into) in (0..).step_by(CHUNK).zip(into.chunks_mut(CHUNK)) {
            let from = &mut chunk[..into.len()];
            octets.range(at, from.len()).get_octets(from);
            if is_foreign {
                swap(from, size);
            }
            is_combined = is_combined && self.caller.combine(from, into, is_lower);
        }
        Ok(is_combined)
    }

    pub(super) fn combine(&mut self, from: Run, into: Run) -> Result<(), DeviceError> {
        self.fetch(from)?;
        self.fetch(into)?;
        if self.failed_at.is_none() {
            let (from, into) = self.area.operands(from, into)?;
            let is_combined = self.caller.combine(from, into, false);
            self.note(is_combined);
        }
        Ok(())
    }

    /// Receives a vector of at most as many elements, and spins for it at first; `None` if this rank or the
    /// source has failed.
    pub(super) fn arrive(
        &mut self,
        source: u32,
        into: Run,
        spins: u32,
    ) -> Result<Option<Arrived>, DeviceError> {
        self.arrive_after(None, source, into, spins)
    }

    /// As [`arrive`](Self::arrive), with a message that has been received already if it is given.
    fn arrive_after(
        &mut self,
        early: Option<Message>,
        source: u32,
        into: Run,
        spins: u32,
    ) -> Result<Option<Arrived>, DeviceError> {
        let most = self.sent_len(into);
        let section = SectionHeader { element: self.element, count: most };
        let capacity = sole_section::primary_len(section).map_err(|error| self.damaged(source, error))?;
        let received = match early {
            Some(message) => Ok(message),
            None => {
                let mut keep_waiting = || self.caller.keep_waiting();
                let capacity = capacity.max(FAILURE_MAX);
                self.comm.receive_message(source, self.tag, capacity, spins, &mut keep_waiting)
            }
        };
        let mut message = match received {
            Ok(message) => message,
            Err(error @ (DeviceError::Truncated { .. } | DeviceError::Damaged { .. })) => {
                self.note_misfit(error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let is_foreign = message.encoding() != Encoding::NATIVE;
        match message.sole_section(self.element, most).map(|(count, _)| count) {
            Ok(count) if self.failed_at.is_none() => {
                let (skip, count) = match self.taken {
                    None => (0, count),
                    Some(TakenPart { skip, of }) if count == of => (skip, into.len),
                    Some(_) => {
                        self.await_all(source, &mut message)?;
                        let rank = self.comm.all_members()[source as usize];
                        self.note_misfit(DeviceError::OtherOperation { rank });
                        return Ok(None);
                    }
                };
                return Ok(Some(Arrived { message, source, skip, count, is_foreign }));
            }
            Ok(_) => self.await_all(source, &mut message)?,
            Err(error) => match failure(&message, self.element) {
                Some(rank) => {
                    self.failed_at.get_or_insert(rank);
                }
                None => self.note_misfit(self.damaged(source, error)),
            },
        }
        Ok(None)
    }

    /// Waits until all octets of a message have arrived.
    pub(super) fn await_all(&mut self, source: u32, message: &mut Message) -> Result<(), DeviceError> {
        if message.is_packing() {
            let len = message.first_len();
            self.comm.await_packed(source, message, len, &mut || self.caller.keep_waiting())?;
        }
        Ok(())
    }

    /// The error of a message that is not one section that fits.
    pub(super) fn damaged(&self, source: u32, error: BufferError) -> DeviceError {
        misfit(error, self.comm.all_members()[source as usize], self.tag)
    }
}
