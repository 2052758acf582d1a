//! The reason why a communicator cannot be made.

use thiserror::Error;

/// Why there is no new communicator; the same on every rank, but for ids that are not valid: a rank that
/// passed them gets the id, the others get the ranks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The ids of some ranks name a rank that passed other ids to create.
    #[error(
        "all ranks of a list must pass this list to create; the lists of ranks {ranks:?} have ranks that \
         passed another one"
    )]
    DifferentIds {
        /// These ranks, ascending.
        ranks: Vec<u32>,
    },
    /// An id is not a rank of the parent.
    #[error("id {id} at position {position} is no rank of a communicator of {size}")]
    IdOutOfRange {
        /// The first such position in the ids, from 0.
        position: usize,
        /// The value there.
        id: i32,
        /// The parent's size.
        size: u32,
    },
    /// An id is repeated.
    #[error("id {id} at position {position} is there before")]
    RepeatedId {
        /// The first position of a repeated id.
        position: usize,
        /// The value there.
        id: i32,
    },
    /// Other ranks passed ids to create that are not different ranks of the parent.
    #[error("ranks {ranks:?} passed no list of different ranks to create")]
    BadIds {
        /// These ranks, ascending.
        ranks: Vec<u32>,
    },
    /// Rank 0 has not enough context ids left.
    #[error("rank 0 of the communicator has no context ids left")]
    NoContexts,
    /// Some ranks have finished without taking part.
    #[error("ranks {ranks:?} have finished")]
    Ended {
        /// These ranks, ascending.
        ranks: Vec<u32>,
    },
    /// Some ranks belong to both groups of an intercommunicator.
    #[error("world ranks {ranks:?} belong to both groups")]
    Overlap {
        /// These ranks of the world, ascending.
        ranks: Vec<u32>,
    },
    /// A leader of an intercommunicator has abandoned its creation, or its arguments were not valid.
    #[error("world rank {rank}, a leader, has abandoned the creation; its own exception says why")]
    Left {
        /// The leader, numbered in the world.
        rank: u32,
    },
    /// The requests of some ranks were damaged.
    #[error("the requests of ranks {ranks:?} were damaged")]
    Damaged {
        /// These ranks, ascending.
        ranks: Vec<u32>,
    },
}
