//! Every constant of a packet: sizes, fields, modes, flags, blocks.
//!
//! The header is that of section 2.2; the extension has the fields of section 5.2 in a layout of ours.
//! [`super::header`] and [`super::extension`] draw both.

use std::ops::Range;

/// Octets of the header (2).
pub const HEADER_LEN: usize = 16;
/// Octets of the part of the extension that every reliable packet has. A choice of ours.
pub const EXTENSION_LEN: usize = 16;
/// Octets of a reliable packet in front of its blocks.
pub const FIXED_LEN: usize = HEADER_LEN + EXTENSION_LEN;
/// Octets of the trailer of a packet with CHECKED: CRC32C of all octets before it (5.1).
pub const TRAILER_LEN: usize = 4;
/// Most octets of a reliable packet in front of its user data: all blocks at once.
pub const HEAD_LEN_MAX: usize =
    FIXED_LEN + SACK_LEN_MAX + CONTEXT_LEN + REQUEST_LEN + GRANT_LEN + FRAGMENT_LEN + DELAY_LEN;

/// Field: SEQ, sequence number, ACK, acknowledgment number (2.2, word 0).
pub const NUMBERS_FIELD: Range<usize> = 0..4;
/// Field: mode, context id, lrank (2.2, word 1).
pub const MODE_FIELD: Range<usize> = 4..8;
/// Field: tag, signed (2.2, word 2).
pub const TAG_FIELD: Range<usize> = 8..12;
/// Field: octets of user data in this packet, unsigned (2.2, word 3).
pub const LEN_FIELD: Range<usize> = 12..16;
/// Field of reliable packets: connection id (5.2).
pub const CONNECTION_FIELD: Range<usize> = 16..24;
/// Field of reliable packets: flags (5.2).
pub const FLAGS_FIELD: Range<usize> = 24..26;
/// Field of reliable packets: receive window in packets (5.2).
pub const WINDOW_FIELD: Range<usize> = 26..28;
/// Field of reliable packets: the upper bits of the sequence number (5.2).
pub const SEQ_HIGH_FIELD: Range<usize> = 28..30;
/// Field of reliable packets: the upper bits of the acknowledgment number (5.2).
pub const ACK_HIGH_FIELD: Range<usize> = 30..32;

/// Bit in the first word: the sequence number is valid, and the packet consumes it (2).
pub const SEQ_BIT: u32 = 1 << 31;
/// The position of the sequence number in the first word (2.2).
pub const SEQ_SHIFT: u32 = 16;
/// Bit in the first word: the acknowledgment number is valid (2).
pub const ACK_BIT: u32 = 1 << 15;
/// Bits of a sequence number in the header (2).
pub const SEQUENCE_BITS: u32 = 15;
/// Bits of a sequence number of a reliable packet: those of the header, and 16 of the extension above them
/// (5.2).
pub const FULL_SEQUENCE_BITS: u32 = SEQUENCE_BITS + 16;
/// The position of the mode in the second word: 5 bits (2.2).
pub const MODE_SHIFT: u32 = 27;
/// The position of the context id in the second word: 16 bits (2.2).
pub const CONTEXT_ID_SHIFT: u32 = 11;
/// The largest lrank: 11 bits (2.2).
pub const LRANK_MAX: u16 = (1 << CONTEXT_ID_SHIFT) - 1;

/// Most unacknowledged messages: one less than half the numbers (3).
pub const WINDOW_MAX: u16 = (1 << (SEQUENCE_BITS - 1)) - 1;

/// Flag: requests an immediate acknowledgment (5.6).
pub const ACK_REQ: u16 = 1 << 0;
/// Flag: the packet with the acknowledgment number is missing, and a later one was received (5.5).
pub const NAK: u16 = 1 << 1;
/// Flag: the last packet of the sender; consumes a sequence number (5.8).
pub const FIN: u16 = 1 << 2;
/// Flag: the connection is unknown to the sender (5.8).
pub const RST: u16 = 1 << 3;
/// Flag: reserved for the echo of congestion marks (5.7).
pub const ECN_ECHO: u16 = 1 << 4;
/// Flag: a duplicate was received since the last acknowledgment (5.5).
pub const DUPLICATE: u16 = 1 << 5;
/// Flag: the sender of the message waits for its match (2.3, REQUEST_SEND).
pub const SYNC: u16 = 1 << 6;
/// Flag: a block follows with the packets received out of order (5.5).
pub const SACK: u16 = 1 << 8;
/// Flag: a block follows with the context of the context id. A choice of ours.
pub const CONTEXT: u16 = 1 << 9;
/// Flag: a block follows that names a message and its whole length (5.9).
pub const REQUEST: u16 = 1 << 10;
/// Flag: a block follows that permits octets of a message to be sent (5.9).
pub const GRANT: u16 = 1 << 11;
/// Flag: a block follows that places the user data in their message (5.9).
pub const FRAGMENT: u16 = 1 << 12;
/// Flag: a block follows with the delay of the acknowledgment (5.2, 5.3).
pub const DELAY: u16 = 1 << 13;
/// Flag: a CRC32C of all octets before it follows the user data (5.1).
pub const CHECKED: u16 = 1 << 14;
/// Bits of the flags that must be 0. A choice of ours.
pub const FLAGS_RESERVED: u16 = 1 << 7 | 1 << 15;

