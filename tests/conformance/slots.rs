//! Members that publish short vectors in slots and do not call the same operation, or end behind it.

use mpjdev_buffer::Type;
use mpjdev_engine::collective::VECTOR_MAX;
use mpjdev_engine::{DeviceError, Uninterruptible};
use mpjdev_schedule::{Call, Operation, UniformCall, allgather, allreduce, combine_vectors, reduce_scatter};

use crate::rank_harness::{Job, RankHarness, amount, run};
use crate::suite::collective_data::{choices, group, run_program, run_steps, sum, vector};
use crate::transport_fixtures::SHM;

const OPERATION: Operation = Operation { unit: 1, is_commutative: true, is_exact: true, is_divisible: true };

/// The way in which a rank combines vectors. Each rank decides alone.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By the steps of a schedule.
    Steps,
    /// Straight from the slots, if they are known.
    Slots,
}

const WAYS: [Way; 2] = [Way::Steps, Way::Slots];

/// The sum of `len` octets from `skip` on of the vectors of all ranks; `None`, and nothing has happened, if
/// they have to be messages.
fn sum_in_slots(
    harness: &RankHarness,
    call: &UniformCall,
    own: &[u8],
    (skip, len): (usize, usize),
) -> Result<Option<Vec<u8>>, DeviceError> {
    let (comm, mut result) = (&harness.comm, vec![0; len]);
    let is_done = comm.exchange_vectors(
        call,
        &choices(comm),
        (Type::Byte, own),
        &mut Uninterruptible,
        &mut |vectors| {
            combine_vectors::<VECTOR_MAX>(
                comm.size() as u32,
                &mut result,
                &mut |rank, into| vectors.copy(rank, skip, into),
                &mut |right, left| sum(right, left, false),
            );
        },
    )?;
    Ok(is_done.then_some(result))
}

/// The sum of the vectors of all ranks, as [`sum_in_slots`].
fn reduce_in_slots(harness: &RankHarness, len: usize) -> Result<Option<Vec<u8>>, DeviceError> {
    let call = UniformCall { call: Call::Allreduce { operation: OPERATION }, count: len, element_len: 1 };
    sum_in_slots(harness, &call, &vector(harness.rank(), 0..len), (0, len))
}

/// The block of this rank of the sum of the vectors of all, as [`sum_in_slots`].
fn scatter_in_slots(harness: &RankHarness, len: usize) -> Option<Vec<u8>> {
    let call = UniformCall { call: Call::ReduceScatter { operation: OPERATION }, count: len, element_len: 1 };
    let own = vector(harness.rank(), 0..harness.size() as usize * len);
    sum_in_slots(harness, &call, &own, (harness.rank() as usize * len, len)).expect("complete")
}

fn reduce(harness: &RankHarness, way: Way, len: usize) -> Result<Vec<u8>, DeviceError> {
    if let Way::Slots = way
        && let Some(result) = reduce_in_slots(harness, len)?
    {
        return Ok(result);
    }
    let steps = allreduce(group(&harness.comm), len, OPERATION, 1, &choices(&harness.comm));
    run_steps(harness, &steps, sum, &mut || true).map(|mut vectors| vectors.remove(0))
}

/// Adds up short vectors of all ranks.
pub(crate) fn sum_of_ranks(harness: &RankHarness) {
    assert_eq!(reduce(harness, Way::Steps, 8).map(|vector| vector.len()), Ok(8));
}

/// The first vector of a communicator shows the slots of its rank. The lengths are those of one vector in a
/// line, of longer ones, of those in the long part of a slot, and of one that only the steps publish.
#[test]
fn ranks_combine_vectors_by_steps_or_straight_from_slots() {
    for ranks in [2, 3, 7] {
        run(&SHM, ranks, |harness| {
            for (round, len) in
                (0..).zip([8, 0, 1, 56, 57, 1000, 1024, 1025, 2048, 2049].repeat(amount(12, 1000)))
            {
                let way = WAYS[(round + round / 10 * harness.rank() as usize) % 2];
                let mut expected = vector(0, 0..len);
                (1..ranks as u32).for_each(|rank| sum(&vector(rank, 0..len), &mut expected, false));
                assert_eq!(reduce(harness, way, len), Ok(expected), "{way:?}, {len} octets");
            }
            assert!(matches!(reduce_in_slots(harness, 8), Ok(Some(_))), "all slots are known");
        });
    }
}

#[test]
fn ranks_get_blocks_of_combined_vectors_by_steps_or_straight_from_slots() {
    for ranks in [2, 3, 7] {
        run(&SHM, ranks, |harness| {
            let (comm, rank) = (&harness.comm, harness.rank());
            let mut in_slots = 0;
            for (round, len) in (0..).zip([8, 0, 1, 57, 200, 1024, 3000].repeat(amount(12, 1000))) {
                let is_in_slots = (round + round / 7 * rank as usize) % 2 == 1;
                let found = is_in_slots.then(|| scatter_in_slots(harness, len)).flatten();
                in_slots += usize::from(found.is_some());
                let found = found.unwrap_or_else(|| {
                    let counts = vec![len; ranks];
                    let steps = reduce_scatter(group(comm), &counts, OPERATION, 1, &choices(comm));
                    run_steps(harness, &steps, sum, &mut || true).expect("complete").remove(0)
                });
                let block = |source| vector(source, rank as usize * len..(rank as usize + 1) * len);
                let mut expected = block(0);
                (1..ranks as u32).for_each(|source| sum(&block(source), &mut expected, false));
                assert!(found == expected, "{len} octets");
            }
            assert!(in_slots > 5, "{in_slots}");
        });
    }
}

