//! Communicators and the barrier.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use mpjdev_engine::collective::{Operation, Outcome};
use mpjdev_engine::{Comm, DeviceError, Mode, Uninterruptible};
use mpjdev_proto::collective::Refusal;

use crate::rank_harness::{ANY, Job, Party, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    nobody_leaves_a_barrier_before_everybody_has_entered,
    a_barrier_of_one_rank_passes_at_once,
    messages_of_a_dup_and_of_its_parent_never_meet,
    a_created_communicator_has_the_members_in_the_order_asked_for,
    bad_ids_are_refused_alike_on_all_ranks,
    a_split_makes_one_communicator_per_colour_ordered_by_key,
    communicators_of_communicators_keep_apart,
    several_threads_dup_different_communicators_at_once,
    collectives_do_not_disturb_wildcard_receives,
    an_operation_can_be_advanced_beside_other_work,
    an_interrupted_wait_leaves_the_operation_to_go_on,
    a_member_that_has_finished_ends_every_collective_on_all_others,
];

const SMALL: Letter = Letter { seed: 1, primary: 16, secondary: 0, room: 0 };

#[track_caller]
fn created(operation: Operation) -> Result<Option<Comm>, DeviceError> {
    match operation.finish(&mut Uninterruptible)? {
        Outcome::Created(comm) => Ok(comm),
        Outcome::Passed => panic!("a barrier's outcome"),
    }
}

#[track_caller]
fn dup(party: &Party) -> Party {
    party.on(created(party.comm.start_dup()).expect("dup").expect("every rank is in a dup"))
}

#[track_caller]
fn split(party: &Party, color: i32, key: i32) -> Option<Party> {
    created(party.comm.start_split(color, key)).expect("split").map(|comm| party.on(comm))
}

#[track_caller]
fn create(party: &Party, ids: &[i32]) -> Option<Party> {
    created(party.comm.start_create(ids)).expect("create").map(|comm| party.on(comm))
}

/// Everybody tells everybody else its rank in the communicator, under one tag.
fn talk(party: &Party) {
    let letter =
        |source: u32| Letter::split(party.comm.context() + u64::from(source), 8, 1 + source as usize);
    let sends: Vec<_> =
        (0..party.size()).map(|to| party.isend(Mode::Standard, &letter(party.rank()), to, 5)).collect();
    for source in 0..party.size() {
        assert_eq!(party.expect(from(source, 5), &letter(source)).source, source);
    }
    party.wait_all(sends);
}

fn nobody_leaves_a_barrier_before_everybody_has_entered(world: &World) {
    for ranks in [2, 3, 5, 8] {
        let entered = AtomicUsize::new(0);
        run(world, ranks, |party| {
            for round in 0..amount(20, 5000) {
                // One rank comes late, another one each time.
                if round % ranks == party.rank() as usize {
                    party.until("all others have entered", || {
                        entered.load(SeqCst) >= round * ranks + ranks - 1
                    });
                }
                entered.fetch_add(1, SeqCst);
                party.barrier();
                assert!(entered.load(SeqCst) >= (round + 1) * ranks);
                party.barrier();
            }
        });
    }
}

fn a_barrier_of_one_rank_passes_at_once(world: &World) {
    run(world, 1, |party| party.barrier());
}

/// The same source, tag and wildcards in both.
fn messages_of_a_dup_and_of_its_parent_never_meet(world: &World) {
    run(world, 2, |party| {
        let other = dup(party);
        assert_ne!(other.comm.context(), party.comm.context());
        assert_eq!((other.rank(), other.size()), (party.rank(), party.size()));
        let (here, there) = (Letter::split(1, 16, 100), Letter::split(2, 16, 200));
        if party.rank() == 0 {
            let mut sends = Vec::new();
            for _ in 0..20 {
                sends.extend([party, &other].map(|p| p.isend(Mode::Standard, &there, 1, 7)));
                sends.extend([&other, party].map(|p| p.isend(Mode::Standard, &here, 1, 7)));
            }
            party.wait_all(sends);
        } else {
            let receives: Vec<_> = (0..20).map(|_| [other.post(ANY, 16), other.post(ANY, 16)]).collect();
            for [first, second] in receives {
                other.wait_letter(first, &there);
                other.wait_letter(second, &here);
            }
            assert_eq!(other.comm.iprobe(ANY), Ok(None));
            for _ in 0..20 {
                party.expect(ANY, &there);
                party.expect(ANY, &here);
            }
        }
    });
}

/// Subset and reordered; who is not in it gets none, and the rest of the world continues.
fn a_created_communicator_has_the_members_in_the_order_asked_for(world: &World) {
    run(world, 5, |party| {
        for ids in [&[4, 0, 2][..], &[1], &[0, 1, 2, 3, 4], &[4, 3, 2, 1, 0], &[]] {
            let made = create(party, ids);
            let place = ids.iter().position(|id| *id == party.rank() as i32);
            assert_eq!(made.as_ref().map(|m| m.rank() as usize), place);
            if let Some(made) = made {
                assert_eq!(made.size() as usize, ids.len());
                talk(&made);
                made.barrier();
                let refused = DeviceError::BadRank { rank: ids.len() as i32, size: ids.len() };
                let message = SMALL.write(party.source());
                let sent = made.comm.isend(&message, ids.len() as i32, 0, Mode::Standard);
                assert_eq!(sent, Err(refused));
            }
            talk(party);
        }
    });
}

