//! Members that publish short vectors in slots and do not call the same operation, or end behind it.

use mpjdev_engine::{DeviceError, Uninterruptible};
use mpjdev_schedule::{Operation, allreduce};

use crate::rank_harness::{Job, RankHarness, amount, run};
use crate::suite::collective_data::{choices, group, run_steps, sum};
use crate::transport_fixtures::SHM;

const OPERATION: Operation = Operation { unit: 1, is_commutative: true, is_exact: true, is_divisible: true };

fn reduce(harness: &RankHarness, len: usize) -> Result<Vec<Vec<u8>>, DeviceError> {
    let comm = &harness.comm;
    run_steps(harness, &allreduce(group(comm), len, OPERATION, 1, &choices(comm)), sum, &mut || true)
}

/// Adds up short vectors of all ranks.
pub(crate) fn sum_of_ranks(harness: &RankHarness) {
    assert_eq!(reduce(harness, 8).map(|vectors| vectors[0].len()), Ok(8));
}

/// Waits until all ranks are at this place.
fn meet(harness: &RankHarness, place: &str) {
    harness.post_note(&format!("rank {} {place}", harness.rank()));
    (0..harness.size()).for_each(|rank| harness.wait_for_note(&format!("rank {rank} {place}")));
}

#[test]
fn barrier_and_allreduce_of_different_members_are_errors_of_both() {
    Job::new(&SHM, 2).untidy().run(|harness| {
        let ended = match harness.rank() {
            0 => harness.comm.barrier(&mut Uninterruptible).map(|()| Vec::new()),
            _ => reduce(harness, 8),
        };
        assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 1 - harness.rank() }));
        meet(harness, "is over");
    });
}

#[test]
fn long_vector_where_a_barrier_is_expected_is_an_error_of_both() {
    Job::new(&SHM, 2).untidy().run(|harness| {
        harness.barrier();
        match harness.rank() {
            0 => {
                let ended = harness.comm.barrier(&mut Uninterruptible);
                assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 1 }));
            }
            _ => {
                let ended = reduce(harness, 100_000);
                assert!(matches!(ended, Err(DeviceError::Abandoned { rank: 0, .. })), "{ended:?}");
            }
        }
        meet(harness, "is over");
    });
}

#[test]
fn short_and_long_vectors_of_different_members_are_errors_of_both() {
    for ranks in [2, 3] {
        Job::new(&SHM, ranks).untidy().run(|harness| {
            let len = if harness.rank() == 0 { 100_000 } else { 100 };
            let ended = reduce(harness, len);
            let is_known = matches!(
                ended,
                Err(DeviceError::OtherOperation { .. }
                    | DeviceError::Truncated { .. }
                    | DeviceError::Abandoned { .. })
            );
            assert!(is_known, "{ended:?}");
            meet(harness, "is over");
        });
    }
}

#[test]
fn vectors_of_different_lengths_are_errors_of_both_and_the_next_operation_works() {
    run(&SHM, 2, |harness| {
        for (longer, shorter) in [(9, 8), (1000, 0), (1024, 1023)] {
            let len = if harness.rank() == 0 { longer } else { shorter };
            match (harness.rank(), reduce(harness, len)) {
                (0, ended) => assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 1 })),
                (_, ended) => {
                    assert!(matches!(ended, Err(DeviceError::Truncated { source_rank: 0, .. })), "{ended:?}");
                }
            }
            assert_eq!(reduce(harness, 5).map(|vectors| vectors[0].len()), Ok(5));
        }
    });
}

#[test]
fn member_that_finishes_behind_its_last_operation_ends_no_other() {
    for _ in 0..amount(50, 1000) {
        run(&SHM, 3, |harness| {
            if harness.rank() == 0 {
                harness.barrier();
                assert!(reduce(harness, 8).is_ok());
                assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
                return harness.post_note("finished");
            }
            harness.barrier();
            assert!(reduce(harness, 8).is_ok());
            harness.wait_for_note("finished");
        });
    }
}

#[test]
fn member_that_has_finished_ends_operations_that_another_one_has_not_entered() {
    for is_barrier in [true, false] {
        Job::new(&SHM, 3).untidy().run(|harness| {
            harness.barrier();
            match harness.rank() {
                0 => harness.wait_for_note("rank 2 has the error"),
                1 => {
                    assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
                    harness.wait_for_note("rank 2 has the error");
                }
                _ => {
                    let ended = match is_barrier {
                        true => harness.comm.barrier(&mut Uninterruptible),
                        false => reduce(harness, 8).map(drop),
                    };
                    assert_eq!(ended, Err(DeviceError::PeerFinished { rank: 1 }));
                    harness.post_note("rank 2 has the error");
                }
            }
        });
    }
}
