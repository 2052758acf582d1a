//! Errors of operations on messages.

use std::time::Duration;

use mpjdev_buffer::{BufferError, SlabError};
use mpjdev_proto::collective::{ProtocolError, Refusal};
use mpjdev_proto::impi::barrier::BarrierError;
use mpjdev_proto::send_policy::{LengthError, NoFreePair};
use thiserror::Error;

/// A failed operation. Each variant states whether the operation can be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// The message is larger than the receiving buffer; it has been consumed.
    #[error("message truncated: {needed} octets from rank {source_rank} with tag {tag}, capacity {capacity}")]
    Truncated {
        /// Capacity that would have been needed.
        needed: usize,
        /// Capacity of the receiving buffer.
        capacity: usize,
        /// Sender, numbered in the world.
        source_rank: u32,
        /// Its tag.
        tag: i32,
    },
    /// Lengths that contradict each other; the message has been consumed.
    #[error("damaged message from rank {source_rank} with tag {tag}: {error}")]
    Lengths {
        /// The contradiction.
        error: LengthError,
        /// Sender, numbered in the world.
        source_rank: u32,
        /// Its tag.
        tag: i32,
    },
    /// A damaged message; it has been consumed.
    #[error("damaged message from rank {source_rank} with tag {tag}: {error}")]
    Damaged {
        /// The damage and its position.
        error: BufferError,
        /// Sender, numbered in the world.
        source_rank: u32,
        /// Its tag.
        tag: i32,
    },
    /// The only rank that could complete the operation has failed.
    #[error("rank {rank} has failed: {why}")]
    PeerFailed {
        /// The rank, numbered in the world.
        rank: u32,
        /// The known reason.
        why: String,
    },
    /// The only rank that could complete the operation has finished.
    #[error("rank {rank} has finished, it can neither send nor receive any more")]
    PeerFinished {
        /// The rank, numbered in the world.
        rank: u32,
    },
    /// No other member of the communicator can send any more.
    #[error("all other ranks of this communicator have finished or failed: no message can arrive")]
    NoSourceLeft,
    /// The time has passed; the request is still pending.
    #[error("timed out after {after:?}; the request is still pending")]
    TimedOut {
        /// Time waited.
        after: Duration,
    },
    /// The waiting thread was interrupted; a request is still pending.
    #[error("interrupted while waiting; the operation is still pending if it is a request, else abandoned")]
    Interrupted,
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// This rank has finished.
    #[error("rank {rank} has finished: no communication after finish")]
    Finished {
        /// This rank, numbered in the world.
        rank: u32,
    },
    /// This rank has freed the communicator.
    #[error("this communicator was freed: no message of it can be received or probed any more")]
    Freed,
    /// No such rank.
    #[error("rank {rank} is outside 0 to {max}", max = size.saturating_sub(1))]
    BadRank {
        /// The rank that the caller has given.
        rank: i32,
        /// Size of the communicator.
        size: usize,
    },
    /// No such tag.
    #[error("tag {tag} is outside 0 to {max}")]
    BadTag {
        /// The tag that the caller has given.
        tag: i32,
        /// The largest tag.
        max: i32,
    },
    /// The request does not exist, or no longer.
    #[error("there is no such request: it was waited for, or freed")]
    NoSuchRequest,
    /// Requests of different ranks cannot be waited for together.
    #[error("the requests belong to different ranks")]
    MixedRanks,
    /// No memory for a message.
    #[error(transparent)]
    Memory(#[from] SlabError),
    /// The destination has no memory for further messages that it has not matched; this one was not sent.
    #[error(
        "{count} messages to rank {rank} wait to be matched, which occupy {octets} octets there, the limit \
         is {limit}: rank {rank} has to receive some of them first"
    )]
    Unmatched {
        /// The destination, numbered in the world.
        rank: u32,
        /// Messages that it has not matched, past the credit.
        count: u32,
        /// Octets that they are charged there.
        octets: u64,
        /// The limit of these octets.
        limit: u64,
    },
    /// A communicator could not be made; all its ranks get an error.
    #[error("the communicator cannot be made: {0}")]
    Refused(#[from] Refusal),
    /// A rank broke the protocol of a collective operation.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A collective operation has failed at a rank, whose vector this rank needs.
    #[error("the collective operation has failed at rank {rank}; its own exception says why")]
    OperationFailed {
        /// The rank, numbered in the world.
        rank: u32,
    },
    /// A member takes part in another collective operation.
    #[error(
        "rank {rank} takes part in another collective operation than this rank: all members call the same \
         ones in the same order, with the same counts and types"
    )]
    OtherOperation {
        /// The member, numbered in the world.
        rank: u32,
    },
    /// A rank broke the protocol of the barrier among clients of IMPI.
    #[error(transparent)]
    Masters(#[from] BarrierError),
    /// A collective operation that ranks of another implementation do not support; nothing was sent.
    #[error(
        "{operation} is not possible on this communicator: rank {rank} belongs to another implementation; \
         send and receive from rank to rank instead, which works with all of its ranks"
    )]
    Foreign {
        /// The operation.
        operation: &'static str,
        /// The first such rank, numbered in the world.
        rank: u32,
    },
    /// A rank has left a collective operation on this communicator unfinished: no further one is possible
    /// there.
    #[error(
        "rank {rank} has abandoned a collective operation on this communicator ({why}), and no other is \
         possible on it; make another communicator from one that is whole, or finish; messages from rank to \
         rank continue"
    )]
    Abandoned {
        /// The rank that left it, numbered in the world.
        rank: u32,
        /// The reason.
        why: String,
    },
    /// A foreign rank has not reached the barrier at the end of the job, and has sent nothing for this time.
    #[error("rank {rank} has not reached the barrier that ends the job, and has sent nothing for {after:?}")]
    NotAtBarrier {
        /// The rank, numbered in the world.
        rank: u32,
        /// Time since its last heartbeat, or since the start of the wait.
        after: Duration,
    },
    /// Too many split messages are open.
    #[error(transparent)]
    NoFreePair(#[from] NoFreePair),
    /// An error of the C MPI, with its text.
    #[cfg(not(loom))]
    #[error(transparent)]
    Library(#[from] mpjdev_sys::mpi::MpiError),
    /// Packets that the other machines had not acked when the finish timed out.
    #[error("{octets} octets{} to rank {rank}{} were not acknowledged by the other machine when finish \
             timed out: its network or the machine itself is down or too slow",
        .messages.map_or(String::new(), |n| format!(" of {n} messages")),
        more_ranks(*.ranks))]
    Unacked {
        /// The first such rank, numbered in the world.
        rank: u32,
        /// Number of such ranks.
        ranks: usize,
        /// Number of messages, for transports that ack messages; `None` over a stream of octets.
        messages: Option<usize>,
        /// Octets to all of them.
        octets: u64,
    },
    /// Messages that the finish could not deliver.
    #[error("{count} messages were not delivered, the first to rank {rank} with tag {tag}, {len} octets")]
    Undelivered {
        /// Number of messages.
        count: usize,
        /// Destination of the first one, numbered in the world.
        rank: u32,
        /// Its tag.
        tag: i32,
        /// Its logical length in octets.
        len: usize,
    },
}

/// The suffix of a text about several ranks that names the first.
fn more_ranks(ranks: usize) -> String {
    if ranks > 1 { format!(" and {} more ranks", ranks - 1) } else { String::new() }
}

impl DeviceError {
    /// The error of a message that its source has stopped packing.
    #[cold]
    pub(crate) fn unpacked(rank: u32) -> DeviceError {
        DeviceError::PeerFailed { rank, why: "it could not pack its message to the end".to_owned() }
    }
}
