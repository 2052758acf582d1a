//! Collective machines on 1 to 17 ranks over a simulated network. A failure names its seed, and the seed
//! repeats it.

mod random;
mod simulation;

use std::collections::BTreeSet;

use mpjdev_proto::collective::{
    Action, Collective, Communicator, Creation, ProtocolError, Refusal, payload_len_max,
};
use mpjdev_proto::context::{ContextAllocator, is_communicator};
use proptest::prelude::*;
use simulation::{Call, Outcome, Random, Simulation};

const SIZE_MAX: usize = 17;
const SEEDS: u64 = 40;

fn allocator() -> ContextAllocator {
    ContextAllocator::new(0).unwrap()
}

/// Runs the calls of each rank; returns each rank's outcomes.
fn run(seed: u64, size: usize, calls: impl Fn(usize) -> Vec<Call>) -> Vec<Vec<Outcome>> {
    let mut simulation = Simulation::new(seed, (0..size).map(calls).collect(), allocator());
    let outcomes = simulation.run();
    assert_eq!(simulation.errors, [], "seed {seed}, size {size}");
    assert_eq!(simulation.left_over(), 0, "seed {seed}, size {size}");
    outcomes
}

fn for_all_sizes_and_seeds(check: impl Fn(u64, usize)) {
    for size in 1..=SIZE_MAX {
        for seed in 0..SEEDS {
            check(seed * 100 + size as u64, size);
        }
    }
}

fn created(outcome: &Outcome) -> Option<&Communicator> {
    match outcome {
        Outcome::Created(Ok(communicator)) => communicator.as_ref(),
        _ => panic!("{outcome:?}"),
    }
}

/// Proves that no rank leaves a barrier before all have entered it (asserted by the simulation), that all
/// leave, and that consecutive barriers do not mix.
#[test]
fn no_rank_leaves_a_barrier_before_all_have_entered() {
    for_all_sizes_and_seeds(|seed, size| {
        let outcomes = run(seed, size, |_| vec![Call::Barrier; 5]);
        assert!(outcomes.iter().all(|rank| *rank == vec![Outcome::Passed; 5]), "seed {seed}, size {size}");
    });
}

/// Proves that all ranks of a dup get one context, the parent's members in order, and their own ranks, and
/// that the next dup has another context.
#[test]
fn dup_gives_all_ranks_one_new_context() {
    for_all_sizes_and_seeds(|seed, size| {
        let outcomes = run(seed, size, |_| vec![Call::Dup, Call::Dup]);
        let mut contexts = BTreeSet::new();
        for call in 0..2 {
            let context = created(&outcomes[0][call]).unwrap().context;
            assert!(is_communicator(context));
            assert!(contexts.insert(context));
            for (rank, outcomes) in outcomes.iter().enumerate() {
                let expected =
                    Communicator { context, members: (0..size as u32).collect(), rank: rank as u32 };
                assert_eq!(created(&outcomes[call]), Some(&expected), "seed {seed}, size {size}");
            }
        }
    });
}

/// Proves that the members are the ids in order, and that other ranks get no communicator.
#[test]
fn create_keeps_the_order_of_the_ids() {
    for_all_sizes_and_seeds(|seed, size| {
        let mut random = Random::new(seed);
        let mut ids: Vec<i32> = (0..size as i32).collect();
        for at in (1..size).rev() {
            ids.swap(at, random.below(at + 1));
        }
        ids.truncate(random.below(size + 1));
        let outcomes = run(seed, size, |_| vec![Call::Create(ids.clone())]);
        let members: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
        let contexts: BTreeSet<u64> =
            outcomes.iter().filter_map(|o| created(&o[0])).map(|c| c.context).collect();
        assert_eq!(contexts.len(), usize::from(!ids.is_empty()));
        for (rank, outcomes) in outcomes.iter().enumerate() {
            let place = members.iter().position(|member| *member == rank as u32);
            let got = created(&outcomes[0]).map(|c| (c.members.clone(), c.rank as usize));
            assert_eq!(got, place.map(|place| (members.clone(), place)), "seed {seed}, size {size}");
        }
    });
}

