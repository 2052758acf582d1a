//! Copies between Java arrays and message memory: the only code that touches the Java heap.
//!
//! Short parts pass through a bounce buffer, which Java copies from or to (decision 0065). Other small pieces
//! use the region functions. From [`REGION_MAX`] elements on, a piece of at most [`CRITICAL_MAX`] octets at a
//! time is copied while the array is held critically. A critical section has nothing but a bounded loop: no
//! call of Java, no lock, no wait. Other threads may change an array at any time, so its elements are only
//! ever read or written through raw pointers.

mod access;
mod bounced;
mod conversion;
mod direct_memory;
mod indexed;
mod kernels;
pub(crate) mod pipeline;
mod placed;
mod streaming_limit;

use std::mem::MaybeUninit;

use jni::sys::jobject;
use mpjdev_buffer::patch::{Block, Blocks, Patch};
use mpjdev_buffer::{Octets, Type};

use crate::boundary::{Argument, Env, ObjectArray, RawArray, RawBounced, RawInts};
use crate::error::{Failure, Fault, zeroed};

pub(crate) use direct_memory::Direct;

use access::{Access, Critical, get_region, set_region};
use conversion::{Fix, copy_fixed, fix};
use streaming_limit::is_streamed;

/// Up to this many elements the region functions are faster than the critical pair: decision 0004 has the
/// figures.
const REGION_MAX: usize = 128;
/// Octets that are copied per hold of an array: a collection may have to wait for that long.
const CRITICAL_MAX: usize = 256 * 1024;

/// A primitive Java array of the call, with the length and element type that `Native` passed along; or
/// elements in the bounce buffer of the calling thread, which Java copies from or to an array.
#[derive(Debug)]
pub(crate) struct Array {
    place: Place,
    len: usize,
    element: Type,
}

/// The place of the elements.
#[derive(Debug)]
enum Place {
    /// An array in Java's heap.
    Heap(jobject),
    /// The bounce buffer, from this address on.
    Bounced(*mut u8),
}

impl Argument<RawArray> for Array {
    /// Fails for null, and for a type that no array has.
    #[inline(always)]
    unsafe fn from_raw(_: &mut Env, RawArray(raw, length, element): RawArray) -> Result<Array, Failure> {
        if raw.is_null() || length < 0 {
            return Err(Fault::Null { name: "array" }.into());
        }
        let element = primitive(element)?;
        Ok(Array { place: Place::Heap(raw), len: length as usize, element })
    }
}

impl Argument<RawBounced> for Array {
    /// Fails for null, and for a type that no array has.
    #[inline(always)]
    unsafe fn from_raw(
        _: &mut Env,
        RawBounced(address, count, element): RawBounced,
    ) -> Result<Array, Failure> {
        if address == 0 || count < 0 {
            return Err(Fault::Null { name: "bounce buffer" }.into());
        }
        let element = primitive(element)?;
        let place = Place::Bounced(std::ptr::with_exposed_provenance_mut(address as usize));
        Ok(Array { place, len: count as usize, element })
    }
}

/// The type of this code.
#[inline(always)]
fn primitive(code: i32) -> Result<Type, Failure> {
    match u8::try_from(code).ok().and_then(Type::from_code) {
        Some(element) if element != Type::Object => Ok(element),
        _ => Err(Fault::Unusable { what: "array", why: "it is not primitive" }.into()),
    }
}

impl Array {
    /// Uses the array at an index of an array of objects; `None` if there is none of this length.
    #[inline(always)]
    pub(crate) fn with_element<R>(
        env: &mut Env,
        objects: &ObjectArray,
        at: usize,
        (element, len): (Type, usize),
        f: impl FnOnce(&mut Env, &Array) -> R,
    ) -> Option<R> {
        let array = |raw| Array { place: Place::Heap(raw), len, element };
        objects.with_array(env, at, len, |env, raw| f(env, &array(raw)))
    }

    /// Whether both are the same array.
    pub(crate) fn is_same(&self, env: &mut Env, other: &Array) -> bool {
        if let (Place::Bounced(_), Place::Bounced(_)) = (&self.place, &other.place) {
            // A thread has one bounce buffer.
            return true;
        }
        let env = env.raw();
        // SAFETY: the environment is the calling thread's, and the references are of this call.
        unsafe { ((**env).v1_1.IsSameObject)(env, self.raw(), other.raw()) }
    }

    /// Whether the elements are in the bounce buffer.
    #[inline(always)]
    pub(crate) fn is_bounced(&self) -> bool {
        matches!(self.place, Place::Bounced(_))
    }

