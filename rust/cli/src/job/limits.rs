//! How many files a process may have open: a monitor needs some for each rank, the ranks keep what their user has set.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that a monitor has for each rank at most: its control socket, both streams, its process, its segment and the
/// socket for the answer.
const FOR_EACH: u64 = 6;
/// And where it listens, if it does.
const LISTENER: u64 = 1;
/// What it has beside them.
const BESIDE: u64 = 40;

/// Raises this process's limit as far as it may be raised, and gives what it was; none is no limit.
///
/// # Errors
/// So many ranks do not fit.
pub fn raise(ranks: u32, listens: bool) -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let for_each = FOR_EACH + if listens { LISTENER } else { 0 };
    let needed = u64::from(ranks) * for_each + BESIDE;
    if let Some(maximum) = maximum.filter(|maximum| *maximum < needed) {
        return Err(io::Error::other(format!(
            "{ranks} ranks need {needed} open files here, and {maximum} are allowed (ulimit -Hn)"
        )));
    }
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(current)
}

/// The limit in a word that [`restore`] understands.
pub fn word(limit: Option<u64>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}

/// Sets this process's limit to what it was.
///
/// # Errors
/// The system refuses.
pub fn restore(word: &str) -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: word.parse().ok(), maximum })?)
}
