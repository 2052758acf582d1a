//! Collective operations with data: the bodies of the native methods that move blocks between all ranks, and
//! that reduce vectors.
//!
//! The elements of all blocks are packed into memory of the call first, and stored when the operation is
//! complete. So the arrays may be the same, and a failed call leaves them as they were.
#![allow(clippy::too_many_arguments, reason = "a body has the arguments of its Java method")]

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use mpjdev_buffer::{Octets, Type};
use mpjdev_engine::collective::{Area, Reduction};
use mpjdev_engine::scratch::Scratch;
use mpjdev_engine::{Comm, DeviceError};
use mpjdev_reduction::{Element, Operator};
use mpjdev_schedule::{
    ChoiceError, Choices, Group, Operation, Run, Schedule, allgather, allgatherv, allreduce, alltoall,
    alltoallv, bcast, gather, gatherv, reduce, reduce_scatter, scan, scatter, scatterv,
};

use crate::array::{Array, IntArray};
use crate::boundary::{Combiner, Env};
use crate::comm::Answer;
use crate::direct::typed::{Placed, place};
use crate::error::{Fault, reserved};
use crate::handle;
use crate::types;

// ---- Codes of the calls

/// Codes of the calls that move blocks.
const GATHER: i32 = 0;
const GATHERV: i32 = 1;
const SCATTER: i32 = 2;
const SCATTERV: i32 = 3;
const ALLGATHER: i32 = 4;
const ALLGATHERV: i32 = 5;
const ALLTOALL: i32 = 6;
const ALLTOALLV: i32 = 7;

/// Codes of the calls that reduce vectors.
const REDUCE: i32 = 0;
const ALLREDUCE: i32 = 1;
const REDUCE_SCATTER: i32 = 2;
const SCAN: i32 = 3;

/// The constants that Java has as well.
pub(crate) const CONSTANTS: [(&str, i64); 12] = [
    ("GATHER", GATHER as i64),
    ("GATHERV", GATHERV as i64),
    ("SCATTER", SCATTER as i64),
    ("SCATTERV", SCATTERV as i64),
    ("ALLGATHER", ALLGATHER as i64),
    ("ALLGATHERV", ALLGATHERV as i64),
    ("ALLTOALL", ALLTOALL as i64),
    ("ALLTOALLV", ALLTOALLV as i64),
    ("REDUCE", REDUCE as i64),
    ("ALLREDUCE", ALLREDUCE as i64),
    ("REDUCE_SCATTER", REDUCE_SCATTER as i64),
    ("SCAN", SCAN as i64),
];

/// The blocks of an array that a call sends or receives.
struct Blocks<'a> {
    array: &'a Array,
    placed: Vec<Placed>,
    /// Items of the first block.
    items: i32,
}

