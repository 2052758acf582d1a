//! Collective operations of a communicator as machines that ask for sends and receives.
//!
//! A machine runs on every rank of the communicator, and needs nothing but small point-to-point messages on
//! its collective context ([`crate::context::collective`]). It does no I/O: the driver carries out its
//! [`Action`]s and hands in what was received. [`Barrier`] and [`Creation`] (dup, create, split) are such
//! machines. The C MPI has its own and needs none of them.
//!
//! Tags differ between machines and between the rounds of one machine. That is enough to keep consecutive
//! operations on one communicator apart: each rank begins them in the same order (MPI 4.1, 6.1), and of the
//! messages that one source sends another under one tag, the first belongs to the earlier operation, since
//! messages of one source in one context do not overtake each other.

mod barrier;
mod creation;
mod messages;

pub use barrier::Barrier;
pub use creation::{Communicator, Creation, Refusal};
pub use messages::payload_len_max;

use thiserror::Error;

use crate::context::ContextError;

/// A collective operation in progress on one rank.
///
/// The calling order: [`poll_action`](Self::poll_action) until it gives `None`, carrying out each action;
/// then [`result`](Self::result); while that is `None`, wait for one of the receives asked for, hand it in
/// with [`handle_received`](Self::handle_received), and begin again. A result does not cancel actions: those
/// that are left when it appears are for the other ranks, so they are always drained first.
///
/// When a rank of the communicator fails, or an input gives an error, the driver drops the machine and
/// withdraws the receives that it has posted for it; collective operations on that communicator cannot be
/// relied on any more.
pub trait Collective {
    /// The result of the operation on this rank.
    type Outcome;

    /// Gives the next thing to do, `None` when there is nothing to do before the next input.
    fn poll_action(&mut self) -> Option<Action>;

    /// Takes in the message of a receive that [`Action::Receive`] asked for; receives may complete in any
    /// order.
    ///
    /// The octets may be anything: nothing in them is used before it is checked.
    ///
    /// # Errors
    /// A [`ProtocolError`] that names the sender and the numbers. The sender broke the protocol: its channel
    /// is to be closed. Actions that tell the other ranks may follow.
    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError>;

    /// Takes in that a receive which was asked for never completes, because its source has finished; false
    /// when this rank can only give up. Else actions that tell the other ranks follow, none of which must be
    /// left to wait for this one.
    fn handle_ended(&mut self, source: u32, tag: i32) -> bool;

    /// Takes in the answer to [`Action::Allocate`]: as many context ids as asked for, or why there are none.
    ///
    /// # Panics
    /// With another number of ids than asked for. Without a request the answer is ignored.
    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, ContextError>);

    /// Gives the outcome once there is one.
    fn result(&self) -> Option<Self::Outcome>;
}

/// A request of a machine to its driver. Ranks are those of the communicator, messages travel in its
/// collective context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Send this, without waiting for it to be received.
    Send {
        /// The destination.
        dest: u32,
        /// The tag.
        tag: i32,
        /// The whole payload, at most [`payload_len_max`] octets; a barrier's is empty, unless a rank
        /// has ended.
        octets: Vec<u8>,
    },
    /// Receive one message from exactly this source with exactly this tag.
    Receive {
        /// The source.
        source: u32,
        /// The tag.
        tag: i32,
    },
    /// Allocate context ids, and hand them in with [`Collective::handle_contexts`].
    Allocate {
        /// The number of ids, at least 1.
        count: u32,
    },
}

/// A message that breaks the protocol of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// No receive for this was asked for.
    #[error("collective message from rank {source_rank} with tag {tag} was not asked for")]
    NotAskedFor {
        /// The sender.
        source_rank: u32,
        /// The message's tag.
        tag: i32,
    },
    /// The payload has not the length it must have.
    #[error("collective message from rank {source_rank} with tag {tag} has {actual} octets, not {expected}")]
    Length {
        /// The sender.
        source_rank: u32,
        /// The message's tag.
        tag: i32,
        /// Its length in octets.
        actual: usize,
        /// The length needed; the least one, where the fields that fix it have not arrived.
        expected: usize,
    },
    /// A field has a value that it cannot have there.
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

/// Tags of the collective context, one home for all. Those of the C MPI and of IMPI are at least as wide
/// (`MPI_TAG_UB` is at least 32767).
mod tag {
    /// Barrier, round 0; round k has the tag k, and there are at most 32.
    pub(super) const BARRIER: i32 = 0;
    /// Dup: rank 0 to all.
    pub(super) const DUP_VERDICT: i32 = 64;
    /// Create: all to rank 0.
    pub(super) const CREATE_REQUEST: i32 = 65;
    /// Create: rank 0 to all.
    pub(super) const CREATE_VERDICT: i32 = 66;
    /// Split: all to rank 0.
    pub(super) const SPLIT_REQUEST: i32 = 67;
    /// Split: rank 0 to all.
    pub(super) const SPLIT_VERDICT: i32 = 68;
    /// Dup, create, split: all to rank 0, once their verdict is there.
    pub(super) const CONFIRMATION: i32 = 69;
    /// Dup, create, split: rank 0 to all, once all have confirmed.
    pub(super) const SETTLEMENT: i32 = 70;
}

/// The tag, in the collective context, of the notice that its sender has abandoned a collective operation. It
/// has no payload, and no machine asks for it: the driver polls for it while a machine waits.
pub const ABANDONED_TAG: i32 = 71;

/// The tag of the markers by which members of a communicator over a C MPI tell each other that they have
/// freed it.
pub const RETIRED_TAG: i32 = 72;
