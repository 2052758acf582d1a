//! Tests of schedules between ranks that are threads.

use mpjdev_buffer::Type;
use mpjdev_schedule::{Call, Operation, allreduce};
use mpjdev_transport::config::Config;
use mpjdev_transport::wait::Uninterruptible;

use super::super::tests::worlds;
use super::*;
use crate::comm::Status;

fn bcast(group: Group, root: u32, count: usize, element_len: usize) -> Schedule {
    mpjdev_schedule::bcast(group, root, count, element_len, &Choices::default())
}

fn group(comm: &Comm) -> Group {
    Group { rank: comm.rank(), size: comm.size() as u32 }
}

/// A program whose blocks are vectors of octets.
struct Blocks<'a> {
    element: Type,
    input: Vec<Vec<u8>>,
    output: Vec<Vec<u8>>,
    is_divisible: bool,
    is_in_place: bool,
    /// Whether the blocks of either side are one run.
    is_run: bool,
    /// Copies to and from the blocks.
    copies: usize,
    combine: &'a mut dyn FnMut(&[u8], &mut [u8]) -> bool,
    keep_waiting: bool,
}

impl Blocks<'_> {
    fn range(&self, part: BlockPart) -> std::ops::Range<usize> {
        let size = self.element.size();
        part.skip * size..(part.skip + part.len) * size
    }
}

impl Caller for Blocks<'_> {
    fn element(&self) -> Type {
        self.element
    }

    fn input_is_divisible(&self, _: usize) -> bool {
        self.is_divisible
    }

    fn output_is_divisible(&self, _: usize) -> bool {
        self.is_divisible
    }

    fn input_is_run(&self) -> bool {
        self.is_run
    }

    fn output_is_run(&self) -> bool {
        self.is_run
    }

    fn is_in_place(&mut self) -> bool {
        self.is_in_place
    }

    fn pack(&mut self, part: BlockPart, place: Octets<'_>) -> bool {
        self.copies += 1;
        if self.is_run {
            place.put_octets(&self.input[part.block..].concat()[self.range(part)]);
            return true;
        }
        assert!(self.is_divisible || self.range(part).len() == self.input[part.block].len());
        place.put_octets(&self.input[part.block][self.range(part)]);
        true
    }

    fn pack_ahead(&mut self, part: BlockPart, ahead: AheadOf<'_>, send_packed: &dyn Fn()) -> bool {
        let (_, place) = ahead.message.sole_section(self.element, part.len).expect("a section");
        let octets = self.input[part.block][self.range(part)].to_vec();
        for (at, octets) in (0..).step_by(10_000).zip(octets.chunks(10_000)) {
            place.range(at, octets.len()).put_octets(octets);
            ahead.packer.publish(ELEMENTS + at + octets.len());
            send_packed();
        }
        ahead.packer.finish();
        true
    }

    fn store(&mut self, part: BlockPart, octets: Octets<'_>, _: bool) -> bool {
        let range = self.range(part);
        self.copies += 1;
        if self.is_run {
            let mut copy = vec![0; range.len()];
            octets.get_octets(&mut copy);
            let places = self.output[part.block..].iter_mut().flatten().skip(range.start);
            places.zip(copy).for_each(|(place, octet)| *place = octet);
            return true;
        }
        assert!(self.is_divisible || range.len() == self.output[part.block].len());
        octets.get_octets(&mut self.output[part.block][range]);
        true
    }

    fn store_begun(&mut self, part: BlockPart, comm: &Comm, message: &mut Message, status: &Status) -> bool {
        let len = message.first_len();
        comm.await_packed(status.source, message, len, &mut Uninterruptible).expect("packed");
        self.store(part, elements_of(message, part.len * self.element.size()), false)
    }

    fn combine(&mut self, from: &[u8], into: &mut [u8], _: bool) -> bool {
        (self.combine)(from, into)
    }

    fn combines_parts(&self) -> bool {
        self.is_divisible
    }

    fn keep_waiting(&mut self) -> bool {
        self.keep_waiting
    }
}

fn sum(from: &[u8], into: &mut [u8]) -> bool {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = into.wrapping_add(*from));
    true
}

