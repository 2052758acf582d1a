//! Errors of the choice of algorithms.

use thiserror::Error;

/// A variable that names no algorithm of its call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{variable}={value}: not an algorithm of this call; it has {}", .known.join(", "))]
pub struct ChoiceError {
    /// Name of the variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The algorithms of the call.
    pub known: Vec<&'static str>,
}
