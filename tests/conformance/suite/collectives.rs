//! Communicators and the barrier.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use mpjdev_engine::collective::{Operation, Outcome};
use mpjdev_engine::{Comm, DeviceError, Mode, Uninterruptible};
use mpjdev_proto::collective::Refusal;

use crate::rank_harness::{ANY, Job, RankHarness, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    no_rank_leaves_a_barrier_before_all_have_entered,
    a_barrier_of_one_rank_passes_at_once,
    messages_of_a_dup_and_of_its_parent_never_meet,
    created_communicator_has_its_members_in_the_given_order,
    lists_without_a_common_rank_make_one_communicator_each,
    bad_ids_are_refused_alike_on_all_ranks,
    a_split_makes_one_communicator_per_colour_ordered_by_key,
    nested_communicators_keep_their_messages_apart,
    several_threads_dup_different_communicators_at_once,
    two_groups_meet_in_an_intercommunicator,
    collectives_do_not_disturb_wildcard_receives,
    an_operation_can_be_advanced_beside_other_work,
    operation_continues_after_an_interrupted_wait,
    a_member_that_has_finished_ends_every_collective_on_all_others,
];

const SMALL: TestMessage = TestMessage { seed: 1, primary: 16, secondary: 0, room: 0 };

#[track_caller]
fn created(operation: Operation) -> Result<Option<Comm>, DeviceError> {
    match operation.finish(&mut Uninterruptible)? {
        Outcome::Created(comm) => Ok(comm),
        Outcome::Passed => panic!("a barrier's outcome"),
    }
}

#[track_caller]
fn split(harness: &RankHarness, color: i32, key: i32) -> Option<RankHarness> {
    created(harness.comm.start_split(color, key)).expect("split").map(|comm| harness.on(comm))
}

#[track_caller]
fn create(harness: &RankHarness, ids: &[i32]) -> Option<RankHarness> {
    created(harness.comm.start_create(ids)).expect("create").map(|comm| harness.on(comm))
}

/// Every rank sends its number to every other one, under one tag.
fn talk(harness: &RankHarness) {
    let test_message =
        |source: u32| TestMessage::split(harness.comm.context() + u64::from(source), 8, 1 + source as usize);
    let sends: Vec<_> = (0..harness.size())
        .map(|to| harness.isend(Mode::Standard, &test_message(harness.rank()), to, 5))
        .collect();
    for source in 0..harness.size() {
        assert_eq!(harness.expect(from(source, 5), &test_message(source)).source, source);
    }
    harness.wait_all(sends);
}

fn no_rank_leaves_a_barrier_before_all_have_entered(fixture: &TransportFixture) {
    for ranks in [2, 3, 5, 8] {
        let entered = AtomicUsize::new(0);
        run(fixture, ranks, |harness| {
            for round in 0..amount(20, 5000) {
                // One rank is late, a different one in each round.
                if round % ranks == harness.rank() as usize {
                    harness.until("all others have entered", || {
                        entered.load(SeqCst) >= round * ranks + ranks - 1
                    });
                }
                entered.fetch_add(1, SeqCst);
                harness.barrier();
                assert!(entered.load(SeqCst) >= (round + 1) * ranks);
                harness.barrier();
            }
        });
    }
}

fn a_barrier_of_one_rank_passes_at_once(fixture: &TransportFixture) {
    run(fixture, 1, |harness| harness.barrier());
}

/// The same source, tag and wildcards in both.
fn messages_of_a_dup_and_of_its_parent_never_meet(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let other = harness.dup();
        assert_ne!(other.comm.context(), harness.comm.context());
        assert_eq!((other.rank(), other.size()), (harness.rank(), harness.size()));
        let (here, there) = (TestMessage::split(1, 16, 100), TestMessage::split(2, 16, 200));
        if harness.rank() == 0 {
            let mut sends = Vec::new();
            for _ in 0..20 {
                sends.extend([harness, &other].map(|p| p.isend(Mode::Standard, &there, 1, 7)));
                sends.extend([&other, harness].map(|p| p.isend(Mode::Standard, &here, 1, 7)));
            }
            harness.wait_all(sends);
        } else {
            let receives: Vec<_> = (0..20).map(|_| [other.post(ANY, 16), other.post(ANY, 16)]).collect();
            for [first, second] in receives {
                other.wait_message(first, &there);
                other.wait_message(second, &here);
            }
            assert_eq!(other.comm.iprobe(ANY), Ok(None));
            for _ in 0..20 {
                harness.expect(ANY, &there);
                harness.expect(ANY, &here);
            }
        }
    });
}

