//! The interface between a collective operation and its driver.

use thiserror::Error;

use crate::context::ContextError;

/// A collective operation in progress on one rank.
///
/// The calling order: [`poll_action`](Self::poll_action) until it returns `None`, carrying out each action;
/// then [`result`](Self::result); while that is `None`, wait for one of the requested receives, pass it to
/// [`handle_received`](Self::handle_received), and begin again. Actions that are left when there is a result
/// are for the other ranks, so they are always carried out first.
///
/// When a rank of the communicator fails, or an input returns an error, the driver drops the machine and
/// withdraws the receives that it has posted for it. Further collective operations on that communicator are
/// unreliable.
pub trait Collective {
    /// The result of the operation on this rank.
    type Outcome;

    /// The next action; `None` if there is none before the next input.
    fn poll_action(&mut self) -> Option<Action>;

    /// A receive that [`Action::Receive`] requested is complete. Receives may complete in any order.
    ///
    /// The octets are not trusted: each field is checked before it is used.
    ///
    /// # Errors
    /// A [`ProtocolError`] that names the sender and the numbers. The sender violates the protocol, and the
    /// driver closes its channel. Actions that notify the other ranks may follow.
    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError>;

    /// A requested receive cannot complete, because its source has finished. Returns false if this rank can
    /// only abandon the operation. Else actions that notify the other ranks follow, so that none of them
    /// waits for this rank.
    fn handle_ended(&mut self, source: u32, tag: i32) -> bool;

    /// The answer to [`Action::Allocate`]: as many context ids as requested, or an error.
    ///
    /// # Panics
    /// With another number of ids than requested. Without a request the answer is ignored.
    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, ContextError>);

    /// The outcome, once there is one.
    fn result(&self) -> Option<Self::Outcome>;
}

/// A request of a machine to its driver. Ranks are those of the communicator; messages use its collective
/// context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Send a message, without waiting for its receipt.
    Send {
        /// The destination.
        dest: u32,
        /// The tag.
        tag: i32,
        /// The whole payload, at most [`payload_len_max`](super::payload_len_max) octets; that of a barrier
        /// is empty unless a rank has ended.
        octets: Vec<u8>,
    },
    /// Receive one message from exactly this source with exactly this tag.
    Receive {
        /// The source.
        source: u32,
        /// The tag.
        tag: i32,
    },
    /// Send a message to the leader of the other group, through the peer communicator.
    SendPeer {
        /// The whole payload, at most 8 octets more than [`payload_len_max`](super::payload_len_max) of the
        /// world's size.
        octets: Vec<u8>,
    },
    /// Receive one message from the leader of the other group, and pass it to
    /// [`handle_peer`](super::IntercommCreation::handle_peer).
    ReceivePeer,
    /// Allocate context ids, and pass them to [`Collective::handle_contexts`].
    Allocate {
        /// The number of ids, at least 1.
        count: u32,
    },
}

/// A message that violates the protocol of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// No receive for it was requested.
    #[error("collective message from rank {source_rank} with tag {tag} was not asked for")]
    NotAskedFor {
        /// The sender.
        source_rank: u32,
        /// The message's tag.
        tag: i32,
    },
    /// The payload has a wrong length.
    #[error("collective message from rank {source_rank} with tag {tag} has {actual} octets, not {expected}")]
    Length {
        /// The sender.
        source_rank: u32,
        /// The message's tag.
        tag: i32,
        /// Its length in octets.
        actual: usize,
        /// The expected length; the least one if the fields that determine it are missing.
        expected: usize,
    },
    /// A field has an invalid value.
    #[error("collective message from rank {source_rank} with tag {tag}: {field} is {value}")]
    Field {
        /// The sender.
        source_rank: u32,
        /// The message's tag.
        tag: i32,
        /// The field's name in PROTOCOL.md.
        field: &'static str,
        /// The value in the message.
        value: u64,
    },
}
