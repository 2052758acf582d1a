//! Creation of an intercommunicator out of two groups of ranks.

use std::collections::{BTreeSet, VecDeque};

use super::machine::{Action, Collective, ProtocolError};
use super::messages::{Decision, From};
use super::refusal::Refusal;
use super::tag;
use crate::context::ContextError;

/// Makes an intercommunicator at one rank of one of its two groups: `MPI_Intercomm_create`.
///
/// The intercommunicator is one communicator of all ranks of both groups (decision 0053). The group whose
/// leader has the smaller world rank comes first, and its leader allocates the context.
///
/// The leaders exchange their groups through the peer communicator, and accept them. Each tells its group
/// what is to be made; all ranks confirm; the leaders exchange whether all have, and settle. So no rank has
/// the communicator before all of both groups have confirmed. Local messages have ranks of the local
/// communicator; payloads have world ranks.
#[derive(Debug, Clone)]
pub struct IntercommCreation {
    /// World ranks of the local group.
    group: Vec<u32>,
    rank: u32,
    leader: u32,
    /// World rank of the other leader; only the leader uses it.
    peer: u32,
    /// Number of ranks of the world.
    world_size: u32,
    actions: VecDeque<Action>,
    stage: Stage,
}

/// A new intercommunicator, at one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intercommunicator {
    /// Its context id.
    pub context: u64,
    /// World ranks of its members, one group behind the other.
    pub members: Vec<u32>,
    /// Number of members of the first group.
    pub first_len: u32,
    /// Index of this rank in `members`.
    pub rank: u32,
}

/// The payload of the other leader: its context and group, nothing, or a refusal.
type Answer = Result<Option<(u64, Vec<u32>)>, Refusal>;

#[derive(Debug, Clone)]
enum Stage {
    /// The leader waits for a context id.
    Allocate,
    /// The leader waits for the group of the other one, and for its acceptance. It has this context id, or
    /// none, and the last offer.
    AwaitOffer {
        own: Result<u64, Refusal>,
        offer: Option<(u64, Vec<u32>)>,
    },
    /// The leader waits for the confirmations of the ranks marked here. The other one has the context id
    /// `theirs`.
    Confirm {
        made: Intercommunicator,
        theirs: u64,
        awaited: Vec<bool>,
        ended: Vec<u32>,
    },
    /// The leader waits for the verdict of the other group; this is the one of its own.
    AwaitVerdict {
        made: Intercommunicator,
        own: Result<(), Refusal>,
    },
    /// Others wait for the decision.
    AwaitDecision,
    /// Others wait for the settlement.
    AwaitSettlement(Intercommunicator),
    Done(Result<Intercommunicator, Refusal>),
}

impl IntercommCreation {
    /// An intercommunicator of the local group, given by its world ranks, and that of the leader with the
    /// world rank `peer`, which only the local leader has to know.
    ///
    /// # Panics
    /// When `rank` or `leader` is no rank of the group.
    #[must_use]
    pub fn new(group: Vec<u32>, rank: u32, leader: u32, peer: u32, world_size: u32) -> Self {
        assert!(rank.max(leader) < group.len() as u32, "ranks {rank} and {leader} of {}", group.len());
        let (actions, stage) = (VecDeque::new(), Stage::AwaitDecision);
        let mut creation = Self { group, rank, leader, peer, world_size, actions, stage };
        if rank == leader {
            creation.stage = Stage::Allocate;
            creation.actions.push_back(Action::Allocate { count: 1 });
        } else {
            let tag = tag::INTERCOMM_DECISION;
            creation.actions.push_back(Action::Receive { source: leader, tag });
        }
        creation
    }

    /// The creation at a leader that cannot take part: it tells so to its group.
    ///
    /// # Panics
    /// When `leader` is no rank of the group.
    #[must_use]
    pub fn left(group: Vec<u32>, leader: u32) -> Self {
        let refusal = Refusal::Left { rank: group[leader as usize] };
        let (actions, stage) = (VecDeque::new(), Stage::AwaitDecision);
        let world_size = u32::MAX;
        let mut creation = Self { group, rank: leader, leader, peer: 0, world_size, actions, stage };
        creation.refuse(refusal);
        creation
    }

    /// The intercommunicator that other ranks may have already, although this rank has not.
    #[must_use]
    pub fn confirmed(&self) -> Option<&Intercommunicator> {
        match &self.stage {
            Stage::AwaitSettlement(made) | Stage::AwaitVerdict { made, own: Ok(()) } => Some(made),
            _ => None,
        }
    }

