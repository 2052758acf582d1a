//! The result of a collective operation.

use crate::comm::Comm;

/// The result of a collective operation.
#[derive(Debug)]
pub enum Outcome {
    /// All ranks have entered the barrier.
    Passed,
    /// A communicator; `None` for a rank that is no member of it.
    Created(Option<Comm>),
}
