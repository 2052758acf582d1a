//! Creation of communicators: dup, create, split.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::machine::{Action, Collective, ProtocolError};
use super::messages::{self, Decision, From, Misfit, SplitRequest};
use super::refusal::Refusal;
use super::tag;
use crate::context::ContextError;

/// Makes new communicators out of one: `MPI_Comm_dup`, `MPI_Comm_create`, `MPI_Comm_split`.
///
/// Every rank of the parent takes part. In create and split each sends its arguments to rank 0; rank 0
/// decides, allocates a context id for each new communicator, and sends every rank its decision. Dup has no
/// arguments, so rank 0 begins with the decisions. If there are new communicators, all ranks confirm their
/// decisions, and rank 0 settles. No rank has a new communicator before the settlement, and a rank that
/// abandons the operation after its confirmation knows which one it might get
/// ([`confirmed`](Self::confirmed)). The cost at rank 0 is linear in the size. A tree would be faster for
/// many ranks, but creation is rare, and this way each request is checked where its sender is known.
///
/// A rank can receive its settlement, and send in the new communicator, before another rank has its own. Such
/// a message is unexpected in a context that its receiver does not use yet.
///
/// A failure of all ranks (lists that overlap, bad ids, no context ids left, a damaged request) is an
/// outcome: a [`Refusal`] on every rank, and the parent stays usable.
#[derive(Debug, Clone)]
pub struct Creation {
    rank: u32,
    size: u32,
    kind: Kind,
    actions: VecDeque<Action>,
    stage: Stage,
}

/// A new communicator, at one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// Its context id.
    pub context: u64,
    /// The parent's ranks of its members, in the order of their new ranks.
    pub members: Vec<u32>,
    /// This rank's new rank: its index in `members`.
    pub rank: u32,
}

/// The operation and its arguments at this rank.
#[derive(Debug, Clone)]
enum Kind {
    Dup,
    Create { ids: Vec<i32> },
    Split(SplitRequest),
}

#[derive(Debug, Clone)]
enum Stage {
    /// Rank 0: waits for requests.
    Gather {
        requests: Vec<Gathered>,
        /// The different lists among the requests of create: mostly all ranks share one.
        lists: BTreeSet<Arc<[u32]>>,
        missing: u32,
    },
    /// Rank 0: waits for the context ids of these communicators.
    Allocate {
        groups: Vec<Vec<u32>>,
    },
    /// Rank 0: waits for the confirmations of the ranks marked here.
    Confirm {
        made: Option<Communicator>,
        awaited: Vec<bool>,
        ended: Vec<u32>,
    },
    /// Other ranks: waits for the decision.
    AwaitDecision,
    /// Other ranks: waits for the settlement.
    AwaitSettlement(Option<Communicator>),
    Done(Result<Option<Communicator>, Refusal>),
}

/// Rank 0's view of one rank's request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Gathered {
    Missing,
    Damaged,
    Ended,
    /// Ids that are not a list of different ranks.
    BadIds,
    Create(Arc<[u32]>),
    Split(SplitRequest),
}

impl Creation {
    /// A communicator of the same members with a context of its own.
    ///
    /// # Panics
    /// When `rank` is not below `size`.
    #[must_use]
    pub fn dup(rank: u32, size: u32) -> Self {
        Self::begin(rank, size, Kind::Dup)
    }

    /// A communicator of the parent's ranks `ids`, in this order; `None` for a rank outside its own list.
    ///
    /// All ranks of a list must pass this list. Lists without a common rank make one communicator each. (MPI
    /// 4.1, 7.4.2 Communicator Constructors.) Rank 0 checks that, and that the ids are different ranks of the
    /// parent, so that no rank waits for one that has abandoned the operation.
    ///
    /// # Panics
    /// When `rank` is not below `size`.
    #[must_use]
    pub fn create(rank: u32, size: u32, ids: &[i32]) -> Self {
        Self::begin(rank, size, Kind::Create { ids: ids.to_vec() })
    }

    /// One communicator per color, its ranks ordered by key and among equal keys by their rank in the parent.
    ///
    /// A negative color is `MPI_UNDEFINED`: the rank gets `None`. (MPI 4.1, 7.4.2 Communicator Constructors.)
    ///
    /// # Panics
    /// When `rank` is not below `size`.
    #[must_use]
    pub fn split(rank: u32, size: u32, color: i32, key: i32) -> Self {
        Self::begin(rank, size, Kind::Split(SplitRequest { color, key }))
    }