    /// The array in Java's heap.
    ///
    /// # Panics
    /// The elements are in the bounce buffer, which only [`copy_out`](Self::copy_out) and
    /// [`copy_in`](Self::copy_in) take.
    #[inline(always)]
    fn raw(&self) -> jobject {
        match self.place {
            Place::Heap(raw) => raw,
            Place::Bounced(_) => unreachable!("elements in a bounce buffer are copied as a run"),
        }
    }

    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Type of the elements.
    #[inline(always)]
    pub(crate) fn element(&self) -> Type {
        self.element
    }

    /// Copies `count` elements from `off` on to a range of a message; `swapped`: in the other byte order.
    ///
    /// # Panics
    /// The elements are not inside the array or the range is too small; callers have checked both.
    #[inline(always)]
    pub(crate) fn copy_out(
        &self,
        env: &mut Env,
        off: usize,
        count: usize,
        place: Octets<'_>,
        swapped: bool,
    ) -> Result<(), Failure> {
        let size = self.element.size();
        assert!(off + count <= self.len && count * size <= place.len());
        let to = place.as_ptr();
        let fix = fix(self.element, swapped, false);
        if let Place::Bounced(start) = self.place {
            // SAFETY: the elements are in the bounce buffer, and the range has room for them.
            unsafe {
                let from = start.add(off * size).cast_const();
                match fix {
                    Fix::Plain => kernels::copy_just_stored(from, to, size, count),
                    _ => copy_fixed(from, to, size, count, fix),
                }
            }
            return Ok(());
        }
        if count <= REGION_MAX {
            // SAFETY: off and count are inside the array, and the range has room for them.
            unsafe {
                get_region(env, self.raw(), self.element, off, count, to);
                if fix == Fix::Swap {
                    kernels::copy_swapped(to, to, size, count);
                }
            }
            return Ok(());
        }
        self.in_pieces(env, count, Access::Read, |array, done, n| {
            // SAFETY: `array` holds the elements off + done to off + done + n, the range has room for them.
            unsafe {
                let from = array.add((off + done) * size);
                let to = to.add(done * size);
                match fix {
                    Fix::Swap => kernels::copy_swapped(from, to, size, n),
                    _ if is_streamed(count * size) => kernels::copy_streaming(from, to, n * size),
                    _ => kernels::copy(from, to, n * size),
                }
            }
        })
    }

    /// Copies `count` elements from a range of a message to `off` and following.
    ///
    /// # Panics
    /// As for [`copy_out`](Self::copy_out).
    #[inline(always)]
    pub(crate) fn copy_in(
        &self,
        env: &mut Env,
        off: usize,
        count: usize,
        place: Octets<'_>,
        swapped: bool,
    ) -> Result<(), Failure> {
        let size = self.element.size();
        assert!(off + count <= self.len && count * size <= place.len());
        let from = place.as_ptr().cast_const();
        let fix = fix(self.element, swapped, true);
        if let Place::Bounced(start) = self.place {
            // SAFETY: the bounce buffer has room for the elements, and the range holds them.
            unsafe {
                let to = start.add(off * size);
                match fix {
                    Fix::Swap => kernels::copy_swapped(from, to, size, count),
                    // Java takes each octet but zero as true.
                    Fix::Plain | Fix::Truth => kernels::copy_just_stored(from, to, size, count),
                }
            }
            return Ok(());
        }
        if count <= REGION_MAX {
            // SAFETY: off and count are inside the array, the range has the elements, the scratch holds 128
            // of any size.
            unsafe {
                if fix == Fix::Plain {
                    set_region(env, self.raw(), self.element, off, count, from);
                } else {
                    // Not zeroed, which would cost more than the copy.
                    let mut scratch = MaybeUninit::<[u64; REGION_MAX]>::uninit();
                    let fixed = scratch.as_mut_ptr().cast::<u8>();
                    copy_fixed(from, fixed, size, count, fix);
                    set_region(env, self.raw(), self.element, off, count, fixed);
                }
            }
            return Ok(());
        }
        self.in_pieces(env, count, Access::Write, |array, done, n| {
            // SAFETY: `array` has room for the elements off + done to off + done + n, the range holds them.
            unsafe {
                let (from, to) = (from.add(done * size), array.add((off + done) * size));
                match fix {
                    Fix::Plain if is_streamed(count * size) => kernels::copy_streaming(from, to, n * size),
                    _ => copy_fixed(from, to, size, n, fix),
                }
            }
        })
    }