/// Proves that groups are formed by color, ordered by key and then by rank in the parent, each with its
/// context, and that a negative color gives no communicator. Few colors and keys make equal ones occur; the
/// extremes of both are included.
#[test]
fn split_orders_by_key_then_rank() {
    const COLORS: [i32; 5] = [0, 1, i32::MAX, -1, i32::MIN];
    const KEYS: [i32; 4] = [0, -1, i32::MIN, i32::MAX];
    for_all_sizes_and_seeds(|seed, size| {
        let mut random = Random::new(seed);
        let asked: Vec<(i32, i32)> =
            (0..size).map(|_| (COLORS[random.below(5)], KEYS[random.below(4)])).collect();
        let outcomes = run(seed, size, |rank| {
            let (color, key) = asked[rank];
            vec![Call::Split { color, key }]
        });
        let mut contexts = BTreeSet::new();
        for (rank, outcomes) in outcomes.iter().enumerate() {
            let (color, _) = asked[rank];
            let mut group: Vec<(i32, u32)> =
                (0..size).filter(|r| asked[*r].0 == color).map(|r| (asked[r].1, r as u32)).collect();
            group.sort();
            let members: Vec<u32> = group.into_iter().map(|(_, rank)| rank).collect();
            let got = created(&outcomes[0]);
            assert_eq!(got.is_some(), color >= 0);
            if let Some(got) = got {
                assert_eq!(got.members, members, "seed {seed}, size {size}");
                assert_eq!(members[got.rank as usize], rank as u32);
                contexts.insert((got.context, color));
            }
        }
        let colors: BTreeSet<i32> = contexts.iter().map(|(_, color)| *color).collect();
        let ids: BTreeSet<u64> = contexts.iter().map(|(context, _)| *context).collect();
        assert_eq!((contexts.len(), contexts.len()), (colors.len(), ids.len()));
    });
}

/// Proves that consecutive operations of all kinds do not mix, for ranks at any distance from each other.
#[test]
fn consecutive_operations_do_not_mix() {
    for_all_sizes_and_seeds(|seed, size| {
        let outcomes = run(seed, size, |rank| {
            let split = Call::Split { color: (rank % 2) as i32, key: -(rank as i32) };
            let ids = vec![size as i32 - 1];
            vec![
                Call::Dup,
                split.clone(),
                Call::Barrier,
                Call::Create(ids.clone()),
                Call::Dup,
                Call::Create(ids),
                split,
                Call::Barrier,
            ]
        });
        for (rank, outcomes) in outcomes.iter().enumerate() {
            assert_eq!(outcomes.len(), 8, "seed {seed}, size {size}");
            let last = rank == size - 1;
            for call in [3, 5] {
                assert_eq!(created(&outcomes[call]).is_some(), last);
            }
            for call in [1, 6] {
                let members = &created(&outcomes[call]).unwrap().members;
                assert!(members.iter().rev().is_sorted());
                assert!(members.iter().all(|member| *member as usize % 2 == rank % 2));
            }
        }
    });
}

/// Proves that lists without a common rank make one communicator each, in their own order, and that ranks
/// outside get none, whether they pass an empty list or that of others.
#[test]
fn create_divides_ranks_by_lists_without_a_common_rank() {
    for_all_sizes_and_seeds(|seed, size| {
        let mut random = Random::new(seed);
        let mut lists = vec![Vec::new(); 4];
        let place: Vec<usize> = (0..size).map(|_| random.below(lists.len())).collect();
        for (rank, list) in place.iter().enumerate().filter(|(_, list)| **list > 0) {
            let at = random.below(lists[*list].len() + 1);
            lists[*list].insert(at, rank as i32);
        }
        let asked: Vec<usize> =
            place.iter().map(|list| if *list > 0 { *list } else { random.below(lists.len()) }).collect();
        let outcomes = run(seed, size, |rank| vec![Call::Create(lists[asked[rank]].clone()), Call::Barrier]);
        let mut contexts = BTreeSet::new();
        for (rank, outcomes) in outcomes.iter().enumerate() {
            let got = created(&outcomes[0]);
            assert_eq!(got.is_some(), place[rank] > 0, "seed {seed}, size {size}");
            if let Some(got) = got {
                let members: Vec<i32> = got.members.iter().map(|member| *member as i32).collect();
                assert_eq!(members, lists[place[rank]], "seed {seed}, size {size}");
                assert_eq!(members[got.rank as usize], rank as i32);
                contexts.insert((got.context, place[rank]));
            }
        }
        let groups: BTreeSet<usize> = place.iter().copied().filter(|list| *list > 0).collect();
        let ids: BTreeSet<u64> = contexts.iter().map(|(context, _)| *context).collect();
        assert_eq!((contexts.len(), ids.len()), (groups.len(), groups.len()), "seed {seed}, size {size}");
    });
}

