//! The end of a rank, and of operations that no rank can complete any more.

use std::time::Instant;

use mpjdev_proto::envelope::Selector;
use mpjdev_transport::stats::{Stats, report};
use mpjdev_transport::wait::{Backoff, WaitControl};
use mpjdev_transport::{PeerState, Unacked};
use tracing::{debug, info, warn};

use crate::error::DeviceError;
use crate::operation::{LastBarrier, Unreceived};
use crate::packet::engine::{Core, PacketEngine, State};
use crate::packet::requests::{Receive, Request, Work};
use crate::request::RequestId;

impl PacketEngine {
    pub(crate) fn check_self(&self, state: &State) -> Result<(), DeviceError> {
        if state.end.has_begun() {
            return Err(DeviceError::Finished { rank: self.rank });
        }
        match self.transport.epoch() {
            0 => Ok(()),
            _ => self
                .transport
                .abort()
                .map_or(Ok(()), |(rank, why)| Err(DeviceError::PeerFailed { rank, why })),
        }
    }

    /// Checks that this rank has not begun to finish, at the cost of one load.
    ///
    /// # Errors
    /// It has begun.
    #[inline]
    pub fn check_unfinished(&self) -> Result<(), DeviceError> {
        match self.end_flags.has_begun() {
            false => Ok(()),
            true => Err(DeviceError::Finished { rank: self.rank }),
        }
    }

    /// Checks that this rank may communicate or, with `is_end`, that it has a job to end.
    pub(crate) fn check_going(&self, is_end: bool) -> Result<(), DeviceError> {
        match is_end {
            true => self
                .transport
                .abort()
                .map_or(Ok(()), |(rank, why)| Err(DeviceError::PeerFailed { rank, why })),
            false => self.check_running(),
        }
    }

    /// Checks that this rank may communicate.
    pub(crate) fn check_running(&self) -> Result<(), DeviceError> {
        self.check_self(&self.lock().state)
    }

    #[cold]
    pub(crate) fn check_peer(&self, dest: u32) -> Result<(), DeviceError> {
        self.check_self(&self.lock().state)?;
        match self.transport.peer(dest) {
            PeerState::Alive => Ok(()),
            PeerState::Finished => Err(DeviceError::PeerFinished { rank: dest }),
            PeerState::Failed(why) => Err(DeviceError::PeerFailed { rank: dest, why }),
        }
    }

    /// The reason why no matching message can arrive any more; `None` as long as one can.
    pub(crate) fn unsatisfiable(&self, selector: &Selector, members: &[u32]) -> Option<DeviceError> {
        if let Some((rank, why)) = self.transport.abort() {
            return Some(DeviceError::PeerFailed { rank, why });
        }
        match selector.source {
            Some(rank) => match self.transport.peer(rank) {
                PeerState::Alive => None,
                PeerState::Finished => Some(DeviceError::PeerFinished { rank }),
                PeerState::Failed(why) => Some(DeviceError::PeerFailed { rank, why }),
            },
            None => {
                let mut others = members.iter().filter(|m| **m != self.rank).peekable();
                others.peek()?;
                let all_gone = others.all(|m| self.transport.peer(*m) != PeerState::Alive);
                all_gone.then_some(DeviceError::NoSourceLeft)
            }
        }
    }

