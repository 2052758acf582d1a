//! Creation of intercommunicators: two groups over a simulated network. A failure names its seed, and the
//! seed repeats it.

mod random;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mpjdev_proto::collective::{
    Action, Collective, IntercommCreation, Intercommunicator, ProtocolError, Refusal, payload_len_max,
};
use mpjdev_proto::context::ContextAllocator;
use random::Random;

const WORLD_SIZE: u32 = 12;
const SEEDS: u64 = 60;

type Outcome = Result<Intercommunicator, Refusal>;

/// The sender that a receive names, numbered in the world, and its tag; the tag of a leader is `None`.
type Source = (u32, Option<i32>);

/// A rank of one of the groups.
struct Rank {
    group: usize,
    machine: IntercommCreation,
    allocator: ContextAllocator,
    has_begun: bool,
    has_left: bool,
    posted: BTreeSet<Source>,
}

struct Network {
    random: Random,
    groups: [Vec<u32>; 2],
    leaders: [u32; 2],
    ranks: BTreeMap<u32, Rank>,
    /// Messages in flight, by receiver and source.
    wires: BTreeMap<(u32, Source), VecDeque<Vec<u8>>>,
    /// Ranks that have finished without taking part.
    ended: BTreeSet<u32>,
    errors: Vec<ProtocolError>,
}

impl Network {
    /// Two groups of world ranks, led by these ranks of the groups.
    fn new(seed: u64, groups: [Vec<u32>; 2], leaders: [usize; 2]) -> Self {
        let leaders = [groups[0][leaders[0]], groups[1][leaders[1]]];
        let mut ranks = BTreeMap::new();
        for (at, group) in groups.iter().enumerate() {
            let leader = group.iter().position(|world| *world == leaders[at]).unwrap() as u32;
            for (rank, world) in (0..).zip(group) {
                let peer = leaders[1 - at];
                let machine = IntercommCreation::new(group.clone(), rank, leader, peer, WORLD_SIZE);
                let allocator = ContextAllocator::new(*world).unwrap();
                let posted = BTreeSet::new();
                let rank = Rank { group: at, machine, allocator, has_begun: false, has_left: false, posted };
                ranks.insert(*world, rank);
            }
        }
        let (wires, ended, errors) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { random: Random::new(seed), groups, leaders, ranks, wires, ended, errors }
    }

    /// Groups with random members and leaders.
    fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut worlds: Vec<u32> = (0..WORLD_SIZE).collect();
        for at in (1..worlds.len()).rev() {
            worlds.swap(at, random.below(at + 1));
        }
        let first = 1 + random.below(5);
        let second = 1 + random.below(5);
        let groups = [worlds[..first].to_vec(), worlds[first..first + second].to_vec()];
        Self::new(seed, groups, [random.below(first), random.below(second)])
    }

    /// Makes one random step; false when none is possible.
    fn step(&mut self) -> bool {
        let mut steps = Vec::new();
        for (world, rank) in &self.ranks {
            if self.ended.contains(world) || rank.has_left {
                continue;
            }
            if !rank.has_begun {
                steps.push((*world, None));
            }
            for source in &rank.posted {
                let has_message = self.wires.get(&(*world, *source)).is_some_and(|wire| !wire.is_empty());
                if has_message || self.ended.contains(&source.0) {
                    steps.push((*world, Some(*source)));
                }
            }
        }
        if steps.is_empty() {
            return false;
        }
        match steps[self.random.below(steps.len())] {
            (world, None) => self.ranks.get_mut(&world).unwrap().has_begun = true,
            (world, Some(source)) => self.hand_in(world, source),
        }
        let all: Vec<u32> = self.ranks.keys().copied().collect();
        all.into_iter().for_each(|world| self.act(world));
        true
    }

    fn hand_in(&mut self, world: u32, source: Source) {
        let message = self.wires.get_mut(&(world, source)).and_then(VecDeque::pop_front);
        let rank = self.ranks.get_mut(&world).unwrap();
        rank.posted.remove(&source);
        let group = &self.groups[rank.group];
        let local = || group.iter().position(|member| *member == source.0).unwrap() as u32;
        let handled = match (source.1, message) {
            (None, message) => rank.machine.handle_peer(message.as_deref()),
            (Some(tag), Some(octets)) => rank.machine.handle_received(local(), tag, &octets),
            (Some(tag), None) => {
                rank.has_left |= !rank.machine.handle_ended(local(), tag);
                Ok(())
            }
        };
        self.errors.extend(handled.err());
    }

    /// Carries out the actions of a machine.
    fn act(&mut self, world: u32) {
        let rank = self.ranks.get_mut(&world).unwrap();
        if !rank.has_begun {
            return;
        }
        let group = &self.groups[rank.group];
        let other = self.leaders[1 - rank.group];
        while let Some(action) = rank.machine.poll_action() {
            match action {
                Action::Send { dest, tag, octets } => {
                    assert!(octets.len() <= payload_len_max(WORLD_SIZE));
                    let wire = (group[dest as usize], (world, Some(tag)));
                    self.wires.entry(wire).or_default().push_back(octets);
                }
                Action::SendPeer { octets } => {
                    self.wires.entry((other, (world, None))).or_default().push_back(octets);
                }
                Action::Receive { source, tag } => {
                    assert!(rank.posted.insert((group[source as usize], Some(tag))));
                }
                Action::ReceivePeer => assert!(rank.posted.insert((other, None))),
                Action::Allocate { count } => {
                    rank.machine.handle_contexts(rank.allocator.allocate_many(count));
                }
            }
        }
    }

    fn run(&mut self) {
        while self.step() {}
    }

    fn leave(&mut self, world: u32) {
        self.ranks.get_mut(&world).unwrap().machine.leave();
        self.act(world);
        let rank = self.ranks.get_mut(&world).unwrap();
        rank.has_left = true;
        rank.posted.clear();
    }

    /// Begins again with new local communicators. Messages between leaders that were not taken remain.
    fn again(&mut self) {
        self.wires.retain(|(_, source), _| source.1.is_none());
        for (world, rank) in &mut self.ranks {
            let group = self.groups[rank.group].clone();
            let place = |leader| group.iter().position(|member| member == leader).unwrap() as u32;
            let (own, leader) = (place(world), place(&self.leaders[rank.group]));
            let peer = self.leaders[1 - rank.group];
            rank.machine = IntercommCreation::new(group, own, leader, peer, WORLD_SIZE);
            (rank.has_begun, rank.has_left) = (false, false);
            rank.posted.clear();
        }
    }

    fn outcome(&self, world: u32) -> Option<Outcome> {
        self.ranks[&world].machine.result()
    }

    fn left_over(&self) -> usize {
        let in_flight: usize = self.wires.values().map(VecDeque::len).sum();
        in_flight + self.ranks.values().map(|rank| rank.posted.len()).sum::<usize>()
    }
}