/// Proves that ranks whose list has a rank with another one are named to all ranks, and that the parent stays
/// usable.
#[test]
fn create_names_the_ranks_whose_lists_overlap() {
    let cases: [(&[&[i32]], &[u32]); 6] = [
        (&[&[0, 1], &[1, 0]], &[0, 1]),
        (&[&[0, 1], &[0, 1], &[1, 0], &[0, 1]], &[2]),
        (&[&[0, 1], &[0, 1], &[2, 1], &[3, 2], &[4]], &[2, 3]),
        (&[&[0, 1, 2], &[], &[]], &[0]),
        (&[&[], &[], &[0, 1, 2]], &[2]),
        (&[&[0], &[1], &[0, 1]], &[2]),
    ];
    for (lists, named) in cases {
        for seed in 0..SEEDS {
            let outcomes =
                run(seed, lists.len(), |rank| vec![Call::Create(lists[rank].to_vec()), Call::Barrier]);
            let refusal = Outcome::Created(Err(Refusal::DifferentIds { ranks: named.to_vec() }));
            assert!(outcomes.iter().all(|o| *o == [refusal.clone(), Outcome::Passed]), "{outcomes:?}");
        }
    }
}

/// Proves that ids that are not ranks, repeated, negative or too many are refused on every rank with position
/// and value.
#[test]
fn create_refuses_bad_ids_everywhere() {
    let out_of_range = |position, id| Refusal::IdOutOfRange { position, id, size: 3 };
    let cases = [
        (vec![0, 3], out_of_range(1, 3)),
        (vec![-1], out_of_range(0, -1)),
        (vec![i32::MAX], out_of_range(0, i32::MAX)),
        (vec![2, 1, 2], Refusal::RepeatedId { position: 2, id: 2 }),
        (vec![0; 1000], Refusal::RepeatedId { position: 1, id: 0 }),
    ];
    for (ids, refusal) in cases {
        let outcomes = run(1, 3, |_| vec![Call::Create(ids.clone()), Call::Barrier]);
        let expected = [Outcome::Created(Err(refusal)), Outcome::Passed];
        assert!(outcomes.iter().all(|outcomes| *outcomes == expected), "{ids:?}: {outcomes:?}");
    }
}

/// Proves that a bad list of one rank is reported there with its first bad id, and with the rank elsewhere.
#[test]
fn bad_ids_of_one_rank_are_refused_everywhere() {
    let repeated = Refusal::RepeatedId { position: 1, id: 0 };
    let out_of_range = Refusal::IdOutOfRange { position: 0, id: -1, size: 3 };
    for (ids, own) in [(vec![0, 0], &repeated), (vec![0; 1000], &repeated), (vec![-1], &out_of_range)] {
        for odd in 0..3 {
            let outcomes = run(1, 3, |rank| {
                let ids = if rank == odd { ids.clone() } else { vec![2, 1] };
                vec![Call::Create(ids), Call::Barrier]
            });
            for (rank, outcomes) in outcomes.iter().enumerate() {
                let others = Refusal::BadIds { ranks: vec![odd as u32] };
                let refusal = if rank == odd { own.clone() } else { others };
                assert_eq!(*outcomes, [Outcome::Created(Err(refusal)), Outcome::Passed]);
            }
        }
    }
}

/// Proves that every rank receives the outcome of exhausted context ids.
#[test]
fn exhausted_contexts_are_an_outcome_on_every_rank() {
    let mut root = Creation::split(0, 2, 0, 0);
    let mut other = Creation::split(1, 2, 1, 0);
    let Some(Action::Send { tag, octets, .. }) = other.poll_action() else { panic!("a request was due") };
    assert!(matches!(root.poll_action(), Some(Action::Receive { source: 1, .. })));
    root.handle_received(1, tag, &octets).unwrap();
    assert_eq!(root.poll_action(), Some(Action::Allocate { count: 2 }));
    let exhausted = mpjdev_proto::context::ContextError::Exhausted { world_rank: 0, needed: 2, left: 1 };
    root.handle_contexts(Err(exhausted));
    let Some(Action::Send { tag, octets, .. }) = root.poll_action() else { panic!("a decision was due") };
    other.handle_received(0, tag, &octets).unwrap();
    assert_eq!(root.result(), Some(Err(Refusal::NoContexts)));
    assert_eq!(other.result(), Some(Err(Refusal::NoContexts)));
}

/// A root of a dup of 3 that has sent its decisions, and the tag of the confirmations.
fn confirming() -> (Creation, i32) {
    let mut root = Creation::dup(0, 3);
    assert_eq!(root.poll_action(), Some(Action::Allocate { count: 1 }));
    root.handle_contexts(allocator().allocate_many(1));
    let actions: Vec<Action> = std::iter::from_fn(|| root.poll_action()).collect();
    let [Action::Receive { source: 1, tag }, Action::Receive { source: 2, .. }, decisions @ ..] =
        &actions[..]
    else {
        panic!("{actions:?}")
    };
    assert!(decisions.iter().all(|decision| matches!(decision, Action::Send { .. })) && decisions.len() == 2);
    (root, *tag)
}

