//! Abandoned collective operations: the errors of the abandoning rank and of the others.

use std::time::{Duration, Instant};

use mpjdev_engine::collective::{Operation, Outcome};
use mpjdev_engine::{Comm, Config, DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{Job, RankHarness, from};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    barriers_after_an_interrupted_one_fail_on_every_rank,
    creations_after_an_interrupted_one_fail_on_every_rank,
    collective_fails_on_a_waiting_rank_when_another_rank_is_interrupted,
    creation_abandoned_after_its_result_leaves_no_rank_waiting,
    creation_without_memory_for_confirmations_succeeds,
    creation_without_memory_for_settlements_succeeds,
    collectives_without_memory_and_credit_succeed,
    notice_without_memory_and_credit_arrives,
    abandoned_collective_ends_no_other_communicator,
    messages_pass_after_an_abandoned_collective,
    operation_that_was_not_started_is_not_abandoned,
    rank_with_an_abandoned_barrier_finishes,
];

const SMALL: TestMessage = TestMessage { seed: 1, primary: 16, secondary: 0, room: 0 };
/// Many times the duration of a notice, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// Kinds of collective operations.
const KINDS: usize = 4;

fn start(comm: &Comm, kind: usize) -> Operation {
    let ids: Vec<i32> = (0..comm.size() as i32).rev().collect();
    match kind {
        0 => comm.start_barrier(),
        1 => comm.start_dup(),
        2 => comm.start_create(&ids),
        _ => comm.start_split(0, 0),
    }
}

/// Starts an operation that the others have not started, and abandons it.
#[track_caller]
fn interrupt(comm: &Comm, kind: usize) {
    let ended = start(comm, kind).finish(&mut || false).map(drop);
    assert_eq!(ended, Err(DeviceError::Interrupted), "kind {kind}");
}

/// Ends an operation, which fails within a short time.
fn end(operation: Operation) -> Result<Outcome, DeviceError> {
    let begun = Instant::now();
    operation.finish(&mut || begun.elapsed() < SOON)
}

#[track_caller]
fn assert_abandoned(ended: Result<Outcome, DeviceError>, by: u32) {
    match ended {
        Err(DeviceError::Abandoned { rank, .. }) => assert_eq!(rank, by),
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("no error"),
    }
}

/// Checks an abandoned dup: it fails, or a barrier on the new communicator fails.
#[track_caller]
fn assert_dup_abandoned(operation: Operation, by: u32) {
    match end(operation) {
        Ok(Outcome::Created(Some(made))) => assert_abandoned(end(made.start_barrier()), by),
        ended => assert_abandoned(ended, by),
    }
}

#[track_caller]
fn dup(harness: &RankHarness) -> RankHarness {
    match end(harness.comm.start_dup()) {
        Ok(Outcome::Created(Some(comm))) => harness.on(comm),
        ended => panic!("{:?}", ended.map(drop)),
    }
}

/// Not paired with the one after it: the second barrier of rank 0 is the first one of the others.
fn barriers_after_an_interrupted_one_fail_on_every_rank(fixture: &TransportFixture) {
    Job::new(fixture, 3).untidy().run(|harness| {
        if harness.rank() == 0 {
            interrupt(&harness.comm, 0);
            harness.post_note("interrupted");
            for kind in 0..KINDS {
                let begun = Instant::now();
                assert_abandoned(start(&harness.comm, kind).finish(&mut Uninterruptible), 0);
                assert!(begun.elapsed() < SOON);
            }
        } else {
            harness.wait_for_note("interrupted");
            // Some ranks may have all messages of rank 0 for the first barrier.
            let passed = (0..2).take_while(|_| end(harness.comm.start_barrier()).is_ok()).count();
            assert!(passed < 2, "rank 0 has entered one barrier");
            for kind in 0..KINDS {
                assert_abandoned(end(start(&harness.comm, kind)), 0);
            }
        }
    });
}

