//! Sequence numbers: 64 bits inside, the low 15 or 31 of them on the wire (2, 5.2).
//!
//! U-Net packets have 15 bits, in their header. Reliable packets have 16 more, in their extension: a late
//! copy of a packet is detected as such until 2^30 later packets were received.
//!
//! ```text
//!                     reference
//!                         |
//!    ...-----(------------+------------]-----...      the 2^BITS numbers nearest to the reference:
//!          r - half       r         r + half          each has low bits of its own
//! ```

use super::layout::{FULL_SEQUENCE_BITS, SEQUENCE_BITS};

/// The number in a header: the whole number of a U-Net packet, the low bits of a reliable one.
pub type Sequence = Truncated<15>;
/// The number of a reliable packet, from header and extension.
pub type FullSequence = Truncated<31>;

// Named constants in these types make rustc 1.95 fail.
const _: () = assert!(SEQUENCE_BITS == 15 && FULL_SEQUENCE_BITS == 31);

/// A sequence number as it is on the wire: `BITS` bits, fewer than 32, modulo 2^`BITS`.
///
/// The numbers wrap, so they have no order and this is not [`Ord`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Truncated<const BITS: u32>(u32);

impl<const BITS: u32> Truncated<BITS> {
    /// Their number.
    const COUNT: u32 = 1 << BITS;
    /// Half of them.
    const HALF: u32 = Self::COUNT / 2;
    /// The bits of one.
    const MASK: u32 = Self::COUNT - 1;

    /// The low bits of a 64-bit number.
    #[inline]
    #[must_use]
    pub const fn of(number: u64) -> Self {
        Self(number as u32 & Self::MASK)
    }

    /// The number with these low bits; higher bits are ignored.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::MASK)
    }

    /// Its bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The next number.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & Self::MASK)
    }

    /// The steps of [`next`](Self::next) from it to `later`: below 2^`BITS`.
    #[inline]
    #[must_use]
    const fn distance_to(self, later: Self) -> u32 {
        later.0.wrapping_sub(self.0) & Self::MASK
    }

    /// The number of 64 bits with these low bits that is nearest to `reference`: at most half above it, less
    /// than half below it (5.2). Where that would be below 0 or above `u64::MAX` it is the nearest that is
    /// not.
    #[inline]
    #[must_use]
    pub const fn expand(self, reference: u64) -> u64 {
        let ahead = Self::of(reference).distance_to(self);
        let behind = Self::COUNT - ahead;
        match (reference.checked_add(ahead as u64), reference.checked_sub(behind as u64)) {
            (Some(above), _) if ahead <= Self::HALF => above,
            (_, Some(below)) => below,
            (Some(above), None) => above,
            // Both at once would need less than 2^BITS numbers of 64 bits.
            (None, None) => reference,
        }
    }
}