    /// Copies the elements of a patch to consecutive slots of `place`.
    ///
    /// # Panics
    /// The range has another size than the patch; callers have checked it. The patch was checked against this
    /// array's length.
    #[inline(always)]
    pub(crate) fn str_gather(
        &self,
        env: &mut Env,
        patch: &Patch,
        place: Octets<'_>,
        swapped: bool,
    ) -> Result<(), Failure> {
        let size = self.element.size();
        let to = place.as_ptr();
        assert!(patch.count() * size == place.len());
        let swap = fix(self.element, swapped, false) == Fix::Swap;
        let blocks = patch.blocks(self.block_max());
        self.in_blocks(env, blocks, Access::Read, all_ready, |array, block, done| {
            // SAFETY: the block is inside the array, as the patch is; the range has room for all of the
            // patch.
            unsafe {
                let to = to.add(done * size);
                kernels::gather_block(array, to, size, &block);
                if swap {
                    kernels::copy_swapped(to, to, size, block.rows * block.count);
                }
            }
        })
    }

    /// Copies elements from `place` to the first ones of a patch.
    ///
    /// # Panics
    /// The range has more elements than the patch; callers have checked it. The patch was checked against
    /// this array's length.
    #[inline(always)]
    pub(crate) fn str_scatter(
        &self,
        env: &mut Env,
        patch: &Patch,
        place: Octets<'_>,
        swapped: bool,
    ) -> Result<(), Failure> {
        self.scatter_blocks(env, patch, place, swapped, self.block_max(), all_ready)
    }

    /// As [`str_scatter`](Self::str_scatter), in blocks of at most `most` elements. `ready` is that of
    /// [`in_blocks`](Self::in_blocks).
    #[inline(always)]
    fn scatter_blocks(
        &self,
        env: &mut Env,
        patch: &Patch,
        place: Octets<'_>,
        swapped: bool,
        most: usize,
        ready: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let size = self.element.size();
        let from = place.as_ptr().cast_const();
        let count = place.len() / size;
        assert!(count <= patch.count() && count * size == place.len());
        let fix = fix(self.element, swapped, true);
        let mut fixed: Vec<u64> = Vec::new();
        if fix != Fix::Plain {
            fixed = zeroed(most.min(count))?;
        }
        let blocks = patch.blocks(most).first(count);
        self.in_blocks(env, blocks, Access::Write, ready, |array, block, done| {
            // SAFETY: as in str_gather; `fixed` has room for a block of the largest elements.
            unsafe {
                let mut from = from.add(done * size);
                if fix != Fix::Plain {
                    copy_fixed(from, fixed.as_mut_ptr().cast(), size, block.rows * block.count, fix);
                    from = fixed.as_ptr().cast();
                }
                kernels::scatter_block(from, array, size, &block);
            }
        })
    }

    /// The largest number of elements of a block: the array is held for one block.
    fn block_max(&self) -> usize {
        // Strided access touches more memory than it moves: half the limit of a plain copy.
        CRITICAL_MAX / 2 / self.element.size()
    }

    /// Holds the array critically for blocks of a patch, for several small ones at a time. `ready` is called
    /// before each hold with the number of elements done; it returns the number of elements, from the first
    /// one on, that may be copied, which includes the next block. `each` gets the address of the array, the
    /// block and the number of elements before it.
    #[inline(always)]
    fn in_blocks(
        &self,
        env: &mut Env,
        blocks: Blocks<'_>,
        access: Access,
        mut ready: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
        mut each: impl FnMut(*mut u8, Block, usize),
    ) -> Result<(), Failure> {
        let most = self.block_max();
        let (mut blocks, mut done) = (blocks.peekable(), 0);
        while blocks.peek().is_some() {
            let until = ready(env, done)?.min(done + most);
            let held = Critical::hold(env, self.raw(), std::ptr::null_mut(), access)?;
            while let Some(block) = blocks.next_if(|b| done + b.rows * b.count <= until) {
                each(held.start, block, done);
                done += block.rows * block.count;
            }
        }
        Ok(())
    }

    /// Stores one element in a long array.
    ///
    /// # Panics
    /// It is no long array or too short.
    pub(crate) fn put_long(&self, env: &mut Env, at: usize, value: i64) {
        assert!(self.element == Type::Long && at < self.len);
        // SAFETY: the region is inside the array.
        unsafe { set_region(env, self.raw(), Type::Long, at, 1, (&raw const value).cast()) }
    }

    /// Stores the first elements of a long array, as many as `source` has.
    ///
    /// # Panics
    /// It is no long array or too short.
    pub(crate) fn put_longs(&self, env: &mut Env, source: &[i64]) {
        assert!(self.element == Type::Long && source.len() <= self.len);
        // SAFETY: the region is inside the array.
        unsafe { set_region(env, self.raw(), Type::Long, 0, source.len(), source.as_ptr().cast()) }
    }

