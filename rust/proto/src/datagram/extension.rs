//! The extension of reliable packets, between header and user data.
//!
//! ```text
//!     31                            16 15                            0
//!    +-------------------------------+-------------------------------+
//! 16 | connection id                                                 |
//! 20 |                                                               |
//!    +-------------------------------+-------------------------------+
//! 24 | flags                         | window, in packets            |
//!    +-------------------------------+-------------------------------+
//! 28 | sequence number, upper bits   | acknowledgment, upper bits    |
//!    +-------------------------------+-------------------------------+
//! 32   blocks, each if its flag is set, in this order
//!
//!      SACK     4+8n  n (2), reserved (2), bitmap (8 n)
//!      CONTEXT    8   context
//!      REQUEST   16   message id, reserved, total (8)
//!      GRANT     16   message id, destination id, granted (8)
//!      FRAGMENT  24   message id, destination id, total (8), offset (8)
//!      DELAY      4   delay (2), reserved (2)
//!
//!    flags
//!     15  14  13  12  11  10   9   8   7   6   5   4   3   2   1   0
//!    +---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+
//!    | 0 |CHK|DLY|FRG|GRT|REQ|CTX|SAK| 0 |SYN|DUP|ECN|RST|FIN|NAK|ARQ|
//!    +---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+
//! ```
//!
//! Numbers without a length have 4 octets; all are unsigned, in network byte order. A packet with reserved
//! bits that are not 0 is refused. The layout is a choice of ours; section 5.2 has the fields.

use std::fmt;

use byteorder::{BigEndian, ByteOrder};

use super::error::PacketError;
use super::layout::*;

/// A message and its length (5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// Id of the message, chosen by its sender.
    pub message_id: u32,
    /// Octets of the whole message, as its sender states: nothing to allocate before they arrive.
    pub total: u64,
}

/// Permission to send octets of a message (5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The message, as its sender named it.
    pub message_id: u32,
    /// The destination id of its octets, chosen by the receiver. Each fragment has it.
    pub destination_id: u32,
    /// Octets of the message that may be sent, from its beginning.
    pub granted: u64,
}

/// The position of the user data in a message (5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The message, as its sender names it.
    pub message_id: u32,
    /// The destination id of the grant; 0 in a message that needs no grant.
    pub destination_id: u32,
    /// Octets of the whole message.
    pub total: u64,
    /// The offset of the user data in the message.
    pub offset: u64,
}

/// The packets received behind the missing one (5.5): a bitmap of 1 to [`SACK_WORDS_MAX`] words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sack {
    /// Those behind the last one are 0.
    words: [u64; SACK_WORDS_MAX],
    count: u8,
}

impl Sack {
    /// Packets that the largest bitmap covers.
    pub const REACH_MAX: u64 = SACK_WORDS_MAX as u64 * u64::BITS as u64;

    /// A bitmap of at most [`SACK_WORDS_MAX`] words; without words it has one of zeros.
    #[must_use]
    pub fn new(words: &[u64]) -> Self {
        let count = words.len().clamp(1, SACK_WORDS_MAX);
        let mut sack = Self { words: [0; SACK_WORDS_MAX], count: count as u8 };
        sack.words.iter_mut().zip(words).for_each(|(place, word)| *place = *word);
        sack
    }

    /// Its words. Bit k of word w, bit 0 the least significant, is the packet 64 w + k + 1 behind the
    /// acknowledgment number.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words[..usize::from(self.count)]
    }

    /// Packets behind the acknowledgment number that it covers.
    #[must_use]
    pub const fn reach(&self) -> u64 {
        self.count as u64 * u64::BITS as u64
    }

    const fn words_len(&self) -> usize {
        self.count as usize * SACK_WORD_LEN
    }
}

impl fmt::Debug for Sack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sack({:x?})", self.words())
    }
}

