//! Statistics of this process's rank, for `MPJDEV_STATS` and for the benchmark's programs, and its profile.

use mpjdev_engine::Comm;
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

/// Reports what the process's rank has counted: statistics to standard error, unless they were printed
/// before, and its profile to its file. The environment asks for either.
#[allow(clippy::unnecessary_wraps, reason = "the form that all natives have")]
pub(crate) fn report_end(_: &mut Env) -> Result<(), Failure> {
    if let Some(rank) = handle::process_rank() {
        rank.print_stats();
    }
    write_profile();
    Ok(())
}

/// Begins the profile of the process's rank. A rank runs without one if it cannot begin.
pub(crate) fn start_profile(world: &Comm) {
    if let Err(error) = mpjdev_profile::start(world.world_rank(), world.size() as u32) {
        eprintln!("mpjdev: no profile of rank {}: {error}", world.world_rank());
    }
}

/// Pauses the profile of the process's rank, or resumes it.
#[allow(clippy::unnecessary_wraps, reason = "the form that all natives have")]
pub(crate) fn pause_profile(_: &mut Env, is_paused: bool) -> Result<(), Failure> {
    mpjdev_profile::pause(is_paused);
    Ok(())
}

/// Writes the profile of the process's rank so far.
pub(crate) fn write_profile() {
    if let Err(error) = mpjdev_profile::write() {
        eprintln!("mpjdev: the profile of this rank is lost: {error}");
    }
}
