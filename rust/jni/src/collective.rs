//! Collective operations with data: the bodies of the native methods that move blocks between all ranks, and
//! that reduce vectors.
//!
//! Elements go directly from an array to a message, and from a message to an array, unless a rank passes them
//! on or combines them. All input is captured before output is stored if the arrays are the same. A failed
//! call may have stored some blocks.
#![allow(clippy::too_many_arguments, reason = "a body has the arguments of its Java method")]

mod blocks;
pub(crate) mod bounced;
mod program;

use std::sync::{Arc, OnceLock};

use mpjdev_engine::scratch::Scratch;
use mpjdev_engine::{Comm, DeviceError};
use mpjdev_profile::Call as ProfiledCall;
use mpjdev_reduction::{Element, Operator};
use mpjdev_schedule::{
    Call, ChoiceError, Choices, Group, Operation, UniformCall, allgatherv, alltoallv, gatherv,
    reduce_scatter, scatterv,
};

use crate::array::{Array, IntArray};
use crate::boundary::{Combiner, Env};
use crate::comm::Answer;
use crate::error::Fault;
use crate::handle;
use crate::types;

use blocks::Blocks;
use program::{Plan, Reduction, run};

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

fn scratch(len: usize) -> Answer<Scratch> {
    Scratch::zeroed(len).ok_or_else(|| Fault::Memory { asked: len as u64 }.into())
}

/// The algorithms for the ranks of a communicator: those of the table, or those that the environment names.
fn choices(comm: &Comm) -> Answer<Choices<'_>> {
    static CHOICES: OnceLock<Result<Choices<'_>, ChoiceError>> = OnceLock::new();
    let choices = CHOICES.get_or_init(|| Choices::from_variables(|name| std::env::var(name).ok()));
    let choices = choices.as_ref().map_err(|error| Fault::Choice(error.clone()))?;
    Ok(choices.placed(comm.placement()))
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
        let (root, choices) = (checked_root(comm, root)?, choices(comm)?);
        let items = Blocks::one(datatype, &array, off, count)?;
        let element = array.element();
        let call =
            UniformCall { call: Call::Bcast { root }, count: items.first(), element_len: element.size() };
        run(env, comm, ("a broadcast", Plan::Uniform(call, choices)), (&items, &items), element, None)
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
        check_own(how, group.rank as usize, root as usize, &sent, &received)?;
        let (element_len, choices) = (element.size(), choices(comm)?);
        let uniform = |call, count| Plan::Uniform(UniformCall { call, count, element_len }, choices);
        let plan = match how {
            GATHER => uniform(Call::Gather { root }, sent.first()),
            GATHERV => Plan::Varying(gatherv(group, root, sent.first(), &received.counts())),
            SCATTER => uniform(Call::Scatter { root }, received.first()),
            SCATTERV => Plan::Varying(scatterv(group, root, received.first(), &sent.counts())),
            ALLGATHER => uniform(Call::Allgather, received.first()),
            ALLGATHERV => Plan::Varying(allgatherv(group, &received.counts(), element_len, &choices)),
            ALLTOALL => uniform(Call::Alltoall, received.first()),
            _ => {
                let (sent, received) = (sent.counts(), received.counts());
                Plan::Varying(alltoallv(group, &sent, &received, element_len, &choices))
            }
        };
        let name = match how {
            GATHER | GATHERV => "a gather",
            SCATTER | SCATTERV => "a scatter",
            ALLGATHER | ALLGATHERV => "an allgather",
            _ => "an alltoall",
        };
        run(env, comm, (name, plan), (&sent, &received), element, None)
    })
}

/// Checks that the block of this rank for itself is as long on either side.
fn check_own(how: i32, rank: usize, root: usize, sent: &Blocks<'_>, received: &Blocks<'_>) -> Answer<()> {
    let (from, into) = match how {
        GATHER | GATHERV if rank == root => (0, rank),
        SCATTER | SCATTERV if rank == root => (rank, 0),
        ALLGATHER | ALLGATHERV => (0, rank),
        ALLTOALL | ALLTOALLV => (rank, rank),
        _ => return Ok(()),
    };
    let (needed, capacity) = (sent.count(from), received.count(into));
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

/// The call of the profile that moves blocks.
pub(crate) fn call_of_blocks(how: i32) -> ProfiledCall {
    match how {
        GATHER | GATHERV => ProfiledCall::Gather,
        SCATTER | SCATTERV => ProfiledCall::Scatter,
        ALLGATHER | ALLGATHERV => ProfiledCall::Allgather,
        _ => ProfiledCall::Alltoall,
    }
}

/// The call of the profile that reduces.
pub(crate) fn call_of_reduction(how: i32) -> ProfiledCall {
    match how {
        REDUCE => ProfiledCall::Reduce,
        ALLREDUCE => ProfiledCall::Allreduce,
        REDUCE_SCATTER => ProfiledCall::ReduceScatter,
        _ => ProfiledCall::Scan,
    }
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
    /// The items of each rank's part, in a call that scatters the result.
    counts: Counts<'a>,
}

/// The items of each rank's part of a result.
#[derive(Clone, Copy)]
enum Counts<'a> {
    /// The same number for each rank, or a call that does not scatter its result.
    Equal,
    /// A number for each rank.
    Each(&'a IntArray),
}

/// A checked reduction.
struct Prepared<'a> {
    name: &'static str,
    plan: Plan<'a>,
    sent: Blocks<'a>,
    received: Blocks<'a>,
}

