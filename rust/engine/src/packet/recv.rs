//! Arriving packets: their credit, their match, and their delivery.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::copy_words;
use mpjdev_buffer::{Message, Slab, SlabError};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::send_policy::check_first;
use mpjdev_transport::{Header, Incoming, Kind, Payload, PeerState, ProtocolViolation};
use tracing::debug;

use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, damaged, lengths, physical, received};
use crate::packet::credit::CreditCharge;
use crate::packet::engine::{PacketEngine, State};
use crate::packet::kept_slabs::KeptSlabs;
use crate::packet::outbox::Queued;
use crate::packet::partial_recv::{Completion, PendingRendezvous};
use crate::packet::requests::Work;
use crate::packet::unexpected::{Unexpected, is_all};
use crate::request::{Completed, RequestId};

/// A blocking receive on the fast path: not posted, and served after all posted receives.
#[derive(Debug)]
pub(crate) struct UnpostedRecv<'a> {
    pub(crate) selector: Selector,
    pub(crate) capacity: usize,
    /// Whether it takes a message whose sender still packs it.
    pub(crate) accept: Accept,
    /// The destination of the message. Its memory has no other reference.
    pub(crate) place: &'a mut Option<Message>,
    pub(crate) outcome: Option<FastRecv>,
    /// Whether the message may use a kept slab. A blocking receive gets memory of its own, which its buffer
    /// offers to the next receive.
    pub(crate) uses_kept: bool,
    /// The first matching message has arrived, and only a posted receive can take it.
    pub(crate) must_post: Cell<bool>,
}

impl UnpostedRecv<'_> {
    /// Whether this receive takes a message with this envelope. `is_all` states whether the message has
    /// arrived in full.
    #[inline(always)]
    fn wants(&self, envelope: &Envelope, is_all: impl FnOnce() -> bool) -> bool {
        if self.outcome.is_some() || self.must_post.get() || !self.selector.matches(envelope) {
            return false;
        }
        let is_all = is_all();
        self.must_post.set(!is_all);
        is_all
    }

    /// Takes a message that has memory of its own.
    pub(crate) fn take(&mut self, payload: Result<Payload, SlabError>, envelope: Envelope) {
        let message = arrived_whole(payload, self.capacity, &envelope);
        let taken = message.map(|mut message| {
            // From now on a packed message is like any other.
            message.is_packed();
            *self.place = Some(message);
            envelope
        });
        self.outcome = Some(taken.into());
    }

    /// Copies an inline message to the memory in `place`; false when there is none or it is too small.
    #[inline(always)]
    fn take_inline(&mut self, words: &[AtomicU64], len: usize, envelope: Envelope) -> bool {
        let Some(message) = self.place.as_mut().filter(|message| message.room() >= len) else { return false };
        self.outcome = Some(match check_first(len, self.capacity) {
            Ok(()) => {
                copy_words(words, 0, message.first_words(), 0, len);
                match message.receive(len, self.capacity) {
                    Ok(()) => FastRecv::Done(envelope),
                    Err(error) => damaged(&envelope)(error).into(),
                }
            }
            Err(error) => lengths(error, &envelope).into(),
        });
        true
    }
}

impl PacketEngine {
    /// Handles one packet: gives it to the earliest matching posted receive, or else to the unposted receive.
    ///
    /// # Errors
    /// The sender has exceeded its credit; no state has changed.
    #[inline]
    pub(crate) fn handle_packet(
        &self,
        state: &mut State,
        source: u32,
        header: Header,
        body: Incoming<'_>,
        unposted: Option<&mut UnpostedRecv<'_>>,
    ) -> Result<(), ProtocolViolation> {
        let envelope = Envelope { context: header.context, source, tag: header.tag };
        let token = match header.kind {
            Kind::MatchAck => {
                self.handle_match_ack(state, source, header.token.into());
                return Ok(());
            }
            Kind::RendezvousPart => {
                self.handle_rendezvous_part(state, source, header.token, body);
                return Ok(());
            }
            Kind::RendezvousData => {
                self.handle_rendezvous_data(state, source, header.token, body);
                return Ok(());
            }
            Kind::Cancelled => {
                self.handle_cancelled(state, source, header.token);
                return Ok(());
            }
            Kind::Synchronous | Kind::Rts => Some(header.token),
            Kind::Eager => None,
        };
        let charge = self.charge(state, source, &body, header.kind, token)?;
        if let Some(wanted) = self.take_awaited_second(state, &envelope, &body, token) {
            self.acknowledge(state, source, &charge, wanted);
        } else if state.recv_queue.must_defer(&envelope) {
            let payload = self.to_owned_payload(Some(&mut state.kept_slabs), body, None);
            state.recv_queue.defer(envelope, Unexpected::new(payload, charge));
        } else {
            self.match_or_queue(state, envelope, body, charge, unposted);
        }
        Ok(())
    }

