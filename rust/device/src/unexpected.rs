//! Messages that arrived before their receive, and how an arriving packet finds its way.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::copy_words;
use mpjdev_buffer::{BufferError, Message, Slab, SlabError};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::send_policy::check_first;

use crate::config::{CREDIT_OVERHEAD, INLINE_MAX, UNANSWERED_MAX};
use crate::endpoint::{Endpoint, State};
use crate::error::DeviceError;
use crate::outbox::Queued;
use crate::requests::{Completed, RequestId, Work};
use crate::transport::{Header, Incoming, Kind, NotAllowed, Payload, PeerState};

/// A message whose receive has not been posted.
#[derive(Debug)]
pub(crate) struct Unexpected {
    payload: Result<Payload, SlabError>,
    charge: Charge,
}

impl Unexpected {
    /// Capacity that a receiver needs: octets of the first physical message without the headers.
    pub(crate) fn needs_capacity(&self) -> usize {
        let first_len = match &self.payload {
            Ok(Payload::Whole(message)) => message.first_len(),
            Ok(Payload::Physical(_, len) | Payload::Headed(_, len, _) | Payload::Parts((_, len), _)) => *len,
            Err(_) => 0,
        };
        first_len.saturating_sub(mpjdev_buffer::layout::MESSAGE_OVERHEAD)
    }
}

/// A message that was taken out of matching and waits for its receive. One that is dropped instead is consumed: its
/// sender goes on, and nothing of it stays.
#[derive(Debug)]
pub struct MatchedMessage {
    pub(crate) envelope: Envelope,
    /// None once it is received.
    pub(crate) message: Option<Box<Unexpected>>,
    /// Who consumes it when it is dropped.
    pub(crate) owner: Option<Arc<Endpoint>>,
}

impl Drop for MatchedMessage {
    fn drop(&mut self) {
        if let (Some(owner), Some(message)) = (self.owner.take(), self.message.take()) {
            let id = owner.receive_taken(self.envelope, *message, 0);
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
        self.message.as_ref().map_or(0, |message| message.needs_capacity())
    }
}

/// What a message counts for until it is matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// Octets against its sender's credit; none when the sender waits.
    credit: u64,
    /// Octets of this rank's memory.
    here: u64,
    /// The sender's request, when it waits to hear that the message is matched.
    token: Option<u64>,
}

impl Charge {
    #[inline]
    fn of(body: &Incoming<'_>, token: Option<u64>) -> Charge {
        let (held, here) = match body {
            Incoming::Inline(_, len) => (*len as u64, *len as u64),
            Incoming::Reference(payload) => (payload.held_len() as u64, 0),
            Incoming::Nothing => (0, 0),
        };
        let credit = if token.is_some() { 0 } else { held + CREDIT_OVERHEAD };
        Charge { credit, here: here + CREDIT_OVERHEAD, token }
    }
}

/// What one rank has sent this one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Octets against the credit that were matched, and those of them that the source was told of.
    matched: u64,
    told: u64,
    /// Octets of this rank's memory in messages that are not matched and did not wait for it.
    here: u64,
    /// Messages that are not matched and whose sender waits for that.
    waiting: u32,
}

impl Account {
    /// Takes a message to account.
    ///
    /// # Errors
    /// Its sender should have waited.
    #[inline]
    fn enter(&mut self, charge: &Charge, credit: u64) -> Result<(), NotAllowed> {
        if charge.token.is_some() {
            if self.waiting >= UNANSWERED_MAX {
                return Err(NotAllowed("more messages that wait to be matched than may"));
            }
            self.waiting += 1;
            return Ok(());
        }
        // One message may go beyond the credit.
        if self.here > credit + INLINE_MAX as u64 + CREDIT_OVERHEAD {
            return Err(NotAllowed("more messages than its credit allows"));
        }
        self.here += charge.here;
        Ok(())
    }

    /// A message of the account is matched. Gives the octets that its sender should be told of.
    #[inline]
    fn settle(&mut self, charge: &Charge, credit: u64) -> Option<u64> {
        if charge.token.is_some() {
            self.waiting -= 1;
            return None;
        }
        self.here -= charge.here;
        // What a peer says of the slabs that it lends may be nonsense, which harms its own credit only.
        self.matched = self.matched.wrapping_add(charge.credit);
        // A quarter of the credit at a time, so that a message does not cost the sender's line each time.
        (self.matched.wrapping_sub(self.told) > credit / 4).then(|| {
            self.told = self.matched;
            self.matched
        })
    }
}

