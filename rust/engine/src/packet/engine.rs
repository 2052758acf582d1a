//! Packet engine of one rank, made of its parts. The operations on it are in the other files of this folder.
//!
//! One lock guards the state that operations and progress share. It is held for short stretches only: never
//! during a wait, and never while this thread blocks on another rank's lock. A waiting thread drives the
//! progress.

#[cfg(all(test, not(loom)))]
mod tests;

// State that no thread waits on stays with `std`, which spares the model checker its interleavings.
use std::sync::atomic as plain;
use std::sync::{Arc, OnceLock, Weak};

use mpjdev_buffer::SlabSource;
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::send_policy::Pairs;
use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};
use mpjdev_transport::config::{Config, QUEUE_PACKETS};
use mpjdev_transport::wait::Oversubscription;
use mpjdev_transport::{PacketSource, Transport};

use crate::packet::credit::{CreditTable, SendCredit};
use crate::packet::kept_slabs::KeptSlabs;
use crate::packet::outbox::{Outbox, QueuedCount};
use crate::packet::progress_threads::ProgressThreads;
use crate::packet::rank_end::{EndFlags, RankEnd};
use crate::packet::recv_queue::RecvQueue;
use crate::packet::requests::Requests;
use crate::packet::waiters::{Signals, Waiters};

/// Packets that are handled before the lock is released.
pub(crate) const BATCH: usize = 256;

/// Receives and messages up to which each one is checked.
const CHECKED_MAX: usize = 64;
/// Polls of which debug builds check the state once.
const CHECKED_POLLS: u32 = 32;

/// All state under the lock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) packet_source: Box<dyn PacketSource>,
    pub(super) state: State,
}

/// All state under the lock except the packet source, which is polled while this changes.
#[derive(Debug)]
pub(crate) struct State {
    /// Receives and messages that wait for each other.
    pub(super) recv_queue: RecvQueue,
    pub(super) requests: Requests,
    /// Memory for short messages.
    pub(super) kept_slabs: KeptSlabs,
    pub(super) outbox: Outbox,
    pub(super) pairs: Pairs,
    /// The credit of the other ranks here, and this rank's sends past the credit.
    pub(super) credit: CreditTable,
    /// The parked threads.
    pub(super) waiters: Waiters,
    /// An unexpected message may still be packed: such a message has arrived since the queue was empty.
    pub(super) had_packing: bool,
    pub(super) seen_epoch: u32,
    /// Polls for short messages of a source, of which some poll all sources.
    pub(super) short_count: u32,
    /// Polls, of which debug builds check some.
    polls: u32,
    /// The end of this rank.
    pub(super) end: RankEnd,
}

impl State {
    /// Counts a poll; true for the polls that check the state.
    pub(super) fn note_poll(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        cfg!(debug_assertions) && self.polls.is_multiple_of(CHECKED_POLLS)
    }

    /// Panics when an invariant of a part does not hold. Visits all ranks, all parked threads and short
    /// queues.
    pub(super) fn check(&self, queued_count: &QueuedCount, end_flags: &EndFlags) {
        self.outbox.check(queued_count);
        self.credit.check();
        self.waiters.check();
        self.end.check(end_flags);
        if self.recv_queue.len() <= CHECKED_MAX {
            self.recv_queue.check();
            // A finished rank drops messages and returns no credit.
            if !self.end.has_begun() {
                let messages = self.recv_queue.messages();
                self.credit
                    .check_held(messages.map(|(envelope, message)| (envelope.source, message.charge())));
            }
        }
    }
}