    /// The new communicator of a rank that has confirmed its decision and waits for the settlement: other
    /// ranks may have this communicator already.
    #[must_use]
    pub fn confirmed(&self) -> Option<&Communicator> {
        match &self.stage {
            Stage::AwaitSettlement(made) => made.as_ref(),
            _ => None,
        }
    }

    fn begin(rank: u32, size: u32, kind: Kind) -> Self {
        assert!(rank < size, "rank {rank} in a communicator of {size}");
        let stage = Stage::AwaitDecision;
        let mut creation = Self { rank, size, kind, actions: VecDeque::new(), stage };
        if rank == ROOT {
            creation.begin_at_root();
        } else {
            creation.begin_elsewhere();
        }
        creation
    }

    fn begin_elsewhere(&mut self) {
        if let Some(tag) = self.kind.request_tag() {
            let octets = self.kind.emit_request(self.size);
            self.actions.push_back(Action::Send { dest: ROOT, tag, octets });
        }
        let tag = self.kind.decision_tag();
        self.actions.push_back(Action::Receive { source: ROOT, tag });
    }

    fn begin_at_root(&mut self) {
        let Some(tag) = self.kind.request_tag() else {
            self.allocate(vec![(0..self.size).collect()]);
            return;
        };
        let others = ROOT + 1..self.size;
        self.actions.extend(others.map(|source| Action::Receive { source, tag }));
        let mut requests = vec![Gathered::Missing; self.size as usize];
        let mut lists = BTreeSet::new();
        requests[ROOT as usize] = shared(self.kind.own_request(self.size), &mut lists);
        self.stage = Stage::Gather { requests, lists, missing: self.size - 1 };
        self.decide_when_all_asked();
    }

    fn handle_request(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        let Stage::Gather { requests, lists, missing } = &mut self.stage else {
            return Err(from.not_asked_for());
        };
        let request = match requests.get_mut(from.source as usize) {
            Some(request) if *request == Gathered::Missing => request,
            _ => return Err(from.not_asked_for()),
        };
        let (parsed, outcome) = match self.kind.parse_request(from, octets, self.size) {
            Ok(parsed) => (parsed, Ok(())),
            Err(error) => (Gathered::Damaged, Err(error)),
        };
        *request = shared(parsed, lists);
        *missing -= 1;
        self.decide_when_all_asked();
        outcome
    }

    fn decide_when_all_asked(&mut self) {
        let Stage::Gather { requests, missing: 0, .. } = &self.stage else {
            return;
        };
        if let Some(failure) = failure_of(requests) {
            return self.refuse(&failure);
        }
        match &self.kind {
            Kind::Dup => {}
            Kind::Split(_) => self.allocate(groups_by_color(requests)),
            Kind::Create { .. } => match groups_by_list(requests) {
                Ok(groups) => self.allocate(groups),
                Err(ranks) => self.refuse(&Decision::DifferentIds { ranks }),
            },
        }
    }

    fn allocate(&mut self, groups: Vec<Vec<u32>>) {
        // There are at most as many groups as ranks, a u32.
        let count = groups.len() as u32;
        self.stage = Stage::Allocate { groups };
        if count > 0 {
            self.actions.push_back(Action::Allocate { count });
        } else {
            self.announce(&[]);
        }
    }

    /// Sends every rank its decision.
    fn announce(&mut self, contexts: &[u64]) {
        let Stage::Allocate { groups } = &self.stage else {
            return;
        };
        assert_eq!(contexts.len(), groups.len(), "context ids for {} communicators", groups.len());
        let mut decisions = vec![Decision::NoMember; self.size as usize];
        for (members, context) in groups.iter().zip(contexts) {
            for member in members {
                decisions[*member as usize] =
                    Decision::Member { context: *context, members: members.clone() };
            }
        }
        let others = ROOT + 1..self.size;
        let own = self.outcome(&decisions[ROOT as usize]);
        self.actions.extend(others.clone().map(|source| Action::Receive { source, tag: tag::CONFIRMATION }));
        for dest in others {
            self.send_decision(dest, &decisions[dest as usize]);
        }
        // Rank 0's own decision fits its request by construction.
        let Ok(Ok(made)) = own else { return };
        let awaited = (0..self.size).map(|rank| rank != ROOT).collect();
        self.stage = Stage::Confirm { made, awaited, ended: Vec::new() };
        self.settle_when_all_confirmed();
    }

    fn handle_confirmation(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        let Stage::Confirm { awaited, .. } = &mut self.stage else { return Err(from.not_asked_for()) };
        match awaited.get_mut(from.source as usize) {
            Some(awaited) if *awaited => *awaited = false,
            _ => return Err(from.not_asked_for()),
        }
        // It was received, whatever its contents.
        self.settle_when_all_confirmed();
        if octets.is_empty() { Ok(()) } else { Err(from.length(octets.len(), 0)) }
    }

