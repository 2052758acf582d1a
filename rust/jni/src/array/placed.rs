//! Gather and scatter of items whose elements are a list of runs.

use std::ops::Range;

use mpjdev_buffer::Octets;
use mpjdev_datatype::Items;

use super::access::{Access, Critical};
use super::pipeline::{Ahead, PART};
use super::{Array, CRITICAL_MAX, Indexes, Picked, all_ready, copy_fixed, fix, kernels};
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
        self.gather_item_parts(env, items, place, None)
    }

    /// Packs the elements of items, as [`pack`](Self::pack).
    ///
    /// # Errors
    /// As for [`pack`](Self::pack).
    ///
    /// # Panics
    /// As for [`gather_items`](Self::gather_items).
    pub(crate) fn pack_items(&self, env: &mut Env, items: &Items, ahead: Ahead<'_>) -> Result<(), Failure> {
        self.gather_item_parts(env, items, ahead.place, Some(&ahead))?;
        ahead.finish();
        Ok(())
    }

    /// As [`gather_items`](Self::gather_items). With `ahead` the message was sent before: its parts are
    /// published.
    fn gather_item_parts(
        &self,
        env: &mut Env,
        items: &Items,
        place: Octets<'_>,
        ahead: Option<&Ahead<'_>>,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        let count = place.len() / size;
        assert!(count == items.elements() && count * size == place.len());
        if items.has_short_runs() {
            return in_chunks(items, count, |done, picked, n| {
                let ahead = ahead.map(|ahead| (ahead, done));
                self.gather_parts(env, picked, place.range(done * size, n * size), false, ahead)
            });
        }
        let to = place.as_ptr();
        let ready = |_: &mut Env, done: usize| {
            if let Some(ahead) = ahead {
                ahead.note_release(done);
            }
            Ok(usize::MAX)
        };
        self.in_runs(env, items.runs(count), Access::Read, ready, |array, run, done| {
            // SAFETY: the run is inside the array, as the items are; the range has room for all of them.
            unsafe { kernels::copy(array.add(run.start * size), to.add(done * size), run.len() * size) }
            if let Some(ahead) = ahead {
                ahead.publish((done + run.len()) * size);
            }
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
        if !items.has_short_runs() {
            return self.scatter_runs(env, items, place, swapped, all_ready);
        }
        let size = self.element().size();
        in_chunks(items, self.elements_in(items, place), |done, picked, n| {
            self.scatter_checked(env, picked, place.range(done * size, n * size), swapped)
        })
    }

    /// Copies elements from `place` to the first ones of items, as [`unpack`](Self::unpack).
    ///
    /// # Errors
    /// As for [`unpack`](Self::unpack).
    ///
    /// # Panics
    /// As for [`scatter_items`](Self::scatter_items).
    pub(crate) fn unpack_items(
        &self,
        env: &mut Env,
        items: &Items,
        place: Octets<'_>,
        mut there: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let (size, count) = (self.element().size(), self.elements_in(items, place));
        if !items.has_short_runs() {
            let part = PART / size;
            return self
                .scatter_runs(env, items, place, false, |env, done| there(env, (done + part).min(count)));
        }
        in_chunks(items, count, |done, picked, n| {
            let place = place.range(done * size, n * size);
            let there = |env: &mut Env, wanted: usize| Ok(there(env, done + wanted)?.saturating_sub(done));
            self.in_parts(env, n, there, |env, at, n| {
                self.scatter_range(env, picked, place, at..at + n, false)
            })
        })
    }

    /// Number of elements in `place`, which items have room for.
    fn elements_in(&self, items: &Items, place: Octets<'_>) -> usize {
        let size = self.element().size();
        let count = place.len() / size;
        assert!(count <= items.elements() && count * size == place.len());
        count
    }

    /// Scatters long runs. `ready` is that of [`in_runs`](Self::in_runs).
    fn scatter_runs(
        &self,
        env: &mut Env,
        items: &Items,
        place: Octets<'_>,
        swapped: bool,
        ready: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let (size, count) = (self.element().size(), self.elements_in(items, place));
        let (from, fix) = (place.as_ptr().cast_const(), fix(self.element(), swapped, true));
        self.in_runs(env, items.runs(count), Access::Write, ready, |array, run, done| {
            // SAFETY: as in gather_items, with the sides exchanged.
            unsafe {
                copy_fixed(from.add(done * size), array.add(run.start * size), size, run.len(), fix);
            }
        })
    }

    /// Holds the array critically for some runs after the others. `ready` is called before each hold with the
    /// number of elements done; it returns the number of elements, from the first one on, that may be copied.
    /// `each` gets the address of the array, a run or a part of one, and the number of elements before it.
    fn in_runs(
        &self,
        env: &mut Env,
        mut runs: impl Iterator<Item = Range<usize>>,
        access: Access,
        mut ready: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
        mut each: impl FnMut(*mut u8, Range<usize>, usize),
    ) -> Result<(), Failure> {
        let size = self.element().size();
        let (mut next, mut done) = (runs.next(), 0);
        while next.is_some() {
            let until = ready(env, done)?.min(done + CRITICAL_MAX / size);
            let held = Critical::hold(env, self.raw(), std::ptr::null_mut(), access)?;
            for _ in 0..RUNS_MAX {
                let Some(run) = next.as_mut().filter(|_| done < until) else { break };
                let end = run.end.min(run.start + (until - done).min(PART / size));
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
