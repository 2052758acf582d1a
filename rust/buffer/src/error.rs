//! Errors of the packing engine: small enums with their numbers.

use thiserror::Error;

use crate::layout::{
    ENCODING_OCTET, PRIMARY_LEN_FIELD, SECONDARY_LEN_FIELD, SECTION_COUNT_FIELD, SECTION_TYPE_OCTET,
};
use crate::types::Type;

/// A failed call on a buffer; buffer and destination are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BufferError {
    /// The section does not fit the capacity.
    #[error(
        "buffer overflow: {needed} octets needed for the section, {available} available of capacity \
         {capacity}"
    )]
    Overflow {
        /// Octets of the section: header, data and padding.
        needed: u64,
        /// Octets available.
        available: u64,
        /// Capacity of the buffer.
        capacity: u64,
    },
    /// The capacity asked for is negative or above the largest one.
    #[error("capacity {asked} is outside 0 to {max}")]
    Capacity {
        /// The capacity as given.
        asked: i64,
        /// The largest capacity.
        max: u64,
    },
    /// A read after the last section.
    #[error("no further section: all {sections} of this message have been read, {wanted} wanted")]
    EndOfSections {
        /// Type that the read asked for.
        wanted: Type,
        /// Sections of this message.
        sections: usize,
    },
    /// The section holds another type.
    #[error("type mismatch: section {section} holds {found}, {wanted} wanted")]
    TypeMismatch {
        /// Type that the read asked for.
        wanted: Type,
        /// Type of the section.
        found: Type,
        /// Number of the section, from 0.
        section: usize,
    },
    /// A receive into an array accepts a message of one section only.
    #[error(
        "the message holds {sections} sections and {secondary} octets of objects, one section of {wanted} \
         wanted"
    )]
    NotSole {
        /// Type of the array.
        wanted: Type,
        /// Sections of the message.
        sections: usize,
        /// Octets of its secondary payload.
        secondary: u64,
    },
    /// The section of a packing unit does not fit the items that it is unpacked to.
    #[error(
        "the packed section at octet {position} has {found} elements of {element}, up to {room} of {wanted} \
         fit"
    )]
    UnitSection {
        /// Octet of the unit where the section begins.
        position: u64,
        /// Elements of the section.
        found: u64,
        /// Type of the section.
        element: Type,
        /// Elements of the items.
        room: u64,
        /// Type of the items.
        wanted: Type,
    },
    /// The section holds another number of elements.
    #[error("section size mismatch: section {section} holds {found} elements, {wanted} wanted")]
    SizeMismatch {
        /// Elements that the read asked for.
        wanted: u64,
        /// Elements of the section.
        found: u64,
        /// Number of the section, from 0.
        section: usize,
    },
    /// An argument is negative.
    #[error("{what} is negative: {value}")]
    Negative {
        /// Name of the argument.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// The elements reach outside the array.
    #[error("{what}: offset {offset} and count {count} reach outside an array of length {length}")]
    ArrayBounds {
        /// Name of the array.
        what: &'static str,
        /// First element.
        offset: i64,
        /// Number of elements.
        count: i64,
        /// Elements of the array.
        length: u64,
    },
    /// An index of a gather or scatter is outside the array.
    #[error("index {index} at position {position} is outside an array of length {length}")]
    Index {
        /// The index, with the base offset added.
        index: i64,
        /// Its position among the indices, from 0.
        position: u64,
        /// Elements of the array.
        length: u64,
    },
    /// A strided patch reaches outside the array.
    #[error(
        "the strided patch reaches from element {lowest} to {highest}, outside an array of length {length}"
    )]
    Patch {
        /// Smallest element number.
        lowest: i128,
        /// Largest element number.
        highest: i128,
        /// Elements of the array.
        length: u64,
    },
    /// The extents of a strided patch multiply to more than a section can count.
    #[error("the extents multiply to more than {max} elements")]
    Volume {
        /// The largest count.
        max: u64,
    },
    /// Objects cannot be added to those of a received message: their stream cannot be continued.
    #[error("objects cannot be added to a received message that holds objects: clear the buffer first")]
    ForeignStream,
    /// The secondary payload would exceed 2 GiB.
    #[error("secondary payload overflow: {len} octets and {more} more pass {max}")]
    SecondaryOverflow {
        /// Octets so far.
        len: u64,
        /// Octets to be added.
        more: u64,
        /// The largest length.
        max: u64,
    },
    /// A message does not fit the receiving buffer.
    #[error("message too long: {needed} octets of primary payload, capacity {capacity}")]
    TooLong {
        /// Octets needed.
        needed: u64,
        /// Capacity of the buffer.
        capacity: u64,
    },
    /// The message itself is damaged.
    #[error("damaged message at offset {offset}: {damage}")]
    Damaged {
        /// Octets from the start of the message to the field.
        offset: u64,
        /// Damage that was found.
        damage: Damage,
    },
    /// There is no memory for the message.
    #[error(transparent)]
    Slab(#[from] SlabError),
}

