//! Ranks over shared memory: the one that this process is, and, for tests, all of a job in one process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mpjdev_buffer::SlabSource;

use crate::comm::Comm;
use crate::config::Config;
use crate::control::{self, Packet};
use crate::endpoint::Endpoint;
use crate::pool::HeapPool;
use crate::transport::shm::{Board, SegmentPool};
use crate::transport::{Inbox, Wire, shm};

/// As [`local`](super::local()), over shared memory as if each rank were a process of its own. A rank's messages take memory
/// from its endpoint's source; what does not fit into a segment of `segment_len` octets comes from `private`.
///
/// # Errors
/// The system refuses.
///
/// # Panics
/// With no rank, or more than 2³⁰.
pub fn shm(
    ranks: usize,
    config: Config,
    segment_len: usize,
    private: &Arc<HeapPool>,
) -> io::Result<Vec<Comm>> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let create = |rank| shm::create(rank as u32, ranks, segment_len, &config, private.clone());
    let pools = (0..ranks).map(create).collect::<io::Result<Vec<_>>>()?;
    let board = Board::create(ranks)?;
    let connected = pools.iter().enumerate().map(|(rank, pool)| {
        let files = pools.iter().map(|pool| pool.share()).collect::<io::Result<_>>()?;
        connect(rank as u32, &config, pool, shm::Job::open(board.files(), files)?)
    });
    connected.collect()
}

/// A rank over shared memory, with its helper.
fn connect(rank: u32, config: &Config, pool: &Arc<SegmentPool>, job: shm::Job) -> io::Result<Comm> {
    let ranks = job.ranks() as u32;
    let (wire, inbox) = shm::connect(rank, config, pool.clone(), Arc::new(job));
    let bell = wire.helper_bell();
    let ends: (Arc<dyn Wire>, Box<dyn Inbox>) = (wire, Box::new(inbox));
    let endpoint = Arc::new(Endpoint::new(rank, ranks, config.clone(), ends, pool.clone()));
    crate::helper::start(&endpoint, bell)?;
    Ok(Comm::world(endpoint))
}

/// Why this process cannot be the rank that it was started as.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// A variable that the launcher sets is damaged.
    #[error("the environment variable {name} is {value:?}, not a number that the launcher sets")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it is.
        value: String,
    },
    /// The launcher has not taken it.
    #[error("the launcher refuses this process as rank {rank}: {why}")]
    Refused {
        /// The rank.
        rank: u32,
        /// Why.
        why: control::Refusal,
    },
    /// The launcher is gone, or says something else.
    #[error("the launcher does not answer as it should: {0}")]
    Launcher(&'static str),
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// A rank that is this process, and where its messages take memory from.
#[derive(Debug)]
pub struct Joined {
    /// The communicator of all ranks.
    pub world: Comm,
    /// Memory that messages go by reference from.
    pub source: Arc<dyn SlabSource>,
}

/// Makes this process the rank that a launcher has started it as, and waits until all ranks are there; none when no
/// launcher has. Messages take memory from a segment and then from `private`, whose limit holds for both.
///
/// # Errors
/// It cannot be that rank.
pub fn join(config: Config, private: &Arc<HeapPool>) -> Result<Option<Joined>, JoinError> {
    let Some(control) = variable(control::CONTROL)? else { return Ok(None) };
    let (rank, ranks) = match (variable(control::RANK)?, variable(control::SIZE)?) {
        (Some(rank), Some(ranks)) if rank < ranks => (rank, ranks),
        _ => return Err(JoinError::Launcher("it gives a socket but no rank of a job")),
    };
    let system = |what| move |error| JoinError::System { what, error };
    let socket =
        mpjdev_sys::inherited::packet_socket(control as i32).map_err(system("the control socket"))?;
    let config = config.for_ranks(ranks as usize).bounded();
    let len = segment_len(private.limit());
    let pool = shm::create(rank, ranks as usize, len, &config, private.clone());
    let pool = pool.map_err(system("shared memory"))?;
    let file = pool.share().map_err(system("shared memory"))?;
    let (answers, theirs) = control::socket_pair().map_err(system("a socket"))?;
    let hello = control::Packet::Hello { rank };
    control::send(socket.as_fd(), hello, &[file.as_fd(), theirs.as_fd()]).map_err(system("the launcher"))?;
    drop(theirs);
    let job = receive_job(answers.as_fd(), rank, ranks)?;
    let world = connect(rank, &config, &pool, job).map_err(system("a thread"))?;
    Ok(Some(Joined { world, source: pool }))
}

/// What a launcher has set; none when it has not.
fn variable(name: &'static str) -> Result<Option<u32>, JoinError> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    match value.parse() {
        Ok(number) if number <= i32::MAX as u32 => Ok(Some(number)),
        _ => Err(JoinError::Variable { name, value }),
    }
}

/// Octets of a segment's slabs for a limit on message memory: room for slabs of all sizes to lie as they come, since only
/// what is used is taken.
fn segment_len(limit: u64) -> usize {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 64 << 30;
    limit.saturating_mul(2).clamp(LEAST, MOST) as usize
}

/// What the launcher hands out when all ranks are there. Blocks.
fn receive_job(socket: BorrowedFd<'_>, rank: u32, ranks: u32) -> Result<shm::Job, JoinError> {
    let (mut pages, mut files) = (None, Vec::new());
    while files.len() < ranks as usize {
        let received =
            control::receive(socket).map_err(|error| JoinError::System { what: "the launcher", error })?;
        let Some(mut received) = received else { return Err(JoinError::Launcher("it has gone")) };
        match received.packet {
            Some(Packet::Welcome { ranks: all }) if all == ranks && pages.is_none() => {
                let files = <[_; 2]>::try_from(received.fds).map_err(|_| JoinError::Launcher("no pages"))?;
                pages = Some(files);
            }
            Some(Packet::Segments { first, count })
                if first as usize == files.len() && count as usize == received.fds.len() =>
            {
                files.append(&mut received.fds);
            }
            Some(Packet::Refused(why)) => return Err(JoinError::Refused { rank, why }),
            _ => return Err(JoinError::Launcher("a packet that does not follow")),
        }
    }
    let Some(pages) = pages.filter(|_| files.len() == ranks as usize) else {
        return Err(JoinError::Launcher("another number of segments than of ranks"));
    };
    shm::Job::open([pages[0].as_fd(), pages[1].as_fd()], files)
        .map_err(|error| JoinError::System { what: "the pages of the job", error })
}
