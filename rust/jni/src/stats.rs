//! Statistics of this process's rank, for `MPJDEV_STATS` and for the benchmark's programs.

use mpjdev_engine::lock_order::{LockRank, Mutex};
use mpjdev_engine::stats::Datagrams;

use crate::boundary::Env;
use crate::error::Failure;
use crate::handle;

/// The statistics at the mark.
static MARK: Mutex<Option<Datagrams>> = Mutex::new(LockRank::Leaf, None);

fn counted() -> Option<Datagrams> {
    Some(handle::process_rank()?.stats().datagrams?.sum())
}

/// Sets the mark from which [`since_mark`] counts.
#[allow(clippy::unnecessary_wraps, reason = "the form that all natives have")]
pub(crate) fn mark(_: &mut Env) -> Result<(), Failure> {
    *MARK.lock() = counted();
    Ok(())
}

/// The statistics of the process's rank since the mark, as `name=value` with blanks between; empty without
/// statistics.
#[allow(clippy::unnecessary_wraps, reason = "the form that all natives have")]
pub(crate) fn since_mark(_: &mut Env) -> Result<String, Failure> {
    let mark = *MARK.lock();
    Ok(counted().zip(mark).map_or_else(String::new, |(now, mark)| now.since(&mark).words()))
}

/// Writes the statistics of the process's rank to standard error, if the environment asks for it and they
/// were not written yet.
#[allow(clippy::unnecessary_wraps, reason = "the form that all natives have")]
pub(crate) fn print(_: &mut Env) -> Result<(), Failure> {
    if let Some(rank) = handle::process_rank() {
        rank.print_stats();
    }
    Ok(())
}