/// The extension of a reliable packet. [`Extension::new`] has neither flags nor blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// The connection id that the receiver of the packet chose at setup. Packets with another id belong to
    /// another connection (5.1).
    pub connection: u64,
    /// The upper 16 bits of the sequence number; 0 if there is none.
    pub seq_high: u16,
    /// The upper 16 bits of the acknowledgment number; 0 if there is none.
    pub ack_high: u16,
    /// Packets that the other end may send beyond the acknowledgment number (5.4).
    pub window: u16,
    /// ACK_REQ: requests an immediate acknowledgment (5.6).
    pub ack_req: bool,
    /// NAK: the packet with the acknowledgment number is missing, and a later one was received (5.5).
    pub nak: bool,
    /// FIN: the packet has the last sequence number of the sender; no message follows (5.8).
    pub fin: bool,
    /// RST: the connection is unknown to the sender (5.8).
    pub rst: bool,
    /// ECN_ECHO: reserved for the echo of congestion marks (5.7). Always clear when sent, ignored when
    /// received.
    pub ecn_echo: bool,
    /// DUPLICATE: a duplicate was received since the last acknowledgment (5.5).
    pub duplicate: bool,
    /// SYNC: the sender of this message waits for its match, which a grant with its message id reports.
    pub sync: bool,
    /// SACK: the packets received out of order. The packet with the acknowledgment number is missing (5.5).
    pub sack: Option<Sack>,
    /// CONTEXT: the context of the header's context id, in this direction, from this packet on.
    pub context: Option<u64>,
    /// REQUEST: the message that this packet begins or whose cancel it requests (5.9).
    pub request: Option<Request>,
    /// GRANT: the answer to a request (5.9).
    pub grant: Option<Grant>,
    /// FRAGMENT: the position of the user data in their message (5.9).
    pub fragment: Option<Fragment>,
    /// DELAY: the time from the receipt of the latest acknowledged packet to this acknowledgment, in
    /// microseconds (5.3). Our sender states up to 65534, and omits a longer one.
    pub delay_us: Option<u16>,
    /// CHECKED: a CRC32C of the packet follows the user data (5.1).
    pub checked: bool,
}

impl Extension {
    /// An extension without flags and blocks.
    #[inline]
    #[must_use]
    pub const fn new(connection: u64, window: u16) -> Self {
        Self {
            connection,
            seq_high: 0,
            ack_high: 0,
            window,
            ack_req: false,
            nak: false,
            fin: false,
            rst: false,
            ecn_echo: false,
            duplicate: false,
            sync: false,
            sack: None,
            context: None,
            request: None,
            grant: None,
            fragment: None,
            delay_us: None,
            checked: false,
        }
    }

    /// The flags on the wire.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> u16 {
        flag(self.ack_req, ACK_REQ)
            | flag(self.nak, NAK)
            | flag(self.fin, FIN)
            | flag(self.rst, RST)
            | flag(self.ecn_echo, ECN_ECHO)
            | flag(self.duplicate, DUPLICATE)
            | flag(self.sync, SYNC)
            | flag(self.sack.is_some(), SACK)
            | flag(self.context.is_some(), CONTEXT)
            | flag(self.request.is_some(), REQUEST)
            | flag(self.grant.is_some(), GRANT)
            | flag(self.fragment.is_some(), FRAGMENT)
            | flag(self.delay_us.is_some(), DELAY)
            | flag(self.checked, CHECKED)
    }

    /// Octets on the wire, blocks included.
    #[inline]
    #[must_use]
    pub const fn octets_len(&self) -> usize {
        let sack = match &self.sack {
            Some(sack) => sack.words_len(),
            None => 0,
        };
        EXTENSION_LEN + blocks_len(self.flags()) + sack
    }

    /// Reads an extension from the octets behind the header; returns it and the octets behind it.
    ///
    /// # Errors
    /// The octets end too early; reserved bits are not 0.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let mut reader = Reader { octets, at: 0 };
        let connection = reader.number("connection id")?;
        let flags = reader.half("flags")?;
        reserved("flags", u32::from(flags & FLAGS_RESERVED))?;
        let has = |bit: u16| flags & bit != 0;
        let mut extension = Self {
            connection,
            window: reader.half("window")?,
            seq_high: reader.half("sequence number")?,
            ack_high: reader.half("acknowledgment number")?,
            ack_req: has(ACK_REQ),
            nak: has(NAK),
            fin: has(FIN),
            rst: has(RST),
            ecn_echo: has(ECN_ECHO),
            duplicate: has(DUPLICATE),
            sync: has(SYNC),
            checked: has(CHECKED),
            ..Self::default()
        };
        if flags & BLOCKS != 0 {
            extension.read_blocks(&mut reader, flags)?;
        }
        Ok((extension, &octets[reader.at..]))
    }

    fn read_blocks(&mut self, reader: &mut Reader<'_>, flags: u16) -> Result<(), PacketError> {
        let has = |bit: u16| flags & bit != 0;
        if has(SACK) {
            self.sack = Some(reader.sack()?);
        }
        if has(CONTEXT) {
            self.context = Some(reader.number("CONTEXT")?);
        }
        if has(REQUEST) {
            let message_id = reader.id("REQUEST")?;
            reserved("REQUEST", reader.id("REQUEST")?)?;
            self.request = Some(Request { message_id, total: reader.number("REQUEST")? });
        }
        if has(GRANT) {
            let (message_id, destination_id) = (reader.id("GRANT")?, reader.id("GRANT")?);
            self.grant = Some(Grant { message_id, destination_id, granted: reader.number("GRANT")? });
        }
        if has(FRAGMENT) {
            let (message_id, destination_id) = (reader.id("FRAGMENT")?, reader.id("FRAGMENT")?);
            let (total, offset) = (reader.number("FRAGMENT")?, reader.number("FRAGMENT")?);
            self.fragment = Some(Fragment { message_id, destination_id, total, offset });
        }
        if has(DELAY) {
            let delay = reader.id("DELAY")?;
            reserved("DELAY", delay & 0xffff)?;
            self.delay_us = Some((delay >> 16) as u16);
        }
        Ok(())
    }

    /// Writes it to the front of `octets`; returns its length, [`octets_len`](Self::octets_len).
    ///
    /// # Errors
    /// `octets` is too short; then nothing is written.
    pub fn emit(&self, octets: &mut [u8]) -> Result<usize, PacketError> {
        let (len, capacity) = (self.octets_len(), octets.len());
        let Some(octets) = octets.get_mut(..len) else {
            return Err(PacketError::Capacity { len, capacity });
        };
        let mut writer = Writer { octets, at: 0 };
        writer.put_u64(self.connection);
        writer.put_u16(self.flags());
        writer.put_u16(self.window);
        writer.put_u16(self.seq_high);
        writer.put_u16(self.ack_high);
        if let Some(sack) = &self.sack {
            writer.put_u16(u16::from(sack.count));
            writer.put_u16(0);
            sack.words().iter().for_each(|word| writer.put_u64(*word));
        }
        if let Some(context) = self.context {
            writer.put_u64(context);
        }
        if let Some(Request { message_id, total }) = self.request {
            writer.put_u32(message_id);
            writer.put_u32(0);
            writer.put_u64(total);
        }
        if let Some(Grant { message_id, destination_id, granted }) = self.grant {
            writer.put_u32(message_id);
            writer.put_u32(destination_id);
            writer.put_u64(granted);
        }
        if let Some(Fragment { message_id, destination_id, total, offset }) = self.fragment {
            writer.put_u32(message_id);
            writer.put_u32(destination_id);
            writer.put_u64(total);
            writer.put_u64(offset);
        }
        if let Some(delay_us) = self.delay_us {
            writer.put_u16(delay_us);
            writer.put_u16(0);
        }
        debug_assert_eq!(writer.at, len);
        Ok(len)
    }
}