    fn settle_when_all_confirmed(&mut self) {
        let Stage::Confirm { made, awaited, ended } = &self.stage else { return };
        if awaited.contains(&true) {
            return;
        }
        let (outcome, octets) = match ended.is_empty() {
            true => (Ok(made.clone()), Vec::new()),
            false => (
                Err(Refusal::Ended { ranks: ended.clone() }),
                Decision::Ended { ranks: ended.clone() }.emit(),
            ),
        };
        let settlement = |dest| Action::Send { dest, tag: tag::SETTLEMENT, octets: octets.clone() };
        self.actions.extend((ROOT + 1..self.size).map(settlement));
        self.stage = Stage::Done(outcome);
    }

    fn refuse(&mut self, decision: &Decision) {
        for dest in 0..self.size {
            self.send_decision(dest, decision);
        }
    }

    fn send_decision(&mut self, dest: u32, decision: &Decision) {
        if dest == self.rank {
            // Rank 0's own decision fits its request by construction.
            if let Ok(outcome) = self.outcome(decision) {
                self.stage = Stage::Done(outcome);
            }
            return;
        }
        let tag = self.kind.decision_tag();
        self.actions.push_back(Action::Send { dest, tag, octets: decision.emit() });
    }

    fn handle_decision(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        if !matches!(self.stage, Stage::AwaitDecision) {
            return Err(from.not_asked_for());
        }
        let decision = Decision::parse(from, octets, self.size)?;
        let outcome = self.outcome(&decision).map_err(|(field, value)| from.field(field, value))?;
        self.stage = match outcome {
            Ok(made) => {
                // The receive first: a rank that has confirmed can receive its settlement.
                self.actions.push_back(Action::Receive { source: ROOT, tag: tag::SETTLEMENT });
                let octets = Vec::new();
                self.actions.push_back(Action::Send { dest: ROOT, tag: tag::CONFIRMATION, octets });
                Stage::AwaitSettlement(made)
            }
            refused => Stage::Done(refused),
        };
        Ok(())
    }

    fn handle_settlement(&mut self, from: From, octets: &[u8]) -> Result<(), ProtocolError> {
        let Stage::AwaitSettlement(made) = &self.stage else { return Err(from.not_asked_for()) };
        let outcome = match octets {
            [] => Ok(made.clone()),
            octets => match Decision::parse(from, octets, self.size)? {
                Decision::Ended { ranks } => Err(Refusal::Ended { ranks }),
                other => {
                    let (field, value) = other.as_misfit();
                    return Err(from.field(field, value));
                }
            },
        };
        self.stage = Stage::Done(outcome);
        Ok(())
    }

    /// The outcome of a decision for this rank, or the field that contradicts its request.
    fn outcome(&self, decision: &Decision) -> Result<Result<Option<Communicator>, Refusal>, Misfit> {
        match (decision, &self.kind) {
            (Decision::Member { context, members }, kind) => {
                let rank = self.place_among(members)?;
                kind.check_members(members, self.size)?;
                Ok(Ok(Some(Communicator { context: *context, members: members.clone(), rank })))
            }
            (Decision::NoMember, kind) if kind.may_leave_out(self.rank, self.size) => Ok(Ok(None)),
            (Decision::BadIds { ranks }, Kind::Create { ids }) => {
                match (checked_ids(ids, self.size), ranks.contains(&self.rank)) {
                    (Err(refusal), true) => Ok(Err(refusal)),
                    (Ok(_), false) => Ok(Err(Refusal::BadIds { ranks: ranks.clone() })),
                    _ => Err(decision.as_misfit()),
                }
            }
            (Decision::DifferentIds { ranks }, Kind::Create { .. }) => {
                Ok(Err(Refusal::DifferentIds { ranks: ranks.clone() }))
            }
            (Decision::NoContexts, _) => Ok(Err(Refusal::NoContexts)),
            (Decision::Damaged { ranks }, Kind::Create { .. } | Kind::Split(_)) => {
                Ok(Err(Refusal::Damaged { ranks: ranks.clone() }))
            }
            (Decision::Ended { ranks }, Kind::Create { .. } | Kind::Split(_)) => {
                Ok(Err(Refusal::Ended { ranks: ranks.clone() }))
            }
            (
                Decision::NoMember
                | Decision::DifferentIds { .. }
                | Decision::BadIds { .. }
                | Decision::Damaged { .. }
                | Decision::Ended { .. }
                | Decision::Overlap { .. }
                | Decision::Left { .. },
                _,
            ) => Err(decision.as_misfit()),
        }
    }

