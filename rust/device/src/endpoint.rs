//! One rank: its operations, its progress, its sleep.
//!
//! State that operations and progress share is under one lock, held for short stretches only: never while waiting,
//! never while another rank's lock is taken by force. Whoever waits drives the progress.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::Matcher;
use mpjdev_proto::send_policy::Pairs;

use crate::config::Config;
use crate::error::DeviceError;
use crate::outbox::Outbox;
use crate::requests::{Completed, Receive, RequestId, Requests, Work};
use crate::transport::{Inbox, Wire};
use crate::unexpected::Unexpected;
use crate::waiting::{Backoff, Patience, Step, Waiter};

/// Packets that are taken in before the lock is let go.
const BATCH: usize = 256;

/// How a send counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When the message has left, or credit has run out and it is matched (MPI standard mode).
    Standard,
    /// When the message is matched (MPI synchronous mode).
    Synchronous,
}

/// A receive to be posted.
#[derive(Clone, Debug)]
pub struct ReceiveArgs {
    /// What is asked for; the source is numbered in the world.
    pub selector: Selector,
    /// Octets of primary payload that there is room for.
    pub capacity: usize,
    /// Memory that nobody else refers to and a small message may be copied to.
    pub spare: Option<Slab>,
    /// World ranks of the communicator.
    pub members: Arc<[u32]>,
}

/// Everything under the lock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) inbox: Box<dyn Inbox>,
    pub(crate) state: State,
}

/// Everything under the lock but the inbox, which is read while this changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) matcher: Matcher<RequestId, Box<Unexpected>>,
    /// Receives whose first half is there: the envelope their second half must have.
    pub(crate) halves: Vec<crate::pairing::Half>,
    pub(crate) requests: Requests,
    pub(crate) outbox: Outbox,
    pub(crate) pairs: Pairs,
    /// Octets matched by source: all of them, and those that the source was told of.
    pub(crate) matched: Vec<(u64, u64)>,
    /// The thread that sleeps on the transport, and those that sleep on their own.
    driver: Option<Arc<Waiter>>,
    parked: Vec<Arc<Waiter>>,
    /// Those of them that wait for a message that no receive has been posted for.
    observers: Vec<Arc<Waiter>>,
    pub(crate) seen_epoch: u32,
    pub(crate) finished: bool,
}

/// One rank of a job.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) config: Config,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) source: Arc<dyn SlabSource>,
    core: Mutex<Core>,
    /// Requests done and unexpected messages come so far: what a polling thread looks at without the lock.
    changes: AtomicU64,
    /// Packets in the outbox.
    pub(crate) queued_count: AtomicUsize,
    /// Octets sent by destination, against the credit.
    pub(crate) sent: Box<[AtomicU64]>,
    pub(crate) contexts: Mutex<ContextAllocator>,
    /// The other ranks of this process, whose progress this one may drive while it waits.
    neighbours: OnceLock<Vec<Weak<Endpoint>>>,
}

impl Endpoint {
    /// A rank on this transport. Its messages take memory from `source`.
    ///
    /// # Panics
    /// When the rank is above 2³⁰−1.
    pub fn new(
        rank: u32,
        size: u32,
        config: Config,
        (wire, inbox): (Box<dyn Wire>, Box<dyn Inbox>),
        source: Arc<dyn SlabSource>,
    ) -> Self {
        let state = State {
            matcher: Matcher::new(),
            halves: Vec::new(),
            requests: Requests::default(),
            outbox: Outbox::new(size),
            pairs: Pairs::new(config.tag_ub),
            matched: vec![(0, 0); size as usize],
            driver: None,
            parked: Vec::new(),
            observers: Vec::new(),
            seen_epoch: wire.epoch(),
            finished: false,
        };
        Endpoint {
            rank,
            size,
            wire,
            source,
            core: Mutex::new(Core { inbox, state }),
            changes: AtomicU64::new(0),
            queued_count: AtomicUsize::new(0),
            sent: (0..size).map(|_| AtomicU64::new(0)).collect(),
            contexts: Mutex::new(ContextAllocator::new(rank).expect("ranks are counted in 30 bits")),
            neighbours: OnceLock::new(),
            config,
        }
    }

