//! The elements of a schedule: in blocks of the program until a step changes or combines them, then in memory
//! of the operation.

use std::cell::Cell;

use mpjdev_buffer::{Octets, SlabError};
use mpjdev_schedule::{LONG_SLOT, Run, Schedule};
use mpjdev_sys::scratch::Scratch;
use mpjdev_transport::slots::{LONG_SLOT_MAX, SLOT_MAX};

use super::caller::{BlockPart, Caller};
use crate::collective::short_messages::SHORT_MAX;
use crate::error::DeviceError;

/// Octets of a long block that go through a cache at a time.
pub(super) const PART: usize = 16 * 1024;
/// Longest memory that a thread keeps for its next operation.
const KEPT_MAX: usize = 16 << 20;

/// The same at a rank that only sends or only receives: a longer block takes fewer copies on its own way.
const ONE_WAY_MAX: usize = 256;
const _: () = assert!(LONG_SLOT == LONG_SLOT_MAX, "the table of choices knows the slots");

/// Octets of the longest area of a short operation.
const AREA_MAX: usize = 4 * SHORT_MAX;

thread_local! {
    static KEPT: Cell<Option<Scratch>> = const { Cell::new(None) };
}

/// The area of one rank in one operation.
pub(super) struct Area<'a> {
    schedule: &'a Schedule,
    /// Octets of an element.
    size: usize,
    /// Whether the blocks are so short that their messages pass without message memory.
    is_short: bool,
    memory: Option<Scratch>,
    /// Whether all elements are in memory, once they have a value.
    is_held: bool,
    /// Elements that are in memory.
    present: Vec<Run>,
    /// Elements of the output that the program has.
    stored: Vec<Run>,
}

/// Whether a schedule is an exchange of vectors that fit slots. All ranks know it alike.
pub(super) fn fits_slots(schedule: &Schedule, size: usize) -> bool {
    schedule.is_exchange && longest_vector(schedule) * size <= LONG_SLOT_MAX
}

/// Elements of the longest vector of an exchange.
fn longest_vector(schedule: &Schedule) -> usize {
    let Schedule { input, output, .. } = schedule;
    let blocks = input.iter().chain(output).map(|block| block.len);
    blocks.chain([schedule.published_len()]).max().unwrap_or(0)
}

fn end(run: Run) -> usize {
    run.start + run.len
}

fn holds(outer: Run, inner: Run) -> bool {
    outer.start <= inner.start && end(inner) <= end(outer)
}

fn overlap(a: Run, b: Run) -> Option<Run> {
    let (start, end) = (a.start.max(b.start), end(a).min(end(b)));
    (start < end).then(|| Run { start, len: end - start })
}

/// Blocks that follow each other, as one run.
fn joined(blocks: &[Run]) -> Option<Run> {
    let follow = |pair: &[Run]| end(pair[0]) == pair[1].start;
    let first = blocks.first().filter(|_| blocks.windows(2).all(follow))?;
    Some(Run { start: first.start, len: blocks.iter().map(|block| block.len).sum() })
}

/// Calls `each` with the parts of a run that overlap none of `others`, until it returns false.
fn each_gap(run: Run, others: &[Run], each: &mut dyn FnMut(Run) -> bool) -> bool {
    let Some((first, others)) = others.split_first() else { return run.len == 0 || each(run) };
    let Some(covered) = overlap(run, *first) else { return each_gap(run, others, each) };
    let before = Run { start: run.start, len: covered.start - run.start };
    let after = Run { start: end(covered), len: end(run) - end(covered) };
    [before, after].into_iter().all(|part| part.len == 0 || each_gap(part, others, each))
}

