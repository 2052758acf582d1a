//! Packet engine of one rank: its state, its requests and its blocking receives.
//!
//! One lock guards the state that operations and progress share. It is held for short stretches only: never
//! during a wait, and never while this thread blocks on another rank's lock. A waiting thread drives the
//! progress.

#[cfg(all(test, not(loom)))]
mod tests;

// State that no thread waits on stays with `std`, which spares the model checker its interleavings.
use std::sync::atomic as plain;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::Posted;
use mpjdev_proto::send_policy::Pairs;
use mpjdev_sys::sync::{Mutex, MutexGuard};
use mpjdev_transport::config::{Config, QUEUE_PACKETS};
use mpjdev_transport::wait::{Backoff, Oversubscription, Uninterruptible, WaitControl, deadline_after};
use mpjdev_transport::{PacketSource, Transport};
use tracing::debug;

use crate::error::DeviceError;
use crate::packet::credit::{CreditTable, SendCredit};
use crate::packet::fast_recv::FastRecv;
use crate::packet::outbox::{Outbox, QueuedCount};
use crate::packet::progress::BATCH;
use crate::packet::progress_threads::ProgressThreads;
use crate::packet::rank_end::{EndFlags, RankEnd};
use crate::packet::recv_queue::RecvQueue;
use crate::packet::requests::{Receive, Requests, Work};
use crate::packet::waiters::{Signals, Waiters};
use crate::request::{Completed, RequestId};

/// Time that an interrupted receive still waits for the second half of its message.
const SECOND_HALF_PATIENCE: Duration = Duration::from_secs(1);

/// Receives and messages up to which each one is checked.
const CHECKED_MAX: usize = 64;

/// The arguments of a posted receive.
#[derive(Clone, Debug)]
pub struct ReceiveArgs {
    /// The envelope pattern; the source is numbered in the world.
    pub selector: Selector,
    /// Octets of primary payload that the receiver has room for.
    pub capacity: usize,
    /// Memory that nobody else refers to, for a copy of a small message.
    pub spare: Option<Slab>,
    /// World ranks of the communicator for a receive from any source: it fails when no other member is left.
    pub members: Option<Arc<[u32]>>,
}

/// All state under the lock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) packet_source: Box<dyn PacketSource>,
    pub(crate) state: State,
}

/// All state under the lock except the inbox, which is polled while this changes.
#[derive(Debug)]
pub(crate) struct State {
    /// Receives and messages that wait for each other.
    pub(crate) recv_queue: RecvQueue,
    pub(crate) requests: Requests,
    pub(crate) outbox: Outbox,
    pub(crate) pairs: Pairs,
    /// The credit of the other ranks here, and this rank's sends past the credit.
    pub(crate) credit: CreditTable,
    /// The parked threads.
    pub(crate) waiters: Waiters,
    pub(crate) seen_epoch: u32,
    /// The end of this rank.
    pub(crate) end: RankEnd,
}

