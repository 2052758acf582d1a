//! Errors of a connection: of its driver, its peer, or the path between them.

use thiserror::Error;

use super::arrival::ArrivalId;

/// Why a send was refused; nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The queue is full: try again when a send is complete.
    #[error("{sends_max} sends are waiting already")]
    Full {
        /// The limit.
        sends_max: usize,
    },
    /// The rank does not fit the header.
    #[error("lrank is {lrank}, it can be 2047 at most")]
    Lrank {
        /// The rank.
        lrank: u16,
    },
    /// Token 0 is not a token.
    #[error("the token is 0")]
    Token,
    /// The connection is closing, or closed.
    #[error("no more sends are taken")]
    Finished,
}

/// The driver names a message that does not exist, or is not in the state for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no such arrival: {0:?}")]
pub struct NoSuchArrival(pub ArrivalId);

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The close exceeded its deadline.
    Deadline,
    /// Nothing was received from the peer for `dead_after`.
    Silence,
    /// The peer does not know the connection.
    Reset,
    /// The driver aborted the connection.
    Aborted,
}

/// The failure of a connection (5.8). The driver knows its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{cause}, {unacknowledged} messages without an acknowledgment, the first with sequence number {first}"
)]
pub struct Failure {
    /// The cause.
    pub cause: Cause,
    /// Messages whose octets are not all acked.
    pub unacknowledged: usize,
    /// The first sequence number that is not acked, as on the wire.
    pub first: u32,
    /// Whether the peer had sent its last message.
    pub peer_finished: bool,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Deadline => "closing took too long",
            Self::Silence => "the peer is silent",
            Self::Reset => "the peer knows no such connection",
            Self::Aborted => "the connection was aborted",
        })
    }
}
