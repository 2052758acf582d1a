//! A whole datagram: parse and emit.
//!
//! ```text
//!   header 16 | extension 16 | blocks | user data | CRC32C 4, if CHECKED
//! ```
//!
//! A packet is a whole datagram, and len must match its user data. [`Packet::check`] has the rules for both
//! parse and emit.

use byteorder::{BigEndian, ByteOrder};

use super::error::PacketError;
use super::extension::{Extension, Fragment};
use super::header::{Header, Mode, Numbers};
use super::layout::{HEADER_LEN, SEQUENCE_BITS, TRAILER_LEN};
use super::sequence::{FullSequence, Sequence};

/// A reliable packet without its user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The header.
    pub header: Header,
    /// The extension.
    pub extension: Extension,
}

impl Packet {
    /// Reads a reliable packet and its user data. The machines check connection, numbers and ids.
    ///
    /// # Errors
    /// Octets are missing; reserved bits are not 0; len does not match the user data; the CRC32C does not
    /// match; [`check`](Self::check) fails.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let (header, rest) = split_header(octets)?;
        let (extension, mut data) = Extension::parse(rest)?;
        if extension.checked {
            data = checked(octets, data)?;
        }
        let mut packet = Self { header: Header::parse(header)?, extension };
        packet.number(packet.seq(), packet.ack());
        check_len(&packet.header, data)?;
        packet.check()?;
        Ok((packet, data))
    }

    /// The sequence number, if SEQ is set.
    #[inline]
    #[must_use]
    pub const fn seq(&self) -> Option<FullSequence> {
        match self.header.numbers.seq {
            Some(low) => Some(joined(self.extension.seq_high, low)),
            None => None,
        }
    }

    /// The acknowledgment number, if ACK is set.
    #[inline]
    #[must_use]
    pub const fn ack(&self) -> Option<FullSequence> {
        match self.header.numbers.ack {
            Some(low) => Some(joined(self.extension.ack_high, low)),
            None => None,
        }
    }

    /// Sets both numbers, in the header and in the extension.
    #[inline]
    pub const fn number(&mut self, seq: Option<FullSequence>, ack: Option<FullSequence>) {
        let (seq, seq_high) = split(seq);
        let (ack, ack_high) = split(ack);
        self.header.numbers = Numbers { seq, ack };
        self.extension.seq_high = seq_high;
        self.extension.ack_high = ack_high;
    }

    /// Octets in front of the user data: header, extension, blocks.
    #[inline]
    #[must_use]
    pub const fn head_len(&self) -> usize {
        HEADER_LEN + self.extension.octets_len()
    }

    /// Octets behind the user data: 4 with CHECKED, else 0.
    #[inline]
    #[must_use]
    pub const fn trailer_len(&self) -> usize {
        if self.extension.checked { TRAILER_LEN } else { 0 }
    }

    /// Writes header, extension and blocks to the front of `octets`; returns their length. For drivers that
    /// send user data from their own memory. With CHECKED a [`checksum`] must follow the user data.
    ///
    /// # Errors
    /// As [`check`](Self::check); `octets` is too short. Then nothing is written.
    pub fn emit_head(&self, octets: &mut [u8]) -> Result<usize, PacketError> {
        self.check()?;
        let (head, rest) = room(octets, self.head_len())?.split_at_mut(HEADER_LEN);
        self.header.emit(head.first_chunk_mut().expect("split there"));
        self.extension.emit(rest)?;
        Ok(self.head_len())
    }

    /// Writes the whole packet to the front of `octets`; returns its length.
    ///
    /// # Errors
    /// As [`check`](Self::check); len does not match the data; `octets` is too short. Then nothing is
    /// written.
    pub fn emit(&self, data: &[u8], octets: &mut [u8]) -> Result<usize, PacketError> {
        self.check()?;
        check_len(&self.header, data)?;
        let data_end = self.head_len() + data.len();
        let octets = room(octets, data_end + self.trailer_len())?;
        let head_len = self.emit_head(octets)?;
        octets[head_len..data_end].copy_from_slice(data);
        let (body, trailer) = octets.split_at_mut(data_end);
        if self.extension.checked {
            BigEndian::write_u32(trailer, checksum([&*body]));
        }
        Ok(octets.len())
    }

    /// Checks that this is a valid packet, apart from the length of its user data.
    ///
    /// # Errors
    /// An invalid header; a field that needs SEQ or ACK without it; FIN or RST with a message; mode or SYNC
    /// without its block; user data that reach past the end of their message.
    pub const fn check(&self) -> Result<(), PacketError> {
        if let Err(error) = self.header.check() {
            return Err(error);
        }
        let Self { header: Header { numbers, mode, len, .. }, extension } = self;
        let message = self.message_field();
        if extension.rst {
            return match message {
                Some(field) => Err(PacketError::Together { field: "RST", other: field }),
                None if numbers.seq.is_some() => Err(PacketError::Together { field: "RST", other: "SEQ" }),
                None if extension.fin => Err(PacketError::Together { field: "RST", other: "FIN" }),
                None => Ok(()),
            };
        }
        match message {
            Some(field) if extension.fin => return Err(PacketError::Together { field: "FIN", other: field }),
            Some(field) if numbers.seq.is_none() => return Err(PacketError::WithoutSeq { field }),
            _ => {}
        }
        if extension.fin && numbers.seq.is_none() {
            return Err(PacketError::WithoutSeq { field: "FIN" });
        }
        if numbers.ack.is_none()
            && let Some(field) = self.ack_field()
        {
            return Err(PacketError::WithoutAck { field });
        }
        self.check_blocks(*mode, *len)
    }

    /// The first field that only packets with a message have.
    const fn message_field(&self) -> Option<&'static str> {
        let Extension { sync, context, request, grant, fragment, .. } = &self.extension;
        Some(match self.header {
            Header { len: 1.., .. } => "user data",
            Header { mode: Mode::Short, .. } if *sync => "SYNC",
            Header { mode: Mode::Short, .. } if context.is_some() => "CONTEXT",
            Header { mode: Mode::Short, .. } if request.is_some() => "REQUEST",
            Header { mode: Mode::Short, .. } if grant.is_some() => "GRANT",
            Header { mode: Mode::Short, .. } if fragment.is_some() => "FRAGMENT",
            Header { mode: Mode::Short, .. } => return None,
            _ => "mode",
        })
    }

    /// The first field that only packets with an acknowledgment have.
    const fn ack_field(&self) -> Option<&'static str> {
        Some(match &self.extension {
            Extension { nak: true, .. } => "NAK",
            Extension { duplicate: true, .. } => "DUPLICATE",
            Extension { sack: Some(_), .. } => "SACK",
            Extension { delay_us: Some(_), .. } => "DELAY",
            _ => return None,
        })
    }

    /// Checks that required blocks are present, and the user data against them.
    const fn check_blocks(&self, mode: Mode, len: u32) -> Result<(), PacketError> {
        let Extension { sync, request, grant, fragment, .. } = &self.extension;
        match mode {
            Mode::RequestSend if request.is_none() => {
                return Err(PacketError::NoBlock { what: "REQUEST_SEND", block: "REQUEST" });
            }
            Mode::OkToSend if grant.is_none() => {
                return Err(PacketError::NoBlock { what: "OK_TO_SEND", block: "GRANT" });
            }
            Mode::Long if fragment.is_none() => {
                return Err(PacketError::NoBlock { what: "LONG", block: "FRAGMENT" });
            }
            _ if *sync && request.is_none() && fragment.is_none() => {
                return Err(PacketError::NoBlock { what: "SYNC", block: "REQUEST" });
            }
            _ => {}
        }
        if let Some(Fragment { total, offset, .. }) = *fragment
            && (offset > total || len as u64 > total - offset)
        {
            return Err(PacketError::Beyond { offset, len, total });
        }
        if let Some(request) = request
            && len as u64 > request.total
        {
            return Err(PacketError::Beyond { offset: 0, len, total: request.total });
        }
        Ok(())
    }
}