/// The ranks of each group send to those of the other one, and wildcards match no other messages.
fn two_groups_meet_in_an_intercommunicator(fixture: &TransportFixture) {
    let cross = |harness: &RankHarness| {
        let (own, peers) = (harness.comm.rank(), harness.comm.peers().to_vec());
        let world = harness.comm.members()[own as usize];
        let test_message = |source: u32| TestMessage::split(u64::from(source), 8, 1 + source as usize);
        let sends: Vec<_> = (0..peers.len() as u32)
            .map(|to| harness.isend(Mode::Synchronous, &test_message(world), to, 5))
            .collect();
        for (source, peer) in (0..).zip(&peers) {
            assert_eq!(harness.expect(from(source, 5), &test_message(*peer)).source, source);
        }
        harness.wait_all(sends);
        assert_eq!(harness.comm.iprobe(ANY), Ok(None));
    };
    run(fixture, 5, |harness| {
        let color = harness.rank() as i32 % 2;
        let half = split(harness, color, -(harness.rank() as i32)).expect("a part");
        let start = |tag| half.comm.start_intercomm(0, Some(&harness.comm), 4 - (1 - color), tag);
        let inter = harness.on(created(start(7)).expect("a communicator").expect("every rank is in it"));
        let dup = inter.dup();
        for harness in [&inter, &dup, &inter] {
            cross(harness);
        }
        let merged =
            created(inter.comm.start_merge(color == 0)).expect("merge").expect("every rank is in it");
        assert_eq!(merged.members(), [3, 1, 4, 2, 0]);
        harness.on(merged).barrier();
        // Each leader names itself.
        let overlap =
            created(half.comm.start_intercomm(0, Some(&half.comm), 0, 7)).expect_err("no two groups");
        assert!(matches!(overlap, DeviceError::Refused(Refusal::Overlap { .. })), "{overlap:?}");
        // Only the leader's arguments matter, and the whole group gets the error.
        let refused =
            created(half.comm.start_intercomm(1, Some(&harness.comm), 9, 7)).expect_err("no leader");
        let (leader, bad) = (half.comm.members()[1], DeviceError::BadRank { rank: 9, size: 5 });
        let left = DeviceError::Refused(Refusal::Left { rank: leader });
        assert_eq!(refused, if half.rank() == 1 { bad } else { left });
        half.barrier();
    });
}

/// A reordered subset. Other ranks get no communicator, and the parent still works.
fn created_communicator_has_its_members_in_the_given_order(fixture: &TransportFixture) {
    run(fixture, 5, |harness| {
        for ids in [&[4, 0, 2][..], &[1], &[0, 1, 2, 3, 4], &[4, 3, 2, 1, 0], &[]] {
            let made = create(harness, ids);
            let place = ids.iter().position(|id| *id == harness.rank() as i32);
            assert_eq!(made.as_ref().map(|m| m.rank() as usize), place);
            if let Some(made) = made {
                assert_eq!(made.size() as usize, ids.len());
                talk(&made);
                made.barrier();
                let refused = DeviceError::BadRank { rank: ids.len() as i32, size: ids.len() };
                let message = SMALL.write(harness.source());
                let sent = made.comm.isend(&message, ids.len() as i32, 0, Mode::Standard);
                assert_eq!(sent, Err(refused));
            }
            talk(harness);
        }
    });
}

