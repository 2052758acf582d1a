//! Collective calls of a rank in Rust, each timed: the calls that the native methods of package `mpi` make.
//!
//! Elements are doubles in plain memory. Before each call the ranks meet in a barrier, which is not timed.

use std::env;
use std::ops::Range;
use std::time::Instant;

use mpjdev_buffer::layout::{PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};
use mpjdev_buffer::{Encoding, Message, Octets, Type};
use mpjdev_engine::collective::{AheadOf, BlockPart, Caller, VECTOR_MAX, Vectors};
use mpjdev_engine::{Comm, DeviceError, Status, Uninterruptible};
use mpjdev_reduction::{Element, Operator};
use mpjdev_schedule as schedule;
use mpjdev_schedule::{Choices, Operation, UniformCall, combine_vectors};

use super::calls::Call;
use super::loops::CaseResult;
use super::outcome::median;
use super::rank::RankError;

/// Limit of the calls of a median, as in `collectives.c`.
const TIMED_MAX: u64 = 1 << 16;
const ROOT: u32 = 0;
/// Octets of a double.
const DOUBLE: usize = 8;
/// Octets of a vector for which a smaller place is prepared.
const ONE_LINE: usize = 64;
/// Octets after which the packed part of a message is published, or stored.
const PART: usize = 16 * 1024;
/// Octets after which packed messages are sent, as where an array is released.
const RELEASED_AFTER: usize = 256 * 1024;
/// The offset of the elements in a message of one section.
const ELEMENTS: usize = PRIMARY_HEADER_LEN + SECTION_HEADER_LEN;
/// The sum of doubles.
const SUM: Operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };

/// A collective call with its arrays.
#[derive(Debug)]
pub struct CollectiveCalls {
    call: Call,
    /// Doubles of a rank, or of a pair.
    count: usize,
    choices: Choices<'static>,
    /// Octets of the array to send; of a broadcast the only one.
    from: Vec<u8>,
    /// Octets of the array to receive, as long as the other one.
    to: Vec<u8>,
}

impl CollectiveCalls {
    /// A call with arrays of ones.
    ///
    /// # Errors
    /// Only Java has the call, or the environment names an unknown algorithm.
    pub fn new(call: Call, octets: u64, comm: &Comm) -> Result<CollectiveCalls, RankError> {
        if !call.is_of_c() {
            return Err(RankError::Command(format!("{} is measured in Java", call.word())));
        }
        let choices = Choices::from_variables(|name| env::var(name).ok());
        let choices = choices.map_err(|error| RankError::Command(error.to_string()))?;
        let count = usize::try_from(octets).unwrap_or(usize::MAX) / DOUBLE;
        let blocks = match call {
            Call::ReduceScatter | Call::Alltoall | Call::Allgather | Call::Gather | Call::Scatter => {
                comm.size()
            }
            _ => 1,
        };
        let from = 1_f64.to_ne_bytes().repeat(count * blocks);
        let to = vec![0; from.len()];
        Ok(CollectiveCalls { call, count, choices, from, to })
    }

    /// Whether these are calls of this kind.
    pub fn are(&self, call: Call, octets: u64) -> bool {
        self.call == call && (self.count * DOUBLE) as u64 == octets
    }

    /// Makes calls. The second result is their median, multiplied by their number.
    ///
    /// # Errors
    /// Communication fails.
    pub fn run(&mut self, comm: &Comm, times: u64) -> Result<CaseResult, RankError> {
        let step = times.div_ceil(TIMED_MAX);
        let mut timed = Vec::with_capacity(times.min(TIMED_MAX) as usize);
        let start = Instant::now();
        for number in 0..times {
            comm.barrier(&mut Uninterruptible)?;
            let begin = Instant::now();
            self.make(comm)?;
            let nanos = begin.elapsed().as_nanos() as f64;
            if number.is_multiple_of(step) {
                timed.push(nanos);
            }
        }
        let nanos = start.elapsed().as_nanos() as f64;
        let extra = median(timed).unwrap_or_default() * times as f64;
        Ok(CaseResult { nanos: Some(nanos), extra })
    }

