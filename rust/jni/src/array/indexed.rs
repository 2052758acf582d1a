//! Gather and scatter: elements that an index array picks.

use std::ops::Range;

use jni::sys::jobject;
use mpjdev_buffer::Octets;
use mpjdev_buffer::patch::check_indices;

use super::access::{Access, Critical};
use super::kernels::{self, Inside};
use super::pipeline::{Ahead, PART};
use super::{Array, Fix, Indexes, Picked, copy_fixed, fix};
use crate::boundary::Env;
use crate::error::{Failure, Fault, zeroed};

/// Elements that are moved while arrays are held.
const INDEX_CHUNK: usize = 16384;

/// The work of one pass over the chunks of a scatter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Moves the elements whose indices were checked.
    Move,
    /// Checks one chunk and moves it, while the arrays are held once.
    CheckAndMove,
}

impl Indexes<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        match self {
            Indexes::Array(indexes) => indexes.len,
            Indexes::Captured(indices) => indices.len(),
        }
    }

    /// The index array to hold; null for a copy.
    #[inline(always)]
    fn raw(&self) -> jobject {
        match self {
            Indexes::Array(indexes) => indexes.raw,
            Indexes::Captured(_) => std::ptr::null_mut(),
        }
    }

    /// Address of the first index while the arrays are held.
    #[inline(always)]
    fn start(&self, held: &Critical<'_>) -> *const i32 {
        match self {
            Indexes::Array(_) => held.indices,
            Indexes::Captured(indices) => indices.as_ptr(),
        }
    }

    /// Copies indices from `off` on.
    fn get(&self, env: &mut Env, off: usize, dest: &mut [i32]) {
        match self {
            Indexes::Array(indexes) => indexes.get(env, off, dest),
            Indexes::Captured(indices) => dest.copy_from_slice(&indices[off..off + dest.len()]),
        }
    }
}

impl Array {
    /// Copies picked elements to consecutive slots of `place`.
    ///
    /// Each index is read once. The checked value is the used one, whatever other threads do to the array.
    ///
    /// # Errors
    /// An index outside the array.
    ///
    /// # Panics
    /// The indices are not inside their array; callers have checked that.
    #[inline(always)]
    pub(crate) fn gather(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        foreign: bool,
    ) -> Result<(), Failure> {
        self.gather_parts(env, picked, place, foreign, None)
    }

