//! Completion of requests: tests and waits for it, cancellation, and the threads that it wakes.

use std::time::Instant;

use mpjdev_transport::wait::{Backoff, WaitControl};
use tracing::debug;

use crate::error::DeviceError;
use crate::packet::engine::{PacketEngine, State};
use crate::packet::requests::Work;
use crate::request::{Completed, RequestId};

impl PacketEngine {
    /// The outcome of a request if it is complete; the request is removed then.
    ///
    /// # Errors
    /// Those of the operation; no such request.
    pub fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError> {
        let mut core = self.lock();
        if let Some(outcome) = core.state.requests.take_outcome(id)? {
            return outcome.map(Some);
        }
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
        let done = core.state.requests.is_done(id);
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
        // A request of a window is often complete: the wait for an earlier one has handled its packet.
        if let Some(outcome) = self.lock().state.requests.take_outcome(id)? {
            return outcome;
        }
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
            Ok(ids.iter().position(|id| core.state.requests.is_done(*id)))
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

    /// Detaches a request (MPI_Request_free): its operation continues, and its outcome is dropped.
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

    /// Notifies threads that wait for no request: of an unexpected message, or of more octets of a message
    /// that they read.
    pub(crate) fn notify_observers(&self, state: &mut State) {
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
