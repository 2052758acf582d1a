//! Part of an array: the elements that a send packs, or that a receive stores.

use mpjdev_buffer::patch::check_range;
use mpjdev_buffer::{BufferError, Encoding, Message, Octets, Patch, SectionHeader, layout};
use mpjdev_datatype::Items;
use mpjdev_engine::{Comm, DeviceError, Status};

use crate::array::pipeline::Ahead;
use crate::array::{Array, Indexes, IntArray, Picked};
use crate::boundary::Env;
use crate::comm::Answer;
use crate::error::Failure;
use crate::handle::Selection;

/// The offset of the elements in a message of one section.
pub(crate) const ELEMENTS: usize = layout::PRIMARY_HEADER_LEN + layout::SECTION_HEADER_LEN;

/// The elements of an array that a send packs, or that a receive stores.
pub(crate) struct Part<'a> {
    pub(super) array: &'a Array,
    pub(crate) count: usize,
    pub(super) shape: Shape<'a>,
}

/// The position of these elements in the array.
pub(crate) enum Shape<'a> {
    /// Consecutive elements from this one on.
    Run(usize),
    Picked(Picked<'a>),
    Patch(&'a Patch),
    Items(&'a Items),
    /// From this one on: the octets of a packing unit.
    Unit(usize),
}

impl<'a> Part<'a> {
    /// The checked elements from `off` on; `what` names the array.
    #[inline(always)]
    pub(super) fn check(what: &'static str, array: &'a Array, off: i32, count: i32) -> Answer<Part<'a>> {
        check_range(what, i64::from(off), i64::from(count), array.len())?;
        Ok(Part { array, count: count as usize, shape: Shape::Run(off as usize) })
    }

    /// All elements.
    #[inline(always)]
    pub(super) fn whole(array: &'a Array) -> Part<'a> {
        Part { array, count: array.len(), shape: Shape::Run(0) }
    }

    /// The elements of these indices, which are checked when they are copied.
    pub(super) fn picked(array: &'a Array, count: i32, offs: i32, indexes: &'a IntArray) -> Answer<Part<'a>> {
        check_range("index array", i64::from(offs), i64::from(count), indexes.len())?;
        let picked = Picked { base: 0, indexes: Indexes::Array(indexes), offs: offs as usize };
        Ok(Part { array, count: count as usize, shape: Shape::Picked(picked) })
    }

    /// The elements of these indices, checked before a message is taken. The copy checks each once more,
    /// because another thread may change them meanwhile.
    pub(super) fn scattered(
        env: &mut Env,
        array: &'a Array,
        count: i32,
        offs: i32,
        indexes: &'a IntArray,
    ) -> Answer<Part<'a>> {
        let part = Part::picked(array, count, offs, indexes)?;
        part.check_indices(env)?;
        Ok(part)
    }

    /// Checks the indices, if there are any.
    pub(super) fn check_indices(&self, env: &mut Env) -> Answer<()> {
        match self.shape {
            Shape::Picked(picked) => self.array.check_picked(env, picked, self.count),
            _ => Ok(()),
        }
    }

    /// The elements of a checked patch.
    pub(super) fn patch(array: &'a Array, patch: &'a Patch) -> Part<'a> {
        Part { array, count: patch.count(), shape: Shape::Patch(patch) }
    }

    /// The elements that a posted receive has selected.
    #[inline(always)]
    pub(super) fn selected(array: &'a Array, selection: &'a Selection) -> Part<'a> {
        match selection {
            Selection::Run { off, count } => Part { array, count: *count, shape: Shape::Run(*off) },
            Selection::Picked(indices) => {
                let picked = Picked { base: 0, indexes: Indexes::Captured(indices), offs: 0 };
                Part { array, count: indices.len(), shape: Shape::Picked(picked) }
            }
            Selection::Patch(patch) => Part::patch(array, patch),
            Selection::Items(items) => Part { array, count: items.elements(), shape: Shape::Items(items) },
            Selection::Unit { off, count } => Part { array, count: *count, shape: Shape::Unit(*off) },
        }
    }

    /// The section of all its elements.
    #[inline(always)]
    pub(super) fn section(&self) -> SectionHeader {
        SectionHeader { element: self.array.element(), count: self.count }
    }

    /// Copies the elements of a received message, and returns their number.
    ///
    /// # Errors
    /// The message does not hold one section of this type, or too many elements: the array is as it was.
    #[inline(always)]
    pub(super) fn take(&self, env: &mut Env, message: &Message, status: &Status) -> Answer<usize> {
        if let Shape::Unit(off) = self.shape {
            return self.take_unit(env, off, message, status);
        }
        let (count, place) = self.sole_section(message, status)?;
        self.store(env, count, place, message.encoding() != Encoding::NATIVE)?;
        Ok(count)
    }

    /// Whether [`take`](Self::take) takes the message.
    #[inline(always)]
    pub(super) fn accepts(&self, message: &Message) -> bool {
        match self.shape {
            Shape::Unit(_) => message.unit(self.count).is_ok(),
            _ => message.sole_section(self.array.element(), self.count).is_ok(),
        }
    }

    /// Stores the first `count` elements.
    #[inline(always)]
    pub(crate) fn store(&self, env: &mut Env, count: usize, place: Octets<'_>, swapped: bool) -> Answer<()> {
        match self.shape {
            Shape::Run(off) => self.array.copy_in(env, off, count, place, swapped),
            _ => self.scatter(env, place, swapped),
        }
    }

    /// Copies the octets of a received packing unit, and returns their number.
    #[inline(never)]
    fn take_unit(&self, env: &mut Env, off: usize, message: &Message, status: &Status) -> Answer<usize> {
        let unit = message.unit(self.count).map_err(|error| refused(error, status.source, status.tag))?;
        self.array.copy_in(env, off, unit.len(), unit, false)?;
        for (at, order) in message.unit_orders() {
            self.array.put_octets(env, off + at, &order);
        }
        Ok(unit.len())
    }

    /// As [`take`](Self::take), of a message that its sender may still pack.
    ///
    /// # Errors
    /// Also those of the wait for the elements: the ones before are in the array.
    pub(crate) fn take_begun(
        &self,
        env: &mut Env,
        comm: &Comm,
        message: &mut Message,
        status: &Status,
    ) -> Answer<usize> {
        if !message.is_packing() {
            return self.take(env, message, status);
        }
        let all = message.first_len();
        if message.encoding() != Encoding::NATIVE || !self.is_pipelined() {
            comm.await_packed(status.source, message, all, &mut || env.may_wait())?;
            self.check_end(message, status)?;
            return self.take(env, message, status);
        }
        let (count, _) = self.sole_section(message, status)?;
        let size = self.array.element().size();
        // The slab stays where it is while the message changes its state.
        let memory = message.first_slab().clone();
        let place = Octets::new(memory.words(), ELEMENTS, count * size);
        let mut there = |env: &mut Env, elements: usize| {
            let octets = ELEMENTS + elements * size;
            let there = comm.await_packed(status.source, message, octets, &mut || env.may_wait())?;
            Ok(there.saturating_sub(ELEMENTS) / size)
        };
        match self.shape {
            Shape::Run(off) => self.array.unpack(env, off, count, place, &mut there),
            Shape::Picked(picked) => self.array.unpack_picked(env, picked, place, &mut there),
            Shape::Patch(patch) => self.array.unpack_patch(env, patch, place, &mut there),
            Shape::Items(items) => self.array.unpack_items(env, items, place, &mut there),
            Shape::Unit(_) => unreachable!("a packing unit is unpacked when all is there"),
        }?;
        comm.await_packed(status.source, message, all, &mut || env.may_wait())?;
        self.check_end(message, status)?;
        Ok(count)
    }

    /// Checks that no objects follow the elements of a message that was taken before its end had arrived.
    fn check_end(&self, message: &Message, status: &Status) -> Answer<()> {
        let checked = message.check_sole_end(self.array.element());
        checked.map_err(|error| refused(error, status.source, status.tag))
    }

    /// The number and the octets of the elements of a received message.
    #[inline(always)]
    fn sole_section<'m>(&self, message: &'m Message, status: &Status) -> Answer<(usize, Octets<'m>)> {
        message
            .sole_section(self.array.element(), self.count)
            .map_err(|error| refused(error, status.source, status.tag))
    }

    #[inline(never)]
    fn scatter(&self, env: &mut Env, place: Octets<'_>, swapped: bool) -> Answer<()> {
        match self.shape {
            Shape::Run(off) | Shape::Unit(off) => {
                self.array.copy_in(env, off, place.len() / self.array.element().size(), place, swapped)
            }
            Shape::Picked(picked) => self.array.scatter_checked(env, picked, place, swapped),
            Shape::Patch(patch) => self.array.str_scatter(env, patch, place, swapped),
            Shape::Items(items) => self.array.scatter_items(env, items, place, swapped),
        }
    }

    /// Whether its elements are packed and unpacked part by part.
    #[inline(always)]
    pub(super) fn is_pipelined(&self) -> bool {
        !self.is_unit() && !self.array.is_bounced()
    }

    /// Whether its octets are a packing unit.
    #[inline(always)]
    pub(super) fn is_unit(&self) -> bool {
        matches!(self.shape, Shape::Unit(_))
    }

    /// Packs the elements of a message that was sent before.
    pub(crate) fn pack(&self, env: &mut Env, ahead: Ahead<'_>) -> Answer<()> {
        match self.shape {
            Shape::Run(off) => self.array.pack(env, off, self.count, ahead),
            Shape::Picked(picked) => self.array.pack_picked(env, picked, ahead),
            Shape::Patch(patch) => self.array.pack_patch(env, patch, ahead),
            Shape::Items(items) => self.array.pack_items(env, items, ahead),
            Shape::Unit(_) => unreachable!("a packing unit is packed before it is sent"),
        }
    }

    /// Copies the elements to a section of this machine's byte order.
    #[inline(always)]
    pub(crate) fn put(&self, env: &mut Env, place: Octets<'_>) -> Answer<()> {
        match self.shape {
            Shape::Run(off) => self.array.copy_out(env, off, self.count, place, false),
            _ => self.gather(env, place),
        }
    }

    #[inline(never)]
    fn gather(&self, env: &mut Env, place: Octets<'_>) -> Answer<()> {
        match self.shape {
            Shape::Run(off) | Shape::Unit(off) => self.array.copy_out(env, off, self.count, place, false),
            Shape::Picked(picked) => self.array.gather(env, picked, place, false),
            Shape::Patch(patch) => self.array.str_gather(env, patch, place, false),
            Shape::Items(items) => self.array.gather_items(env, items, place),
        }
    }
}

/// The failure for a message that the array does not take. A section that is too long though its padded
/// length fits is a truncation as any other.
#[cold]
fn refused(error: BufferError, source: u32, tag: i32) -> Failure {
    match error {
        BufferError::TooLong { needed, capacity } => {
            let (needed, capacity) = (needed as usize, capacity as usize);
            DeviceError::Truncated { needed, capacity, source_rank: source, tag }.into()
        }
        error => error.into(),
    }
}
