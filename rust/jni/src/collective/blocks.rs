//! The blocks of an array that a collective operation sends or receives.

use std::ops::Deref;

use mpjdev_buffer::Octets;
use mpjdev_engine::collective::BlockPart;
use mpjdev_engine::scratch::Scratch;

use crate::array::Array;
use crate::boundary::Env;
use crate::comm::Answer;
use crate::direct::part::Part;
use crate::direct::typed::{Placed, place};
use crate::error::{Fault, reserved};
use crate::types;

/// Blocks; one takes no memory of the heap.
enum List {
    One([Placed; 1]),
    Many(Vec<Placed>),
}

impl Deref for List {
    type Target = [Placed];

    fn deref(&self) -> &[Placed] {
        match self {
            List::One(one) => one,
            List::Many(many) => many,
        }
    }
}

/// The blocks of an array that a call sends or receives.
pub(super) struct Blocks<'a> {
    pub(super) array: &'a Array,
    placed: List,
    /// Items of the first block.
    pub(super) items: i32,
    /// Whether the elements of all blocks follow each other in the array.
    pub(super) is_run: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn none(array: &'a Array) -> Blocks<'a> {
        Blocks { array, placed: List::Many(Vec::new()), items: 0, is_run: false }
    }

    pub(super) fn one(datatype: i64, array: &'a Array, off: i32, count: i32) -> Answer<Blocks<'a>> {
        let placed = List::One([place(datatype, array, off, count)?]);
        Ok(Blocks { array, placed, items: count, is_run: false })
    }

    /// `number` blocks of one length behind each other.
    pub(super) fn equal(
        datatype: i64,
        array: &'a Array,
        off: i32,
        count: i32,
        number: usize,
    ) -> Answer<Blocks<'a>> {
        let mut placed = reserved(number)?;
        let all = i32::try_from(number).ok().and_then(|number| count.checked_mul(number));
        if let Some(all) = all
            && let Ok(all) = place(datatype, array, off, all)
            && all.divide(number, &mut placed)
        {
            return Ok(Blocks { array, placed: List::Many(placed), items: count, is_run: true });
        }
        let extent = types::with(datatype, |datatype| Ok(i64::from(datatype.extent())))?;
        for at in 0..number as i64 {
            let off = i64::from(off) + at * extent * i64::from(count);
            placed.push(place(datatype, array, within(off)?, count)?);
        }
        Ok(Blocks { array, placed: List::Many(placed), items: count, is_run: false })
    }

    /// A block for each offset and count.
    pub(super) fn each(datatype: i64, array: &'a Array, blocks: &[i32]) -> Answer<Blocks<'a>> {
        let mut placed = reserved(blocks.len() / 2)?;
        for block in blocks.chunks_exact(2) {
            placed.push(place(datatype, array, block[0], block[1])?);
        }
        let items = blocks.get(1).copied().unwrap_or(0);
        Ok(Blocks { array, placed: List::Many(placed), items, is_run: false })
    }

    /// The elements of each block.
    pub(super) fn counts(&self) -> Vec<usize> {
        self.placed.iter().map(Placed::count).collect()
    }

    /// The elements of the first block; 0 without one.
    pub(super) fn first(&self) -> usize {
        if self.placed.is_empty() { 0 } else { self.count(0) }
    }

    /// The elements of a block.
    pub(super) fn count(&self, block: usize) -> usize {
        self.placed[block].count()
    }

    /// The elements of a part of a block, or of several blocks if all are a run.
    pub(super) fn part(&self, part: BlockPart) -> Part<'_> {
        self.placed[part.block].elements(self.array, part.skip, part.len)
    }

    /// Whether parts of a block can be copied.
    pub(super) fn is_divisible(&self, block: usize) -> bool {
        self.placed[block].is_run()
    }

    /// Stores octets in the only block, by way of `copy`; false if Java has no memory.
    pub(super) fn set(&self, env: &mut Env, copy: &mut Scratch, octets: &[u8]) -> bool {
        copy.octets()[..octets.len()].copy_from_slice(octets);
        let (part, place) = self.whole(copy);
        part.store(env, part.count, place, false).is_ok()
    }

    /// Copies the elements of the only block to octets, by way of `copy`; false if Java has no memory.
    pub(super) fn get(&self, env: &mut Env, copy: &mut Scratch, octets: &mut [u8]) -> bool {
        let (part, place) = self.whole(copy);
        let is_packed = part.put(env, place).is_ok();
        octets.copy_from_slice(&copy.octets()[..octets.len()]);
        is_packed
    }

    /// All elements of the only block, and as many octets.
    fn whole<'s>(&'s self, copy: &'s Scratch) -> (Part<'s>, Octets<'s>) {
        let len = self.first();
        let place = Octets::new(copy.words(), 0, len * self.array.element().size());
        (self.part(BlockPart { block: 0, skip: 0, len }), place)
    }
}

/// An offset that a Java array can have. The datatype checks the bounds.
fn within(off: i64) -> Answer<i32> {
    i32::try_from(off).map_err(|_| Fault::Unusable { what: "block", why: "it lies outside any array" }.into())
}
