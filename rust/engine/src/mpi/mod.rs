//! The C MPI engine: ranks whose messages the machine's own C MPI moves and matches.
//!
//! The library does matching, wildcards, ordering and the cancelling of receives. This crate adds two things.
//! Each communicator has two of the library's, one for the program's messages and one for collective
//! operations. And a message that may be longer than the memory of a receive is sent by rendezvous: an RTS is
//! matched in its place, and its physical messages follow on communicators of their own
//! ([`mpjdev_proto::rts`]). Only the creation of communicators blocks inside the library. A waiting
//! thread polls, at first without pause, then it yields, then it sleeps.
//!
//! A C MPI does not report ranks that finish. So each rank notifies all others, with the number of messages
//! that it has sent to them: a receive is unsatisfiable when that number has arrived.

mod channel;
mod comm_interface;
mod create;
mod fast_recv;
mod finish;
mod group;
mod kept_comms;
mod match_acks;
mod memory;
mod peers;
mod probe;
mod probed_messages;
mod processors;
mod recv;
mod recv_pool;
mod rendezvous;
mod requests;
mod retirement;
mod runtime;
mod send;
mod send_queues;
mod spill;
mod wait;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use mpjdev_buffer::SlabSource;
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::send_policy::Pairs;
use mpjdev_sys::mpi::{self, Mpi};
use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};
use mpjdev_transport::config::Config;
use mpjdev_transport::wait::Oversubscription;

use crate::error::DeviceError;
use crate::operation::Unreceived;

pub(crate) use create::CommCreation;
pub use group::Group;
pub use recv::Receive;
pub(crate) use runtime::join;
pub use runtime::{Unfit, UnknownTransport, check, end, end_job, is_asked_for, is_used};

use match_acks::MatchAcks;
use peers::Peers;
use probed_messages::ProbedMessages;
use recv_pool::RecvPool;
use requests::Requests;
use retirement::{Queue, Retirings};
use runtime::Session;
use send_queues::SendQueue;

/// The source and tag of a receive, the source numbered in the communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) source: Option<u32>,
    pub(crate) tag: Option<i32>,
}

impl Wanted {
    fn recv_from(self) -> mpi::RecvFrom {
        mpi::RecvFrom { source: self.source, tag: self.tag }
    }
}

/// One rank of a job that a C MPI runs.
#[derive(Debug)]
pub struct Rank {
    mpi: &'static Mpi,
    session: Session,
    rank: u32,
    size: u32,
    config: Config,
    source: Arc<dyn SlabSource>,
    contexts: Mutex<ContextAllocator>,
    state: Mutex<State>,
    /// Abandoned receives: the messages that they have matched are consumed.
    abandoned: Mutex<Vec<Receive>>,
    /// Communicators that were freed since the last visit, and those that the library still has.
    freed: Mutex<Queue>,
    retirings: Mutex<Retirings>,
    /// Whether `freed` or `retirings` has a communicator.
    has_freed: AtomicBool,
    /// Threads that create communicators, or may have to: other ranks wait for them inside the library.
    makers: AtomicU32,
    /// Match acks of synchronous sends; `has_pending_match_acks` is true while some are unsent.
    match_acks: Mutex<MatchAcks>,
    has_pending_match_acks: AtomicBool,
    /// The communicators with a reference.
    groups: Mutex<Vec<Weak<Group>>>,
    /// The communicator whose messages are spilled next.
    spilling: AtomicUsize,
    /// RTS that were spilled and that no receive has taken.
    rts_count: AtomicUsize,
    /// Spilled first physical messages of rendezvous messages.
    firsts: Mutex<ProbedMessages>,
    /// This rank has begun to finish.
    finishing: AtomicBool,
    /// Some rank has finished: operations may be unsatisfiable.
    has_ended: AtomicBool,
    /// Octets of memory in flight to this rank itself.
    own: AtomicU64,
    /// Messages that were sent to each rank, and received from it.
    sent: Box<[AtomicU64]>,
    received: Box<[AtomicU64]>,
    /// Another send to that rank waits.
    full_send_queues: Box<[AtomicBool]>,
    /// Count of empty tests and probes.
    empty_polls: AtomicU32,
    oversubscription: Oversubscription,
    recv_pool: RecvPool,
    /// Notifies the other members of a group that this rank takes no part in it.
    leave: fn(Arc<Group>),
}

/// The state that operations share.
#[derive(Debug)]
struct State {
    requests: Requests,
    /// Sends that wait for others to the same rank, by world rank.
    send_queues: BTreeMap<u32, SendQueue>,
    pairs: Pairs,
    peers: Peers,
    /// Messages that freed communicators have dropped; after the end, all that no receive took.
    unreceived: Unreceived,
}

impl Rank {
    fn new(
        mpi: &'static Mpi,
        session: Session,
        config: Config,
        source: Arc<dyn SlabSource>,
        leave: fn(Arc<Group>),
    ) -> Rank {
        let (rank, size) = (session.rank, session.size);
        let counts = || (0..size).map(|_| AtomicU64::new(0)).collect();
        Rank {
            mpi,
            rank,
            size,
            contexts: Mutex::new(
                LockRank::Leaf,
                ContextAllocator::new(rank).expect("ranks are counted in 30 bits"),
            ),
            state: Mutex::new(
                LockRank::Engine,
                State {
                    requests: Requests::default(),
                    send_queues: BTreeMap::new(),
                    pairs: Pairs::new(session.tag_max),
                    peers: Peers::new(size, session.number),
                    unreceived: Unreceived::of(rank),
                },
            ),
            abandoned: Mutex::new(LockRank::Leaf, Vec::new()),
            freed: Mutex::new(LockRank::FreedQueue, Queue::default()),
            retirings: Mutex::new(LockRank::FreedComms, Retirings::default()),
            has_freed: AtomicBool::new(false),
            match_acks: Mutex::new(LockRank::MatchAcks, MatchAcks::default()),
            has_pending_match_acks: AtomicBool::new(false),
            groups: Mutex::new(LockRank::Leaf, Vec::new()),
            spilling: AtomicUsize::new(0),
            rts_count: AtomicUsize::new(0),
            firsts: Mutex::new(LockRank::SpilledFirsts, ProbedMessages::default()),
            own: AtomicU64::new(0),
            makers: AtomicU32::new(0),
            finishing: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            sent: counts(),
            received: counts(),
            full_send_queues: (0..size).map(|_| AtomicBool::new(false)).collect(),
            empty_polls: AtomicU32::new(0),
            oversubscription: Oversubscription::new(),
            recv_pool: RecvPool::default(),
            leave,
            config: Config { tag_ub: config.tag_ub.min(session.tag_max), ..config },
            source,
            session,
        }
    }

    /// Number of this rank in the world.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks of the world.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The source of memory for this rank's messages.
    pub fn source(&self) -> &Arc<dyn SlabSource> {
        &self.source
    }

    /// The tunables.
    #[inline]
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn contexts(&self) -> &Mutex<ContextAllocator> {
        &self.contexts
    }

    /// Checks that this rank has not begun to finish.
    ///
    /// # Errors
    /// It has begun.
    #[inline]
    pub fn check_unfinished(&self) -> Result<(), DeviceError> {
        match self.finishing.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(DeviceError::Finished { rank: self.rank }),
        }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
