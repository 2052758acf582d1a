//! Collective operations with data as lists of steps.
//!
//! Pure: a call such as [`allreduce()`] takes the numbers of one rank and returns its [`Schedule`]: the
//! messages that the rank sends and receives, the operands that it combines, and the order of both. A driver
//! carries the steps out on an *area*, a vector of elements:
//!
//! ```text
//! send blocks --pack--> area[input[k]] --steps--> area[output[k]] --unpack--> receive blocks
//! ```
//!
//! Blocks are in rank order. Input and output of one rank:
//!
//! | call | input | output |
//! |---|---|---|
//! | bcast | 1 at the root, 0 elsewhere | 0 at the root, 1 elsewhere |
//! | gather, gatherv | 1 | one of each rank at the root, 0 elsewhere |
//! | scatter, scatterv | one for each rank at the root, 0 elsewhere | 1 |
//! | allgather, allgatherv | 1 | one of each rank |
//! | alltoall, alltoallv | one for each rank | one of each rank |
//! | reduce | 1 | 1 at the root, 0 elsewhere |
//! | allreduce, scan | 1 | 1 |
//! | reduce_scatter | 1, the whole vector | 1, the part of the rank |
//!
//! An input and an output may be the same elements. All ranks of a call pass the same counts, operation and
//! [`Choices`], so they choose the same algorithm and their messages match. Messages from one rank to another
//! must be received in the order in which they were sent. Sends do not wait, hence no schedule deadlocks.
//!
//! A group has at most 2³⁰ ranks. Calls panic if a rank is outside its group, or if there are fewer counts
//! than ranks.
#![forbid(unsafe_code)]

mod allgather;
mod allreduce;
mod alltoall;
mod bcast;
mod blocks;
mod call;
mod choice;
mod direct;
mod error;
mod fold;
mod gather;
mod group;
mod hierarchy;
mod operation;
mod placement;
mod rabenseifner;
mod reduce;
mod reduce_scatter;
mod ring;
mod scan;
mod scatter;
mod schedule;
mod step;
mod tree;
mod tree_order;

pub use allgather::{allgather, allgatherv};
pub use allreduce::allreduce;
pub use alltoall::{alltoall, alltoallv};
pub use bcast::bcast;
pub use call::{Call, UniformCall};
pub use choice::{Choices, LONG_SLOT};
pub use error::ChoiceError;
pub use gather::{gather, gatherv};
pub use group::Group;
pub use operation::Operation;
pub use placement::{Placement, Sites};
pub use reduce::reduce;
pub use reduce_scatter::reduce_scatter;
pub use scan::scan;
pub use scatter::{scatter, scatterv};
pub use schedule::{Schedule, TakenPart};
pub use step::{Run, Step};
pub use tree_order::combine_vectors;
