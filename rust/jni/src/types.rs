//! Datatypes: the bodies of the native methods that make them and describe them.

use std::sync::OnceLock;

use mpjdev_buffer::Type;
use mpjdev_datatype::{Base, Datatype, DatatypeError, Items, Placement, Unit};

use crate::array::{Array, IntArray};
use crate::boundary::Env;
use crate::comm::Answer;
use crate::error::{Failure, Fault, reserved};
use crate::handle;

/// Codes of the basic types behind those of sections.
const PACKED: usize = 9;
const LOWER_MARK: usize = 10;
const UPPER_MARK: usize = 11;
/// Number of basic types.
const BASICS: usize = 12;
/// The base type of a type without elements.
const NO_BASE: i32 = -1;

/// The constants that Java has as well.
pub(crate) const CONSTANTS: [(&str, i64); 4] = [
    ("PACKED", PACKED as i64),
    ("LOWER_MARK", LOWER_MARK as i64),
    ("UPPER_MARK", UPPER_MARK as i64),
    ("NO_BASE", NO_BASE as i64),
];

/// Uses a datatype: `datatype` is its handle, or `-1 - code` of a basic one.
///
/// # Errors
/// A stale handle, no code.
pub(crate) fn with<R>(datatype: i64, f: impl FnOnce(&Datatype) -> Answer<R>) -> Answer<R> {
    if datatype < 0 { f(basic(datatype)?) } else { handle::with_datatype(datatype, f)? }
}

fn basic(datatype: i64) -> Answer<&'static Datatype> {
    static TYPES: [OnceLock<Datatype>; BASICS] = [const { OnceLock::new() }; BASICS];
    let code = (-1 - datatype) as usize;
    let Some(kept) = TYPES.get(code) else {
        return Err(Fault::Unusable { what: "datatype", why: "it is neither a handle nor a code" }.into());
    };
    Ok(kept.get_or_init(|| match code {
        LOWER_MARK => Datatype::lower_mark(),
        UPPER_MARK => Datatype::upper_mark(),
        code => Datatype::basic(Type::from_code(code as u8).map_or(Base::Packed, Base::Element)),
    }))
}

/// Keeps what a constructor makes of a type.
fn derive(old: i64, new: impl FnOnce(&Datatype) -> Result<Datatype, DatatypeError>) -> Answer {
    // A clone shares the elements; the constructor may take long, and must not hold the handle.
    let old = with(old, |old| Ok(old.clone()))?;
    handle::keep_datatype(new(&old)?)
}

pub(crate) fn contiguous(_: &mut Env, old: i64, count: i32) -> Answer {
    derive(old, |old| old.contiguous(count))
}

fn unit(elements: bool) -> Unit {
    if elements { Unit::Element } else { Unit::Extent }
}

pub(crate) fn vector(_: &mut Env, old: i64, count: i32, block: i32, stride: i32, elements: bool) -> Answer {
    derive(old, |old| old.vector(count, block, stride, unit(elements)))
}

pub(crate) fn indexed(
    env: &mut Env,
    old: i64,
    blocks: IntArray,
    displacements: IntArray,
    elements: bool,
) -> Answer {
    let blocks = blocks.capture(env, 0, blocks.len())?;
    let displacements = displacements.capture(env, 0, displacements.len())?;
    derive(old, |old| old.indexed(&blocks, &displacements, unit(elements)))
}

pub(crate) fn structure(env: &mut Env, blocks: IntArray, displacements: IntArray, types: Array) -> Answer {
    let blocks = blocks.capture(env, 0, blocks.len())?;
    let displacements = displacements.capture(env, 0, displacements.len())?;
    let mut handles = vec![0; types.len()];
    types.get_longs(env, &mut handles);
    let types = handles.iter().map(|&handle| with(handle, |datatype| Ok(datatype.clone())));
    let types: Vec<Datatype> = types.collect::<Result<_, Failure>>()?;
    handle::keep_datatype(Datatype::structure(&blocks, &displacements, &types)?)
}

/// Stores the code of the base type, the size, the bounds, and whether items are consecutive elements.
pub(crate) fn info(env: &mut Env, datatype: i64, out: IntArray) -> Answer<()> {
    let numbers = with(datatype, |datatype| {
        let base = match datatype.base() {
            None => NO_BASE,
            Some(Base::Element(element)) => i32::from(element.code()),
            Some(Base::Packed) => PACKED as i32,
        };
        let is_contiguous = i32::from(datatype.is_contiguous());
        Ok([base, datatype.size() as i32, datatype.lb(), datatype.ub(), is_contiguous])
    })?;
    out.put(env, &numbers);
    Ok(())
}

/// Stores the elements that items have in an array of `length` elements, in order. Returns their number.
pub(crate) fn elements(
    env: &mut Env,
    datatype: i64,
    off: i32,
    count: i32,
    length: i32,
    out: IntArray,
) -> Answer<i32> {
    let length = usize::try_from(length).unwrap_or(0);
    let placement = with(datatype, |datatype| Ok(datatype.place(i64::from(off), count, length)?))?;
    if out.len() == 0 {
        return Ok(placement.count() as i32);
    }
    let mut numbers: Vec<i32> = reserved(placement.count())?;
    match &placement {
        Placement::Run { off, count } => numbers.extend((*off..off + count).map(|at| at as i32)),
        Placement::Patch(patch) => {
            for run in patch.runs(usize::MAX) {
                numbers.extend((0..run.count as i64).map(|k| (run.start as i64 + run.stride * k) as i32));
            }
        }
        Placement::Items(items) => {
            numbers.extend(items.runs(Items::elements(items)).flatten().map(|at| at as i32));
        }
    }
    let count = numbers.len() as i32;
    numbers.truncate(out.len());
    out.put(env, &numbers);
    Ok(count)
}

pub(crate) fn free(_: &mut Env, datatype: i64) -> Answer<()> {
    handle::free_datatype(datatype);
    Ok(())
}
