//! Ranks over shared memory: the one that this process is, and, for tests, all of a job in one process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mpjdev_buffer::SlabSource;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::comm::Comm;
use crate::config::Config;
use crate::control::{self, Packet};
use crate::endpoint::Endpoint;
use crate::mpi;
use crate::pool::HeapPool;
use crate::transport::shm::{Board, SegmentPool};
use crate::transport::tcp::mesh::MeshError;
use crate::transport::udp::meeting::MeetingError;
use crate::transport::{Inbox, Wire, shm};
use crate::waiting::Patience;

use super::spanning::{self, Memory, Spanning};
use super::world::World;

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
    #[error("the environment variable {name} is {value:?}, which no launcher sets")]
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
    /// A rank will not come any more.
    #[error("the ranks of the job do not come together: {why}")]
    Peer {
        /// The rank.
        rank: u32,
        /// Why not.
        why: control::Refusal,
    },
    /// The waiting thread was interrupted; joining may be tried again.
    #[error("interrupted while waiting for the other ranks")]
    Interrupted,
    /// The launcher is gone, or says something else.
    #[error("the launcher does not answer as it should: {0}")]
    Launcher(&'static str),
    /// The connections to the other ranks cannot be made.
    #[error("rank {rank} has no connection to all others: {error}")]
    Mesh {
        /// This rank, which is the host of that number unless there are foreign ones.
        rank: u32,
        /// Why not.
        error: Box<MeshError>,
    },
    /// The other ranks do not say where datagrams are to go.
    #[error("rank {rank} cannot send datagrams to all others: {error}")]
    Meeting {
        /// This rank.
        rank: u32,
        /// Why not.
        error: Box<MeetingError>,
    },
    /// There are ranks that know no datagrams.
    #[error(
        "rank {foreign} is another implementation's, which does not know mpjdev's datagrams: start all sites with --transport auto"
    )]
    Foreign {
        /// The first of them.
        foreign: u32,
    },
    /// The C MPI cannot be used.
    #[error(transparent)]
    Mpi(Box<mpi::Unfit>),
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

/// Makes this process the rank that a launcher has started it as, ours or that of an MPI, and waits until all ranks are there;
/// none when no launcher has. Messages take memory from a segment and then from `private`, whose limit holds for both.
///
/// A process may join again when it has finished: then all ranks must, and nothing is shared with what was before.
///
/// # Errors
/// It cannot be that rank; a rank will not come; interrupted.
pub fn join(
    config: Config,
    private: &Arc<HeapPool>,
    patience: &mut dyn Patience,
) -> Result<Option<Joined>, JoinError> {
    let Some(control) = variable(control::CONTROL)? else {
        // A rank of our own launcher inside an allocation is that, whatever variables there are.
        let unknown = |value| JoinError::Variable { name: mpi::TRANSPORT, value };
        return match mpi::is_asked_for().map_err(unknown)? {
            true => join_mpi(config, private, patience).map(Some),
            false => Ok(None),
        };
    };
    let (rank, ranks) = match (variable(control::RANK)?, variable(control::SIZE)?) {
        (Some(rank), Some(ranks)) if rank < ranks => (rank, ranks),
        _ => return Err(JoinError::Launcher("it gives a socket but no rank of a job")),
    };
    let config = config.for_ranks(ranks as usize).bounded();
    let len = segment_len(private.limit());
    let pool = shm::create(rank, ranks as usize, len, &config, private.clone());
    let pool = pool.map_err(system("shared memory"))?;
    let file = pool.share().map_err(system("shared memory"))?;
    let (answers, theirs) = control::socket_pair().map_err(system("a socket"))?;
    say_hello(control as i32, rank, &[file.as_fd(), theirs.as_fd()], patience)?;
    drop(theirs);
    let mut waiting = Waiting { socket: answers, slice: config.slice, patience };
    let joined = waiting.receive(rank, ranks).and_then(|found| {
        let Found { spanning, job } = found;
        match (spanning, job) {
            (Some(spanning), near) => {
                let memory = Memory { near, pool: &pool, private };
                spanning::connect(rank, spanning, config, memory, waiting.patience)
            }
            (None, Some(job)) => {
                let world = connect(rank, &config, &pool, job).map_err(system("a thread"))?;
                Ok(Joined { world, source: pool.clone() })
            }
            (None, None) => Err(JoinError::Launcher("it hands out no job")),
        }
    });
    joined.map(Some).inspect_err(|_| shm::resign(&pool))
}

fn join_mpi(
    config: Config,
    private: &Arc<HeapPool>,
    patience: &mut dyn Patience,
) -> Result<Joined, JoinError> {
    match mpi::join(config, private.clone(), patience) {
        Ok(world) => Ok(Joined { world, source: private.clone() }),
        Err(mpi::Unfit::Interrupted) => Err(JoinError::Interrupted),
        Err(unfit) => Err(JoinError::Mpi(Box::new(unfit))),
    }
}

pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> JoinError {
    move |error| JoinError::System { what, error }
}