    /// A message of the other leader, or `None` if that rank has finished.
    ///
    /// # Errors
    /// A message that violates the protocol. Actions that notify the local group follow.
    pub fn handle_peer(&mut self, octets: Option<&[u8]>) -> Result<(), ProtocolError> {
        let parsed = octets.map_or(Ok((0, Err(Refusal::Ended { ranks: vec![self.peer] }))), |octets| {
            self.parse_peer(octets)
        });
        let error = parsed.as_ref().err().copied();
        let damaged = || (0, Err(Refusal::Damaged { ranks: vec![self.peer] }));
        let (echo, answer) = parsed.unwrap_or_else(|_| damaged());
        match &mut self.stage {
            Stage::AwaitOffer { own: Err(refusal), .. } => {
                let refusal = refusal.clone();
                self.refuse(refusal);
            }
            Stage::AwaitOffer { own: Ok(own), offer } => match (answer, offer.take()) {
                // Messages that were left over from an earlier creation come first, and echo another context.
                (Ok(None), Some((theirs, remote))) if echo == *own => {
                    let own = *own;
                    self.join(own, theirs, &remote);
                }
                (Ok(Some(next)), _) => {
                    let theirs = next.0;
                    *offer = Some(next);
                    self.actions.push_back(Action::ReceivePeer);
                    self.tell_peer(theirs, &[]);
                }
                (Err(refusal), _) if echo == *own || echo == 0 => self.refuse(refusal),
                (_, kept) => {
                    *offer = kept;
                    self.actions.push_back(Action::ReceivePeer);
                }
            },
            Stage::AwaitVerdict { own, .. } => {
                let verdict = own.clone().and(answer.map(drop));
                self.settle(verdict);
            }
            _ => return Err(self.peer_source().not_asked_for()),
        }
        error.map_or(Ok(()), Err)
    }

    /// Takes leave of the operation: actions that notify the other ranks follow, unless they may have the
    /// communicator already.
    pub fn leave(&mut self) {
        let refusal = Refusal::Left { rank: self.group[self.rank as usize] };
        match &self.stage {
            Stage::Allocate => {
                self.tell_peer(0, &emit(&refusal));
                self.refuse(refusal);
            }
            Stage::AwaitOffer { offer, .. } => {
                let theirs = offer.as_ref().map_or(0, |offer| offer.0);
                self.tell_peer(theirs, &emit(&refusal));
                self.refuse(refusal);
            }
            Stage::Confirm { theirs, .. } => {
                self.tell_peer(*theirs, &emit(&refusal));
                self.settle(Err(refusal));
            }
            Stage::AwaitVerdict { .. }
            | Stage::AwaitDecision
            | Stage::AwaitSettlement(_)
            | Stage::Done(_) => {}
        }
    }

    /// Sends the other leader a message that echoes the context of its offer, 0 without one.
    fn tell_peer(&mut self, echo: u64, payload: &[u8]) {
        let octets = [&echo.to_be_bytes()[..], payload].concat();
        self.actions.push_back(Action::SendPeer { octets });
    }

    fn peer_source(&self) -> From {
        From { source: self.peer, tag: tag::INTERCOMM_PEER }
    }

    /// Parses a message of the other leader: the context that it echoes, and the answer.
    fn parse_peer(&self, octets: &[u8]) -> Result<(u64, Answer), ProtocolError> {
        let from = self.peer_source();
        let Some((echo, payload)) = octets.split_first_chunk() else {
            return Err(from.length(octets.len(), ECHO_LEN));
        };
        let is_verdict = matches!(self.stage, Stage::AwaitVerdict { .. });
        let answer = match payload {
            [] => Ok(None),
            payload => match Decision::parse(from, payload, self.world_size)? {
                Decision::Member { context, members } if !is_verdict => Ok(Some((context, members))),
                decision => Err(refusal_of(&decision, from)?),
            },
        };
        Ok((u64::from_be_bytes(*echo), answer))
    }