/// An outcome and not a breakdown: the parent is as good as before.
fn bad_ids_are_refused_alike_on_all_ranks(world: &World) {
    run(world, 3, |party| {
        let refusal = |ids: &[i32]| match created(party.comm.start_create(ids)) {
            Err(DeviceError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        };
        assert_eq!(refusal(&[0, 3]), Refusal::IdOutOfRange { position: 1, id: 3, size: 3 });
        assert_eq!(refusal(&[-1]), Refusal::IdOutOfRange { position: 0, id: -1, size: 3 });
        assert_eq!(refusal(&[0, 2, 0]), Refusal::RepeatedId { position: 2, id: 0 });
        let other: &[i32] = if party.rank() == 2 { &[1, 0] } else { &[0, 1] };
        assert_eq!(refusal(other), Refusal::DifferentIds { ranks: vec![2] });
        talk(party);
        party.barrier();
    });
}

/// Equal keys are ordered by rank; who names no colour gets none.
fn a_split_makes_one_communicator_per_colour_ordered_by_key(world: &World) {
    run(world, 6, |party| {
        let rank = party.rank() as i32;
        // By colour: ranks 0, 3 under keys that turn them round; 1, 4 under equal keys; 2 and 5 take no part.
        let made =
            split(party, if rank % 3 == 2 { -1 } else { rank % 3 }, if rank % 3 == 0 { -rank } else { 7 });
        let expected = [Some(1), Some(0), None, Some(0), Some(1), None][rank as usize];
        assert_eq!(made.as_ref().map(Party::rank), expected);
        if let Some(made) = made {
            assert_eq!(made.size(), 2);
            talk(&made);
        }
        assert!(split(party, -1, 0).is_none());
        let all = split(party, i32::MAX, i32::MIN + rank).expect("one colour");
        assert_eq!((all.rank(), all.size()), (party.rank(), 6));
        talk(&all);
    });
}

fn communicators_of_communicators_keep_apart(world: &World) {
    run(world, 6, |party| {
        let half = split(party, (party.rank() / 3) as i32, 0).expect("a half");
        let turned = create(&half, &[2, 1, 0]).expect("every rank of the half");
        let twin = dup(&turned);
        let pair = split(&twin, i32::from(twin.rank() == 0), 0).expect("a colour");
        for all in [party, &half, &turned, &twin, &pair] {
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

/// The context ids that they get all differ, and agree on all ranks: else messages would meet.
fn several_threads_dup_different_communicators_at_once(world: &World) {
    const THREADS: usize = 4;
    run(world, 3, |party| {
        let parents: Vec<Party> = (0..THREADS).map(|_| dup(party)).collect();
        let contexts = std::sync::Mutex::new(std::collections::HashSet::new());
        party.threads(THREADS, |k| {
            for _ in 0..amount(5, 500) {
                let made = dup(&parents[k]);
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

/// A receive for anything is posted before, and is still pending after.
fn collectives_do_not_disturb_wildcard_receives(world: &World) {
    run(world, 4, |party| {
        let posted = party.post(ANY, 64);
        for _ in 0..5 {
            party.barrier();
            let other = dup(party);
            other.barrier();
            assert_eq!(party.comm.iprobe(ANY), Ok(None));
            assert_eq!(other.comm.iprobe(ANY), Ok(None));
        }
        assert!(party.comm.test(posted).expect("test").is_none());
        party.barrier();
        let next = (party.rank() + 1) % 4;
        let sent = party.isend(Mode::Standard, &SMALL, next, 1);
        assert_eq!(party.wait_letter(posted, &SMALL).source, (party.rank() + 3) % 4);
        party.wait_all([sent]);
    });
}

/// Never blocks: messages are exchanged between the steps.
fn an_operation_can_be_advanced_beside_other_work(world: &World) {
    run(world, 3, |party| {
        let mut barrier = party.comm.start_barrier();
        if party.rank() == 0 {
            for _ in 0..10 {
                assert!(barrier.advance().expect("advance").is_none(), "the others have not entered");
            }
            party.say("others may enter");
        } else {
            party.hear("others may enter");
        }
        let mut rounds = 0;
        party.until("the barrier is passed", || {
            rounds += 1;
            let sent = party.isend(Mode::Standard, &SMALL, party.rank(), 1);
            party.expect(from(party.rank(), 1), &SMALL);
            party.wait_all([sent]);
            barrier.advance().expect("advance").is_some()
        });
    });
}

fn an_interrupted_wait_leaves_the_operation_to_go_on(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            let mut barrier = party.comm.start_barrier();
            assert!(barrier.advance().expect("advance").is_none());
            assert_eq!(barrier.wait(&mut || false), Err(DeviceError::Interrupted));
            party.say("interrupted");
            assert!(matches!(barrier.finish(&mut Uninterruptible), Ok(Outcome::Passed)));
        } else {
            party.hear("interrupted");
            party.barrier();
        }
    });
}

/// A member that notices the end is still alive and notifies the others; no member waits for one that has
/// given up.
fn a_member_that_has_finished_ends_every_collective_on_all_others(world: &World) {
    for operation in 0..4 {
        for gone in [0, 1, 5] {
            Job::new(world, 8).untidy().run(|party| {
                if party.rank() == gone {
                    assert_eq!(party.comm.finish(&mut Uninterruptible), Ok(()));
                    party.say("finished");
                    return;
                }
                party.hear("finished");
                let comm = &party.comm;
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
                // Alive until all have seen it.
                party.say(&format!("rank {}", party.rank()));
                (0..8).filter(|r| *r != gone).for_each(|r| party.hear(&format!("rank {r}")));
            });
        }
    }
}
