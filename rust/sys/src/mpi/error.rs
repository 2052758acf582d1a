//! What goes wrong, in the library's own words.

use std::fmt;

use thiserror::Error;

/// Kinds of errors that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A message was longer than the memory of its receive.
    Truncated,
    /// Any other.
    Other,
}

/// An error of the library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{function}: {text} (code {code})")]
pub struct MpiError {
    /// The function.
    pub function: &'static str,
    /// Its code, which means something to the library only.
    pub code: i32,
    /// Its kind.
    pub class: Class,
    /// What the library says of the code (`MPI_Error_string`).
    pub text: String,
}

/// A library that was tried in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its name or path.
    pub name: String,
    /// Why it is of no use.
    pub why: String,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

/// No MPI could be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct OpenError {
    /// What was tried, in this order.
    pub tried: Vec<Tried>,
    /// Whether the user had named the library.
    pub is_named: bool,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.is_named {
            true => "it is the one that MPJDEV_MPI_LIBRARY names",
            false => "MPJDEV_MPI_LIBRARY names another one, by its path or name",
        };
        f.write_str("no C MPI that can be used; tried")?;
        for (at, tried) in self.tried.iter().enumerate() {
            write!(f, "{} {tried}", if at == 0 { "" } else { ";" })?;
        }
        write!(f, " ({advice})")
    }
}