/// No rank gets a communicator that another rank takes for the one created before.
fn creations_after_an_interrupted_one_fail_on_every_rank(fixture: &TransportFixture) {
    for kind in 1..KINDS {
        for leaver in 0..3 {
            Job::new(fixture, 3).untidy().run(|harness| {
                if harness.rank() == leaver {
                    interrupt(&harness.comm, kind);
                    harness.post_note("interrupted");
                } else {
                    harness.wait_for_note("interrupted");
                }
                assert_abandoned(end(start(&harness.comm, kind)), leaver);
                assert_abandoned(end(harness.comm.start_barrier()), leaver);
            });
        }
    }
}

fn collective_fails_on_a_waiting_rank_when_another_rank_is_interrupted(fixture: &TransportFixture) {
    for kind in 0..KINDS {
        Job::new(fixture, 3).untidy().run(|harness| match harness.rank() {
            2 => {
                harness.wait_for_note("0 waits");
                harness.wait_for_note("1 waits");
                interrupt(&harness.comm, (kind + 1) % KINDS);
            }
            rank => {
                let mut operation = start(&harness.comm, kind);
                assert!(operation.advance().expect("advance").is_none());
                harness.post_note(&format!("{rank} waits"));
                assert_abandoned(end(operation), 2);
            }
        });
    }
}

/// Rank 1 has usually confirmed the dup when it abandons it, so the others could complete it.
fn creation_abandoned_after_its_result_leaves_no_rank_waiting(fixture: &TransportFixture) {
    Job::new(fixture, 3).untidy().run(|harness| match harness.rank() {
        0 => {
            let mut operation = harness.comm.start_dup();
            assert!(operation.advance().expect("advance").is_none());
            harness.post_note("the results are sent");
            assert_dup_abandoned(operation, 1);
        }
        1 => {
            harness.wait_for_note("the results are sent");
            let mut operation = harness.comm.start_dup();
            for _ in 0..1000 {
                assert!(operation.advance().expect("advance").is_none(), "rank 2 has not confirmed");
            }
            drop(operation);
            harness.post_note("left");
        }
        _ => {
            harness.wait_for_note("left");
            assert_dup_abandoned(harness.comm.start_dup(), 1);
        }
    });
}

/// A job whose collective messages fit into queue entries, as they do with default limits.
fn short_messages(fixture: &TransportFixture) -> Job {
    Job::new(fixture, 3).untidy().tuned(|config| config.inline_max = Config::default().inline_max)
}

#[track_caller]
fn assert_created(operation: Operation) {
    let ended = end(operation);
    assert!(matches!(ended, Ok(Outcome::Created(Some(_)))), "{:?}", ended.map(drop));
}

/// A rank without memory does not leave the operation as the interrupted one above: the messages between the
/// result and the new communicator take memory beyond the limit.
fn creation_without_memory_for_confirmations_succeeds(fixture: &TransportFixture) {
    short_messages(fixture).run(|harness| {
        let mut operation = harness.comm.start_dup();
        if harness.rank() == 0 {
            assert!(operation.advance().expect("advance").is_none());
            harness.post_note("the results are sent");
        } else {
            harness.wait_for_note("the results are sent");
            harness.use_up_memory();
        }
        assert_created(operation);
    });
}

/// The other ranks have usually confirmed, and rank 0 has no memory for their settlements. A rank with a
/// settlement may wait in a C MPI for those without one.
fn creation_without_memory_for_settlements_succeeds(fixture: &TransportFixture) {
    short_messages(fixture).run(|harness| {
        let mut operation = harness.comm.start_dup();
        if harness.rank() == 0 {
            assert!(operation.advance().expect("advance").is_none());
            harness.post_note("the results are sent");
            harness.wait_for_note("1 has confirmed");
            harness.wait_for_note("2 has confirmed");
            harness.use_up_memory();
        } else {
            harness.wait_for_note("the results are sent");
            for _ in 0..1000 {
                assert!(operation.advance().expect("advance").is_none(), "rank 0 has not settled");
            }
            harness.post_note(&format!("{} has confirmed", harness.rank()));
        }
        assert_created(operation);
    });
}

/// Small messages of rank 0 to each other rank, more than the credit and the packets of a queue allow.
const FLOOD: usize = 300;

