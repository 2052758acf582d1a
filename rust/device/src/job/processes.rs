//! Ranks over shared memory: the one that this process is, and, for tests, all of a job in one process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mpjdev_buffer::SlabSource;

use crate::comm::Comm;
use crate::config::Config;
use crate::control::{self, Packet};
use crate::endpoint::Endpoint;
use crate::transport::shm::SegmentPool;
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
    private: &Arc<dyn SlabSource>,
) -> io::Result<Vec<Comm>> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let pools = (0..ranks).map(|rank| shm::create(rank as u32, ranks, segment_len, private.clone()));
    let pools = pools.collect::<io::Result<Vec<_>>>()?;
    let (_, common) = shm::create_common(ranks)?;
    let connected = pools.iter().enumerate().map(|(rank, pool)| {
        let files = pools.iter().map(|pool| pool.share()).collect::<io::Result<_>>()?;
        let job = shm::Job { common: shm::open_common(&common, ranks)?, files };
        connect(rank as u32, &config, pool, job)
    });
    connected.collect()
}

/// A rank over shared memory, with its helper.
fn connect(rank: u32, config: &Config, pool: &Arc<SegmentPool>, job: shm::Job) -> io::Result<Comm> {
    let ranks = job.files.len() as u32;
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
/// launcher has. Messages take memory from a segment of at most `limit` octets, and then from `private`.
///
/// # Errors
/// It cannot be that rank.
pub fn join(
    config: Config,
    limit: usize,
    private: &Arc<dyn SlabSource>,
) -> Result<Option<Joined>, JoinError> {
    let Some(control) = variable(control::CONTROL)? else { return Ok(None) };
    let (rank, ranks) = match (variable(control::RANK)?, variable(control::SIZE)?) {
        (Some(rank), Some(ranks)) if rank < ranks => (rank, ranks),
        _ => return Err(JoinError::Launcher("it gives a socket but no rank of a job")),
    };
    let system = |what| move |error| JoinError::System { what, error };
    let socket =
        mpjdev_sys::inherited::packet_socket(control as i32).map_err(system("the control socket"))?;
    let pool = shm::create(rank, ranks as usize, segment_len(limit, ranks as usize), private.clone());
    let pool = pool.map_err(system("shared memory"))?;
    let file = pool.share().map_err(system("shared memory"))?;
    let (answers, theirs) = control::socket_pair().map_err(system("a socket"))?;
    let hello = control::Packet::Hello { rank };
    control::send(socket.as_fd(), hello, &[file.as_fd(), theirs.as_fd()]).map_err(system("the launcher"))?;
    drop(theirs);
    let job = receive_job(answers.as_fd(), rank, ranks)?;
    let config = config.for_ranks(ranks as usize).bounded();
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

/// Whole pages for the tables and for messages.
fn segment_len(limit: usize, ranks: usize) -> usize {
    const LEAST: usize = 64 << 20;
    /// Places of slabs are counted in lines of 64 octets, in 32 bits.
    const MOST: usize = 1 << 37;
    let tables = ranks * 256 + (64 << 10);
    (limit.clamp(LEAST, MOST) + tables).next_multiple_of(1 << 16)
}

/// What the launcher hands out when all ranks are there. Blocks.
fn receive_job(socket: BorrowedFd<'_>, rank: u32, ranks: u32) -> Result<shm::Job, JoinError> {
    let (mut common, mut files) = (None, Vec::new());
    while files.len() < ranks as usize {
        let received =
            control::receive(socket).map_err(|error| JoinError::System { what: "the launcher", error })?;
        let Some(mut received) = received else { return Err(JoinError::Launcher("it has gone")) };
        match received.packet {
            Some(Packet::Welcome { ranks: all }) if all == ranks && common.is_none() => {
                let file = received.fds.pop().ok_or(JoinError::Launcher("no common page"))?;
                let page = shm::open_common(&file, ranks as usize);
                common = Some(page.map_err(|error| JoinError::System { what: "the common page", error })?);
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
    match common {
        Some(common) if files.len() == ranks as usize => Ok(shm::Job { common, files }),
        _ => Err(JoinError::Launcher("another number of segments than of ranks")),
    }
}