impl<'a> Blocks<'a> {
    fn none(array: &'a Array) -> Blocks<'a> {
        Blocks { array, placed: Vec::new(), items: 0 }
    }

    fn one(datatype: i64, array: &'a Array, off: i32, count: i32) -> Answer<Blocks<'a>> {
        Ok(Blocks { array, placed: vec![place(datatype, array, off, count)?], items: count })
    }

    /// `number` blocks of one length behind each other.
    fn equal(datatype: i64, array: &'a Array, off: i32, count: i32, number: usize) -> Answer<Blocks<'a>> {
        let extent = types::with(datatype, |datatype| Ok(i64::from(datatype.extent())))?;
        let mut placed = reserved(number)?;
        for at in 0..number as i64 {
            let off = i64::from(off) + at * extent * i64::from(count);
            placed.push(place(datatype, array, within(off)?, count)?);
        }
        Ok(Blocks { array, placed, items: count })
    }

    /// A block for each offset and count.
    fn each(datatype: i64, array: &'a Array, blocks: &[i32]) -> Answer<Blocks<'a>> {
        let mut placed = reserved(blocks.len() / 2)?;
        for block in blocks.chunks_exact(2) {
            placed.push(place(datatype, array, block[0], block[1])?);
        }
        Ok(Blocks { array, placed, items: blocks.get(1).copied().unwrap_or(0) })
    }

    /// The elements of each block.
    fn counts(&self) -> Vec<usize> {
        self.placed.iter().map(Placed::count).collect()
    }

    /// The elements of the first block; 0 without one.
    fn first(&self) -> usize {
        self.placed.first().map_or(0, Placed::count)
    }

    /// Copies the elements of the blocks to these runs.
    fn pack(&self, env: &mut Env, scratch: &Scratch, runs: &[Run]) -> Answer<()> {
        for (placed, run) in self.placed.iter().zip(runs) {
            placed.part(self.array).put(env, octets(scratch, *run, self.array.element()))?;
        }
        Ok(())
    }

    /// Stores octets in the only block, by way of `copy`; false if Java has no memory.
    fn set(&self, env: &mut Env, copy: &mut Scratch, octets: &[u8]) -> bool {
        copy.octets()[..octets.len()].copy_from_slice(octets);
        self.unpack(env, copy, &[self.whole()]).is_ok()
    }

    /// Copies the elements of the only block to octets, by way of `copy`; false if Java has no memory.
    fn get(&self, env: &mut Env, copy: &mut Scratch, octets: &mut [u8]) -> bool {
        let is_packed = self.pack(env, copy, &[self.whole()]).is_ok();
        octets.copy_from_slice(&copy.octets()[..octets.len()]);
        is_packed
    }

    /// The run of all elements of the only block.
    fn whole(&self) -> Run {
        Run { start: 0, len: self.first() }
    }

    /// Stores these runs in the blocks.
    fn unpack(&self, env: &mut Env, scratch: &Scratch, runs: &[Run]) -> Answer<()> {
        for (placed, run) in self.placed.iter().zip(runs) {
            let place = octets(scratch, *run, self.array.element());
            placed.part(self.array).store(env, run.len, place, false)?;
        }
        Ok(())
    }
}

/// The octets of a run of elements.
fn octets(scratch: &Scratch, run: Run, element: Type) -> Octets<'_> {
    let size = element.size();
    Octets::new(scratch.words(), run.start * size, run.len * size)
}

/// An offset that a Java array can have. The datatype checks the bounds.
fn within(off: i64) -> Answer<i32> {
    i32::try_from(off).map_err(|_| Fault::Unusable { what: "block", why: "it lies outside any array" }.into())
}

/// Combines two vectors of octets, as [`Combine`](mpjdev_engine::collective::Combine), perhaps in Java.
type CombineIn<'a> = dyn FnMut(&mut Env, &[u8], &mut [u8], bool) -> bool + 'a;

/// Runs a schedule between the packing of what is sent and the storing of what is received. `combine` is the
/// operation of a reduction.
fn run(
    env: &mut Env,
    comm: &Arc<Comm>,
    name: &'static str,
    schedule: &Schedule,
    sent: &Blocks<'_>,
    received: &Blocks<'_>,
    element: Type,
    is_divisible: bool,
    combine: &mut CombineIn<'_>,
) -> Answer<()> {
    let mut scratch = scratch(schedule.len * element.size())?;
    sent.pack(env, &scratch, &schedule.input)?;
    let mut area = Area { memory: &mut scratch, element };
    // A combination and a wait never run at the same time.
    let shared = RefCell::new(&mut *env);
    let mut combine =
        |from: &[u8], into: &mut [u8], is_lower| combine(&mut shared.borrow_mut(), from, into, is_lower);
    let mut reduction = Reduction { combine: &mut combine, is_divisible };
    comm.run_schedule(name, schedule, &mut area, &mut reduction, &mut || shared.borrow_mut().may_wait())?;
    received.unpack(env, &scratch, &schedule.output)
}

fn scratch(len: usize) -> Answer<Scratch> {
    Scratch::zeroed(len).ok_or_else(|| Fault::Memory { asked: len as u64 }.into())
}

/// The algorithms that the environment names.
fn choices() -> Answer<&'static Choices> {
    static CHOICES: OnceLock<Result<Choices, ChoiceError>> = OnceLock::new();
    let choices = CHOICES.get_or_init(|| Choices::from_variables(|name| std::env::var(name).ok()));
    choices.as_ref().map_err(|error| Fault::Choice(error.clone()).into())
}

fn group(comm: &Comm) -> Group {
    Group { rank: comm.rank(), size: comm.size() as u32 }
}

/// A root that is a rank of the communicator.
fn checked_root(comm: &Comm, root: i32) -> Answer<u32> {
    let size = comm.size();
    match usize::try_from(root) {
        Ok(rank) if rank < size => Ok(root as u32),
        _ => Err(DeviceError::BadRank { rank: root, size }.into()),
    }
}

pub(crate) fn bcast_items(
    env: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    root: i32,
) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let (root, choices) = (checked_root(comm, root)?, choices()?);
        let items = Blocks::one(datatype, &array, off, count)?;
        let element = array.element();
        let schedule = bcast(group(comm), root, items.first(), element.size(), choices);
        run(env, comm, "a broadcast", &schedule, &items, &items, element, true, &mut |_, _, _, _| true)
    })
}

