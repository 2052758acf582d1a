//! Errors of a process that joins its job.

use std::io;
use std::time::Duration;

use mpjdev_engine::mpi;
use mpjdev_transport::room;

use crate::control;
use crate::mesh::MeshError;
use crate::setup::SetupError;

/// A violation of the protocol between a launcher and a rank. Its text follows "the launcher".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LauncherFault {
    /// The environment has a control socket and no rank.
    #[error("has set {}, but no valid {} and {}", control::CONTROL, control::RANK, control::SIZE)]
    NoRank,
    /// The monitor has closed its socket.
    #[error("has ended")]
    Ended,
    /// No answer that depends on the monitor alone arrived in time.
    #[error("has not answered the interrupted Comm.init of this rank within {} s", .after.as_secs_f64())]
    NoAnswer {
        /// The time that it had.
        after: Duration,
    },
    /// A packet has other descriptors than its kind requires.
    #[error("has sent the packet {packet} with {count} descriptors, {expected} are required")]
    Descriptors {
        /// The kind of packet.
        packet: &'static str,
        /// Number of descriptors in it.
        count: usize,
        /// The required number.
        expected: usize,
    },
    /// The world description has another number of ranks than the environment.
    #[error("describes {count} ranks, and has started {expected}")]
    RankCount {
        /// Ranks in the description.
        count: u32,
        /// Ranks in the environment.
        expected: u32,
    },
    /// A packet is undefined or out of order.
    #[error("has sent a packet out of order, after {count} of {expected} segments")]
    Order {
        /// Number of segments received.
        count: usize,
        /// Number of ranks.
        expected: usize,
    },
    /// There are more segments than ranks, or no pages with them.
    #[error("has sent {count} segments for {expected} ranks")]
    SegmentCount {
        /// Number of segments received.
        count: usize,
        /// Number of ranks.
        expected: usize,
    },
    /// There is neither a world nor shared memory.
    #[error("has sent neither a world description nor shared memory")]
    NoJob,
}

/// The reason why this process cannot be the rank that it was started as.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// A variable that the launcher sets is damaged.
    #[error("the environment variable {name} is {value:?}, which no launcher sets")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The variable that selects the transport names none.
    #[error(transparent)]
    Transport(#[from] mpi::UnknownTransport),
    /// The environment is that of a rank, and the socket is missing.
    #[error(
        "the environment says that this process is rank {rank} of a job, but descriptor {number} ({}) is not \
         its launcher's socket: {error}. A program that a rank starts is no rank: without the variables \
         {}, {} and {} it runs alone, as rank 0 of 1. A program between mpjrun and a rank must leave the \
         descriptor open",
        control::CONTROL,
        control::CONTROL,
        control::RANK,
        control::SIZE
    )]
    Descriptor {
        /// The rank.
        rank: u32,
        /// The descriptor that the environment names.
        number: u32,
        /// The error of that descriptor.
        error: io::Error,
    },
    /// The launcher has refused this process.
    #[error("the launcher refuses this process as rank {rank}: {why}")]
    Refused {
        /// The rank.
        rank: u32,
        /// The reason.
        why: control::Refusal,
    },
    /// A rank will not join any more.
    #[error("the ranks did not all join: {why}")]
    Peer {
        /// The rank.
        rank: u32,
        /// The reason.
        why: control::Refusal,
    },
    /// The waiting thread was interrupted before all ranks had joined; the call can be repeated.
    #[error("interrupted while waiting for the other ranks")]
    Interrupted,
    /// The launcher has ended, or breaks the protocol.
    #[error("the launcher {0}")]
    Launcher(LauncherFault),
    /// This process may open no more descriptors, even after a collection.
    #[error(
        "{what}: this process has {open} descriptors open and may have {limit} (ulimit -n): close files, or \
         raise the limit; joining a job takes up to two for each rank, and 32"
    )]
    Descriptors {
        /// The failed action.
        what: &'static str,
        /// Number of open descriptors.
        open: u64,
        /// The limit.
        limit: u64,
    },
    /// The connections to the other ranks cannot be made.
    #[error("rank {rank} has no connection to all others: {error}")]
    Mesh {
        /// This rank; its host has the same number unless there are foreign hosts.
        rank: u32,
        /// The reason.
        error: Box<MeshError>,
    },
    /// The setup of datagrams with the other ranks has failed.
    #[error("rank {rank} cannot send datagrams to all others: {error}")]
    Setup {
        /// This rank.
        rank: u32,
        /// The reason.
        error: Box<SetupError>,
    },
    /// Some ranks do not support datagrams.
    #[error(
        "rank {foreign} is another implementation's, which does not know mpjdev's datagrams: start all sites \
         with --transport auto"
    )]
    Foreign {
        /// The first of these ranks.
        foreign: u32,
    },
    /// The C MPI cannot be used.
    #[error(transparent)]
    Mpi(Box<mpi::Unfit>),
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// The failed action.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
}

pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> JoinError {
    move |error| match room::descriptors().filter(|_| room::is_at_limit(&error)) {
        Some((open, limit)) => JoinError::Descriptors { what, open, limit },
        None => JoinError::System { what, error },
    }
}