/// Proves that rank 0 settles only when every rank has confirmed.
#[test]
fn root_settles_when_all_have_confirmed() {
    let (mut root, tag) = confirming();
    assert_eq!(root.handle_received(2, tag, &[]), Ok(()));
    assert!(root.handle_received(2, tag, &[]).is_err(), "once");
    assert_eq!((root.poll_action(), root.result()), (None, None));
    assert_eq!(root.handle_received(1, tag, &[]), Ok(()));
    for dest in [1, 2] {
        assert_eq!(root.poll_action(), Some(Action::Send { dest, tag: tag + 1, octets: vec![] }));
    }
    assert!(matches!(root.result(), Some(Ok(Some(_)))));
}

/// Proves that a rank that has finished without confirming is named to all ranks that have confirmed.
#[test]
fn rank_that_finishes_before_it_confirms_refuses_the_communicator() {
    let (mut root, tag) = confirming();
    assert!(root.handle_ended(1, tag));
    assert!(!root.handle_ended(1, tag), "once");
    assert_eq!(root.handle_received(2, tag, &[]), Ok(()));
    let refused = Some(Err(Refusal::Ended { ranks: vec![1] }));
    assert_eq!(root.result(), refused);
    let actions: Vec<Action> = std::iter::from_fn(|| root.poll_action()).collect();
    let [_, Action::Send { dest: 2, tag: settlement, octets }] = &actions[..] else { panic!("{actions:?}") };
    let mut other = Creation::dup(2, 3);
    let Some(Action::Receive { tag: decision_tag, .. }) = other.poll_action() else { panic!("a receive") };
    let mut decision = vec![0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2];
    decision.extend((0..3_u32).flat_map(u32::to_be_bytes));
    other.handle_received(0, decision_tag, &decision).unwrap();
    assert_eq!(other.confirmed().map(|made| made.context), Some(2));
    other.handle_received(0, *settlement, octets).unwrap();
    assert_eq!((other.result(), other.confirmed()), (refused, None));
}

/// Proves that a damaged request is an error at rank 0 that names its sender, and an outcome on every rank.
#[test]
fn damaged_request_does_not_leave_others_waiting() {
    let calls = |call: &Call| vec![vec![call.clone()]; 4];
    for call in [Call::Split { color: 0, key: 0 }, Call::Create(vec![1, 2])] {
        let damage = |source: u32, dest: u32, _: i32, octets: &mut Vec<u8>| {
            if (source, dest) == (2, 0) {
                octets.pop();
            }
        };
        let mut simulation = Simulation::new(3, calls(&call), allocator()).damage_with(Box::new(damage));
        let outcomes = simulation.run();
        let refusal = Outcome::Created(Err(Refusal::Damaged { ranks: vec![2] }));
        assert!(outcomes.iter().all(|outcomes| *outcomes == [refusal.clone()]), "{outcomes:?}");
        assert!(matches!(simulation.errors[..], [(0, ProtocolError::Length { source_rank: 2, .. })]));
    }
}

/// Proves that a request is accepted once from each rank, and by rank 0 only.
#[test]
fn misplaced_messages_are_refused() {
    let request = [0; 8];
    let not_asked_for = |source_rank, tag| Err(ProtocolError::NotAskedFor { source_rank, tag });
    let mut root = Creation::split(0, 3, 0, 0);
    let Some(Action::Receive { tag, .. }) = root.poll_action() else { panic!("a receive was due") };
    assert_eq!(root.handle_received(0, tag, &request), not_asked_for(0, tag));
    assert_eq!(root.handle_received(3, tag, &request), not_asked_for(3, tag));
    assert_eq!(root.handle_received(1, tag + 1, &request), not_asked_for(1, tag + 1));
    assert_eq!(root.handle_received(1, tag, &request), Ok(()));
    assert_eq!(root.handle_received(1, tag, &request), not_asked_for(1, tag));
    assert_eq!(root.result(), None);
    let mut other = Creation::split(1, 3, 0, 0);
    assert_eq!(other.handle_received(2, tag, &request), not_asked_for(2, tag));
    let mut dup = Creation::dup(0, 3);
    assert_eq!(dup.handle_received(1, tag, &request), not_asked_for(1, tag));
}

