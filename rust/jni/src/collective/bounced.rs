//! Calls of all ranks with short blocks: the bodies of the native methods whose elements are in the bounce
//! buffer of the calling thread.
//!
//! Vectors for all ranks pass through slots, if all ranks have some. Blocks to a root and from it are
//! messages that need no message memory. Any other call runs as one with an array.

use std::sync::Arc;

use mpjdev_engine::Comm;
use mpjdev_engine::collective::{VECTOR_MAX, Vectors};
use mpjdev_reduction::{Element, Operator};
use mpjdev_schedule::{Call, Operation, UniformCall, combine_vectors};

use crate::array::Array;
use crate::boundary::Env;
use crate::comm::Answer;
use crate::error::Fault;
use crate::handle;

use super::blocks::Blocks;
use super::program::{Plan, run};
use super::{
    ALLGATHER, ALLREDUCE, ALLTOALL, Arguments, Counts, GATHER, REDUCE, REDUCE_SCATTER, SCAN, SCATTER,
    checked_root, choices,
};

/// Octets of a vector for which a smaller place is prepared.
const ONE_LINE: usize = 64;

/// A vector, in a place whose words can be copied one by one.
#[repr(align(64))]
struct Place<const N: usize>([u8; N]);

/// Replaces the elements of the ranks that get a result by the combination of those of all, or of those up to
/// this rank. A result that is scattered replaces the first ones: there is a block for each rank.
pub(crate) fn reduce(
    env: &mut Env,
    comm: i64,
    how: i32,
    root: i32,
    op: i32,
    mut elements: Array,
) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let octets = elements.len() * elements.element().size();
        let is_done = match operator_of(op, &elements) {
            None => false,
            Some(_) if octets > VECTOR_MAX => false,
            Some(operator) if how != ALLREDUCE && how != REDUCE_SCATTER => {
                combine_messages(env, comm, (how, root), operator, &mut elements)?
            }
            Some(operator) if octets <= ONE_LINE => {
                reduce_vectors::<ONE_LINE>(env, comm, how, operator, &elements)?
            }
            Some(operator) => reduce_vectors::<VECTOR_MAX>(env, comm, how, operator, &elements)?,
        };
        match is_done {
            true => Ok(()),
            false => reduce_messages(env, comm, (how, root), op, &elements),
        }
    })
}

/// Reduces vectors to a root, or up to each rank. False, and nothing has happened, if that needs a schedule.
fn combine_messages(
    env: &mut Env,
    comm: &Comm,
    (how, root): (i32, i32),
    (operator, element): (Operator, Element),
    elements: &mut Array,
) -> Answer<bool> {
    let operation = operation(operator, element);
    let call = match how {
        REDUCE => Call::Reduce { root: checked_root(comm, root)?, operation },
        SCAN => Call::Scan,
        _ => return Ok(false),
    };
    let (count, base) = (elements.len(), elements.element());
    let call = UniformCall { call, count, element_len: base.size() };
    let vector = (base, elements.bounced_octets());
    let mut combine = |right: &[u8], left: &mut [u8]| {
        mpjdev_reduction::combine(operator, element, right, left, false);
    };
    Ok(comm.combine_short(&call, &choices(comm)?, vector, &mut || env.may_wait(), &mut combine)?)
}

fn operation(operator: Operator, element: Element) -> Operation {
    let (unit, is_exact) = (operator.unit(), element.is_exact());
    Operation { unit, is_commutative: true, is_exact, is_divisible: true }
}

/// The datatype of the elements.
fn datatype(elements: &Array) -> i64 {
    -1 - i64::from(elements.element().code())
}

/// The operation of this code on these elements, if it applies to them.
fn operator_of(op: i32, elements: &Array) -> Option<(Operator, Element)> {
    let element = Element::from_code(elements.element().code())?;
    let operator = Operator::from_code(op)?;
    let applies = operator.check(element).is_ok() && elements.len().is_multiple_of(operator.unit());
    applies.then_some((operator, element))
}

