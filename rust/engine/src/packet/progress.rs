//! Progress of a rank: polls for packets, flushes the outbox, and parks when there is nothing to do.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mpjdev_sys::sync::fence;
use mpjdev_transport::Incoming;
use mpjdev_transport::slots::Slots;
use mpjdev_transport::wait::{Backoff, Step, WaitControl, Waiter};

use crate::error::DeviceError;
use crate::packet::engine::{BATCH, Core, PacketEngine, State};
use crate::packet::pipeline::NAP;
use crate::request::RequestId;
use crate::wait::WaitLimit;

/// A rank that only tests and probes drives the other ranks' progress after this number of empty polls.
const EMPTY_POLLS: u32 = 64;
/// Polls after which a wait checks its limit, even if packets arrive without end.
const LIMIT_POLLS: u32 = 64;

impl PacketEngine {
    /// Drives progress once, and updates the heartbeat: a thread of this rank has called.
    pub(crate) fn progress(&self, core: &mut Core) {
        // A finishing rank receives nothing more: other ranks must not wait for it because its process still
        // runs.
        if !core.state.end.has_begun() {
            self.transport.heartbeat();
        }
        self.poll_once(core);
    }

    /// Handles received packets, sends queued ones, and fails operations on ranks that have ended.
    fn poll_once(&self, core: &mut Core) {
        let epoch = self.transport.epoch();
        self.poll_packets(core);
        if !core.state.outbox.is_empty() {
            self.flush(&mut core.state);
        }
        if epoch != core.state.seen_epoch {
            core.state.seen_epoch = epoch;
            self.fail_unsatisfiable(core);
            self.note_end(&mut core.state);
        }
        if self.transport.slots().is_some_and(Slots::has_awaited) {
            // A thread of this rank waits for a vector and may be parked.
            core.state.waiters.note_change(&self.signals);
            core.state.waiters.signal_parked();
        }
        if core.state.note_poll() {
            core.state.check(&self.queued_count, &self.end_flags);
        }
    }

    /// Handles the received packets.
    #[inline]
    pub(crate) fn poll_packets(&self, core: &mut Core) {
        let Core { packet_source, state } = core;
        // The bound is more than all queues hold: a rank that sends without end must not keep the lock taken.
        for _ in 0..self.batches {
            let mut each =
                |source, header, body: Incoming<'_>| self.handle_packet(state, source, header, body, None);
            if packet_source.receive(BATCH, &mut each) < BATCH {
                break;
            }
        }
    }

    /// Handles all packets of ranks that have ended, before operations are failed because of them. A rank may
    /// have sent just before it finished.
    #[cold]
    pub(crate) fn poll_ended_peers(&self, core: &mut Core) {
        core.packet_source.poll_ended();
        self.poll_packets(core);
    }

    /// Drives this rank's progress on behalf of a waiting rank, unless a thread of this rank does.
    pub(crate) fn progress_for_other(&self) {
        if !self.transport.is_ready() && self.queued_count.get() == 0 {
            return;
        }
        match self.try_lock() {
            // Progress by another rank does not change this rank's heartbeat.
            Some(mut core) => self.poll_once(&mut core),
            None if !self.signals.note_missed_progress() => {}
            // The thread with the lock may have polled before there was room, and may be about to park.
            None => self.transport.wake(),
        }
    }

    /// Whether requests are pending or packets are queued; true also while a thread of the program has the
    /// lock.
    #[cfg(not(loom))]
    pub(crate) fn has_pending(&self) -> bool {
        self.queued_count.get() > 0 || self.try_lock().is_none_or(|core| core.state.requests.has_pending())
    }

    /// Waits until `ready` returns a value. The completion of the requests `ids` may make it so.
    pub(crate) fn block<R>(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        mut backoff: Backoff,
        wait_control: &mut dyn WaitControl,
        mut ready: impl FnMut(&mut Core) -> Result<Option<R>, DeviceError>,
    ) -> Result<R, DeviceError> {
        backoff.adapt_to(&self.oversubscription);
        let mut limit = WaitLimit::begin(deadline, wait_control);
        let mut polls = 0u32;
        loop {
            // Packets may arrive without end.
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(LIMIT_POLLS) {
                self.check_limit(&mut limit)?;
            }
            let seen = self.signals.changes();
            let is_packing;
            {
                let mut core = self.lock();
                self.progress(&mut core);
                self.fail_orphaned(&mut core, ids);
                // Another call may have found a message that is still packed.
                core.state.requests.take_saw_packing();
                let result = ready(&mut core);
                if !matches!(result, Ok(None)) {
                    core.state.waiters.hand_over_driver();
                    drop(core);
                    self.note_wait(&backoff);
                    return result.map(|r| r.expect("not none"));
                }
                is_packing = core.state.requests.take_saw_packing();
            }
            // A sender that packs a message signals nothing.
            while is_packing || !self.transport.is_ready() && self.signals.changes() == seen {
                match backoff.step() {
                    Step::Pause => std::hint::spin_loop(),
                    Step::Yield => {
                        self.progress_for_process();
                        backoff.yield_now(&self.oversubscription);
                        // There may be room now for packets that found none before.
                        if self.queued_count.get() > 0 {
                            break;
                        }
                    }
                    Step::Sleep => {
                        let left = self.check_limit(&mut limit)?;
                        self.progress_for_process();
                        match is_packing {
                            true => std::thread::sleep(left.min(NAP)),
                            false => {
                                let begun = Instant::now();
                                self.sleep(ids, seen, left.min(self.config.slice));
                                backoff.note_sleep(begun.elapsed(), self.is_beside_waker());
                            }
                        }
                        break;
                    }
                }
                if is_packing {
                    break;
                }
            }
        }
    }

