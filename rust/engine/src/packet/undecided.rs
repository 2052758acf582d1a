//! Messages behind a long one of a foreign rank, held until it is known whether that is one half or all.
//!
//! The second half of such a rank's message is the next one in its context with its tag, and whether there is one is said in
//! the last octets of the first. So until a matched first message is all here, the next one with its tag, and all that its
//! sender has sent behind that in the context, is kept from receives and probes. Nothing overtakes anything by that, and
//! nobody gets a half. It comes to its turn when the rest of the first is here, which waits for no receive.

use std::collections::VecDeque;

use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::{Incoming, PeerState};

use crate::packet::endpoint::{Endpoint, State};
use crate::packet::unexpected::Unexpected;

/// What one foreign rank has sent in one context.
#[derive(Debug)]
pub(crate) struct Lane {
    source: u32,
    context: u64,
    /// Tag and token of messages that are matched and not all here, each with another tag.
    undecided: Vec<(i32, u64)>,
    /// What is kept, in order.
    held: VecDeque<(Envelope, Box<Unexpected>)>,
}

impl Lane {
    /// What is kept, in order.
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
    /// Whether a message that has come must wait.
    #[inline]
    pub(crate) fn must_hold(&self, envelope: &Envelope) -> bool {
        !self.lanes.is_empty() && self.is_behind_undecided(envelope)
    }

    #[cold]
    fn is_behind_undecided(&self, envelope: &Envelope) -> bool {
        let lane = self.lanes.iter().find(|lane| lane.is_of(envelope));
        lane.is_some_and(|lane| !lane.held.is_empty() || lane.is_undecided(envelope.tag))
    }

    /// Keeps a message that must wait.
    pub(crate) fn hold(&mut self, envelope: Envelope, message: Unexpected) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.is_of(&envelope)) {
            lane.held.push_back((envelope, Box::new(message)));
        }
    }

    /// Takes the earliest message with this envelope out of those that are kept.
    pub(crate) fn take_held(&mut self, envelope: &Envelope) -> Option<(Envelope, Box<Unexpected>)> {
        let lane = self.lanes.iter_mut().find(|lane| lane.is_of(envelope))?;
        let at = lane.held.iter().position(|(held, _)| held == envelope)?;
        lane.held.remove(at)
    }

    /// Takes the message with this token out of those that are kept.
    pub(crate) fn take_held_token(&mut self, source: u32, token: u64) -> Option<Box<Unexpected>> {
        let is_it = |(_, message): &(Envelope, Box<Unexpected>)| message.token() == Some(token);
        self.lanes.iter_mut().filter(|lane| lane.source == source).find_map(|lane| {
            let at = lane.held.iter().position(is_it)?;
            lane.held.remove(at).map(|(_, message)| message)
        })
    }

    /// A message is matched and not all here: what follows it waits from now on, what is here already too.
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
        // What is kept already has come later.
        behind.into_iter().rev().for_each(|message| lane.held.push_front(message));
    }

    /// A message is all here now; whether it was one that others waited for.
    #[inline]
    pub(crate) fn note_decided(&mut self, envelope: &Envelope, token: u64) -> bool {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.is_of(envelope)) else { return false };
        let before = lane.undecided.len();
        lane.undecided.retain(|(_, undecided)| *undecided != token);
        lane.undecided.len() != before
    }
}

impl Endpoint {
    /// Lets come to their turn what waits for nothing any more.
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

    /// Messages that others waited for have been given up, most of all because their sender is gone: whose second half, or own
    /// message, it is that waits, nobody can tell any more then.
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
            if self.wire.peer(source) != PeerState::Alive {
                let lanes = state.lanes.iter_mut().filter(|lane| lane.source == source);
                let held: Vec<_> = lanes.flat_map(|lane| lane.held.drain(..)).collect();
                held.iter().for_each(|(_, message)| self.settle(state, source, message.charge()));
            }
            self.release_held(state, source, context);
        }
    }
}
