//! Faults of a peer that end its connection.

use mpjdev_buffer::SlabError;
use mpjdev_proto::datagram::reliable::error::NoSuchArrival;
use mpjdev_proto::impi::fini::AfterFini;
use mpjdev_proto::impi::packet::PacketError;
use mpjdev_proto::impi::pair_error::ProtocolError;
use thiserror::Error;

use crate::ProtocolViolation;

/// Fault of a peer that ends its connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in super::super) enum PeerFault {
    /// The octets are no header of an IMPI packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The packet follows the last one.
    #[error(transparent)]
    AfterFini(#[from] AfterFini),
    /// The state machine of a pair of IMPI processes rejects the packet.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The packet names a message that is not in the window.
    #[error(transparent)]
    Arrival(#[from] NoSuchArrival),
    /// The engine rejects the packet.
    #[error(transparent)]
    Violation(#[from] ProtocolViolation),
    /// The message is in the context of control messages, and is too long for one or asks for a match ack.
    #[error("a control message of {len} octets, which is too long or asks for a match ack")]
    ControlLen { len: u64 },
    /// No control message has this tag and this length.
    #[error("an unknown control message of {len} octets with tag {tag}")]
    Control { len: usize, tag: i32 },
    /// The sender cannot have this tag, or this context.
    #[error("a message with a reserved tag or context: tag {tag}, context {context}")]
    Tag { tag: i32, context: u64 },
    /// The length does not fit memory.
    #[error("a message of {len} octets, more than memory holds")]
    Len { len: u64 },
    /// An eager message is longer than the receiver allows.
    #[error("an eager message of {len} octets, more than allowed")]
    EagerLen { len: usize },
    /// The octets do not fit the memory for datagrams out of order.
    #[error("no room for {len} octets out of order")]
    Unplaced { len: usize },
    /// There is no memory for the octets.
    #[error("no memory for {len} octets: {error}")]
    NoMemory { len: usize, error: SlabError },
    /// There is no memory for the octets of a message that was read.
    #[error(transparent)]
    Memory(#[from] SlabError),
}

#[cfg(test)]
mod tests {
    use mpjdev_proto::impi::packet::PacketType;

    use super::*;

    #[test]
    fn fault_of_a_peer_has_its_numbers() {
        let memory = SlabError::System { asked: 64 };
        let texts = [
            (PacketError::Tag { tag: 1 << 40 }.into(), "tag 1099511627776 does not fit 32 bits"),
            (AfterFini { kind: PacketType::Data }.into(), "Data after Fini"),
            (ProtocolError::Drqid { drqid: 255 }.into(), "packet drqid 0xff names no message in flight"),
            (ProtocolViolation::Credit.into(), "more messages than its credit allows"),
            (
                PeerFault::ControlLen { len: 9 },
                "a control message of 9 octets, which is too long or asks for a match ack",
            ),
            (PeerFault::Control { len: 7, tag: 1 }, "an unknown control message of 7 octets with tag 1"),
            (
                PeerFault::Tag { tag: -1, context: 5 },
                "a message with a reserved tag or context: tag -1, context 5",
            ),
            (
                PeerFault::Len { len: u64::MAX },
                "a message of 18446744073709551615 octets, more than memory holds",
            ),
            (PeerFault::EagerLen { len: 70_000 }, "an eager message of 70000 octets, more than allowed"),
            (PeerFault::Unplaced { len: 8 }, "no room for 8 octets out of order"),
            (
                PeerFault::NoMemory { len: 8, error: memory.clone() },
                "no memory for 8 octets: message memory: the system refuses 64 octets",
            ),
            (memory.into(), "message memory: the system refuses 64 octets"),
        ];
        for (fault, text) in texts {
            assert_eq!(fault.to_string(), text);
        }
    }
}