/// Octets of the block of [`SACK`] in front of its bitmap: the number of words, 2 reserved octets.
pub const SACK_LEN: usize = 4;
/// Octets of a word of the bitmap, which names 64 packets.
pub const SACK_WORD_LEN: usize = 8;
/// Most words of the bitmap: two round trips of a link of 1 Gbit/s and 10 ms, for a loss that is repaired
/// after one.
pub const SACK_WORDS_MAX: usize = 32;
/// Most octets of the block.
pub const SACK_LEN_MAX: usize = SACK_LEN + SACK_WORDS_MAX * SACK_WORD_LEN;
/// Octets of the block of [`CONTEXT`]: a context.
pub const CONTEXT_LEN: usize = 8;
/// Octets of the block of [`REQUEST`]: message id, 4 reserved octets, total length.
pub const REQUEST_LEN: usize = 16;
/// Octets of the block of [`GRANT`]: message id, destination id, granted octets.
pub const GRANT_LEN: usize = 16;
/// Octets of the block of [`FRAGMENT`]: message id, destination id, total length, offset.
pub const FRAGMENT_LEN: usize = 24;
/// Octets of the block of [`DELAY`]: delay, 2 reserved octets.
pub const DELAY_LEN: usize = 4;

/// Every flag: bit, name, octets of its block. Blocks follow each other in the order of this table.
pub const FLAGS: [(u16, &str, usize); 14] = [
    (ACK_REQ, "ACK_REQ", 0),
    (NAK, "NAK", 0),
    (FIN, "FIN", 0),
    (RST, "RST", 0),
    (ECN_ECHO, "ECN_ECHO", 0),
    (DUPLICATE, "DUPLICATE", 0),
    (SYNC, "SYNC", 0),
    (SACK, "SACK", SACK_LEN),
    (CONTEXT, "CONTEXT", CONTEXT_LEN),
    (REQUEST, "REQUEST", REQUEST_LEN),
    (GRANT, "GRANT", GRANT_LEN),
    (FRAGMENT, "FRAGMENT", FRAGMENT_LEN),
    (DELAY, "DELAY", DELAY_LEN),
    (CHECKED, "CHECKED", 0),
];

/// Flags of blocks; most packets have none of them.
pub const BLOCKS: u16 = SACK | CONTEXT | REQUEST | GRANT | FRAGMENT | DELAY;

/// Octets of the blocks of these flags, without the words of the bitmap. Reserved bits have no block.
#[inline]
#[must_use]
pub const fn blocks_len(flags: u16) -> usize {
    if flags & BLOCKS == 0 {
        return 0;
    }
    let mut len = 0;
    let mut k = 0;
    while k < FLAGS.len() {
        let (bit, _, block) = FLAGS[k];
        if flags & bit != 0 {
            len += block;
        }
        k += 1;
    }
    len
}

const _: () = assert!(HEAD_LEN_MAX == FIXED_LEN + blocks_len(u16::MAX) + SACK_WORDS_MAX * SACK_WORD_LEN);
const _: () = assert!(NUMBERS_FIELD.end == MODE_FIELD.start && MODE_FIELD.end == TAG_FIELD.start);
const _: () = assert!(TAG_FIELD.end == LEN_FIELD.start && LEN_FIELD.end == HEADER_LEN);
const _: () = assert!(CONNECTION_FIELD.start == HEADER_LEN && CONNECTION_FIELD.end == FLAGS_FIELD.start);
const _: () = assert!(FLAGS_FIELD.end == WINDOW_FIELD.start && WINDOW_FIELD.end == SEQ_HIGH_FIELD.start);
const _: () = assert!(SEQ_HIGH_FIELD.end == ACK_HIGH_FIELD.start && ACK_HIGH_FIELD.end == FIXED_LEN);
const _: () = assert!(WINDOW_MAX == 16383 && LRANK_MAX == 2047);

/// Flags and reserved bits cover all bits once, in ascending order.
const _: () = {
    let mut all = FLAGS_RESERVED;
    let mut last = 0;
    let mut k = 0;
    while k < FLAGS.len() {
        let bit = FLAGS[k].0;
        assert!(bit.is_power_of_two() && all & bit == 0 && bit > last);
        assert!((FLAGS[k].2 > 0) == (BLOCKS & bit != 0));
        all |= bit;
        last = bit;
        k += 1;
    }
    assert!(all == u16::MAX);
};
