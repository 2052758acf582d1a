//! Split messages on transports that carry physical messages only: which second half belongs to which first.
//!
//! Our own senders put a pairing number into the first message's secondary header and send the second message on the shadow
//! context, from the same rank, with the number as tag. A foreign sender puts zero there; its second message comes on
//! the same context with the same tag, directly after the first (proto's PROTOCOL.md draws both).

use mpjdev_buffer::layout::{MESSAGE_OVERHEAD, PRIMARY_HEADER_LEN};
use mpjdev_buffer::message::parse_first;
use mpjdev_buffer::octets::{copy_words, store_word};
use mpjdev_buffer::{Message, SecondaryHeader, Slab, SlabError};
use mpjdev_proto::context::shadow;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::send_policy::{Arrival, Headers, Pair, check_second};

use crate::endpoint::{Endpoint, Mode, State};
use crate::error::DeviceError;
use crate::outbox::Queued;
use crate::requests::{Completed, RequestId, Work};
use crate::transport::{Header, Incoming, Kind, Payload};
use crate::unexpected::{lengths, physical, received};

/// A receive whose first half is there.
#[derive(Debug)]
pub(crate) struct Half {
    /// What the second half's packet must have.
    second: Envelope,
    second_len: usize,
    pub(crate) request: RequestId,
    /// The first half, or why the receive fails once the second half is consumed.
    first: Result<(Slab, usize), DeviceError>,
    first_envelope: Envelope,
    capacity: usize,
}

impl Half {
    /// The request, and what it still needs.
    pub(crate) fn waits_for(&self) -> (RequestId, Selector) {
        (self.request, Selector::from(self.second))
    }
}

impl Endpoint {
    /// Starts to send a message as physical messages: one, or two that are paired by number.
    pub(crate) fn start_physical(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let message = &self.slim(message)?;
        let first_len = message.first_len();
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        let wants_match = |octets| mode == Mode::Synchronous || !self.take_credit(dest, octets);
        let Some(second) = message.second_slab() else {
            let slab = message.first_slab();
            let wants_match = wants_match(slab.len());
            let payload = Payload::Physical(slab.clone(), first_len);
            return Ok(self.queue(dest, header, payload, Some(first_len), wants_match));
        };
        let (number, second_tag) = self.open_pair()?;
        let first = match self.numbered(message, number) {
            Ok(slab) => slab,
            Err(error) => {
                self.lock().state.pairs.close(number);
                return Err(error);
            }
        };
        // The receiver tells of the first half only: this rank hears of the second by the answer to it.
        let wants_match = wants_match(first.len() + second.len());
        let charged = if wants_match { 0 } else { second.len() };
        let id = self.queue(dest, header, Payload::Physical(first, first_len), None, wants_match);
        let work = Work::Send { dest, tag, len: Some(message.logical_len()), pair: Some((number, charged)) };
        let header = Header { kind: Kind::Synchronous, context: shadow(context), tag: second_tag, token: 0 };
        self.queue_second(dest, header, Payload::Physical(second.clone(), message.secondary_len()), work);
        Ok(id)
    }

    /// Queues a second half. It always waits to be matched: its number is free again only then.
    fn queue_second(&self, dest: u32, mut header: Header, payload: Payload, work: Work) {
        let mut core = self.lock();
        let id = core.state.requests.add(work);
        core.state.requests.detach(id);
        header.token = id.into();
        self.enqueue(&mut core.state, Queued { dest, header, payload: Some(payload), request: None });
        self.give_up_send(&mut core, id, dest);
    }

    /// A copy of the first physical message with the pairing number in its secondary header.
    fn numbered(&self, message: &Message, pair: u32) -> Result<Slab, DeviceError> {
        let slab = self.source.take(message.first_len())?;
        if !self.wire.carries(&slab) {
            return Err(SlabError::Shared { asked: slab.len() as u64 }.into());
        }
        copy_words(message.first_words(), 0, slab.words(), 0, message.first_len());
        let header = SecondaryHeader { secondary_len: message.secondary_len(), pair };
        let at = PRIMARY_HEADER_LEN + message.primary_len();
        store_word(slab.words(), at, header.emit(message.encoding()));
        Ok(slab)
    }

