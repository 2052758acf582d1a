//! Collective call whose blocks have one length.

use crate::choice::Choices;
use crate::group::Group;
use crate::operation::Operation;
use crate::schedule::Schedule;
use crate::{allgather, allreduce, alltoall, bcast, gather, reduce, scan, scatter};

/// The operation of a call, and what decides on its schedule beside the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// From one rank to all.
    Bcast {
        /// The rank that has the vector.
        root: u32,
    },
    /// A block of each rank at one.
    Gather {
        /// The rank that gets the blocks.
        root: u32,
    },
    /// A block for each rank from one.
    Scatter {
        /// The rank that has the blocks.
        root: u32,
    },
    /// A block of each rank at all.
    Allgather,
    /// A block of each rank for each rank.
    Alltoall,
    /// A combined vector at one rank.
    Reduce {
        /// The rank that gets the result.
        root: u32,
        /// The operation.
        operation: Operation,
    },
    /// A combined vector at all ranks.
    Allreduce {
        /// The operation.
        operation: Operation,
    },
    /// The combined vectors of the ranks up to each.
    Scan,
}

/// A call whose blocks have one length. Equal calls of a rank have equal schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformCall {
    /// The operation.
    pub call: Call,
    /// Elements of each block.
    pub count: usize,
    /// Octets of an element.
    pub element_len: usize,
}

impl UniformCall {
    /// The schedule of a rank.
    ///
    /// # Panics
    /// The root is no rank of the group.
    pub fn schedule(&self, group: Group, choices: &Choices<'_>) -> Schedule {
        let &UniformCall { call, count, element_len } = self;
        match call {
            Call::Bcast { root } => bcast(group, root, count, element_len, choices),
            Call::Gather { root } => gather(group, root, count, element_len, choices),
            Call::Scatter { root } => scatter(group, root, count, element_len, choices),
            Call::Allgather => allgather(group, count, element_len, choices),
            Call::Alltoall => alltoall(group, count, element_len, choices),
            Call::Reduce { root, operation } => reduce(group, root, count, operation, element_len, choices),
            Call::Allreduce { operation } => allreduce(group, count, operation, element_len, choices),
            Call::Scan => scan(group, count),
        }
    }
}
