//! Ordering behind a foreign rank's long message that may turn out to be the first half of a split one.
//!
//! A foreign sender does not number the halves of a split message: the second half is its next message with
//! the same context and tag. The secondary header, the last octets of the first half, states whether there is
//! one. While a matched long message is still arriving, the next message with its tag is ambiguous.
//!
//! The ambiguous message and every later one from the same sender and context are deferred: neither matched
//! nor visible to probes. They are replayed in order when the long message is complete. Hence nothing is
//! overtaken and no receive gets a lone half. The long message completes without a further receive, so
//! deferring cannot deadlock.

use std::collections::VecDeque;

use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::{Incoming, PeerState};

use crate::packet::engine::{PacketEngine, State};
use crate::packet::unexpected::Unexpected;

/// The ambiguous and the deferred messages of one foreign rank in one context.
#[derive(Debug)]
pub(crate) struct ForeignStream {
    source: u32,
    context: u64,
    /// Tag and token of messages that are matched and have not arrived in full, each with another tag.
    ambiguous: Vec<(i32, u64)>,
    /// Deferred messages, in order.
    deferred: VecDeque<(Envelope, Box<Unexpected>)>,
}

impl ForeignStream {
    /// Deferred messages, in order.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = (Envelope, &Box<Unexpected>)> {
        self.deferred.iter().map(|(envelope, message)| (*envelope, message))
    }

    fn is_of(&self, envelope: &Envelope) -> bool {
        (self.source, self.context) == (envelope.source, envelope.context)
    }

    fn is_ambiguous(&self, tag: i32) -> bool {
        self.ambiguous.iter().any(|(ambiguous, _)| *ambiguous == tag)
    }
}

impl State {
    /// Whether an arriving message must be deferred.
    #[inline]
    pub(crate) fn must_defer(&self, envelope: &Envelope) -> bool {
        !self.foreign_streams.is_empty() && self.is_behind_ambiguous(envelope)
    }

    #[cold]
    fn is_behind_ambiguous(&self, envelope: &Envelope) -> bool {
        let stream = self.foreign_streams.iter().find(|stream| stream.is_of(envelope));
        stream.is_some_and(|stream| !stream.deferred.is_empty() || stream.is_ambiguous(envelope.tag))
    }

    /// Defers a message.
    pub(crate) fn defer(&mut self, envelope: Envelope, message: Unexpected) {
        if let Some(stream) = self.foreign_streams.iter_mut().find(|stream| stream.is_of(&envelope)) {
            stream.deferred.push_back((envelope, Box::new(message)));
        }
    }

    /// Takes the earliest deferred message with this envelope.
    pub(crate) fn take_deferred(&mut self, envelope: &Envelope) -> Option<(Envelope, Box<Unexpected>)> {
        let stream = self.foreign_streams.iter_mut().find(|stream| stream.is_of(envelope))?;
        let at = stream.deferred.iter().position(|(deferred, _)| deferred == envelope)?;
        stream.deferred.remove(at)
    }

    /// Takes the deferred message with this token.
    pub(crate) fn take_deferred_token(&mut self, source: u32, token: u64) -> Option<Box<Unexpected>> {
        let is_it = |(_, message): &(Envelope, Box<Unexpected>)| message.token() == Some(token);
        self.foreign_streams.iter_mut().filter(|stream| stream.source == source).find_map(|stream| {
            let at = stream.deferred.iter().position(is_it)?;
            stream.deferred.remove(at).map(|(_, message)| message)
        })
    }

    /// Records a matched message that has not arrived in full, and defers the unexpected messages behind it.
    #[cold]
    pub(crate) fn note_ambiguous(&mut self, envelope: Envelope, token: u64) {
        let at =
            self.foreign_streams.iter().position(|stream| stream.is_of(&envelope)).unwrap_or_else(|| {
                let Envelope { source, context, .. } = envelope;
                self.foreign_streams.push(ForeignStream {
                    source,
                    context,
                    ambiguous: Vec::new(),
                    deferred: VecDeque::new(),
                });
                self.foreign_streams.len() - 1
            });
        let stream = &mut self.foreign_streams[at];
        stream.ambiguous.push((envelope.tag, token));
        if self.matcher.probe(&Selector::from(envelope)).is_none() {
            return;
        }
        let mut is_behind = false;
        let behind = self.matcher.remove_unexpected(|other, _| {
            is_behind |= *other == envelope;
            is_behind && stream.is_of(other)
        });
        // The messages that are deferred already arrived later.
        behind.into_iter().rev().for_each(|message| stream.deferred.push_front(message));
    }

    /// Records that a message has arrived in full; true if others were deferred behind it.
    #[inline]
    pub(crate) fn note_complete(&mut self, envelope: &Envelope, token: u64) -> bool {
        let Some(stream) = self.foreign_streams.iter_mut().find(|stream| stream.is_of(envelope)) else {
            return false;
        };
        let before = stream.ambiguous.len();
        stream.ambiguous.retain(|(_, ambiguous)| *ambiguous != token);
        stream.ambiguous.len() != before
    }
}

impl PacketEngine {
    /// Replays the deferred messages of a stream up to the first one that is still ambiguous.
    pub(crate) fn replay_deferred(&self, state: &mut State, source: u32, context: u64) {
        loop {
            let is_it = |stream: &ForeignStream| (stream.source, stream.context) == (source, context);
            let Some(at) = state.foreign_streams.iter().position(is_it) else { return };
            let stream = &mut state.foreign_streams[at];
            match stream.deferred.front() {
                Some((envelope, _)) if stream.is_ambiguous(envelope.tag) => return,
                Some(_) => {
                    let next = stream.deferred.pop_front();
                    next.into_iter().for_each(|(envelope, message)| self.replay(state, envelope, *message));
                }
                None => {
                    if stream.ambiguous.is_empty() {
                        state.foreign_streams.swap_remove(at);
                    }
                    return;
                }
            }
        }
    }

    fn replay(&self, state: &mut State, envelope: Envelope, message: Unexpected) {
        let (payload, charge) = message.into_parts();
        let body = payload.map_or_else(Incoming::Lost, Incoming::Reference);
        match self.take_awaited_second(state, &envelope, &body, charge.token()) {
            Some(wanted) => self.acknowledge(state, envelope.source, &charge, wanted),
            None => self.match_or_queue(state, envelope, body, charge, None),
        }
    }

    /// Forgets ambiguous messages that were given up, mostly because their sender has ended. If it has, the
    /// deferred messages are dropped: nobody can tell a second half from a message of its own any more.
    pub(crate) fn forget_ambiguous(&self, state: &mut State) {
        let State { foreign_streams, rendezvous, .. } = state;
        let mut changed = Vec::new();
        for stream in foreign_streams {
            let before = stream.ambiguous.len();
            let is_pending = |token| rendezvous.iter().any(|b| b.source == stream.source && b.token == token);
            stream.ambiguous.retain(|(_, token)| is_pending(*token));
            if stream.ambiguous.len() != before {
                changed.push((stream.source, stream.context));
            }
        }
        for (source, context) in changed {
            if self.transport.peer(source) != PeerState::Alive {
                let foreign_streams =
                    state.foreign_streams.iter_mut().filter(|stream| stream.source == source);
                let deferred: Vec<_> = foreign_streams.flat_map(|stream| stream.deferred.drain(..)).collect();
                deferred.iter().for_each(|(_, message)| self.release(state, source, message.charge()));
            }
            self.replay_deferred(state, source, context);
        }
    }
}