impl<'a> Area<'a> {
    /// The area of a schedule whose elements have `size` octets, which is perhaps an exchange in slots.
    pub(super) fn new(schedule: &'a Schedule, size: usize, is_exchange: bool) -> Area<'a> {
        let Schedule { len, input, output, .. } = schedule;
        let longest = if input.is_empty() || output.is_empty() { ONE_WAY_MAX } else { SHORT_MAX };
        let is_short = is_exchange && longest_vector(schedule) * size <= SLOT_MAX
            || len * size <= AREA_MAX && input.iter().chain(output).all(|block| block.len * size <= longest);
        Area {
            schedule,
            size,
            is_short,
            memory: None,
            is_held: false,
            present: Vec::new(),
            stored: Vec::new(),
        }
    }

    /// Provides memory for the area, whose elements have no value before they are written.
    fn prepare(&mut self) -> Result<&mut Scratch, DeviceError> {
        if self.memory.is_none() {
            let len = self.memory_len();
            let kept = KEPT.take().filter(|kept| kept.len() >= len);
            self.memory = kept.or_else(|| Scratch::zeroed(len));
        }
        let asked = self.schedule.len * self.size;
        self.memory.as_mut().ok_or(DeviceError::Memory(SlabError::System { asked: asked as u64 }))
    }

    /// Octets of the area. A short operation puts its output together behind its elements.
    fn memory_len(&self) -> usize {
        let Schedule { len, output, .. } = self.schedule;
        let behind = if self.is_short { output.iter().map(|block| block.len).sum() } else { 0 };
        (len + behind) * self.size
    }

    /// The octets of elements, which no step has to have written.
    pub(super) fn octets_mut(&mut self, run: Run) -> Result<&mut [u8], DeviceError> {
        let range = run.start * self.size..end(run) * self.size;
        Ok(&mut self.prepare()?.octets()[range])
    }

    /// Whether the operation is short: all input is in memory before the first step.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Whether the message of these elements passes without message memory.
    pub(super) fn has_short_message(&self, run: Run) -> bool {
        self.is_short && run.len * self.size <= SHORT_MAX
    }

    /// The part of the input that these elements still are.
    pub(super) fn input_part(&self, caller: &dyn Caller, run: Run) -> Option<BlockPart> {
        if self.is_held || self.present.iter().any(|present| overlap(*present, run).is_some()) {
            return None;
        }
        let block = self.schedule.input.iter().position(|block| holds(*block, run))?;
        let input = self.schedule.input[block];
        let is_whole = input == run;
        (is_whole || caller.input_is_divisible(block)).then(|| BlockPart {
            block,
            skip: run.start - input.start,
            len: run.len,
        })
    }

    /// The part of the output that these elements are, if the program can take them now.
    pub(super) fn output_part(&self, caller: &dyn Caller, run: Run) -> Option<BlockPart> {
        let block = self.schedule.output.iter().position(|block| holds(*block, run))?;
        let output = self.schedule.output[block];
        let is_whole = output == run;
        (is_whole || caller.output_is_divisible(block)).then(|| BlockPart {
            block,
            skip: run.start - output.start,
            len: run.len,
        })
    }

    /// Copies those elements to memory that are still input. False if the program has failed.
    pub(super) fn fetch(&mut self, caller: &mut dyn Caller, run: Run) -> Result<bool, DeviceError> {
        if run.len == 0 || self.is_held || self.present.iter().any(|present| holds(*present, run)) {
            return Ok(true);
        }
        let size = self.size;
        self.prepare()?;
        for (block, input) in self.schedule.input.iter().enumerate() {
            let Some(wanted) = overlap(*input, run) else { continue };
            let wanted = if caller.input_is_divisible(block) { wanted } else { *input };
            let Some(memory) = &self.memory else { break };
            let mut pack = |gap: Run| {
                let place = Octets::new(memory.words(), gap.start * size, gap.len * size);
                caller.pack(BlockPart { block, skip: gap.start - input.start, len: gap.len }, place)
            };
            if !each_gap(wanted, &self.present, &mut pack) {
                return Ok(false);
            }
            self.present.push(wanted);
        }
        self.note_written(run);
        Ok(true)
    }

    /// Copies a vector of the input to a place outside the area. False if the program has failed.
    pub(super) fn pack_vector(
        &mut self,
        caller: &mut dyn Caller,
        from: Run,
        place: Octets<'_>,
    ) -> Result<bool, DeviceError> {
        let (input, size) = (&self.schedule.input, self.size);
        if self.is_held || !self.present.is_empty() || joined(input) != Some(from) {
            let is_fetched = self.fetch(caller, from)?;
            place.put_octets(self.octets_mut(from)?);
            return Ok(is_fetched);
        }
        if caller.input_is_run() {
            return Ok(caller.pack(BlockPart { block: 0, skip: 0, len: from.len }, place));
        }
        Ok(input.iter().enumerate().all(|(block, run)| {
            let place = place.range((run.start - from.start) * size, run.len * size);
            run.len == 0 || caller.pack(BlockPart { block, skip: 0, len: run.len }, place)
        }))
    }

    /// Copies a part of the input to these elements. False if the program has failed.
    pub(super) fn pack(
        &mut self,
        caller: &mut dyn Caller,
        part: BlockPart,
        into: Run,
    ) -> Result<bool, DeviceError> {
        let size = self.size;
        let memory = self.prepare()?;
        Ok(caller.pack(part, Octets::new(memory.words(), into.start * size, into.len * size)))
    }

    /// Copies these elements to a part of the output. False if the program has failed.
    pub(super) fn store(
        &mut self,
        caller: &mut dyn Caller,
        part: BlockPart,
        from: Run,
    ) -> Result<bool, DeviceError> {
        let size = self.size;
        let memory = self.prepare()?;
        Ok(caller.store(part, Octets::new(memory.words(), from.start * size, from.len * size), false))
    }

    /// Copies all input to memory. No element leaves it before the end.
    pub(super) fn fetch_all(&mut self, caller: &mut dyn Caller) -> Result<bool, DeviceError> {
        let schedule = self.schedule;
        let whole = joined(&schedule.input).filter(|_| caller.input_is_run());
        if let Some(all) = whole.filter(|all| all.len > 0) {
            // One copy in place of one for each block.
            self.is_held = self.pack(caller, BlockPart { block: 0, skip: 0, len: all.len }, all)?;
            return Ok(self.is_held);
        }
        for input in &schedule.input {
            if !self.fetch(caller, *input)? {
                return Ok(false);
            }
        }
        self.is_held = true;
        Ok(true)
    }

    /// Notes that these elements are in memory.
    pub(super) fn note_written(&mut self, run: Run) {
        if run.len > 0 && !self.is_held && !self.present.iter().any(|present| holds(*present, run)) {
            self.present.push(run);
        }
    }

    /// Notes that the program has these elements.
    pub(super) fn note_stored(&mut self, run: Run) {
        match self.stored.last_mut() {
            Some(last) if end(*last) == run.start => last.len += run.len,
            _ if run.len > 0 => self.stored.push(run),
            _ => {}
        }
    }

    /// Copies elements to others, which do not overlap them.
    pub(super) fn copy(&mut self, from: Run, into: usize) -> Result<(), DeviceError> {
        let (from, at) = (from.start * self.size..end(from) * self.size, into * self.size);
        self.prepare()?.octets().copy_within(from, at);
        Ok(())
    }

    /// Two runs of octets that do not overlap, the second to be changed.
    pub(super) fn operands(&mut self, from: Run, into: Run) -> Result<(&[u8], &mut [u8]), DeviceError> {
        let size = self.size;
        let octets = self.prepare()?.octets();
        let middle = from.start.max(into.start) * size;
        let (lower, upper) = octets.split_at_mut(middle);
        let len = from.len * size;
        Ok(match from.start < into.start {
            true => (&lower[from.start * size..][..len], &mut upper[..len]),
            false => (&upper[..len], &mut lower[into.start * size..][..len]),
        })
    }

    /// Stores a block of the output that is input, if parts of both can be copied: part by part, so that each
    /// is in a cache between its two copies. False if the program has failed.
    pub(super) fn store_input(&mut self, caller: &mut dyn Caller, output: Run) -> Result<bool, DeviceError> {
        let most = PART / self.size;
        let mut at = output.start;
        while at < end(output) {
            let part = Run { start: at, len: most.min(end(output) - at) };
            let (Some(from), Some(to)) = (self.input_part(caller, part), self.output_part(caller, part))
            else {
                return Ok(true);
            };
            // The place of the first part serves for all.
            let place = Run { start: output.start, len: part.len };
            if !self.pack(caller, from, place)? || !self.store(caller, to, place)? {
                return Ok(false);
            }
            self.note_stored(part);
            at += part.len;
        }
        Ok(true)
    }

    /// Stores the output that the program does not have yet. False if it has failed.
    pub(super) fn store_all(&mut self, caller: &mut dyn Caller) -> Result<bool, DeviceError> {
        let (schedule, size) = (self.schedule, self.size);
        if self.is_short && self.stored.is_empty() && schedule.output.len() > 1 && caller.output_is_run() {
            return self.store_at_once(caller);
        }
        for (block, output) in schedule.output.iter().enumerate() {
            if self.stored.iter().any(|stored| holds(*stored, *output)) || output.len == 0 {
                continue;
            }
            if !self.is_held && !self.fetch_missing(caller, *output)? {
                return Ok(false);
            }
            let Some(memory) = &self.memory else { continue };
            let mut store = |gap: Run| {
                let octets = Octets::new(memory.words(), gap.start * size, gap.len * size);
                let part = BlockPart { block, skip: gap.start - output.start, len: gap.len };
                caller.store(part, octets, false)
            };
            if !each_gap(*output, &self.stored, &mut store) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores all output of a short operation, whose blocks follow each other in one array.
    fn store_at_once(&mut self, caller: &mut dyn Caller) -> Result<bool, DeviceError> {
        let schedule = self.schedule;
        let all = match joined(&schedule.output) {
            Some(all) => all,
            // A copy within the memory takes less time than one to the program.
            None => {
                let start = schedule.len;
                let mut len = 0;
                for output in &schedule.output {
                    self.copy(*output, start + len)?;
                    len += output.len;
                }
                Run { start, len }
            }
        };
        match all.len {
            0 => Ok(true),
            len => self.store(caller, BlockPart { block: 0, skip: 0, len }, all),
        }
    }

    /// Copies those elements of the output to memory that the program does not have yet.
    fn fetch_missing(&mut self, caller: &mut dyn Caller, output: Run) -> Result<bool, DeviceError> {
        let mut missing = Vec::new();
        each_gap(output, &self.stored, &mut |gap| {
            missing.push(gap);
            true
        });
        for run in missing {
            if !self.fetch(caller, run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for Area<'_> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take().filter(|memory| memory.len() <= KEPT_MAX) {
            KEPT.set(Some(memory));
        }
    }
}
