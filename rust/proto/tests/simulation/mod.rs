//! Ranks that run collective machines over a simulated network.
//!
//! Messages between one pair of ranks stay in order; all others arrive in any order. All random choices come
//! from one seed.

use std::collections::VecDeque;

use mpjdev_proto::collective::{Action, Barrier, Collective, Communicator, Creation, ProtocolError, Refusal};
use mpjdev_proto::context::{self, ContextAllocator};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::{Matcher, Posted};

pub(crate) use crate::random::Random;

/// The next call of a rank.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Barrier,
    Dup,
    Create(Vec<i32>),
    Split { color: i32, key: i32 },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Created(Result<Option<Communicator>, Refusal>),
}

/// Messages in order: tag and octets.
type Wire = VecDeque<(i32, Vec<u8>)>;

/// Changes a payload in flight: source, destination, tag, octets.
pub(crate) type Damage = Box<dyn FnMut(u32, u32, i32, &mut Vec<u8>)>;

pub(crate) struct Simulation {
    random: Random,
    ranks: Vec<Rank>,
    /// Messages in flight, by source and destination.
    wires: Vec<Vec<Wire>>,
    allocator: ContextAllocator,
    damage: Option<Damage>,
    /// Errors of ranks on invalid payloads: (rank, error).
    pub(crate) errors: Vec<(u32, ProtocolError)>,
    /// For each call, in order: the number of ranks that have begun it.
    begun: Vec<usize>,
}

struct Rank {
    calls: VecDeque<Call>,
    machine: Option<Machine>,
    matcher: Matcher<(), Vec<u8>>,
    /// Completed receives that are not passed in yet.
    received: Vec<(u32, i32, Vec<u8>)>,
    outcomes: Vec<Outcome>,
}

enum Machine {
    Barrier(Barrier),
    Creation(Box<Creation>),
}

impl Simulation {
    /// `calls[rank]` are the consecutive calls of that rank.
    pub(crate) fn new(seed: u64, calls: Vec<Vec<Call>>, allocator: ContextAllocator) -> Self {
        let size = calls.len();
        let rank = |calls: Vec<Call>| Rank {
            calls: calls.into(),
            machine: None,
            matcher: Matcher::new(),
            received: Vec::new(),
            outcomes: Vec::new(),
        };
        Self {
            random: Random::new(seed),
            begun: vec![0; calls[0].len()],
            ranks: calls.into_iter().map(rank).collect(),
            wires: vec![vec![Wire::new(); size]; size],
            allocator,
            damage: None,
            errors: Vec::new(),
        }
    }

    pub(crate) fn damage_with(mut self, damage: Damage) -> Self {
        self.damage = Some(damage);
        self
    }

    /// Runs until no event is left; returns each rank's outcomes.
    pub(crate) fn run(&mut self) -> Vec<Vec<Outcome>> {
        loop {
            let moves = self.moves();
            if moves.is_empty() {
                return self.ranks.iter().map(|rank| rank.outcomes.clone()).collect();
            }
            let chosen = moves[self.random.below(moves.len())];
            self.make(chosen);
        }
    }

    /// Messages without a receive, and receives without a message, at the end.
    pub(crate) fn left_over(&self) -> usize {
        let in_flight: usize = self.wires.iter().flatten().map(VecDeque::len).sum();
        let at_ranks =
            self.ranks.iter().map(|r| r.matcher.unexpected_len() + r.matcher.posted_len() + r.received.len());
        in_flight + at_ranks.sum::<usize>()
    }

    fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, rank) in self.ranks.iter().enumerate() {
            if rank.machine.is_none() && !rank.calls.is_empty() {
                moves.push(Move::Begin { rank: at });
            }
            if !rank.received.is_empty() {
                moves.push(Move::HandIn { rank: at });
            }
            for (dest, wire) in self.wires[at].iter().enumerate() {
                if !wire.is_empty() {
                    moves.push(Move::Deliver { source: at, dest });
                }
            }
        }
        moves
    }

    fn make(&mut self, chosen: Move) {
        match chosen {
            Move::Begin { rank } => {
                let size = self.ranks.len() as u32;
                let begun = self.ranks[rank].outcomes.len();
                self.begun[begun] += 1;
                let call = self.ranks[rank].calls.pop_front().unwrap();
                self.ranks[rank].machine = Some(Machine::new(rank as u32, size, &call));
                self.drive(rank);
            }
            Move::Deliver { source, dest } => {
                let (tag, octets) = self.wires[source][dest].pop_front().unwrap();
                let envelope = Envelope { context: COLLECTIVE, source: source as u32, tag };
                let rank = &mut self.ranks[dest];
                match rank.matcher.match_arrival(&envelope) {
                    Some(_) => rank.received.push((envelope.source, envelope.tag, octets)),
                    None => rank.matcher.add_unexpected(envelope, octets),
                }
            }
            Move::HandIn { rank } => {
                let which = self.random.below(self.ranks[rank].received.len());
                let (source, tag, octets) = self.ranks[rank].received.swap_remove(which);
                let machine = self.ranks[rank].machine.as_mut().expect("a receive has its machine");
                if let Err(error) = machine.get().handle_received(source, tag, &octets) {
                    self.errors.push((rank as u32, error));
                }
                self.drive(rank);
            }
        }
    }

    /// Carries out the actions of the rank's machine, and takes its result.
    fn drive(&mut self, rank: usize) {
        let mut machine = self.ranks[rank].machine.take().unwrap();
        while let Some(action) = machine.get().poll_action() {
            match action {
                Action::Send { dest, tag, mut octets } => {
                    if let Some(damage) = &mut self.damage {
                        damage(rank as u32, dest, tag, &mut octets);
                    }
                    self.wires[rank][dest as usize].push_back((tag, octets));
                }
                Action::Receive { source, tag } => {
                    let selector = Selector { context: COLLECTIVE, source: Some(source), tag: Some(tag) };
                    let posted = self.ranks[rank].matcher.post(selector, ());
                    if let Posted::Matched { envelope, message, .. } = posted {
                        self.ranks[rank].received.push((envelope.source, envelope.tag, message));
                    }
                }
                Action::SendPeer { .. } | Action::ReceivePeer => panic!("there is one communicator"),
                Action::Allocate { count } => {
                    assert_eq!(rank, 0, "only the lowest rank allocates");
                    machine.get().handle_contexts(self.allocator.allocate_many(count));
                }
            }
        }
        match machine.outcome() {
            Some(outcome) => self.finish(rank, outcome),
            None => self.ranks[rank].machine = Some(machine),
        }
    }

    fn finish(&mut self, rank: usize, outcome: Outcome) {
        if outcome == Outcome::Passed {
            let call = self.ranks[rank].outcomes.len();
            assert_eq!(
                self.begun[call],
                self.ranks.len(),
                "rank {rank} left a barrier that not all had entered"
            );
        }
        self.ranks[rank].outcomes.push(outcome);
    }
}

#[derive(Debug, Clone, Copy)]
enum Move {
    /// A rank begins its next call.
    Begin { rank: usize },
    /// The first message in flight from `source` to `dest` arrives.
    Deliver { source: usize, dest: usize },
    /// One of the rank's completed receives is passed to its machine.
    HandIn { rank: usize },
}

/// The two machines behind the trait's methods, whatever their outcome.
trait Driven {
    fn poll_action(&mut self) -> Option<Action>;
    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError>;
    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, context::ContextError>);
}

impl<C: Collective> Driven for C {
    fn poll_action(&mut self) -> Option<Action> {
        Collective::poll_action(self)
    }

    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError> {
        Collective::handle_received(self, source, tag, octets)
    }

    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, context::ContextError>) {
        Collective::handle_contexts(self, contexts);
    }
}

impl Machine {
    fn new(rank: u32, size: u32, call: &Call) -> Self {
        let creation = match call {
            Call::Barrier => return Self::Barrier(Barrier::new(rank, size)),
            Call::Dup => Creation::dup(rank, size),
            Call::Create(ids) => Creation::create(rank, size, ids),
            Call::Split { color, key } => Creation::split(rank, size, *color, *key),
        };
        Self::Creation(Box::new(creation))
    }

    fn get(&mut self) -> &mut dyn Driven {
        match self {
            Self::Barrier(machine) => machine,
            Self::Creation(machine) => machine.as_mut(),
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Barrier(machine) => machine.result().map(|()| Outcome::Passed),
            Self::Creation(machine) => machine.result().map(Outcome::Created),
        }
    }
}

const COLLECTIVE: u64 = context::collective(context::WORLD);