    /// Makes one call.
    fn make(&mut self, comm: &Comm) -> Result<(), RankError> {
        let choices = self.choices.placed(comm.placement());
        let call = match self.call {
            Call::Barrier => return Ok(comm.barrier(&mut Uninterruptible)?),
            Call::Bcast => schedule::Call::Bcast { root: ROOT },
            Call::Gather => schedule::Call::Gather { root: ROOT },
            Call::Scatter => schedule::Call::Scatter { root: ROOT },
            Call::Allgather => schedule::Call::Allgather,
            Call::Alltoall => schedule::Call::Alltoall,
            Call::Reduce => schedule::Call::Reduce { root: ROOT, operation: SUM },
            Call::Allreduce | Call::AllreduceUser | Call::AllreduceGarbage => {
                schedule::Call::Allreduce { operation: SUM }
            }
            Call::ReduceScatter => schedule::Call::ReduceScatter { operation: SUM },
            Call::Scan => schedule::Call::Scan,
        };
        let call = UniformCall { call, count: self.count, element_len: DOUBLE };
        let is_done = match call.call {
            schedule::Call::Allgather
            | schedule::Call::Alltoall
            | schedule::Call::Allreduce { .. }
            | schedule::Call::ReduceScatter { .. } => self.exchange(comm, &call, &choices)?,
            schedule::Call::Bcast { .. } | schedule::Call::Gather { .. } | schedule::Call::Scatter { .. } => {
                self.move_at_root(comm, &call, &choices)?
            }
            schedule::Call::Reduce { .. } | schedule::Call::Scan => self.combine(comm, &call, &choices)?,
        };
        if is_done {
            return Ok(());
        }
        let mut program = self.program(comm);
        let ended = comm.run_call("a benchmark", call, &choices, &mut program);
        program.failure.map_or(Ok(ended?), Err)
    }

    /// The memory of a call with a schedule.
    fn program(&mut self, comm: &Comm) -> Program<'_> {
        let CollectiveCalls { from, to, .. } = self;
        let (input, output) = match self.call {
            Call::Bcast if comm.rank() != ROOT => (to, from),
            _ => (from, to),
        };
        Program { input, output, block_len: self.count * DOUBLE, failure: None }
    }

    /// The octets of the block of a rank.
    fn block(&self, rank: u32) -> Range<usize> {
        let len = self.count * DOUBLE;
        rank as usize * len..(rank as usize + 1) * len
    }

    /// Passes short vectors of all ranks through slots. False, and nothing has happened, if that is not
    /// possible.
    fn exchange(
        &mut self,
        comm: &Comm,
        call: &UniformCall,
        choices: &Choices<'_>,
    ) -> Result<bool, RankError> {
        let (size, block) = (comm.size() as u32, self.block(comm.rank()));
        let CollectiveCalls { from, to, .. } = self;
        let own = if self.call == Call::Allgather { &from[..block.len()] } else { &from[..] };
        if own.len() > VECTOR_MAX {
            return Ok(false);
        }
        let skip = match self.call {
            Call::Alltoall | Call::ReduceScatter => block.start,
            _ => 0,
        };
        let mut read = |vectors: &Vectors<'_>| match call.call {
            schedule::Call::Allreduce { .. } | schedule::Call::ReduceScatter { .. } => {
                let into = &mut to[..block.len()];
                match block.len() <= ONE_LINE {
                    true => add::<ONE_LINE>(vectors, size, skip, into),
                    false => add::<VECTOR_MAX>(vectors, size, skip, into),
                }
            }
            _ => (0..size).for_each(|rank| {
                vectors.copy(rank, skip, &mut to[rank as usize * block.len()..][..block.len()]);
            }),
        };
        let vector = (Type::Double, own);
        Ok(comm.exchange_vectors(call, choices, vector, &mut Uninterruptible, &mut read)?)
    }

    /// Moves short blocks from the root or to it. False, and nothing has happened, if that is not possible.
    fn move_at_root(
        &mut self,
        comm: &Comm,
        call: &UniformCall,
        choices: &Choices<'_>,
    ) -> Result<bool, RankError> {
        let (is_root, block) = (comm.rank() == ROOT, self.block(0));
        if block.len() > VECTOR_MAX {
            return Ok(false);
        }
        let own = block.clone();
        let octets = match (self.call, is_root) {
            (Call::Bcast, _) | (Call::Scatter, true) => &mut self.from[..],
            (Call::Gather, false) => &mut self.from[block],
            (Call::Scatter, false) => &mut self.to[block],
            _ => &mut self.to[..],
        };
        let vector = (Type::Double, octets);
        let is_done = comm.run_rooted(call, choices, vector, &mut Uninterruptible)?;
        if is_done && is_root && self.call != Call::Bcast {
            self.to[own.clone()].copy_from_slice(&self.from[own]);
        }
        Ok(is_done)
    }

    /// Combines short vectors. False, and nothing has happened, if that is not possible.
    fn combine(&mut self, comm: &Comm, call: &UniformCall, choices: &Choices<'_>) -> Result<bool, RankError> {
        if self.from.len() > VECTOR_MAX {
            return Ok(false);
        }
        self.to.copy_from_slice(&self.from);
        let mut combine = |right: &[u8], left: &mut [u8]| sum(right, left, false);
        let vector = (Type::Double, &mut self.to[..]);
        Ok(comm.combine_short(call, choices, vector, &mut Uninterruptible, &mut combine)?)
    }
}

