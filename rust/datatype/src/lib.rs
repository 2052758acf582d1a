//! Derived datatypes of the `mpi` package: their bounds, the order of their elements, and the elements of an
//! array that items of a type have.
//!
//! A type is flattened once, when it is constructed: to consecutive elements, to a strided nest of up to four
//! dimensions, or to a list of runs. The order is that of the type map and is never sorted, so the elements
//! of a message have the same order on both sides, and the last of two elements in one slot stays.
//!
//! Pure: numbers in, numbers and errors out. All offsets, strides and bounds count elements, never octets.
#![forbid(unsafe_code)]

mod base;
mod datatype;
mod error;
mod flatten;
mod indices;
mod placement;

pub use base::Base;
pub use datatype::{Datatype, Unit};
pub use error::DatatypeError;
pub use indices::Chunk;
pub use placement::{Items, Placement};
