//! Unexpected messages, which have arrived before their receives were posted.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::layout::{MESSAGE_OVERHEAD, PRIMARY_HEADER_LEN};
use mpjdev_buffer::message::{parse_first, parse_first_section};
use mpjdev_buffer::octets::load_word;
use mpjdev_buffer::{SectionHeader, SlabError};
use mpjdev_transport::Payload;

use crate::packet::credit::CreditCharge;

/// A message that has arrived before its receive was posted.
#[derive(Debug)]
pub(crate) struct Unexpected {
    payload: Result<Payload, SlabError>,
    charge: CreditCharge,
}

impl Unexpected {
    pub(crate) fn new(payload: Result<Payload, SlabError>, charge: CreditCharge) -> Self {
        Unexpected { payload, charge }
    }

    /// Capacity that a receiver needs: octets of the first physical message without the headers.
    pub(crate) fn needs_capacity(&self) -> usize {
        let first_len = match &self.payload {
            Ok(Payload::Logical(message)) => message.first_len(),
            Ok(Payload::Split((_, len), _)) => *len,
            Ok(physical) => physical.len(),
            Err(_) => 0,
        };
        first_len.saturating_sub(MESSAGE_OVERHEAD)
    }

    /// The header of the first section, if there is one and it has arrived.
    pub(crate) fn first_section(&self) -> Option<SectionHeader> {
        match self.payload.as_ref().ok()? {
            Payload::Logical(message) => message.first_section(),
            Payload::Physical(slab, len) | Payload::Split((slab, len), _) if *len >= MESSAGE_OVERHEAD => {
                parse_first_section([0, PRIMARY_HEADER_LEN].map(|at| load_word(slab.words(), at)))
            }
            Payload::WithHeaders(_, _, [primary, _, section]) => parse_first_section([*primary, *section]),
            Payload::Partial { start, .. } => start.and_then(parse_first_section),
            Payload::Physical(..) | Payload::Split(..) | Payload::Truncated { .. } => None,
        }
    }

    /// Octets of both payloads, as far as the headers have arrived.
    pub(crate) fn payload_len(&self) -> usize {
        let second_len = match &self.payload {
            Ok(Payload::Logical(message)) if message.is_split() => message.secondary_len(),
            Ok(Payload::Split(_, (_, len))) => *len,
            Ok(Payload::Physical(slab, len)) if !is_all(slab.words(), *len) => {
                parse_first(slab.words(), *len).map_or(0, |(_, secondary)| secondary.secondary_len)
            }
            _ => 0,
        };
        self.needs_capacity() + second_len
    }

    /// The token that its waiting sender has given it.
    pub(crate) fn token(&self) -> Option<u64> {
        self.charge.token()
    }

    pub(crate) fn charge(&self) -> &CreditCharge {
        &self.charge
    }

    pub(crate) fn into_parts(self) -> (Result<Payload, SlabError>, CreditCharge) {
        (self.payload, self.charge)
    }

    /// Whether octets of the message are missing: its sender still packs it.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.payload.as_ref().is_ok_and(Payload::is_incomplete)
    }

    /// Whether no second half and no rest is to follow, for physical messages.
    pub(crate) fn is_all(&self) -> bool {
        match &self.payload {
            Ok(Payload::Physical(slab, len)) => is_all(slab.words(), *len),
            Ok(Payload::Partial { .. } | Payload::Truncated { .. }) => false,
            Ok(Payload::Logical(_) | Payload::WithHeaders(..) | Payload::Split(..)) | Err(_) => true,
        }
    }
}

/// Whether a physical message is a whole logical one, or damaged; otherwise it is a first half.
pub(crate) fn is_all(words: &[AtomicU64], len: usize) -> bool {
    parse_first(words, len).map_or(true, |(primary, secondary)| {
        secondary.secondary_len == 0 || len != MESSAGE_OVERHEAD + primary.primary_len
    })
}