/// The blocks on one side of a call: `{offset, count}` of one or of equal ones, or of each.
fn side<'a>(
    env: &mut Env,
    datatype: i64,
    array: &'a Array,
    blocks: &IntArray,
    number: Number,
) -> Answer<Blocks<'a>> {
    let numbers = blocks.capture(env, 0, blocks.len())?;
    let wanted = match number {
        Number::None => return Ok(Blocks::none(array)),
        Number::One | Number::Equal(_) => 2,
        Number::Each(size) => 2 * size,
    };
    if numbers.len() != wanted {
        let why = "it has not an offset and a count for each rank";
        return Err(Fault::Unusable { what: "array of blocks", why }.into());
    }
    match number {
        Number::None => Ok(Blocks::none(array)),
        Number::One => Blocks::one(datatype, array, numbers[0], numbers[1]),
        Number::Equal(size) => Blocks::equal(datatype, array, numbers[0], numbers[1], size),
        Number::Each(_) => Blocks::each(datatype, array, &numbers),
    }
}

/// The blocks on one side of a call.
#[derive(Clone, Copy)]
enum Number {
    None,
    One,
    Equal(usize),
    Each(usize),
}

pub(crate) fn move_blocks(
    env: &mut Env,
    comm: i64,
    how: i32,
    root: i32,
    send_type: i64,
    from: Array,
    send_blocks: IntArray,
    recv_type: i64,
    to: Array,
    recv_blocks: IntArray,
) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let group = group(comm);
        let size = group.size as usize;
        let has_root = matches!(how, GATHER | GATHERV | SCATTER | SCATTERV);
        let root = if has_root { checked_root(comm, root)? } else { 0 };
        let is_root = root == group.rank;
        let at_root = |number| if is_root { number } else { Number::None };
        let (sends, receives) = match how {
            GATHER => (Number::One, at_root(Number::Equal(size))),
            GATHERV => (Number::One, at_root(Number::Each(size))),
            SCATTER => (at_root(Number::Equal(size)), Number::One),
            SCATTERV => (at_root(Number::Each(size)), Number::One),
            ALLGATHER => (Number::One, Number::Equal(size)),
            ALLGATHERV => (Number::One, Number::Each(size)),
            ALLTOALL => (Number::Equal(size), Number::Equal(size)),
            ALLTOALLV => (Number::Each(size), Number::Each(size)),
            _ => return Err(Fault::Unusable { what: "call", why: "it has no such code" }.into()),
        };
        let sent = side(env, send_type, &from, &send_blocks, sends)?;
        let received = side(env, recv_type, &to, &recv_blocks, receives)?;
        let element = match (sends, receives) {
            (Number::None, _) => to.element(),
            (_, Number::None) => from.element(),
            _ if from.element() == to.element() => from.element(),
            _ => {
                let why = "its elements are not of the type of the other array";
                return Err(Fault::Unusable { what: "array", why }.into());
            }
        };
        let (octets, choices) = (element.size(), choices()?);
        let (own, theirs) = (sent.counts(), received.counts());
        check_own(how, group.rank as usize, root as usize, &own, &theirs)?;
        let (name, schedule) = match how {
            GATHER => ("a gather", gather(group, root, sent.first(), octets, choices)),
            GATHERV => ("a gather", gatherv(group, root, sent.first(), &theirs)),
            SCATTER => ("a scatter", scatter(group, root, received.first(), octets, choices)),
            SCATTERV => ("a scatter", scatterv(group, root, received.first(), &own)),
            ALLGATHER => ("an allgather", allgather(group, received.first(), octets, choices)),
            ALLGATHERV => ("an allgather", allgatherv(group, &theirs, octets, choices)),
            ALLTOALL => ("an alltoall", alltoall(group, received.first(), octets, choices)),
            _ => ("an alltoall", alltoallv(group, &own, &theirs, octets, choices)),
        };
        run(env, comm, name, &schedule, &sent, &received, element, true, &mut |_, _, _, _| true)
    })
}