    fn place_among(&self, members: &[u32]) -> Result<u32, Misfit> {
        let place = members.iter().position(|member| *member == self.rank);
        // There are at most as many members as ranks, a u32.
        place.map(|place| place as u32).ok_or(("count", members.len() as u64))
    }
}

impl Collective for Creation {
    /// `None` where this rank belongs to no new communicator.
    type Outcome = Result<Option<Communicator>, Refusal>;

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError> {
        let from = From { source, tag };
        if self.rank == ROOT && Some(tag) == self.kind.request_tag() {
            self.handle_request(from, octets)
        } else if self.rank == ROOT && tag == tag::CONFIRMATION {
            self.handle_confirmation(from, octets)
        } else if self.rank != ROOT && source == ROOT && tag == tag::SETTLEMENT {
            self.handle_settlement(from, octets)
        } else if self.rank != ROOT && source == ROOT && tag == self.kind.decision_tag() {
            self.handle_decision(from, octets)
        } else {
            Err(from.not_asked_for())
        }
    }

    fn handle_ended(&mut self, source: u32, tag: i32) -> bool {
        if let Stage::Confirm { awaited, ended, .. } = &mut self.stage {
            let is_awaited = tag == tag::CONFIRMATION && awaited.get(source as usize) == Some(&true);
            if is_awaited {
                awaited[source as usize] = false;
                ended.push(source);
                ended.sort_unstable();
                self.settle_when_all_confirmed();
            }
            return is_awaited;
        }
        let asked = self.rank == ROOT && Some(tag) == self.kind.request_tag();
        let Stage::Gather { requests, missing, .. } = &mut self.stage else { return false };
        match requests.get_mut(source as usize) {
            Some(request) if asked && *request == Gathered::Missing => *request = Gathered::Ended,
            _ => return false,
        }
        *missing -= 1;
        self.decide_when_all_asked();
        true
    }

    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, ContextError>) {
        if !matches!(self.stage, Stage::Allocate { .. }) {
            return;
        }
        match contexts {
            Ok(contexts) => self.announce(&contexts),
            Err(_) => self.refuse(&Decision::NoContexts),
        }
    }

    fn result(&self) -> Option<Self::Outcome> {
        match &self.stage {
            Stage::Done(outcome) => Some(outcome.clone()),
            Stage::Gather { .. }
            | Stage::Allocate { .. }
            | Stage::Confirm { .. }
            | Stage::AwaitDecision
            | Stage::AwaitSettlement(_) => None,
        }
    }
}

impl Kind {
    fn request_tag(&self) -> Option<i32> {
        match self {
            Self::Dup => None,
            Self::Create { .. } => Some(tag::CREATE_REQUEST),
            Self::Split(_) => Some(tag::SPLIT_REQUEST),
        }
    }

    fn decision_tag(&self) -> i32 {
        match self {
            Self::Dup => tag::DUP_DECISION,
            Self::Create { .. } => tag::CREATE_DECISION,
            Self::Split(_) => tag::SPLIT_DECISION,
        }
    }

    fn emit_request(&self, size: u32) -> Vec<u8> {
        match self {
            Self::Dup => Vec::new(),
            Self::Create { ids } => messages::emit_ids(ids, size),
            Self::Split(request) => request.emit(),
        }
    }

    fn own_request(&self, size: u32) -> Gathered {
        match self {
            Self::Dup => Gathered::Missing,
            Self::Create { ids } => list_of(ids, size),
            Self::Split(request) => Gathered::Split(*request),
        }
    }

    /// Another rank's request, which must be of this rank's kind.
    fn parse_request(&self, from: From, octets: &[u8], size: u32) -> Result<Gathered, ProtocolError> {
        match self {
            Self::Dup => Err(from.not_asked_for()),
            Self::Create { .. } => {
                let ids = messages::parse_ids(from, octets, size)?;
                Ok(ids.map_or(Gathered::BadIds, |ids| list_of(&ids, size)))
            }
            Self::Split(_) => SplitRequest::parse(from, octets).map(Gathered::Split),
        }
    }

    /// Checks the members in the decision against this rank's arguments.
    fn check_members(&self, members: &[u32], size: u32) -> Result<(), Misfit> {
        let unfit = ("count", members.len() as u64);
        let known: Vec<u32> = match self {
            Self::Dup => (0..size).collect(),
            Self::Create { ids } => checked_ids(ids, size).map_err(|_| unfit)?,
            Self::Split(request) if request.color < 0 => return Err(unfit),
            Self::Split(_) => return Ok(()),
        };
        if known.len() != members.len() {
            return Err(unfit);
        }
        match known.iter().zip(members).find(|(known, member)| known != member) {
            Some((_, member)) => Err(("rank", u64::from(*member))),
            None => Ok(()),
        }
    }

