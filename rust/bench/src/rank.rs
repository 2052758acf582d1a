//! A contestant in Rust: this process as a rank, or as all ranks of a job. It follows orders.

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

use super::loops::Party;
use super::protocol::{Answer, END, Order};
use super::relay_client::RelayClient;

/// Octets that messages may take together.
const LIMIT: u64 = 1 << 30;

/// Why a rank gives up.
#[derive(Debug, Error)]
pub enum RankError {
    /// Messages do not go.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Or cannot be packed.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// This process cannot be the rank that it was started as.
    #[error(transparent)]
    Join(#[from] job::JoinError),
    /// The socket of the orders failed.
    #[error("the socket of the orders: {0}")]
    Socket(#[from] io::Error),
    /// A message is another one than was sent.
    #[error("{0}")]
    Content(String),
    /// Or asks for what this contestant does not do.
    #[error("{0}")]
    Order(String),
}

/// Follows the orders that come through a socket to their end: as the rank that a launcher has started this
/// process as, or, with a number of threads, as that many ranks. `checks`: each message has a content of its
/// own, which is compared. `relay`: datagrams pass through it.
///
/// # Errors
/// The orders cannot be read or followed.
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
        let joined = joined.ok_or_else(|| RankError::Order("no launcher has started this process".into()))?;
        serve_rank(socket, joined.world, joined.source, checks)?;
        // A launcher of an MPI wants that.
        mpi::end(None);
        return Ok(());
    };
    let private: Arc<dyn SlabSource> = pool;
    let worlds = job::local(threads as usize, Config::default(), &private);
    std::thread::scope(|scope| {
        let follow_one = |world| scope.spawn(|| serve_rank(socket, world, private.clone(), checks));
        let ranks: Vec<_> = worlds.into_iter().map(follow_one).collect();
        let gone = || RankError::Order("a rank panicked".into());
        ranks.into_iter().try_for_each(|rank| rank.join().unwrap_or_else(|_| Err(gone())))
    })
}

/// One rank of a job. When it fails, the others learn it from the orders, which end.
fn serve_rank(
    socket: &Path,
    world: Comm,
    source: Arc<dyn SlabSource>,
    checks: bool,
) -> Result<(), RankError> {
    let rank = world.rank();
    let mut party = Party::new(world, source, checks);
    follow(socket, rank, |order| answer(&mut party, order))?;
    Ok(party.world().finish(&mut Uninterruptible)?)
}

/// Says which rank this is, and answers the orders that come through a socket to their end.
///
/// # Errors
/// The orders cannot be read, or one cannot be followed.
pub fn follow(
    socket: &Path,
    rank: u32,
    mut answer: impl FnMut(Order) -> Result<Answer, RankError>,
) -> Result<(), RankError> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{rank}")?;
    let mut orders = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    loop {
        line.clear();
        orders.read_line(&mut line)?;
        if line.trim_end() == END {
            return Ok(());
        }
        let answer = answer(line.parse().map_err(RankError::Order)?)?;
        writeln!(stream, "{answer}")?;
    }
}

/// Follows one order: some times that do not count, since a rank that has slept is not where it was, and then
/// those that do.
fn answer(party: &mut Party, order: Order) -> Result<Answer, RankError> {
    party.prepare(order)?;
    party.world().barrier(&mut Uninterruptible)?;
    party.run(order.case, order.times / 8 + 1)?;
    let before = counted(party);
    let begin = Instant::now();
    let told = party.run(order.case, order.times)?;
    let nanos = told.nanos.unwrap_or_else(|| begin.elapsed().as_nanos() as f64);
    let counted = counted(party).zip(before).map(|(after, before)| after.since(&before));
    Ok(Answer { nanos, extra: told.extra, counted })
}

fn counted(party: &Party) -> Option<Datagrams> {
    party.world().stats().datagrams.map(|counted| counted.sum())
}
