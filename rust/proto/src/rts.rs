//! The RTS of a message that is not matched itself, for the C MPI engine.
//!
//! ```text
//!  0        4           8            12            16              20
//! +--------+-----------+------------+-------------+---------------+
//! | number | first_len | second_len | first_count | first_element |   each unsigned, little-endian
//! +--------+-----------+------------+-------------+---------------+
//! ```
//!
//! The highest bit of `first_len` is set for a synchronous message: its sender waits for a match ack with the
//! number of the RTS. The last two fields are count and type code of the first section, for probes; the code
//! is 255 without a section.
//!
//! A choice of ours. With a C MPI a receive learns nothing of a message that is longer than its memory:
//! neither its length nor, on some fabrics, any octet. So the library matches only messages that fit every
//! receive: messages of up to [`EAGER_MAX`] octets as they are, and an RTS for all others and for split ones.
//! No message of the length of an RTS is sent as it is, which tells the two apart, also for a probe. The
//! physical messages follow on communicators of their own from the same rank, with the number modulo
//! `TAG_UB` + 1 as tag, so halves never mix.

use byteorder::{ByteOrder, LittleEndian};
use mpjdev_buffer::layout::SECTION_HEADER_LEN;
use thiserror::Error;

use crate::send_policy::HEADERS_LEN;

/// Octets of an RTS.
pub const RTS_LEN: usize = 20;

/// Octets of the longest message that is sent eagerly; every receive has room for it.
pub const EAGER_MAX: usize = 16 << 10;

// A message without objects is never sent by an RTS because of its length alone.
const _: () = assert!(RTS_LEN > HEADERS_LEN && RTS_LEN < HEADERS_LEN + SECTION_HEADER_LEN);

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
    /// Type code and count of the first section, if there is one.
    pub first_section: Option<(u8, u32)>,
}

/// Set in the field of the first length for a synchronous message.
const SYNCHRONOUS: u32 = 1 << 31;
/// The type code that stands for "no section".
const NO_SECTION: u8 = u8::MAX;

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
    first_len <= EAGER_MAX && first_len != RTS_LEN && second_len == 0
}

impl Rts {
    /// Its octets.
    #[must_use]
    pub fn emit(&self) -> [u8; RTS_LEN] {
        let mut octets = [0; RTS_LEN];
        let flag = if self.is_synchronous { SYNCHRONOUS } else { 0 };
        let (element, count) = self.first_section.unwrap_or((NO_SECTION, 0));
        let values = [self.number, self.first_len | flag, self.second_len, count, element.into()];
        LittleEndian::write_u32_into(&values, &mut octets);
        octets
    }

    /// The RTS with these octets.
    ///
    /// # Errors
    /// The number is 0, the first message is shorter than its headers, or one of them is longer than any can
    /// be.
    pub fn parse(octets: &[u8; RTS_LEN]) -> Result<Rts, RtsError> {
        let mut fields = [0; 5];
        LittleEndian::read_u32_into(octets, &mut fields);
        let [number, flagged_len, second_len, count, element] = fields;
        let (first_len, is_synchronous) = (flagged_len & !SYNCHRONOUS, flagged_len & SYNCHRONOUS != 0);
        let is_sound =
            number > 0 && first_len as usize >= HEADERS_LEN && second_len <= i32::MAX.cast_unsigned();
        match is_sound {
            true => {
                // An unknown code is no section: only probes use it.
                let element = u8::try_from(element).ok().filter(|element| *element != NO_SECTION);
                let first_section = element.map(|element| (element, count));
                Ok(Rts { number, first_len, second_len, is_synchronous, first_section })
            }
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
        let (number, first_section) = (0x0102_0304, Some((4, 0x0908_0706)));
        let rts = Rts { number, first_len: 5000, second_len: 7, is_synchronous: false, first_section };
        let octets = rts.emit();
        assert_eq!(octets, [4, 3, 2, 1, 0x88, 0x13, 0, 0, 7, 0, 0, 0, 6, 7, 8, 9, 4, 0, 0, 0]);
        assert_eq!(Rts::parse(&octets), Ok(rts));
        let synchronous = Rts { is_synchronous: true, first_section: None, ..rts };
        let octets = synchronous.emit();
        assert_eq!(octets, [4, 3, 2, 1, 0x88, 0x13, 0, 0x80, 7, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0]);
        assert_eq!(Rts::parse(&octets), Ok(synchronous));
    }

    /// Proves that the RTS of the largest message is accepted, and one with a longer message, a message
    /// shorter than its headers, or number 0 is refused.
    #[test]
    fn rts_with_impossible_values_is_refused() {
        let parse = |number, first_len, second_len| {
            let rts = Rts { number, first_len, second_len, is_synchronous: false, first_section: None };
            Rts::parse(&rts.emit()).is_ok()
        };
        let max = i32::MAX.cast_unsigned();
        assert!(parse(1, 16, 0) && parse(u32::MAX, max, max));
        assert!(!parse(0, 16, 0) && !parse(1, 15, 0) && !parse(1, 16, max + 1));
    }

    /// Proves that a message is eager up to [`EAGER_MAX`] octets and without a secondary payload, unless it
    /// has the length of an RTS.
    #[test]
    fn messages_are_eager_up_to_the_limit_without_secondary_payload() {
        assert!(is_eager(HEADERS_LEN, 0) && is_eager(EAGER_MAX, 0));
        assert!(!is_eager(EAGER_MAX + 1, 0) && !is_eager(HEADERS_LEN, 1));
        assert!(is_eager(RTS_LEN - 1, 0) && !is_eager(RTS_LEN, 0) && is_eager(RTS_LEN + 1, 0));
    }
}
