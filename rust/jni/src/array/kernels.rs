//! The copy loops: raw pointers only, and no call that can wait.
//!
//! Each is written once for the compiler to vectorise, and compiled twice: for every machine of the
//! architecture and, on x86-64, for those with AVX2.

use mpjdev_buffer::patch::Block;

/// Copies `len` octets.
///
/// # Safety
/// Both addresses are good for `len` octets, and the runs do not overlap.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: passed on.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Up to this many elements Java stores one by one in a bounce buffer (`BounceBuffer.FEW`).
const FEW: usize = 16;

/// Copies elements that were stored a moment ago, by loads that are not wider than those stores. A wider load
/// waits until they are in the cache.
///
/// # Safety
/// As for [`copy`], with `count` elements of `size` octets.
#[inline(always)]
pub(super) unsafe fn copy_just_stored(from: *const u8, to: *mut u8, size: usize, count: usize) {
    // SAFETY: all addresses are inside the runs. The compiler does not join volatile accesses.
    unsafe {
        match size {
            8 if count <= FEW => (0..count).for_each(|k| {
                let word = from.cast::<u64>().add(k).read_volatile();
                to.cast::<u64>().add(k).write_volatile(word);
            }),
            _ => copy(from, to, count * size),
        }
    }
}

/// Copies `len` octets past the caches, which pays for runs that no cache holds: the destination's lines are
/// not read before they are written.
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
pub(super) unsafe fn copy_streaming(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if wide() {
        // SAFETY: the machine has the feature; the rest is passed on.
        return unsafe { copy_streaming_wide(from, to, len) };
    }
    // SAFETY: passed on.
    unsafe { copy(from, to, len) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_streaming_wide(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{_mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    const WIDE: usize = 32;
    const STEP: usize = 4 * WIDE;
    let head = to.align_offset(WIDE).min(len);
    let body = (len - head) / STEP * STEP;
    // SAFETY: head, body and the rest are inside both runs; streamed stores go to multiples of 32.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        let (source, dest) = (from.add(head), to.add(head));
        for at in (0..body).step_by(STEP) {
            let words = [0, 1, 2, 3].map(|i| _mm256_loadu_si256(source.add(at + i * WIDE).cast()));
            for (i, word) in words.into_iter().enumerate() {
                _mm256_stream_si256(dest.add(at + i * WIDE).cast(), word);
            }
        }
        // The stores are weakly ordered: a thread that is notified of the data next must see them.
        _mm_sfence();
        std::ptr::copy_nonoverlapping(source.add(body), dest.add(body), len - head - body);
    }
}

/// Whether the wide variants may be called.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn wide() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Defines a kernel with a body that is compiled for the base architecture and for AVX2.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $wide:ident, $body:ident, ($($arg:ident: $type:ty),*) $(-> $ret:ty)?) => {
        $(#[$doc])*
        #[inline(always)]
        pub(super) unsafe fn $name($($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            if wide() {
                // SAFETY: the machine has the feature; the rest is passed on.
                return unsafe { $wide($($arg),*) };
            }
            // SAFETY: passed on.
            unsafe { $body($($arg),*) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn $wide($($arg: $type),*) $(-> $ret)? {
            // SAFETY: passed on.
            unsafe { $body($($arg),*) }
        }
    };
}

kernel! {
    /// Copies `count` elements of `size` octets, and reverses the octets of each. The runs may be the same
    /// run.
    ///
    /// # Safety
    /// Both addresses are good for the elements; the runs are the same or do not overlap.
    copy_swapped, copy_swapped_wide, copy_swapped_body, (from: *const u8, to: *mut u8, size: usize, count: usize)
}

#[inline(always)]
unsafe fn copy_swapped_body(from: *const u8, to: *mut u8, size: usize, count: usize) {
    macro_rules! swap {
        ($word:ty) => {{
            let (from, to) = (from.cast::<$word>(), to.cast::<$word>());
            for i in 0..count {
                // SAFETY: i is below count; the addresses need no alignment.
                unsafe { to.add(i).write_unaligned(from.add(i).read_unaligned().swap_bytes()) };
            }
        }};
    }
    match size {
        2 => swap!(u16),
        4 => swap!(u32),
        8 => swap!(u64),
        _ => swap!(u8),
    }
}

kernel! {
    /// Copies `count` octets; every non-zero one becomes 1.
    ///
    /// # Safety
    /// Both addresses are good for `count` octets; the runs are the same or do not overlap.
    copy_truth, copy_truth_wide, copy_truth_body, (from: *const u8, to: *mut u8, count: usize)
}

#[inline(always)]
unsafe fn copy_truth_body(from: *const u8, to: *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: i is below count.
        unsafe { to.add(i).write(from.add(i).read().min(1)) };
    }
}

/// Runs a generic loop for the element size at hand: elements are moved as plain words of their size.
macro_rules! by_size {
    ($size:ident, $word:ident => $body:expr) => {
        match $size {
            1 => {
                type $word = u8;
                $body
            }
            2 => {
                type $word = u16;
                $body
            }
            4 => {
                type $word = u32;
                $body
            }
            _ => {
                type $word = u64;
                $body
            }
        }
    };
}

/// Indices that are read, checked and used together.
const TOGETHER: usize = 32;

/// The indices that are inside an array: those with `(index - lowest) < span` as unsigned numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside {
    lowest: i32,
    span: u32,
}

impl Inside {
    /// The indices that are inside an array of `len` elements after `base` is added; `None` when there are
    /// none.
    pub(super) fn new(base: i64, len: usize) -> Option<Inside> {
        let lowest = base.checked_neg()?.max(i64::from(i32::MIN));
        let end = (len as i64).checked_sub(base)?.min(i64::from(i32::MAX) + 1);
        if lowest >= end {
            return None;
        }
        // No array is so long that the span covers all 2^32 values.
        Some(Inside { lowest: lowest as i32, span: u32::try_from(end - lowest).ok()? })
    }

    #[inline(always)]
    fn all(self, indices: &[i32]) -> bool {
        // The loop has no early exit, so that it becomes a few vector instructions.
        let outside = |i: i32| u32::from(i.wrapping_sub(self.lowest) as u32 >= self.span);
        indices.iter().map(|&i| outside(i)).fold(0, |bad, i| bad | i) == 0
    }
}

/// Walks over indices in Java's heap. `each` gets a block of them, copied once and checked, with its
/// position. Returns the number of indices before the first block with one outside.
///
/// # Safety
/// `indices` is good for `count` elements.
#[inline(always)]
unsafe fn checked(
    indices: *const i32,
    count: usize,
    inside: Inside,
    mut each: impl FnMut(&[i32], usize),
) -> usize {
    let mut some = [0; TOGETHER];
    let mut done = 0;
    while count - done >= TOGETHER {
        // SAFETY: as many are left.
        unsafe { std::ptr::copy_nonoverlapping(indices.add(done), some.as_mut_ptr(), TOGETHER) };
        // Another thread may change the array: the checked value is the used one, and is never read again.
        let some = std::hint::black_box(&mut some);
        if !inside.all(some) {
            return done;
        }
        // The indices are read from memory again, one by one, instead of being taken out of the vector
        // registers of the check.
        each(std::hint::black_box(some), done);
        done += TOGETHER;
    }
    let rest = count - done;
    // SAFETY: these are left.
    unsafe { std::ptr::copy_nonoverlapping(indices.add(done), some.as_mut_ptr(), rest) };
    let some = &std::hint::black_box(&mut some)[..rest];
    if !inside.all(some) {
        return done;
    }
    each(some, done);
    count
}

kernel! {
    /// Checks `count` indices. Returns the number of indices before a block of at most 32 with one outside.
    ///
    /// # Safety
    /// `indices` is good for `count` elements.
    check, check_wide, check_body, (indices: *const i32, count: usize, inside: Inside) -> usize
}

#[inline(always)]
unsafe fn check_body(indices: *const i32, count: usize, inside: Inside) -> usize {
    // SAFETY: passed on.
    unsafe { checked(indices, count, inside, |_, _| {}) }
}

kernel! {
    /// Copies the elements `from[indices[k]]` to `to[k]`, as long as the indices are inside; returns the
    /// number of copied elements.
    ///
    /// # Safety
    /// `from` is good for each index inside, `indices` and `to` for `count` elements; elements do not
    /// overlap.
    gather, gather_wide, gather_body,
    (from: *const u8, to: *mut u8, size: usize, indices: *const i32, count: usize, inside: Inside) -> usize
}

#[inline(always)]
unsafe fn gather_body(
    from: *const u8,
    to: *mut u8,
    size: usize,
    indices: *const i32,
    count: usize,
    inside: Inside,
) -> usize {
    by_size!(size, Word => {
        let (from, to) = (from.cast::<Word>(), to.cast::<Word>());
        // SAFETY: passed on.
        unsafe {
            checked(indices, count, inside, |some, done| {
                for (k, &i) in some.iter().enumerate() {
                    to.add(done + k).write_unaligned(from.wrapping_offset(i as isize).read_unaligned());
                }
            })
        }
    })
}

kernel! {
    /// Copies the elements `from[k]` to `to[indices[k]]`, as long as the indices are inside; returns the
    /// number of copied elements.
    ///
    /// # Safety
    /// As for [`gather`], with the sides exchanged.
    scatter, scatter_wide, scatter_body,
    (from: *const u8, to: *mut u8, size: usize, indices: *const i32, count: usize, inside: Inside) -> usize
}

#[inline(always)]
unsafe fn scatter_body(
    from: *const u8,
    to: *mut u8,
    size: usize,
    indices: *const i32,
    count: usize,
    inside: Inside,
) -> usize {
    by_size!(size, Word => {
        let (from, to) = (from.cast::<Word>(), to.cast::<Word>());
        // SAFETY: passed on.
        unsafe {
            checked(indices, count, inside, |some, done| {
                for (k, &i) in some.iter().enumerate() {
                    to.wrapping_offset(i as isize).write_unaligned(from.add(done + k).read_unaligned());
                }
            })
        }
    })
}

kernel! {
    /// Copies the elements of a block of an array, row after row, to consecutive slots.
    ///
    /// # Safety
    /// The block is inside the array at `array`; `to` is good for its elements; they do not overlap.
    gather_block, gather_block_wide, gather_block_body, (array: *const u8, to: *mut u8, size: usize, block: &Block)
}

#[inline(always)]
unsafe fn gather_block_body(array: *const u8, to: *mut u8, size: usize, block: &Block) {
    if block.stride == 1 && block.count * size >= FETCHED_FROM {
        // SAFETY: passed on.
        return unsafe { gather_fetched(array, to, size, block) };
    }
    by_size!(size, Word => {
        let start = array.cast::<Word>().wrapping_add(block.start);
        let mut to = to.cast::<Word>();
        for row in 0..block.rows {
            let from = start.wrapping_offset(block.row_stride as isize * row as isize);
            // SAFETY: passed on.
            unsafe { gather_row(from, to, block.stride as isize, block.count) };
            to = to.wrapping_add(block.count);
        }
    });
}

/// Copies `n` elements that are `stride` apart to consecutive slots. Small strides have loops of their own:
/// with a constant stride the compiler can load wide and shuffle.
#[inline(always)]
unsafe fn gather_row<W: Copy>(from: *const W, to: *mut W, stride: isize, n: usize) {
    // SAFETY: passed on by the callers.
    unsafe {
        match stride {
            1 => copy_row(from, to, n),
            2 => every_second(from, to, n),
            3 => (0..n).for_each(|i| to.add(i).write_unaligned(from.add(3 * i).read_unaligned())),
            4 => (0..n).for_each(|i| to.add(i).write_unaligned(from.add(4 * i).read_unaligned())),
            _ => (0..n as isize).for_each(|i| {
                to.offset(i).write_unaligned(from.wrapping_offset(stride * i).read_unaligned());
            }),
        }
    }
}

/// Copies every second element, `n` of them, eight at a time; the compiler turns this into wide loads and
/// shuffles.
#[inline(always)]
unsafe fn every_second<W: Copy>(from: *const W, to: *mut W, n: usize) {
    const WIDE: usize = 8;
    let mut done = 0;
    // One group less: the memory behind the last element may be outside the array.
    while n - done > WIDE {
        // SAFETY: the group and the elements between are followed by a further one of the patch.
        unsafe {
            let pairs = from.add(2 * done).cast::<[[W; 2]; WIDE]>().read_unaligned();
            to.add(done).cast::<[W; WIDE]>().write_unaligned(pairs.map(|pair| pair[0]));
        }
        done += WIDE;
    }
    for i in done..n {
        // SAFETY: passed on by the callers.
        unsafe { to.add(i).write_unaligned(from.add(2 * i).read_unaligned()) };
    }
}

kernel! {
    /// Copies consecutive elements to those of a block of an array, row after row.
    ///
    /// # Safety
    /// As for [`gather_block`], with the sides exchanged.
    scatter_block, scatter_block_wide, scatter_block_body, (from: *const u8, array: *mut u8, size: usize, block: &Block)
}

#[inline(always)]
unsafe fn scatter_block_body(from: *const u8, array: *mut u8, size: usize, block: &Block) {
    if block.stride == 1 && block.count * size >= FETCHED_FROM {
        // SAFETY: passed on.
        return unsafe { scatter_fetched(from, array, size, block) };
    }
    by_size!(size, Word => {
        let start = array.cast::<Word>().wrapping_add(block.start);
        let mut from = from.cast::<Word>();
        for row in 0..block.rows {
            let to = start.wrapping_offset(block.row_stride as isize * row as isize);
            // SAFETY: passed on.
            unsafe { scatter_row(from, to, block.stride as isize, block.count) };
            from = from.wrapping_add(block.count);
        }
    });
}

/// Copies rows to consecutive elements; each row is prefetched some rows before it is read.
#[inline(always)]
unsafe fn gather_fetched(array: *const u8, to: *mut u8, size: usize, block: &Block) {
    let len = block.count * size;
    let start = array.wrapping_add(block.start * size);
    let place = |row: usize| start.wrapping_offset(block.row_stride as isize * (row * size) as isize);
    for row in 0..block.rows {
        fetch(place(row + AHEAD), len);
        // SAFETY: passed on.
        unsafe { copy_row(place(row), to.wrapping_add(row * len), len) };
    }
}

/// Copies consecutive elements to rows; each row is prefetched some rows before it is written.
#[inline(always)]
unsafe fn scatter_fetched(from: *const u8, array: *mut u8, size: usize, block: &Block) {
    let len = block.count * size;
    let start = array.wrapping_add(block.start * size);
    let place = |row: usize| start.wrapping_offset(block.row_stride as isize * (row * size) as isize);
    for row in 0..block.rows {
        fetch(place(row + AHEAD), len);
        // SAFETY: passed on.
        unsafe { copy_row(from.wrapping_add(row * len), place(row), len) };
    }
}

/// The number of rows by which the prefetch is ahead, and the row length in octets from which it is used. The
/// processor does not predict stores that jump: without a prefetch, rows of 128 octets took a third longer.
const AHEAD: usize = 8;
const FETCHED_FROM: usize = 128;

/// Prefetches the cache lines of a row.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn fetch(row: *const u8, len: usize) {
    const LINE: usize = 64;
    if len > 4 * LINE {
        return;
    }
    for at in (0..len + LINE - 1).step_by(LINE) {
        // SAFETY: a prefetch is a hint, which reads nothing.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                row.wrapping_add(at.min(len - 1)).cast(),
            );
        }
    }
}

