//! The request table of one rank: pending operations, and the threads that wait for them.

use std::sync::Arc;

use mpjdev_proto::matching::PostId;
use mpjdev_transport::wait::Waiter;

use crate::error::DeviceError;
use crate::operation::{Accept, Mode};
use crate::request::{Completed, RequestId};
use crate::request_table::RequestTable;

/// The operation of a request.
#[derive(Debug)]
pub(crate) enum Work {
    /// A send that waits to leave or to be matched.
    Send {
        /// Destination, numbered in the world.
        dest: u32,
        /// The message's tag.
        tag: i32,
        /// Octets of the logical message; `None` for the first half of a split one, for which the second half
        /// counts.
        len: Option<usize>,
        /// Pairing number that is free again when this is complete.
        pair: Option<u32>,
        /// Octets that count against the credit until this is complete.
        charged: u64,
        /// The send mode of the program.
        mode: Mode,
    },
    /// A receive.
    Receive(Receive),
}

/// A pending receive.
#[derive(Debug)]
pub(crate) struct Receive {
    /// Octets of primary payload that the receiver has room for.
    pub(crate) capacity: usize,
    /// Its id among the posted receives; `None` once its first message has arrived.
    pub(crate) post: Option<PostId>,
    /// Memory that an inline message may be copied to.
    pub(crate) spare: Option<mpjdev_buffer::Slab>,
    /// Whether it takes a message before all octets have arrived.
    pub(crate) accept: Accept,
    /// World ranks of the communicator for a receive from any source: it fails when no other member is left.
    /// `None` for a given source.
    pub(crate) members: Option<Arc<[u32]>>,
}

impl Receive {
    /// World ranks of which one has to be left; empty when the source is given.
    pub(crate) fn members(&self) -> &[u32] {
        self.members.as_deref().unwrap_or_default()
    }
}

/// A pending operation, or its outcome.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) work: Work,
    pub(crate) outcome: Option<Result<Completed, DeviceError>>,
    /// The threads that wait for its completion.
    pub(crate) waiters: Vec<Arc<Waiter>>,
    /// No thread will ask for the outcome.
    detached: bool,
}

impl Request {
    /// Whether its message has been received and its sender still packs it. Fails it if the sender has
    /// stopped packing.
    fn is_packing(&mut self) -> bool {
        let Some(Ok(Completed { message: Some(message), envelope })) = &mut self.outcome else {
            return false;
        };
        if message.is_packed() {
            return false;
        }
        if message.packed_len().is_none() {
            let source = envelope.map_or(0, |envelope| envelope.source);
            self.outcome = Some(Err(DeviceError::unpacked(source)));
            return false;
        }
        true
    }

    fn dest(&self) -> Option<u32> {
        match self.work {
            Work::Send { dest, .. } => Some(dest),
            Work::Receive(_) => None,
        }
    }

    fn is_standard(&self) -> bool {
        matches!(self.work, Work::Send { mode: Mode::Standard, .. })
    }

    /// Whether a send with this error counts as undelivered. Standard sends to a receiver that finishes do
    /// not: the receiver names the messages that it has not received. A synchronous send asks for the match
    /// itself.
    fn is_missed(&self, error: &DeviceError) -> bool {
        !(self.is_standard() && matches!(error, DeviceError::PeerFinished { .. }))
    }

    /// Destination, tag and logical length of a send that is reported as a message.
    fn send(&self) -> Option<(u32, i32, usize)> {
        match self.work {
            Work::Send { dest, tag, len: Some(len), .. } => Some((dest, tag, len)),
            _ => None,
        }
    }
}

/// All requests of a rank.
///
/// Invariant: `pending` counts the requests in the table that have no outcome.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    table: RequestTable<Request>,
    pending: usize,
    /// A thread was found waiting for a message that its sender still packs.
    saw_packing: bool,
}

