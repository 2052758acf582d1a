//! Copies of long messages whose octets the other rank reads or writes meanwhile.

use std::cell::Cell;

use mpjdev_buffer::{Octets, Packer, Patch};

use super::access::Access;
use super::{Array, CRITICAL_MAX, Picked, copy_fixed, fix, kernels, streaming_limit};
use crate::boundary::Env;
use crate::error::Failure;

/// Octets after which the sender publishes its position, and for which the receiver waits at least. A line
/// that crosses between the processors costs little beside their copy.
pub(super) const PART: usize = 16 * 1024;

/// A message that was sent before its elements are packed.
pub(crate) struct Ahead<'a> {
    /// The place of its elements.
    pub(super) place: Octets<'a>,
    /// Octets of the message before that place.
    lead: usize,
    packer: Packer,
    /// Octets of elements that are published.
    published: Cell<usize>,
    /// Whether this process does not read the message again.
    by_reference: bool,
    between: &'a dyn Fn(),
}

impl<'a> Ahead<'a> {
    /// A message whose elements go to `place`, `lead` octets from its start. `between` is called while the
    /// array is not held, after each hold but the last.
    pub(crate) fn new(
        place: Octets<'a>,
        lead: usize,
        packer: Packer,
        by_reference: bool,
        between: &'a dyn Fn(),
    ) -> Ahead<'a> {
        Ahead { place, lead, packer, published: Cell::new(0), by_reference, between }
    }

    /// Publishes that the first `octets` octets of elements are packed, once they are a part more.
    #[inline(always)]
    pub(super) fn publish(&self, octets: usize) {
        if octets - self.published.get() >= PART {
            self.packer.publish(self.lead + octets);
            self.published.set(octets);
        }
    }

    /// Notes that the array is not held, with the number of elements that are packed.
    #[inline(always)]
    pub(super) fn note_release(&self, done: usize) {
        if done > 0 {
            (self.between)();
        }
    }

    /// Publishes that all is packed.
    pub(super) fn finish(self) {
        self.packer.finish();
    }
}

impl Array {
    /// Packs `count` elements from `off` on, and publishes them part by part.
    ///
    /// # Errors
    /// The JVM has no memory to hold the array: the receiver gets an error too.
    ///
    /// # Panics
    /// The elements are not inside the array or the range is too small; callers have checked both.
    pub(crate) fn pack(
        &self,
        env: &mut Env,
        off: usize,
        count: usize,
        ahead: Ahead<'_>,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        assert!(off + count <= self.len() && count * size <= ahead.place.len());
        let to = ahead.place.as_ptr();
        let (step, piece) = (PART / size, CRITICAL_MAX / size);
        let copy: unsafe fn(*const u8, *mut u8, usize) =
            match streaming_limit::is_streamed(count * size) && ahead.by_reference {
                true => kernels::copy_streaming,
                false => kernels::copy,
            };
        for begin in (0..count).step_by(piece) {
            ahead.note_release(begin);
            self.in_pieces(env, piece.min(count - begin), Access::Read, |array, done, n| {
                for at in (begin + done..begin + done + n).step_by(step) {
                    let part = step.min(begin + done + n - at);
                    // SAFETY: `array` holds the elements from off + at on, as many as the part has, and the
                    // range has room for them.
                    unsafe { copy(array.add((off + at) * size), to.add(at * size), part * size) }
                    ahead.publish((at + part) * size);
                }
            })?;
        }
        ahead.finish();
        Ok(())
    }

    /// Packs the elements of a patch, as [`pack`](Self::pack).
    ///
    /// # Errors
    /// As for [`pack`](Self::pack).
    ///
    /// # Panics
    /// The range has another size than the patch; callers have checked it. The patch was checked against this
    /// array's length.
    pub(crate) fn pack_patch(&self, env: &mut Env, patch: &Patch, ahead: Ahead<'_>) -> Result<(), Failure> {
        let size = self.element().size();
        assert!(patch.count() * size == ahead.place.len());
        let to = ahead.place.as_ptr();
        let ready = |_: &mut Env, done: usize| {
            ahead.note_release(done);
            Ok(usize::MAX)
        };
        self.in_blocks(env, patch.blocks(PART / size), Access::Read, ready, |array, block, done| {
            // SAFETY: the block is inside the array, as the patch is; the range has room for all of the
            // patch.
            unsafe { kernels::gather_block(array, to.add(done * size), size, &block) };
            ahead.publish((done + block.rows * block.count) * size);
        })?;
        ahead.finish();
        Ok(())
    }

    /// Packs picked elements, as [`pack`](Self::pack).
    ///
    /// # Errors
    /// An index outside the array, or as for [`pack`](Self::pack): the receiver gets an error too.
    ///
    /// # Panics
    /// As for [`gather`](Self::gather).
    pub(crate) fn pack_picked(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        ahead: Ahead<'_>,
    ) -> Result<(), Failure> {
        self.gather_parts(env, picked, ahead.place, false, Some((&ahead, 0)))?;
        ahead.finish();
        Ok(())
    }

    /// Copies `count` elements from a range of a message to `off` and following, while its sender packs it.
    /// `there` waits until that many elements have arrived, and returns the number that have.
    ///
    /// # Errors
    /// Those of `there`: the elements before are in the array. The JVM has no memory to hold the array.
    ///
    /// # Panics
    /// As for [`pack`](Self::pack).
    pub(crate) fn unpack(
        &self,
        env: &mut Env,
        off: usize,
        count: usize,
        place: Octets<'_>,
        there: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        assert!(off + count <= self.len() && count * size <= place.len());
        let (from, fix) = (place.as_ptr().cast_const(), fix(self.element(), false, true));
        self.in_parts(env, count, there, |env, done, n| {
            self.in_pieces(env, n, Access::Write, |array, before, n| {
                let at = done + before;
                // SAFETY: `array` has room for the elements from off + at on, and the range holds n of them.
                unsafe { copy_fixed(from.add(at * size), array.add((off + at) * size), size, n, fix) }
            })
        })
    }

    /// Copies elements from `place` to the first ones of a patch, as [`unpack`](Self::unpack).
    ///
    /// # Errors
    /// As for [`unpack`](Self::unpack).
    ///
    /// # Panics
    /// As for [`str_scatter`](Self::str_scatter).
    pub(crate) fn unpack_patch(
        &self,
        env: &mut Env,
        patch: &Patch,
        place: Octets<'_>,
        mut there: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        let (part, count) = (PART / size, place.len() / size);
        // A block has no more elements than a part.
        self.scatter_blocks(env, patch, place, false, part, |env, done| there(env, (done + part).min(count)))
    }

    /// Copies elements from `place` to the picked ones, as [`unpack`](Self::unpack). Their indices were
    /// checked.
    ///
    /// # Errors
    /// As for [`unpack`](Self::unpack) and [`scatter_checked`](Self::scatter_checked).
    ///
    /// # Panics
    /// As for [`gather`](Self::gather).
    pub(crate) fn unpack_picked(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        there: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        self.in_parts(env, place.len() / self.element().size(), there, |env, done, n| {
            self.scatter_range(env, picked, place, done..done + n, false)
        })
    }

    /// Calls `each` with the number of copied elements and that of the next ones, until all are copied.
    pub(super) fn in_parts(
        &self,
        env: &mut Env,
        count: usize,
        mut there: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
        mut each: impl FnMut(&mut Env, usize, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut done = 0;
        while done < count {
            let wanted = (done + PART / self.element().size()).min(count);
            let ready = there(env, wanted)?.clamp(wanted, count);
            each(env, done, ready - done)?;
            done = ready;
        }
        Ok(())
    }
}
