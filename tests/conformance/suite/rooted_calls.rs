//! Calls with a root and short blocks, which each rank runs by the steps of a schedule or without them.

use mpjdev_buffer::Type;
use mpjdev_engine::{DeviceError, Uninterruptible};
use mpjdev_schedule::{Call, Operation, Placement, UniformCall};

use super::collective_data::{choices, group, in_tree_order, mix, run_steps, sum, vector};
use crate::rank_harness::{Job, RankHarness, amount, run};
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    short_blocks_move_by_steps_or_without_them,
    a_root_that_runs_ahead_keeps_its_calls_apart,
    fewer_elements_leave_those_behind_them_and_more_are_an_error,
    a_member_that_has_finished_ends_the_gather_of_its_root,
    vectors_are_reduced_by_steps_or_without_them,
    a_longer_vector_in_a_scan_is_an_error_of_the_ranks_that_need_it,
];

fn call(call: Call, count: usize) -> UniformCall {
    UniformCall { call, count, element_len: 1 }
}

/// The octets of this rank before a call: zeroes where it receives.
fn octets_before(harness: &RankHarness, call: &UniformCall) -> Vec<u8> {
    let (rank, len, ranks) = (harness.rank(), call.count, harness.size() as usize);
    match call.call {
        Call::Bcast { root } if rank == root => vector(rank, 0..len),
        Call::Scatter { root } if rank == root => vector(rank, 0..ranks * len),
        Call::Gather { root } if rank == root => {
            let mut blocks = vec![0; ranks * len];
            blocks[rank as usize * len..][..len].copy_from_slice(&vector(rank, 0..len));
            blocks
        }
        Call::Gather { .. } => vector(rank, 0..len),
        _ => vec![0; len],
    }
}

/// The octets of this rank after a call.
fn octets_after(harness: &RankHarness, call: &UniformCall) -> Vec<u8> {
    let (rank, len) = (harness.rank(), call.count);
    match call.call {
        Call::Bcast { root } => vector(root, 0..len),
        Call::Scatter { root } if rank != root => {
            let start = rank as usize * len;
            vector(root, start..start + len)
        }
        Call::Gather { root } if rank == root => {
            (0..harness.size()).flat_map(|source| vector(source, 0..len)).collect()
        }
        _ => octets_before(harness, call),
    }
}

/// Runs a call without a schedule, if that is possible. Returns the octets of this rank after it.
fn run_short(harness: &RankHarness, call: &UniformCall) -> Result<Option<Vec<u8>>, DeviceError> {
    let mut octets = octets_before(harness, call);
    let vector = (Type::Byte, &mut octets[..]);
    let is_done = harness.comm.run_rooted(call, &choices(&harness.comm), vector, &mut Uninterruptible)?;
    Ok(is_done.then_some(octets))
}

/// Runs a call by its steps, and checks what it has stored.
fn check_steps(harness: &RankHarness, call: &UniformCall) {
    let schedule = call.schedule(group(&harness.comm), &choices(&harness.comm));
    let stored = run_steps(harness, &schedule, sum, &mut || true).expect("complete");
    let after = octets_after(harness, call);
    let (rank, len) = (harness.rank(), call.count);
    match call.call {
        Call::Scatter { root } if rank == root => {
            let start = rank as usize * len;
            assert_eq!(stored, [vector(rank, start..start + len)], "{call:?}");
        }
        _ => assert!(stored.is_empty() || stored.concat() == after, "{call:?}"),
    }
}

/// The lengths are those of short blocks, and of one that is not.
fn short_blocks_move_by_steps_or_without_them(fixture: &TransportFixture) {
    for ranks in [1, 2, 5] {
        run(fixture, ranks, |harness| {
            let is_intra_node = matches!(harness.comm.placement(), Placement::OneMachine { .. });
            let lens = [8, 0, 1, 7, 300, 1023, 1024, 1025];
            for (round, len) in (0..).zip(lens.repeat(amount(2, 100))) {
                let root = round % ranks as u32;
                for kind in [Call::Bcast { root }, Call::Gather { root }, Call::Scatter { root }] {
                    let call = call(kind, len);
                    let is_short = (round + harness.rank()).is_multiple_of(2);
                    match is_short.then(|| run_short(harness, &call).expect("complete")).flatten() {
                        Some(octets) => assert!(octets == octets_after(harness, &call), "{call:?}"),
                        None => {
                            assert!(!is_short || len > 1024 || !is_intra_node, "{call:?}");
                            check_steps(harness, &call);
                        }
                    }
                }
            }
        });
    }
}

/// Its messages fill the queue, so that some take message memory.
fn a_root_that_runs_ahead_keeps_its_calls_apart(fixture: &TransportFixture) {
    run(fixture, 3, |harness| {
        for round in 0..amount(600, 20_000) {
            let call = call(Call::Bcast { root: 0 }, 900 + round % 100);
            match run_short(harness, &call).expect("complete") {
                Some(octets) => assert!(octets == octets_after(harness, &call), "{call:?}"),
                None => check_steps(harness, &call),
            }
        }
    });
}

