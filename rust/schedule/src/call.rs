//! Collective call whose blocks have one length.

use crate::choice::{Allgather, Allreduce, Alltoall, Bcast, Case, Choices, Reduce, ReduceScatter, Rooted};
use crate::group::Group;
use crate::operation::Operation;
use crate::schedule::Schedule;
use crate::{allgather, allreduce, alltoall, bcast, gather, reduce, reduce_scatter, scan, scatter};

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
    /// A combined vector, of which each rank gets a block.
    ReduceScatter {
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
            Call::ReduceScatter { operation } => {
                reduce_scatter(group, &vec![count; group.size as usize], operation, element_len, choices)
            }
            Call::Scan => scan(group, count),
        }
    }

    /// The root, if it exchanges one message with each other rank.
    #[must_use]
    pub fn root_of_messages(&self, size: u32, choices: &Choices<'_>) -> Option<u32> {
        let case = Case::new(Group { rank: 0, size }, self.count * self.element_len);
        let (is_linear, root) = match self.call {
            Call::Bcast { root } => (choices.bcast(&case) == Bcast::Linear, root),
            Call::Gather { root } => (choices.gather(&case) == Rooted::Linear, root),
            Call::Scatter { root } => (choices.scatter(&case) == Rooted::Linear, root),
            Call::Reduce { root, operation } => {
                let case =
                    Case::of_reduction(Group { rank: 0, size }, self.count, operation, self.element_len);
                (choices.reduce(&case) == Reduce::Direct, root)
            }
            _ => (false, 0),
        };
        is_linear.then_some(root)
    }

    /// Elements of the vector that each rank sends to all others, if the schedule of the call is an
    /// [exchange](Schedule::is_exchange).
    #[must_use]
    pub fn exchanged_len(&self, size: u32, choices: &Choices<'_>) -> Option<usize> {
        let &UniformCall { call, count, element_len } = self;
        let group = Group { rank: 0, size };
        let all = count * size as usize;
        let (is_exchange, len) = match call {
            Call::Allgather => {
                (choices.allgather(&Case::new(group, all * element_len)) == Allgather::Direct, count)
            }
            Call::Alltoall => {
                (choices.alltoall(&Case::new(group, count * element_len)) == Alltoall::Direct, all)
            }
            Call::Allreduce { operation } => {
                let case = Case::of_reduction(group, count, operation, element_len);
                (choices.allreduce(&case) == Allreduce::Direct, count)
            }
            Call::ReduceScatter { operation } => {
                let case = Case::of_reduction(group, all, operation, element_len);
                (choices.reduce_scatter(&case) == ReduceScatter::WholeVectors, all)
            }
            Call::Bcast { .. }
            | Call::Gather { .. }
            | Call::Scatter { .. }
            | Call::Reduce { .. }
            | Call::Scan => (false, 0),
        };
        is_exchange.then_some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;

    #[test]
    fn length_of_an_exchange_is_that_of_its_schedule() {
        let operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
        let calls = [
            Call::Bcast { root: 0 },
            Call::Gather { root: 0 },
            Call::Scatter { root: 0 },
            Call::Allgather,
            Call::Alltoall,
            Call::Reduce { root: 0, operation },
            Call::Allreduce { operation },
            Call::Allreduce { operation: Operation { is_divisible: false, ..operation } },
            Call::ReduceScatter { operation },
            Call::ReduceScatter { operation: Operation { is_divisible: false, ..operation } },
            Call::Scan,
        ];
        let places = [false, true].map(|has_slots| Placement::OneMachine { has_slots });
        let mut exchanges = 0;
        for (call, placement) in calls.into_iter().flat_map(|call| places.iter().map(move |at| (call, at))) {
            let choices = Choices::default().placed(placement);
            for (size, count) in (1..=33).flat_map(|size| [0, 1, 16, 128, 129, 4000].map(|n| (size, n))) {
                let call = UniformCall { call, count, element_len: 8 };
                let schedule = call.schedule(Group { rank: size / 2, size }, &choices);
                let len = schedule.is_exchange.then(|| schedule.published_len());
                assert_eq!(call.exchanged_len(size, &choices), len, "{call:?} of {size}");
                exchanges += usize::from(len.is_some());
            }
        }
        assert!(exchanges > 100, "{exchanges}");
    }
}