/// Checks that the block of this rank for itself is as long on either side.
fn check_own(how: i32, rank: usize, root: usize, sent: &[usize], received: &[usize]) -> Answer<()> {
    let (from, into) = match how {
        GATHER | GATHERV if rank == root => (0, rank),
        SCATTER | SCATTERV if rank == root => (rank, 0),
        ALLGATHER | ALLGATHERV => (0, rank),
        ALLTOALL | ALLTOALLV => (rank, rank),
        _ => return Ok(()),
    };
    let (needed, capacity) = (sent[from], received[into]);
    if needed == capacity {
        return Ok(());
    }
    let (source_rank, tag) = (rank as u32, 0);
    Err(DeviceError::Truncated { needed, capacity, source_rank, tag }.into())
}

/// The operator of this code.
fn operator(op: i32) -> Answer<Operator> {
    let operator = Operator::from_code(op);
    operator.ok_or_else(|| Fault::Unusable { what: "operation", why: "it has no such code" }.into())
}

fn element_of(array: &Array) -> Answer<Element> {
    let element = Element::from_code(array.element().code());
    element.ok_or_else(|| Fault::Unusable { what: "operation", why: "it cannot combine objects" }.into())
}

/// The arguments that all reductions have.
struct Arguments<'a> {
    how: i32,
    root: i32,
    datatype: i64,
    from: &'a Array,
    from_off: i32,
    to: &'a Array,
    to_off: i32,
    count: i32,
    counts: &'a IntArray,
}

/// A checked reduction.
struct Prepared<'a> {
    name: &'static str,
    schedule: Schedule,
    sent: Blocks<'a>,
    received: Blocks<'a>,
}

impl<'a> Arguments<'a> {
    /// Checks the arguments and makes the schedule of this rank.
    fn prepare(&self, env: &mut Env, comm: &Comm, operation: Operation) -> Answer<Prepared<'a>> {
        let &Arguments { how, datatype, .. } = self;
        let group = group(comm);
        let root = if how == REDUCE { checked_root(comm, self.root)? } else { 0 };
        let counts = self.counts.capture(env, 0, self.counts.len())?;
        let (sent_count, received_count) = match how {
            REDUCE_SCATTER => parts(&counts, group)?,
            _ => (self.count, self.count),
        };
        let sent = Blocks::one(datatype, self.from, self.from_off, sent_count)?;
        let received = match how == REDUCE && root != group.rank {
            true => Blocks::none(self.to),
            false => Blocks::one(datatype, self.to, self.to_off, received_count)?,
        };
        let (elements, unit) = (sent.first(), operation.unit);
        let item = types::with(datatype, |datatype| Ok(datatype.size()))?;
        if !elements.is_multiple_of(unit) || (how == REDUCE_SCATTER && !item.is_multiple_of(unit)) {
            let why = "it combines pairs, and an item has an odd number of elements";
            return Err(Fault::Unusable { what: "operation", why }.into());
        }
        let (octets, choices) = (self.from.element().size(), choices()?);
        let (name, schedule) = match how {
            REDUCE => ("a reduction", reduce(group, root, elements, operation, octets, choices)),
            ALLREDUCE => ("a reduction", allreduce(group, elements, operation, octets, choices)),
            REDUCE_SCATTER => {
                let own: Vec<usize> = counts.iter().map(|count| *count as usize * item).collect();
                ("a reduction", reduce_scatter(group, &own, operation, octets, choices))
            }
            SCAN => ("a scan", scan(group, elements)),
            _ => return Err(Fault::Unusable { what: "call", why: "it has no such code" }.into()),
        };
        Ok(Prepared { name, schedule, sent, received })
    }
}