impl State {
    /// Panics when an invariant of a part does not hold. Takes a bounded time for each rank.
    pub(crate) fn check(&self, queued_count: &QueuedCount, end_flags: &EndFlags) {
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
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) config: Config,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) source: Arc<dyn SlabSource>,
    pub(crate) core: Mutex<Core>,
    /// Signals that polling threads and neighbours read without the lock.
    pub(crate) signals: Signals,
    /// The number of packets in the outbox.
    pub(crate) queued_count: QueuedCount,
    /// The credit of this rank at the others.
    pub(crate) send_credit: SendCredit,
    pub(crate) contexts: Mutex<ContextAllocator>,
    /// State of the end that threads read without the lock.
    pub(crate) end_flags: EndFlags,
    /// Count of empty tests and probes.
    pub(crate) empty_polls: plain::AtomicU32,
    pub(crate) oversubscription: Oversubscription,
    /// Whether messages are copied, by rank; empty where none are.
    pub(crate) remote: Box<[bool]>,
    /// Batches of packets per poll: more packets than all queues hold.
    pub(crate) batches: usize,
    /// The other ranks of this process, whose progress this one may drive while it waits.
    pub(crate) neighbours: OnceLock<Vec<Weak<PacketEngine>>>,
    /// The progress threads of this rank.
    pub(crate) progress_threads: ProgressThreads,
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
            outbox: Outbox::new(size),
            pairs: Pairs::new(config.tag_ub),
            credit: CreditTable::new(size, config.credit),
            waiters: Waiters::default(),
            seen_epoch: transport.epoch(),
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
            core: Mutex::new(Core { packet_source, state }),
            signals: Signals::default(),
            queued_count: QueuedCount::default(),
            send_credit: SendCredit::new(size, config.credit),
            contexts: Mutex::new(ContextAllocator::new(rank).expect("ranks are counted in 30 bits")),
            end_flags: EndFlags::default(),
            empty_polls: plain::AtomicU32::new(0),
            oversubscription: Oversubscription::new(),
            batches: 2 + config.queue_cells.max(size as usize * QUEUE_PACKETS) / BATCH,
            neighbours: OnceLock::new(),
            progress_threads: ProgressThreads::default(),
            config,
        }
    }

    /// Sets the other ranks of this process, whose progress this one may drive while it waits.
    pub fn set_neighbours(&self, neighbours: Vec<Weak<PacketEngine>>) {
        let _ = self.neighbours.set(neighbours);
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

    /// Whether messages to and from a rank are copied, so that they use its memory before they are matched.
    #[inline(always)]
    pub(crate) fn is_remote(&self, peer: u32) -> bool {
        !self.remote.is_empty() && self.remote[peer as usize]
    }

    /// Whether messages to and from a rank are physical ones, and a split message is two of them.
    #[inline(always)]
    pub(crate) fn is_physical(&self, peer: u32) -> bool {
        self.config.message_oriented || self.is_remote(peer)
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- Receiving

    /// Posts a receive.
    ///
    /// # Errors
    /// This rank has finished or has freed the communicator; the job has failed.
    pub fn start_receive(&self, args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        let source = args.selector.source;
        let mut core = self.lock();
        let id = self.start_receive_locked(&mut core, args)?;
        self.wake_progress_thread_for(&mut core, id, source);
        Ok(id)
    }

    /// Wakes the progress thread for a pending receive, since the program may compute from now on. Ranks that
    /// share memory need none.
    #[inline]
    pub(crate) fn wake_progress_thread_for(&self, core: &mut Core, id: RequestId, source: Option<u32>) {
        if !self.remote.is_empty()
            && source.is_none_or(|source| self.is_remote(source))
            && core.state.requests.get(id).is_some_and(|request| request.outcome.is_none())
        {
            self.transport.kick_progress_thread(self.rank);
        }
    }

    /// Whether requests are pending or packets are queued; true also while a thread of the program has the
    /// lock.
    #[cfg(not(loom))]
    pub(crate) fn has_pending(&self) -> bool {
        self.queued_count.get() > 0
            || self.core.try_lock().map_or(true, |core| core.state.requests.has_pending())
    }

    fn start_receive_locked(&self, core: &mut Core, args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        self.check_self(&core.state)?;
        self.check_kept(&core.state, args.selector.context)?;
        Ok(self.begin_receive_locked(core, args))
    }

    /// [`start_receive`](Self::start_receive) without its checks: this rank may have begun to finish.
    pub(crate) fn begin_receive(&self, args: ReceiveArgs) -> RequestId {
        self.begin_receive_locked(&mut self.lock(), args)
    }

    fn begin_receive_locked(&self, core: &mut Core, args: ReceiveArgs) -> RequestId {
        self.progress(core);
        let selector = args.selector;
        let id = self.post(&mut core.state, args);
        self.fail_ended_receive(core, id, selector);
        id
    }

    /// Fails a receive whose source had ended before the receive was posted: the source of its message or,
    /// after its first half, that of the second.
    pub(crate) fn fail_ended_receive(&self, core: &mut Core, id: RequestId, selector: Selector) {
        if self.transport.epoch() == 0 {
            return;
        }
        let selector = core.state.recv_queue.partial(id).unwrap_or(selector);
        if let Some(Work::Receive(receive)) = core.state.requests.get(id).map(|r| &r.work)
            && let Some(error) = self.unsatisfiable_receive(&selector, receive.members())
        {
            self.fail_requests(core, vec![(id, error)]);
        }
    }

    fn post(&self, state: &mut State, args: ReceiveArgs) -> RequestId {
        let ReceiveArgs { selector, capacity, spare, members } = args;
        let receive = Receive { capacity, post: None, spare, members };
        let id = state.requests.add(Work::Receive(receive));
        match state.recv_queue.post(selector, id) {
            Posted::Matched { envelope, message, .. } => {
                self.deliver_unexpected(state, id, envelope, *message);
            }
            Posted::Waiting(post) => {
                if let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &mut r.work) {
                    receive.post = Some(post);
                }
            }
        }
        id
    }

    /// Receives a message that the [fast path](Self::try_recv_spinning) has not taken.
    ///
    /// # Errors
    /// The receive failed; interrupted: the receive is withdrawn then, unless its message has arrived, which
    /// is returned.
    pub fn recv_posted(
        &self,
        fast: &FastRecv,
        args: ReceiveArgs,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        let backoff = match fast {
            FastRecv::Empty => Backoff::after_pauses(&self.config),
            _ => Backoff::new(&self.config),
        };
        self.recv_posted_with(args, backoff, wait_control)
    }

    fn recv_posted_with(
        &self,
        args: ReceiveArgs,
        backoff: Backoff,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        let (id, there) = self.post_and_poll(args)?;
        let completed = match there {
            Some(outcome) => outcome?,
            None => self.await_receive(id, backoff, wait_control)?,
        };
        match (completed.envelope, completed.message) {
            (Some(envelope), Some(message)) => Ok((envelope, message)),
            _ => Err(DeviceError::NoSuchRequest),
        }
    }

    /// Posts a receive and takes its outcome at once if its message has arrived.
    fn post_and_poll(
        &self,
        args: ReceiveArgs,
    ) -> Result<(RequestId, Option<Result<Completed, DeviceError>>), DeviceError> {
        let mut core = self.lock();
        let id = self.start_receive_locked(&mut core, args)?;
        let there = core.state.requests.take_outcome(id)?;
        Ok((id, there))
    }

    fn await_receive(
        &self,
        id: RequestId,
        backoff: Backoff,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError> {
        let done =
            self.block(&[id], None, backoff, wait_control, |core| core.state.requests.take_outcome(id));
        match done.and_then(|done| done) {
            Err(DeviceError::Interrupted) if self.cancel(id)? => {
                let _ = self.test(id);
                Err(DeviceError::Interrupted)
            }
            // The message is matched, so it cannot be withdrawn: it has arrived, or its second half is in
            // flight. If the second half does not arrive in time, it is consumed later and the message is
            // lost.
            Err(DeviceError::Interrupted) => {
                match self.wait(id, deadline_after(SECOND_HALF_PATIENCE), &mut Uninterruptible) {
                    Err(DeviceError::TimedOut { .. }) => {
                        self.detach(id);
                        Err(DeviceError::Interrupted)
                    }
                    other => other,
                }
            }
            other => other,
        }
    }

    // ---- Requests

    /// The outcome of a request if it is complete; the request is removed then.
    ///
    /// # Errors
    /// Those of the operation; no such request.
    pub fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError> {
        let mut core = self.lock();
        self.progress(&mut core);
        self.fail_orphaned(&mut core, &[id]);
        let outcome = core.state.requests.take_outcome(id)?;
        drop(core);
        if outcome.is_none() {
            self.note_empty_poll();
        }
        outcome.transpose()
    }

    /// Whether a request is complete. A complete request stays complete.
    pub fn is_done(&self, id: RequestId) -> bool {
        let mut core = self.lock();
        self.progress(&mut core);
        self.fail_orphaned(&mut core, &[id]);
        let done = core.state.requests.get(id).is_none_or(|r| r.outcome.is_some());
        drop(core);
        if !done {
            self.note_empty_poll();
        }
        done
    }

    /// Waits for a request, until the deadline if there is one.
    ///
    /// # Errors
    /// Those of the operation; timed out or interrupted: the request is still pending then.
    pub fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError> {
        self.block(&[id], deadline, Backoff::new(&self.config), wait_control, |core| {
            core.state.requests.take_outcome(id)
        })?
    }

    /// Waits until one of the requests is complete and returns its index. [`test`](Self::test) takes its
    /// outcome.
    ///
    /// # Errors
    /// Timed out or interrupted.
    pub fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        self.block(ids, deadline, Backoff::new(&self.config), wait_control, |core| {
            let done = |id: &RequestId| core.state.requests.get(*id).is_none_or(|r| r.outcome.is_some());
            Ok(ids.iter().position(done))
        })
    }

    /// Cancels a request. True when it will never be matched, which is certain for a receive without a
    /// message and for a send that is still queued.
    ///
    /// # Errors
    /// No such request.
    pub fn cancel(&self, id: RequestId) -> Result<bool, DeviceError> {
        let mut core = self.lock();
        self.progress(&mut core);
        let state = &mut core.state;
        let request = state.requests.get(id).ok_or(DeviceError::NoSuchRequest)?;
        if request.outcome.is_some() {
            return Ok(false);
        }
        let withdrawn = match &mut request.work {
            Work::Receive(receive) => receive.post.take().is_some_and(|post| state.recv_queue.withdraw(post)),
            Work::Send { dest, .. } => {
                let dest = *dest;
                self.unqueue(state, id, dest)
            }
        };
        if withdrawn {
            debug!(target: "mpjdev::rank", rank = self.rank, "request is cancelled");
            self.complete(state, id, Err(DeviceError::Cancelled));
        }
        Ok(withdrawn)
    }

    /// Gives up a request (MPI_Request_free): its operation continues, and its outcome is dropped.
    pub fn detach(&self, id: RequestId) {
        self.lock().state.requests.detach(id);
    }

    /// Stores an outcome and wakes the threads that wait for it.
    pub(crate) fn complete(&self, state: &mut State, id: RequestId, outcome: Result<Completed, DeviceError>) {
        if let Some(Work::Send { dest, pair, charged, .. }) = state.requests.get(id).map(|r| &r.work) {
            pair.map(|number| state.pairs.close(number));
            if *charged > 0 {
                self.send_credit.uncharge(*dest, *charged);
            }
        }
        let waiters = state.requests.complete(id, outcome);
        state.waiters.note_change(&self.signals);
        if state.waiters.signal(waiters) {
            self.transport.wake();
        }
        self.note_left(state);
    }

    /// Notifies probing threads of an unexpected message.
    pub(crate) fn note_unexpected(&self, state: &mut State) {
        state.waiters.note_change(&self.signals);
        self.wake_observers(state);
    }

    /// Notifies a thread that finishes the rank of a completed or sent packet: it waits for no single
    /// request.
    pub(crate) fn note_left(&self, state: &mut State) {
        if state.end.has_begun() {
            self.wake_observers(state);
        }
    }

    fn wake_observers(&self, state: &mut State) {
        if state.waiters.signal_observers() {
            self.transport.wake();
        }
    }
}
