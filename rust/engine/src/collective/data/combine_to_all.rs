//! The last combination of a block whose result goes to other ranks and to the program: part by part, so that
//! each part is in a cache from its first copy to its last one.

use std::ops::Range;

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Message, Octets, SectionHeader, sole_section};
use mpjdev_schedule::{Run, Step};

use super::caller::BlockPart;
use super::receive::Arrived;
use super::send::others;
use super::{AHEAD_FROM, DataRun, ELEMENTS, PART};
use crate::error::DeviceError;

/// The operand that a block is combined with.
#[derive(Clone, Copy)]
enum Operand {
    /// A message, perhaps as the left operand.
    Message { source: u32, is_lower: bool },
    /// Elements of the area, as the right operand.
    Elements(Run),
}

impl DataRun<'_> {
    /// Carries out two steps in one, if the second sends the result of the first to a range of ranks and no
    /// later step reads it. False if they are other steps.
    pub(super) fn try_combine_to_all(&mut self, steps: &[Step]) -> Result<bool, DeviceError> {
        let [combination, Step::SendToRanks { first, end, from }, later @ ..] = steps else {
            return Ok(false);
        };
        let (operand, into) = match *combination {
            Step::ReceiveCombine { source, into, is_lower } => (Operand::Message { source, is_lower }, into),
            Step::Combine { from: right, into } => (Operand::Elements(right), into),
            _ => return Ok(false),
        };
        if *from != into {
            return Ok(false);
        }
        let dests = *first..*end;
        let is_last = later.iter().all(|step| matches!(step, Step::Store { .. }));
        let is_long = into.len * self.element.size() >= AHEAD_FROM;
        let output = self.area.output_part(self.caller, into);
        match output.filter(|_| is_last && is_long && self.caller.combines_parts()) {
            Some(output) if self.failed_at.is_none() => self.combine_to_all(operand, dests, into, output),
            _ => Ok(false),
        }
    }

    fn combine_to_all(
        &mut self,
        operand: Operand,
        dests: Range<u32>,
        into: Run,
        output: BlockPart,
    ) -> Result<bool, DeviceError> {
        let arrived = match operand {
            Operand::Message { source, .. } => match self.arrive(source, into)? {
                Some(arrived) => Some(arrived),
                // All get the failure.
                None => {
                    self.send(dests, into)?;
                    return Ok(true);
                }
            },
            Operand::Elements(right) => {
                self.fetch(right)?;
                None
            }
        };
        let section = SectionHeader { element: self.element, count: into.len };
        let own = self.comm.rank();
        let len = sole_section::primary_len(section).map_err(|error| self.damaged(own, error))?;
        let mut message = self.outgoing(MESSAGE_OVERHEAD + len)?;
        message.write_headers_of(section);
        let begun = self.begin_send(others(dests, own), &message)?;
        let is_done = self.combine_parts(operand, arrived, into, output, &message, &mut |run, packed| {
            if let Some(packer) = begun.packers.first() {
                packer.publish(packed);
            }
            run.send_packed(&begun);
        })?;
        self.area.note_stored(into);
        self.end_send(begun, &mut message, is_done)?;
        Ok(true)
    }

    /// Packs, combines, sends and stores one part after the other. False if the caller has failed.
    fn combine_parts(
        &mut self,
        operand: Operand,
        mut arrived: Option<Arrived>,
        into: Run,
        output: BlockPart,
        message: &Message,
        publish: &mut dyn FnMut(&Self, usize),
    ) -> Result<bool, DeviceError> {
        let size = self.element.size();
        let len = into.len * size;
        let input = self.area.input_part(self.caller, into);
        if input.is_none() {
            self.fetch(into)?;
        }
        let place = Octets::new(message.first_slab().words(), ELEMENTS, len);
        let slab = arrived.as_ref().map(|arrived| arrived.message.first_slab().clone());
        let mut there =
            arrived.as_ref().map_or(0, |arrived| if arrived.message.is_packing() { 0 } else { len });
        let part_of = |block: BlockPart, at: usize, octets: usize| BlockPart {
            skip: block.skip + at / size,
            len: octets / size,
            ..block
        };
        for at in (0..len).step_by(PART) {
            let octets = PART.min(len - at);
            // Elements that are still input need memory for one part only.
            let start = into.start + if input.is_some() { 0 } else { at / size };
            let run = Run { start, len: octets / size };
            let mut is_done = match input {
                Some(input) => self.area.pack(self.caller, part_of(input, at, octets), run)?,
                None => true,
            };
            is_done = is_done
                && match (operand, &mut arrived, &slab) {
                    (Operand::Message { is_lower, .. }, Some(arrived), Some(slab)) => {
                        // A rank that has passed fewer elements sends a shorter vector.
                        let right = octets.min((arrived.count * size).saturating_sub(at));
                        there = self.await_part(arrived.source, &mut arrived.message, at + right, there)?;
                        let run = Run { len: right / size, ..run };
                        let right = Octets::new(slab.words(), ELEMENTS + at, right);
                        self.combine_octets(right, arrived.is_foreign, run, is_lower)?
                    }
                    (Operand::Elements(right), ..) => {
                        let right = Run { start: right.start + at / size, len: run.len };
                        let (from, into) = self.area.operands(right, run)?;
                        self.caller.combine(from, into, false)
                    }
                    _ => true,
                };
            if !is_done {
                return Ok(false);
            }
            place.range(at, octets).put_octets(self.area.octets_mut(run)?);
            publish(self, ELEMENTS + at + octets);
            if !self.area.store(self.caller, part_of(output, at, octets), run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