/// Tells the launcher that this process is that rank, on the socket that it was started with.
fn say_hello(
    control: i32,
    rank: u32,
    fds: &[BorrowedFd<'_>],
    patience: &mut dyn Patience,
) -> Result<(), JoinError> {
    /// Its number is somebody else's once it is closed, so it is kept.
    static SOCKET: Mutex<Option<OwnedFd>> = Mutex::new(None);
    /// Nobody tells when other descriptors have arrived.
    const SOON: Duration = Duration::from_millis(1);
    let mut socket = SOCKET.lock().unwrap_or_else(PoisonError::into_inner);
    let socket = match &mut *socket {
        Some(socket) => socket,
        empty => {
            let taken = mpjdev_sys::inherited::packet_socket(control);
            empty.insert(taken.map_err(system("the control socket"))?)
        }
    };
    loop {
        match control::send(socket.as_fd(), Packet::Hello { rank }, fds) {
            Ok(()) => return Ok(()),
            Err(error) if !control::is_passing(&error) => return Err(system("the launcher")(error)),
            Err(_) if !patience.goes_on() => return Err(JoinError::Interrupted),
            Err(_) => std::thread::sleep(SOON),
        }
    }
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

/// A process that waits for the other ranks.
struct Waiting<'a> {
    socket: OwnedFd,
    slice: Duration,
    patience: &'a mut dyn Patience,
}

/// What the launcher has handed out.
struct Found {
    /// The world, where it has more ranks than those that share memory.
    spanning: Option<Spanning>,
    /// What the ranks of the launcher share, where they do.
    job: Option<shm::Job>,
}

impl Waiting<'_> {
    /// What the launcher hands out when all ranks are there. Blocks.
    fn receive(&mut self, rank: u32, ranks: u32) -> Result<Found, JoinError> {
        let mut first = self.receive_packet(rank)?;
        let mut spanning = None;
        if first.packet == Some(Packet::World) {
            let fds = <[_; 2]>::try_from(first.fds);
            let [world, listener] = fds.map_err(|_| JoinError::Launcher("no description of the world"))?;
            let world = World::open(world).map_err(system("the description of the world"))?;
            if world.count != ranks {
                return Err(JoinError::Launcher("another number of ranks than it has started"));
            }
            let shares_memory = world.shares_memory;
            spanning = Some(Spanning { world, listener });
            if !shares_memory {
                return Ok(Found { spanning, job: None });
            }
            first = self.receive_packet(rank)?;
        }
        let job = self.receive_job(rank, ranks, first)?;
        Ok(Found { spanning, job: Some(job) })
    }

    /// What ranks share that have memory in common; this packet has come already. Blocks.
    fn receive_job(
        &mut self,
        rank: u32,
        ranks: u32,
        first: control::Received,
    ) -> Result<shm::Job, JoinError> {
        let (mut pages, mut files) = (None, Vec::new());
        let mut next = Some(first);
        while files.len() < ranks as usize {
            let mut received = next.take().map_or_else(|| self.receive_packet(rank), Ok)?;
            match received.packet {
                Some(Packet::Welcome { ranks: all }) if all == ranks && pages.is_none() => {
                    let files = <[_; 2]>::try_from(received.fds);
                    pages = Some(files.map_err(|_| JoinError::Launcher("no pages"))?);
                }
                Some(Packet::Segments { first, count })
                    if first as usize == files.len() && count as usize == received.fds.len() =>
                {
                    files.append(&mut received.fds);
                }
                _ => return Err(JoinError::Launcher("a packet that does not follow")),
            }
        }
        let Some(pages) = pages.filter(|_| files.len() == ranks as usize) else {
            return Err(JoinError::Launcher("another number of segments than of ranks"));
        };
        shm::Job::open([pages[0].as_fd(), pages[1].as_fd()], files).map_err(system("the pages of the job"))
    }

    /// The next packet that is no refusal, whole. Blocks as long as the patience lasts.
    fn receive_packet(&mut self, rank: u32) -> Result<control::Received, JoinError> {
        let received = self.receive_any()?;
        if received.is_cut {
            return Err(JoinError::Launcher("this process may not have as many files as there are ranks"));
        }
        match received.packet {
            Some(Packet::Refused(why)) => Err(refused(rank, why)),
            _ => Ok(received),
        }
    }

    /// The next packet. Blocks as long as the patience lasts.
    fn receive_any(&mut self) -> Result<control::Received, JoinError> {
        let slice = Timespec::try_from(self.slice).unwrap_or_default();
        loop {
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            // Reading blocks, so it is begun only when there is something: a signal may have come instead.
            if let Ok(0) | Err(Errno::INTR) = poll(&mut fds, Some(&slice)) {
                if !self.patience.goes_on() {
                    return Err(JoinError::Interrupted);
                }
                continue;
            }
            return match control::receive(self.socket.as_fd()) {
                Ok(Some(received)) => Ok(received),
                Ok(None) => Err(JoinError::Launcher("it has gone")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(system("the launcher")(error)),
            };
        }
    }
}

fn refused(rank: u32, why: control::Refusal) -> JoinError {
    match why {
        control::Refusal::Ended(peer) | control::Refusal::Failed(peer) => JoinError::Peer { rank: peer, why },
        control::Refusal::Taken
        | control::Refusal::NoRoom
        | control::Refusal::NoJob
        | control::Refusal::Once => JoinError::Refused { rank, why },
    }
}
