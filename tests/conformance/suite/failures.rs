//! Failure of a rank: blocked operations fail soon, with the rank and the reason.

use std::time::{Duration, Instant};

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, RankHarness, from};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    a_failure_ends_every_kind_of_blocked_operation,
    a_failure_ends_all_threads_of_a_rank,
    after_a_failure_every_operation_fails_with_the_rank_and_the_reason,
    first_failure_is_reported,
    a_failure_ends_a_receive_that_has_only_its_first_half,
];

const SMALL: TestMessage = TestMessage { seed: 1, primary: 16, secondary: 0, room: 0 };
/// Many times the duration of a wake-up, also on a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn failed(rank: u32) -> DeviceError {
    DeviceError::PeerFailed { rank, why: "the disk is full".into() }
}

/// Blocking call number `k`.
fn blocked(harness: &RankHarness, k: usize) -> Result<(), DeviceError> {
    let comm = &harness.comm;
    match k {
        0 => comm.recv(from(0, 1), 0, None, &mut Uninterruptible).map(drop),
        1 => comm.recv(from(2, 1), 0, None, &mut Uninterruptible).map(drop),
        2 => comm.recv(ANY, 0, None, &mut Uninterruptible).map(drop),
        3 => comm.send(&SMALL.write(harness.source()), 2, 9, Mode::Synchronous, &mut Uninterruptible),
        4 => comm.probe(from(0, 5), &mut Uninterruptible).map(drop),
        5 => comm.barrier(&mut Uninterruptible),
        6 => {
            let id = comm.irecv(from(2, 6), 0, None)?;
            comm.wait(id, None, &mut Uninterruptible).map(drop)
        }
        _ => {
            let ids = [comm.irecv(from(0, 7), 0, None)?, comm.irecv(from(2, 7), 0, None)?];
            let at = comm.wait_any(&ids, None, &mut Uninterruptible)?;
            comm.detach(ids[1 - at]);
            comm.test(ids[at]).map(drop)
        }
    }
}

/// Rank 1 blocks in one of them, rank 2 works in other ways, rank 0 fails.
fn a_failure_ends_every_kind_of_blocked_operation(fixture: &TransportFixture) {
    for k in 0..8 {
        Job::new(fixture, 3).untidy().run(|harness| match harness.rank() {
            0 => {
                harness.wait_for_note("blocks");
                harness.comm.fail("the disk is full");
            }
            1 => {
                harness.post_note("blocks");
                let begun = Instant::now();
                assert_eq!(blocked(harness, k), Err(failed(0)), "operation {k}");
                assert!(begun.elapsed() < SOON);
            }
            _ => assert_eq!(
                harness.comm.recv(from(1, 100), 0, None, &mut Uninterruptible).unwrap_err(),
                failed(0)
            ),
        });
    }
}

/// At most one of them is parked on the transport that the failure wakes.
fn a_failure_ends_all_threads_of_a_rank(fixture: &TransportFixture) {
    let job = Job::new(fixture, 3).untidy().tuned(|config| (config.spins, config.yields) = (0, 0));
    job.run(|harness| match harness.rank() {
        0 => {
            harness.wait_for_note("blocks");
            harness.comm.fail("the disk is full");
        }
        1 => {
            let begun = Instant::now();
            // Without the barrier: one thread at a time may be in a collective operation.
            harness.threads(16, |k| {
                harness.post_note("blocks");
                let operation = [0, 1, 2, 3, 4, 6, 7][k % 7];
                assert_eq!(blocked(harness, operation), Err(failed(0)), "operation {operation}");
            });
            assert!(begun.elapsed() < SOON);
        }
        _ => assert_eq!(harness.comm.probe(from(0, 100), &mut Uninterruptible), Err(failed(0))),
    });
}

fn after_a_failure_every_operation_fails_with_the_rank_and_the_reason(fixture: &TransportFixture) {
    Job::new(fixture, 3).untidy().run(|harness| {
        if harness.rank() == 1 {
            harness.comm.fail("the disk is full");
            harness.post_note("failed");
        }
        harness.wait_for_note("failed");
        harness.wait_for_end_of(1);
        let message = SMALL.write(harness.source());
        let comm = &harness.comm;
        for peer in 0..3 {
            let sent = comm.isend(&message, peer, 1, Mode::Standard);
            assert_eq!(sent, Err(failed(1)));
            assert_eq!(comm.irecv(from(peer as u32, 1), 0, None), Err(failed(1)));
            assert_eq!(comm.iprobe(from(peer as u32, 1)), Err(failed(1)));
        }
        assert_eq!(comm.barrier(&mut Uninterruptible), Err(failed(1)));
        assert!(
            failed(1).to_string().contains("rank 1") && failed(1).to_string().contains("the disk is full")
        );
    });
}

fn first_failure_is_reported(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        if harness.rank() == 0 {
            harness.comm.fail("the disk is full");
            harness.comm.fail("something else");
            harness.post_note("failed");
        } else {
            harness.wait_for_note("failed");
            harness.wait_for_end_of(0);
            harness.comm.fail("the result");
        }
        assert_eq!(harness.comm.recv(ANY, 0, None, &mut Uninterruptible).unwrap_err(), failed(0));
    });
}

/// The request may be done or not, but the wait ends.
fn a_failure_ends_a_receive_that_has_only_its_first_half(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        let test_message = TestMessage::split(1, 16, 5000);
        if harness.rank() == 0 {
            let sends: Vec<_> = (0..50).map(|_| harness.isend(Mode::Standard, &test_message, 1, 1)).collect();
            harness.comm.fail("the disk is full");
            for id in sends.into_iter().flatten() {
                let _ = harness.comm.wait(id, None, &mut Uninterruptible);
            }
        } else {
            for _ in 0..50 {
                match harness.comm.recv(from(0, 1), 16, None, &mut Uninterruptible) {
                    Ok((_, message)) => test_message.check(&message),
                    Err(error) => assert_eq!(error, failed(0)),
                }
            }
        }
    });
}