/// Ranks of which rank 0 has no credit for further messages to any other, and all have no memory.
fn exhausted(fixture: &TransportFixture, body: impl Fn(&RankHarness) + Sync) {
    short_messages(fixture).tuned(|config| config.credit = config.credit.min(1 << 12)).run(|harness| {
        let others = 1..harness.size();
        let mut sends = Vec::new();
        if harness.rank() == 0 {
            for dest in others {
                sends.extend((0..FLOOD).map(|_| harness.isend(Mode::Standard, &SMALL, dest, 9)));
            }
            harness.post_note("flooded");
        }
        harness.wait_for_note("flooded");
        harness.use_up_memory();
        // The segment of a rank may have memory left below the limit.
        let source = harness.source();
        let held: Vec<_> = [1 << 20, 1 << 14, 1 << 10, 1]
            .into_iter()
            .flat_map(|len| std::iter::from_fn(move || source.take(len).ok()))
            .collect();
        body(harness);
        drop(held);
        if harness.rank() > 0 {
            (0..FLOOD).for_each(|_| assert_eq!(harness.expect(from(0, 9), &SMALL).tag, 9));
        }
        harness.wait_all(sends);
    });
}

fn collectives_without_memory_and_credit_succeed(fixture: &TransportFixture) {
    exhausted(fixture, |harness| {
        assert!(matches!(end(harness.comm.start_barrier()), Ok(Outcome::Passed)));
        for kind in 1..KINDS {
            assert_created(start(&harness.comm, kind));
        }
    });
}

fn notice_without_memory_and_credit_arrives(fixture: &TransportFixture) {
    exhausted(fixture, |harness| {
        if harness.rank() == 0 {
            interrupt(&harness.comm, 0);
            harness.post_note("interrupted");
        } else {
            harness.wait_for_note("interrupted");
            let passed = (0..2).take_while(|_| end(harness.comm.start_barrier()).is_ok()).count();
            assert!(passed < 2, "rank 0 has entered one barrier");
            assert_abandoned(end(harness.comm.start_dup()), 0);
        }
    });
}

fn abandoned_collective_ends_no_other_communicator(fixture: &TransportFixture) {
    Job::new(fixture, 3).untidy().run(|harness| {
        let (other, left) = (dup(harness), dup(harness));
        if harness.rank() == 1 {
            interrupt(&left.comm, 0);
            harness.post_note("interrupted");
        } else {
            harness.wait_for_note("interrupted");
            let passed = (0..2).take_while(|_| end(left.comm.start_barrier()).is_ok()).count();
            assert!(passed < 2);
        }
        assert_abandoned(end(left.comm.start_dup()), 1);
        for harness in [harness, &other] {
            harness.barrier();
            dup(harness).barrier();
        }
    });
}

fn messages_pass_after_an_abandoned_collective(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        if harness.rank() == 0 {
            interrupt(&harness.comm, 3);
            harness.post_note("interrupted");
        } else {
            harness.wait_for_note("interrupted");
            assert_abandoned(end(harness.comm.start_split(0, 0)), 0);
        }
        let other = 1 - harness.rank();
        let sent = harness.isend(Mode::Synchronous, &SMALL, other, 1);
        harness.expect(from(other, 1), &SMALL);
        harness.wait_all([sent]);
    });
}

fn operation_that_was_not_started_is_not_abandoned(fixture: &TransportFixture) {
    Job::new(fixture, 2).run(|harness| {
        drop(harness.comm.start_barrier());
        harness.barrier();
    });
}

fn rank_with_an_abandoned_barrier_finishes(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        if harness.rank() == 0 {
            interrupt(&harness.comm, 0);
            harness.post_note("interrupted");
        }
        harness.wait_for_note("interrupted");
        let begun = Instant::now();
        let mut patience = || begun.elapsed() < 3 * SOON;
        let finished = harness.comm.finish(&mut patience);
        // No rank receives the messages of the barrier, which is noticed where they need a match ack.
        assert!(matches!(finished, Ok(()) | Err(DeviceError::Undelivered { .. })), "{finished:?}");
    });
}
