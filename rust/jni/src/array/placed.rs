//! Gather and scatter of items whose elements are a list of runs.

use std::ops::Range;

use mpjdev_buffer::Octets;
use mpjdev_datatype::Items;

use super::access::{Access, Critical};
use super::{Array, CRITICAL_MAX, Indexes, Picked, copy_fixed, fix, kernels};
use crate::boundary::Env;
use crate::error::Failure;

/// Runs that are copied per hold of an array.
const RUNS_MAX: usize = 4096;

impl Array {
    /// Copies the elements of items to consecutive slots of `place`.
    ///
    /// # Errors
    /// The JVM has no memory to hold the array.
    ///
    /// # Panics
    /// The range has another size than the items; callers have checked it. The items were checked against
    /// this array's length.
    pub(crate) fn gather_items(
        &self,
        env: &mut Env,
        items: &Items,
        place: Octets<'_>,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        let count = place.len() / size;
        assert!(count == items.elements() && count * size == place.len());
        if items.has_short_runs() {
            return in_chunks(items, count, |done, picked, n| {
                self.gather(env, picked, place.range(done * size, n * size), false)
            });
        }
        let to = place.as_ptr();
        self.in_runs(env, items.runs(count), Access::Read, |array, run, done| {
            // SAFETY: the run is inside the array, as the items are; the range has room for all of them.
            unsafe { kernels::copy(array.add(run.start * size), to.add(done * size), run.len() * size) }
        })
    }

    /// Copies elements from `place` to the first ones of items, in their order.
    ///
    /// # Errors
    /// As for [`gather_items`](Self::gather_items).
    ///
    /// # Panics
    /// The range has more elements than the items; callers have checked it. The items were checked against
    /// this array's length.
    pub(crate) fn scatter_items(
        &self,
        env: &mut Env,
        items: &Items,
        place: Octets<'_>,
        swapped: bool,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        let count = place.len() / size;
        assert!(count <= items.elements() && count * size == place.len());
        if items.has_short_runs() {
            return in_chunks(items, count, |done, picked, n| {
                self.scatter_checked(env, picked, place.range(done * size, n * size), swapped)
            });
        }
        let (from, fix) = (place.as_ptr().cast_const(), fix(self.element(), swapped, true));
        self.in_runs(env, items.runs(count), Access::Write, |array, run, done| {
            // SAFETY: as in gather_items, with the sides exchanged.
            unsafe {
                copy_fixed(from.add(done * size), array.add(run.start * size), size, run.len(), fix);
            }
        })
    }

    /// Holds the array critically for some runs after the others. `each` gets the address of the array, a run
    /// or a part of one, and the number of elements before it.
    fn in_runs(
        &self,
        env: &mut Env,
        mut runs: impl Iterator<Item = Range<usize>>,
        access: Access,
        mut each: impl FnMut(*mut u8, Range<usize>, usize),
    ) -> Result<(), Failure> {
        let (mut next, mut done) = (runs.next(), 0);
        while next.is_some() {
            let until = done + CRITICAL_MAX / self.element().size();
            let held = Critical::hold(env, self.raw, std::ptr::null_mut(), access)?;
            for _ in 0..RUNS_MAX {
                let Some(run) = next.as_mut().filter(|_| done < until) else { break };
                let end = run.end.min(run.start + until - done);
                each(held.start, run.start..end, done);
                done += end - run.start;
                run.start = end;
                if run.start == run.end {
                    next = runs.next();
                }
            }
        }
        Ok(())
    }
}

/// Calls `each` for the chunks of the first `count` elements with the number of elements before, the indices,
/// and their number.
fn in_chunks(
    items: &Items,
    count: usize,
    mut each: impl FnMut(usize, Picked<'_>, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut done = 0;
    for chunk in items.chunks(count) {
        let indexes = Indexes::Captured(chunk.indices);
        each(done, Picked { base: chunk.base, indexes, offs: 0 }, chunk.indices.len())?;
        done += chunk.indices.len();
    }
    Ok(())
}
