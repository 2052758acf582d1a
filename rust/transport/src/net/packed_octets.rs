//! Long messages whose octets leave while they are packed.

use mpjdev_buffer::Slab;

/// Reason why a connection is closed: a packet of a message may have begun, and its other octets are missing.
pub(in super::super) const GIVEN_UP: &str = "this rank could not pack a message to it to the end";

/// Whether these octets of a message are packed.
pub(in super::super) fn is_packed(slab: &Slab, offset: u64, len: u32) -> bool {
    slab.packed_len().is_some_and(|packed| offset + u64::from(len) <= packed as u64)
}

/// Whether a message will never be packed.
pub(in super::super) fn is_given_up(slab: &Slab) -> bool {
    slab.packed_len().is_none()
}
