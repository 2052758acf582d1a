//! Every constant of the message format: sizes, field ranges, type codes, alignment.
//!
//! Sources: dissertation node47 and node48 (tags D47, D48 of the specification notes), the original
//! sources (tag S). FORMAT.md draws the same layout.

use std::ops::Range;

/// Octets of the primary header, which starts every message (D48).
pub const PRIMARY_HEADER_LEN: usize = 8;
/// Octets of a section header (D48, S).
pub const SECTION_HEADER_LEN: usize = 8;
/// Octets of the secondary header, which follows the primary payload (D48, D49).
pub const SECONDARY_HEADER_LEN: usize = 8;
/// Octets of both headers (D49).
pub const MESSAGE_OVERHEAD: usize = PRIMARY_HEADER_LEN + SECONDARY_HEADER_LEN;
/// Every unit of a message starts at a multiple of this number of octets (D48).
pub const ALIGNMENT: usize = 8;

/// Octet of the primary header with the encoding: 0 big-endian, 1 little-endian (D48).
pub const ENCODING_OCTET: usize = 0;
/// Field of the primary header: octets of the primary payload, 32 bits, a multiple of 8 (D48).
pub const PRIMARY_LEN_FIELD: Range<usize> = 4..8;

/// Octet of a section header with the type code (S).
pub const SECTION_TYPE_OCTET: usize = 0;
/// Octet of a section header that is 1 if the section is a packing unit (a choice of ours); else zero.
pub const SECTION_UNIT_OCTET: usize = 1;
/// Octet of a section header that is 1 if the [next one](SECTION_ORDER_OCTET) has an encoding: in a packing
/// unit (a choice of ours); else zero.
pub const SECTION_ORDERED_OCTET: usize = 2;
/// Octet of a section header with the encoding of a section of a packing unit (a choice of ours); else zero.
pub const SECTION_ORDER_OCTET: usize = 3;
/// Field of a section header: number of elements, 32 bits (S).
pub const SECTION_COUNT_FIELD: Range<usize> = 4..8;

/// Field of the secondary header that the format leaves unused. A split message carries its pairing
/// number here on transports whose envelope cannot (a choice of ours); everywhere else it is zero.
pub const PAIR_FIELD: Range<usize> = 0..4;
/// Field of the secondary header: octets of the secondary payload, 32 bits (D48, D49).
pub const SECONDARY_LEN_FIELD: Range<usize> = 4..8;

/// Largest capacity: a multiple of 8 for which the length of the first physical message, 16 + capacity, fits
/// a signed 32-bit integer (a choice of ours).
pub const CAPACITY_MAX: usize = 2_147_483_624;
/// Largest element count and largest secondary payload: sizes are signed 32-bit fields (S).
pub const COUNT_MAX: usize = i32::MAX as usize;

/// Octets from `len` up to the next multiple of [`ALIGNMENT`] (D48: `8·⌈b/8⌉ − b`).
pub const fn padding(len: usize) -> usize {
    len.wrapping_neg() & (ALIGNMENT - 1)
}

/// Whether a secondary payload of `s` octets is appended to a primary one of `p` octets in one physical
/// message: if together they are shorter than the sender's capacity (S; D49 permits it, and does not mention
/// equality).
pub const fn is_appended(p: usize, s: usize, capacity: usize) -> bool {
    match p.checked_add(s) {
        Some(both) => s > 0 && both < capacity,
        None => false,
    }
}

const _: () = assert!(CAPACITY_MAX.is_multiple_of(ALIGNMENT));
const _: () = assert!(CAPACITY_MAX + MESSAGE_OVERHEAD <= i32::MAX as usize);
const _: () = assert!(CAPACITY_MAX + MESSAGE_OVERHEAD + ALIGNMENT > i32::MAX as usize);
const _: () = assert!(padding(0) == 0 && padding(1) == 7 && padding(8) == 0 && padding(13) == 3);
