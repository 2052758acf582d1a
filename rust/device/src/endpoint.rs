//! One rank: its operations, its progress, its sleep.
//!
//! State that operations and progress share is under one lock, held for short stretches only: never while waiting,
//! never while another rank's lock is taken by force. Whoever waits drives the progress.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::Matcher;
use mpjdev_proto::send_policy::Pairs;

use crate::config::{CREDIT_OVERHEAD, Config};
use crate::error::DeviceError;
use crate::requests::{Completed, Receive, RequestId, Requests, Work};
use crate::transport::{Header, Inbox, Kind, Outgoing, Payload, PeerState, Wire};
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

/// A packet that found no room, or has to wait for those before it.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) dest: u32,
    pub(crate) header: Header,
    pub(crate) payload: Option<Payload>,
    /// The request that is done when the packet has left; synchronous ones are done later.
    pub(crate) request: Option<RequestId>,
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
    pub(crate) queued: VecDeque<Queued>,
    pub(crate) pairs: Pairs,
    /// Octets matched by source: all of them, and those that the source was told of.
    pub(crate) matched: Vec<(u64, u64)>,
    /// The thread that sleeps on the transport, and those that sleep on their own.
    driver: Option<Arc<Waiter>>,
    parked: Vec<Arc<Waiter>>,
    /// Those of them that wait for a message that no receive has been posted for.
    observers: Vec<Arc<Waiter>>,
    seen_epoch: u32,
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
    /// Packets in `queued`.
    queued_count: AtomicUsize,
    /// Octets sent by destination, against the credit.
    sent: Box<[AtomicU64]>,
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
            queued: VecDeque::new(),
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

    // ---- Sending

    /// Sends a message and waits until that counts as done.
    ///
    /// # Errors
    /// The peer or this rank has failed or finished; interrupted: then the message may still arrive.
    pub fn send(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
        patience: &mut dyn Patience,
    ) -> Result<(), DeviceError> {
        match self.start_send(dest, context, tag, message, mode)? {
            None => Ok(()),
            Some(id) => match self.wait(id, None, patience) {
                Ok(_) => Ok(()),
                Err(error) => {
                    self.lock().state.requests.detach(id);
                    Err(error)
                }
            },
        }
    }

    /// Starts to send a message; none when that is done already.
    ///
    /// # Errors
    /// The peer or this rank has failed or finished.
    #[inline]
    pub fn start_send(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        if self.wire.epoch() != 0 {
            self.check_peer(dest)?;
        }
        if self.config.message_oriented {
            return self.start_physical(dest, context, tag, message, mode);
        }
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        if mode == Mode::Standard && self.take_credit(dest, message.logical_len()) {
            // Straight to the transport, unless packets wait that must not be overtaken.
            if self.queued_count.load(Ordering::Acquire) == 0
                && self.wire.try_send(dest, header, Outgoing::Message(message))
            {
                return Ok(None);
            }
            return Ok(self.queue(dest, header, Payload::Whole(message.clone()), false));
        }
        Ok(self.queue(dest, header, Payload::Whole(message.clone()), true))
    }

    /// Counts a message against the credit for its destination; false when that is used up.
    #[inline]
    pub(crate) fn take_credit(&self, dest: u32, len: usize) -> bool {
        let len = len as u64 + CREDIT_OVERHEAD;
        let sent = &self.sent[dest as usize];
        let before = sent.fetch_add(len, Ordering::Relaxed);
        // `matched_by` is asked for only when it matters: it is a line of the receiver's.
        if before + len <= self.config.credit
            || (before + len).saturating_sub(self.wire.matched_by(dest)) <= self.config.credit
        {
            return true;
        }
        sent.fetch_sub(len, Ordering::Relaxed);
        false
    }

    /// A message that counted against the credit has not left and never will.
    fn give_credit_back(&self, dest: u32, len: usize) {
        self.sent[dest as usize].fetch_sub(len as u64 + CREDIT_OVERHEAD, Ordering::Relaxed);
    }

    /// Queues a packet behind those that wait, and sends what can be sent.
    pub(crate) fn queue(
        &self,
        dest: u32,
        mut header: Header,
        payload: Payload,
        synchronous: bool,
    ) -> Option<RequestId> {
        let mut core = self.lock();
        let state = &mut core.state;
        let id = state.requests.add(Work::Send { dest, pair: None });
        if synchronous {
            header.kind = Kind::Synchronous;
            header.token = id.into();
        }
        let request = (!synchronous).then_some(id);
        self.enqueue(state, Queued { dest, header, payload: Some(payload), request });
        match state.requests.take_outcome(id) {
            Ok(Some(_)) => None,
            _ => Some(id),
        }
    }

    /// Puts a packet behind those that wait, and sends what can be sent.
    pub(crate) fn enqueue(&self, state: &mut State, packet: Queued) {
        state.queued.push_back(packet);
        self.queued_count.fetch_add(1, Ordering::Release);
        self.flush(state);
    }

    /// Sends what waits, in order per destination, as far as there is room.
    fn flush(&self, state: &mut State) {
        let mut blocked: Vec<u32> = Vec::new();
        for _ in 0..state.queued.len() {
            let Some(packet) = state.queued.pop_front() else { break };
            let body = packet.payload.as_ref().map_or(Outgoing::Nothing, |p| match p {
                Payload::Whole(message) => Outgoing::Message(message),
                physical => Outgoing::Payload(physical),
            });
            if blocked.contains(&packet.dest) || !self.wire.try_send(packet.dest, packet.header, body) {
                if !blocked.contains(&packet.dest) {
                    blocked.push(packet.dest);
                }
                state.queued.push_back(packet);
                continue;
            }
            self.queued_count.fetch_sub(1, Ordering::Release);
            if let Some(id) = packet.request {
                self.complete(state, id, Ok(Completed::SENT));
            }
        }
    }

    // ---- Receiving

    /// Posts a receive.
    ///
    /// # Errors
    /// This rank has finished, or the job has failed.
    pub fn start_receive(&self, args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
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
        let id = self.start_receive(args)?;
        let completed = match self.wait(id, None, patience) {
            Err(DeviceError::Interrupted) if self.cancel(id)? => {
                let _ = self.test(id);
                return Err(DeviceError::Interrupted);
            }
            // Too late to withdraw: the message is there or about to be.
            Err(DeviceError::Interrupted) => self.wait(id, None, &mut crate::waiting::Patient)?,
            other => other?,
        };
        match (completed.envelope, completed.message) {
            (Some(envelope), Some(message)) => Ok((envelope, message)),
            _ => Err(DeviceError::NoSuchRequest),
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
            Work::Send { .. } => self.unqueue(state, id),
        };
        if withdrawn {
            self.complete(state, id, Err(DeviceError::Cancelled));
        }
        Ok(withdrawn)
    }

    /// Removes the one packet of a send that has not left; a split message's send stays.
    fn unqueue(&self, state: &mut State, id: RequestId) -> bool {
        let is_its = |q: &Queued| {
            q.request == Some(id) || (q.header.kind == Kind::Synchronous && q.header.token == u64::from(id))
        };
        let Some(at) = state.queued.iter().position(is_its) else { return false };
        if self.config.message_oriented {
            return false;
        }
        let Some(packet) = state.queued.remove(at) else { return false };
        self.queued_count.fetch_sub(1, Ordering::Release);
        if let (Kind::Eager, Some(payload)) = (packet.header.kind, &packet.payload) {
            self.give_credit_back(packet.dest, payload.len());
        }
        true
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
        if !state.queued.is_empty() {
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

    // ---- Who is gone

    fn check_self(&self, state: &State) -> Result<(), DeviceError> {
        if state.finished {
            return Err(DeviceError::Finished { rank: self.rank });
        }
        match self.wire.epoch() {
            0 => Ok(()),
            _ => self.wire.abort().map_or(Ok(()), |(rank, why)| Err(DeviceError::PeerFailed { rank, why })),
        }
    }

    #[cold]
    fn check_peer(&self, dest: u32) -> Result<(), DeviceError> {
        self.check_self(&self.lock().state)?;
        match self.wire.peer(dest) {
            PeerState::Alive => Ok(()),
            PeerState::Finished => Err(DeviceError::PeerFinished { rank: dest }),
            PeerState::Failed(why) => Err(DeviceError::PeerFailed { rank: dest, why }),
        }
    }

    /// Why no message can come any more that such a receive would take; none as long as one can.
    fn hopeless(&self, selector: &Selector, members: &[u32]) -> Option<DeviceError> {
        if let Some((rank, why)) = self.wire.abort() {
            return Some(DeviceError::PeerFailed { rank, why });
        }
        match selector.source {
            Some(rank) => match self.wire.peer(rank) {
                PeerState::Alive => None,
                PeerState::Finished => Some(DeviceError::PeerFinished { rank }),
                PeerState::Failed(why) => Some(DeviceError::PeerFailed { rank, why }),
            },
            None => {
                let mut others = members.iter().filter(|m| **m != self.rank).peekable();
                others.peek()?;
                let all_gone = others.all(|m| self.wire.peer(*m) != PeerState::Alive);
                all_gone.then_some(DeviceError::NobodyLeft)
            }
        }
    }

    /// Fails every operation that nobody can complete any more.
    #[cold]
    fn fail_hopeless(&self, state: &mut State) {
        let mut failed = Vec::new();
        let requests = &mut state.requests;
        let _ = state.matcher.fail_posted(|selector, id| {
            let Some(Work::Receive(receive)) = requests.get(*id).map(|r| &r.work) else { return false };
            match self.hopeless(selector, &receive.members) {
                Some(error) => {
                    failed.push((*id, error));
                    true
                }
                None => false,
            }
        });
        failed.extend(self.hopeless_halves(state));
        let sends = state.requests.pending().filter_map(|(id, request)| match request.work {
            Work::Send { dest, .. } => {
                let selector = Selector { context: 0, source: Some(dest), tag: None };
                self.hopeless(&selector, &[]).map(|error| (id, error))
            }
            Work::Receive(_) => None,
        });
        failed.extend(sends.collect::<Vec<_>>());
        let before = state.queued.len();
        state.queued.retain(|q| self.wire.peer(q.dest) == PeerState::Alive);
        self.queued_count.fetch_sub(before - state.queued.len(), Ordering::Release);
        for (id, error) in failed {
            self.complete(state, id, Err(error));
        }
    }

    // ---- The end

    /// Ends this rank: waits until what it has sent has left or is matched, as long as the peers it needs show life.
    ///
    /// A second call does nothing.
    ///
    /// # Errors
    /// What was not delivered within the patience; this rank has finished all the same.
    pub fn finish(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        if std::mem::replace(&mut self.lock().state.finished, true) {
            return Ok(());
        }
        let mut lives: Vec<u64> = Vec::new();
        let mut since = Instant::now();
        let result = loop {
            let soon = Instant::now() + self.config.slice;
            let left = self.block(&[], Some(soon), patience, |core| {
                let sends = core.state.requests.pending().any(|(_, r)| matches!(r.work, Work::Send { .. }));
                Ok((!sends && core.state.queued.is_empty()).then_some(()))
            });
            match left {
                Ok(()) => break Ok(()),
                Err(DeviceError::TimedOut { .. }) => {}
                Err(error) => break Err(error),
            }
            let now: Vec<u64> = (0..self.size).map(|r| self.wire.life(r)).collect();
            if now != lives {
                lives = now;
                since = Instant::now();
            }
            if since.elapsed() > self.config.finish_patience {
                break Err(self.undelivered());
            }
        };
        self.wire.finish();
        result
    }

    fn undelivered(&self) -> DeviceError {
        let core = self.lock();
        let pending = core.state.requests.pending();
        let dests: Vec<u32> = pending
            .filter_map(|(_, r)| if let Work::Send { dest, .. } = r.work { Some(dest) } else { None })
            .collect();
        let first = core.state.queued.front();
        DeviceError::Undelivered {
            count: dests.len(),
            rank: first.map_or_else(|| dests.first().copied().unwrap_or(0), |q| q.dest),
            tag: first.map_or(0, |q| q.header.tag),
            len: first.and_then(|q| q.payload.as_ref()).map_or(0, Payload::len),
        }
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on.
    pub fn fail(&self, why: &str) {
        self.wire.fail(why);
    }

    /// Messages that arrived and nobody has received, and requests nobody has waited for: for reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        let mut core = self.lock();
        self.progress(&mut core);
        (core.state.matcher.unexpected_len(), core.state.requests.len())
    }
}
