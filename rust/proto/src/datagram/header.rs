//! The header: the first 16 octets of every packet.
//!
//! ```text
//!     31 30                        16 15 14                         0
//!    +--+----------------------------+--+----------------------------+
//!  0 |S | sequence number            |A | acknowledgment number      |    S: SEQ, A: ACK
//!    +--+------------+---------------+--+-----------+----------------+
//!  4 | mode (5)      | context id (16)              | lrank (11)     |
//!    +---------------+------------------------------+----------------+
//!  8 | tag, signed                                                   |
//!    +---------------------------------------------------------------+
//! 12 | len: octets of user data in this packet                       |
//!    +---------------------------------------------------------------+
//! ```
//!
//! Network byte order (2.2). A number that is not valid is sent as 0 and ignored when received.

use byteorder::{BigEndian, ByteOrder};

use super::error::PacketError;
use super::layout::*;
use super::sequence::Sequence;

/// The purpose of a packet: the packet kinds of the MPICH channel device (2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mode {
    /// A whole message, or no message.
    #[default]
    Short = 0,
    /// A part of a message in several packets.
    Long = 1,
    /// The envelope of a message that needs a grant.
    RequestSend = 2,
    /// The sender exposes a message for a get.
    DoGet = 3,
    /// The grant.
    OkToSend = 4,
    /// The sender requests a cancel.
    AntiSend = 5,
    /// The answer.
    AntiSendOk = 6,
    /// The end of a get.
    DoneGet = 7,
    /// The next piece of a get.
    ContGet = 8,
    /// Credit of memory.
    Flow = 9,
    /// Credit of packets.
    ProtoAck = 10,
    /// The answer.
    AckProto = 11,
    /// The end of a rendezvous.
    DoneSend = 12,
}

impl Mode {
    /// All modes, by number.
    pub const ALL: [Self; 13] = [
        Self::Short,
        Self::Long,
        Self::RequestSend,
        Self::DoGet,
        Self::OkToSend,
        Self::AntiSend,
        Self::AntiSendOk,
        Self::DoneGet,
        Self::ContGet,
        Self::Flow,
        Self::ProtoAck,
        Self::AckProto,
        Self::DoneSend,
    ];

    /// The mode with this number.
    #[inline]
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        if (code as usize) < Self::ALL.len() { Some(Self::ALL[code as usize]) } else { None }
    }

    /// Its number on the wire.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether a packet of this mode is matched with receives; others are handled by mode (2.3).
    #[inline]
    #[must_use]
    pub const fn is_matched(self) -> bool {
        self.code() <= Self::DoGet.code()
    }
}

/// The first word: sequence and acknowledgment number.
///
/// A packet has at least one of the two. With a sequence number it carries a message or a FIN; without one it
/// is a pure acknowledgment (2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// The sequence number, if SEQ is set.
    pub seq: Option<Sequence>,
    /// The next sequence number expected from the other end, if ACK is set: all before it were received (2).
    pub ack: Option<Sequence>,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// SEQ and ACK with their numbers.
    pub numbers: Numbers,
    /// The purpose of the packet.
    pub mode: Mode,
    /// The id of the context, which both ends know.
    pub context_id: u16,
    /// Rank of the sender in the communicator, at most [`LRANK_MAX`].
    pub lrank: u16,
    /// The tag.
    pub tag: i32,
    /// Octets of user data in this packet.
    pub len: u32,
}

impl Numbers {
    /// The numbers of a pure acknowledgment.
    #[inline]
    #[must_use]
    pub const fn ack(ack: Sequence) -> Self {
        Self { seq: None, ack: Some(ack) }
    }

    /// The word on the wire.
    #[inline]
    #[must_use]
    pub const fn to_word(self) -> u32 {
        let seq = match self.seq {
            Some(seq) => SEQ_BIT | seq.bits() << SEQ_SHIFT,
            None => 0,
        };
        let ack = match self.ack {
            Some(ack) => ACK_BIT | ack.bits(),
            None => 0,
        };
        seq | ack
    }

    /// The numbers of a word on the wire.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u32) -> Self {
        let seq = Sequence::from_bits(word >> SEQ_SHIFT);
        let ack = Sequence::from_bits(word);
        Self {
            seq: if word & SEQ_BIT != 0 { Some(seq) } else { None },
            ack: if word & ACK_BIT != 0 { Some(ack) } else { None },
        }
    }
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// Neither number is valid; the mode is unknown; user data without a sequence number.
    #[inline]
    pub fn parse(octets: &[u8; HEADER_LEN]) -> Result<Self, PacketError> {
        let word = BigEndian::read_u32(&octets[MODE_FIELD]);
        let code = (word >> MODE_SHIFT) as u8;
        let header = Self {
            numbers: Numbers::from_word(BigEndian::read_u32(&octets[NUMBERS_FIELD])),
            mode: Mode::from_code(code).ok_or(PacketError::Mode { code })?,
            context_id: (word >> CONTEXT_ID_SHIFT) as u16,
            lrank: word as u16 & LRANK_MAX,
            tag: BigEndian::read_i32(&octets[TAG_FIELD]),
            len: BigEndian::read_u32(&octets[LEN_FIELD]),
        };
        header.check()?;
        Ok(header)
    }

    /// Writes all octets. Only a header that passes [`check`](Self::check) is parsed as the same header.
    #[inline]
    pub fn emit(&self, octets: &mut [u8; HEADER_LEN]) {
        let mode = u32::from(self.mode.code()) << MODE_SHIFT;
        let context_id = u32::from(self.context_id) << CONTEXT_ID_SHIFT;
        let lrank = u32::from(self.lrank & LRANK_MAX);
        BigEndian::write_u32(&mut octets[NUMBERS_FIELD], self.numbers.to_word());
        BigEndian::write_u32(&mut octets[MODE_FIELD], mode | context_id | lrank);
        BigEndian::write_i32(&mut octets[TAG_FIELD], self.tag);
        BigEndian::write_u32(&mut octets[LEN_FIELD], self.len);
    }

    /// Checks that this is a valid header.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and an lrank of more than 11 bits.
    #[inline]
    pub const fn check(&self) -> Result<(), PacketError> {
        if self.lrank > LRANK_MAX {
            return Err(PacketError::Lrank { lrank: self.lrank });
        }
        match self.numbers {
            Numbers { seq: None, ack: None } => Err(PacketError::NoNumbers),
            Numbers { seq: None, .. } if self.len > 0 => Err(PacketError::WithoutSeq { field: "user data" }),
            _ => Ok(()),
        }
    }
}

const _: () = {
    let mut code = 0;
    while code < Mode::ALL.len() {
        assert!(Mode::ALL[code].code() as usize == code);
        code += 1;
    }
};
