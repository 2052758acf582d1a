//! Tests of schedules between ranks that are threads.

use mpjdev_schedule::{Choices, Group, Operation, allreduce};
use mpjdev_transport::config::Config;
use mpjdev_transport::wait::Uninterruptible;

use super::super::tests::worlds;
use super::*;

fn bcast(group: Group, root: u32, count: usize, element_len: usize) -> Schedule {
    mpjdev_schedule::bcast(group, root, count, element_len, &Choices::default())
}

fn group(comm: &Comm) -> Group {
    Group { rank: comm.rank(), size: comm.size() as u32 }
}

/// Octets of one operation on bytes; `own` are the elements of this rank.
fn run(comm: &Comm, schedule: &Schedule, own: &[u8]) -> Result<Vec<u8>, DeviceError> {
    let mut memory = Scratch::zeroed(schedule.len).expect("memory");
    if let Some(input) = schedule.input.first() {
        memory.octets()[input.start..input.start + input.len].copy_from_slice(&own[..input.len]);
    }
    let mut area = Area { memory: &mut memory, element: Type::Byte };
    let mut sum = |from: &[u8], into: &mut [u8], _| {
        for (into, from) in into.iter_mut().zip(from) {
            *into = into.wrapping_add(*from);
        }
        true
    };
    let mut reduction = Reduction { combine: &mut sum, is_divisible: true };
    comm.run_schedule("a test", schedule, &mut area, &mut reduction, &mut Uninterruptible)?;
    let output = schedule.output.first().map_or(0..0, |run| run.start..run.start + run.len);
    Ok(memory.octets()[output].to_vec())
}

/// Runs a function at each rank of a job of threads.
fn at_each<R: Send>(ranks: u32, f: impl Fn(&Comm) -> R + Sync) -> Vec<R> {
    let worlds = worlds(ranks, &Config::default());
    std::thread::scope(|scope| {
        let threads: Vec<_> = worlds.iter().map(|comm| scope.spawn(|| f(comm))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn broadcast_of_any_length_reaches_all() {
    for count in [0, 1, 7, 5000, 300_000] {
        let data: Vec<u8> = (0..count).map(|at| at as u8).collect();
        let received = at_each(5, |comm| {
            let own = if comm.rank() == 3 { data.clone() } else { vec![0; count] };
            run(comm, &bcast(group(comm), 3, count, 1), &own).expect("complete")
        });
        for (rank, received) in received.iter().enumerate().filter(|(rank, _)| *rank != 3) {
            assert!(*received == data, "rank {rank}, {count} octets");
        }
    }
}

#[test]
fn reduction_combines_the_vectors_of_all() {
    let operation = Operation { unit: 1, is_commutative: true, is_divisible: true };
    for count in [1, 9, 20_000] {
        let sums = at_each(5, |comm| {
            let own = vec![comm.rank() as u8 + 1; count];
            run(comm, &allreduce(group(comm), count, operation, 1, &Choices::default()), &own)
                .expect("complete")
        });
        assert!(sums.iter().all(|sum| *sum == vec![15; count]), "{count} elements");
    }
}

/// Rank 2, whose vector is too short, fails, and so does rank 3 behind it in the tree. Rank 1 completes, and
/// so does the next operation of all.
#[test]
fn longer_message_is_an_error_of_its_receiver_and_of_those_behind_it() {
    let outcomes = at_each(4, |comm| {
        let count = if comm.rank() == 2 { 8 } else { 16 };
        let first = run(comm, &bcast(group(comm), 0, count, 1), &[7; 16]);
        let next = run(comm, &bcast(group(comm), 0, 4, 1), &[9; 4]);
        (first, next)
    });
    for (rank, (first, next)) in outcomes.into_iter().enumerate().skip(1) {
        match rank {
            2 => assert!(matches!(first, Err(DeviceError::Truncated { source_rank: 0, .. })), "{first:?}"),
            3 => assert_eq!(first, Err(DeviceError::OperationFailed { rank: 2 })),
            _ => assert_eq!(first, Ok(vec![7; 16])),
        }
        assert_eq!(next, Ok(vec![9; 4]), "rank {rank}");
    }
}

#[test]
fn interrupted_rank_ends_the_operation_of_all() {
    let outcomes = at_each(3, |comm| {
        let schedule = allreduce(
            group(comm),
            1,
            Operation { unit: 1, is_commutative: true, is_divisible: true },
            1,
            &Choices::default(),
        );
        let mut memory = Scratch::zeroed(schedule.len).expect("memory");
        let mut area = Area { memory: &mut memory, element: Type::Byte };
        let is_interrupted = comm.rank() == 1;
        if comm.rank() == 0 {
            // Rank 0 stays out, so no rank can complete.
            while comm.check_abandonment().expect("no end").is_none() {
                std::thread::yield_now();
            }
        }
        let mut may_wait = || !is_interrupted;
        let mut reduction = Reduction { combine: &mut |_, _, _| true, is_divisible: true };
        comm.run_schedule("a test", &schedule, &mut area, &mut reduction, &mut may_wait)
    });
    assert_eq!(outcomes[1], Err(DeviceError::Interrupted));
    for outcome in [&outcomes[0], &outcomes[2]] {
        assert!(matches!(outcome, Err(DeviceError::Abandoned { rank: 1, .. })), "{outcome:?}");
    }
}

/// Rank 2 combines its vector with that of rank 3, and all need the result. The next operation works.
#[test]
fn failed_reduction_is_an_error_of_all_that_need_its_result() {
    for (element, count) in [(Type::Byte, 1), (Type::Long, 3), (Type::Byte, 0)] {
        let outcomes = at_each(4, |comm| {
            let operation = Operation { unit: 1, is_commutative: false, is_divisible: false };
            let schedule = allreduce(group(comm), count, operation, element.size(), &Choices::default());
            let mut memory = Scratch::zeroed(schedule.len * element.size()).expect("memory");
            let mut area = Area { memory: &mut memory, element };
            let fails = comm.rank() == 2;
            let mut reduction = Reduction { combine: &mut |_, _, _| !fails, is_divisible: false };
            let first =
                comm.run_schedule("a test", &schedule, &mut area, &mut reduction, &mut Uninterruptible);
            (first, run(comm, &bcast(group(comm), 0, 4, 1), &[9; 4]))
        });
        let failures =
            outcomes.iter().filter(|(first, _)| *first == Err(DeviceError::OperationFailed { rank: 2 }));
        assert_eq!(failures.count(), if count == 0 { 0 } else { 4 }, "{count} elements: {outcomes:?}");
        assert!(outcomes.iter().skip(1).all(|(_, next)| *next == Ok(vec![9; 4])));
    }
}
