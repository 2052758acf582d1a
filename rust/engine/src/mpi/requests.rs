//! The request table of a rank over a C MPI: pending operations and their outcomes.

use std::sync::atomic::Ordering;
use std::time::Instant;

use mpjdev_transport::wait::{Backoff, WaitControl};

use super::recv::{Receive, RecvStage};
use super::retirement::VISITS;
use super::send::Sending;
use super::{Rank, State};
use crate::error::DeviceError;
use crate::operation::Mode;
use crate::request::{Completed, RequestId};
use crate::request_table::RequestTable;

/// Most requests that one poll of the table advances, whatever the number of requests.
const ADVANCED: usize = 256;
/// Slots that one poll visits.
const VISITED: usize = 4096;

/// The operation of a request.
#[derive(Debug)]
enum Work {
    /// A send, in a box: a request of a receive, which moves often, is half as long.
    Send(Box<Sending>),
    Receive(Receive),
}

#[derive(Debug)]
struct Request {
    /// `None` when it is complete.
    work: Option<Work>,
    outcome: Option<Result<Completed, DeviceError>>,
    /// No thread will ask for the outcome.
    is_detached: bool,
    /// Destination in the world, tag and octets of an undelivered message.
    lost: Option<(u32, i32, usize)>,
}

/// All requests of a rank.
///
/// Invariant: `sends` counts the sends in the table that are incomplete.
#[derive(Debug, Default)]
pub(super) struct Requests {
    table: RequestTable<Request>,
    /// The slot at which the next poll of the table continues.
    cursor: usize,
    /// Incomplete sends, and those of them that count as unmatched, by world rank.
    sends: Vec<(u32, u32)>,
}

impl Requests {
    fn add(&mut self, work: Work) -> RequestId {
        if let Work::Send(sending) = &work {
            let dest = sending.dest as usize;
            if self.sends.len() <= dest {
                self.sends.resize(dest + 1, (0, 0));
            }
            self.sends[dest].0 += 1;
            self.sends[dest].1 += u32::from(sending.is_counted);
        }
        self.table.add(Request { work: Some(work), outcome: None, is_detached: false, lost: None })
    }

    pub(super) fn add_send(&mut self, sending: Sending) -> RequestId {
        self.add(Work::Send(Box::new(sending)))
    }

    /// Takes the outcome of a complete request and removes the request.
    fn take_outcome(&mut self, id: RequestId) -> Result<Option<Result<Completed, DeviceError>>, DeviceError> {
        let request = self.table.get(id).ok_or(DeviceError::NoSuchRequest)?;
        match request.outcome.take() {
            Some(outcome) => {
                self.table.discard(id);
                Ok(Some(outcome))
            }
            None => Ok(None),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// An incomplete send.
    pub(super) fn sending(&mut self, id: RequestId) -> Option<&mut Sending> {
        match &mut self.table.get(id)?.work {
            Some(Work::Send(sending)) => Some(sending),
            _ => None,
        }
    }

    /// The destinations of incomplete sends.
    pub(super) fn dests(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.sends).filter(|(_, sends)| sends.0 > 0).map(|(dest, _)| dest)
    }

    /// Sends to a rank that count as unmatched.
    pub(super) fn unmatched(&self, dest: u32) -> u32 {
        self.sends.get(dest as usize).map_or(0, |sends| sends.1)
    }

    fn note_done(&mut self, sending: &Sending) {
        let sends = &mut self.sends[sending.dest as usize];
        sends.0 -= 1;
        sends.1 -= u32::from(sending.is_counted);
    }

    /// The next request with an incomplete operation. At most `visits` slots from the cursor on are visited.
    fn next_undone(&mut self, visits: &mut usize) -> Option<RequestId> {
        while *visits > 0 && self.table.slot_count() > 0 {
            *visits -= 1;
            let at = self.cursor % self.table.slot_count();
            self.cursor = at + 1;
            if let Some((id, Request { work: Some(_), .. })) = self.table.in_slot(at) {
                return Some(id);
            }
        }
        None
    }
}

impl Requests {
    /// Undelivered messages that were not reported: destination in the world, tag and octets. Standard sends
    /// to ranks that receive nothing more do not count.
    pub(super) fn lost(&self, has_finished: impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, i32, usize)> {
        self.table.iter().map(|(_, request)| request).filter_map(move |request| match &request.work {
            Some(Work::Send(sending)) if sending.mode == Mode::Standard && has_finished(sending.dest) => None,
            Some(Work::Send(sending)) => Some((sending.dest, sending.tag, sending.len)),
            _ => request.lost,
        })
    }
}

/// The operations that a poll fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailIf {
    /// Operations that no rank can complete any more.
    Impossible,
    /// Those, and operations that only this rank itself could complete: its thread waits for them.
    Awaited,
}