/// A receive that is not posted and takes what fits as it comes.
#[derive(Debug)]
pub(crate) struct Taker<'a> {
    pub(crate) selector: Selector,
    pub(crate) capacity: usize,
    /// Where the message goes. What is there before is memory that nobody else refers to.
    pub(crate) place: &'a mut Option<Message>,
    pub(crate) taken: Option<Result<Envelope, DeviceError>>,
}

impl Taker<'_> {
    /// Takes a message that is in memory of its own.
    pub(crate) fn take(&mut self, payload: Result<Payload, SlabError>, envelope: Envelope) {
        let message = arrived_whole(payload, self.capacity, &envelope);
        self.taken = Some(message.map(|message| {
            *self.place = Some(message);
            envelope
        }));
    }

    /// Takes a message that is inline into the memory that is there; false when there is none that it fits.
    #[inline(always)]
    fn take_inline(&mut self, words: &[AtomicU64], len: usize, envelope: Envelope) -> bool {
        let Some(message) = self.place.as_mut().filter(|message| message.room() >= len) else { return false };
        self.taken = Some(match check_first(len, self.capacity) {
            Ok(()) => {
                copy_words(words, 0, message.first_words(), 0, len);
                message.receive(len, self.capacity).map(|()| envelope).map_err(damaged(&envelope))
            }
            Err(error) => Err(lengths(error, &envelope)),
        });
        true
    }
}

impl Endpoint {
    /// Takes in one packet: for the earliest posted receive that it fits, or else for the taker.
    ///
    /// # Errors
    /// Its sender should have waited; nothing has changed.
    #[inline]
    pub(crate) fn arrive(
        &self,
        state: &mut State,
        source: u32,
        header: Header,
        body: Incoming<'_>,
        taker: Option<&mut Taker<'_>>,
    ) -> Result<(), NotAllowed> {
        let envelope = Envelope { context: header.context, source, tag: header.tag };
        let token = match header.kind {
            Kind::Matched => {
                self.arrive_answer(state, source, header.token.into());
                return Ok(());
            }
            Kind::Synchronous => Some(header.token),
            Kind::Eager => None,
        };
        let charge = Charge::of(&body, token);
        state.accounts[source as usize].enter(&charge, self.config.credit)?;
        if self.arrive_half(state, &envelope, &body) {
            self.matched(state, source, &charge);
            return Ok(());
        }
        let posted = match state.matcher.posted_len() {
            0 => None,
            _ => state.matcher.match_arrival(&envelope),
        };
        match (posted, taker) {
            (Some((id, _)), _) => {
                let spare = match state.requests.get(id).map(|r| &mut r.work) {
                    Some(Work::Receive(receive)) => {
                        receive.post = None;
                        receive.spare.take()
                    }
                    _ => None,
                };
                let payload = self.keep(body, spare);
                self.matched(state, source, &charge);
                self.deliver(state, id, envelope, payload);
            }
            // Last of all: it came after those that are posted.
            (None, Some(taker)) if taker.taken.is_none() && taker.selector.matches(&envelope) => {
                let is_taken = match &body {
                    Incoming::Inline(words, len) => taker.take_inline(words, *len, envelope),
                    _ => false,
                };
                if !is_taken {
                    taker.take(self.keep(body, None), envelope);
                }
                self.matched(state, source, &charge);
            }
            (None, _) => {
                let payload = self.keep(body, None);
                state.matcher.add_unexpected(envelope, Box::new(Unexpected { payload, charge }));
                self.note_unexpected(state);
            }
        }
        Ok(())
    }

    /// Takes in an answer: it completes a send that is under way to the rank that answers, and nothing else.
    fn arrive_answer(&self, state: &mut State, source: u32, id: RequestId) {
        let request = state.requests.get(id).filter(|r| r.outcome.is_none());
        if request.is_some_and(|r| matches!(r.work, Work::Send { dest, .. } if dest == source)) {
            self.complete(state, id, Ok(Completed::SENT));
        }
        let unanswered = &mut state.unanswered[source as usize];
        *unanswered = unanswered.saturating_sub(1);
    }

    /// Gives an unexpected message to the receive that has just been posted.
    pub(crate) fn deliver_unexpected(
        &self,
        state: &mut State,
        id: RequestId,
        envelope: Envelope,
        message: Unexpected,
    ) {
        let payload = self.take_unexpected(state, envelope, message);
        self.deliver(state, id, envelope, payload);
    }

    /// The octets of an unexpected message, whose sender is told that it is matched.
    pub(crate) fn take_unexpected(
        &self,
        state: &mut State,
        envelope: Envelope,
        message: Unexpected,
    ) -> Result<Payload, SlabError> {
        self.matched(state, envelope.source, &message.charge);
        message.payload
    }