    fn open_pair(&self) -> Result<(u32, i32), DeviceError> {
        let pairs = &mut self.lock().state.pairs;
        match pairs.open() {
            Ok(number) => Ok((number, pairs.tag(number))),
            Err(_) => Err(DeviceError::NoFreePair { open: pairs.open_len() }),
        }
    }

    /// Takes a packet that is the second half of a receive; false when it is not.
    pub(crate) fn arrive_half(&self, state: &mut State, envelope: &Envelope, body: &Incoming<'_>) -> bool {
        if state.halves.is_empty() {
            return false;
        }
        let Some(at) = state.halves.iter().position(|h| h.second == *envelope) else { return false };
        let half = state.halves.remove(at);
        let second = match body {
            Incoming::Reference(payload) => Ok(payload.clone()),
            Incoming::Inline(words, len) => self.keep(Incoming::Inline(words, *len), None),
            Incoming::Nothing => self.keep(Incoming::Nothing, None),
        };
        self.join(state, half, second);
        true
    }

    /// Gives a first physical message to its receive, which may have to wait for the second.
    pub(crate) fn deliver_first(
        &self,
        state: &mut State,
        id: RequestId,
        envelope: Envelope,
        slab: Slab,
        len: usize,
        capacity: usize,
    ) {
        let headers = match parse_first(slab.words(), len) {
            Ok((p, s)) => {
                Headers { primary_len: p.primary_len, secondary_len: s.secondary_len, pair_number: s.pair }
            }
            Err(_) => {
                let outcome = physical(slab, len, None, capacity, &envelope);
                return self.complete(state, id, outcome.map(|m| received(envelope, m)));
            }
        };
        let (first, expected) = match Arrival::judge(len, headers, capacity) {
            Ok(Arrival::Complete { .. }) => {
                let outcome = physical(slab, len, None, capacity, &envelope);
                return self.complete(state, id, outcome.map(|m| received(envelope, m)));
            }
            Ok(Arrival::NeedsSecond { len: second_len, pair }) => (Ok((slab, len)), Some((second_len, pair))),
            Err(error) => (Err(lengths(error, &envelope)), Arrival::second_of_truncated(len, headers)),
        };
        let Some((second_len, pair)) = expected else {
            return self.complete(state, id, first.map(|_| -> Completed { unreachable!("errors only") }));
        };
        let second = match pair {
            Pair::Numbered(number) => Envelope {
                context: shadow(envelope.context),
                source: envelope.source,
                tag: state.pairs.tag(number),
            },
            Pair::Foreign => envelope,
        };
        let half = Half { second, second_len, request: id, first, first_envelope: envelope, capacity };
        self.await_half(state, half);
    }

    /// Takes the second half if it is here already, else waits for it.
    fn await_half(&self, state: &mut State, half: Half) {
        match state.matcher.take(&Selector::from(half.second)) {
            Some((envelope, message)) => {
                let second = self.take_unexpected(state, envelope, *message);
                self.join(state, half, second);
            }
            None => state.halves.push(half),
        }
    }

    /// Joins both halves.
    fn join(&self, state: &mut State, half: Half, second: Result<Payload, SlabError>) {
        let Half { second_len, request, first, first_envelope, capacity, .. } = half;
        let outcome = first.and_then(|(slab, len)| {
            let second = second?.into_physical();
            check_second(second_len, second.1).map_err(|e| lengths(e, &first_envelope))?;
            debug_assert!(len >= MESSAGE_OVERHEAD);
            physical(slab, len, Some(second), capacity, &first_envelope)
        });
        self.complete(state, request, outcome.map(|m| received(first_envelope, m)));
    }
}