impl Rank {
    /// Adds a posted receive to the table.
    pub(super) fn keep_receive(&self, receive: Receive) -> RequestId {
        self.state().requests.add(Work::Receive(receive))
    }

    /// Advances a request; true when it is complete or removed.
    pub(super) fn advance(&self, state: &mut State, id: RequestId, fail_if: FailIf) -> bool {
        let State { requests, pairs, peers, .. } = state;
        let Some(request) = requests.table.get(id) else { return true };
        let Some(work) = &mut request.work else { return true };
        let outcome = match work {
            Work::Receive(receive) => match receive.advance() {
                Ok(None) => self.unsatisfiable(peers, receive, fail_if).and_then(|error| end(receive, error)),
                over => over.transpose(),
            },
            Work::Send(sending) => match sending.advance() {
                Ok(true) if !sending.match_ack().is_some_and(|number| self.awaits_match_ack(number)) => {
                    Some(Ok(Completed::SENT))
                }
                Ok(_) => self.unsatisfiable_send(peers, sending.dest).map(Err),
                Err(error) => Some(Err(error)),
            },
        };
        let Some(outcome) = outcome else { return false };
        let mut done = None;
        if let Some(Work::Send(sending)) = request.work.take_if(|work| matches!(work, Work::Send(_))) {
            self.close(pairs, &sending);
            self.own.fetch_sub(sending.charged, Ordering::Relaxed);
            let is_left_there = matches!(outcome, Err(DeviceError::PeerFinished { .. }));
            // A receiver that finishes reports the standard sends that it has not received.
            if outcome.is_err() && !(is_left_there && sending.mode == Mode::Standard) {
                request.lost = Some((sending.dest, sending.tag, sending.len));
            }
            done = Some(sending);
        }
        request.work = None;
        request.outcome = Some(outcome);
        if request.is_detached {
            peers.note_lost(request.lost);
            requests.table.discard(id);
        }
        if let Some(sending) = done {
            requests.note_done(&sending);
        }
        true
    }

    /// Drives progress: polls a part of all requests, another part each time, and receives notices of
    /// finished ranks.
    pub(crate) fn progress(&self) {
        self.progress_with(VISITED, ADVANCED);
    }

    /// Drives progress with all requests.
    pub(super) fn progress_all(&self) {
        self.progress_with(usize::MAX, usize::MAX);
    }

    fn progress_with(&self, visits: usize, advanced: usize) {
        self.spill();
        self.progress_match_acks();
        let mut state = self.state();
        self.receive_notices(&mut state.peers);
        self.progress_send_queues(&mut state);
        let mut visits = visits.min(state.requests.table.slot_count());
        for _ in 0..advanced {
            let Some(id) = state.requests.next_undone(&mut visits) else { break };
            self.advance(&mut state, id, FailIf::Impossible);
        }
        drop(state);
        let abandoned = std::mem::take(&mut *self.abandoned.lock());
        let mut left = Vec::new();
        for mut receive in abandoned {
            if let (Ok(None), false) = (receive.advance(), matches!(receive.stage, RecvStage::Over)) {
                left.push(receive);
            }
        }
        if !left.is_empty() {
            self.abandoned.lock().append(&mut left);
        }
        self.visit_freed(VISITS);
    }

    pub(super) fn poll_request(&self, state: &mut State, id: RequestId) -> Result<bool, DeviceError> {
        let request = state.requests.table.get(id).ok_or(DeviceError::NoSuchRequest)?;
        if request.outcome.is_some() {
            return Ok(true);
        }
        if let Some(Work::Send(sending)) = &request.work {
            let (dest, is_deferred, is_acked) =
                (sending.dest, sending.deferred.is_some(), sending.match_ack().is_some());
            if is_deferred {
                self.progress_send_queue(state, dest);
            }
            if is_acked {
                self.receive_notices(&mut state.peers);
            }
        }
        Ok(self.advance(state, id, FailIf::Awaited))
    }

