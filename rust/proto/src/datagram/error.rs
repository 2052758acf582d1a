//! Errors of a packet.

use thiserror::Error;

use super::layout::SACK_WORDS_MAX;

/// Octets that are no packet, or a packet that cannot be written. Each names the field and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The octets end within this field.
    #[error("{len} octets are too few: {field} ends at {end}")]
    Cut {
        /// The first field that is not there whole.
        field: &'static str,
        /// Octets from the start of the packet to its end.
        end: usize,
        /// Octets that there are.
        len: usize,
    },
    /// Neither number is valid: such a packet has no meaning (2).
    #[error("neither SEQ nor ACK is set")]
    NoNumbers,
    /// No mode has this number (2.3).
    #[error("mode {code} is unknown")]
    Mode {
        /// The mode field.
        code: u8,
    },
    /// More than 11 bits hold (2.2); only in a packet to be written.
    #[error("lrank is {lrank}, it can be 2047 at most")]
    Lrank {
        /// The rank.
        lrank: u16,
    },
    /// The length is not that of the user data.
    #[error("len is {len}, but there are {found} octets of user data")]
    Len {
        /// The len field.
        len: u32,
        /// Octets of user data that there are.
        found: usize,
    },
    /// Bits that must be 0 are not.
    #[error("reserved bits of {field} are {value:#x}, not 0")]
    Reserved {
        /// The field.
        field: &'static str,
        /// Its reserved bits.
        value: u32,
    },
    /// A bitmap with a number of words that is not allowed (5.5).
    #[error("SACK of {count} words, it has 1 to {SACK_WORDS_MAX}")]
    SackWords {
        /// The count in the packet.
        count: u16,
    },
    /// It has no sequence number, so it can be lost without anybody knowing, and must not have this (2).
    #[error("{field} without SEQ")]
    WithoutSeq {
        /// The part that it has.
        field: &'static str,
    },
    /// It belongs to an acknowledgment, and there is none.
    #[error("{field} without ACK")]
    WithoutAck {
        /// The part that the packet has.
        field: &'static str,
    },
    /// The two exclude each other.
    #[error("{field} together with {other}")]
    Together {
        /// One.
        field: &'static str,
        /// The other.
        other: &'static str,
    },
    /// The mode or a flag needs a block that is missing.
    #[error("{what} without {block}")]
    NoBlock {
        /// The part that needs it.
        what: &'static str,
        /// The block.
        block: &'static str,
    },
    /// The user data would end behind the end of their message.
    #[error("{len} octets at offset {offset} of a message of {total}")]
    Beyond {
        /// Their offset.
        offset: u64,
        /// Their number.
        len: u32,
        /// Octets of the message.
        total: u64,
    },
    /// The octets are not those that were sent.
    #[error("the CRC32C is {found:#010x}, but the octets have {computed:#010x}")]
    Checksum {
        /// The trailer.
        found: u32,
        /// That of the octets before it.
        computed: u32,
    },
    /// There is no room for the packet; only in a packet to be written.
    #[error("the packet has {len} octets, but there is room for {capacity}")]
    Capacity {
        /// The length that it needs.
        len: usize,
        /// The room that there is.
        capacity: usize,
    },
}
