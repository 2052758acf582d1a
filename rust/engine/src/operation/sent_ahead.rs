//! A message that was sent before it is packed.

use mpjdev_buffer::Packer;

use crate::request::RequestId;

/// A message that was sent before it is packed. The caller packs it.
#[derive(Debug)]
pub struct SentAhead {
    /// Counts the packed octets.
    pub packer: Packer,
    /// The send, unless it is complete when the message is packed.
    pub request: Option<RequestId>,
    /// Whether the receiver reads the memory of the message, and this process does not read it again.
    pub by_reference: bool,
}
