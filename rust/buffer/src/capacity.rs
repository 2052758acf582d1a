//! The capacity that a section needs.

use crate::layout::{SECTION_HEADER_LEN, padding};
use crate::types::Type;

/// Octets of capacity that a section of `count` elements takes: `8 + 8·⌈n·z/8⌉`, where z is 0 for objects.
///
/// The sum over all sections is the exact capacity that they need (D48; section 3.6 of the specification
/// notes lists the other formulas found). Counted in 64 bits, so it cannot overflow.
#[inline]
pub const fn section_capacity(element: Type, count: u32) -> u64 {
    let data = count as u64 * element.size() as u64;
    SECTION_HEADER_LEN as u64 + data + padding(data as usize) as u64
}
