//! Predicted fragment: the octets of a message that are expected next, received at their destination without
//! a copy.
//!
//! ```text
//! room      | head | user data                | rest |      a datagram, or a GSO batch, is received into
//!               |         |                       |
//!             stage    the message's memory     stage
//! ```
//!
//! A wrong prediction costs a copy. The received octets are then in memory of the message that has not been
//! written, which no code reads before its own octets have arrived.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::Slab;
use mpjdev_proto::datagram::extension::{Extension, Fragment};
use mpjdev_proto::datagram::header::Header;
use mpjdev_proto::datagram::layout::{FIXED_LEN, FRAGMENT_LEN, HEADER_LEN};

/// Octets before the user data of a fragment whose header has no other parts.
pub(super) const HEAD_LEN: usize = FIXED_LEN + FRAGMENT_LEN;
/// Fewer octets are copied: a copy costs less than a wrong prediction.
const LEN_MIN: usize = 4 << 10;

/// Octets of a message that are expected.
#[derive(Debug)]
pub(super) struct Expected {
    /// The connection id in the packet.
    connection: u64,
    destination_id: u32,
    slab: Slab,
    at: usize,
    len: usize,
}

impl Expected {
    /// Expects octets of a message of `total` from `at` on, none of which have arrived, in a datagram with
    /// `len_max` of them at most. `None` if they are too few.
    pub(super) fn new(
        (connection, destination_id): (u64, u32),
        slab: Slab,
        at: usize,
        total: usize,
        len_max: usize,
    ) -> Option<Expected> {
        let len = total.saturating_sub(at).min(len_max);
        // The data in the room after them must begin at a word.
        let is_worth_it = len >= LEN_MIN && at.is_multiple_of(8) && total <= slab.len();
        is_worth_it.then_some(Expected { connection, destination_id, slab, at, len })
    }

    /// Their destination: memory, offset and length.
    pub(super) fn place(&self) -> (&[AtomicU64], usize, usize) {
        (self.slab.words(), self.at, self.len)
    }

    /// Whether a datagram of `len` octets with this head is the expected one.
    pub(super) fn is(&self, head: &[u8; HEAD_LEN], len: usize) -> bool {
        let Some((fixed, rest)) = head.split_first_chunk::<HEADER_LEN>() else { return false };
        let (Ok(header), Ok((extension, _))) = (Header::parse(fixed), Extension::parse(rest)) else {
            return false;
        };
        let Some(Fragment { destination_id, offset, .. }) = extension.fragment else { return false };
        extension.octets_len() + HEADER_LEN == HEAD_LEN
            && !extension.checked
            && (extension.connection, destination_id) == (self.connection, self.destination_id)
            && offset == self.at as u64
            && header.len as usize == self.len
            && len == HEAD_LEN + self.len
    }
}