fn sum(from: &[u8], into: &mut [u8], is_lower: bool) {
    mpjdev_reduction::combine(Operator::Sum, Element::Double, from, into, is_lower);
}

/// Adds as many octets of the vectors of all ranks, from `skip` on and at most `N`.
fn add<const N: usize>(vectors: &Vectors<'_>, ranks: u32, skip: usize, into: &mut [u8]) {
    let mut read = |rank, into: &mut [u8]| vectors.copy(rank, skip, into);
    combine_vectors::<N>(ranks, into, &mut read, &mut |right, left| sum(right, left, false));
}

/// The memory of a call with a schedule, whose blocks follow each other.
struct Program<'a> {
    input: &'a [u8],
    output: &'a mut [u8],
    /// Octets of a block, where there are several.
    block_len: usize,
    /// Why a method has failed.
    failure: Option<RankError>,
}

impl Program<'_> {
    fn range(&self, part: BlockPart) -> Range<usize> {
        let start = part.block * self.block_len + part.skip * DOUBLE;
        start..start + part.len * DOUBLE
    }

    fn note<T>(&mut self, done: Result<T, RankError>) -> bool {
        let failure = done.err();
        let is_done = failure.is_none();
        self.failure = self.failure.take().or(failure);
        is_done
    }

    /// Stores the elements of a message part by part, as its sender packs them.
    fn unpack(
        &mut self,
        part: BlockPart,
        comm: &Comm,
        message: &mut Message,
        source: u32,
    ) -> Result<(), RankError> {
        let all = message.first_len();
        let range = self.range(part);
        let output = &mut self.output[range];
        if message.is_packing() && message.encoding() == Encoding::NATIVE {
            let (count, _) = message.sole_section(Type::Double, part.len)?;
            let (memory, len) = (message.first_slab().clone(), count * DOUBLE);
            let mut done = 0;
            while done < len {
                let wanted = (done + PART).min(len);
                let there = comm.await_packed(source, message, ELEMENTS + wanted, &mut Uninterruptible)?;
                let ready = (there.saturating_sub(ELEMENTS) / DOUBLE * DOUBLE).clamp(wanted, len);
                let place = Octets::new(memory.words(), ELEMENTS + done, ready - done);
                place.get_octets(&mut output[done..ready]);
                done = ready;
            }
            comm.await_packed(source, message, all, &mut Uninterruptible)?;
            return Ok(());
        }
        if message.is_packing() {
            comm.await_packed(source, message, all, &mut Uninterruptible)?;
        }
        message.sole_section(Type::Double, part.len)?.1.get_octets(output);
        Ok(())
    }
}