/// The blocks of one operation on bytes; `own` are the elements of this rank.
fn run_with(
    comm: &Comm,
    schedule: &Schedule,
    own: &[u8],
    change: impl FnOnce(&mut Blocks<'_>),
) -> Result<Vec<Vec<u8>>, DeviceError> {
    let mut at = 0;
    let input = schedule.input.iter().map(|run| {
        at += run.len;
        own[at - run.len..at].to_vec()
    });
    let mut blocks = Blocks {
        element: Type::Byte,
        input: input.collect(),
        output: schedule.output.iter().map(|run| vec![0; run.len]).collect(),
        is_divisible: true,
        is_in_place: false,
        is_run: false,
        copies: 0,
        combine: &mut sum,
        keep_waiting: true,
    };
    change(&mut blocks);
    comm.run_schedule("a test", schedule, &mut blocks)?;
    Ok(blocks.output)
}

/// Octets of the first block of the output.
fn run(comm: &Comm, schedule: &Schedule, own: &[u8]) -> Result<Vec<u8>, DeviceError> {
    run_with(comm, schedule, own, |_| {}).map(|output| output.into_iter().next().unwrap_or_default())
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
    let operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
    for count in [1, 9, 20_000] {
        let sums = at_each(5, |comm| {
            let own = vec![comm.rank() as u8 + 1; count];
            run(comm, &allreduce(group(comm), count, operation, 1, &Choices::default()), &own)
                .expect("complete")
        });
        assert!(sums.iter().all(|sum| *sum == vec![15; count]), "{count} elements");
    }
}

/// A call has its own schedule, also after an equal call and after one that differs in a single argument.
#[test]
fn repeated_and_changed_calls_give_each_rank_their_own_result() {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: true, is_divisible: true };
    let calls = [
        (Call::Bcast { root: 0 }, 3),
        (Call::Bcast { root: 0 }, 3),
        (Call::Bcast { root: 1 }, 3),
        (Call::Allreduce { operation }, 3),
        (Call::Allreduce { operation }, 2),
        (Call::Allreduce { operation }, 2),
        (Call::Bcast { root: 1 }, 2),
        (Call::Allreduce { operation }, 400),
        (Call::Allreduce { operation }, 2),
    ];
    let results = at_each(3, |comm| {
        calls.map(|(call, count)| {
            let own = vec![1 << comm.rank(); count];
            let mut blocks = Blocks {
                element: Type::Byte,
                input: vec![own.clone()],
                output: vec![own],
                is_divisible: true,
                is_in_place: false,
                is_run: false,
                copies: 0,
                combine: &mut sum,
                keep_waiting: true,
            };
            let call = UniformCall { call, count, element_len: 1 };
            comm.run_call("a test", call, &Choices::default(), &mut blocks).expect("complete");
            blocks.output.remove(0)
        })
    });
    for (rank, results) in results.iter().enumerate() {
        for (result, (call, count)) in results.iter().zip(calls) {
            let expected = if let Call::Bcast { root } = call { 1 << root } else { 7 };
            assert_eq!(*result, vec![expected; count], "{call:?} at {rank}");
        }
    }
}

/// Blocks of any length and of any layout, and blocks that are input and output.
#[test]
fn every_algorithm_gives_each_rank_its_blocks() {
    let variables = [
        ("MPJDEV_COLL_ALLREDUCE", "direct-blocks"),
        ("MPJDEV_COLL_ALLREDUCE", "rabenseifner"),
        ("MPJDEV_COLL_ALLREDUCE", "ring"),
    ];
    for ((variable, name), count) in variables.into_iter().flat_map(|v| [1, 3, 1000, 400_000].map(|n| (v, n)))
    {
        let choices =
            Choices::from_variables(|asked| (asked == variable).then(|| name.to_owned())).expect("a name");
        for (is_divisible, is_in_place) in [(true, false), (false, false), (true, true)] {
            for ranks in [2, 5] {
                let sums = at_each(ranks, |comm| {
                    let operation =
                        Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
                    let schedule = allreduce(group(comm), count, operation, 1, &choices);
                    let own: Vec<u8> = (0..count).map(|at| (at * (comm.rank() as usize + 1)) as u8).collect();
                    let change = |blocks: &mut Blocks<'_>| {
                        (blocks.is_divisible, blocks.is_in_place) = (is_divisible, is_in_place);
                    };
                    run_with(comm, &schedule, &own, change).expect("complete").remove(0)
                });
                let weight: u32 = (1..=ranks).sum();
                let expected: Vec<u8> = (0..count).map(|at| (at * weight as usize) as u8).collect();
                assert!(
                    sums.iter().all(|sum| *sum == expected),
                    "{name} of {count} elements, {is_divisible}"
                );
            }
        }
    }
}

