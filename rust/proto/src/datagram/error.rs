//! Errors of a packet.

use thiserror::Error;

use super::layout::SACK_WORDS_MAX;

/// Octets that are not a valid packet, or a packet that cannot be emitted. Each variant names the field and
/// its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The octets end within this field.
    #[error("{len} octets are too few: {field} ends at {end}")]
    Cut {
        /// The first incomplete field.
        field: &'static str,
        /// Octets from the start of the packet to the end of the field.
        end: usize,
        /// Octets of the packet.
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
    /// More than 11 bits can hold (2.2); only when a packet is emitted.
    #[error("lrank is {lrank}, it can be 2047 at most")]
    Lrank {
        /// The rank.
        lrank: u16,
    },
    /// The len field does not match the user data.
    #[error("len is {len}, but there are {found} octets of user data")]
    Len {
        /// The len field.
        len: u32,
        /// Octets of user data.
        found: usize,
    },
    /// Reserved bits are not 0.
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
    /// It has no sequence number, so its loss would not be detected, and must not carry this field (2).
    #[error("{field} without SEQ")]
    WithoutSeq {
        /// The field.
        field: &'static str,
    },
    /// The field needs an acknowledgment number, and there is none.
    #[error("{field} without ACK")]
    WithoutAck {
        /// The field.
        field: &'static str,
    },
    /// Two fields exclude each other.
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
        /// The mode or flag.
        what: &'static str,
        /// The missing block.
        block: &'static str,
    },
    /// The user data reach past the end of their message.
    #[error("{len} octets at offset {offset} of a message of {total}")]
    Beyond {
        /// Their offset.
        offset: u64,
        /// Their number.
        len: u32,
        /// Octets of the message.
        total: u64,
    },
    /// The checksum does not match.
    #[error("the CRC32C is {found:#010x}, but the octets have {computed:#010x}")]
    Checksum {
        /// The checksum in the trailer.
        found: u32,
        /// The checksum of the octets.
        computed: u32,
    },
    /// The packet does not fit; only when a packet is emitted.
    #[error("the packet has {len} octets, but there is room for {capacity}")]
    Capacity {
        /// Octets needed.
        len: usize,
        /// Octets available.
        capacity: usize,
    },
}