    /// Begins to make the communicator of both groups.
    fn join(&mut self, own_context: u64, their_context: u64, remote: &[u32]) {
        let own: BTreeSet<u32> = self.group.iter().copied().collect();
        let mut both: Vec<u32> = remote.iter().copied().filter(|rank| own.contains(rank)).collect();
        if !both.is_empty() {
            both.sort_unstable();
            return self.refuse(Refusal::Overlap { ranks: both });
        }
        let is_first = self.group[self.rank as usize] < self.peer;
        let (first, second) = if is_first { (&self.group[..], remote) } else { (remote, &self.group[..]) };
        let made = Intercommunicator {
            context: if is_first { own_context } else { their_context },
            members: [first, second].concat(),
            first_len: first.len() as u32,
            rank: self.rank + if is_first { 0 } else { first.len() as u32 },
        };
        let decision = Decision::Member { context: made.context, members: made.members.clone() }.emit();
        for source in self.others() {
            self.actions.push_back(Action::Receive { source, tag: tag::INTERCOMM_CONFIRMATION });
        }
        self.tell_group(tag::INTERCOMM_DECISION, &decision);
        let awaited = (0..self.group.len() as u32).map(|rank| rank != self.leader).collect();
        self.stage = Stage::Confirm { made, theirs: their_context, awaited, ended: Vec::new() };
        self.judge_when_all_confirmed();
    }

    fn judge_when_all_confirmed(&mut self) {
        let Stage::Confirm { made, theirs, awaited, ended } = &self.stage else { return };
        if awaited.contains(&true) {
            return;
        }
        let own = if ended.is_empty() { Ok(()) } else { Err(Refusal::Ended { ranks: ended.clone() }) };
        let (theirs, payload) = (*theirs, own.as_ref().err().map_or(Vec::new(), emit));
        self.stage = Stage::AwaitVerdict { made: made.clone(), own };
        self.actions.push_back(Action::ReceivePeer);
        self.tell_peer(theirs, &payload);
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.tell_group(tag::INTERCOMM_DECISION, &emit(&refusal));
        self.stage = Stage::Done(Err(refusal));
    }

    fn settle(&mut self, verdict: Result<(), Refusal>) {
        let (Stage::Confirm { made, .. } | Stage::AwaitVerdict { made, .. }) = &self.stage else { return };
        let made = made.clone();
        self.tell_group(tag::INTERCOMM_SETTLEMENT, &verdict.as_ref().err().map_or(Vec::new(), emit));
        self.stage = Stage::Done(verdict.map(|()| made));
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let leader = self.leader;
        (0..self.group.len() as u32).filter(move |rank| *rank != leader)
    }

    fn tell_group(&mut self, tag: i32, octets: &[u8]) {
        for dest in self.others() {
            self.actions.push_back(Action::Send { dest, tag, octets: octets.to_vec() });
        }
    }

    fn handle_confirmation(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        let Stage::Confirm { awaited, .. } = &mut self.stage else { return Err(from.not_asked_for()) };
        match awaited.get_mut(from.source as usize) {
            Some(awaited) if *awaited => *awaited = false,
            _ => return Err(from.not_asked_for()),
        }
        // It was received, whatever its contents.
        self.judge_when_all_confirmed();
        if octets.is_empty() { Ok(()) } else { Err(from.length(octets.len(), 0)) }
    }

    fn handle_decision(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        if !matches!(self.stage, Stage::AwaitDecision) {
            return Err(from.not_asked_for());
        }
        self.stage = match Decision::parse(from, octets, self.world_size)? {
            Decision::Member { context, members } => {
                let made = self.made_of(context, members, from)?;
                // The receive first: a rank that has confirmed can receive its settlement.
                let (source, tag) = (self.leader, tag::INTERCOMM_SETTLEMENT);
                self.actions.push_back(Action::Receive { source, tag });
                let (tag, octets) = (tag::INTERCOMM_CONFIRMATION, Vec::new());
                self.actions.push_back(Action::Send { dest: self.leader, tag, octets });
                Stage::AwaitSettlement(made)
            }
            decision => Stage::Done(Err(refusal_of(&decision, from)?)),
        };
        Ok(())
    }

    /// The intercommunicator of these members, of which the local group is the first or the last part.
    fn made_of(
        &self,
        context: u64,
        members: Vec<u32>,
        from: From,
    ) -> Result<Intercommunicator, ProtocolError> {
        let (count, own) = (members.len(), self.group.len());
        let is_first = members.starts_with(&self.group);
        if count <= own || !(is_first || members.ends_with(&self.group)) {
            return Err(from.field("count", count as u64));
        }
        let first_len = if is_first { own } else { count - own } as u32;
        let rank = self.rank + if is_first { 0 } else { first_len };
        Ok(Intercommunicator { context, members, first_len, rank })
    }

    fn handle_settlement(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        let Stage::AwaitSettlement(made) = &self.stage else { return Err(from.not_asked_for()) };
        let outcome = match octets {
            [] => Ok(made.clone()),
            octets => Err(refusal_of(&Decision::parse(from, octets, self.world_size)?, from)?),
        };
        self.stage = Stage::Done(outcome);
        Ok(())
    }
}

