//! Message that waits to be matched, or whose rest is in flight.

use mpjdev_buffer::layout::{MESSAGE_OVERHEAD, PRIMARY_HEADER_LEN};
use mpjdev_buffer::octets::{copy_out, copy_words, load_word};
use mpjdev_buffer::{Packer, PrimaryHeader, Slab, SlabError, SlabSource};

use crate::{Incoming, Payload};

/// A numbered message. `I` is its id in the state machine.
#[derive(Debug)]
pub(in super::super) struct IncomingMessage<I> {
    pub(in super::super) id: I,
    /// Octets of the message.
    len: usize,
    /// The first octets of a long message, and their number.
    first: Option<(Slab, usize)>,
    rest: Rest,
}

/// Destination of the rest of a long message.
#[derive(Debug)]
enum Rest {
    /// The message is not matched.
    Unmatched,
    /// The rest goes into this slab, after the first octets.
    Wanted(Slab, Option<Begun>),
    /// There is no memory for it.
    Lost(SlabError),
    /// The message is longer than wanted, so only its headers are kept.
    Cut { primary: [u8; 8], secondary: [u8; 8], secondary_at: Option<usize> },
}

/// The form in which a receive may read a message while it arrives.
#[derive(Debug)]
struct Begun {
    /// The slab of the message, marked as packing.
    slab: Slab,
    /// Counts the octets that have arrived. A message that is dropped before its end is broken.
    packer: Packer,
}

impl<I> IncomingMessage<I> {
    pub(in super::super) fn short(id: I, len: usize) -> IncomingMessage<I> {
        IncomingMessage { id, len, first: None, rest: Rest::Unmatched }
    }

    pub(in super::super) fn long(id: I, len: usize) -> IncomingMessage<I> {
        IncomingMessage { first: None, ..IncomingMessage::short(id, len) }
    }

    /// Records that the first octets have arrived. Returns the packet of a message that has begun.
    pub(in super::super) fn begin(&mut self, slab: Slab, len: usize) -> Payload {
        let words = slab.words();
        let start =
            (len >= MESSAGE_OVERHEAD).then(|| [load_word(words, 0), load_word(words, PRIMARY_HEADER_LEN)]);
        self.first = Some((slab, len));
        Payload::Partial { len: self.len, here: len, start }
    }

    /// Octets of the message.
    pub(in super::super) fn len(&self) -> usize {
        self.len
    }

    pub(in super::super) fn is_long(&self) -> bool {
        self.first.is_some()
    }

    /// Records the match, and makes room for the whole message unless it is longer than `wanted`.
    pub(in super::super) fn make_room(&mut self, wanted: u64, source: &dyn SlabSource) {
        let Some((first, first_len)) = self.first.take() else { return };
        if self.len as u64 > wanted {
            self.rest = cut(&first, first_len);
            return;
        }
        self.rest = match source.take_arrived(self.len) {
            Ok(slab) => {
                copy_words(first.words(), 0, slab.words(), 0, first_len);
                let begun = slab.begin_packing(first_len).map(|(slab, packer)| Begun { slab, packer });
                Rest::Wanted(slab, begun)
            }
            Err(error) => Rest::Lost(error),
        };
    }

    /// Memory for octets of the rest; `None` when they are not kept.
    pub(in super::super) fn room(&self) -> Option<Slab> {
        match &self.rest {
            Rest::Wanted(slab, _) => Some(slab.clone()),
            _ => None,
        }
    }

    /// Records that all octets before `end` have arrived. Returns the message for a receive that reads them
    /// now, if they are kept.
    pub(in super::super) fn note_arrived(&self, end: usize) -> Option<Payload> {
        let Rest::Wanted(_, Some(begun)) = &self.rest else { return None };
        begun.packer.publish(end);
        Some(Payload::Physical(begun.slab.clone(), self.len))
    }

    /// Captures the headers from octets that are not kept.
    pub(in super::super) fn capture_headers(
        &mut self,
        offset: usize,
        octets: impl Fn(usize) -> u8,
        len: usize,
    ) {
        if let Rest::Cut { secondary, secondary_at: Some(at), .. } = &mut self.rest {
            for (i, octet) in secondary.iter_mut().enumerate() {
                let place = *at + i;
                if (offset..offset + len).contains(&place) {
                    *octet = octets(place - offset);
                }
            }
        }
    }

    /// The whole message, once its rest has arrived.
    pub(in super::super) fn into_whole(self) -> Incoming<'static> {
        match self.rest {
            Rest::Wanted(slab, begun) => {
                begun.into_iter().for_each(|begun| begun.packer.finish());
                Incoming::Reference(Payload::Physical(slab, self.len))
            }
            Rest::Lost(error) => Incoming::Lost(error),
            Rest::Cut { primary, secondary, secondary_at } => {
                let headers = secondary_at.map(|_| [primary, secondary]);
                Incoming::Reference(Payload::Truncated { len: self.len, headers })
            }
            Rest::Unmatched => Incoming::Reference(Payload::Truncated { len: self.len, headers: None }),
        }
    }
}

fn cut(first: &Slab, first_len: usize) -> Rest {
    let octets = |at: usize| {
        let mut octets = [0; 8];
        let n = first_len.saturating_sub(at).min(8);
        copy_out(first.words(), at, &mut octets[..n]);
        octets
    };
    if first_len < PRIMARY_HEADER_LEN {
        return Rest::Cut { primary: [0; 8], secondary: [0; 8], secondary_at: None };
    }
    let primary = octets(0);
    let secondary_at =
        PrimaryHeader::parse(primary).ok().map(|header| PRIMARY_HEADER_LEN + header.primary_len);
    let secondary = secondary_at.map_or([0; 8], octets);
    Rest::Cut { primary, secondary, secondary_at }
}