    /// Whether this rank can end up without a communicator.
    fn may_leave_out(&self, rank: u32, size: u32) -> bool {
        match self {
            Self::Dup => false,
            Self::Create { ids } => checked_ids(ids, size).is_ok_and(|ranks| !ranks.contains(&rank)),
            Self::Split(request) => request.color < 0,
        }
    }
}

/// The ranks, ascending, whose request matches.
fn ranks_where(requests: &[Gathered], is: impl Fn(&Gathered) -> bool) -> Vec<u32> {
    let numbered = (0..).zip(requests);
    numbered.filter(|(_, request)| is(request)).map(|(rank, _)| rank).collect()
}

/// The decision if the requests of some ranks are missing or of no use.
fn failure_of(requests: &[Gathered]) -> Option<Decision> {
    let ranks = |failure| {
        let ranks = ranks_where(requests, |request| *request == failure);
        (!ranks.is_empty()).then_some(ranks)
    };
    let ended = ranks(Gathered::Ended).map(|ranks| Decision::Ended { ranks });
    let damaged = || ranks(Gathered::Damaged).map(|ranks| Decision::Damaged { ranks });
    ended.or_else(damaged).or_else(|| ranks(Gathered::BadIds).map(|ranks| Decision::BadIds { ranks }))
}

/// The request of create with these ids.
fn list_of(ids: &[i32], size: u32) -> Gathered {
    checked_ids(ids, size).map_or(Gathered::BadIds, |ranks| Gathered::Create(ranks.into()))
}

/// The request, with the list of an equal one: the lists of many ranks would take much memory.
fn shared(request: Gathered, lists: &mut BTreeSet<Arc<[u32]>>) -> Gathered {
    let Gathered::Create(list) = request else { return request };
    if let Some(known) = lists.get(&list) {
        return Gathered::Create(known.clone());
    }
    lists.insert(list.clone());
    Gathered::Create(list)
}

/// The members of each new communicator: the lists that all their ranks have passed. Or the ranks whose list
/// has a rank that passed another one.
fn groups_by_list(requests: &[Gathered]) -> Result<Vec<Vec<u32>>, Vec<u32>> {
    let mut lists: BTreeMap<&[u32], bool> = BTreeMap::new();
    for request in requests {
        if let Gathered::Create(list) = request {
            let is_of_all =
                || list.iter().all(|rank| requests.get(*rank as usize).is_some_and(|r| r == request));
            lists.entry(list).or_insert_with(is_of_all);
        }
    }
    let refused = ranks_where(
        requests,
        |request| matches!(request, Gathered::Create(list) if lists.get(&**list) == Some(&false)),
    );
    if refused.is_empty() {
        Ok(lists.into_keys().filter(|list| !list.is_empty()).map(<[u32]>::to_vec).collect())
    } else {
        Err(refused)
    }
}

/// The members of each new communicator: by color, then key, then rank in the parent.
fn groups_by_color(requests: &[Gathered]) -> Vec<Vec<u32>> {
    let mut colors: BTreeMap<i32, Vec<(i32, u32)>> = BTreeMap::new();
    for (rank, request) in (0..).zip(requests) {
        if let Gathered::Split(SplitRequest { color, key }) = *request
            && color >= 0
        {
            colors.entry(color).or_default().push((key, rank));
        }
    }
    let groups = colors.into_values().map(|mut group| {
        group.sort_unstable();
        group.into_iter().map(|(_, rank)| rank).collect()
    });
    groups.collect()
}

/// The ids as ranks: each below the size and unique.
fn checked_ids(ids: &[i32], size: u32) -> Result<Vec<u32>, Refusal> {
    let mut seen = vec![false; size as usize];
    let mut ranks = Vec::new();
    for (position, id) in ids.iter().copied().enumerate() {
        let Some(rank) = u32::try_from(id).ok().filter(|rank| *rank < size) else {
            return Err(Refusal::IdOutOfRange { position, id, size });
        };
        if std::mem::replace(&mut seen[rank as usize], true) {
            return Err(Refusal::RepeatedId { position, id });
        }
        ranks.push(rank);
    }
    Ok(ranks)
}

/// The rank that gathers, decides and allocates: the parent's lowest.
const ROOT: u32 = 0;
