//! Groups and topologies: the bodies of the native methods that compute with ranks.

use mpjdev_group::cart::Cart;
use mpjdev_group::group::{self, Comparison};
use mpjdev_group::{TopologyError, dims, graph};

use crate::array::IntArray;
use crate::boundary::Env;
use crate::comm::Answer;
use crate::error::Fault;
use crate::handle;

/// Codes of the combinations of two lists.
const UNION: i32 = 0;
const INTERSECTION: i32 = 1;
const DIFFERENCE: i32 = 2;
const INCLUSION: i32 = 3;
const EXCLUSION: i32 = 4;

/// The constants that Java has as well.
pub(crate) const CONSTANTS: [(&str, i64); 5] = [
    ("UNION", UNION as i64),
    ("INTERSECTION", INTERSECTION as i64),
    ("DIFFERENCE", DIFFERENCE as i64),
    ("INCLUSION", INCLUSION as i64),
    ("EXCLUSION", EXCLUSION as i64),
];

/// A copy of an array.
fn all(env: &mut Env, array: &IntArray) -> Answer<Vec<i32>> {
    array.capture(env, 0, array.len())
}

/// A copy of an array of truth values.
fn truths(env: &mut Env, array: &IntArray) -> Answer<Vec<bool>> {
    Ok(all(env, array)?.into_iter().map(|value| value != 0).collect())
}

/// Two ranks in one number.
fn pair((high, low): (i32, i32)) -> i64 {
    i64::from(high) << 32 | i64::from(low as u32)
}

/// Stores members and returns their number.
fn store(env: &mut Env, members: &[i32], out: &IntArray) -> Answer<i32> {
    out.put(env, members);
    Ok(members.len() as i32)
}

/// Combines two groups, or a group and ranks of it.
pub(crate) fn combine(env: &mut Env, how: i32, a: IntArray, b: IntArray, out: IntArray) -> Answer<i32> {
    let (a, b) = (all(env, &a)?, all(env, &b)?);
    let members = match how {
        UNION => group::union(&a, &b),
        INTERSECTION => group::intersection(&a, &b),
        DIFFERENCE => group::difference(&a, &b),
        INCLUSION => group::incl(&a, &b)?,
        EXCLUSION => group::excl(&a, &b)?,
        _ => return Err(Fault::Unusable { what: "group", why: "there is no such combination" }.into()),
    };
    store(env, &members, &out)
}

/// Includes or excludes the ranks of ranges, each of first rank, last rank and stride.
pub(crate) fn ranges(
    env: &mut Env,
    members: IntArray,
    ranges: IntArray,
    excluded: bool,
    out: IntArray,
) -> Answer<i32> {
    let (members, ranges) = (all(env, &members)?, all(env, &ranges)?);
    let (ranges, _) = ranges.as_chunks::<3>();
    let members =
        if excluded { group::range_excl(&members, ranges)? } else { group::range_incl(&members, ranges)? };
    store(env, &members, &out)
}

pub(crate) fn translate(
    env: &mut Env,
    a: IntArray,
    ranks: IntArray,
    b: IntArray,
    out: IntArray,
) -> Answer<()> {
    let (a, ranks, b) = (all(env, &a)?, all(env, &ranks)?, all(env, &b)?);
    out.put(env, &group::translate(&a, &ranks, &b)?);
    Ok(())
}

/// Returns 0 for the same members in the same order, 1 for another order, 2 for other members.
pub(crate) fn compare(env: &mut Env, a: IntArray, b: IntArray) -> Answer<i32> {
    Ok(match group::compare(&all(env, &a)?, &all(env, &b)?) {
        Comparison::Identical => 0,
        Comparison::Similar => 1,
        Comparison::Unequal => 2,
    })
}

fn numbers(worlds: &[u32]) -> Vec<i32> {
    worlds.iter().map(|&rank| rank as i32).collect()
}

/// Stores the world ranks of the members of a communicator.
pub(crate) fn members(env: &mut Env, comm: i64, out: IntArray) -> Answer<()> {
    let comm = handle::comm(comm)?;
    out.put(env, &numbers(comm.members()));
    Ok(())
}

/// Returns the number of ranks that messages go to.
pub(crate) fn peer_count(_: &mut Env, comm: i64) -> Answer<i32> {
    Ok(handle::comm(comm)?.peers().len() as i32)
}

