//! Split messages on transports that carry physical messages only: the pairing of first and second halves.
//!
//! Senders of this project put a pairing number into the first message's secondary header. They send the
//! second message on the shadow context, from the same rank, with the number as tag. A foreign sender puts
//! zero there. Its second message has the same context and the same tag, and follows the first directly.
//! PROTOCOL.md of `proto` draws both.

use mpjdev_buffer::layout::PRIMARY_HEADER_LEN;
use mpjdev_buffer::message::parse_first;
use mpjdev_buffer::octets::{copy_words, store_word};
use mpjdev_buffer::{Message, PrimaryHeader, SecondaryHeader, Slab, SlabError};
use mpjdev_proto::context::shadow;
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::send_policy::{Arrival, Headers, Pair};
use mpjdev_transport::config::CREDIT_OVERHEAD;
use mpjdev_transport::{Header, Incoming, Kind, Payload};

use crate::error::DeviceError;
use crate::operation::{Mode, lengths, received};
use crate::packet::engine::{PacketEngine, State};
use crate::packet::partial_recv::{AwaitedSecond, Completion, PendingRendezvous};
use crate::packet::recv::arrived_whole;
use crate::packet::requests::Work;
use crate::packet::send::send;
use crate::request::{Completed, RequestId};

impl PacketEngine {
    /// Starts to send a message as physical messages: one, or two that are paired by number.
    pub(crate) fn start_physical(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        if self.is_remote(dest) {
            return self.start_remote(dest, context, tag, message, mode);
        }
        let message = &self.compact_if_sparse(message)?;
        let first_len = message.first_len();
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        let kind = |octets: usize| match mode == Mode::Standard && self.take_credit(dest, octets as u64) {
            true => Kind::Eager,
            false => Kind::Synchronous,
        };
        let Some(second) = message.second_slab() else {
            let slab = message.first_slab();
            let header = Header { kind: kind(slab.len()), ..header };
            let payload = Payload::Physical(slab.clone(), first_len);
            let mut core = self.lock();
            if header.kind.is_answered() {
                self.check_unmatched(&mut core, dest, context, 1)?;
            }
            return Ok(self.queue_locked(
                &mut core,
                dest,
                header,
                payload,
                send(dest, tag, Some(first_len), 0, mode),
            ));
        };
        let (number, second_tag, first) = self.open_numbered(message)?;
        if !self.transport.can_send_by_reference(&first) {
            self.lock().state.pairs.close(number);
            return Err(SlabError::Shared { asked: first.len() as u64 }.into());
        }
        // The receiver returns credit for the first half only. The match ack returns that of the second.
        let held = first.len() + second.len();
        let header = Header { kind: kind(held), ..header };
        let charged = if header.kind == Kind::Eager { second.len() as u64 } else { 0 };
        let mut core = self.lock();
        // Both halves are sent, or neither.
        let waiting = 1 + u32::from(header.kind.is_answered());
        if let Err(error) = self.check_unmatched(&mut core, dest, context, waiting) {
            core.state.pairs.close(number);
            if header.kind == Kind::Eager {
                self.send_credit.uncharge(dest, held as u64 + CREDIT_OVERHEAD);
            }
            return Err(error);
        }
        let payload = Payload::Physical(first, first_len);
        let id = self.queue_locked(&mut core, dest, header, payload, send(dest, tag, None, 0, mode));
        let work =
            Work::Send { dest, tag, len: Some(message.logical_len()), pair: Some(number), charged, mode };
        let header = Header { kind: Kind::Synchronous, context: shadow(context), tag: second_tag, token: 0 };
        // The second half is always acked: its pairing number is free only then.
        let payload = Payload::Physical(second.clone(), message.secondary_len());
        if let Some(id) = self.queue_locked(&mut core, dest, header, payload, work) {
            core.state.requests.detach(id);
        }
        Ok(id)
    }

    /// A pairing number, its tag, and a copy of the first physical message with the number in it.
    pub(crate) fn open_numbered(&self, message: &Message) -> Result<(u32, i32, Slab), DeviceError> {
        let (number, tag) = self.open_pair()?;
        match self.numbered(message, number) {
            Ok(slab) => Ok((number, tag, slab)),
            Err(error) => {
                self.lock().state.pairs.close(number);
                Err(error)
            }
        }
    }

    /// A copy of the first physical message with the pairing number in its secondary header.
    pub(crate) fn numbered(&self, message: &Message, pair: u32) -> Result<Slab, DeviceError> {
        let slab = self.source.take(message.first_len())?;
        copy_words(message.first_words(), 0, slab.words(), 0, message.first_len());
        let header = SecondaryHeader { secondary_len: message.secondary_len(), pair };
        let at = PRIMARY_HEADER_LEN + message.primary_len();
        store_word(slab.words(), at, header.emit(message.encoding()));
        Ok(slab)
    }

