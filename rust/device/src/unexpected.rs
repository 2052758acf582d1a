//! Messages that arrived before their receive, and how an arriving packet finds its way.

use std::sync::Arc;

use mpjdev_buffer::message::parse_first;
use mpjdev_buffer::octets::store_word;
use mpjdev_buffer::{Message, Slab, SlabError};
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::send_policy::check_first;

use crate::config::CREDIT_OVERHEAD;
use crate::endpoint::{Endpoint, State};
use crate::error::DeviceError;
use crate::outbox::Queued;
use crate::requests::{Completed, RequestId, Work};
use crate::transport::{Header, Incoming, Kind, Payload, PeerState};

/// A message whose receive has not been posted.
#[derive(Debug)]
pub(crate) struct Unexpected {
    payload: Result<Payload, SlabError>,
    /// The sender's request, when it waits to hear that the message is matched.
    token: Option<u64>,
    credit: u64,
}

impl Unexpected {
    /// Capacity that a receiver needs: octets of the first physical message without the headers.
    pub(crate) fn needs_capacity(&self) -> usize {
        let first_len = match &self.payload {
            Ok(Payload::Whole(message)) => message.first_len(),
            Ok(Payload::Physical(_, len) | Payload::Parts((_, len), _)) => *len,
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

impl Endpoint {
    /// Takes in one packet.
    pub(crate) fn arrive(&self, state: &mut State, source: u32, header: Header, body: Incoming<'_>) {
        let envelope = Envelope { context: header.context, source, tag: header.tag };
        let token = match header.kind {
            Kind::Matched => return self.arrive_answer(state, source, header.token.into()),
            Kind::Synchronous => Some(header.token),
            Kind::Eager => None,
        };
        let credit = match (&body, token) {
            (_, Some(_)) => 0,
            (Incoming::Inline(_, len), None) => *len as u64 + CREDIT_OVERHEAD,
            (Incoming::Reference(payload), None) => payload.held_len() as u64 + CREDIT_OVERHEAD,
            (Incoming::Nothing, None) => 0,
        };
        if self.arrive_half(state, &envelope, &body) {
            return self.matched(state, source, credit, token);
        }
        match state.matcher.match_arrival(&envelope) {
            Some((id, _)) => {
                let spare = match state.requests.get(id).map(|r| &mut r.work) {
                    Some(Work::Receive(receive)) => {
                        receive.post = None;
                        receive.spare.take()
                    }
                    _ => None,
                };
                let payload = self.keep(body, spare);
                self.matched(state, source, credit, token);
                self.deliver(state, id, envelope, payload);
            }
            None => {
                let payload = self.keep(body, None);
                state.matcher.add_unexpected(envelope, Box::new(Unexpected { payload, token, credit }));
                self.note_unexpected(state);
            }
        }
    }

    /// Takes in an answer: it completes a send that is under way to the rank that answers, and nothing else.
    fn arrive_answer(&self, state: &mut State, source: u32, id: RequestId) {
        let request = state.requests.get(id).filter(|r| r.outcome.is_none());
        if request.is_some_and(|r| matches!(r.work, Work::Send { dest, .. } if dest == source)) {
            self.complete(state, id, Ok(Completed::SENT));
        }
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
        self.matched(state, envelope.source, message.credit, message.token);
        message.payload
    }

    /// The octets of a packet for longer than the call: copied to `spare` or fresh memory when they are inline. The rank's
    /// lock is held, so this must not wait for whoever frees memory: they may need the lock.
    pub(crate) fn keep(&self, body: Incoming<'_>, spare: Option<Slab>) -> Result<Payload, SlabError> {
        match body {
            Incoming::Reference(payload) => Ok(payload),
            Incoming::Nothing => Ok(Payload::Physical(self.source.take_arrived(0)?, 0)),
            Incoming::Inline(words, len) => {
                let slab = match spare {
                    Some(slab) if slab.len() >= len => slab,
                    _ => self.source.take_arrived(len)?,
                };
                for (i, word) in words[..len.div_ceil(8)].iter().enumerate() {
                    store_word(slab.words(), i * 8, word.to_ne_bytes());
                }
                Ok(Payload::Physical(slab, len))
            }
        }
    }

    /// Tells the sender of a message that it is matched: its request, or its credit.
    fn matched(&self, state: &mut State, source: u32, credit: u64, token: Option<u64>) {
        // Nobody empties the queue of a rank that has finished: what is meant for it would wait here for ever.
        if let Some(token) = token
            && (self.wire.epoch() == 0 || self.wire.peer(source) == PeerState::Alive)
        {
            let header = Header { kind: Kind::Matched, context: 0, tag: 0, token };
            self.enqueue(state, Queued { dest: source, header, payload: None, request: None });
        }
        let (all, told) = &mut *state.matched[source as usize];
        *all += credit;
        // A quarter of the credit at a time, so that a message does not cost the sender's line each time.
        if *all - *told > self.config.credit / 4 {
            *told = *all;
            self.wire.tell_matched(source, *all);
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
            Ok(Payload::Whole(message)) => whole(message, capacity, &envelope),
            Ok(Payload::Physical(slab, len)) if self.config.message_oriented => {
                return self.deliver_first(state, id, envelope, slab, len, capacity);
            }
            Ok(Payload::Physical(slab, len)) => physical(slab, len, None, capacity, &envelope),
            Ok(Payload::Parts((slab, len), second)) => physical(slab, len, Some(second), capacity, &envelope),
            Err(error) => Err(error.into()),
        };
        self.complete(state, id, outcome.map(|m| received(envelope, m)));
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
pub(crate) fn physical(
    slab: Slab,
    len: usize,
    second: Option<(Slab, usize)>,
    capacity: usize,
    envelope: &Envelope,
) -> Result<Message, DeviceError> {
    check_first(len, capacity).map_err(|e| lengths(e, envelope))?;
    let Envelope { source, tag, .. } = *envelope;
    let damaged = |error| DeviceError::Damaged { error, source_rank: source, tag };
    parse_first(slab.words(), len).map_err(damaged)?;
    Message::from_physical(slab, len, second, capacity).map_err(damaged)
}

/// A length error with the sender in it.
pub(crate) fn lengths(error: mpjdev_proto::send_policy::LengthError, envelope: &Envelope) -> DeviceError {
    let Envelope { source, tag, .. } = *envelope;
    match error {
        mpjdev_proto::send_policy::LengthError::Truncated { needed, capacity } => {
            DeviceError::Truncated { needed, capacity, source_rank: source, tag }
        }
        error => DeviceError::Lengths { error, source_rank: source, tag },
    }
}
