//! Requests: the ids of sends and receives that were started, and their results.

use std::num::NonZeroU64;

use mpjdev_buffer::Message;
use mpjdev_proto::envelope::Envelope;

/// The id of one request of one rank. It is used again only after its slot in the table was used 2³² times.
///
/// The value is one more than the number that peers receive, so that a result with an optional id fits
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(NonZeroU64);

impl RequestId {
    /// The id of the request in a slot of the table.
    pub(crate) fn new(index: u32, generation: u32) -> RequestId {
        RequestId::from(u64::from(generation) << 32 | u64::from(index))
    }

    /// The slot in the table.
    pub(crate) fn index(self) -> usize {
        u64::from(self) as u32 as usize
    }

    /// The number of requests that have left this slot before.
    pub(crate) fn generation(self) -> u32 {
        (u64::from(self) >> 32) as u32
    }
}

/// The result of a finished operation.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The message's envelope with its source numbered in the world; `None` for a send.
    pub envelope: Option<Envelope>,
    /// The message; `None` for a send.
    pub message: Option<Message>,
}

impl Completed {
    /// A finished send.
    pub const SENT: Completed = Completed { envelope: None, message: None };
}

/// The id as a number, for the header of a packet.
impl From<RequestId> for u64 {
    fn from(id: RequestId) -> u64 {
        id.0.get() - 1
    }
}

impl From<u64> for RequestId {
    fn from(token: u64) -> RequestId {
        // No table has as many slots as the last number would need.
        RequestId(NonZeroU64::new(token.wrapping_add(1)).unwrap_or(NonZeroU64::MAX))
    }
}