    /// Checks and charges an arriving message.
    #[inline]
    fn charge(
        &self,
        state: &mut State,
        source: u32,
        body: &Incoming<'_>,
        kind: Kind,
        token: Option<u64>,
    ) -> Result<CreditCharge, ProtocolViolation> {
        if !self.is_remote(source) {
            return state.credit.charge(source, body, token, &self.config);
        }
        if !self.transport.is_foreign(source) {
            return state.credit.charge_copy(source, body, kind, token, &self.config);
        }
        let (charge, begins_backpressure) = state.credit.charge_foreign(source, body, kind, token);
        if begins_backpressure {
            self.transport.set_backpressure(source, true);
        }
        Ok(charge)
    }

    /// Releases the charge of a message that was matched or withdrawn, and reports credit to a sender that
    /// does not wait.
    #[inline]
    pub(crate) fn release(&self, state: &mut State, source: u32, charge: &CreditCharge) {
        let released = state.credit.release(source, charge);
        if let Some(octets) = released.report {
            self.transport.return_credit(source, octets);
        }
        if released.ends_backpressure {
            self.transport.set_backpressure(source, false);
        }
    }

    /// Sends the match ack of a message, or returns its credit. `wanted` is the number of octets to send of a
    /// message that has not arrived in full.
    #[inline]
    pub(crate) fn acknowledge(&self, state: &mut State, source: u32, charge: &CreditCharge, wanted: u64) {
        // The queue of a finished rank is never emptied: a packet for it would never leave the outbox.
        if let Some(token) = charge.token()
            && (self.transport.epoch() == 0 || self.transport.peer(source) == PeerState::Alive)
        {
            let header = Header { kind: Kind::MatchAck, context: wanted, tag: 0, token };
            self.enqueue(state, Queued { dest: source, header, payload: None, request: None });
        }
        self.release(state, source, charge);
    }

    /// Gives a message that is no second half to the earliest matching posted receive, or else to the
    /// unposted receive, or else queues it.
    #[inline]
    pub(crate) fn match_or_queue(
        &self,
        state: &mut State,
        envelope: Envelope,
        body: Incoming<'_>,
        charge: CreditCharge,
        unposted: Option<&mut UnpostedRecv<'_>>,
    ) {
        let source = envelope.source;
        let posted = state.recv_queue.match_arrival(&envelope);
        let wants = |unposted: &&mut UnpostedRecv<'_>| {
            let accept = unposted.accept;
            unposted.wants(&envelope, || match self.is_physical(source) {
                true => is_whole(&body),
                false => accept == Accept::Packing || !is_incomplete(&body),
            })
        };
        let unposted = unposted.filter(|_| posted.is_none()).filter(wants);
        match (posted, unposted) {
            (Some(id), _) => {
                let (spare, capacity) = match state.requests.get(id).map(|r| &mut r.work) {
                    Some(Work::Receive(receive)) => {
                        receive.post = None;
                        (receive.spare.take(), receive.capacity)
                    }
                    _ => (None, 0),
                };
                let payload = self.to_owned_payload(Some(&mut state.kept_slabs), body, spare);
                self.acknowledge(state, source, &charge, wanted(capacity));
                self.deliver(state, id, envelope, payload, charge.token().unwrap_or(0));
            }
            // The unposted receive is last: it began after the posted ones.
            (None, Some(unposted)) => {
                let is_taken = match &body {
                    Incoming::Inline(words, len) => unposted.take_inline(words, *len, envelope),
                    _ => false,
                };
                if !is_taken {
                    let kept = unposted.uses_kept.then_some(&mut state.kept_slabs);
                    unposted.take(self.to_owned_payload(kept, body, None), envelope);
                }
                self.acknowledge(state, source, &charge, 0);
            }
            (None, _) if state.must_drop(&envelope) => self.drop_arrived(state, &envelope, body, &charge),
            (None, _) => {
                state.had_packing &= state.recv_queue.unexpected_len() > 0;
                state.had_packing |= is_incomplete(&body);
                let payload = self.to_owned_payload(Some(&mut state.kept_slabs), body, None);
                state.recv_queue.add_unexpected(envelope, Unexpected::new(payload, charge));
                self.notify_observers(state);
            }
        }
    }

    /// Handles a match ack: completes a send in flight to the rank that acks, and nothing else.
    fn handle_match_ack(&self, state: &mut State, source: u32, id: RequestId) {
        let request = state.requests.get(id).filter(|r| r.outcome.is_none());
        if request.is_some_and(|r| matches!(r.work, Work::Send { dest, .. } if dest == source)) {
            if self.is_physical(source) {
                debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "send is matched");
            }
            self.complete(state, id, Ok(Completed::SENT));
        }
        state.credit.note_answered(source);
    }

    /// Gives an unexpected message to the receive that has just been posted.
    pub(crate) fn deliver_unexpected(
        &self,
        state: &mut State,
        id: RequestId,
        envelope: Envelope,
        message: Unexpected,
    ) {
        let capacity = match state.requests.get(id).map(|r| &r.work) {
            Some(Work::Receive(receive)) => receive.capacity,
            _ => 0,
        };
        let token = message.token().unwrap_or(0);
        let payload = self.take_unexpected(state, envelope, message, wanted(capacity));
        self.deliver(state, id, envelope, payload, token);
    }

    /// Sends the match ack of an unexpected message and returns its payload. `wanted` is the number of octets
    /// to send of a message that has not arrived in full.
    pub(crate) fn take_unexpected(
        &self,
        state: &mut State,
        envelope: Envelope,
        message: Unexpected,
        wanted: u64,
    ) -> Result<Payload, SlabError> {
        let (payload, charge) = message.into_parts();
        self.acknowledge(state, envelope.source, &charge, wanted);
        payload
    }

    /// The payload of a packet beyond this call. Inline octets are copied to `spare`, to a kept slab if
    /// given, or to fresh memory. The
    /// rank's lock is held, so this must not wait for a thread that frees memory: that thread may need the
    /// lock.
    #[inline]
    pub(crate) fn to_owned_payload(
        &self,
        kept: Option<&mut KeptSlabs>,
        body: Incoming<'_>,
        spare: Option<Slab>,
    ) -> Result<Payload, SlabError> {
        match body {
            Incoming::Reference(payload) => Ok(payload),
            Incoming::Lost(error) => Err(error),
            Incoming::Nothing => Ok(Payload::Physical(self.source.take_arrived(0)?, 0)),
            Incoming::Inline(words, len) => {
                let slab = match spare {
                    Some(slab) if slab.len() >= len => slab,
                    _ => match kept {
                        Some(kept) => kept.take(&*self.source, len)?,
                        None => self.source.take_arrived(len)?,
                    },
                };
                copy_words(words, 0, slab.words(), 0, len);
                Ok(Payload::Physical(slab, len))
            }
        }
    }

    /// Gives the first packet of a message to its receive. `token` identifies a message that has arrived in
    /// part.
    pub(crate) fn deliver(
        &self,
        state: &mut State,
        id: RequestId,
        envelope: Envelope,
        payload: Result<Payload, SlabError>,
        token: u64,
    ) {
        let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &r.work) else { return };
        let capacity = receive.capacity;
        let outcome = match payload {
            Ok(Payload::Partial { len, here, .. }) => {
                let Envelope { source: peer, tag, .. } = envelope;
                debug!(
                    target: "mpjdev::rendezvous", rank = self.rank, peer, tag, octets = len, here,
                    "receive is matched"
                );
                if self.transport.is_foreign(envelope.source) {
                    state.recv_queue.note_ambiguous(envelope, token);
                }
                let completion = Completion::Receive(id, envelope);
                let pending = PendingRendezvous::new(envelope.source, token, completion);
                return state.recv_queue.add_rendezvous(pending);
            }
            Ok(first @ (Payload::Physical(..) | Payload::Truncated { .. }))
                if self.is_physical(envelope.source) =>
            {
                return self.deliver_first(state, id, envelope, first, capacity);
            }
            payload => arrived_whole(payload, capacity, &envelope),
        };
        self.complete(state, id, outcome.map(|m| received(envelope, m)));
    }
}

