//! The loops: raw pointers in, raw pointers out, nothing that can wait.
//!
//! Each is written once for the compiler to vectorise, and compiled twice: for every machine of the architecture and, on
//! x86-64, for those with AVX2.

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

/// Whether the wide variants may be called.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn wide() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Defines a kernel with a body that is compiled for the base architecture and for AVX2.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $wide:ident, $body:ident, ($($arg:ident: $type:ty),*)) => {
        $(#[$doc])*
        #[inline(always)]
        pub(super) unsafe fn $name($($arg: $type),*) {
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
        unsafe fn $wide($($arg: $type),*) {
            // SAFETY: passed on.
            unsafe { $body($($arg),*) }
        }
    };
}

kernel! {
    /// Copies `count` elements of `size` octets, reversing the octets of each. The runs may be the same run.
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
    /// Copies `count` octets, making every non-zero one 1.
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

/// Copies the elements `from[indices[k]]` to `to[k]`. Indices may be negative as long as the element is there.
///
/// # Safety
/// `from` is good for each index, `to` for as many elements as there are indices; they do not overlap.
#[inline(always)]
pub(super) unsafe fn gather(from: *const u8, to: *mut u8, size: usize, indices: &[i32]) {
    by_size!(size, Word => {
        let (from, to) = (from.cast::<Word>(), to.cast::<Word>());
        for (k, &i) in indices.iter().enumerate() {
            // SAFETY: passed on.
            unsafe { to.add(k).write_unaligned(from.wrapping_offset(i as isize).read_unaligned()) };
        }
    });
}

/// Copies the elements `from[k]` to `to[indices[k]]`.
///
/// # Safety
/// As for [`gather`], with the sides exchanged.
#[inline(always)]
pub(super) unsafe fn scatter(from: *const u8, to: *mut u8, size: usize, indices: &[i32]) {
    by_size!(size, Word => {
        let (from, to) = (from.cast::<Word>(), to.cast::<Word>());
        for (k, &i) in indices.iter().enumerate() {
            // SAFETY: passed on.
            unsafe { to.wrapping_offset(i as isize).write_unaligned(from.add(k).read_unaligned()) };
        }
    });
}

kernel! {
    /// Copies the elements of a block of an array, row after row, to consecutive places.
    ///
    /// # Safety
    /// The block is inside the array at `array`; `to` is good for its elements; they do not overlap.
    gather_block, gather_block_wide, gather_block_body, (array: *const u8, to: *mut u8, size: usize, block: &Block)
}

#[inline(always)]
unsafe fn gather_block_body(array: *const u8, to: *mut u8, size: usize, block: &Block) {
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

/// Copies `n` elements that are `stride` apart to consecutive places. Small strides are loops of their own: with
/// a constant stride the compiler can load wide and shuffle.
#[inline(always)]
unsafe fn gather_row<W: Copy>(from: *const W, to: *mut W, stride: isize, n: usize) {
    // SAFETY: passed on by the callers.
    unsafe {
        match stride {
            1 => copy_row(from, to, n),
            2 => (0..n).for_each(|i| to.add(i).write_unaligned(from.add(2 * i).read_unaligned())),
            3 => (0..n).for_each(|i| to.add(i).write_unaligned(from.add(3 * i).read_unaligned())),
            4 => (0..n).for_each(|i| to.add(i).write_unaligned(from.add(4 * i).read_unaligned())),
            _ => (0..n as isize).for_each(|i| {
                to.offset(i).write_unaligned(from.wrapping_offset(stride * i).read_unaligned());
            }),
        }
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

/// Copies `n` consecutive elements to places that are `stride` apart.
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

/// Copies `n` elements; short rows by an inlined loop, since calling the library costs more than they do.
#[inline(always)]
unsafe fn copy_row<W: Copy>(from: *const W, to: *mut W, n: usize) {
    const SHORT: usize = 256;
    // SAFETY: passed on by the callers.
    unsafe {
        if n * size_of::<W>() > SHORT {
            std::ptr::copy_nonoverlapping(from, to, n);
        } else {
            for i in 0..n {
                to.add(i).write_unaligned(from.add(i).read_unaligned());
            }
        }
    }
}