/// Out of line, so that an exchange in slots stays short.
#[inline(never)]
fn reduce_messages(
    env: &mut Env,
    comm: &Arc<Comm>,
    (how, root): (i32, i32),
    op: i32,
    elements: &Array,
) -> Answer<()> {
    let arguments = Arguments {
        how,
        root,
        datatype: datatype(elements),
        from: elements,
        from_off: 0,
        to: elements,
        to_off: 0,
        count: elements.len() as i32,
        counts: Counts::Equal,
    };
    super::reduce(env, comm, op, &arguments)
}

/// Reduces vectors in slots. False, and nothing has happened, if they have to be messages.
fn reduce_vectors<const N: usize>(
    env: &mut Env,
    comm: &Comm,
    how: i32,
    (operator, element): (Operator, Element),
    elements: &Array,
) -> Answer<bool> {
    let (operation, size) = (operation(operator, element), comm.size());
    let (call, count) = match how == REDUCE_SCATTER {
        true => (Call::ReduceScatter { operation }, block_len(elements, size)?),
        false => (Call::Allreduce { operation }, elements.len()),
    };
    if !count.is_multiple_of(operator.unit()) {
        return Ok(false);
    }
    let call = UniformCall { call, count, element_len: elements.element().size() };
    let len = count * call.element_len;
    let skip = if how == REDUCE_SCATTER { comm.rank() as usize * len } else { 0 };
    exchange::<N>(env, comm, &call, elements, elements.len(), &mut |vectors| {
        let mut result = Place([0; N]);
        let result = &mut result.0[..len];
        combine_vectors::<N>(
            size as u32,
            result,
            &mut |rank, into| vectors.copy(rank, skip, into),
            &mut |right, left| mpjdev_reduction::combine(operator, element, right, left, false),
        );
        elements.put_bounced(0, result);
    })
}

/// Moves equal blocks between all ranks, as `how` says. There is room for a block of each rank. This rank
/// sends the first one to all, or each to its rank, and gets one of each rank.
pub(crate) fn move_blocks(env: &mut Env, comm: i64, how: i32, elements: Array) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let (size, all) = (comm.size(), elements.len());
        let call = match how {
            ALLGATHER => Call::Allgather,
            ALLTOALL => Call::Alltoall,
            _ => return Err(Fault::Unusable { what: "call", why: "it has no such code" }.into()),
        };
        let count = block_len(&elements, size)?;
        let call = UniformCall { call, count, element_len: elements.element().size() };
        let sent = if how == ALLGATHER { call.count } else { all };
        let octets = sent * call.element_len;
        let is_done = if octets <= ONE_LINE {
            move_vectors::<ONE_LINE>(env, comm, &call, sent, &elements)?
        } else {
            octets <= VECTOR_MAX && move_vectors::<VECTOR_MAX>(env, comm, &call, sent, &elements)?
        };
        match is_done {
            true => Ok(()),
            false => move_messages(env, comm, call, &elements),
        }
    })
}

/// As [`reduce_messages`].
#[inline(never)]
fn move_messages(env: &mut Env, comm: &Arc<Comm>, call: UniformCall, elements: &Array) -> Answer<()> {
    let (datatype, count, size) = (datatype(elements), call.count as i32, comm.size());
    let (name, sent) = match call.call {
        Call::Allgather => ("an allgather", Blocks::one(datatype, elements, 0, count)?),
        _ => ("an alltoall", Blocks::equal(datatype, elements, 0, count, size)?),
    };
    let received = Blocks::equal(datatype, elements, 0, count, size)?;
    let plan = Plan::Uniform(call, choices(comm)?);
    run(env, comm, (name, plan), (&sent, &received), elements.element(), None)
}

/// As [`reduce_vectors`].
fn move_vectors<const N: usize>(
    env: &mut Env,
    comm: &Comm,
    call: &UniformCall,
    sent: usize,
    elements: &Array,
) -> Answer<bool> {
    let len = call.count * call.element_len;
    let skip = if call.call == Call::Alltoall { comm.rank() as usize * len } else { 0 };
    let ranks = comm.size() as u32;
    exchange::<N>(env, comm, call, elements, sent, &mut |vectors| {
        let mut block = Place([0; N]);
        let block = &mut block.0[..len];
        for rank in 0..ranks {
            vectors.copy(rank, skip, block);
            elements.put_bounced(rank as usize * call.count, block);
        }
    })
}