impl Collective for IntercommCreation {
    type Outcome = Result<Intercommunicator, Refusal>;

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError> {
        let from = From { source, tag };
        let is_leader = self.rank == self.leader;
        match tag {
            tag::INTERCOMM_CONFIRMATION if is_leader => self.handle_confirmation(from, octets),
            tag::INTERCOMM_DECISION if source == self.leader => self.handle_decision(from, octets),
            tag::INTERCOMM_SETTLEMENT if source == self.leader => self.handle_settlement(from, octets),
            _ => Err(from.not_asked_for()),
        }
    }

    fn handle_ended(&mut self, source: u32, tag: i32) -> bool {
        let Stage::Confirm { awaited, ended, .. } = &mut self.stage else { return false };
        let is_awaited = tag == tag::INTERCOMM_CONFIRMATION && awaited.get(source as usize) == Some(&true);
        if is_awaited {
            awaited[source as usize] = false;
            ended.push(self.group[source as usize]);
            ended.sort_unstable();
            self.judge_when_all_confirmed();
        }
        is_awaited
    }

    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, ContextError>) {
        if !matches!(self.stage, Stage::Allocate) {
            return;
        }
        let own = contexts.map(|contexts| contexts[0]).map_err(|_| Refusal::NoContexts);
        let payload = match &own {
            Ok(context) => Decision::Member { context: *context, members: self.group.clone() }.emit(),
            Err(refusal) => emit(refusal),
        };
        self.stage = Stage::AwaitOffer { own, offer: None };
        self.actions.push_back(Action::ReceivePeer);
        self.tell_peer(0, &payload);
    }

    fn result(&self) -> Option<Self::Outcome> {
        match &self.stage {
            Stage::Done(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }
}

/// Octets of the echo before the payload of a leader's message.
const ECHO_LEN: usize = 8;

/// The payload of a refusal.
fn emit(refusal: &Refusal) -> Vec<u8> {
    let decision = match refusal {
        Refusal::Overlap { ranks } => Decision::Overlap { ranks: ranks.clone() },
        Refusal::Left { rank } => Decision::Left { ranks: vec![*rank] },
        Refusal::Ended { ranks } => Decision::Ended { ranks: ranks.clone() },
        Refusal::Damaged { ranks } => Decision::Damaged { ranks: ranks.clone() },
        Refusal::NoContexts
        | Refusal::DifferentIds { .. }
        | Refusal::BadIds { .. }
        | Refusal::IdOutOfRange { .. }
        | Refusal::RepeatedId { .. } => Decision::NoContexts,
    };
    decision.emit()
}

/// The refusal that a payload names.
fn refusal_of(decision: &Decision, from: From) -> Result<Refusal, ProtocolError> {
    match decision {
        Decision::Overlap { ranks } => Ok(Refusal::Overlap { ranks: ranks.clone() }),
        Decision::Left { ranks } => Ok(Refusal::Left { rank: ranks[0] }),
        Decision::Ended { ranks } => Ok(Refusal::Ended { ranks: ranks.clone() }),
        Decision::Damaged { ranks } => Ok(Refusal::Damaged { ranks: ranks.clone() }),
        Decision::NoContexts => Ok(Refusal::NoContexts),
        Decision::Member { .. }
        | Decision::NoMember
        | Decision::DifferentIds { .. }
        | Decision::BadIds { .. } => {
            let (field, value) = decision.as_misfit();
            Err(from.field(field, value))
        }
    }
}

/// The tag of the leaders' messages in the collective context of the peer communicator, where `tag` is the
/// program's, from 0 to `tag_max`. Creations with different tags do not mix.
#[must_use]
pub fn peer_tag(tag: i32, tag_max: i32) -> i32 {
    tag::INTERCOMM_PEER + tag % (tag_max - tag::INTERCOMM_PEER + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_leaders_lie_above_those_of_the_machines() {
        assert_eq!(peer_tag(0, 32_767), tag::INTERCOMM_PEER);
        assert_eq!(peer_tag(32_767, 32_767), 2 * tag::INTERCOMM_PEER - 1);
        assert_eq!(peer_tag(i32::MAX - tag::INTERCOMM_PEER, i32::MAX), i32::MAX);
        assert_eq!(peer_tag(i32::MAX, i32::MAX), 2 * tag::INTERCOMM_PEER - 1);
    }
}