    /// Leaves the processor when the ranks that this one waits for take turns with it there.
    #[inline]
    pub(crate) fn note_wait(&self, backoff: &Backoff) {
        if self.config.leaves_processor && self.oversubscription.note_wait(backoff) {
            #[cfg(not(loom))]
            mpjdev_sys::processors::leave();
        }
    }

    /// Whether the rank that has ended the last sleep ran on the processor of this thread.
    fn is_beside_waker(&self) -> bool {
        #[cfg(not(loom))]
        let own = Some(mpjdev_sys::processors::current());
        #[cfg(loom)]
        let own = None;
        own.is_some() && self.transport.waker_processor() == own
    }

    /// Checks the limit of a wait. A thread that stops waiting hands the transport over to another one.
    fn check_limit(&self, limit: &mut WaitLimit<'_>) -> Result<Duration, DeviceError> {
        limit.check().inspect_err(|_| self.lock().state.waiters.hand_over_driver())
    }

    /// Counts an empty poll. This rank may wait for another one that does not call: a rank that never blocks
    /// must drive the others' progress too.
    #[inline]
    pub(crate) fn note_empty_poll(&self) {
        if self.empty_polls.fetch_add(1, Ordering::Relaxed) % EMPTY_POLLS == EMPTY_POLLS - 1 {
            self.progress_for_process();
            if self.transport.has_progress_threads() {
                self.wake_peers_we_wait_for(&self.lock().state);
            }
        }
    }

    pub(crate) fn progress_for_process(&self) {
        // This rank may have just made room for packets of others, and others for its own. Either this thread
        // sees their count, or they see the room in their last poll: every thread passes this fence before
        // that poll and its sleep.
        fence(Ordering::SeqCst);
        self.process_ranks().for_each(|rank| rank.progress_for_other());
    }

    /// Parks until something happens: on the transport if no other thread does, else on this thread's waiter.
    fn sleep(&self, ids: &[RequestId], seen: u64, most: Duration) {
        let waiter = Waiter::mine();
        waiter.reset();
        let mut core = self.lock();
        if !core.state.outbox.is_empty() {
            // A rank that made room earlier may have found the lock taken when it tried to drive this rank.
            self.flush(&mut core.state);
        }
        self.wake_peers_we_wait_for(&core.state);
        let seen_epoch = core.state.seen_epoch;
        let ended = || self.transport.epoch() != seen_epoch;
        if self.signals.changes() != seen || self.transport.is_ready() {
            return;
        }
        for id in ids {
            if let Some(request) = core.state.requests.get(*id) {
                request.waiters.push(waiter.clone());
            }
        }
        let drives = core.state.waiters.add(&waiter, ids.is_empty());
        drop(core);
        if drives {
            let mut ready = || {
                self.transport.is_ready()
                    || waiter.is_signalled()
                    || ended()
                    || self.signals.take_missed_progress()
            };
            self.transport.park(most, &mut ready);
        } else {
            waiter.sleep(most);
        }
        let mut core = self.lock();
        core.state.waiters.remove(&waiter);
        for id in ids {
            if let Some(request) = core.state.requests.get(*id) {
                request.waiters.retain(|w| !Arc::ptr_eq(w, &waiter));
            }
        }
    }

    /// Wakes the progress threads of the ranks that this rank's sends wait for: their programs may be
    /// computing.
    fn wake_peers_we_wait_for(&self, state: &State) {
        if !self.transport.has_progress_threads() {
            return;
        }
        // An incomplete send is queued or waits for its match ack. There may be very many: the counts are by
        // destination.
        let unanswered = state.credit.unanswered();
        let mut dests: Vec<u32> =
            unanswered.chain(state.outbox.dests()).filter(|dest| *dest != self.rank).collect();
        dests.sort_unstable();
        dests.dedup();
        dests.into_iter().for_each(|dest| self.transport.kick_progress_thread(dest));
    }

    /// Wakes all threads after a rank has ended, since that changes the conditions that they wait for. The
    /// transport wakes the driver; this wakes the others.
    #[cold]
    fn note_end(&self, state: &mut State) {
        state.waiters.note_change(&self.signals);
        state.waiters.signal_parked();
    }
}