    pub(crate) fn set_neighbours(&self, neighbours: Vec<Weak<Endpoint>>) {
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

    /// The tunables.
    pub fn config(&self) -> &Config {
        &self.config
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- Receiving

    /// Posts a receive.
    ///
    /// # Errors
    /// This rank has finished, or the job has failed.
    pub fn start_receive(&self, args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        self.start_receive_locked(&mut self.lock(), args)
    }

    fn start_receive_locked(&self, core: &mut Core, args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        self.check_self(&core.state)?;
        self.progress(core);
        let id = self.post(&mut core.state, args);
        // The source may have been gone before this was posted.
        if self.wire.epoch() != 0 {
            self.fail_hopeless(&mut core.state);
        }
        Ok(id)
    }

    fn post(&self, state: &mut State, args: ReceiveArgs) -> RequestId {
        let ReceiveArgs { selector, capacity, spare, members } = args;
        let receive = Receive { capacity, post: None, spare, members };
        let id = state.requests.add(Work::Receive(receive));
        match state.matcher.post(selector, id) {
            mpjdev_proto::matching::Posted::Matched { envelope, message, .. } => {
                self.deliver_unexpected(state, id, envelope, *message);
            }
            mpjdev_proto::matching::Posted::Waiting(post) => {
                if let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &mut r.work) {
                    receive.post = Some(post);
                }
            }
        }
        id
    }

    /// Receives a message.
    ///
    /// # Errors
    /// The receive failed; interrupted: then it is withdrawn, unless its message is there, which is then given.
    pub fn receive(
        &self,
        args: ReceiveArgs,
        patience: &mut dyn Patience,
    ) -> Result<(Envelope, Message), DeviceError> {
        let (id, there) = self.post_and_look(args)?;
        let completed = match there {
            Some(outcome) => outcome?,
            None => self.await_receive(id, patience)?,
        };
        match (completed.envelope, completed.message) {
            (Some(envelope), Some(message)) => Ok((envelope, message)),
            _ => Err(DeviceError::NoSuchRequest),
        }
    }

    /// Posts a receive and takes its outcome at once if its message is there.
    fn post_and_look(
        &self,
        args: ReceiveArgs,
    ) -> Result<(RequestId, Option<Result<Completed, DeviceError>>), DeviceError> {
        let mut core = self.lock();
        let id = self.start_receive_locked(&mut core, args)?;
        let there = core.state.requests.take_outcome(id)?;
        Ok((id, there))
    }

    fn await_receive(&self, id: RequestId, patience: &mut dyn Patience) -> Result<Completed, DeviceError> {
        match self.wait(id, None, patience) {
            Err(DeviceError::Interrupted) if self.cancel(id)? => {
                let _ = self.test(id);
                Err(DeviceError::Interrupted)
            }
            // Too late to withdraw: the message is there or about to be.
            Err(DeviceError::Interrupted) => self.wait(id, None, &mut crate::waiting::Patient),
            other => other,
        }
    }

    /// Looks for a message without receiving it (MPI_Iprobe): its envelope, and the capacity it needs.
    ///
    /// # Errors
    /// This rank has finished, the job has failed, or nobody is left who could send such a message.
    pub fn probe_now(
        &self,
        selector: &Selector,
        members: &[u32],
    ) -> Result<Option<(Envelope, usize)>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
        self.peek(&core.state, selector, members)
    }

    fn peek(
        &self,
        state: &State,
        selector: &Selector,
        members: &[u32],
    ) -> Result<Option<(Envelope, usize)>, DeviceError> {
        if let Some((envelope, message)) = state.matcher.probe(selector) {
            return Ok(Some((envelope, message.needs_capacity())));
        }
        match self.hopeless(selector, members) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Waits for a message without receiving it (MPI_Probe).
    ///
    /// # Errors
    /// As for [`probe_now`](Self::probe_now); interrupted.
    pub fn probe(
        &self,
        selector: &Selector,
        members: &[u32],
        patience: &mut dyn Patience,
    ) -> Result<(Envelope, usize), DeviceError> {
        self.block(&[], None, patience, |core| {
            self.check_self(&core.state)?;
            self.peek(&core.state, selector, members)
        })
    }

    /// Takes a message out of matching (MPI_Improbe): no other receive gets it.
    ///
    /// # Errors
    /// As for [`probe_now`](Self::probe_now).
    pub fn take_matched(
        &self,
        selector: &Selector,
        members: &[u32],
    ) -> Result<Option<crate::unexpected::MatchedMessage>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
        match core.state.matcher.take(selector) {
            Some((envelope, message)) => Ok(Some(crate::unexpected::MatchedMessage { envelope, message })),
            None => self.peek(&core.state, selector, members).map(|_| None),
        }
    }