/// Two lists at a time. Rank 4 is in none, and passes no list or one of the others.
fn lists_without_a_common_rank_make_one_communicator_each(fixture: &TransportFixture) {
    run(fixture, 5, |harness| {
        let lists: [&[i32]; 3] = [&[2, 0], &[3, 1], &[]];
        for of_last in [2, 1, 0] {
            let rank = harness.rank() as usize;
            let ids = lists[if rank == 4 { of_last } else { rank % 2 }];
            let made = create(harness, ids);
            let place = ids.iter().position(|id| *id == harness.rank() as i32);
            assert_eq!(made.as_ref().map(|m| (m.rank() as usize, m.size())), place.map(|place| (place, 2)));
            if let Some(made) = made {
                talk(&made);
                made.barrier();
            }
            talk(harness);
        }
    });
}

/// The refusal is an outcome: the parent still works.
fn bad_ids_are_refused_alike_on_all_ranks(fixture: &TransportFixture) {
    run(fixture, 3, |harness| {
        let refusal = |ids: &[i32]| match created(harness.comm.start_create(ids)) {
            Err(DeviceError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        };
        assert_eq!(refusal(&[0, 3]), Refusal::IdOutOfRange { position: 1, id: 3, size: 3 });
        assert_eq!(refusal(&[-1]), Refusal::IdOutOfRange { position: 0, id: -1, size: 3 });
        assert_eq!(refusal(&[0, 2, 0]), Refusal::RepeatedId { position: 2, id: 0 });
        let other: &[i32] = if harness.rank() == 2 { &[1, 0] } else { &[0, 1] };
        assert_eq!(refusal(other), Refusal::DifferentIds { ranks: vec![2] });
        let one: &[i32] = if harness.rank() == 1 { &[3] } else { &[0, 2] };
        let elsewhere = Refusal::BadIds { ranks: vec![1] };
        let here = Refusal::IdOutOfRange { position: 0, id: 3, size: 3 };
        assert_eq!(refusal(one), if harness.rank() == 1 { here } else { elsewhere });
        talk(harness);
        harness.barrier();
    });
}

/// Equal keys are ordered by rank. A rank without a colour gets no communicator.
fn a_split_makes_one_communicator_per_colour_ordered_by_key(fixture: &TransportFixture) {
    run(fixture, 6, |harness| {
        let rank = harness.rank() as i32;
        // By colour: ranks 0, 3 under keys that turn them round; 1, 4 under equal keys; 2 and 5 take no part.
        let made =
            split(harness, if rank % 3 == 2 { -1 } else { rank % 3 }, if rank % 3 == 0 { -rank } else { 7 });
        let expected = [Some(1), Some(0), None, Some(0), Some(1), None][rank as usize];
        assert_eq!(made.as_ref().map(RankHarness::rank), expected);
        if let Some(made) = made {
            assert_eq!(made.size(), 2);
            talk(&made);
        }
        assert!(split(harness, -1, 0).is_none());
        let all = split(harness, i32::MAX, i32::MIN + rank).expect("one colour");
        assert_eq!((all.rank(), all.size()), (harness.rank(), 6));
        talk(&all);
    });
}

fn nested_communicators_keep_their_messages_apart(fixture: &TransportFixture) {
    run(fixture, 6, |harness| {
        let half = split(harness, (harness.rank() / 3) as i32, 0).expect("a half");
        let turned = create(&half, &[2, 1, 0]).expect("every rank of the half");
        let twin = turned.dup();
        let pair = split(&twin, i32::from(twin.rank() == 0), 0).expect("a colour");
        for all in [harness, &half, &turned, &twin, &pair] {
            talk(all);
            all.barrier();
        }
        // A status names the source in its own communicator.
        assert_eq!(turned.rank(), 2 - half.rank());
        if turned.rank() == 0 {
            assert_eq!(turned.expect(ANY, &SMALL).source, 2);
        } else if turned.rank() == 2 {
            turned.send(&SMALL, 0, 1);
        }
    });
}

/// All context ids differ, and agree on all ranks. Otherwise messages would mix.
fn several_threads_dup_different_communicators_at_once(fixture: &TransportFixture) {
    const THREADS: usize = 4;
    run(fixture, 3, |harness| {
        let parents: Vec<RankHarness> = (0..THREADS).map(|_| harness.dup()).collect();
        let contexts = std::sync::Mutex::new(std::collections::HashSet::new());
        harness.threads(THREADS, |k| {
            for _ in 0..amount(5, 500) {
                let made = parents[k].dup();
                assert!(
                    contexts.lock().expect("no panic").insert(made.comm.context()),
                    "a context was given twice"
                );
                talk(&made);
                let half = split(&made, (made.rank() % 2) as i32, 0).expect("a colour");
                talk(&half);
                made.barrier();
            }
        });
    });
}

/// A wildcard receive that was posted before is still pending afterwards.
fn collectives_do_not_disturb_wildcard_receives(fixture: &TransportFixture) {
    run(fixture, 4, |harness| {
        let posted = harness.post(ANY, 64);
        for _ in 0..5 {
            harness.barrier();
            let other = harness.dup();
            other.barrier();
            assert_eq!(harness.comm.iprobe(ANY), Ok(None));
            assert_eq!(other.comm.iprobe(ANY), Ok(None));
        }
        assert!(harness.comm.test(posted).expect("test").is_none());
        harness.barrier();
        let next = (harness.rank() + 1) % 4;
        let sent = harness.isend(Mode::Standard, &SMALL, next, 1);
        assert_eq!(harness.wait_message(posted, &SMALL).source, (harness.rank() + 3) % 4);
        harness.wait_all([sent]);
    });
}

/// Never blocks: messages are exchanged between the steps.
fn an_operation_can_be_advanced_beside_other_work(fixture: &TransportFixture) {
    run(fixture, 3, |harness| {
        let mut barrier = harness.comm.start_barrier();
        if harness.rank() == 0 {
            for _ in 0..10 {
                assert!(barrier.advance().expect("advance").is_none(), "the others have not entered");
            }
            harness.post_note("others may enter");
        } else {
            harness.wait_for_note("others may enter");
        }
        let mut rounds = 0;
        harness.until("the barrier is passed", || {
            rounds += 1;
            let sent = harness.isend(Mode::Standard, &SMALL, harness.rank(), 1);
            harness.expect(from(harness.rank(), 1), &SMALL);
            harness.wait_all([sent]);
            barrier.advance().expect("advance").is_some()
        });
    });
}

fn operation_continues_after_an_interrupted_wait(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            let mut barrier = harness.comm.start_barrier();
            assert!(barrier.advance().expect("advance").is_none());
            assert_eq!(barrier.wait(&mut || false), Err(DeviceError::Interrupted));
            harness.post_note("interrupted");
            assert!(matches!(barrier.finish(&mut Uninterruptible), Ok(Outcome::Passed)));
        } else {
            harness.wait_for_note("interrupted");
            harness.barrier();
        }
    });
}