/// Proves that all ranks of both groups get one context and the members of both in one order, the group whose
/// leader has the smaller world rank first, and that no message is left.
#[test]
fn both_groups_get_one_communicator() {
    for seed in 0..SEEDS * 10 {
        let mut network = Network::random(seed);
        network.run();
        assert_eq!((network.errors.len(), network.left_over()), (0, 0), "seed {seed}");
        let first = usize::from(network.leaders[1] < network.leaders[0]);
        let members = [&network.groups[first][..], &network.groups[1 - first]].concat();
        let context = u64::from(network.leaders[first]) << 32 | 2;
        for (rank, world) in (0..).zip(&members) {
            let first_len = network.groups[first].len() as u32;
            let made = Intercommunicator { context, members: members.clone(), first_len, rank };
            assert_eq!(network.outcome(*world), Some(Ok(made)), "seed {seed}");
        }
    }
}

/// Proves that both groups are refused alike if they have ranks in common, also if a leader leads both.
#[test]
fn groups_that_overlap_are_refused() {
    let mut network = Network::new(1, [vec![3, 1, 2], vec![3, 1, 2]], [1, 1]);
    network.run();
    let refusal = Refusal::Overlap { ranks: vec![1, 2, 3] };
    assert!(network.ranks.values().all(|rank| rank.machine.result() == Some(Err(refusal.clone()))));
    let (machines, mut posted) = (&mut network.ranks, BTreeSet::new());
    machines.values_mut().for_each(|rank| posted.append(&mut rank.posted));
    assert_eq!(posted.len(), 0);
}

/// Proves that a rank that has finished before its confirmation is named to all others of both groups.
#[test]
fn rank_that_has_finished_is_named_to_both_groups() {
    for seed in 0..SEEDS {
        let mut network = Network::new(seed, [vec![4, 0, 2], vec![1, 3]], [0, 1]);
        network.ended.insert(2);
        network.run();
        for world in [4, 0, 1, 3] {
            let refusal = Refusal::Ended { ranks: vec![2] };
            assert_eq!(network.outcome(world), Some(Err(refusal)), "seed {seed}, rank {world}");
        }
    }
}

/// Proves that the group of a leader whose counterpart has finished is refused.
#[test]
fn leader_that_has_finished_is_named_to_the_other_group() {
    let mut network = Network::new(1, [vec![4, 0], vec![1]], [0, 0]);
    network.ended.insert(1);
    network.run();
    for world in [4, 0] {
        assert_eq!(network.outcome(world), Some(Err(Refusal::Ended { ranks: vec![1] })));
    }
}