/// Stores the world ranks of the ranks that messages go to.
pub(crate) fn peers(env: &mut Env, comm: i64, out: IntArray) -> Answer<()> {
    let comm = handle::comm(comm)?;
    out.put(env, &numbers(comm.peers()));
    Ok(())
}

/// Returns the largest tag of a message.
pub(crate) fn tag_max(_: &mut Env, comm: i64) -> Answer<i32> {
    Ok(handle::comm(comm)?.config().tag_ub)
}

/// Returns 0 for one communicator, 3 for the same members in the same order, 1 for another order, 2 for other
/// members. Of intercommunicators both groups count.
pub(crate) fn compare_comms(_: &mut Env, a: i64, b: i64) -> Answer<i32> {
    let (a, b) = (handle::comm(a)?, handle::comm(b)?);
    let local = group::compare(&numbers(a.members()), &numbers(b.members()));
    let remote = group::compare(&numbers(a.peers()), &numbers(b.peers()));
    Ok(match (local, remote) {
        _ if a.is_inter() != b.is_inter() => 2,
        (Comparison::Unequal, _) | (_, Comparison::Unequal) => 2,
        (Comparison::Similar, _) | (_, Comparison::Similar) => 1,
        (Comparison::Identical, Comparison::Identical) if a.context() == b.context() => 0,
        (Comparison::Identical, Comparison::Identical) => 3,
    })
}

/// Fills the extents that are 0.
pub(crate) fn dims_create(env: &mut Env, nodes: i32, extents: IntArray) -> Answer<()> {
    let mut dims = all(env, &extents)?;
    dims::create(nodes, &mut dims)?;
    extents.put(env, &dims);
    Ok(())
}

/// Uses a topology that was checked when its communicator was made.
fn with_cart<R>(
    env: &mut Env,
    dims: &IntArray,
    periods: &IntArray,
    f: impl FnOnce(&mut Env, Cart<'_>) -> Answer<R>,
) -> Answer<R> {
    let (dims, periods) = (all(env, dims)?, truths(env, periods)?);
    let cart = Cart::new(i32::MAX, &dims, &periods)?;
    f(env, cart)
}

/// Checks a topology on a communicator of `size` ranks; returns the number of its nodes.
pub(crate) fn cart_check(env: &mut Env, size: i32, dims: IntArray, periods: IntArray) -> Answer<i32> {
    with_cart(env, &dims, &periods, |_, cart| {
        let nodes = cart.nodes();
        if nodes > size {
            return Err(TopologyError::TooLarge { nodes: nodes.into(), size }.into());
        }
        Ok(nodes)
    })
}

pub(crate) fn cart_rank(env: &mut Env, dims: IntArray, periods: IntArray, coords: IntArray) -> Answer<i32> {
    let coordinates = all(env, &coords)?;
    with_cart(env, &dims, &periods, |_, cart| Ok(cart.rank(&coordinates)?))
}

pub(crate) fn cart_coords(
    env: &mut Env,
    dims: IntArray,
    periods: IntArray,
    rank: i32,
    out: IntArray,
) -> Answer<()> {
    with_cart(env, &dims, &periods, |env, cart| {
        out.put(env, &cart.coordinates(rank)?);
        Ok(())
    })
}

/// Returns the source and the destination of a shift.
pub(crate) fn cart_shift(
    env: &mut Env,
    dims: IntArray,
    periods: IntArray,
    rank: i32,
    direction: i32,
    disp: i32,
) -> Answer {
    with_cart(env, &dims, &periods, |_, cart| Ok(pair(cart.shift(rank, direction, disp)?)))
}

/// Returns color and key of the split into parts in which only some dimensions remain.
pub(crate) fn cart_part(
    env: &mut Env,
    dims: IntArray,
    periods: IntArray,
    rank: i32,
    remains: IntArray,
) -> Answer {
    let remains = truths(env, &remains)?;
    with_cart(env, &dims, &periods, |_, cart| Ok(pair(cart.part(rank, &remains)?)))
}

/// Checks a graph on a communicator of `size` ranks; returns the number of its nodes.
pub(crate) fn graph_check(env: &mut Env, size: i32, index: IntArray, edges: IntArray) -> Answer<i32> {
    Ok(graph::check(size, &all(env, &index)?, &all(env, &edges)?)?)
}