impl Requests {
    pub(crate) fn add(&mut self, work: Work) -> RequestId {
        self.pending += 1;
        self.table.add(Request { work, outcome: None, waiters: Vec::new(), detached: false })
    }

    /// Adds a receive that is complete.
    pub(crate) fn add_complete_receive(
        &mut self,
        capacity: usize,
        outcome: Result<Completed, DeviceError>,
    ) -> RequestId {
        let accept = Accept::Packed;
        let work = Work::Receive(Receive { capacity, post: None, spare: None, accept, members: None });
        self.table.add(Request { work, outcome: Some(outcome), waiters: Vec::new(), detached: false })
    }

    /// Adds a receive of `capacity` whose message is matched, and whose outcome no thread will ask for.
    pub(crate) fn add_detached_receive(&mut self, capacity: usize) -> RequestId {
        let accept = Accept::Packed;
        let id =
            self.add(Work::Receive(Receive { capacity, post: None, spare: None, accept, members: None }));
        self.detach(id);
        id
    }

    pub(crate) fn get(&mut self, id: RequestId) -> Option<&mut Request> {
        self.table.get(id)
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.table.remove(id)?;
        self.pending -= usize::from(request.outcome.is_none());
        Some(request)
    }

    /// Stores the outcome; returns the waiters to be woken.
    pub(crate) fn complete(
        &mut self,
        id: RequestId,
        outcome: Result<Completed, DeviceError>,
    ) -> Vec<Arc<Waiter>> {
        let Some(request) = self.get(id) else { return Vec::new() };
        if request.detached {
            self.remove(id);
            return Vec::new();
        }
        let is_first = request.outcome.replace(outcome).is_none();
        let waiters = std::mem::take(&mut request.waiters);
        self.pending -= usize::from(is_first);
        waiters
    }

    /// Takes the outcome of a complete request and removes the request; `None` while it is pending. A receive
    /// whose sender still packs the message is pending.
    pub(crate) fn take_outcome(
        &mut self,
        id: RequestId,
    ) -> Result<Option<Result<Completed, DeviceError>>, DeviceError> {
        self.take_accepted(id, Accept::Packed)
    }

    /// As [`take_outcome`](Self::take_outcome); `accept` states whether a receive is complete whose sender
    /// still packs the message.
    pub(crate) fn take_accepted(
        &mut self,
        id: RequestId,
        accept: Accept,
    ) -> Result<Option<Result<Completed, DeviceError>>, DeviceError> {
        let request = self.get(id).ok_or(DeviceError::NoSuchRequest)?;
        if request.outcome.is_none() {
            return Ok(None);
        }
        if accept == Accept::Packed && request.is_packing() {
            self.saw_packing = true;
            return Ok(None);
        }
        // In its slot: a request is long to copy.
        let outcome = request.outcome.take();
        self.table.discard(id);
        Ok(outcome)
    }

    /// The world rank that still packs the message of a receive.
    pub(crate) fn packing_source(&mut self, id: RequestId) -> Option<u32> {
        let request = self.get(id)?;
        let source = request.outcome.as_ref()?.as_ref().ok()?.envelope?.source;
        request.is_packing().then_some(source)
    }

    /// Whether a request is complete or removed. A receive whose sender still packs the message is not
    /// complete.
    pub(crate) fn is_done(&mut self, id: RequestId) -> bool {
        let Some(request) = self.get(id) else { return true };
        let is_packing = request.is_packing();
        let is_done = request.outcome.is_some() && !is_packing;
        self.saw_packing |= is_packing;
        is_done
    }

    /// Notes that a thread waits for a message that its sender still packs.
    pub(crate) fn note_packing(&mut self) {
        self.saw_packing = true;
    }

    /// Whether a thread was found waiting for a message that its sender still packs, since the last call.
    pub(crate) fn take_saw_packing(&mut self) -> bool {
        std::mem::take(&mut self.saw_packing)
    }