/// Reduces vectors by a predefined operation.
pub(crate) fn reduce_items(
    env: &mut Env,
    comm: i64,
    how: i32,
    root: i32,
    op: i32,
    datatype: i64,
    from: Array,
    from_off: i32,
    to: Array,
    to_off: i32,
    count: i32,
    counts: IntArray,
) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let (operator, element) = (operator(op)?, element_of(&from)?);
        operator.check(element).map_err(Fault::Operation)?;
        let operation = Operation { unit: operator.unit(), is_commutative: true, is_divisible: true };
        let arguments =
            Arguments { how, root, datatype, from: &from, from_off, to: &to, to_off, count, counts: &counts };
        let Prepared { name, schedule, sent, received } = arguments.prepare(env, comm, operation)?;
        run(
            env,
            comm,
            name,
            &schedule,
            &sent,
            &received,
            from.element(),
            true,
            &mut |_, from, into, is_lower| {
                mpjdev_reduction::combine(operator, element, from, into, is_lower);
                true
            },
        )
    })
}

/// Reduces vectors by a function in Java, which combines the items in two arrays of its own, the first ones
/// at element `base`. It puts the result into the second array, whose operand is that of the higher ranks.
pub(crate) fn reduce_with(
    env: &mut Env,
    comm: i64,
    how: i32,
    root: i32,
    commutative: bool,
    datatype: i64,
    from: Array,
    from_off: i32,
    to: Array,
    to_off: i32,
    count: i32,
    counts: IntArray,
    mut combiner: Combiner,
    low: Array,
    high: Array,
    base: i32,
) -> Answer<()> {
    // The function may use the thread's own communicator meanwhile.
    let comm = handle::comm(comm)?;
    let operation = Operation { unit: 1, is_commutative: commutative, is_divisible: false };
    let arguments =
        Arguments { how, root, datatype, from: &from, from_off, to: &to, to_off, count, counts: &counts };
    let Prepared { name, schedule, sent, received } = arguments.prepare(env, &comm, operation)?;
    let items = sent.items;
    let low = Blocks::one(datatype, &low, base, items)?;
    let high = Blocks::one(datatype, &high, base, items)?;
    let len = sent.first() * from.element().size();
    let mut copy = scratch(len)?;
    let mut combine = |env: &mut Env, from: &[u8], into: &mut [u8], is_lower: bool| {
        let (lower, higher) = if is_lower { (from, &*into) } else { (&*into, from) };
        low.set(env, &mut copy, lower)
            && high.set(env, &mut copy, higher)
            && env.combine(&mut combiner)
            && high.get(env, &mut copy, into)
    };
    let ended = run(env, &comm, name, &schedule, &sent, &received, from.element(), false, &mut combine);
    env.adopt_exception(&combiner);
    ended
}

/// The items that all ranks send in a reduction whose result is scattered, and those of this rank.
fn parts(counts: &[i32], group: Group) -> Answer<(i32, i32)> {
    let refused = |why| Fault::Unusable { what: "array of counts", why };
    if counts.len() != group.size as usize {
        return Err(refused("it has not a count for each rank").into());
    }
    let sum = counts.iter().try_fold(0_i32, |sum, count| {
        let count = Some(*count).filter(|count| *count >= 0)?;
        sum.checked_add(count)
    });
    let sum = sum.ok_or_else(|| refused("a count is negative, or their sum is too large"))?;
    Ok((sum, counts[group.rank as usize]))
}
