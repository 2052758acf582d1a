//! Errors of a pair: settings, driver, peer.

use thiserror::Error;

use super::Proc;
use super::arrival::ArrivalId;
use super::flow::{FlowError, MarksError};
use super::packet::PacketType;

/// Settings with which a pair cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// No data would fit a packet.
    #[error("maxdatalen is 0")]
    Maxdatalen,
    /// Nothing could be sent.
    #[error("sends_max is 0")]
    SendsMax,
    /// Nothing could flow.
    #[error(transparent)]
    Marks(#[from] MarksError),
    /// Two ends could wait for each other's ProtoAcks.
    #[error("arrivals_max {arrivals_max} is less than 4 times hiwater, {hiwater}")]
    ArrivalsMax {
        /// Most unmatched messages.
        arrivals_max: usize,
        /// Most packets without a ProtoAck.
        hiwater: u32,
    },
}

/// Why a send was refused; nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The queue is full: try again when a send is complete.
    #[error("{sends_max} sends are waiting already")]
    Full {
        /// The limit.
        sends_max: usize,
    },
    /// The process has finished, or the channel is lost.
    #[error("no more sends are taken")]
    Finished,
}

/// The driver names a message that does not exist, or is not in the state for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no such arrival: {0:?}")]
pub struct NoSuchArrival(pub ArrivalId);

/// A violation of the protocol by the peer; the channel is then closed (IMPI 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The packet is from another process.
    #[error("packet src is {}, expected {}", name(.found), name(.expected))]
    Src {
        /// The value in the packet.
        found: Proc,
        /// The remote process of the pair.
        expected: Proc,
    },
    /// The packet is for another process.
    #[error("packet dest is {}, expected {}", name(.found), name(.expected))]
    Dest {
        /// The value in the packet.
        found: Proc,
        /// The local process of the pair.
        expected: Proc,
    },
    /// More data in a packet than was agreed on.
    #[error("packet len {len} is above maxdatalen, {maxdatalen}")]
    Len {
        /// The value in the packet.
        len: u32,
        /// The limit.
        maxdatalen: u32,
    },
    /// More data in a packet than in its message.
    #[error("packet len {len} is above its msglen, {msglen}")]
    LenAboveMsglen {
        /// The value in the packet.
        len: u32,
        /// Of the whole message, says the packet.
        msglen: u64,
    },
    /// Data of an unknown or complete message.
    #[error("packet drqid {drqid:#x} names no message in flight")]
    Drqid {
        /// The value in the packet.
        drqid: u64,
    },
    /// A message whose length changes on its path.
    #[error("packet msglen {found} is not the {expected} that its message began with")]
    Msglen {
        /// The value in the packet.
        found: u64,
        /// The value in the first packet.
        expected: u64,
    },
    /// A packet of a long message has no data: the message would never end.
    #[error("packet len is 0 in the middle of message {drqid:#x}")]
    Empty {
        /// The message.
        drqid: u64,
    },
    /// More data than the message has.
    #[error("{received} octets and packet len {len} are above msglen, {msglen}")]
    Sum {
        /// Octets that have arrived before.
        received: u64,
        /// The value in the packet.
        len: u32,
        /// Of the whole message.
        msglen: u64,
    },
    /// Messages without end.
    #[error("the rests of more than {most} discarded messages are missing")]
    Drained {
        /// Most discarded messages whose rests are missing.
        most: usize,
    },
    /// An answer that nothing waits for.
    #[error("no message with srqid {srqid:#x} waits for {kind:?}")]
    Answer {
        /// SyncAck, CancelYes or CancelNo.
        kind: PacketType,
        /// The value in the packet.
        srqid: u64,
    },
    /// Too many packets, or too many ProtoAcks.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// A process as readable text.
fn name(proc: &Proc) -> String {
    let host_id: String = proc.host_id.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("{host_id}/{}", proc.pid)
}
