//! Sends of an operation with data.

use std::ops::Range;

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Message, Packer, SectionHeader, sole_section};
use mpjdev_schedule::Run;

use super::caller::{AheadOf, BlockPart};
use super::{AHEAD_FROM, DataRun};
use crate::collective::failure::{failure_section, put_failure};
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::SentAhead;

/// A long message that some ranks have before it is packed.
pub(super) struct BegunSend {
    /// Their packers, which all count in the memory of the message.
    pub(super) packers: Vec<Packer>,
    /// World ranks that have it.
    ahead_to: Vec<u32>,
    /// Ranks that get it when it is packed.
    others: Vec<u32>,
    /// Whether this process does not read it again.
    pub(super) by_reference: bool,
}

impl DataRun<'_> {
    /// Sends one message to each of these ranks but this one, from the next one on and around the end.
    pub(super) fn send(&mut self, dests: Range<u32>, from: Run) -> Result<(), DeviceError> {
        if self.publish(from)? {
            return Ok(());
        }
        if self.area.has_short_message(from) && self.failed_at.is_none() {
            return self.send_short(dests, from);
        }
        let part = match self.failed_at {
            None => self.area.input_part(self.caller, from),
            Some(_) => None,
        };
        if part.is_none() {
            self.fetch(from)?;
        }
        let section = match self.failed_at {
            None => SectionHeader { element: self.element, count: from.len },
            Some(_) => failure_section(self.element),
        };
        let own = self.comm.rank();
        let len = sole_section::primary_len(section).map_err(|error| self.damaged(own, error))?;
        let mut message = self.comm.outgoing(MESSAGE_OVERHEAD + len)?;
        let dests = others(dests, own);
        if let (Some(part), true) = (part, len >= AHEAD_FROM) {
            return self.send_ahead(dests, message, section, part);
        }
        self.write(&mut message, section, part, from)?;
        for dest in dests {
            self.send_message(dest, &message)?;
        }
        Ok(())
    }

    /// Writes a message of these elements, or the message of a failed operation.
    pub(super) fn write(
        &mut self,
        message: &mut Message,
        section: SectionHeader,
        part: Option<BlockPart>,
        from: Run,
    ) -> Result<(), DeviceError> {
        let mut is_packed = true;
        message.write_sole_section(section, |place| {
            match (self.failed_at, part) {
                (Some(rank), _) => put_failure(place, section.element, rank),
                (None, Some(part)) => is_packed = self.caller.pack(part, place),
                (None, None) => place.put_octets(self.area.octets_mut(from)?),
            }
            Ok::<(), DeviceError>(())
        })?;
        if is_packed {
            return Ok(());
        }
        self.note(false);
        self.write(message, failure_section(self.element), None, from)
    }

    pub(super) fn send_message(&mut self, dest: u32, message: &Message) -> Result<(), DeviceError> {
        self.sends.extend(self.comm.start_send(dest, self.tag, message)?);
        Ok(())
    }

    /// Sends a long message of which the headers are written to all ranks that take it before it is packed.
    pub(super) fn begin_send(
        &mut self,
        dests: impl Iterator<Item = u32>,
        message: &Message,
    ) -> Result<BegunSend, DeviceError> {
        let (packers, ahead_to, others) = (Vec::new(), Vec::new(), Vec::new());
        let mut begun = BegunSend { packers, ahead_to, others, by_reference: true };
        for dest in dests {
            match self.comm.engine().send_ahead(self.comm.data_args(dest, self.tag, message))? {
                Some(SentAhead { packer, request, by_reference }) => {
                    begun.packers.push(packer);
                    begun.ahead_to.push(self.comm.all_members()[dest as usize]);
                    self.sends.extend(request);
                    begun.by_reference &= by_reference;
                }
                None => begun.others.push(dest),
            }
        }
        begun.by_reference &= begun.others.is_empty();
        Ok(begun)
    }

    /// Sends the octets that are packed to the ranks of other machines that have the message.
    pub(super) fn send_packed(&self, begun: &BegunSend) {
        begun.ahead_to.iter().for_each(|world| self.comm.engine().send_packed(*world));
    }

    /// Completes a message, or breaks it if it is not packed: its packers are dropped.
    pub(super) fn end_send(
        &mut self,
        begun: BegunSend,
        message: &mut Message,
        is_packed: bool,
    ) -> Result<(), DeviceError> {
        if is_packed {
            begun.packers.into_iter().for_each(Packer::finish);
        } else {
            drop(begun.packers);
        }
        begun.ahead_to.iter().for_each(|world| self.comm.engine().send_packed(*world));
        self.note(is_packed);
        if !is_packed && !begun.others.is_empty() {
            // The other ranks read no octet of a broken message.
            self.write(message, failure_section(self.element), None, Run { start: 0, len: 0 })?;
        }
        for dest in begun.others {
            self.send_message(dest, message)?;
        }
        Ok(())
    }

    /// Sends a long message, and packs it while its receivers read it.
    fn send_ahead(
        &mut self,
        dests: impl Iterator<Item = u32>,
        mut message: Message,
        section: SectionHeader,
        part: BlockPart,
    ) -> Result<(), DeviceError> {
        message.write_headers_of(section);
        let mut begun = self.begin_send(dests, &message)?;
        let is_packed = match begun.packers.pop() {
            Some(packer) => {
                let ahead = AheadOf { message: &message, packer, by_reference: begun.by_reference };
                let (comm, ahead_to) = (self.comm, &begun.ahead_to);
                let send_packed = || ahead_to.iter().for_each(|world| comm.engine().send_packed(*world));
                self.caller.pack_ahead(part, ahead, &send_packed)
            }
            None => {
                let own = self.comm.rank();
                let section = message.sole_section(section.element, section.count);
                let (_, place) = section.map_err(|error| self.damaged(own, error))?;
                self.caller.pack(part, place)
            }
        };
        self.end_send(begun, &mut message, is_packed)
    }
}

/// These ranks but the own one, from the next one on and around the end.
pub(super) fn others(ranks: Range<u32>, own: u32) -> impl Iterator<Item = u32> {
    let len = ranks.end - ranks.start;
    let first = if ranks.contains(&own) { own + 1 - ranks.start } else { 0 };
    (0..len).map(move |at| ranks.start + (first + at) % len).filter(move |dest| *dest != own)
}
