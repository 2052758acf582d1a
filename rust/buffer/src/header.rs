//! Primary, section and secondary header: parse with checks, emit.
//!
//! ```text
//!            octet 0        1 .. 3      4 .. 7
//! primary    encoding       unused 0    p: octets of the primary payload, multiple of 8
//! section    type code      unused 0    count: elements
//! secondary  pairing number, else 0     s: octets of the secondary payload
//! ```
//!
//! Each fills one word of eight octets. Unused octets are written as zero and ignored when read.

use crate::encoding::Encoding;
use crate::error::Damage;
use crate::layout::{
    ALIGNMENT, CAPACITY_MAX, COUNT_MAX, ENCODING_OCTET, PAIR_FIELD, PRIMARY_LEN_FIELD, SECONDARY_LEN_FIELD,
    SECTION_COUNT_FIELD, SECTION_TYPE_OCTET, padding,
};
use crate::types::Type;

/// The header that starts a message: byte order and length of the primary payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimaryHeader {
    /// Byte order of the headers and the primitive data.
    pub encoding: Encoding,
    /// p: octets of the primary payload.
    pub primary_len: usize,
}

impl PrimaryHeader {
    /// Reads and checks the eight octets.
    ///
    /// # Errors
    /// An encoding octet other than 0 or 1; a length that is negative, above the largest capacity, or
    /// not a multiple of 8.
    #[inline(always)]
    pub fn parse(octets: [u8; 8]) -> Result<Self, Damage> {
        let code = octets[ENCODING_OCTET];
        let encoding = Encoding::from_code(code).ok_or(Damage::Encoding { code })?;
        let len = encoding.get_u32(&octets[PRIMARY_LEN_FIELD]) as usize;
        if len > CAPACITY_MAX || !len.is_multiple_of(ALIGNMENT) {
            return Err(Damage::PrimaryLen { len: len as u32 as i32 });
        }
        Ok(PrimaryHeader { encoding, primary_len: len })
    }

    /// The eight octets of this header.
    #[inline(always)]
    pub fn emit(self) -> [u8; 8] {
        let mut octets = [0; 8];
        octets[ENCODING_OCTET] = self.encoding.code();
        self.encoding.put_u32(&mut octets[PRIMARY_LEN_FIELD], self.primary_len as u32);
        octets
    }
}

/// The header that starts a section: type and number of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// Type of the elements.
    pub element: Type,
    /// Number of elements.
    pub count: usize,
}

impl SectionHeader {
    /// Reads and checks the eight octets.
    ///
    /// # Errors
    /// An unknown type code or a negative count.
    #[inline(always)]
    pub fn parse(octets: [u8; 8], encoding: Encoding) -> Result<Self, Damage> {
        let code = octets[SECTION_TYPE_OCTET];
        let element = Type::from_code(code).ok_or(Damage::TypeCode { code })?;
        let count = encoding.get_u32(&octets[SECTION_COUNT_FIELD]);
        if count as usize > COUNT_MAX {
            return Err(Damage::Count { count: count as i32 });
        }
        Ok(SectionHeader { element, count: count as usize })
    }

    /// The eight octets of this header.
    #[inline(always)]
    pub fn emit(self, encoding: Encoding) -> [u8; 8] {
        let mut octets = [0; 8];
        octets[SECTION_TYPE_OCTET] = self.element.code();
        encoding.put_u32(&mut octets[SECTION_COUNT_FIELD], self.count as u32);
        octets
    }

    /// Octets of the data, without padding. Cannot overflow: the count fits 31 bits.
    #[inline(always)]
    pub const fn data_len(self) -> usize {
        self.count * self.element.size()
    }

    /// Octets of the data and their padding.
    #[inline(always)]
    pub const fn padded_len(self) -> usize {
        self.data_len() + padding(self.data_len())
    }
}

/// The header between the two payloads: length of the secondary payload, pairing number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondaryHeader {
    /// s: octets of the secondary payload; 0 when there is none.
    pub secondary_len: usize,
    /// Pairing number of a split message on transports that cannot carry it elsewhere; else 0.
    pub pair: u32,
}

impl SecondaryHeader {
    /// Reads and checks the eight octets.
    ///
    /// # Errors
    /// A negative length.
    #[inline(always)]
    pub fn parse(octets: [u8; 8], encoding: Encoding) -> Result<Self, Damage> {
        let len = encoding.get_u32(&octets[SECONDARY_LEN_FIELD]);
        if len as usize > COUNT_MAX {
            return Err(Damage::SecondaryLen { len: len as i32 });
        }
        let pair = encoding.get_u32(&octets[PAIR_FIELD]);
        Ok(SecondaryHeader { secondary_len: len as usize, pair })
    }

    /// The eight octets of this header.
    #[inline(always)]
    pub fn emit(self, encoding: Encoding) -> [u8; 8] {
        let mut octets = [0; 8];
        encoding.put_u32(&mut octets[PAIR_FIELD], self.pair);
        encoding.put_u32(&mut octets[SECONDARY_LEN_FIELD], self.secondary_len as u32);
        octets
    }
}