/// Damage of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// Unknown encoding octet.
    #[error("encoding octet {code} is neither 0 (big-endian) nor 1 (little-endian)")]
    Encoding {
        /// The octet.
        code: u8,
    },
    /// Impossible length of the primary payload.
    #[error("primary payload length {len} is negative, too large or not a multiple of 8")]
    PrimaryLen {
        /// The field.
        len: i32,
    },
    /// Impossible length of the secondary payload.
    #[error("secondary payload length {len} is negative")]
    SecondaryLen {
        /// The field.
        len: i32,
    },
    /// Unknown type code.
    #[error("type code {code} is not one of 0 to 8")]
    TypeCode {
        /// The octet.
        code: u8,
    },
    /// Impossible element count.
    #[error("element count {count} is negative")]
    Count {
        /// The field.
        count: i32,
    },
    /// A section reaches past the primary payload.
    #[error("section of {needed} octets, only {available} of the primary payload left")]
    SectionLen {
        /// Octets of header, data and padding.
        needed: u64,
        /// Octets left.
        available: u64,
    },
    /// The octets end before the message does.
    #[error("{have} octets, {need} needed")]
    Short {
        /// Octets that are present.
        have: u64,
        /// Octets that the headers announce.
        need: u64,
    },
    /// Octets follow the end of the message.
    #[error("{have} octets, the message ends after {need}")]
    Long {
        /// Octets that are present.
        have: u64,
        /// Octets that the headers announce.
        need: u64,
    },
}

impl Damage {
    /// The error that places this damage in the message: `offset` is that of the header for a damaged header,
    /// and the error then points at the field inside it.
    pub fn at(self, offset: usize) -> BufferError {
        let field = match self {
            Damage::PrimaryLen { .. } => PRIMARY_LEN_FIELD.start,
            Damage::SecondaryLen { .. } => SECONDARY_LEN_FIELD.start,
            Damage::Count { .. } => SECTION_COUNT_FIELD.start,
            Damage::Encoding { .. } => ENCODING_OCTET,
            Damage::TypeCode { .. } => SECTION_TYPE_OCTET,
            Damage::SectionLen { .. } | Damage::Short { .. } | Damage::Long { .. } => 0,
        };
        BufferError::Damaged { offset: (offset + field) as u64, damage: self }
    }
}

/// There is no memory for a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SlabError {
    /// The limit on message memory is reached.
    #[error("message memory: {asked} octets asked, {used} of {limit} in use")]
    Limit {
        /// Octets asked for.
        asked: u64,
        /// Octets in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// There is memory, but none that other processes can see.
    #[error("message memory: {asked} octets asked of the segment that is shared, which is full")]
    Shared {
        /// Octets asked for.
        asked: u64,
    },
    /// The system has none.
    #[error("message memory: the system refuses {asked} octets")]
    System {
        /// Octets asked for.
        asked: u64,
    },
}
