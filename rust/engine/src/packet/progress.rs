//! Progress of a rank: polls for packets, flushes the outbox, and parks when there is nothing to do.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mpjdev_sys::sync::fence;
use mpjdev_transport::Incoming;
use mpjdev_transport::waiting::{Backoff, Patience, Step, Waiter};

use crate::error::DeviceError;
use crate::packet::endpoint::{Core, Endpoint, State};
use crate::packet::requests::RequestId;

/// Packets that are taken in before the lock is let go.
pub(crate) const BATCH: usize = 256;
/// A rank that only tests and probes drives the other ranks' progress after so many times in vain.
const FRUITLESS: u32 = 64;
/// Looks in vain after which a wait asks whether it may go on, though there is always something to take in.
const ROUNDS: u32 = 64;

impl Endpoint {
    /// Goes on, and shows that a thread of this rank has called in.
    pub(crate) fn progress(&self, core: &mut Core) {
        // A rank that is finishing receives nothing more: others must not wait for it because it still runs.
        if !core.state.finished {
            self.wire.show_life();
        }
        self.go_on(core);
    }

    /// Takes in what has arrived, sends what waits, notices who is gone.
    fn go_on(&self, core: &mut Core) {
        let epoch = self.wire.epoch();
        self.take_in(core);
        if !core.state.outbox.is_empty() {
            self.flush(&mut core.state);
        }
        if epoch != core.state.seen_epoch {
            core.state.seen_epoch = epoch;
            self.fail_hopeless(core);
            self.note_end(&core.state);
        }
    }

    /// Takes in what has arrived.
    #[inline]
    pub(crate) fn take_in(&self, core: &mut Core) {
        let Core { inbox, state } = core;
        // More than there can be at one moment need not be taken in: somebody who sends without end must not keep the lock.
        for _ in 0..self.batches {
            let mut each =
                |source, header, body: Incoming<'_>| self.arrive(state, source, header, body, None);
            if inbox.receive(BATCH, &mut each) < BATCH {
                break;
            }
        }
    }

    /// Takes in all that ranks which are gone have sent, before something is given up because of them: who has finished may
    /// have sent right before it.
    #[cold]
    pub(crate) fn take_in_last(&self, core: &mut Core) {
        core.inbox.poll_gone();
        self.take_in(core);
    }

    /// Drives this rank's progress for another one that waits, unless its own threads do.
    pub(crate) fn help(&self) {
        if !self.wire.is_ready() && self.queued_count.load(Ordering::Acquire) == 0 {
            return;
        }
        match self.core.try_lock() {
            // What others do for this rank is no life of its own.
            Ok(mut core) => self.go_on(&mut core),
            Err(_) if self.missed_help.swap(true, Ordering::SeqCst) => {}
            // Who has the lock may be about to sleep, having looked for room before there was any.
            Err(_) => self.wire.ring(),
        }
    }

    /// Waits until `ready` gives something. `ids` are the requests whose completion may make it so.
    pub(crate) fn block<R>(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        mut backoff: Backoff,
        patience: &mut dyn Patience,
        mut ready: impl FnMut(&mut Core) -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        if self.crowd.is_here() {
            backoff.hurry();
        }
        let begun = deadline.map(|_| Instant::now());
        let mut rounds = 0u32;
        loop {
            // Packets may come without end.
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS) {
                self.time_left(begun, deadline)?;
                if !patience.goes_on() {
                    self.pass_on(&mut self.lock().state);
                    return Err(DeviceError::Interrupted);
                }
            }
            let seen = self.changes.load(Ordering::Acquire);
            {
                let mut core = self.lock();
                self.progress(&mut core);
                self.lapse(&mut core, ids);
                let result = ready(&mut core);
                if !matches!(result, Ok(None)) {
                    self.pass_on(&mut core.state);
                    return result.map(|r| r.expect("not none"));
                }
            }
            while !self.wire.is_ready() && self.changes.load(Ordering::Acquire) == seen {
                match backoff.step() {
                    Step::Pause => std::hint::spin_loop(),
                    Step::Yield => {
                        self.help_neighbours();
                        backoff.yield_now(&self.crowd);
                        // What found no room may find it now.
                        if self.queued_count.load(Ordering::Acquire) > 0 {
                            break;
                        }
                    }
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

    /// What a rank waits for may be stuck at another one that does not call in: a rank that never blocks must help too.
    #[inline]
    pub(crate) fn note_fruitless(&self) {
        if self.fruitless.fetch_add(1, Ordering::Relaxed) % FRUITLESS == FRUITLESS - 1 {
            self.help_neighbours();
            if self.wire.has_helpers() {
                self.call_for_answers(&self.lock().state);
            }
        }
    }

    fn help_neighbours(&self) {
        // This rank may just have made room for packets of others, and others for its own. Either their count is seen here, or
        // they see the room when they look for it once more: whoever goes to sleep has come by here before that look.
        fence(Ordering::SeqCst);
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
        if !core.state.outbox.is_empty() {
            // Whoever made room before now may have tried to help in vain while this thread had the lock.
            self.flush(&mut core.state);
        }
        self.call_for_answers(&core.state);
        let seen_epoch = core.state.seen_epoch;
        let ended = || self.wire.epoch() != seen_epoch;
        if self.changes.load(Ordering::Acquire) != seen || self.wire.is_ready() {
            return;
        }
        for id in ids {
            if let Some(request) = core.state.requests.get(*id) {
                request.waiters.push(waiter.clone());
            }
        }
        if ids.is_empty() {
            core.state.observers.push(waiter.clone());
        }
        let drives = core.state.driver.is_none();
        if drives {
            core.state.driver = Some(waiter.clone());
            drop(core);
            let mut ready = || {
                self.wire.is_ready()
                    || waiter.is_signalled()
                    || ended()
                    || self.missed_help.swap(false, Ordering::SeqCst)
            };
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
                request.waiters.retain(|w| !Arc::ptr_eq(w, &waiter));
            }
        }
    }

    /// Has the ranks that this one's sends wait for go on, though their programs may be computing.
    fn call_for_answers(&self, state: &State) {
        if !self.wire.has_helpers() {
            return;
        }
        // A send that is under way has not left or is not answered; there may be very many.
        let unanswered = (0..).zip(&state.unanswered).filter(|(_, count)| **count > 0).map(|(dest, _)| dest);
        let mut dests: Vec<u32> =
            unanswered.chain(state.outbox.dests()).filter(|dest| *dest != self.rank).collect();
        dests.sort_unstable();
        dests.dedup();
        dests.into_iter().for_each(|dest| self.wire.call(dest));
    }

    /// Tells all threads that a rank has ended, which changes what they wait for: the transport rings for the one that
    /// drives, the others are told here.
    #[cold]
    fn note_end(&self, state: &State) {
        self.note_change();
        for waiter in &state.parked {
            waiter.signal();
        }
    }

    /// A thread that stops waiting leaves the driving to one that sleeps.
    #[inline]
    pub(crate) fn pass_on(&self, state: &mut State) {
        if state.driver.is_none()
            && let Some(next) = state.parked.last()
        {
            next.signal();
        }
    }
}