impl Caller for Program<'_> {
    fn element(&self) -> Type {
        Type::Double
    }

    fn input_is_divisible(&self, _: usize) -> bool {
        true
    }

    fn output_is_divisible(&self, _: usize) -> bool {
        true
    }

    fn input_is_run(&self) -> bool {
        true
    }

    fn output_is_run(&self) -> bool {
        true
    }

    fn is_in_place(&mut self) -> bool {
        false
    }

    fn pack(&mut self, part: BlockPart, place: Octets<'_>) -> bool {
        place.put_octets(&self.input[self.range(part)]);
        true
    }

    fn pack_ahead(&mut self, part: BlockPart, ahead: AheadOf<'_>, send_packed: &dyn Fn()) -> bool {
        let place = Octets::new(ahead.message.first_slab().words(), ELEMENTS, part.len * DOUBLE);
        for (at, octets) in (0_usize..).step_by(PART).zip(self.input[self.range(part)].chunks(PART)) {
            if at > 0 && at.is_multiple_of(RELEASED_AFTER) {
                send_packed();
            }
            place.range(at, octets.len()).put_octets(octets);
            ahead.packer.publish(ELEMENTS + at + octets.len());
        }
        ahead.packer.finish();
        true
    }

    /// All ranks have one byte order.
    fn store(&mut self, part: BlockPart, octets: Octets<'_>, _: bool) -> bool {
        let range = self.range(part);
        octets.get_octets(&mut self.output[range]);
        true
    }

    fn store_begun(&mut self, part: BlockPart, comm: &Comm, message: &mut Message, status: &Status) -> bool {
        let stored = self.unpack(part, comm, message, status.source);
        self.note(stored)
    }

    fn combine(&mut self, from: &[u8], into: &mut [u8], is_lower: bool) -> bool {
        sum(from, into, is_lower);
        true
    }

    fn combines_parts(&self) -> bool {
        true
    }

    fn keep_waiting(&mut self) -> bool {
        true
    }

    fn take_error(&mut self) -> Option<DeviceError> {
        match &self.failure {
            Some(RankError::Device(error)) => Some(error.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mpjdev_bootstrap::job;
    use mpjdev_buffer::SlabSource;
    use mpjdev_engine::Config;
    use mpjdev_engine::pool::HeapPool;

    use super::*;

    /// Octets of a rank, or of a pair: in a slot, in a queue, in memory, packed while they are sent.
    const OCTETS: [usize; 4] = [8, 1024, 8192, 400_000];
    const CALLS: [Call; 9] = [
        Call::Bcast,
        Call::Allreduce,
        Call::Reduce,
        Call::ReduceScatter,
        Call::Scan,
        Call::Alltoall,
        Call::Allgather,
        Call::Gather,
        Call::Scatter,
    ];

    fn octets(doubles: impl Iterator<Item = f64>) -> Vec<u8> {
        doubles.flat_map(f64::to_ne_bytes).collect()
    }

    /// The array of a rank before a call of a job with this many doubles.
    fn sent(rank: u32, doubles: usize) -> impl Iterator<Item = f64> {
        (0..doubles).map(move |at| f64::from(rank) * 1000.0 + at as f64)
    }

    /// The array of the result, or the first part of it that has one; `None` at a rank without a result.
    fn result(call: Call, rank: u32, size: u32, count: usize) -> Option<Vec<f64>> {
        let blocks = count * size as usize;
        let block = |of: u32, at: u32| sent(of, blocks).skip(at as usize * count).take(count);
        let sum_to = |last: u32, at: u32| {
            let add = |sum: Vec<f64>, of| sum.iter().zip(block(of, at)).map(|(a, b)| a + b).collect();
            (0..=last).fold(vec![0.0; count], add)
        };
        match call {
            Call::Bcast => Some(sent(0, count).collect()),
            Call::Allreduce => Some(sum_to(size - 1, 0)),
            Call::Reduce => (rank == ROOT).then(|| sum_to(size - 1, 0)),
            Call::ReduceScatter => Some(sum_to(size - 1, rank)),
            Call::Scan => Some(sum_to(rank, 0)),
            Call::Alltoall => Some((0..size).flat_map(|of| block(of, rank)).collect()),
            Call::Allgather => Some((0..size).flat_map(|of| block(of, 0)).collect()),
            Call::Gather => (rank == ROOT).then(|| (0..size).flat_map(|of| block(of, 0)).collect()),
            Call::Scatter => Some(block(0, rank).collect()),
            _ => None,
        }
    }

    /// Makes each call twice, the second time with the schedule of the first. Returns those with a wrong
    /// result: no rank leaves while others wait for it.
    fn wrong_calls(comm: &Comm) -> Vec<String> {
        let (rank, size) = (comm.rank(), comm.size() as u32);
        let mut wrong = Vec::new();
        for (call, len) in CALLS.into_iter().flat_map(|call| OCTETS.map(|len| (call, len))) {
            for _ in 0..2 {
                let mut calls = CollectiveCalls::new(call, len as u64, comm).expect("a call");
                calls.from = octets(sent(rank, calls.from.len() / DOUBLE));
                calls.run(comm, 1).expect("a result");
                let got = if call == Call::Bcast { &calls.from } else { &calls.to };
                let expected = octets(result(call, rank, size, len / DOUBLE).into_iter().flatten());
                if got[..expected.len()] != expected {
                    wrong.push(format!("{call:?} of {len} at {rank} of {size}"));
                }
            }
        }
        wrong
    }

    /// Runs a job, and returns what each rank has found.
    fn run<T: Send>(ranks: Vec<Comm>, each: impl Fn(&Comm) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let run_one = |comm: Comm| {
                let each = &each;
                scope.spawn(move || {
                    let found = each(&comm);
                    comm.finish(&mut Uninterruptible).expect("the end");
                    found
                })
            };
            let ranks: Vec<_> = ranks.into_iter().map(run_one).collect();
            ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
        })
    }

    fn local(ranks: usize) -> Vec<Comm> {
        let source: Arc<dyn SlabSource> = HeapPool::new(1 << 30);
        job::local(ranks, Config::default(), &source)
    }

    #[test]
    fn each_call_has_its_result_at_each_rank() {
        for size in [1, 2, 5] {
            let ranks = mpjdev_testing::shm(size, Config::default(), 256 << 20, &HeapPool::new(1 << 30));
            assert_eq!(run(ranks, wrong_calls).concat(), [""; 0], "over shared memory");
        }
        assert_eq!(run(local(3), wrong_calls).concat(), [""; 0], "of one process");
    }

    #[test]
    fn second_result_is_the_median_of_the_calls_times_their_number() {
        run(local(2), |comm| {
            let mut calls = CollectiveCalls::new(Call::Allreduce, 1 << 20, comm).expect("a call");
            let result = calls.run(comm, 3).expect("times");
            // Two of the three calls take the median at least.
            let two = result.extra * 2.0 / 3.0;
            assert!(two > 0.0 && result.nanos.is_some_and(|nanos| two <= nanos), "{result:?}");
        });
    }

    #[test]
    fn calls_are_those_of_one_kind_and_size() {
        run(local(1), |comm| {
            let calls = CollectiveCalls::new(Call::Allreduce, 64, comm).expect("a call");
            assert!(calls.are(Call::Allreduce, 64) && !calls.are(Call::Allreduce, 8));
            assert!(!calls.are(Call::Reduce, 64));
        });
    }

    #[test]
    fn calls_of_java_alone_are_refused() {
        run(local(1), |comm| {
            let refused = CollectiveCalls::new(Call::AllreduceUser, 8, comm).expect_err("a class in Java");
            assert_eq!(refused.to_string(), "mpi-allreduce-user is measured in Java");
        });
    }
}