    /// Fails a receive whose message will never be packed, unless it is packed by now.
    #[cold]
    pub(crate) fn fail_unpacked(&mut self, id: RequestId, error: DeviceError) {
        if let Some(request) = self.get(id)
            && request.is_packing()
        {
            request.outcome = Some(Err(error));
        }
    }

    /// Marks that no thread will ask for the outcome: drops it now, or on completion.
    pub(crate) fn detach(&mut self, id: RequestId) {
        match self.get(id) {
            Some(request) if request.outcome.is_none() => request.detached = true,
            Some(_) => drop(self.remove(id)),
            None => {}
        }
    }

    /// Whether requests are pending.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// The pending requests. Scans the whole table, which never shrinks, unless no request is pending.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        let requests = self.has_pending().then(|| self.table.iter()).into_iter().flatten();
        requests.filter(|(_, request)| request.outcome.is_none())
    }

    /// Destination, tag and logical length of the sends that are pending, or have failed and were not waited
    /// for. Standard sends to ranks that receive nothing more do not count.
    pub(crate) fn unfinished_sends(
        &self,
        has_finished: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (u32, i32, usize)> {
        let requests = self.table.iter().map(|(_, request)| request);
        requests
            .filter(move |request| match &request.outcome {
                Some(Ok(_) | Err(DeviceError::Cancelled)) => false,
                Some(Err(error)) => request.is_missed(error),
                None => !request.dest().is_some_and(&has_finished) || !request.is_standard(),
            })
            .filter_map(Request::send)
    }

    /// Destination, tag and logical length of a detached send that fails with this error and counts as
    /// undelivered.
    pub(crate) fn forgotten_send(&mut self, id: RequestId, error: &DeviceError) -> Option<(u32, i32, usize)> {
        self.get(id).filter(|r| r.detached && r.is_missed(error)).and_then(|r| r.send())
    }

    /// The requests whose outcome may still be asked for, in their state after the end of their rank:
    /// complete or failed.
    #[cfg(not(loom))]
    pub(crate) fn outcomes(&self, rank: u32) -> Requests {
        let table = self.table.filter_map(|request| {
            if request.detached {
                return None;
            }
            let outcome = request.outcome.clone().unwrap_or(Err(DeviceError::Finished { rank }));
            let work =
                Work::Send { dest: rank, tag: 0, len: None, pair: None, charged: 0, mode: Mode::Standard };
            Some(Request { work, outcome: Some(outcome), waiters: Vec::new(), detached: false })
        });
        Requests { table, pending: 0, saw_packing: false }
    }

    /// Number of requests whose outcome was not taken.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn send() -> Work {
        Work::Send { dest: 0, tag: 0, len: None, pair: None, charged: 0, mode: Mode::Standard }
    }

    #[test]
    fn pending_are_counted_however_they_end() {
        let mut requests = Requests::default();
        let ids: Vec<RequestId> = (0..5).map(|_| requests.add(send())).collect();
        requests.complete(ids[0], Ok(Completed::SENT));
        requests.complete(ids[0], Err(DeviceError::Cancelled));
        requests.detach(ids[1]);
        requests.complete(ids[1], Ok(Completed::SENT));
        requests.detach(ids[0]);
        requests.remove(ids[2]);
        requests.complete(ids[2], Ok(Completed::SENT));
        assert!(requests.has_pending() && requests.pending().count() == 2);
        requests.complete(ids[3], Ok(Completed::SENT));
        assert!(requests.take_outcome(ids[3]).is_ok_and(|outcome| outcome.is_some()));
        assert!(requests.take_outcome(ids[4]).is_ok_and(|outcome| outcome.is_none()));
        assert!(requests.has_pending() && requests.pending().count() == 1);
        requests.complete(ids[4], Ok(Completed::SENT));
        assert!(!requests.has_pending() && requests.pending().next().is_none());
        assert!(!requests.outcomes(0).has_pending());
    }
}