/// Sends the elements of the root to all, which replace those of the other ranks.
pub(crate) fn bcast(env: &mut Env, comm: i64, mut elements: Array, root: i32) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let call = Call::Bcast { root: checked_root(comm, root)? };
        let count = elements.len();
        let call = UniformCall { call, count, element_len: elements.element().size() };
        if move_rooted(env, comm, &call, &mut elements)? {
            return Ok(());
        }
        let items = Blocks::one(datatype(&elements), &elements, 0, count as i32)?;
        let plan = Plan::Uniform(call, choices(comm)?);
        run(env, comm, ("a broadcast", plan), (&items, &items), elements.element(), None)
    })
}

/// Moves equal blocks to the root or from it, as `how` says. The root has a block of each rank, its own among
/// them, and the other ranks have their own one.
pub(crate) fn move_at_root(env: &mut Env, comm: i64, how: i32, root: i32, mut elements: Array) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        let root = checked_root(comm, root)?;
        let blocks = if root == comm.rank() { comm.size() } else { 1 };
        let call = match how {
            GATHER => Call::Gather { root },
            SCATTER => Call::Scatter { root },
            _ => return Err(Fault::Unusable { what: "call", why: "it has no such code" }.into()),
        };
        let count = block_len(&elements, blocks)?;
        let call = UniformCall { call, count, element_len: elements.element().size() };
        match move_rooted(env, comm, &call, &mut elements)? {
            true => Ok(()),
            false => move_blocks_at_root(env, comm, call, root, &elements),
        }
    })
}

/// Moves the elements without an area. False, and nothing has happened, if that is not possible.
fn move_rooted(env: &mut Env, comm: &Comm, call: &UniformCall, elements: &mut Array) -> Answer<bool> {
    let element = elements.element();
    let vector = (element, elements.bounced_octets());
    Ok(comm.run_rooted(call, &choices(comm)?, vector, &mut || env.may_wait())?)
}

/// As [`reduce_messages`].
#[inline(never)]
fn move_blocks_at_root(
    env: &mut Env,
    comm: &Arc<Comm>,
    call: UniformCall,
    root: u32,
    elements: &Array,
) -> Answer<()> {
    let (datatype, count, is_root) = (datatype(elements), call.count, root == comm.rank());
    let all = match is_root {
        true => Blocks::equal(datatype, elements, 0, count as i32, comm.size())?,
        false => Blocks::none(elements),
    };
    let at = if is_root { root as usize * count } else { 0 };
    let own = Blocks::one(datatype, elements, at as i32, count as i32)?;
    let (name, sent, received) = match call.call {
        Call::Gather { .. } => ("a gather", &own, &all),
        _ => ("a scatter", &all, &own),
    };
    let plan = Plan::Uniform(call, choices(comm)?);
    run(env, comm, (name, plan), (sent, received), elements.element(), None)
}

/// The elements of one of these blocks.
fn block_len(elements: &Array, blocks: usize) -> Answer<usize> {
    if !elements.len().is_multiple_of(blocks) {
        let why = "its elements are not a block of each rank";
        return Err(Fault::Unusable { what: "bounce buffer", why }.into());
    }
    Ok(elements.len() / blocks)
}

/// Publishes the first `sent` elements, and passes the vectors of all ranks to `read`. False, and nothing has
/// happened, if they have to be messages.
fn exchange<const N: usize>(
    env: &mut Env,
    comm: &Comm,
    call: &UniformCall,
    elements: &Array,
    sent: usize,
    read: &mut dyn FnMut(&Vectors<'_>),
) -> Answer<bool> {
    let mut own = Place([0; N]);
    let own = &mut own.0[..sent * call.element_len];
    elements.take_bounced(own);
    let vector = (elements.element(), &*own);
    Ok(comm.exchange_vectors(call, &choices(comm)?, vector, &mut || env.may_wait(), read)?)
}
