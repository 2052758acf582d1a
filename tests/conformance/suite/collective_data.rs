//! Collective operations that move or combine elements.

use std::ops::Range;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, Octets, Type};
use mpjdev_engine::collective::{AheadOf, BlockPart, Caller};
use mpjdev_engine::{Comm, DeviceError, Status, Uninterruptible};
use mpjdev_schedule::{
    Choices, Group, Operation, Schedule, allgather, allreduce, alltoall, bcast, reduce_scatter, scan,
};

use crate::rank_harness::{Job, RankHarness, run};
use crate::transport_fixtures::{Ability, TransportFixture, for_every_fixture};

for_every_fixture![
    placement_is_known_alike_to_all_ranks,
    elements_move_between_all_ranks,
    ranks_take_their_parts_of_the_vectors_of_others,
    combined_vectors_have_the_same_bits_at_all_ranks,
    ranks_that_run_ahead_keep_their_operations_apart,
    members_of_more_communicators_than_slots_exchange_vectors,
    a_longer_message_is_an_error_and_the_next_operation_works,
    a_member_that_has_finished_ends_an_operation_with_data,
    an_interrupted_rank_ends_an_operation_with_data,
];

/// Octets of a vector: nothing, inline, in the long part of a slot, sent before they are packed, in several
/// parts.
const LENS: [usize; 7] = [0, 1, 700, 5_001, 32_768, 40_000, 300_000];

/// Communicators of a rank: more than it has slots for.
const COMMS: usize = 20;

/// The octets of vectors that do not take minutes over this fixture.
fn lens(fixture: &TransportFixture) -> &'static [usize] {
    if fixture.lack(Ability::Bulk).is_some() { &LENS[..3] } else { &LENS }
}

/// Octets of the headers of a message of one section.
const HEADERS: usize = 16;

/// Whether elements, and how many of them, are combined with others.
type Combine = fn(&[u8], &mut [u8], bool);

/// A program whose blocks are vectors of octets.
struct Vectors<'a> {
    input: Vec<Vec<u8>>,
    output: Vec<Vec<u8>>,
    combine: Combine,
    can_pack: bool,
    keep_waiting: &'a mut dyn FnMut() -> bool,
}

fn range(part: BlockPart) -> Range<usize> {
    part.skip..part.skip + part.len
}

impl Caller for Vectors<'_> {
    fn element(&self) -> Type {
        Type::Byte
    }

    fn input_is_divisible(&self, _: usize) -> bool {
        true
    }

    fn output_is_divisible(&self, _: usize) -> bool {
        true
    }

    fn is_in_place(&mut self) -> bool {
        false
    }

    fn pack(&mut self, part: BlockPart, place: Octets<'_>) -> bool {
        place.put_octets(&self.input[part.block][range(part)]);
        self.can_pack
    }

    fn pack_ahead(&mut self, part: BlockPart, ahead: AheadOf<'_>, send_packed: &dyn Fn()) -> bool {
        let (_, place) = ahead.message.sole_section(Type::Byte, part.len).expect("a section");
        for (at, octets) in (0..).step_by(50_000).zip(self.input[part.block][range(part)].chunks(50_000)) {
            place.range(at, octets.len()).put_octets(octets);
            ahead.packer.publish(HEADERS + at + octets.len());
            send_packed();
        }
        ahead.packer.finish();
        true
    }

    fn store(&mut self, part: BlockPart, octets: Octets<'_>, _: bool) -> bool {
        octets.get_octets(&mut self.output[part.block][range(part)]);
        true
    }

    fn store_begun(&mut self, part: BlockPart, comm: &Comm, message: &mut Message, status: &Status) -> bool {
        let len = message.first_len();
        comm.await_packed(status.source, message, len, &mut Uninterruptible).expect("packed");
        let octets = Octets::new(message.first_slab().words(), HEADERS, part.len);
        self.store(part, octets, false)
    }

    fn combine(&mut self, from: &[u8], into: &mut [u8], is_lower: bool) -> bool {
        (self.combine)(from, into, is_lower);
        true
    }

    fn combines_parts(&self) -> bool {
        true
    }

    fn keep_waiting(&mut self) -> bool {
        (self.keep_waiting)()
    }
}