/// Any machine that waits for a decision in a communicator of 4, with its decision tag.
fn waiting() -> impl Strategy<Value = (Creation, i32)> {
    let machine = prop_oneof![
        (1..4u32).prop_map(|rank| Creation::dup(rank, 4)),
        (1..4u32).prop_map(|rank| Creation::create(rank, 4, &[3, 1])),
        (1..4u32, -1..2).prop_map(|(rank, color)| Creation::split(rank, 4, color, 0)),
    ];
    machine.prop_map(|mut machine| {
        let mut tag = None;
        while let Some(action) = machine.poll_action() {
            if let Action::Receive { tag: receive_tag, .. } = action {
                tag = Some(receive_tag);
            }
        }
        (machine, tag.unwrap())
    })
}

/// Payloads similar to decisions.
fn decisions() -> impl Strategy<Value = Vec<u8>> {
    let status = prop_oneof![5 => 0..6u8, 1 => any::<u8>()];
    let count = prop_oneof![3 => Just(None), 1 => (0..6u32).prop_map(Some), 1 => any::<u32>().prop_map(Some)];
    let context = prop_oneof![Just(2u64), any::<u64>()];
    let rank = prop_oneof![9 => 0..4u32, 1 => any::<u32>()];
    let shaped = (status, count, context, prop::collection::vec(rank, 0..5)).prop_map(
        |(status, count, context, ranks)| {
            let count = count.unwrap_or(ranks.len() as u32);
            let mut octets = vec![status, 0, 0, 0];
            octets.extend(count.to_be_bytes());
            octets.extend(context.to_be_bytes());
            octets.extend(ranks.iter().flat_map(|rank| rank.to_be_bytes()));
            octets
        },
    );
    prop_oneof![4 => shaped, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that a decision of any octets causes no panic, that an error leaves the machine waiting, and
    /// that an accepted decision is consistent.
    #[test]
    fn hostile_decisions_are_errors_or_valid(
        (mut machine, tag) in waiting(),
        octets in decisions(),
    ) {
        let accepted = machine.handle_received(0, tag, &octets);
        if accepted.is_ok() && machine.result().is_none() {
            let settles = |action: Option<Action>| match action {
                Some(Action::Receive { source: 0, tag }) => Some(tag),
                _ => None,
            };
            let tag = settles(machine.poll_action()).unwrap();
            let confirms = matches!(machine.poll_action(), Some(Action::Send { dest: 0, .. }));
            prop_assert!(confirms && machine.poll_action().is_none());
            prop_assert!(machine.handle_received(0, tag, &[0]).is_err());
            prop_assert_eq!(machine.result(), None);
            machine.handle_received(0, tag, &[]).unwrap();
        }
        prop_assert_eq!(machine.result().is_some(), accepted.is_ok());
        if let Some(Ok(Some(communicator))) = machine.result() {
            let distinct: BTreeSet<u32> = communicator.members.iter().copied().collect();
            prop_assert_eq!(distinct.len(), communicator.members.len());
            prop_assert!(distinct.iter().all(|member| *member < 4));
            prop_assert!((communicator.rank as usize) < communicator.members.len());
            prop_assert!(communicator.context != 0 && is_communicator(communicator.context));
        }
    }

    /// Proves that a request of any octets causes no panic, and that every rank receives a valid decision.
    #[test]
    fn hostile_requests_end_in_an_outcome(
        splits in any::<bool>(),
        requests in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 3),
    ) {
        let machine = |rank| {
            if splits { Creation::split(rank, 4, 0, 0) } else { Creation::create(rank, 4, &[0, 1]) }
        };
        let mut root = machine(0);
        let Some(Action::Receive { tag, .. }) = root.poll_action() else { panic!("a receive was due") };
        while root.poll_action().is_some() {}
        for (source, request) in (1..).zip(&requests) {
            prop_assert_eq!(root.result(), None);
            let _ = root.handle_received(source, tag, request);
        }
        let mut confirmations = Vec::new();
        while let Some(action) = root.poll_action() {
            match action {
                Action::Allocate { count } => {
                    root.handle_contexts(allocator().allocate_many(count));
                }
                Action::Send { octets, .. } => prop_assert!(octets.len() <= payload_len_max(4)),
                Action::Receive { source, tag } => confirmations.push((source, tag)),
                Action::SendPeer { .. } | Action::ReceivePeer => panic!("there is one communicator"),
            }
        }
        for (source, tag) in confirmations {
            prop_assert_eq!(root.result(), None);
            root.handle_received(source, tag, &[]).unwrap();
        }
        prop_assert!(root.result().is_some());
    }
}