    /// The octets of a packet for longer than the call: copied to `spare` or fresh memory when they are inline. The rank's
    /// lock is held, so this must not wait for whoever frees memory: they may need the lock.
    #[inline]
    pub(crate) fn keep(&self, body: Incoming<'_>, spare: Option<Slab>) -> Result<Payload, SlabError> {
        match body {
            Incoming::Reference(payload) => Ok(payload),
            Incoming::Nothing => Ok(Payload::Physical(self.source.take_arrived(0)?, 0)),
            Incoming::Inline(words, len) => {
                let slab = match spare {
                    Some(slab) if slab.len() >= len => slab,
                    _ => self.source.take_arrived(len)?,
                };
                copy_words(words, 0, slab.words(), 0, len);
                Ok(Payload::Physical(slab, len))
            }
        }
    }

    /// Tells the sender of a message that it is matched: its request, or its credit.
    #[inline]
    fn matched(&self, state: &mut State, source: u32, charge: &Charge) {
        // Nobody empties the queue of a rank that has finished: what is meant for it would wait here for ever.
        if let Some(token) = charge.token
            && (self.wire.epoch() == 0 || self.wire.peer(source) == PeerState::Alive)
        {
            let header = Header { kind: Kind::Matched, context: 0, tag: 0, token };
            self.enqueue(state, Queued { dest: source, header, payload: None, request: None });
        }
        if let Some(octets) = state.accounts[source as usize].settle(charge, self.config.credit) {
            self.wire.tell_matched(source, octets);
        }
    }

    /// Gives a message's first packet to its receive.
    fn deliver(
        &self,
        state: &mut State,
        id: RequestId,
        envelope: Envelope,
        payload: Result<Payload, SlabError>,
    ) {
        let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &r.work) else { return };
        let capacity = receive.capacity;
        let outcome = match payload {
            Ok(Payload::Physical(slab, len)) if self.config.message_oriented => {
                return self.deliver_first(state, id, envelope, slab, len, capacity);
            }
            payload => arrived_whole(payload, capacity, &envelope),
        };
        self.complete(state, id, outcome.map(|m| received(envelope, m)));
    }
}

/// The message of a packet that is all of it.
#[inline(always)]
pub(crate) fn arrived_whole(
    payload: Result<Payload, SlabError>,
    capacity: usize,
    envelope: &Envelope,
) -> Result<Message, DeviceError> {
    match payload? {
        Payload::Whole(message) => whole(message, capacity, envelope),
        Payload::Physical(slab, len) => physical(slab, len, None, capacity, envelope),
        Payload::Headed(slab, len, headers) => {
            check_first(len, capacity).map_err(|e| lengths(e, envelope))?;
            Message::from_headed(slab, len, headers, capacity).map_err(damaged(envelope))
        }
        Payload::Parts((slab, len), second) => physical(slab, len, Some(second), capacity, envelope),
    }
}

/// What a receive gives.
pub(crate) fn received(envelope: Envelope, message: Message) -> Completed {
    Completed { envelope: Some(envelope), message: Some(message) }
}

fn whole(message: Message, capacity: usize, envelope: &Envelope) -> Result<Message, DeviceError> {
    check_first(message.first_len(), capacity).map_err(|e| lengths(e, envelope))?;
    Ok(message.received_by(capacity))
}

/// A message of its physical messages, checked.
#[inline]
pub(crate) fn physical(
    slab: Slab,
    len: usize,
    second: Option<(Slab, usize)>,
    capacity: usize,
    envelope: &Envelope,
) -> Result<Message, DeviceError> {
    check_first(len, capacity).map_err(|e| lengths(e, envelope))?;
    Message::from_physical(slab, len, second, capacity).map_err(damaged(envelope))
}

/// Damage with the sender in it.
#[inline]
fn damaged(envelope: &Envelope) -> impl Fn(BufferError) -> DeviceError {
    let Envelope { source, tag, .. } = *envelope;
    move |error| DeviceError::Damaged { error, source_rank: source, tag }
}

/// A length error with the sender in it.
#[cold]
pub(crate) fn lengths(error: mpjdev_proto::send_policy::LengthError, envelope: &Envelope) -> DeviceError {
    let Envelope { source, tag, .. } = *envelope;
    match error {
        mpjdev_proto::send_policy::LengthError::Truncated { needed, capacity } => {
            DeviceError::Truncated { needed, capacity, source_rank: source, tag }
        }
        error => DeviceError::Lengths { error, source_rank: source, tag },
    }
}