/// Proves that a leader that leaves at any time leaves no rank waiting: either all other ranks get the
/// communicator, and the leader knows it, or none. The messages that it has not taken do not disturb the next
/// creation with the same tag.
#[test]
fn leader_that_leaves_takes_the_communicator_from_all_or_knows_it() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        for steps in 0..20 {
            let mut network = Network::new(seed, [vec![4, 0, 2], vec![1, 3]], [0, 1]);
            let is_over = (0..steps).any(|_| !network.step());
            let has_begun = network.ranks[&4].has_begun && network.outcome(4).is_none();
            if is_over || !has_begun {
                continue;
            }
            network.leave(4);
            let confirmed = network.ranks[&4].machine.confirmed().is_some();
            network.run();
            assert_eq!(network.errors.len(), 0, "seed {seed}, {steps} steps");
            let others: Vec<_> = [1, 3].map(|world| network.outcome(world)).into();
            let refusal = Some(Err(Refusal::Left { rank: 4 }));
            match confirmed {
                true => assert!(others.iter().all(|o| matches!(o, Some(Ok(_)))), "seed {seed}: {others:?}"),
                false => assert!(others.iter().all(|o| *o == refusal), "seed {seed}: {others:?}"),
            }
            if !confirmed {
                assert!([0, 2].iter().all(|world| network.outcome(*world) == refusal), "seed {seed}");
            }
            seen.insert(confirmed);
            network.again();
            network.run();
            assert_eq!((network.errors.len(), network.left_over()), (0, 0), "seed {seed}, {steps} steps");
            let outcomes = [0, 1, 2, 3, 4].map(|world| network.outcome(world).expect("an end"));
            let contexts: BTreeSet<u64> =
                outcomes.into_iter().map(|made| made.expect("a communicator").context).collect();
            assert_eq!(contexts.len(), 1, "seed {seed}, {steps} steps");
        }
    }
    assert_eq!(seen.len(), 2, "both happen");
}

/// Proves that a leader without context ids is an outcome on all ranks.
#[test]
fn exhausted_contexts_are_an_outcome_in_both_groups() {
    let mut network = Network::new(1, [vec![4, 0], vec![1, 3]], [0, 0]);
    let leader = network.ranks.get_mut(&4).unwrap();
    leader.has_begun = true;
    assert_eq!(leader.machine.poll_action(), Some(Action::Allocate { count: 1 }));
    let exhausted = mpjdev_proto::context::ContextError::Exhausted { world_rank: 4, needed: 1, left: 0 };
    leader.machine.handle_contexts(Err(exhausted));
    network.act(4);
    network.run();
    assert!(network.ranks.values().all(|rank| rank.machine.result() == Some(Err(Refusal::NoContexts))));
}

/// Proves that a damaged message of a leader is an error there and an outcome on its group, and that damaged
/// decisions and unexpected messages are errors.
#[test]
fn damaged_messages_are_refused() {
    let mut leader = IntercommCreation::new(vec![0, 1], 0, 0, 2, 4);
    let mut other = IntercommCreation::new(vec![0, 1], 1, 0, 0, 4);
    assert!(leader.handle_peer(Some(&[])).is_err(), "before an offer");
    assert_eq!(leader.poll_action(), Some(Action::Allocate { count: 1 }));
    leader.handle_contexts(ContextAllocator::new(0).unwrap().allocate_many(1));
    assert_eq!(leader.poll_action(), Some(Action::ReceivePeer));
    assert!(matches!(leader.poll_action(), Some(Action::SendPeer { .. })));
    assert!(leader.handle_received(1, 74, &[]).is_err(), "a confirmation without a decision");
    assert!(leader.handle_peer(Some(&[0; 15])).is_err());
    let Some(Action::Send { dest: 1, tag, octets }) = leader.poll_action() else { panic!("a decision") };
    let damaged = Some(Err(Refusal::Damaged { ranks: vec![2] }));
    assert_eq!(leader.result(), damaged);
    let member = |members: &[u32]| {
        let mut octets = vec![0; 16];
        octets[7] = members.len() as u8;
        octets[15] = 2;
        members.iter().for_each(|member| octets.extend(member.to_be_bytes()));
        octets
    };
    for bad in [member(&[0, 1]), member(&[1, 0, 2]), member(&[2, 3]), vec![1; 16], octets[..19].to_vec()] {
        assert!(other.clone().handle_received(0, tag, &bad).is_err(), "{bad:?}");
    }
    assert!(other.clone().handle_received(0, tag, &member(&[2, 0, 1])).is_ok());
    assert!(other.handle_received(1, tag, &octets).is_err(), "not the leader");
    assert_eq!(other.handle_received(0, tag, &octets), Ok(()));
    assert_eq!(other.result(), damaged);
}
