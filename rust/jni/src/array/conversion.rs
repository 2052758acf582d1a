//! Conversions of elements between the message format and Java.

use mpjdev_buffer::Type;

use super::kernels;

/// The conversion of elements during a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fix {
    /// No conversion.
    Plain,
    /// Their octets are reversed: the message has the other byte order.
    Swap,
    /// Any non-zero octet becomes 1: a Java boolean that holds 2 is not equal to `true`.
    Truth,
}

/// The conversion of elements of this type; `swapped`: the message has the other byte order.
pub(super) fn fix(element: Type, swapped: bool, reading: bool) -> Fix {
    match element {
        Type::Boolean if reading => Fix::Truth,
        _ if swapped && element.size() > 1 => Fix::Swap,
        _ => Fix::Plain,
    }
}

/// Copies elements to memory that is only ever accessed by pointer, with the conversion `fix`.
///
/// # Safety
/// `from` and `to` are good for `count` elements of `size` octets and do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_fixed(from: *const u8, to: *mut u8, size: usize, count: usize, fix: Fix) {
    // SAFETY: passed on.
    unsafe {
        match fix {
            Fix::Plain => kernels::copy(from, to, count * size),
            Fix::Swap => kernels::copy_swapped(from, to, size, count),
            Fix::Truth => kernels::copy_truth(from, to, count),
        }
    }
}
