//! The end of a rank, and of operations that nobody can complete any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use mpjdev_proto::envelope::Selector;
use mpjdev_transport::stats::{Stats, report};
use mpjdev_transport::waiting::{Backoff, Patience};
use mpjdev_transport::{PeerState, Unacked};

use crate::error::DeviceError;
use crate::packet::begun::Begun;
use crate::packet::endpoint::{Core, Endpoint, State};
use crate::packet::pairing::Half;
use crate::packet::requests::{Receive, Request, RequestId, Work};
use crate::packet::unreceived::Unreceived;

/// Messages that were not delivered and that nobody waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    count: usize,
    /// Destination, tag and logical length of the first one.
    first: Option<(u32, i32, usize)>,
}

impl Lost {
    pub(crate) fn add(&mut self, message: (u32, i32, usize)) {
        self.count += 1;
        self.first.get_or_insert(message);
    }

    /// Nothing, when there are none.
    #[cfg(not(loom))]
    pub(crate) fn reported(&self) -> Result<(), DeviceError> {
        match self.first {
            None => Ok(()),
            Some((rank, tag, len)) => Err(DeviceError::Undelivered { count: self.count, rank, tag, len }),
        }
    }

    fn add_all(&mut self, messages: Option<(u32, i32, usize)>) {
        messages.into_iter().for_each(|message| self.add(message));
    }
}

impl Endpoint {
    pub(crate) fn check_self(&self, state: &State) -> Result<(), DeviceError> {
        if state.finished {
            return Err(DeviceError::Finished { rank: self.rank });
        }
        match self.wire.epoch() {
            0 => Ok(()),
            _ => self.wire.abort().map_or(Ok(()), |(rank, why)| Err(DeviceError::PeerFailed { rank, why })),
        }
    }