fn fewer_elements_leave_those_behind_them_and_more_are_an_error(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (sent, room) in [(8, 16), (0, 5), (1000, 1024), (16, 8), (1024, 1), (40_000, 8)] {
            let is_root = harness.rank() == 0;
            let call = call(Call::Bcast { root: 0 }, if is_root { sent } else { room });
            match run_short(harness, &call) {
                Ok(None) if is_root => check_steps(harness, &call),
                // This transport, or a C MPI, needs the steps.
                Ok(None) => drop(run_steps(
                    harness,
                    &call.schedule(group(&harness.comm), &choices(&harness.comm)),
                    sum,
                    &mut || true,
                )),
                Ok(Some(octets)) if is_root || sent <= room => {
                    let mut expected = vector(0, 0..sent);
                    expected.resize(call.count, 0);
                    assert!(octets == expected, "{sent} octets in {room}");
                }
                ended => assert!(
                    matches!(ended, Err(DeviceError::Truncated { source_rank: 0, .. })),
                    "{sent} octets in {room}: {ended:?}"
                ),
            }
        }
    });
}

fn a_member_that_has_finished_ends_the_gather_of_its_root(fixture: &TransportFixture) {
    Job::new(fixture, 3).untidy().run(|harness| {
        if harness.rank() == 2 {
            assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
            return harness.post_note("finished");
        }
        harness.wait_for_note("finished");
        let call = call(Call::Gather { root: 0 }, 9);
        let ended = match run_short(harness, &call) {
            Ok(None) => {
                let schedule = call.schedule(group(&harness.comm), &choices(&harness.comm));
                run_steps(harness, &schedule, sum, &mut || true).map(drop)
            }
            ended => ended.map(drop),
        };
        match harness.rank() {
            0 => assert_eq!(ended, Err(DeviceError::PeerFinished { rank: 2 })),
            // It may have sent its block before rank 0 abandons the call.
            _ => assert!(
                matches!(
                    ended,
                    Ok(()) | Err(DeviceError::PeerFinished { .. } | DeviceError::Abandoned { .. })
                ),
                "{ended:?}"
            ),
        }
        harness.post_note(&format!("rank {}", harness.rank()));
        (0..2).for_each(|rank| harness.wait_for_note(&format!("rank {rank}")));
    });
}

/// Runs a reduction without a schedule, if that is possible. Returns the octets of this rank after it.
fn reduce_short(harness: &RankHarness, call: &UniformCall) -> Result<Option<Vec<u8>>, DeviceError> {
    let mut octets = vector(harness.rank(), 0..call.count);
    let is_done = harness.comm.combine_short(
        call,
        &choices(&harness.comm),
        (Type::Byte, &mut octets),
        &mut Uninterruptible,
        &mut |right, left| mix(right, left, false),
    )?;
    Ok(is_done.then_some(octets))
}

/// Both ways combine in one order, so the bits are the same. Ranks that are apart reduce by a tree only.
fn vectors_are_reduced_by_steps_or_without_them(fixture: &TransportFixture) {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
    for ranks in [1, 2, 3, 7] {
        run(fixture, ranks, |harness| {
            let comm = &harness.comm;
            let is_intra_node = matches!(comm.placement(), Placement::OneMachine { .. });
            for (round, len) in (0..).zip([8, 0, 1, 1000, 1024, 1025].repeat(amount(1, 50))) {
                let root = round % ranks as u32;
                let steps = |call: &UniformCall| {
                    let schedule = call.schedule(group(comm), &choices(comm));
                    run_steps(harness, &schedule, mix, &mut || true).expect("complete").concat()
                };
                let reduce = call(Call::Reduce { root, operation }, len);
                let is_short = (round + harness.rank()).is_multiple_of(2);
                let short = is_short.then(|| reduce_short(harness, &reduce).expect("complete")).flatten();
                assert!(short.is_some() || !is_short || len > 1024 || !is_intra_node, "{len} octets");
                let result = short.unwrap_or_else(|| steps(&reduce));
                let vectors = (0..ranks as u32).map(|rank| vector(rank, 0..len)).collect();
                let is_checked = harness.rank() == root && is_intra_node;
                assert!(!is_checked || result == in_tree_order(vectors), "{len} octets at {root}");

                let scan = call(Call::Scan, len);
                let expected = steps(&scan);
                match reduce_short(harness, &scan).expect("complete") {
                    Some(prefix) => assert!(prefix == expected, "scan of {len} octets"),
                    None => {
                        assert!(len > 1024 || ranks > 4, "{len} octets");
                        assert!(steps(&scan) == expected, "scan of {len} octets");
                    }
                }
            }
        });
    }
}

/// Rank 1 sends its vector, which is longer than those of the others, before it receives that of rank 0.
fn a_longer_vector_in_a_scan_is_an_error_of_the_ranks_that_need_it(fixture: &TransportFixture) {
    run(fixture, 4, |harness| {
        for len in [8, 1000] {
            let own = if harness.rank() == 1 { len + 1 } else { len };
            let ended = reduce_short(harness, &call(Call::Scan, own));
            match harness.rank() {
                0 => assert_eq!(ended, Ok(Some(vector(0, 0..len)))),
                1 => assert_eq!(ended, Err(DeviceError::OtherOperation { rank: 0 })),
                2 => {
                    assert!(matches!(ended, Err(DeviceError::Truncated { source_rank: 1, .. })), "{ended:?}")
                }
                _ => assert_eq!(ended, Err(DeviceError::OperationFailed { rank: 1 })),
            }
            let next = reduce_short(harness, &call(Call::Scan, len));
            assert!(matches!(next, Ok(Some(_))), "{next:?}");
        }
    });
}
