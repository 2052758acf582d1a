//! Limits on open files. A monitor needs some files for each rank or host; the ranks keep the user's limit.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum descriptors of a monitor for each rank: its control socket, both streams, its process, its segment
/// and the socket for the answer.
pub const PER_RANK: u32 = 6;
/// The listening socket of a rank that has one.
pub const PER_LISTENER: u32 = 1;
/// Maximum descriptors of a monitor for each host: the streams of its remote shell, and a file that is sent.
pub const PER_HOST: u32 = 5;
/// Descriptors of a monitor that belong to no rank and no host.
const PER_MONITOR: u64 = 40;

/// Raises this process's limit to the maximum, and returns the old one. `noun` names the members of the job,
/// each of which needs `each` descriptors.
///
/// # Errors
/// This number of members does not fit.
pub fn raise(count: u32, noun: &str, each: u32) -> io::Result<Rlimit> {
    let before @ Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = u64::from(count) * u64::from(each) + PER_MONITOR;
    if let Some(maximum) = maximum.filter(|maximum| *maximum < needed) {
        return Err(io::Error::other(format!(
            "{count} {noun}s need {needed} open files here, and {maximum} are allowed (ulimit -Hn)"
        )));
    }
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(before)
}
