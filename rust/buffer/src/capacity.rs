//! Capacities: the room that a message needs, checked and rounded.

use crate::layout::{SECTION_HEADER_LEN, padding};
use crate::types::Type;

/// Octets of capacity that a section of `count` elements takes: `8 + 8·⌈n·z/8⌉`, where z is 0 for objects.
///
/// Exact: a buffer whose capacity is the sum over its sections takes them, one of 8 octets less does not
/// (D48; section 3.6 of the specification notes lists the other formulas found). Counted in 64 bits, so it
/// cannot overflow.
#[inline]
pub const fn section_capacity(element: Type, count: u32) -> u64 {
    let data = count as u64 * element.size() as u64;
    SECTION_HEADER_LEN as u64 + data + padding(data as usize) as u64
}