/// The message of a packet that carries it in full.
#[inline(always)]
pub(crate) fn arrived_whole(
    payload: Result<Payload, SlabError>,
    capacity: usize,
    envelope: &Envelope,
) -> Result<Message, DeviceError> {
    match payload? {
        Payload::Logical(message) => whole(message, capacity, envelope),
        Payload::Physical(slab, len) => physical(slab, len, None, capacity, envelope),
        Payload::WithHeaders(slab, len, headers) => {
            check_first(len, capacity).map_err(|e| lengths(e, envelope))?;
            Message::from_headed(slab, len, headers, capacity).map_err(damaged(envelope))
        }
        Payload::Split((slab, len), second) => physical(slab, len, Some(second), capacity, envelope),
        Payload::Partial { len, .. } | Payload::Truncated { len, .. } => {
            check_first(len, capacity).map_err(|e| lengths(e, envelope))?;
            Err(DeviceError::NoSuchRequest)
        }
    }
}

/// The octets of a first physical message that a receiver of this capacity can take.
fn wanted(capacity: usize) -> u64 {
    (capacity + mpjdev_buffer::layout::MESSAGE_OVERHEAD) as u64
}

/// Whether no second half and no rest is to follow a packet, for physical messages.
fn is_whole(body: &Incoming<'_>) -> bool {
    match body {
        Incoming::Inline(words, len) => is_all(words, *len),
        Incoming::Reference(Payload::Physical(slab, len)) => is_all(slab.words(), *len),
        Incoming::Reference(Payload::Partial { .. } | Payload::Truncated { .. }) => false,
        Incoming::Reference(Payload::Logical(_) | Payload::WithHeaders(..) | Payload::Split(..))
        | Incoming::Nothing
        | Incoming::Lost(_) => true,
    }
}

/// Whether octets of a packet are missing: its sender still packs the message.
#[inline(always)]
fn is_incomplete(body: &Incoming<'_>) -> bool {
    matches!(body, Incoming::Reference(payload) if payload.is_incomplete())
}

fn whole(message: Message, capacity: usize, envelope: &Envelope) -> Result<Message, DeviceError> {
    check_first(message.first_len(), capacity).map_err(|e| lengths(e, envelope))?;
    Ok(message.received_by(capacity))
}