    /// Whether this rank has not begun to finish; costs next to nothing.
    ///
    /// # Errors
    /// It has.
    #[inline]
    pub fn check_unfinished(&self) -> Result<(), DeviceError> {
        match self.finishing.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(DeviceError::Finished { rank: self.rank }),
        }
    }

    /// Whether this rank may still communicate, or, at its end, has a job to end.
    pub(crate) fn check_going(&self, is_end: bool) -> Result<(), DeviceError> {
        match is_end {
            true => {
                self.wire.abort().map_or(Ok(()), |(rank, why)| Err(DeviceError::PeerFailed { rank, why }))
            }
            false => self.check_running(),
        }
    }

    /// Whether this rank may still communicate.
    pub(crate) fn check_running(&self) -> Result<(), DeviceError> {
        self.check_self(&self.lock().state)
    }

    #[cold]
    pub(crate) fn check_peer(&self, dest: u32) -> Result<(), DeviceError> {
        self.check_self(&self.lock().state)?;
        match self.wire.peer(dest) {
            PeerState::Alive => Ok(()),
            PeerState::Finished => Err(DeviceError::PeerFinished { rank: dest }),
            PeerState::Failed(why) => Err(DeviceError::PeerFailed { rank: dest, why }),
        }
    }

    /// Why no message can come any more that such a receive would take; none as long as one can.
    pub(crate) fn hopeless(&self, selector: &Selector, members: &[u32]) -> Option<DeviceError> {
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
    pub(crate) fn fail_hopeless(&self, core: &mut Core) {
        let state = &mut core.state;
        let posted = state.matcher.posted().map(|(selector, id)| (*id, selector));
        let begun = state.begun.iter().map(Begun::waits_for);
        let posted: Vec<_> = posted.chain(state.halves.iter().map(Half::waits_for)).chain(begun).collect();
        let mut hopeless = Vec::new();
        for (id, selector) in posted {
            let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &r.work) else { continue };
            hopeless.extend(self.hopeless_receive(&selector, receive.members()).map(|error| (id, error)));
        }
        hopeless.extend(state.requests.pending().filter_map(|(id, request)| match request.work {
            Work::Send { dest, .. } => self.hopeless_send(dest).map(|error| (id, error)),
            Work::Receive(_) => None,
        }));
        self.give_up(core, hopeless);
        self.drop_queued(&mut core.state, |dest| self.wire.peer(dest) != PeerState::Alive);
    }

    /// Why a posted receive that nobody asks for is hopeless: while it is only posted, this rank itself may still send.
    pub(crate) fn hopeless_receive(&self, selector: &Selector, members: &[u32]) -> Option<DeviceError> {
        self.hopeless(selector, members).filter(|error| *error != DeviceError::NobodyLeft)
    }

    /// Fails those of the receives, which somebody asks for now, that could only be completed by this rank itself.
    pub(crate) fn lapse(&self, core: &mut Core, ids: &[RequestId]) {
        if self.wire.epoch() == 0 {
            return;
        }
        let any = Selector { context: 0, source: None, tag: None };
        let waits = |id: &RequestId| match core.state.requests.get(*id) {
            Some(Request {
                outcome: None,
                work: Work::Receive(Receive { post: Some(_), members, .. }),
                ..
            }) => self.hopeless(&any, members.as_deref()?).map(|error| (*id, error)),
            _ => None,
        };
        let lapsed: Vec<_> = ids.iter().filter_map(waits).collect();
        if !lapsed.is_empty() {
            self.give_up(core, lapsed);
        }
    }

    /// Why nobody will match what is sent there; none as long as somebody may.
    pub(crate) fn hopeless_send(&self, dest: u32) -> Option<DeviceError> {
        self.hopeless(&Selector { context: 0, source: Some(dest), tag: None }, &[])
    }

    /// Fails these requests, except those that are completed by what has arrived since they were judged hopeless: who
    /// has finished may have sent right before it.
    #[cold]
    pub(crate) fn give_up(&self, core: &mut Core, hopeless: Vec<(RequestId, DeviceError)>) {
        self.take_in_last(core);
        let state = &mut core.state;
        for (id, error) in hopeless {
            match state.requests.get(id) {
                Some(Request { outcome: None, work: Work::Receive(receive), .. }) => {
                    receive.post.take().map(|post| state.matcher.withdraw(post));
                    state.halves.retain(|half| half.request != id);
                    state.begun.retain(|begun| begun.request() != id);
                }
                Some(Request { outcome: None, work: Work::Send { .. }, .. }) => {
                    state.lost.add_all(state.requests.forgotten_send(id, &error));
                }
                _ => continue,
            }
            self.complete(state, id, Err(error));
        }
        if !state.lanes.is_empty() {
            self.forget_undecided(state);
        }
        self.drop_kept_halves(state);
    }

    /// Ends this rank: waits until what it has sent has left or is matched, as long as the peers it needs show life; then, where
    /// there are foreign ranks, until all ranks of the job have come so far. Blocks.
    ///
    /// A second call does nothing.
    ///
    /// # Errors
    /// What was not delivered: its receiver has finished without it, or showed no life for as long as the patience lasts.
    /// Where there are foreign ranks: one of the job's ranks has failed, or finished without the others, or does not come.
    /// The job has failed; interrupted. This rank has finished all the same.
    pub fn finish(self: &Arc<Self>, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        if std::mem::replace(&mut self.lock().state.finished, true) {
            return Ok(());
        }
        self.finishing.store(true, Ordering::Relaxed);
        let left = self.let_leave(patience).and_then(|()| self.end_with_foreign(patience));
        let result = match left {
            Err(DeviceError::Interrupted) => left,
            left => self.undelivered().and(left),
        };
        self.end_receives();
        self.drop_outbox();
        let unacked = self.wire.finish();
        self.note_unreceived();
        self.tell_stats();
        self.end_beside();
        match self.wire.abort() {
            None => result.and(acknowledged(&unacked)),
            Some(_) => result,
        }
    }

    /// Counts what no receive has taken of what has arrived by now, unless the job has failed.
    fn note_unreceived(&self) {
        let mut core = self.lock();
        self.take_in(&mut core);
        core.state.unreceived = match self.wire.abort() {
            None => core.state.unreceived(),
            Some(_) => Unreceived::of(self.rank),
        };
    }

    /// What this rank has finished with and no receive took; none when there is nothing, before the end, and the second time.
    pub fn take_unreceived(&self) -> Option<Unreceived> {
        let state = &mut self.lock().state;
        match state.finished && state.unreceived.count() > 0 {
            true => Some(std::mem::replace(&mut state.unreceived, Unreceived::of(self.rank))),
            false => None,
        }
    }

    /// A job with foreign ranks ends with a barrier of all of them (IMPI 14), unless it has failed.
    fn end_with_foreign(self: &Arc<Self>, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        if self.clients().is_none() || self.wire.abort().is_some() {
            return Ok(());
        }
        match self.end_together(patience) {
            Err(DeviceError::Interrupted) => Err(DeviceError::Interrupted),
            // What others wait for in it leaves as well.
            together => self.let_leave(patience).and(together),
        }
    }

    /// Waits until what was sent has left or is matched, as long as the peers that this rank needs show life.
    ///
    /// # Errors
    /// Interrupted.
    fn let_leave(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        let mut signs = (Vec::new(), None);
        let mut since = Instant::now();
        loop {
            let soon = Instant::now() + self.config.slice;
            let left = self.block(&[], Some(soon), Backoff::new(&self.config), patience, |core| {
                // What this rank has sent to itself, nobody receives any more.
                let is_other = |dest| dest != self.rank;
                let waits =
                    |request: &Request| matches!(request.work, Work::Send { dest, .. } if is_other(dest));
                let sends = core.state.requests.pending().any(|(_, request)| waits(request))
                    || core.state.outbox.dests().any(is_other);
                let has_left = !sends && self.wire.leaving().is_none();
                Ok(has_left.then_some(()))
            });
            match left {
                Err(DeviceError::TimedOut { .. }) => {}
                left => return left,
            }
            let now = (self.needed_lives(), self.wire.leaving());
            if now != signs {
                signs = now;
                since = Instant::now();
            }
            if since.elapsed() > self.config.finish_patience {
                return Ok(());
            }
        }
    }

    /// Fails what other threads of this rank still wait for: nobody can send to it any more.
    fn end_receives(&self) {
        let mut core = self.lock();
        let receives = core.state.requests.pending().filter(|(_, r)| matches!(r.work, Work::Receive(_)));
        let ended = receives.map(|(id, _)| (id, DeviceError::Finished { rank: self.rank })).collect();
        self.give_up(&mut core, ended);
    }

    /// What has not left by now never does: it was reported as not delivered.
    fn drop_outbox(&self) {
        self.drop_queued(&mut self.lock().state, |_| true);
    }

    /// The peers that must call in before this rank's sends are done, and how much life each has shown.
    fn needed_lives(&self) -> Vec<(u32, u64)> {
        let core = self.lock();
        let sends = core.state.requests.pending().filter_map(|(_, request)| match request.work {
            Work::Send { dest, .. } => Some(dest),
            Work::Receive(_) => None,
        });
        let mut peers: Vec<u32> =
            sends.chain(core.state.outbox.dests()).filter(|d| *d != self.rank).collect();

        peers.sort_unstable();
        peers.dedup();
        peers.into_iter().map(|peer| (peer, self.wire.life(peer))).collect()
    }

    /// Nothing, if all that was sent is delivered.
    fn undelivered(&self) -> Result<(), DeviceError> {
        let core = self.lock();
        let mut lost = core.state.lost;
        let has_finished = |dest| dest == self.rank || self.wire.peer(dest) == PeerState::Finished;
        core.state.requests.unfinished_sends(has_finished).for_each(|send| lost.add(send));
        match (self.wire.abort(), lost.first) {
            (_, None) => Ok(()),
            (Some((rank, why)), _) => Err(DeviceError::PeerFailed { rank, why }),
            (None, Some((rank, tag, len))) => {
                Err(DeviceError::Undelivered { count: lost.count, rank, tag, len })
            }
        }
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on.
    pub fn fail(&self, why: &str) {
        self.wire.fail(why);
        self.tell_stats();
    }

    /// What this rank has counted so far. Takes locks of the transport, each for a moment.
    pub fn stats(&self) -> Stats {
        Stats {
            rank: self.rank,
            transport: self.wire.name(),
            completions: self.changes.load(Ordering::Relaxed),
            datagrams: self.wire.datagrams(),
        }
    }

    /// Writes to standard error what this rank has counted, if the environment asks for it ([`mpjdev_transport::stats`]). Only the first call
    /// does; a rank that finishes, fails or goes makes one by itself.
    pub fn tell_stats(&self) {
        match report::asked() {
            Ok(Some(form)) if !self.has_told.swap(true, Ordering::Relaxed) => {
                report::tell(&self.stats(), form);
            }
            Err(why) if !self.has_told.swap(true, Ordering::Relaxed) => {
                eprintln!("mpjdev: rank {}: {why}", self.rank);
            }
            _ => {}
        }
    }

    /// Messages that arrived and nobody has received, and requests nobody has waited for: for reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        let mut core = self.lock();
        self.progress(&mut core);
        (core.state.matcher.unexpected_len(), core.state.requests.len())
    }
}

/// A rank that goes without having finished has failed.
impl Drop for Endpoint {
    fn drop(&mut self) {
        self.tell_stats();
    }
}

/// Nothing, if the other machines have acknowledged all that was sent.
fn acknowledged(unacked: &[Unacked]) -> Result<(), DeviceError> {
    let Some(Unacked { rank, .. }) = unacked.first() else { return Ok(()) };
    Err(DeviceError::Unacked {
        rank: *rank,
        ranks: unacked.len(),
        messages: unacked.iter().map(|one| one.messages).sum(),
        octets: unacked.iter().map(|one| one.octets).sum(),
    })
}
