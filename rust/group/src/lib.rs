//! Arithmetic of the `mpi` package: groups of ranks, and Cartesian and graph topologies.
//!
//! Pure: numbers in, numbers and errors out. A group is the list of the world ranks of its members, each
//! once. [`PROC_NULL`] and [`UNDEFINED`] have the numbers that the package gives them.
#![forbid(unsafe_code)]

pub mod cart;
pub mod dims;
mod error;
pub mod graph;
pub mod group;

pub use error::{GroupError, TopologyError};

/// The rank of no process: sends to it and receives from it complete at once.
pub const PROC_NULL: i32 = -3;
/// The rank of a process in a group that it is not a member of.
pub const UNDEFINED: i32 = -1;