/// The packet engine of one rank of a job.
#[derive(Debug)]
pub struct PacketEngine {
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) config: Config,
    pub(crate) transport: Arc<dyn Transport>,
    pub(super) source: Arc<dyn SlabSource>,
    core: Mutex<Core>,
    /// Signals that polling threads and other ranks read without the lock.
    pub(super) signals: Signals,
    /// The number of packets in the outbox.
    pub(super) queued_count: QueuedCount,
    /// The credit of this rank at the others.
    pub(super) send_credit: SendCredit,
    pub(super) contexts: Mutex<ContextAllocator>,
    /// State of the end that threads read without the lock.
    pub(super) end_flags: EndFlags,
    /// Count of empty tests and probes.
    pub(super) empty_polls: plain::AtomicU32,
    pub(super) oversubscription: Oversubscription,
    /// Whether short messages are taken one by one from the queue of their source.
    pub(super) takes_short: bool,
    /// Whether messages are copied, by rank; empty where none are.
    remote: Box<[bool]>,
    /// Batches of packets per poll: more packets than all queues hold.
    pub(super) batches: usize,
    /// The other ranks of this process, whose progress this one may drive while it waits.
    process_ranks: OnceLock<Vec<Weak<PacketEngine>>>,
    /// The progress threads of this rank.
    pub(super) progress_threads: ProgressThreads,
}

impl PacketEngine {
    /// A rank on this transport. Its messages take memory from `source`.
    ///
    /// # Panics
    /// The rank is above 2³⁰−1.
    pub fn new(
        rank: u32,
        size: u32,
        config: Config,
        (transport, packet_source): (Arc<dyn Transport>, Box<dyn PacketSource>),
        source: Arc<dyn SlabSource>,
    ) -> Self {
        let state = State {
            recv_queue: RecvQueue::default(),
            requests: Requests::default(),
            kept_slabs: KeptSlabs::default(),
            outbox: Outbox::new(size),
            pairs: Pairs::new(config.tag_ub),
            credit: CreditTable::new(size, config.credit),
            waiters: Waiters::default(),
            had_packing: false,
            seen_epoch: transport.epoch(),
            short_count: 0,
            polls: 0,
            end: RankEnd::new(rank),
        };
        PacketEngine {
            rank,
            size,
            remote: match (0..size).any(|peer| transport.is_remote(peer)) {
                true => (0..size).map(|peer| transport.is_remote(peer)).collect(),
                false => Box::default(),
            },
            transport,
            source,
            takes_short: packet_source.takes_short(),
            core: Mutex::new(LockRank::Engine, Core { packet_source, state }),
            signals: Signals::default(),
            queued_count: QueuedCount::default(),
            send_credit: SendCredit::new(size, config.credit),
            contexts: Mutex::new(
                LockRank::Leaf,
                ContextAllocator::new(rank).expect("ranks are counted in 30 bits"),
            ),
            end_flags: EndFlags::default(),
            empty_polls: plain::AtomicU32::new(0),
            oversubscription: Oversubscription::new(),
            batches: 2 + config.queue_cells.max(size as usize * QUEUE_PACKETS) / BATCH,
            process_ranks: OnceLock::new(),
            progress_threads: ProgressThreads::default(),
            config,
        }
    }

    /// Sets the other ranks of this process, whose progress this one may drive while it waits.
    pub fn set_process_ranks(&self, ranks: Vec<Weak<PacketEngine>>) {
        let _ = self.process_ranks.set(ranks);
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
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The other ranks of this process that still exist.
    pub(super) fn process_ranks(&self) -> impl Iterator<Item = Arc<PacketEngine>> {
        self.process_ranks.get().into_iter().flatten().filter_map(Weak::upgrade)
    }

    /// Whether messages to and from some rank are copied.
    #[inline(always)]
    pub(super) fn has_remote(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Whether messages to and from a rank are copied, so that they use its memory before they are matched.
    #[inline(always)]
    pub(crate) fn is_remote(&self, peer: u32) -> bool {
        self.has_remote() && self.remote[peer as usize]
    }

    /// Whether messages to and from all these ranks stay on this machine.
    pub(crate) fn are_local(&self, ranks: &[u32]) -> bool {
        !self.has_remote() || !ranks.iter().any(|rank| self.remote[*rank as usize])
    }

    /// The number of a rank's site, the same at all ranks.
    pub(crate) fn site_of(&self, rank: u32) -> u32 {
        self.transport.site_of(rank)
    }

    /// Whether messages to and from a rank are physical ones, and a split message is two of them.
    #[inline(always)]
    pub(crate) fn is_physical(&self, peer: u32) -> bool {
        self.config.message_oriented || self.is_remote(peer)
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// The state, unless a thread holds the lock.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Core>> {
        self.core.try_lock()
    }
}
