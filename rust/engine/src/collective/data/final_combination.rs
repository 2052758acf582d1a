//! The last combination of a block whose result goes to the program, and perhaps to other ranks: part by
//! part, so that each part is in a cache from its first copy to its last one.

use std::ops::Range;

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Message, Octets, SectionHeader, sole_section};
use mpjdev_schedule::{Run, Step};

use super::area::PART;
use super::caller::BlockPart;
use super::receive::Arrived;
use super::send::others;
use super::{AHEAD_FROM, DataRun, ELEMENTS};
use crate::error::DeviceError;

/// The operand that a block is combined with.
#[derive(Clone, Copy)]
enum Operand {
    /// A message, perhaps as the left operand.
    Message { source: u32, is_lower: bool },
    /// Elements of the area, as the right operand.
    Elements(Run),
}

/// The operand of a step that combines, and its other operand, which becomes the result.
fn combination(step: &Step) -> Option<(Operand, Run)> {
    match *step {
        Step::ReceiveCombine { source, into, is_lower } => {
            Some((Operand::Message { source, is_lower }, into))
        }
        Step::Combine { from, into } => Some((Operand::Elements(from), into)),
        _ => None,
    }
}

/// A final combination: the result, its place in the output, and the ranks that get it.
struct Final {
    operand: Operand,
    into: Run,
    output: BlockPart,
    dests: Range<u32>,
}

impl DataRun<'_> {
    /// Carries out the first steps in one, if they combine a long block for the program and perhaps for other
    /// ranks, and no later step reads it. Returns their number, 0 if they are other steps.
    pub(super) fn try_combine_finally(&mut self, steps: &[Step]) -> Result<usize, DeviceError> {
        let Some((operand, into)) = steps.first().and_then(combination) else { return Ok(0) };
        if self.exchange.is_some() || self.taken.is_some() {
            return Ok(0);
        }
        let (dests, taken) = match steps.get(1) {
            Some(Step::SendToRanks { first, end, from }) if *from == into => (*first..*end, 2),
            _ => (0..0, 1),
        };
        let is_last = steps[taken..].iter().all(|step| matches!(step, Step::Store { .. }));
        let is_long = into.len * self.element.size() >= AHEAD_FROM;
        let output = self.area.output_part(self.caller, into);
        match output.filter(|_| is_last && is_long && self.caller.combines_parts()) {
            Some(output) if self.failed_at.is_none() => {
                self.combine_finally(Final { operand, into, output, dests })?;
                Ok(taken)
            }
            _ => Ok(0),
        }
    }

    fn combine_finally(&mut self, last: Final) -> Result<(), DeviceError> {
        let Final { operand, into, output, dests } = last;
        let arrived = match operand {
            Operand::Message { source, .. } => match self.arrive(source, into, self.comm.config().spins)? {
                Some(arrived) => Some(arrived),
                // All get the failure.
                None if dests.is_empty() => return Ok(()),
                None => return self.send(dests, into),
            },
            Operand::Elements(right) => {
                self.fetch(right)?;
                None
            }
        };
        if dests.is_empty() {
            let is_done = self.combine_parts(operand, arrived, into, output, None, &mut |_, _| {})?;
            self.area.note_stored(into);
            self.note(is_done);
            return Ok(());
        }
        let section = SectionHeader { element: self.element, count: into.len };
        let own = self.comm.rank();
        let len = sole_section::primary_len(section).map_err(|error| self.damaged(own, error))?;
        let mut message = self.comm.outgoing(MESSAGE_OVERHEAD + len)?;
        message.write_headers_of(section);
        let begun = self.begin_send(others(dests, own), &message)?;
        let is_done =
            self.combine_parts(operand, arrived, into, output, Some(&message), &mut |run, packed| {
                if let Some(packer) = begun.packers.first() {
                    packer.publish(packed);
                }
                run.send_packed(&begun);
            })?;
        self.area.note_stored(into);
        self.end_send(begun, &mut message, is_done)
    }

    /// Packs, combines, sends and stores one part after the other. False if the caller has failed.
    fn combine_parts(
        &mut self,
        operand: Operand,
        mut arrived: Option<Arrived>,
        into: Run,
        output: BlockPart,
        message: Option<&Message>,
        publish: &mut dyn FnMut(&Self, usize),
    ) -> Result<bool, DeviceError> {
        let size = self.element.size();
        let len = into.len * size;
        let input = self.area.input_part(self.caller, into);
        if input.is_none() {
            self.fetch(into)?;
        }
        let place = message.map(|message| Octets::new(message.first_slab().words(), ELEMENTS, len));
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
            if let Some(place) = place {
                place.range(at, octets).put_octets(self.area.octets_mut(run)?);
                publish(self, ELEMENTS + at + octets);
            }
            if !self.area.store(self.caller, part_of(output, at, octets), run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