    fn open_pair(&self) -> Result<(u32, i32), DeviceError> {
        let pairs = &mut self.lock().state.pairs;
        let number = pairs.open()?;
        Ok((number, pairs.tag(number)))
    }

    /// Takes a packet that is the second half of a receive, and returns the number of wanted octets; `None`
    /// when it is no second half.
    pub(crate) fn take_awaited_second(
        &self,
        state: &mut State,
        envelope: &Envelope,
        body: &Incoming<'_>,
        token: Option<u64>,
    ) -> Option<u64> {
        let half = state.recv_queue.take_awaiting(envelope)?;
        let wanted = half.wanted();
        let second = match body {
            Incoming::Reference(payload) => Ok(payload.clone()),
            Incoming::Inline(words, len) => {
                self.to_owned_payload(Some(&mut state.kept_slabs), Incoming::Inline(words, *len), None)
            }
            Incoming::Nothing => self.to_owned_payload(Some(&mut state.kept_slabs), Incoming::Nothing, None),
            Incoming::Lost(error) => Err(error.clone()),
        };
        self.join_halves(state, half, second, token.unwrap_or(0));
        Some(wanted)
    }

    /// Gives a first physical message to its receive, which may have to wait for the second.
    pub(crate) fn deliver_first(
        &self,
        state: &mut State,
        id: RequestId,
        envelope: Envelope,
        first: Payload,
        capacity: usize,
    ) {
        let len = first.len();
        let Some(headers) = headers(&first) else {
            let outcome = arrived_whole(Ok(first), capacity, &envelope);
            return self.complete(state, id, outcome.map(|m| received(envelope, m)));
        };
        let (first, expected) = match (Arrival::judge(len, headers, capacity), first) {
            (Ok(Arrival::NeedsSecond { len: second_len, pair }), Payload::Physical(slab, len)) => {
                (Ok((slab, len)), Some((second_len, pair)))
            }
            (Ok(_), first) => {
                let outcome = arrived_whole(Ok(first), capacity, &envelope);
                return self.complete(state, id, outcome.map(|m| received(envelope, m)));
            }
            (Err(error), _) => (Err(lengths(error, &envelope)), Arrival::second_of_truncated(len, headers)),
        };
        let Some((second_len, pair)) = expected else {
            return self.complete(state, id, first.map(|_| -> Completed { unreachable!("errors only") }));
        };
        let second = match pair {
            // A foreign rank numbers nothing: those octets are unused in its format and may have any value.
            Pair::Numbered(number) if !self.transport.is_foreign(envelope.source) => Envelope {
                context: shadow(envelope.context),
                source: envelope.source,
                tag: state.pairs.tag(number),
            },
            Pair::Numbered(_) | Pair::Foreign => envelope,
        };
        let half = AwaitedSecond::new((second, second_len), id, first, envelope, capacity);
        self.await_second(state, half);
    }

    /// Takes the second half if it has arrived, else waits for it.
    fn await_second(&self, state: &mut State, half: AwaitedSecond) {
        match state.recv_queue.take_second(half.second()) {
            Some((envelope, message)) => {
                let token = message.token().unwrap_or(0);
                let second = self.take_unexpected(state, envelope, *message, half.wanted());
                self.join_halves(state, half, second, token);
            }
            None => state.recv_queue.await_second(half),
        }
    }

    /// Joins both halves when the second one has arrived in full. `token` identifies the second half.
    pub(crate) fn join_halves(
        &self,
        state: &mut State,
        half: AwaitedSecond,
        second: Result<Payload, SlabError>,
        token: u64,
    ) {
        if let Ok(Payload::Partial { .. }) = second {
            let source = half.second().source;
            let completion = Completion::SecondHalf(Box::new(half));
            return state.recv_queue.add_rendezvous(PendingRendezvous::new(source, token, completion));
        }
        let (request, outcome) = half.join(second);
        self.complete(state, request, outcome);
    }
}

/// The headers of a first physical message; `None` when they are damaged.
fn headers(first: &Payload) -> Option<Headers> {
    let (primary, secondary) = match first {
        Payload::Physical(slab, len) => parse_first(slab.words(), *len).ok()?,
        Payload::Truncated { headers: Some([primary, secondary]), .. } => {
            let primary = PrimaryHeader::parse(*primary).ok()?;
            (primary, SecondaryHeader::parse(*secondary, primary.encoding).ok()?)
        }
        _ => return None,
    };
    Some(Headers {
        primary_len: primary.primary_len,
        secondary_len: secondary.secondary_len,
        pair_number: secondary.pair,
    })
}
