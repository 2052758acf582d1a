//! The contestant in Rust: this process is one rank, or all ranks of a job.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mpjdev_bootstrap::job;
use mpjdev_bootstrap::setup::PortRelay;
use mpjdev_buffer::{BufferError, SlabSource};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::stats::Datagrams;
use mpjdev_engine::{Comm, Config, DeviceError, Uninterruptible, mpi};
use thiserror::Error;

use super::loops::MeasuredRank;
use super::protocol::{Answer, END, RunCommand};
use super::relay_client::RelayClient;

/// Limit of the memory of all messages, in octets.
const LIMIT: u64 = 1 << 30;

/// Error of a rank.
#[derive(Debug, Error)]
pub enum RankError {
    /// Communication failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A message cannot be packed or unpacked.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// This process cannot be the rank that it was started as.
    #[error(transparent)]
    Join(#[from] job::JoinError),
    /// The command socket failed.
    #[error("the command socket: {0}")]
    Socket(#[from] io::Error),
    /// A message has wrong contents.
    #[error("{0}")]
    Content(String),
    /// A command is invalid, or this contestant does not have its case.
    #[error("{0}")]
    Command(String),
}

/// Executes the commands of a socket as the rank that a launcher has started, or as `threads` ranks. With
/// `checks` every message has different contents, which are checked. With `relay` datagrams pass through it.
///
/// # Errors
/// A command cannot be read or executed.
pub fn serve(
    socket: &Path,
    threads: Option<u32>,
    checks: bool,
    relay: Option<RelayClient>,
) -> Result<(), RankError> {
    let pool = HeapPool::new(LIMIT);
    let Some(threads) = threads else {
        let relay = relay.as_ref().map(|relay| relay as &dyn PortRelay);
        let joined = job::join_through(relay, Config::default(), &pool, &mut Uninterruptible)?;
        let joined =
            joined.ok_or_else(|| RankError::Command("no launcher has started this process".into()))?;
        serve_rank(socket, joined.world, joined.source, checks)?;
        // Launchers of an MPI require MPI_Finalize.
        mpi::end(None);
        return Ok(());
    };
    let private: Arc<dyn SlabSource> = pool;
    let worlds = job::local(threads as usize, Config::default(), &private);
    std::thread::scope(|scope| {
        let serve_one = |world| scope.spawn(|| serve_rank(socket, world, private.clone(), checks));
        let ranks: Vec<_> = worlds.into_iter().map(serve_one).collect();
        let ended = || RankError::Command("a rank panicked".into());
        ranks.into_iter().try_for_each(|rank| rank.join().unwrap_or_else(|_| Err(ended())))
    })
}

/// Runs one rank of a job. If it fails, the commands to the others end.
fn serve_rank(
    socket: &Path,
    world: Comm,
    source: Arc<dyn SlabSource>,
    checks: bool,
) -> Result<(), RankError> {
    let rank = world.rank();
    let mut measured = MeasuredRank::new(world, source, checks);
    serve_commands(socket, rank, |command| answer(&mut measured, command))?;
    Ok(measured.world().finish(&mut Uninterruptible)?)
}

/// States the rank, and answers the commands of a socket until the last one.
///
/// # Errors
/// A command cannot be read or executed.
pub fn serve_commands(
    socket: &Path,
    rank: u32,
    mut answer: impl FnMut(RunCommand) -> Result<Answer, RankError>,
) -> Result<(), RankError> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{rank}")?;
    let mut commands = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    loop {
        line.clear();
        commands.read_line(&mut line)?;
        if line.trim_end() == END {
            return Ok(());
        }
        let answer = answer(line.parse().map_err(RankError::Command)?)?;
        writeln!(stream, "{answer}")?;
    }
}

/// Executes one command. Some repetitions are not measured, since caches are cold after a sleep. The ranks
/// answer behind a barrier, since an answer takes a processor from ranks that are not done.
fn answer(measured: &mut MeasuredRank, command: RunCommand) -> Result<Answer, RankError> {
    measured.prepare(command)?;
    measured.world().barrier(&mut Uninterruptible)?;
    measured.run(command.case, command.times / 8 + 1)?;
    let before = counted(measured);
    let begin = Instant::now();
    let result = measured.run(command.case, command.times)?;
    let nanos = result.nanos.unwrap_or_else(|| begin.elapsed().as_nanos() as f64);
    let counted = counted(measured).zip(before).map(|(after, before)| after.since(&before));
    measured.world().barrier(&mut Uninterruptible)?;
    Ok(Answer { nanos, extra: result.extra, counted })
}

fn counted(measured: &MeasuredRank) -> Option<Datagrams> {
    measured.world().stats().datagrams.map(|counted| counted.sum())
}