/// Does nothing: stable Rust has no prefetch for other architectures.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
fn fetch(_: *const u8, _: usize) {}

/// Copies `n` consecutive elements to slots that are `stride` apart.
#[inline(always)]
unsafe fn scatter_row<W: Copy>(from: *const W, to: *mut W, stride: isize, n: usize) {
    // SAFETY: passed on by the callers.
    unsafe {
        match stride {
            1 => copy_row(from, to, n),
            2 => (0..n).for_each(|i| to.add(2 * i).write_unaligned(from.add(i).read_unaligned())),
            3 => (0..n).for_each(|i| to.add(3 * i).write_unaligned(from.add(i).read_unaligned())),
            4 => (0..n).for_each(|i| to.add(4 * i).write_unaligned(from.add(i).read_unaligned())),
            _ => (0..n as isize).for_each(|i| {
                to.wrapping_offset(stride * i).write_unaligned(from.offset(i).read_unaligned());
            }),
        }
    }
}

/// Copies `n` elements. Rows of a few cache lines are copied here, piece by piece: a call of the library
/// costs more than the copy.
#[inline(always)]
unsafe fn copy_row<W: Copy>(from: *const W, to: *mut W, n: usize) {
    const SHORT: usize = 512;
    let len = n * size_of::<W>();
    let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
    if len > SHORT {
        // SAFETY: passed on by the callers.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }
    let mut at = 0;
    macro_rules! pieces {
        ($($piece:ty),*) => { $(
            while len - at >= size_of::<$piece>() {
                // SAFETY: the piece is inside both rows.
                unsafe {
                    let piece = from.add(at).cast::<$piece>().read_unaligned();
                    to.add(at).cast::<$piece>().write_unaligned(piece);
                }
                at += size_of::<$piece>();
            }
        )* };
    }
    pieces!([u64; 16], [u64; 4], u64, u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streamed_copy_is_the_same_at_any_alignment_and_length() {
        let from: Vec<u8> = (0..1024).map(|at| (at % 251) as u8).collect();
        for start in [0, 1, 31, 32, 33] {
            for len in [0, 1, 31, 127, 128, 129, 500, 900] {
                let mut to = vec![0xff; 1024];
                // SAFETY: both runs are inside their vectors, which are apart.
                unsafe { copy_streaming(from[start..].as_ptr(), to[64 - start..].as_mut_ptr(), len) };
                let end = 64 - start + len;
                assert_eq!(to[64 - start..end], from[start..start + len], "{len} octets at {start}");
                assert!(to[..64 - start].iter().chain(&to[end..]).all(|octet| *octet == 0xff), "outside");
            }
        }
    }
}