    /// The outcome of a request if it is complete; the request is removed then.
    pub(crate) fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError> {
        let outcome = self.poll_outcome(id)?;
        if outcome.is_none() {
            self.note_empty_poll();
        }
        outcome.transpose()
    }

    /// Whether a request is complete. A complete request stays complete.
    pub(crate) fn is_done(&self, id: RequestId) -> bool {
        let is_done = self.poll_request(&mut self.state(), id).unwrap_or(true);
        if !is_done {
            self.note_empty_poll();
        }
        is_done
    }

    /// Waits for a request, until the deadline if there is one.
    pub(crate) fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError> {
        // Most requests of a window are complete when the program waits for them.
        if let Some(outcome) = self.poll_outcome(id)? {
            return outcome;
        }
        self.block(deadline, Backoff::new(&self.config), wait_control, || self.poll_outcome(id))?
    }

    /// Polls a request; takes its outcome and removes it when it is complete.
    fn poll_outcome(&self, id: RequestId) -> Result<Option<Result<Completed, DeviceError>>, DeviceError> {
        let mut state = self.state();
        self.poll_request(&mut state, id)?;
        state.requests.take_outcome(id)
    }

    /// Waits until one of the requests is complete and returns its index.
    pub(crate) fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        self.block_for(ids.len(), deadline, Backoff::new(&self.config), wait_control, || {
            let mut state = self.state();
            Ok(ids.iter().position(|id| self.poll_request(&mut state, *id).unwrap_or(true)))
        })
    }

    /// Cancels a request. True when it will never be matched, which is certain for a receive without a
    /// message. A send is never cancelled.
    pub(crate) fn cancel(&self, id: RequestId) -> Result<bool, DeviceError> {
        let mut state = self.state();
        if self.poll_request(&mut state, id)? {
            return Ok(false);
        }
        let request = state.requests.table.get(id).ok_or(DeviceError::NoSuchRequest)?;
        let Some(Work::Receive(receive)) = &mut request.work else { return Ok(false) };
        let Some(outcome) = receive.withdraw() else { return Ok(false) };
        let is_cancelled = matches!(outcome, Err(DeviceError::Cancelled));
        request.work = None;
        request.outcome = Some(outcome);
        Ok(is_cancelled)
    }

    /// Detaches a request: its operation continues, and its outcome is dropped.
    pub(crate) fn detach(&self, id: RequestId) {
        let mut state = self.state();
        let Some(request) = state.requests.table.get(id) else { return };
        request.is_detached = true;
        if request.outcome.is_some() {
            state.requests.table.discard(id);
        }
    }

    /// Ends all incomplete receives with an error.
    pub(super) fn end_receives(&self, error: &DeviceError) {
        let mut state = self.state();
        for index in 0..state.requests.table.slot_count() {
            let Some((id, request)) = state.requests.table.in_slot(index) else { continue };
            let Some(Work::Receive(receive)) = &mut request.work else { continue };
            let Some(outcome) = end(receive, error.clone()) else { continue };
            request.work = None;
            request.outcome = Some(outcome);
            if request.is_detached {
                state.requests.table.discard(id);
            }
        }
    }

    /// Advances a receive that its thread waits for.
    pub(super) fn advance_asked(&self, receive: &mut Receive) -> Result<Option<Completed>, DeviceError> {
        match receive.advance()? {
            None if self.has_ended() || self.check_unfinished().is_err() => {
                let error = match self.check_unfinished() {
                    Err(error) if self.state().peers.is_over() => Some(error),
                    _ => self.unsatisfiable(&self.state().peers, receive, FailIf::Awaited),
                };
                error.and_then(|error| end(receive, error)).transpose()
            }
            completed => Ok(completed),
        }
    }
}

/// Ends a receive with this error, unless its message has arrived; `None` when the message has an RTS only.
fn end(receive: &mut Receive, error: DeviceError) -> Option<Result<Completed, DeviceError>> {
    match receive.withdraw()? {
        Err(DeviceError::Cancelled) => Some(Err(error)),
        outcome => Some(outcome),
    }
}
