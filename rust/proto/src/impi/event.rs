//! Events of a pair for its driver, and control packets that wait to be sent.

use super::arrival::ArrivalId;
use super::packet::{Packet, PacketType};

/// A packet without data that waits for the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) kind: PacketType,
    pub(super) srqid: u64,
    /// In the SyncAck of a long message the arrival's id, else 0.
    pub(super) drqid: u64,
}

/// The meaning of a packet for the driver. The packet's [`data_len`](Packet::data_len) octets follow in any
/// case; the driver drops those of events without octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Event {
    /// A message begins: its first packet.
    Arrived(Arrival),
    /// The next octets of a matched long message.
    Continued {
        /// The message.
        arrival: ArrivalId,
        /// Their offset in the message.
        offset: u64,
        /// Their number, at least 1.
        len: u32,
        /// Whether they are the last; the arrival's id is then invalid.
        last: bool,
    },
    /// The peer has matched a synchronous or a long message. A short synchronous one is complete; a long one
    /// when its last octets are handed over, with the [`Body`](super::message_tx::Body) that has `last`.
    Matched {
        /// Of the send.
        token: u64,
    },
    /// The peer has cancelled a message that no receive has matched: the driver drops it. The answer is
    /// queued.
    Withdraw {
        /// Of [`Arrived`](Self::Arrived); no longer valid.
        arrival: ArrivalId,
    },
    /// The peer's host sends no more data: for [`super::fini`].
    Fini,
    /// Nothing to do.
    Nothing,
}

/// The first packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// `None`: the message is complete and needs no answer. Else the driver calls
    /// [`Pair::matched`](super::pair::Pair::matched) in the same step in which a receive matches it.
    pub id: Option<ArrivalId>,
    /// Context id.
    pub cid: u64,
    /// Rank of the sender in the communicator; always 0 in the draft, where the rank follows from the
    /// process.
    pub lsrank: i32,
    /// Tag.
    pub tag: i32,
    /// Octets of the whole message, as its sender states: nothing to allocate before they arrive.
    pub msglen: u64,
    /// Octets of it in this packet, at most msglen and maxdatalen.
    pub len: u32,
    /// Whether its sender waits for the match.
    pub synchronous: bool,
}

impl Arrival {
    /// Whether its rest is sent after the match.
    #[inline]
    pub const fn is_long(&self) -> bool {
        (self.len as u64) < self.msglen
    }
}

impl Arrival {
    #[inline]
    pub(super) fn of(packet: &Packet, id: Option<ArrivalId>) -> Self {
        Self {
            id,
            cid: packet.cid,
            lsrank: packet.lsrank,
            tag: packet.tag,
            msglen: packet.msglen,
            len: packet.len,
            // The first packet of a long message is DataSync in every mode (IMPI 8.3).
            synchronous: packet.kind == PacketType::DataSync,
        }
    }
}
