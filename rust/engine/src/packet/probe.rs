//! Probes, and messages that a matched probe has taken out of matching.

use std::sync::Arc;

use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::send_policy::check_first;
use mpjdev_transport::waiting::{Backoff, Patience};

use crate::error::DeviceError;
use crate::packet::credit::Charge;
use crate::packet::endpoint::{Core, Endpoint, State};
use crate::packet::recv::{Unexpected, lengths, received};
use crate::packet::rendezvous::Then;
use crate::packet::requests::{Completed, Receive, RequestId, Work};

/// A message that was taken out of matching and waits for its receive. A dropped one is consumed: its sender
/// gets the match ack, and its memory is released.
#[derive(Debug)]
pub struct MatchedMessage {
    pub(crate) envelope: Envelope,
    needs_capacity: usize,
    /// `None` once it is received.
    message: Option<Taken>,
    /// The rank that consumes the message when this is dropped.
    pub(crate) owner: Option<Arc<Endpoint>>,
}

/// The part of a message that was taken out of matching.
#[derive(Debug)]
enum Taken {
    /// The message, or its first half.
    Message { message: Box<Unexpected>, may_be_half: bool },
    /// A receive that has started already. The unnumbered second half of a foreign message must not match
    /// another receive, and a sender that may still withdraw its message must receive the match ack.
    Receive(RequestId),
}

impl Drop for MatchedMessage {
    fn drop(&mut self) {
        if let (Some(owner), Some(taken)) = (self.owner.take(), self.message.take()) {
            let id = owner.receive_taken(self.envelope, taken, 0);
            owner.detach(id);
        }
    }
}

impl MatchedMessage {
    /// The message's envelope, its source numbered in the world.
    pub fn envelope(&self) -> Envelope {
        self.envelope
    }

    /// Capacity that the receiving buffer needs.
    pub fn needs_capacity(&self) -> usize {
        self.needs_capacity
    }

    /// Moves the message to the remains of its rank, which keep no credit.
    pub(crate) fn retire(&mut self, remains: &Arc<Endpoint>) {
        self.owner = Some(remains.clone());
        if let Some(Taken::Message { message, .. }) = &mut self.message {
            message.charge = Charge::default();
        }
    }
}

impl Endpoint {
    /// Polls for a message without receiving it (MPI_Iprobe). Returns its envelope and the capacity that it
    /// needs.
    ///
    /// # Errors
    /// This rank has finished, the job has failed, or no rank is left that could send such a message.
    pub fn probe_now(
        &self,
        selector: &Selector,
        members: &[u32],
    ) -> Result<Option<(Envelope, usize)>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
        let seen = self.peek(&mut core, selector, members);
        drop(core);
        if seen == Ok(None) {
            self.note_fruitless();
        }
        seen
    }

    fn peek(
        &self,
        core: &mut Core,
        selector: &Selector,
        members: &[u32],
    ) -> Result<Option<(Envelope, usize)>, DeviceError> {
        let look = |core: &Core| {
            core.state.matcher.probe(selector).map(|(envelope, message)| (envelope, message.needs_capacity()))
        };
        self.check_kept(&core.state, selector.context)?;
        if let Some(seen) = look(core) {
            return Ok(Some(seen));
        }
        let Some(error) = self.hopeless(selector, members) else { return Ok(None) };
        self.take_in_last(core);
        look(core).map(Some).ok_or(error)
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
        self.block(&[], None, Backoff::new(&self.config), patience, |core| {
            self.check_self(&core.state)?;
            self.peek(core, selector, members)
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
    ) -> Result<Option<MatchedMessage>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
        match core.state.matcher.take(selector) {
            Some((envelope, message)) => {
                let needs_capacity = message.needs_capacity();
                let begins = self.transport.is_foreign(envelope.source) || message.is_unnumbered_half();
                let taken = match begins {
                    true => Taken::Receive(self.receive_now(&mut core, envelope, *message, needs_capacity)),
                    false => {
                        let may_be_half = self.is_physical(envelope.source) && !message.is_all();
                        if may_be_half {
                            core.state.freed.add_probed(&envelope);
                        }
                        Taken::Message { message, may_be_half }
                    }
                };
                Ok(Some(MatchedMessage { envelope, needs_capacity, message: Some(taken), owner: None }))
            }
            None => {
                let seen = self.peek(&mut core, selector, members);
                drop(core);
                self.note_fruitless();
                seen.map(|_| None)
            }
        }
    }

    /// Receives a message that was taken out of matching (MPI_Imrecv).
    pub fn start_matched_receive(&self, mut matched: MatchedMessage, capacity: usize) -> RequestId {
        let message = matched.message.take().expect("a message is received or dropped once");
        self.receive_taken(matched.envelope, message, capacity)
    }

    fn receive_taken(&self, envelope: Envelope, taken: Taken, capacity: usize) -> RequestId {
        let mut core = self.lock();
        let id = match taken {
            Taken::Message { message, may_be_half } => {
                let id = self.receive_now(&mut core, envelope, *message, capacity);
                if may_be_half {
                    self.note_received(&mut core.state, &envelope);
                }
                id
            }
            Taken::Receive(id) => {
                receive_with(&mut core.state, id, capacity);
                id
            }
        };
        self.call_for_rest(&mut core, id, Some(envelope.source));
        id
    }

    fn receive_now(
        &self,
        core: &mut Core,
        envelope: Envelope,
        message: Unexpected,
        capacity: usize,
    ) -> RequestId {
        let receive = Receive { capacity, post: None, spare: None, members: None };
        let id = core.state.requests.add(Work::Receive(receive));
        self.deliver_unexpected(&mut core.state, id, envelope, message);
        self.give_up_receive(core, id, None);
        id
    }
}

/// Sets the final capacity of a receive that was started with room for the whole message.
fn receive_with(state: &mut State, id: RequestId, capacity: usize) {
    let State { halves, begun, requests, .. } = state;
    let begun = begun.iter_mut().filter_map(|begun| match &mut begun.then {
        Then::Half(half) => Some(&mut **half),
        Then::Receive(..) => None,
    });
    halves.iter_mut().chain(begun).filter(|h| h.request == id).for_each(|half| half.capacity = capacity);
    let Some(request) = requests.get(id) else { return };
    if let Work::Receive(receive) = &mut request.work {
        receive.capacity = capacity;
    }
    let outcome = request.outcome.take();
    request.outcome = outcome.map(|done| done.and_then(|done| within(done, capacity)));
}

/// The received message, if it fits the capacity.
fn within(done: Completed, capacity: usize) -> Result<Completed, DeviceError> {
    let (Some(envelope), Some(message)) = (done.envelope, done.message) else {
        return Err(DeviceError::NoSuchRequest);
    };
    check_first(message.first_len(), capacity).map_err(|error| lengths(error, &envelope))?;
    Ok(received(envelope, message.received_by(capacity)))
}
