//! The RTS of a message that is not matched itself, for the C MPI engine.
//!
//! ```text
//!  0        4           8            12
//! +--------+-----------+------------+
//! | number | first_len | second_len |   each unsigned, little-endian
//! +--------+-----------+------------+
//! ```
//!
//! The highest bit of `first_len` is set for a synchronous message: its sender waits for a match ack with the
//! number of the RTS.
//!
//! A choice of ours. With a C MPI a receive learns nothing of a message that is longer than its memory:
//! neither its length nor, on some fabrics, any octet. So the library matches only messages that fit every
//! receive: messages of up to [`EAGER_MAX`] octets as they are, and an RTS for all others and for split ones.
//! An RTS is shorter than any message, which tells the two apart, also for a probe. The physical messages
//! follow on communicators of their own from the same rank, with the number modulo `TAG_UB` + 1 as tag, so
//! halves never mix.

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

use crate::send_policy::HEADERS_LEN;

/// Octets of an RTS.
pub const RTS_LEN: usize = 12;

/// Octets of the longest message that is sent eagerly; every receive has room for it.
pub const EAGER_MAX: usize = 4096;

const _: () = assert!(RTS_LEN < HEADERS_LEN);

/// The RTS of a message of one or two physical messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rts {
    /// The pairing number, at least 1.
    pub number: u32,
    /// Octets of the first physical message, with both headers.
    pub first_len: u32,
    /// Octets of the second one; 0 when there is none.
    pub second_len: u32,
    /// The sender waits until a receive matches it.
    pub is_synchronous: bool,
}

/// Set in the field of the first length for a synchronous message.
const SYNCHRONOUS: u32 = 1 << 31;

/// Numbers that no sender puts into an RTS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an RTS with number {number} and lengths {first_len} and {second_len} is invalid")]
pub struct RtsError {
    number: u32,
    first_len: u32,
    second_len: u32,
}

/// Whether a message with these physical messages is sent eagerly.
#[inline]
#[must_use]
pub fn is_eager(first_len: usize, second_len: usize) -> bool {
    first_len <= EAGER_MAX && second_len == 0
}

impl Rts {
    /// Its octets.
    #[must_use]
    pub fn emit(&self) -> [u8; RTS_LEN] {
        let mut octets = [0; RTS_LEN];
        let flag = if self.is_synchronous { SYNCHRONOUS } else { 0 };
        let values = [self.number, self.first_len | flag, self.second_len];
        LittleEndian::write_u32_into(&values, &mut octets);
        octets
    }

    /// The RTS with these octets.
    ///
    /// # Errors
    /// The number is 0, the first message is shorter than its headers, or one of them is longer than any can
    /// be.
    pub fn parse(octets: &[u8; RTS_LEN]) -> Result<Rts, RtsError> {
        let mut fields = [0; 3];
        LittleEndian::read_u32_into(octets, &mut fields);
        let [number, flagged_len, second_len] = fields;
        let (first_len, is_synchronous) = (flagged_len & !SYNCHRONOUS, flagged_len & SYNCHRONOUS != 0);
        let is_sound =
            number > 0 && first_len as usize >= HEADERS_LEN && second_len <= i32::MAX.cast_unsigned();
        match is_sound {
            true => Ok(Rts { number, first_len, second_len, is_synchronous }),
            false => Err(RtsError { number, first_len, second_len }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the fields have the offsets of the diagram.
    #[test]
    fn rts_fields_are_at_their_offsets() {
        let rts = Rts { number: 0x0102_0304, first_len: 5000, second_len: 7, is_synchronous: false };
        let octets = rts.emit();
        assert_eq!(octets, [4, 3, 2, 1, 0x88, 0x13, 0, 0, 7, 0, 0, 0]);
        assert_eq!(Rts::parse(&octets), Ok(rts));
        let synchronous = Rts { is_synchronous: true, ..rts };
        let octets = synchronous.emit();
        assert_eq!(octets, [4, 3, 2, 1, 0x88, 0x13, 0, 0x80, 7, 0, 0, 0]);
        assert_eq!(Rts::parse(&octets), Ok(synchronous));
    }

    /// Proves that the RTS of the largest message is accepted, and one with a longer message, a message
    /// shorter than its headers, or number 0 is refused.
    #[test]
    fn rts_with_impossible_values_is_refused() {
        let parse = |number, first_len, second_len| {
            let rts = Rts { number, first_len, second_len, is_synchronous: false };
            Rts::parse(&rts.emit()).is_ok()
        };
        let max = i32::MAX.cast_unsigned();
        assert!(parse(1, 16, 0) && parse(u32::MAX, max, max));
        assert!(!parse(0, 16, 0) && !parse(1, 15, 0) && !parse(1, 16, max + 1));
    }

    /// Proves that a message is eager up to [`EAGER_MAX`] octets and without a secondary payload.
    #[test]
    fn messages_are_eager_up_to_the_limit_without_secondary_payload() {
        assert!(is_eager(HEADERS_LEN, 0) && is_eager(EAGER_MAX, 0));
        assert!(!is_eager(EAGER_MAX + 1, 0) && !is_eager(HEADERS_LEN, 1));
    }
}