/// Reads consecutive fields.
struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], PacketError> {
        let octets = self.octets.get(self.at..).and_then(|rest| rest.first_chunk());
        let Some(octets) = octets else {
            let (end, len) = (HEADER_LEN + self.at + N, HEADER_LEN + self.octets.len());
            return Err(PacketError::Cut { field, end, len });
        };
        self.at += N;
        Ok(*octets)
    }

    fn half(&mut self, field: &'static str) -> Result<u16, PacketError> {
        Ok(BigEndian::read_u16(&self.take::<2>(field)?))
    }

    fn id(&mut self, field: &'static str) -> Result<u32, PacketError> {
        Ok(BigEndian::read_u32(&self.take::<4>(field)?))
    }

    fn number(&mut self, field: &'static str) -> Result<u64, PacketError> {
        Ok(BigEndian::read_u64(&self.take::<8>(field)?))
    }

    #[cold]
    fn sack(&mut self) -> Result<Sack, PacketError> {
        let head = self.id("SACK")?;
        reserved("SACK", head & 0xffff)?;
        let count = head >> 16;
        if count == 0 || count as usize > SACK_WORDS_MAX {
            return Err(PacketError::SackWords { count: count as u16 });
        }
        let mut sack = Sack { words: [0; SACK_WORDS_MAX], count: count as u8 };
        for word in &mut sack.words[..count as usize] {
            *word = self.number("SACK")?;
        }
        Ok(sack)
    }
}

/// Writes consecutive fields; there is room for them.
struct Writer<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put_u16(&mut self, value: u16) {
        BigEndian::write_u16(&mut self.octets[self.at..], value);
        self.at += 2;
    }

    fn put_u32(&mut self, value: u32) {
        BigEndian::write_u32(&mut self.octets[self.at..], value);
        self.at += 4;
    }

    fn put_u64(&mut self, value: u64) {
        BigEndian::write_u64(&mut self.octets[self.at..], value);
        self.at += 8;
    }
}

/// # Errors
/// Reserved bits that are not 0.
fn reserved(field: &'static str, value: u32) -> Result<(), PacketError> {
    if value == 0 { Ok(()) } else { Err(PacketError::Reserved { field, value }) }
}

const fn flag(set: bool, bit: u16) -> u16 {
    if set { bit } else { 0 }
}