#[inline]
const fn joined(high: u16, low: Sequence) -> FullSequence {
    FullSequence::from_bits((high as u32) << SEQUENCE_BITS | low.bits())
}

#[inline]
const fn split(number: Option<FullSequence>) -> (Option<Sequence>, u16) {
    match number {
        Some(number) => (Some(Sequence::from_bits(number.bits())), (number.bits() >> SEQUENCE_BITS) as u16),
        None => (None, 0),
    }
}

/// The CRC32C of the concatenated parts. A packet with CHECKED ends with it, in network byte order.
#[must_use]
pub fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    parts.into_iter().fold(0, crc32c::crc32c_append)
}

/// Extends a CRC32C by `octets`, for packets in several pieces.
#[must_use]
pub fn checksum_on(before: u32, octets: &[u8]) -> u32 {
    crc32c::crc32c_append(before, octets)
}

/// Removes the trailer from `rest`, if it is the checksum of the whole packet.
fn checked<'a>(octets: &[u8], rest: &'a [u8]) -> Result<&'a [u8], PacketError> {
    let Some((data, trailer)) = rest.split_last_chunk::<TRAILER_LEN>() else {
        let end = octets.len() - rest.len() + TRAILER_LEN;
        return Err(PacketError::Cut { field: "CRC32C", end, len: octets.len() });
    };
    let found = BigEndian::read_u32(trailer);
    let computed = checksum([&octets[..octets.len() - TRAILER_LEN]]);
    if found == computed { Ok(data) } else { Err(PacketError::Checksum { found, computed }) }
}

#[inline]
fn split_header(octets: &[u8]) -> Result<(&[u8; HEADER_LEN], &[u8]), PacketError> {
    let len = octets.len();
    octets.split_first_chunk().ok_or(PacketError::Cut { field: "header", end: HEADER_LEN, len })
}

#[inline]
const fn check_len(header: &Header, data: &[u8]) -> Result<(), PacketError> {
    if header.len as usize == data.len() {
        return Ok(());
    }
    Err(PacketError::Len { len: header.len, found: data.len() })
}

#[inline]
fn room(octets: &mut [u8], len: usize) -> Result<&mut [u8], PacketError> {
    let capacity = octets.len();
    octets.get_mut(..len).ok_or(PacketError::Capacity { len, capacity })
}