    /// Fails every operation that no rank can complete any more.
    #[cold]
    pub(crate) fn fail_unsatisfiable(&self, core: &mut Core) {
        debug!(target: "mpjdev::failure", rank = self.rank, "state of a peer has changed");
        let state = &mut core.state;
        let mut unsatisfiable = Vec::new();
        for (id, selector) in state.recv_queue.receives() {
            let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &r.work) else { continue };
            unsatisfiable
                .extend(self.unsatisfiable_receive(&selector, receive.members()).map(|error| (id, error)));
        }
        unsatisfiable.extend(state.requests.pending().filter_map(|(id, request)| match request.work {
            Work::Send { dest, .. } => self.unsatisfiable_send(dest).map(|error| (id, error)),
            Work::Receive(_) => None,
        }));
        self.fail_requests(core, unsatisfiable);
        self.drop_queued(&mut core.state, |dest| self.transport.peer(dest) != PeerState::Alive);
    }

    /// The reason why a posted receive is unsatisfiable while no thread waits for it. This rank itself may
    /// still send to it.
    pub(crate) fn unsatisfiable_receive(&self, selector: &Selector, members: &[u32]) -> Option<DeviceError> {
        self.unsatisfiable(selector, members).filter(|error| *error != DeviceError::NoSourceLeft)
    }

    /// Fails those receives with these ids that only this rank itself could complete. A thread asks for them
    /// now.
    pub(crate) fn fail_orphaned(&self, core: &mut Core, ids: &[RequestId]) {
        if self.transport.epoch() == 0 {
            return;
        }
        self.fail_unpacked(core, ids);
        let any = Selector { context: 0, source: None, tag: None };
        let waits = |id: &RequestId| match core.state.requests.get(*id) {
            Some(Request {
                outcome: None,
                work: Work::Receive(Receive { post: Some(_), members, .. }),
                ..
            }) => self.unsatisfiable(&any, members.as_deref()?).map(|error| (*id, error)),
            _ => None,
        };
        let orphaned: Vec<_> = ids.iter().filter_map(waits).collect();
        if !orphaned.is_empty() {
            self.fail_requests(core, orphaned);
        }
    }

    /// The reason why no rank will match a message for `dest`; `None` as long as one may.
    pub(crate) fn unsatisfiable_send(&self, dest: u32) -> Option<DeviceError> {
        self.unsatisfiable(&Selector { context: 0, source: Some(dest), tag: None }, &[])
    }

    /// Fails these requests, except those that packets received since the judgement complete. A rank that has
    /// finished may have sent just before its end.
    #[cold]
    pub(crate) fn fail_requests(&self, core: &mut Core, unsatisfiable: Vec<(RequestId, DeviceError)>) {
        self.poll_ended_peers(core);
        let state = &mut core.state;
        for (id, error) in unsatisfiable {
            match state.requests.get(id) {
                Some(Request { outcome: None, work: Work::Receive(receive), .. }) => {
                    receive.post.take().map(|post| state.recv_queue.withdraw(post));
                    state.recv_queue.forget_partial(id);
                }
                Some(Request { outcome: None, work: Work::Send { .. }, .. }) => {
                    state.end.add_undelivered(state.requests.forgotten_send(id, &error));
                }
                _ => continue,
            }
            info!(target: "mpjdev::failure", rank = self.rank, %error, "operation has failed");
            self.complete(state, id, Err(error));
        }
        self.forget_ambiguous(state);
        self.drop_kept_halves(state);
    }

    /// Finishes this rank. Blocks until its messages are sent or matched, as long as the heartbeats of the
    /// needed peers change; with foreign ranks, then until all ranks of the job have reached this point.
    ///
    /// A second call does nothing. `last_barrier` is given in a job whose foreign ranks take part in it.
    ///
    /// # Errors
    /// A message is undelivered: its receiver has finished without it, or showed no heartbeat within the
    /// grace period. With foreign ranks: a rank of the job has failed, has finished without the others, or
    /// does not take part. The job has failed; interrupted. This rank has finished nevertheless.
    pub fn finish(
        &self,
        last_barrier: Option<&mut LastBarrier<'_>>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        if !self.lock().state.end.begin(&self.end_flags) {
            return Ok(());
        }
        info!(target: "mpjdev::rank", rank = self.rank, "finish begins");
        let left = self.drain_sends(wait_control);
        let left = left.and_then(|()| self.end_with_foreign(last_barrier, wait_control));
        let result = match left {
            Err(DeviceError::Interrupted) => left,
            left => self.undelivered().and(left),
        };
        self.end_receives();
        self.drop_outbox();
        debug!(target: "mpjdev::rank", rank = self.rank, "transport finishes");
        let unacked = self.transport.finish();
        self.note_unreceived();
        self.print_stats();
        self.end_progress_threads();
        let error = result.as_ref().err().map(ToString::to_string);
        info!(target: "mpjdev::rank", rank = self.rank, error, "rank has finished");
        match self.transport.abort() {
            None => result.and(acknowledged(&unacked)),
            Some(_) => result,
        }
    }

    /// Counts the messages that have arrived and that no receive has taken, unless the job has failed.
    fn note_unreceived(&self) {
        let mut core = self.lock();
        self.poll_packets(&mut core);
        let State { end, recv_queue, .. } = &mut core.state;
        match self.transport.abort() {
            None => recv_queue
                .messages()
                .for_each(|(envelope, message)| end.add_unreceived(&envelope, message.payload_len())),
            Some(_) => end.forget_unreceived(),
        }
    }

    /// The messages that had arrived at this rank's end and that no receive took. `None` when there are none,
    /// before the end, and from the second call on.
    pub fn take_unreceived(&self) -> Option<Unreceived> {
        self.lock().state.end.take_unreceived()
    }

    /// Ends a job with foreign ranks by a barrier of all ranks (IMPI 14), unless the job has failed.
    fn end_with_foreign(
        &self,
        last_barrier: Option<&mut LastBarrier<'_>>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let Some(last_barrier) = last_barrier else { return Ok(()) };
        if self.transport.abort().is_some() {
            return Ok(());
        }
        match last_barrier(wait_control) {
            Err(DeviceError::Interrupted) => Err(DeviceError::Interrupted),
            // The messages that other ranks wait for in the barrier leave as well.
            together => self.drain_sends(wait_control).and(together),
        }
    }

    /// Waits until all packets are sent or matched, as long as the heartbeats of the needed peers change.
    ///
    /// # Errors
    /// Interrupted.
    fn drain_sends(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let mut signs = (Vec::new(), None);
        let mut since = Instant::now();
        loop {
            let soon = Instant::now() + self.config.slice;
            let left = self.block(&[], Some(soon), Backoff::new(&self.config), wait_control, |core| {
                // No receive takes the messages of this rank to itself any more.
                let is_other = |dest| dest != self.rank;
                let waits =
                    |request: &Request| matches!(request.work, Work::Send { dest, .. } if is_other(dest));
                let sends = core.state.requests.pending().any(|(_, request)| waits(request))
                    || core.state.outbox.dests().any(is_other);
                let has_left = !sends && self.transport.tx_pending().is_none();
                Ok(has_left.then_some(()))
            });
            match left {
                Err(DeviceError::TimedOut { .. }) => {}
                left => return left,
            }
            let now = (self.pending_heartbeats(), self.transport.tx_pending());
            if now != signs {
                signs = now;
                since = Instant::now();
            }
            if since.elapsed() > self.config.finish_timeout {
                return Ok(());
            }
        }
    }

    /// Fails the receives that other threads of this rank still wait for: no rank can send to it any more.
    fn end_receives(&self) {
        let mut core = self.lock();
        let receives = core.state.requests.pending().filter(|(_, r)| matches!(r.work, Work::Receive(_)));
        let ended = receives.map(|(id, _)| (id, DeviceError::Finished { rank: self.rank })).collect();
        self.fail_requests(&mut core, ended);
    }

    /// Drops all queued packets. They were reported as undelivered.
    fn drop_outbox(&self) {
        self.drop_queued(&mut self.lock().state, |_| true);
    }

    /// The peers that must make progress before this rank's sends are complete, with their heartbeats.
    fn pending_heartbeats(&self) -> Vec<(u32, u64)> {
        let core = self.lock();
        let sends = core.state.requests.pending().filter_map(|(_, request)| match request.work {
            Work::Send { dest, .. } => Some(dest),
            Work::Receive(_) => None,
        });
        let mut peers: Vec<u32> =
            sends.chain(core.state.outbox.dests()).filter(|d| *d != self.rank).collect();

        peers.sort_unstable();
        peers.dedup();
        peers.into_iter().map(|peer| (peer, self.transport.heartbeat_of(peer))).collect()
    }

    /// The error of undelivered messages; `Ok` if all are delivered.
    fn undelivered(&self) -> Result<(), DeviceError> {
        let core = self.lock();
        let mut lost = core.state.end.undelivered();
        let has_finished = |dest| dest == self.rank || self.transport.peer(dest) == PeerState::Finished;
        core.state.requests.unfinished_sends(has_finished).for_each(|send| lost.add(send));
        match self.transport.abort() {
            Some((rank, why)) => lost.reported().map_err(|_| DeviceError::PeerFailed { rank, why }),
            None => lost.reported(),
        }
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on.
    pub fn fail(&self, why: &str) {
        warn!(target: "mpjdev::failure", rank = self.rank, why, "rank ends the job");
        self.transport.fail(why);
        self.print_stats();
    }

    /// The statistics of this rank so far. Takes locks of the transport, each for a moment.
    pub fn stats(&self) -> Stats {
        Stats {
            rank: self.rank,
            transport: self.transport.name(),
            completions: self.signals.changes(),
            datagrams: self.transport.datagrams(),
        }
    }

    /// Writes the statistics of this rank to standard error, if the environment asks for it
    /// ([`mpjdev_transport::stats`]). Only the first call does. A rank that finishes, fails or is dropped
    /// calls it itself.
    pub fn print_stats(&self) {
        match report::asked() {
            Ok(Some(form)) if self.end_flags.note_stats_printed() => {
                report::print(&self.stats(), form);
            }
            Err(unknown) if self.end_flags.note_stats_printed() => {
                eprintln!("mpjdev: rank {}: {unknown}", self.rank);
            }
            _ => {}
        }
    }

    /// The number of unexpected messages, and of requests whose outcome was not taken: for reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        let mut core = self.lock();
        self.progress(&mut core);
        (core.state.recv_queue.unexpected_len(), core.state.requests.len())
    }
}

/// A rank that is dropped without having finished has failed.
impl Drop for PacketEngine {
    fn drop(&mut self) {
        self.print_stats();
    }
}

/// The error of unacked messages; `Ok` if the other machines have acked all.
fn acknowledged(unacked: &[Unacked]) -> Result<(), DeviceError> {
    let Some(Unacked { rank, .. }) = unacked.first() else { return Ok(()) };
    Err(DeviceError::Unacked {
        rank: *rank,
        ranks: unacked.len(),
        messages: unacked.iter().map(|one| one.messages).sum(),
        octets: unacked.iter().map(|one| one.octets).sum(),
    })
}