impl<'a> Arguments<'a> {
    /// Checks the arguments and plans the steps of this rank.
    fn prepare(&self, env: &mut Env, comm: &'a Comm, operation: Operation) -> Answer<Prepared<'a>> {
        let &Arguments { how, datatype, .. } = self;
        let group = group(comm);
        let root = if how == REDUCE { checked_root(comm, self.root)? } else { 0 };
        let counts = match self.counts {
            Counts::Each(counts) => counts.capture(env, 0, counts.len())?,
            Counts::Equal if how == REDUCE_SCATTER => {
                vec![self.count / group.size as i32; group.size as usize]
            }
            Counts::Equal => Vec::new(),
        };
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
        let is_odd = |count: &i32| !(*count as usize * item).is_multiple_of(unit);
        if !elements.is_multiple_of(unit) || counts.iter().any(is_odd) {
            let why = "it combines pairs, and the number of elements of a rank is odd";
            return Err(Fault::Unusable { what: "operation", why }.into());
        }
        let (element_len, choices) = (self.from.element().size(), choices(comm)?);
        let uniform_of = |call, count| Plan::Uniform(UniformCall { call, count, element_len }, choices);
        let uniform = |call| uniform_of(call, elements);
        let (name, plan) = match how {
            REDUCE => ("a reduction", uniform(Call::Reduce { root, operation })),
            ALLREDUCE => ("a reduction", uniform(Call::Allreduce { operation })),
            REDUCE_SCATTER if counts.iter().all(|count| *count == counts[0]) => {
                let count = counts[0] as usize * item;
                ("a reduction", uniform_of(Call::ReduceScatter { operation }, count))
            }
            REDUCE_SCATTER => {
                let own: Vec<usize> = counts.iter().map(|count| *count as usize * item).collect();
                let schedule = reduce_scatter(group, &own, operation, element_len, &choices);
                ("a reduction", Plan::Varying(schedule))
            }
            SCAN => ("a scan", uniform(Call::Scan)),
            _ => return Err(Fault::Unusable { what: "call", why: "it has no such code" }.into()),
        };
        Ok(Prepared { name, plan, sent, received })
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
        let counts = Counts::Each(&counts);
        let arguments =
            Arguments { how, root, datatype, from: &from, from_off, to: &to, to_off, count, counts };
        reduce(env, comm, op, &arguments)
    })
}

fn reduce(env: &mut Env, comm: &Arc<Comm>, op: i32, arguments: &Arguments<'_>) -> Answer<()> {
    let (operator, element) = (operator(op)?, element_of(arguments.from)?);
    operator.check(element).map_err(Fault::Operation)?;
    let (unit, is_exact) = (operator.unit(), element.is_exact());
    let operation = Operation { unit, is_commutative: true, is_exact, is_divisible: true };
    let Prepared { name, plan, sent, received } = arguments.prepare(env, comm, operation)?;
    let mut combine = |_: &mut Env, from: &[u8], into: &mut [u8], is_lower| {
        mpjdev_reduction::combine(operator, element, from, into, is_lower);
        true
    };
    let reduction = Reduction { combine: &mut combine, is_divisible: true };
    run(env, comm, (name, plan), (&sent, &received), arguments.from.element(), Some(reduction))
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
    let operation = Operation { unit: 1, is_commutative: commutative, is_exact: false, is_divisible: false };
    let counts = Counts::Each(&counts);
    let arguments = Arguments { how, root, datatype, from: &from, from_off, to: &to, to_off, count, counts };
    let Prepared { name, plan, sent, received } = arguments.prepare(env, &comm, operation)?;
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
    let reduction = Reduction { combine: &mut combine, is_divisible: false };
    let ended = run(env, &comm, (name, plan), (&sent, &received), from.element(), Some(reduction));
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