    /// Copies the first elements of a long array, as many as `dest` has.
    ///
    /// # Panics
    /// It is no long array or too short.
    pub(crate) fn get_longs(&self, env: &mut Env, dest: &mut [i64]) {
        assert!(self.element == Type::Long && dest.len() <= self.len);
        // SAFETY: the region is inside the array.
        unsafe { get_region(env, self.raw(), Type::Long, 0, dest.len(), dest.as_mut_ptr().cast()) }
    }

    /// Copies octets into a byte array from `at` on.
    ///
    /// # Panics
    /// It is no byte array or too short.
    pub(crate) fn put_octets(&self, env: &mut Env, at: usize, source: &[u8]) {
        assert!(self.element == Type::Byte && at + source.len() <= self.len);
        // SAFETY: the region is inside the array.
        unsafe { set_region(env, self.raw(), Type::Byte, at, source.len(), source.as_ptr()) }
    }

    /// Copies octets out of a byte array from `at` on.
    ///
    /// # Panics
    /// It is no byte array or too short.
    pub(crate) fn get_octets(&self, env: &mut Env, at: usize, dest: &mut [u8]) {
        assert!(self.element == Type::Byte && at + dest.len() <= self.len);
        // SAFETY: the region is inside the array.
        unsafe { get_region(env, self.raw(), Type::Byte, at, dest.len(), dest.as_mut_ptr()) }
    }

    /// Holds the array critically for one piece of the `count` elements after the other. `piece` gets the
    /// address of the array, the number of elements done before and the number to do.
    #[inline(always)]
    fn in_pieces(
        &self,
        env: &mut Env,
        count: usize,
        access: Access,
        mut piece: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), Failure> {
        let most = CRITICAL_MAX / self.element.size();
        let mut done = 0;
        while done < count {
            let n = most.min(count - done);
            let held = Critical::hold(env, self.raw(), std::ptr::null_mut(), access)?;
            piece(held.start, done, n);
            drop(held);
            done += n;
        }
        Ok(())
    }
}

/// All elements may be copied.
#[inline(always)]
fn all_ready(_: &mut Env, _: usize) -> Result<usize, Failure> {
    Ok(usize::MAX)
}

/// An `int[]` argument: indices, extents, strides.
#[derive(Debug)]
pub(crate) struct IntArray {
    raw: jobject,
    len: usize,
}

impl Argument<RawInts> for IntArray {
    /// Fails for null.
    #[inline(always)]
    unsafe fn from_raw(_: &mut Env, RawInts(raw, length): RawInts) -> Result<IntArray, Failure> {
        if raw.is_null() || length < 0 {
            return Err(Fault::Null { name: "index array" }.into());
        }
        Ok(IntArray { raw, len: length as usize })
    }
}

impl IntArray {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies the elements from `off` on, as many as `dest` has, so that no other thread changes the copy.
    ///
    /// # Panics
    /// They are not inside the array; callers have checked that.
    #[inline(always)]
    pub(crate) fn get(&self, env: &mut Env, off: usize, dest: &mut [i32]) {
        assert!(off + dest.len() <= self.len);
        // SAFETY: the elements are inside the array and `dest` has room.
        unsafe { get_region(env, self.raw, Type::Int, off, dest.len(), dest.as_mut_ptr().cast()) }
    }

    /// A copy of `count` elements from `off` on, made in pieces.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// As for [`get`](Self::get).
    pub(crate) fn capture(&self, env: &mut Env, off: usize, count: usize) -> Result<Vec<i32>, Failure> {
        let piece = CRITICAL_MAX / size_of::<i32>();
        let mut captured = zeroed(count)?;
        for (k, dest) in captured.chunks_mut(piece).enumerate() {
            self.get(env, off + k * piece, dest);
        }
        Ok(captured)
    }

    /// Stores the first elements.
    ///
    /// # Panics
    /// The array is too short.
    pub(crate) fn put(&self, env: &mut Env, source: &[i32]) {
        assert!(source.len() <= self.len);
        // SAFETY: the region is inside the array.
        unsafe { set_region(env, self.raw, Type::Int, 0, source.len(), source.as_ptr().cast()) }
    }
}

/// The elements `base + indexes[offs + k]` of an array.
#[derive(Clone, Copy)]
pub(crate) struct Picked<'a> {
    pub(crate) base: i64,
    pub(crate) indexes: Indexes<'a>,
    pub(crate) offs: usize,
}

/// The indices of picked elements.
#[derive(Clone, Copy)]
pub(crate) enum Indexes<'a> {
    /// Indices in Java's heap, where other threads may change them.
    Array(&'a IntArray),
    /// A copy of the indices.
    Captured(&'a [i32]),
}
