//! The C MPI of a machine, opened at run time: nothing is compiled or linked against one.
//!
//! An MPI is a C interface whose types and constants each implementation chooses itself. Three families cover what clusters have:
//! Open MPI, MPICH with everything that follows its ABI initiative (Intel MPI, MVAPICH, Cray MPICH), and the ABI of MPI-5. What
//! differs is in `abi`; the functions, which are the same, in `binding` once for all. Which one a library is says its own
//! version text.
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
pub use error::{Class, MpiError, OpenError, Tried};
pub use find::{Candidates, LIBRARY, Launcher};
pub use operation::{Operation, Outcome, To};

use std::fmt;

/// How much threads may do (MPI 4.1, 11.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// One thread calls MPI, the one that has initialised it.
    Funneled,
    /// Threads call it one at a time.
    Serialized,
    /// Threads call it whenever they like.
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

/// An operation that the library has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request(u64);

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its sender, numbered in the communicator.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Its octets.
    pub len: usize,
}

/// When a send is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When its memory may be used again.
    Standard,
    /// When it is matched.
    Synchronous,
}

/// Whom and what a receive or a probe takes: any where it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct From {
    /// The sender, numbered in the communicator.
    pub source: Option<u32>,
    /// The tag.
    pub tag: Option<i32>,
}

/// Ends this process at once with a status: nothing that is registered for its end is done any more. For a process whose MPI comes
/// back from aborting.
pub fn leave(status: u8) -> ! {
    // SAFETY: it takes a number and does not come back.
    unsafe { libc::_exit(status.into()) }
}

/// An opened MPI. All functions but those of setup may be called by any thread where [`ThreadLevel::Multiple`] was granted;
/// it is for the caller to keep to less where less was. None blocks but where it says so.
#[derive(Debug)]
pub struct Mpi {
    path: String,
    version: String,
    family: Family,
    functions: Box<dyn functions::Calls>,
}