pub(crate) fn group(comm: &Comm) -> Group {
    Group { rank: comm.rank(), size: comm.size() as u32 }
}

/// The algorithms of the table for the places of the ranks.
pub(crate) fn choices(comm: &Comm) -> Choices<'_> {
    Choices::default().placed(comm.placement())
}

/// The octet `at` of the vector of a rank.
fn octet(rank: u32, at: usize) -> u8 {
    (rank as usize * 31 + at * 7 + at / 251) as u8
}

pub(crate) fn vector(rank: u32, octets: Range<usize>) -> Vec<u8> {
    octets.map(|at| octet(rank, at)).collect()
}

/// Runs an operation in which the blocks of this rank follow each other in its vector.
pub(crate) fn run_steps(
    harness: &RankHarness,
    schedule: &Schedule,
    combine: Combine,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<u8>>, DeviceError> {
    run_program(harness, schedule, combine, true, keep_waiting)
}

/// The same of a program that perhaps fails to pack its elements.
pub(crate) fn run_program(
    harness: &RankHarness,
    schedule: &Schedule,
    combine: Combine,
    can_pack: bool,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<u8>>, DeviceError> {
    let mut at = 0;
    let input = schedule.input.iter().map(|run| {
        at += run.len;
        vector(harness.rank(), at - run.len..at)
    });
    let input = input.collect();
    let output = schedule.output.iter().map(|run| vec![0; run.len]).collect();
    let mut vectors = Vectors { input, output, combine, can_pack, keep_waiting };
    harness.comm.run_schedule("a test", schedule, &mut vectors)?;
    Ok(vectors.output)
}

#[track_caller]
fn complete(harness: &RankHarness, schedule: &Schedule, combine: Combine) -> Vec<Vec<u8>> {
    run_steps(harness, schedule, combine, &mut || true).expect("complete")
}

pub(crate) fn sum(from: &[u8], into: &mut [u8], _: bool) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = into.wrapping_add(*from));
}

/// An operation whose result shows order and grouping.
pub(crate) fn mix(from: &[u8], into: &mut [u8], is_lower: bool) {
    for (from, into) in from.iter().zip(into) {
        let (left, right) = if is_lower { (*from, *into) } else { (*into, *from) };
        *into = left.wrapping_mul(3).rotate_left(1) ^ right.wrapping_mul(5);
    }
}

fn placement_is_known_alike_to_all_ranks(fixture: &TransportFixture) {
    run(fixture, 4, |harness| {
        let own = format!("{:?}", harness.comm.placement());
        harness.post_note(&own);
        harness.post_note(&format!("rank {}", harness.rank()));
        (0..4).for_each(|rank| harness.wait_for_note(&format!("rank {rank}")));
        let places = ["Apart", "OneMachine", "Sites"];
        let known = places.into_iter().filter(|place| own.starts_with(place)).count();
        assert_eq!(known, 1, "{own}");
        assert_eq!(fixture.name.starts_with("sites"), own.starts_with("Sites"), "{own}");
    });
}

fn elements_move_between_all_ranks(fixture: &TransportFixture) {
    for ranks in [1, 2, 5] {
        run(fixture, ranks, |harness| {
            let (comm, rank, ranks) = (&harness.comm, harness.rank(), ranks as u32);
            for &len in lens(fixture) {
                let root = len as u32 % ranks;
                let received = complete(harness, &bcast(group(comm), root, len, 1, &choices(comm)), sum);
                assert!(rank == root || received == [vector(root, 0..len)], "bcast of {len}");
                let received = complete(harness, &allgather(group(comm), len, 1, &choices(comm)), sum);
                for (source, block) in (0..).zip(&received).filter(|(source, _)| *source != rank) {
                    assert!(*block == vector(source, 0..len), "allgather of {len} from {source}");
                }
            }
        });
    }
}