    /// As [`gather`](Self::gather). With `ahead` the message was sent before: its parts are published, with
    /// the number of its elements before these.
    #[inline(always)]
    pub(super) fn gather_parts(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        foreign: bool,
        ahead: Option<(&Ahead<'_>, usize)>,
    ) -> Result<(), Failure> {
        let Picked { base, indexes, offs } = picked;
        let size = self.element.size();
        let (count, to) = (place.len() / size, place.as_ptr());
        assert!(offs + count <= indexes.len());
        let swap = fix(self.element, foreign, false) == Fix::Swap;
        let part = if ahead.is_some() { PART / size } else { INDEX_CHUNK };
        for begin in (0..count).step_by(INDEX_CHUNK) {
            if let Some((ahead, before)) = ahead {
                ahead.note_release(before + begin);
            }
            let end = count.min(begin + INDEX_CHUNK);
            let mut done = begin;
            if let Some(inside) = Inside::new(base, self.len) {
                let held = Critical::hold(env, self.raw(), indexes.raw(), Access::Read)?;
                let from = held.start.cast_const().wrapping_offset(base as isize * size as isize);
                while done < end {
                    let (n, to) = (part.min(end - done), to.wrapping_add(done * size));
                    // SAFETY: `inside` accepts indices that are inside the array with the base added; the
                    // range has room for all of the count; the indices are inside their array.
                    let moved = unsafe {
                        let indices = indexes.start(&held).add(offs + done);
                        kernels::gather(from, to, size, indices, n, inside)
                    };
                    done += moved;
                    if moved < n {
                        break;
                    }
                    if swap {
                        // SAFETY: these were just written.
                        unsafe { kernels::copy_swapped(to, to, size, n) };
                    }
                    if let Some((ahead, before)) = ahead {
                        ahead.publish((before + done) * size);
                    }
                }
            }
            if done < end {
                return Err(self.wrong_index(env, picked, done, end - done));
            }
        }
        Ok(())
    }

    /// Copies elements from `place` to the picked ones. All indices are checked before the first element
    /// moves.
    ///
    /// # Errors
    /// An index outside the array; nothing has moved then, unless another thread changed the indices
    /// meanwhile.
    ///
    /// # Panics
    /// As for [`gather`](Self::gather).
    #[inline(always)]
    pub(crate) fn scatter(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        foreign: bool,
    ) -> Result<(), Failure> {
        let (fix, count) = (fix(self.element, foreign, true), place.len() / self.element.size());
        if count <= INDEX_CHUNK {
            return self.scatter_chunks(env, picked, place, 0..count, fix, Pass::CheckAndMove);
        }
        self.check_picked(env, picked, count)?;
        self.scatter_chunks(env, picked, place, 0..count, fix, Pass::Move)
    }

    /// As [`scatter`](Self::scatter), for indices that [`check_picked`](Self::check_picked) has accepted.
    ///
    /// # Errors
    /// Another thread has stored an index outside the array since. Elements before it have moved.
    ///
    /// # Panics
    /// As for [`gather`](Self::gather).
    #[inline(always)]
    pub(crate) fn scatter_checked(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        foreign: bool,
    ) -> Result<(), Failure> {
        self.scatter_range(env, picked, place, 0..place.len() / self.element.size(), foreign)
    }

    /// As [`scatter_checked`](Self::scatter_checked), for this range of the elements in `place`.
    #[inline(always)]
    pub(super) fn scatter_range(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        range: Range<usize>,
        foreign: bool,
    ) -> Result<(), Failure> {
        self.scatter_chunks(env, picked, place, range, fix(self.element, foreign, true), Pass::Move)
    }

    /// Checks the first `count` picked indices.
    ///
    /// # Errors
    /// An index outside the array.
    ///
    /// # Panics
    /// As for [`gather`](Self::gather).
    pub(crate) fn check_picked(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        count: usize,
    ) -> Result<(), Failure> {
        let Picked { base, indexes, offs } = picked;
        assert!(offs + count <= indexes.len());
        let indexes = match indexes {
            Indexes::Array(indexes) => indexes,
            Indexes::Captured(indices) => {
                return Ok(check_indices(&indices[offs..offs + count], base, self.len, 0)?);
            }
        };
        for done in (0..count).step_by(INDEX_CHUNK) {
            let n = INDEX_CHUNK.min(count - done);
            let good = Inside::new(base, self.len).map_or(Ok(0), |inside| {
                let held = Critical::hold(env, indexes.raw, std::ptr::null_mut(), Access::Read)?;
                // SAFETY: the indices are inside their array.
                Ok::<_, Failure>(unsafe {
                    let indices = held.start.cast_const().cast::<i32>().add(offs + done);
                    kernels::check(indices, n, inside)
                })
            })?;
            if good < n {
                return Err(self.wrong_index(env, picked, done + good, n - good));
            }
        }
        Ok(())
    }

    /// One pass of a scatter over this range of the elements in `place`.
    #[inline(always)]
    fn scatter_chunks(
        &self,
        env: &mut Env,
        picked: Picked<'_>,
        place: Octets<'_>,
        range: Range<usize>,
        fix: Fix,
        pass: Pass,
    ) -> Result<(), Failure> {
        let Picked { base, indexes, offs } = picked;
        let size = self.element.size();
        assert!(range.end * size <= place.len() && offs + range.end <= indexes.len());
        let mut fixed: Vec<u64> = Vec::new();
        for done in range.clone().step_by(INDEX_CHUNK) {
            let n = INDEX_CHUNK.min(range.end - done);
            // SAFETY: the place holds all of the count.
            let mut from = unsafe { place.as_ptr().cast_const().add(done * size) };
            if fix != Fix::Plain {
                if fixed.len() < n {
                    fixed = zeroed(n)?;
                }
                // SAFETY: `fixed` has room for a chunk of the largest elements.
                unsafe { copy_fixed(from, fixed.as_mut_ptr().cast(), size, n, fix) };
                from = fixed.as_ptr().cast();
            }
            let moved = Inside::new(base, self.len).map_or(Ok(0), |inside| {
                let held = Critical::hold(env, self.raw(), indexes.raw(), Access::Write)?;
                // SAFETY: as in gather, with the sides exchanged.
                Ok::<_, Failure>(unsafe {
                    let to = held.start.wrapping_offset(base as isize * size as isize);
                    let indices = indexes.start(&held).add(offs + done);
                    let good = if pass == Pass::Move { n } else { kernels::check(indices, n, inside) };
                    if good == n { kernels::scatter(from, to, size, indices, n, inside) } else { good }
                })
            })?;
            if moved < n {
                return Err(self.wrong_index(env, picked, done + moved, n - moved));
            }
        }
        Ok(())
    }

    /// The error for the first index outside the array among the `left` from `position` on.
    #[cold]
    fn wrong_index(&self, env: &mut Env, picked: Picked<'_>, position: usize, left: usize) -> Failure {
        let mut scratch = [0; 64];
        let some = &mut scratch[..left.min(64)];
        picked.indexes.get(env, picked.offs + position, some);
        match check_indices(some, picked.base, self.len, position) {
            Err(error) => error.into(),
            // Another thread has stored a valid index meanwhile; the one that was read was invalid all the
            // same.
            Ok(()) => {
                Fault::WrongKind { what: "index array", why: "another thread changes it during the call" }
                    .into()
            }
        }
    }
}