/// A member that notices the end notifies the others. No member waits for one that has abandoned the
/// operation.
fn a_member_that_has_finished_ends_every_collective_on_all_others(fixture: &TransportFixture) {
    for operation in 0..4 {
        for gone in [0, 1, 5] {
            Job::new(fixture, 8).untidy().run(|harness| {
                if harness.rank() == gone {
                    assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
                    harness.post_note("finished");
                    return;
                }
                harness.wait_for_note("finished");
                let comm = &harness.comm;
                let started = match operation {
                    0 => comm.start_barrier(),
                    1 => comm.start_dup(),
                    2 => comm.start_create(&[0, 1, 2, 3, 4, 5, 6, 7]),
                    _ => comm.start_split(0, 0),
                };
                let begun = Instant::now();
                let mut patience = || begun.elapsed() < Duration::from_secs(20);
                let ended = started.finish(&mut patience).map(drop);
                let expected = Err(DeviceError::PeerFinished { rank: gone });
                assert_eq!(ended, expected, "operation {operation} without rank {gone}");
                // Alive until all have noticed the end.
                harness.post_note(&format!("rank {}", harness.rank()));
                (0..8).filter(|r| *r != gone).for_each(|r| harness.wait_for_note(&format!("rank {r}")));
            });
        }
    }
}