/// The choices of the table, and those by which each rank gets all elements of each other one.
fn choices_of_parts(comm: &Comm) -> [Choices<'_>; 2] {
    let value = |name: &str| match name {
        "MPJDEV_COLL_ALLTOALL" => Some("direct".to_owned()),
        "MPJDEV_COLL_REDUCE_SCATTER" => Some("whole-vectors".to_owned()),
        _ => None,
    };
    let named = Choices::from_variables(value).expect("algorithms");
    [choices(comm), named.placed(comm.placement())]
}

/// Counts of a vector with a block for each rank.
fn counts(ranks: u32, len: usize) -> Vec<usize> {
    (0..ranks as usize).map(|rank| if rank == 1 { 0 } else { len + rank }).collect()
}

/// Runs an alltoall and a reduce_scatter, and checks what this rank gets.
fn take_parts(harness: &RankHarness, len: usize, choices: &Choices<'_>) {
    let (comm, rank, ranks) = (&harness.comm, harness.rank(), harness.size());
    let received = complete(harness, &alltoall(group(comm), len, 1, choices), sum);
    for (source, block) in (0..).zip(&received) {
        let start = rank as usize * len;
        assert!(*block == vector(source, start..start + len), "alltoall of {len} from {source}");
    }
    let counts = counts(ranks, len);
    let operation = Operation { unit: 1, is_commutative: true, is_exact: true, is_divisible: true };
    let schedule = reduce_scatter(group(comm), &counts, operation, 1, choices);
    let start = counts[..rank as usize].iter().sum::<usize>();
    let block = |source| vector(source, start..start + counts[rank as usize]);
    let mut expected = block(0);
    (1..ranks).for_each(|source| sum(&block(source), &mut expected, false));
    assert!(complete(harness, &schedule, sum) == [expected], "reduce_scatter of {counts:?}");
}

fn ranks_take_their_parts_of_the_vectors_of_others(fixture: &TransportFixture) {
    for ranks in [1, 2, 5] {
        run(fixture, ranks, |harness| {
            for choices in choices_of_parts(&harness.comm) {
                lens(fixture).iter().for_each(|len| take_parts(harness, *len, &choices));
            }
        });
    }
}

/// The order is that of recursive doubling: the pairs of the fold, then neighbours.
pub(crate) fn in_tree_order(mut vectors: Vec<Vec<u8>>) -> Vec<u8> {
    let join = |pair: &[Vec<u8>]| {
        let mut joined = pair[0].clone();
        pair[1..].iter().for_each(|right| mix(right, &mut joined, false));
        joined
    };
    let folded = vectors.len() - (1 << vectors.len().ilog2());
    let pairs: Vec<Vec<u8>> = vectors[..2 * folded].chunks(2).map(join).collect();
    vectors.splice(..2 * folded, pairs);
    while vectors.len() > 1 {
        vectors = vectors.chunks(2).map(join).collect();
    }
    vectors.remove(0)
}

fn combined_vectors_have_the_same_bits_at_all_ranks(fixture: &TransportFixture) {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
    for ranks in [2, 4, 6, 7] {
        run(fixture, ranks, |harness| {
            let comm = &harness.comm;
            for &len in lens(fixture) {
                let schedule = allreduce(group(comm), len, operation, 1, &choices(comm));
                let vectors = (0..ranks as u32).map(|rank| vector(rank, 0..len)).collect();
                assert!(complete(harness, &schedule, mix) == [in_tree_order(vectors)], "{len} octets");
                let mut prefix = vector(0, 0..len);
                (1..=harness.rank()).for_each(|rank| sum(&vector(rank, 0..len), &mut prefix, false));
                assert!(complete(harness, &scan(group(comm), len), sum) == [prefix], "scan of {len} octets");
            }
        });
    }
}

/// Rank 0 sends and does not wait for the others.
fn ranks_that_run_ahead_keep_their_operations_apart(fixture: &TransportFixture) {
    run(fixture, 3, |harness| {
        for len in 0..40 {
            let received =
                complete(harness, &bcast(group(&harness.comm), 0, len, 1, &choices(&harness.comm)), sum);
            assert!(harness.rank() == 0 || received == [vector(0, 0..len)], "{len} octets");
        }
    });
}

