//! C MPI of a machine, opened at run time: this crate is neither compiled nor linked against one.
//!
//! An MPI is a C interface whose types and constants each implementation chooses itself. Three families cover
//! the MPIs of clusters: Open MPI, MPICH with everything that follows its ABI initiative (Intel MPI, MVAPICH,
//! Cray MPICH), and the ABI of MPI-5. Their differences are in `abi`; the functions, which are the same, are
//! in `binding` once for all. The version text of a library states its family.
//!
//! A library is never closed again: it has threads and handlers of its own.

mod abi;
mod binding;
mod error;
mod find;
mod functions;
mod operation;
mod signals;

pub use abi::Family;
pub use binding::{Barrier, Dup};
pub use error::{Class, MpiError, OpenError, Tried, Unusable};
pub use find::{Candidates, LIBRARY, Launcher};
pub use operation::{Operation, Outcome, To};

use std::fmt;

/// Thread support (MPI 4.1, 11.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// One thread calls MPI, the one that has initialised it.
    Funneled,
    /// Threads call it one at a time.
    Serialized,
    /// Threads call it at any time.
    Multiple,
}

impl fmt::Display for ThreadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThreadLevel::Single => "MPI_THREAD_SINGLE",
            ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
            ThreadLevel::Serialized => "MPI_THREAD_SERIALIZED",
            ThreadLevel::Multiple => "MPI_THREAD_MULTIPLE",
        })
    }
}

/// A communicator of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Comm(u64);

/// A message that a matched probe has taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Matched(u64);

/// A pending operation of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request(u64);

/// Envelope and length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its sender, numbered in the communicator.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Its octets.
    pub len: usize,
}

/// Completion of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The send completes when its memory may be reused.
    Standard,
    /// The send completes when it is matched.
    Synchronous,
}

/// Selection of a receive or a probe; `None` accepts any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvFrom {
    /// The sender, numbered in the communicator.
    pub source: Option<u32>,
    /// The tag.
    pub tag: Option<i32>,
}

/// Ends this process at once with a status, without running exit handlers. For a process whose MPI returns
/// from an abort.
pub fn leave(status: u8) -> ! {
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(status.into()) }
}

/// An opened MPI. Any thread may call all functions except those of setup if [`ThreadLevel::Multiple`] was
/// granted; with less the caller must restrict its threads. Functions block only where their documentation
/// says so.
#[derive(Debug)]
pub struct Mpi {
    path: String,
    version: String,
    family: Family,
    functions: Box<dyn functions::Calls>,
}