#[test]
fn long_blocks_are_exchanged_while_they_are_packed() {
    let count = 300_000;
    let exchanged = at_each(3, |comm| {
        let schedule = mpjdev_schedule::alltoall(
            group(comm),
            count,
            1,
            &Choices::default().placed(&Placement::OneMachine { has_slots: false }),
        );
        let own: Vec<u8> =
            (0..3 * count).map(|at| (at / count) as u8 * 10 + comm.rank() as u8 + (at % 7) as u8).collect();
        run_with(comm, &schedule, &own, |_| {}).expect("complete")
    });
    for (rank, blocks) in exchanged.iter().enumerate() {
        for (source, block) in blocks.iter().enumerate() {
            let expected = (0..count).map(|at| (rank * 10 + source + (rank * count + at) % 7) as u8);
            assert!(block.iter().copied().eq(expected), "block of {source} at {rank}");
        }
    }
}

/// A short call copies all blocks of a side at once if they follow each other in the array.
#[test]
fn short_blocks_of_one_run_are_copied_at_once() {
    for (is_run, copies) in [(true, 2), (false, 6)] {
        let exchanged = at_each(3, |comm| {
            let schedule = mpjdev_schedule::alltoall(group(comm), 2, 1, &Choices::default());
            let own = [0, 1, 2].map(|dest| vec![comm.rank() as u8 * 10 + dest; 2]);
            let mut blocks = Blocks {
                element: Type::Byte,
                input: own.to_vec(),
                output: vec![vec![0; 2]; 3],
                is_divisible: true,
                is_in_place: false,
                is_run,
                copies: 0,
                combine: &mut sum,
                keep_waiting: true,
            };
            comm.run_schedule("a test", &schedule, &mut blocks).expect("complete");
            (blocks.output, blocks.copies)
        });
        for (rank, exchanged) in (0..).zip(exchanged) {
            let expected = [0, 1, 2].map(|source| vec![source * 10 + rank; 2]).to_vec();
            assert_eq!(exchanged, (expected, copies), "rank {rank}, {is_run}");
        }
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
            Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true },
            1,
            &Choices::default(),
        );
        let is_interrupted = comm.rank() == 1;
        if comm.rank() == 0 {
            // Rank 0 stays out, so no rank can complete.
            while comm.check_abandonment().expect("no end").is_none() {
                std::thread::yield_now();
            }
        }
        run_with(comm, &schedule, &[1], |blocks| blocks.keep_waiting = !is_interrupted)
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
            let operation =
                Operation { unit: 1, is_commutative: false, is_exact: false, is_divisible: false };
            let schedule = allreduce(group(comm), count, operation, element.size(), &Choices::default());
            let fails = comm.rank() == 2;
            let (input, output) =
                (vec![vec![0; count * element.size()]], vec![vec![0; count * element.size()]]);
            let mut blocks = Blocks {
                element,
                input,
                output,
                is_divisible: false,
                is_in_place: false,
                is_run: false,
                copies: 0,
                combine: &mut |_, _| !fails,
                keep_waiting: true,
            };
            let first = comm.run_schedule("a test", &schedule, &mut blocks);
            (first, run(comm, &bcast(group(comm), 0, 4, 1), &[9; 4]))
        });
        let failures =
            outcomes.iter().filter(|(first, _)| *first == Err(DeviceError::OperationFailed { rank: 2 }));
        assert_eq!(failures.count(), if count == 0 { 0 } else { 4 }, "{count} elements: {outcomes:?}");
        assert!(outcomes.iter().skip(1).all(|(_, next)| *next == Ok(vec![9; 4])));
    }
}