    /// Receives a message that was taken out of matching (MPI_Imrecv).
    pub fn start_matched_receive(
        &self,
        matched: crate::unexpected::MatchedMessage,
        capacity: usize,
    ) -> RequestId {
        let mut core = self.lock();
        let members: Arc<[u32]> = Arc::from([matched.envelope.source]);
        let receive = Receive { capacity, post: None, spare: None, members };
        let id = core.state.requests.add(Work::Receive(receive));
        self.deliver_unexpected(&mut core.state, id, matched.envelope, *matched.message);
        id
    }

    // ---- Requests

    /// The outcome of a request if it is done; the request is gone then.
    ///
    /// # Errors
    /// Those of the operation; no such request.
    pub fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError> {
        let mut core = self.lock();
        self.progress(&mut core);
        core.state.requests.take_outcome(id)?.transpose()
    }

    /// Whether a request is done, which it stays.
    pub fn is_done(&self, id: RequestId) -> bool {
        let mut core = self.lock();
        self.progress(&mut core);
        core.state.requests.get(id).is_none_or(|r| r.outcome.is_some())
    }

    /// Waits for a request, until the deadline if there is one.
    ///
    /// # Errors
    /// Those of the operation; timed out or interrupted: the request is still pending then.
    pub fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        patience: &mut dyn Patience,
    ) -> Result<Completed, DeviceError> {
        self.block(&[id], deadline, patience, |core| core.state.requests.take_outcome(id))?
    }

    /// Waits until one of the requests is done and gives its place; its outcome is for [`test`](Self::test) to take.
    ///
    /// # Errors
    /// Timed out or interrupted.
    pub fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        patience: &mut dyn Patience,
    ) -> Result<usize, DeviceError> {
        self.block(ids, deadline, patience, |core| {
            let done = |id: &RequestId| core.state.requests.get(*id).is_none_or(|r| r.outcome.is_some());
            Ok(ids.iter().position(done))
        })
    }

    /// Cancels a request: true when it will never be matched, which is certain for a receive that has no message
    /// yet, and for a send that has not left.
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
            Work::Receive(receive) => {
                receive.post.take().and_then(|post| state.matcher.withdraw(post)).is_some()
            }
            Work::Send { dest, .. } => {
                let dest = *dest;
                self.unqueue(state, id, dest)
            }
        };
        if withdrawn {
            self.complete(state, id, Err(DeviceError::Cancelled));
        }
        Ok(withdrawn)
    }

    /// Nobody will wait for this request (MPI_Request_free): it goes on, and its outcome is dropped.
    pub fn detach(&self, id: RequestId) {
        self.lock().state.requests.detach(id);
    }

    /// Notes an outcome and wakes who waits for it.
    pub(crate) fn complete(&self, state: &mut State, id: RequestId, outcome: Result<Completed, DeviceError>) {
        if let Some(Work::Send { pair: Some(number), .. }) = state.requests.get(id).map(|r| &r.work) {
            state.pairs.close(*number);
        }
        let waiter = state.requests.complete(id, outcome);
        self.note_change();
        if let Some(waiter) = waiter {
            self.wake(state, &waiter);
        }
    }

    /// Tells polling threads that there is something to look at.
    fn note_change(&self) {
        // Only ever written under the lock, so no read-modify-write is needed.
        self.changes.store(self.changes.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Wakes a thread that sleeps, wherever it does.
    fn wake(&self, state: &State, waiter: &Arc<Waiter>) {
        waiter.signal();
        if state.driver.as_ref().is_some_and(|d| Arc::ptr_eq(d, waiter)) {
            self.wire.ring();
        }
    }

    /// Tells threads that probe about a message that nobody has asked for.
    pub(crate) fn note_unexpected(&self, state: &mut State) {
        self.note_change();
        for waiter in std::mem::take(&mut state.observers) {
            self.wake(state, &waiter);
        }
    }

    // ---- Progress and waiting

    /// Takes in what has arrived, sends what waits, notices who is gone.
    pub(crate) fn progress(&self, core: &mut Core) {
        let epoch = self.wire.epoch();
        let Core { inbox, state } = core;
        while inbox.receive(BATCH, &mut |source, header, body| self.arrive(state, source, header, body))
            == BATCH
        {}
        if !state.outbox.is_empty() {
            self.flush(state);
        }
        // The epoch was read first: whatever the gone ones had sent has been taken in.
        if epoch != state.seen_epoch {
            state.seen_epoch = epoch;
            self.fail_hopeless(state);
        }
    }

    /// Drives this rank's progress for another one that waits, unless its own threads do.
    fn help(&self) {
        if (self.wire.is_ready() || self.queued_count.load(Ordering::Acquire) > 0)
            && let Ok(mut core) = self.core.try_lock()
        {
            self.progress(&mut core);
        }
    }

    /// Waits until `ready` gives something. `ids` are the requests whose completion may make it so.
    pub(crate) fn block<R>(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        patience: &mut dyn Patience,
        mut ready: impl FnMut(&mut Core) -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        let mut backoff = Backoff::new(&self.config);
        let begun = deadline.map(|_| Instant::now());
        loop {
            let seen = self.changes.load(Ordering::Acquire);
            {
                let mut core = self.lock();
                self.progress(&mut core);
                let result = ready(&mut core);
                if !matches!(result, Ok(None)) {
                    self.pass_on(&mut core.state);
                    return result.map(|r| r.expect("not none"));
                }
            }
            while !self.wire.is_ready() && self.changes.load(Ordering::Acquire) == seen {
                match backoff.step() {
                    Step::Pause => std::hint::spin_loop(),
                    Step::Yield => std::thread::yield_now(),
                    Step::Sleep => {
                        let left = self.time_left(begun, deadline)?;
                        if !patience.goes_on() {
                            self.pass_on(&mut self.lock().state);
                            return Err(DeviceError::Interrupted);
                        }
                        self.help_neighbours();
                        self.sleep(ids, seen, left);
                        break;
                    }
                }
            }
        }
    }

    fn time_left(&self, begun: Option<Instant>, deadline: Option<Instant>) -> Result<Duration, DeviceError> {
        let Some(deadline) = deadline else { return Ok(self.config.slice) };
        let now = Instant::now();
        if now < deadline {
            return Ok((deadline - now).min(self.config.slice));
        }
        self.pass_on(&mut self.lock().state);
        Err(DeviceError::TimedOut { after: begun.map_or(Duration::ZERO, |b| now - b) })
    }

    fn help_neighbours(&self) {
        for neighbour in self.neighbours.get().into_iter().flatten() {
            if let Some(neighbour) = neighbour.upgrade() {
                neighbour.help();
            }
        }
    }

    /// Sleeps until something happens: on the transport if no other thread does, else on this thread's own.
    fn sleep(&self, ids: &[RequestId], seen: u64, most: Duration) {
        let waiter = Waiter::mine();
        waiter.reset();
        let mut core = self.lock();
        if self.changes.load(Ordering::Acquire) != seen || self.wire.is_ready() {
            return;
        }
        for id in ids {
            if let Some(request) = core.state.requests.get(*id) {
                request.waiter = Some(waiter.clone());
            }
        }
        if ids.is_empty() {
            core.state.observers.push(waiter.clone());
        }
        let drives = core.state.driver.is_none();
        if drives {
            core.state.driver = Some(waiter.clone());
            drop(core);
            let mut ready = || self.wire.is_ready() || waiter.is_signalled();
            self.wire.sleep(most, &mut ready);
        } else {
            core.state.parked.push(waiter.clone());
            drop(core);
            waiter.sleep(most);
        }
        let mut core = self.lock();
        if drives {
            core.state.driver = None;
        } else {
            core.state.parked.retain(|w| !Arc::ptr_eq(w, &waiter));
        }
        core.state.observers.retain(|w| !Arc::ptr_eq(w, &waiter));
        for id in ids {
            if let Some(request) = core.state.requests.get(*id) {
                request.waiter = None;
            }
        }
    }

    /// A thread that stops waiting leaves the driving to one that sleeps.
    #[inline]
    fn pass_on(&self, state: &mut State) {
        if state.driver.is_none()
            && let Some(next) = state.parked.last()
        {
            next.signal();
        }
    }
}
