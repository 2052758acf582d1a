//! Meaning of the octets that follow a header.

use crate::Header;

/// Action once the octets of a body have arrived.
#[derive(Debug)]
pub(super) enum BodyAction {
    /// No action.
    Nothing,
    /// Passes on a message of this rank, or an answer without octets.
    Packet(u32, Header),
    /// Passes on the beginning of a long message.
    FirstPart { rank: u32, header: Header, msglen: usize },
    /// Adds a part to the rest of a long message. The last one makes the message whole.
    Rest { rank: u32, token: u64, offset: usize, last: bool },
    /// Handles a control message between our own ranks.
    Control { rank: u32, tag: i32 },
    /// Handles the end of the host's packets.
    Fini,
}
