//! Sequence numbers: 64 bits inside, the low 15 of them on the wire (2, 5.2).
//!
//! ```text
//!                     reference
//!                         |
//!    ...-----(------------+------------]-----...      the 2^15 numbers nearest to the reference:
//!          r - 2^14       r         r + 2^14          each has low bits of its own
//! ```

use super::layout::SEQUENCE_BITS;

/// How many sequence numbers there are: 2^15.
const COUNT: u16 = 1 << SEQUENCE_BITS;
/// Half of them.
const HALF: u16 = COUNT / 2;
/// The bits of one.
const MASK: u16 = COUNT - 1;

/// A sequence number as it is on the wire: 15 bits, modulo 2^15.
///
/// There is no order of all of them, so this is not [`Ord`]: [`is_before`](Self::is_before) compares two that are less than
/// half the numbers apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(u16);

impl Sequence {
    /// The low 15 bits of a number of 64.
    #[inline]
    #[must_use]
    pub const fn of(number: u64) -> Self {
        Self(number as u16 & MASK)
    }

    /// The number with these 15 bits; a 16th one is no part of it.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & MASK)
    }

    /// Its 15 bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The number behind it.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & MASK)
    }

    /// How many steps of [`next`](Self::next) lead from it to `later`: below 2^15.
    #[inline]
    #[must_use]
    pub const fn distance_to(self, later: Self) -> u16 {
        later.0.wrapping_sub(self.0) & MASK
    }

    /// a < b, that is 0 < (b - a) mod 2^15 < 2^14 (3). Of two numbers that are 2^14 apart neither is before the other.
    #[inline]
    #[must_use]
    pub const fn is_before(self, later: Self) -> bool {
        let distance = self.distance_to(later);
        0 < distance && distance < HALF
    }

    /// The number of 64 bits with these low bits that is nearest to `reference`: at most 2^14 above it, less than 2^14
    /// below it (5.2). Where that would be below 0 or above `u64::MAX` it is the nearest that is not.
    #[inline]
    #[must_use]
    pub const fn expand(self, reference: u64) -> u64 {
        let ahead = Self::of(reference).distance_to(self);
        let behind = COUNT - ahead;
        match (reference.checked_add(ahead as u64), reference.checked_sub(behind as u64)) {
            (Some(above), _) if ahead <= HALF => above,
            (_, Some(below)) => below,
            (Some(above), None) => above,
            // Both at once would need less than 2^15 numbers of 64 bits.
            (None, None) => reference,
        }
    }
}