/// Waits until all ranks are at this place.
fn meet(harness: &RankHarness, place: &str) {
    harness.post_note(&format!("rank {} {place}", harness.rank()));
    (0..harness.size()).for_each(|rank| harness.wait_for_note(&format!("rank {rank} {place}")));
}

#[test]
fn barrier_and_allreduce_of_different_members_are_errors_of_both() {
    for (way, is_first) in WAYS.into_iter().flat_map(|way| [(way, true), (way, false)]) {
        Job::new(&SHM, 2).untidy().run(|harness| {
            if !is_first {
                harness.barrier();
            }
            let ended = match harness.rank() {
                0 => harness.comm.barrier(&mut Uninterruptible).map(|()| Vec::new()),
                _ => reduce(harness, way, 8),
            };
            assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 1 - harness.rank() }));
            meet(harness, "is over");
        });
    }
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
                let ended = reduce(harness, Way::Steps, 100_000);
                assert!(matches!(ended, Err(DeviceError::Abandoned { rank: 0, .. })), "{ended:?}");
            }
        }
        meet(harness, "is over");
    });
}

#[test]
fn short_and_long_vectors_of_different_members_are_errors_of_both() {
    for (way, ranks) in WAYS.into_iter().flat_map(|way| [(way, 2), (way, 3)]) {
        Job::new(&SHM, ranks).untidy().run(|harness| {
            harness.barrier();
            let len = if harness.rank() == 0 { 100_000 } else { 100 };
            let ended = reduce(harness, way, len);
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
        for (way, (longer, shorter)) in
            WAYS.into_iter().flat_map(|way| [(9, 8), (1000, 0), (1024, 1023)].map(|lens| (way, lens)))
        {
            let len = if harness.rank() == 0 { longer } else { shorter };
            match (harness.rank(), reduce(harness, way, len)) {
                (0, ended) => assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 1 })),
                (_, ended) => {
                    assert!(matches!(ended, Err(DeviceError::Truncated { source_rank: 0, .. })), "{ended:?}");
                }
            }
            assert_eq!(reduce(harness, way, 5).map(|vector| vector.len()), Ok(5));
        }
    });
}

#[test]
fn long_vectors_of_different_lengths_are_errors_of_both_and_the_next_operation_works() {
    run(&SHM, 2, |harness| {
        let gather = |len| {
            let steps = allgather(group(&harness.comm), len, 1, &choices(&harness.comm));
            run_steps(harness, &steps, sum, &mut || true)
        };
        for (longer, shorter) in [(2000, 1025), (32_768, 32_767), (1025, 1024)] {
            match (harness.rank(), gather(if harness.rank() == 0 { longer } else { shorter })) {
                (0, ended) => assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 1 })),
                (_, ended) => {
                    assert!(matches!(ended, Err(DeviceError::Truncated { source_rank: 0, .. })), "{ended:?}");
                }
            }
            let (own, other) = (harness.rank() as usize, 1 - harness.rank());
            let blocks = gather(longer).expect("complete");
            assert!(blocks[1 - own] == vector(other, 0..longer), "{longer} octets");
        }
    });
}

#[test]
fn member_that_cannot_pack_its_vector_ends_the_operation_of_all() {
    run(&SHM, 3, |harness| {
        for len in [8, 1024, 1025, 32_768].repeat(amount(2, 100)) {
            let steps = allgather(group(&harness.comm), len, 1, &choices(&harness.comm));
            let ended = run_program(harness, &steps, sum, harness.rank() != 1, &mut || true);
            assert_eq!(ended, Err(DeviceError::OperationFailed { rank: 1 }), "{len} octets");
            assert!(run_steps(harness, &steps, sum, &mut || true).is_ok(), "{len} octets");
        }
    });
}

#[test]
fn member_that_finishes_behind_its_last_operation_ends_no_other() {
    for way in WAYS.repeat(amount(25, 500)) {
        run(&SHM, 3, |harness| {
            if harness.rank() == 0 {
                harness.barrier();
                assert!(reduce(harness, way, 8).is_ok());
                assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
                return harness.post_note("finished");
            }
            harness.barrier();
            assert!(reduce(harness, way, 8).is_ok());
            harness.wait_for_note("finished");
        });
    }
}

#[test]
fn member_that_has_finished_ends_operations_that_another_one_has_not_entered() {
    for way in [None, Some(Way::Steps), Some(Way::Slots)] {
        Job::new(&SHM, 3).untidy().run(|harness| {
            harness.barrier();
            match harness.rank() {
                0 => harness.wait_for_note("rank 2 has the error"),
                1 => {
                    assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
                    harness.wait_for_note("rank 2 has the error");
                }
                _ => {
                    let ended = match way {
                        None => harness.comm.barrier(&mut Uninterruptible),
                        Some(way) => reduce(harness, way, 8).map(drop),
                    };
                    assert_eq!(ended, Err(DeviceError::PeerFinished { rank: 1 }));
                    harness.post_note("rank 2 has the error");
                }
            }
        });
    }
}
