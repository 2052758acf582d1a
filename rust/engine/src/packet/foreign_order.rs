//! Ordering behind a foreign rank's long message that may turn out to be the first half of a split one.
//!
//! A foreign sender does not number the halves of a split message: the second half is its next message with
//! the same context and tag. The secondary header, the last octets of the first half, states whether there is
//! one. While a matched long message is still arriving, the next message with its tag is ambiguous.
//!
//! The ambiguous message and every later one from the same sender and context are deferred: neither matched nor
//! visible to probes. They are replayed in order when the long message is complete. Hence nothing is overtaken and no
//! receive gets a lone half. The long message completes without a further receive, so deferring cannot
//! deadlock.

use std::collections::VecDeque;

use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::{Incoming, PeerState};

use crate::packet::endpoint::{Endpoint, State};
use crate::packet::recv::Unexpected;

/// The ambiguous and the deferred messages of one foreign rank in one context.
#[derive(Debug)]
pub(crate) struct Lane {
    source: u32,
    context: u64,
    /// Tag and token of messages that are matched and have not arrived in full, each with another tag.
    undecided: Vec<(i32, u64)>,
    /// Deferred messages, in order.
    held: VecDeque<(Envelope, Box<Unexpected>)>,
}

impl Lane {
    /// Deferred messages, in order.
    pub(crate) fn held(&self) -> impl Iterator<Item = (Envelope, &Box<Unexpected>)> {
        self.held.iter().map(|(envelope, message)| (*envelope, message))
    }

    fn is_of(&self, envelope: &Envelope) -> bool {
        (self.source, self.context) == (envelope.source, envelope.context)
    }

    fn is_undecided(&self, tag: i32) -> bool {
        self.undecided.iter().any(|(undecided, _)| *undecided == tag)
    }
}

impl State {
    /// Whether an arriving message must be deferred.
    #[inline]
    pub(crate) fn must_hold(&self, envelope: &Envelope) -> bool {
        !self.lanes.is_empty() && self.is_behind_undecided(envelope)
    }

    #[cold]
    fn is_behind_undecided(&self, envelope: &Envelope) -> bool {
        let lane = self.lanes.iter().find(|lane| lane.is_of(envelope));
        lane.is_some_and(|lane| !lane.held.is_empty() || lane.is_undecided(envelope.tag))
    }

    /// Defers a message.
    pub(crate) fn hold(&mut self, envelope: Envelope, message: Unexpected) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.is_of(&envelope)) {
            lane.held.push_back((envelope, Box::new(message)));
        }
    }

    /// Takes the earliest deferred message with this envelope.
    pub(crate) fn take_held(&mut self, envelope: &Envelope) -> Option<(Envelope, Box<Unexpected>)> {
        let lane = self.lanes.iter_mut().find(|lane| lane.is_of(envelope))?;
        let at = lane.held.iter().position(|(held, _)| held == envelope)?;
        lane.held.remove(at)
    }

    /// Takes the deferred message with this token.
    pub(crate) fn take_held_token(&mut self, source: u32, token: u64) -> Option<Box<Unexpected>> {
        let is_it = |(_, message): &(Envelope, Box<Unexpected>)| message.token() == Some(token);
        self.lanes.iter_mut().filter(|lane| lane.source == source).find_map(|lane| {
            let at = lane.held.iter().position(is_it)?;
            lane.held.remove(at).map(|(_, message)| message)
        })
    }

    /// Records a matched message that has not arrived in full, and defers the unexpected messages behind it.
    #[cold]
    pub(crate) fn note_undecided(&mut self, envelope: Envelope, token: u64) {
        let at = self.lanes.iter().position(|lane| lane.is_of(&envelope)).unwrap_or_else(|| {
            let Envelope { source, context, .. } = envelope;
            self.lanes.push(Lane { source, context, undecided: Vec::new(), held: VecDeque::new() });
            self.lanes.len() - 1
        });
        let lane = &mut self.lanes[at];
        lane.undecided.push((envelope.tag, token));
        if self.matcher.probe(&Selector::from(envelope)).is_none() {
            return;
        }
        let mut is_behind = false;
        let behind = self.matcher.remove_unexpected(|other, _| {
            is_behind |= *other == envelope;
            is_behind && lane.is_of(other)
        });
        // The messages that are deferred already arrived later.
        behind.into_iter().rev().for_each(|message| lane.held.push_front(message));
    }

    /// Records that a message has arrived in full; true if others were deferred behind it.
    #[inline]
    pub(crate) fn note_decided(&mut self, envelope: &Envelope, token: u64) -> bool {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.is_of(envelope)) else { return false };
        let before = lane.undecided.len();
        lane.undecided.retain(|(_, undecided)| *undecided != token);
        lane.undecided.len() != before
    }
}

impl Endpoint {
    /// Replays the deferred messages of a lane up to the first one that is still ambiguous.
    pub(crate) fn release_held(&self, state: &mut State, source: u32, context: u64) {
        loop {
            let is_it = |lane: &Lane| (lane.source, lane.context) == (source, context);
            let Some(at) = state.lanes.iter().position(is_it) else { return };
            let lane = &mut state.lanes[at];
            match lane.held.front() {
                Some((envelope, _)) if lane.is_undecided(envelope.tag) => return,
                Some(_) => {
                    let next = lane.held.pop_front();
                    next.into_iter()
                        .for_each(|(envelope, message)| self.arrive_late(state, envelope, *message));
                }
                None => {
                    if lane.undecided.is_empty() {
                        state.lanes.swap_remove(at);
                    }
                    return;
                }
            }
        }
    }

    fn arrive_late(&self, state: &mut State, envelope: Envelope, message: Unexpected) {
        let (payload, charge) = message.into_parts();
        let body = payload.map_or_else(Incoming::Lost, Incoming::Reference);
        match self.arrive_half(state, &envelope, &body, charge.token) {
            Some(wanted) => self.matched(state, envelope.source, &charge, wanted),
            None => self.place(state, envelope, body, charge, None),
        }
    }

    /// Forgets ambiguous messages that were given up, mostly because their sender has ended. If it has, the
    /// deferred messages are dropped: nobody can tell a second half from a message of its own any more.
    pub(crate) fn forget_undecided(&self, state: &mut State) {
        let State { lanes, begun, .. } = state;
        let mut changed = Vec::new();
        for lane in lanes {
            let before = lane.undecided.len();
            let is_begun = |token| begun.iter().any(|b| b.source == lane.source && b.token == token);
            lane.undecided.retain(|(_, token)| is_begun(*token));
            if lane.undecided.len() != before {
                changed.push((lane.source, lane.context));
            }
        }
        for (source, context) in changed {
            if self.transport.peer(source) != PeerState::Alive {
                let lanes = state.lanes.iter_mut().filter(|lane| lane.source == source);
                let held: Vec<_> = lanes.flat_map(|lane| lane.held.drain(..)).collect();
                held.iter().for_each(|(_, message)| self.settle(state, source, message.charge()));
            }
            self.release_held(state, source, context);
        }
    }
}