/// Ranks 0 and 1 have no slots left for most communicators of all ranks.
fn members_of_more_communicators_than_slots_exchange_vectors(fixture: &TransportFixture) {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
    run(fixture, 3, |harness| {
        for round in 0..2 {
            let pairs: Vec<_> = (0..COMMS / 2 + round)
                .filter_map(|_| harness.create(&[0, 1]))
                .inspect(RankHarness::barrier)
                .collect();
            let all: Vec<_> = (0..COMMS).map(|_| harness.dup()).collect();
            for (len, harness) in (0..).step_by(9).zip(&all).chain((0..).zip(&all)) {
                harness.barrier();
                let comm = &harness.comm;
                let received = complete(harness, &allgather(group(comm), len, 1, &choices(comm)), sum);
                for (source, block) in (0..).zip(&received).filter(|(source, _)| *source != harness.rank()) {
                    assert!(*block == vector(source, 0..len), "allgather of {len} from {source}");
                }
                let schedule = allreduce(group(comm), len, operation, 1, &choices(comm));
                let vectors = (0..3).map(|rank| vector(rank, 0..len)).collect();
                assert!(complete(harness, &schedule, mix) == [in_tree_order(vectors)], "{len} octets");
                take_parts(harness, 100 * len, &choices(comm));
            }
            drop(pairs);
        }
    });
}

fn a_longer_message_is_an_error_and_the_next_operation_works(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let broadcast = |len| bcast(group(&harness.comm), 0, len, 1, &choices(&harness.comm));
        for (sent, room) in [(64, 8), (50_000, 40_000)] {
            let len = if harness.rank() == 0 { sent } else { room };
            let ended = run_steps(harness, &broadcast(len), sum, &mut || true);
            match harness.rank() {
                0 => assert_eq!(ended, Ok(vec![])),
                _ => {
                    assert!(matches!(ended, Err(DeviceError::Truncated { source_rank: 0, .. })), "{ended:?}")
                }
            }
            let next = complete(harness, &broadcast(9), sum);
            assert!(harness.rank() == 0 || next == [vector(0, 0..9)]);
        }
    });
}

fn a_member_that_has_finished_ends_an_operation_with_data(fixture: &TransportFixture) {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: true, is_divisible: true };
    for gone in [0, 3] {
        Job::new(fixture, 4).untidy().run(|harness| {
            if harness.rank() == gone {
                assert_eq!(harness.comm.finish(&mut Uninterruptible), Ok(()));
                harness.post_note("finished");
                return;
            }
            harness.wait_for_note("finished");
            let schedule = allreduce(group(&harness.comm), 100, operation, 1, &choices(&harness.comm));
            let begun = Instant::now();
            let ended = run_steps(harness, &schedule, sum, &mut || begun.elapsed() < Duration::from_secs(20));
            assert_eq!(ended, Err(DeviceError::PeerFinished { rank: gone }));
            // Alive until all have noticed the end.
            harness.post_note(&format!("rank {}", harness.rank()));
            (0..4).filter(|r| *r != gone).for_each(|r| harness.wait_for_note(&format!("rank {r}")));
        });
    }
}

/// A member that needs nothing of the interrupted one may complete this operation. The next one fails.
fn an_interrupted_rank_ends_an_operation_with_data(fixture: &TransportFixture) {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: true, is_divisible: true };
    Job::new(fixture, 3).untidy().run(|harness| {
        let schedule = allreduce(group(&harness.comm), 1, operation, 1, &choices(&harness.comm));
        let call = || run_steps(harness, &schedule, sum, &mut || true);
        if harness.rank() == 1 {
            let interrupted = run_steps(harness, &schedule, sum, &mut || false);
            assert_eq!(interrupted, Err(DeviceError::Interrupted));
            harness.post_note("interrupted");
        } else {
            // Rank 0 stays out, so rank 1 cannot complete.
            if harness.rank() == 0 {
                harness.wait_for_note("interrupted");
            }
            let outcome = call().and_then(|_| call());
            assert!(matches!(outcome, Err(DeviceError::Abandoned { rank: 1, .. })), "{outcome:?}");
        }
        harness.post_note(&format!("rank {}", harness.rank()));
        (0..3).for_each(|rank| harness.wait_for_note(&format!("rank {rank}")));
    });
}
