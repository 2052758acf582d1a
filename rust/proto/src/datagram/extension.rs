//! The extension: what reliable packets have between header and user data.
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
//! Numbers without a length have 4 octets; all are unsigned, in network byte order. Reserved bits are 0; a
//! packet in which they are not is refused. A choice of ours, from what section 5.2 asks for.

use std::fmt;

use super::error::PacketError;
use super::layout::*;

/// A message and its length (5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// Number of the message; its sender chooses it.
    pub message_id: u32,
    /// Octets of the whole message: nothing to allocate before they come.
    pub total: u64,
}

/// Permission to send octets of a message (5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The message, as its sender named it.
    pub message_id: u32,
    /// The destination of its octets. The receiver chooses it, and each fragment states it.
    pub destination_id: u32,
    /// Octets of the message that may have left in all, from its beginning.
    pub granted: u64,
}

/// The part of a message that the user data are (5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The message, as its sender names it.
    pub message_id: u32,
    /// The destination of its octets, as the grant named it; 0 in a message that needs no grant.
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
    /// Packets that a bitmap of the largest size reports.
    pub const REACH_MAX: u64 = SACK_WORDS_MAX as u64 * u64::BITS as u64;

    /// A bitmap with these words, of which there may be [`SACK_WORDS_MAX`], and with a word of zeros if there
    /// are none.
    #[must_use]
    pub fn new(words: &[u64]) -> Self {
        let count = words.len().clamp(1, SACK_WORDS_MAX);
        let mut sack = Self { words: [0; SACK_WORDS_MAX], count: count as u8 };
        sack.words.iter_mut().zip(words).for_each(|(place, word)| *place = *word);
        sack
    }

    /// Its words. Bit k of word w, bit 0 the least, is the packet 64 w + k + 1 behind the acknowledgment
    /// number.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words[..usize::from(self.count)]
    }

    /// Packets behind the acknowledgment number's that it tells of.
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

/// The extension of a reliable packet. What begins from [`Extension::new`] has neither flags nor blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// The connection, by the number that the receiver of the packet gave it at setup: packets with another
    /// one are not of this connection (5.1).
    pub connection: u64,
    /// The upper 16 bits of the sequence number; 0 if there is none.
    pub seq_high: u16,
    /// The upper 16 bits of the acknowledgment number; 0 if there is none.
    pub ack_high: u16,
    /// Packets that the other end may send beyond the acknowledgment number (5.4).
    pub window: u16,
    /// ACK_REQ: the receiver is to acknowledge at once (5.6).
    pub ack_req: bool,
    /// NAK: the packet that the acknowledgment number names is missing, and a later one has come (5.5).
    pub nak: bool,
    /// FIN: no message follows, now or later; consumes a sequence number (5.8).
    pub fin: bool,
    /// RST: the sender of this packet knows no such connection (5.8).
    pub rst: bool,
    /// ECN_ECHO: reserved for the echo of congestion marks (5.7). Always clear when sent, ignored when
    /// received.
    pub ecn_echo: bool,
    /// DUPLICATE: a packet came that had come before, since the last acknowledgment (5.5).
    pub duplicate: bool,
    /// SYNC: the sender of this message waits for its match, which a grant for its message id states.
    pub sync: bool,
    /// SACK: which packets have come out of order. The one that the acknowledgment number names is missing
    /// (5.5).
    pub sack: Option<Sack>,
    /// CONTEXT: the context that the context id of the header stands for, in this direction, from this packet
    /// on.
    pub context: Option<u64>,
    /// REQUEST: the message that this packet begins, or asks a grant for (5.9).
    pub request: Option<Request>,
    /// GRANT: the answer (5.9).
    pub grant: Option<Grant>,
    /// FRAGMENT: what the user data are (5.9).
    pub fragment: Option<Fragment>,
    /// DELAY: how long the latest packet that is acknowledged has waited for that, in microseconds; 65535 is
    /// that or more (5.3).
    pub delay_us: Option<u16>,
    /// CHECKED: a CRC32C of the packet follows the user data (5.1).
    pub checked: bool,
}

impl Extension {
    /// One without flags and blocks.
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

    /// The flags that it has on the wire.
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

    /// Octets that it has on the wire, with its blocks.
    #[inline]
    #[must_use]
    pub const fn octets_len(&self) -> usize {
        let sack = match &self.sack {
            Some(sack) => sack.words_len(),
            None => 0,
        };
        EXTENSION_LEN + blocks_len(self.flags()) + sack
    }

    /// Reads an extension at the front of what follows the header, and gives the octets behind it.
    ///
    /// # Errors
    /// The octets end before it does; something reserved is not 0.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let mut reader = Reader { octets, at: 0 };
        let connection = u64::from_be_bytes(reader.take("connection id")?);
        let flags = u16::from_be_bytes(reader.take("flags")?);
        reserved("flags", u32::from(flags & FLAGS_RESERVED))?;
        let has = |bit: u16| flags & bit != 0;
        let mut extension = Self {
            connection,
            window: u16::from_be_bytes(reader.take("window")?),
            seq_high: u16::from_be_bytes(reader.take("sequence number")?),
            ack_high: u16::from_be_bytes(reader.take("acknowledgment number")?),
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

    /// Writes it to the front of these octets, and gives how many it has: [`octets_len`](Self::octets_len).
    ///
    /// # Errors
    /// There is no room; then nothing is written.
    pub fn emit(&self, octets: &mut [u8]) -> Result<usize, PacketError> {
        let (len, capacity) = (self.octets_len(), octets.len());
        let Some(octets) = octets.get_mut(..len) else {
            return Err(PacketError::Capacity { len, capacity });
        };
        let mut writer = Writer { octets, at: 0 };
        writer.put(self.connection.to_be_bytes());
        writer.put(self.flags().to_be_bytes());
        writer.put(self.window.to_be_bytes());
        writer.put(self.seq_high.to_be_bytes());
        writer.put(self.ack_high.to_be_bytes());
        if let Some(sack) = &self.sack {
            writer.put(u16::from(sack.count).to_be_bytes());
            writer.put([0; 2]);
            sack.words().iter().for_each(|word| writer.put(word.to_be_bytes()));
        }
        if let Some(context) = self.context {
            writer.put(context.to_be_bytes());
        }
        if let Some(Request { message_id, total }) = self.request {
            writer.put(message_id.to_be_bytes());
            writer.put([0; 4]);
            writer.put(total.to_be_bytes());
        }
        if let Some(Grant { message_id, destination_id, granted }) = self.grant {
            writer.put(message_id.to_be_bytes());
            writer.put(destination_id.to_be_bytes());
            writer.put(granted.to_be_bytes());
        }
        if let Some(Fragment { message_id, destination_id, total, offset }) = self.fragment {
            writer.put(message_id.to_be_bytes());
            writer.put(destination_id.to_be_bytes());
            writer.put(total.to_be_bytes());
            writer.put(offset.to_be_bytes());
        }
        if let Some(delay_us) = self.delay_us {
            writer.put(delay_us.to_be_bytes());
            writer.put([0; 2]);
        }
        debug_assert_eq!(writer.at, len);
        Ok(len)
    }
}

/// Reads fields one behind the other.
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

    fn id(&mut self, field: &'static str) -> Result<u32, PacketError> {
        Ok(u32::from_be_bytes(self.take(field)?))
    }

    fn number(&mut self, field: &'static str) -> Result<u64, PacketError> {
        Ok(u64::from_be_bytes(self.take(field)?))
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

/// Writes fields one behind the other; there is room for them.
struct Writer<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        self.octets[self.at..self.at + N].copy_from_slice(&field);
        self.at += N;
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
