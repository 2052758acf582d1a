//! Limits on open files. A monitor needs some files for each rank; the ranks keep the user's limit.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum descriptors of a monitor for each rank: its control socket, both streams, its process, its segment
/// and the socket for the answer.
const PER_RANK: u64 = 6;
/// The listening socket of a rank that has one.
const PER_LISTENER: u64 = 1;
/// Descriptors of a monitor that belong to no rank.
const PER_MONITOR: u64 = 40;

/// Raises this process's limit to the maximum, and returns the old one.
///
/// # Errors
/// This number of ranks does not fit.
pub fn raise(ranks: u32, listens: bool) -> io::Result<Rlimit> {
    let before @ Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let per_rank = PER_RANK + if listens { PER_LISTENER } else { 0 };
    let needed = u64::from(ranks) * per_rank + PER_MONITOR;
    if let Some(maximum) = maximum.filter(|maximum| *maximum < needed) {
        return Err(io::Error::other(format!(
            "{ranks} ranks need {needed} open files here, and {maximum} are allowed (ulimit -Hn)"
        )));
    }
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(before)
}
