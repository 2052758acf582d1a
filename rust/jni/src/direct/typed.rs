//! Messages of datatypes: the bodies of the native methods that send items of an array as one section and
//! receive one section into items.

use std::sync::Arc;

use mpjdev_buffer::Type;
use mpjdev_datatype::{Base, Placement};

use crate::array::Array;
use crate::boundary::{Env, NativeStatus};
use crate::comm::Answer;
use crate::error::Fault;
use crate::handle::Selection;
use crate::types;

use super::exchange::exchange_selected;
use super::part::{Part, Shape};
use super::reply::{Detail, WithEnvelope};
use super::{isend_part, receive, send_part, take_or_post};

/// Checked items of an array.
pub(crate) struct Placed {
    placement: Placement,
    /// Whether they are the octets of a packing unit.
    is_unit: bool,
}

/// The elements of items that begin at `off`.
pub(crate) fn place(datatype: i64, array: &Array, off: i32, count: i32) -> Answer<Placed> {
    types::with(datatype, |datatype| {
        let is_unit = datatype.base() == Some(Base::Packed);
        let element = if is_unit { Some(Base::Element(Type::Byte)) } else { datatype.base() };
        if element.is_some_and(|base| base != Base::Element(array.element())) {
            let why = "its elements are not of the base type of the datatype";
            return Err(Fault::Unusable { what: "array", why }.into());
        }
        let placement = datatype.place(i64::from(off), count, array.len())?;
        if is_unit && !matches!(placement, Placement::Run { .. }) {
            let why = "its items are packed octets with gaps";
            return Err(Fault::Unusable { what: "datatype", why }.into());
        }
        Ok(Placed { placement, is_unit })
    })
}

impl Placed {
    /// The elements of the array.
    pub(crate) fn part<'a>(&'a self, array: &'a Array) -> Part<'a> {
        let shape = match &self.placement {
            Placement::Run { off, .. } if self.is_unit => Shape::Unit(*off),
            Placement::Run { off, .. } => Shape::Run(*off),
            Placement::Patch(patch) => Shape::Patch(patch),
            Placement::Items(items) => Shape::Items(items),
        };
        Part { array, count: self.count(), shape }
    }

    /// Consecutive elements of them in the array, as elements of their type.
    ///
    /// # Panics
    /// They are not all of them, and lie apart.
    pub(crate) fn elements<'a>(&'a self, array: &'a Array, skip: usize, len: usize) -> Part<'a> {
        assert!(self.is_run() || (skip, len) == (0, self.count()), "{len} elements from {skip} on");
        let shape = match &self.placement {
            Placement::Run { off, .. } => Shape::Run(off + skip),
            Placement::Patch(patch) => Shape::Patch(patch),
            Placement::Items(items) => Shape::Items(items),
        };
        Part { array, count: len, shape }
    }

    /// Appends their `number` equal parts, if they follow each other in the array.
    pub(crate) fn divide(&self, number: usize, parts: &mut Vec<Placed>) -> bool {
        let (Placement::Run { off, count }, false) = (&self.placement, self.is_unit) else { return false };
        let count = count / number;
        parts.extend((0..number).map(|part| {
            let placement = Placement::Run { off: off + part * count, count };
            Placed { placement, is_unit: false }
        }));
        true
    }

    /// Whether they follow each other in the array.
    pub(crate) fn is_run(&self) -> bool {
        matches!(self.placement, Placement::Run { .. })
    }

    /// The number of elements.
    pub(crate) fn count(&self) -> usize {
        self.placement.count()
    }
}

pub(crate) fn send(
    env: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<()> {
    let items = place(datatype, &array, off, count)?;
    send_part(env, comm, &items.part(&array), dest, tag, synchronous)
}

pub(crate) fn isend(
    env: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer {
    let items = place(datatype, &array, off, count)?;
    isend_part(env, comm, &items.part(&array), dest, tag, synchronous)
}

pub(crate) fn recv(
    env: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    let items = place(datatype, &array, off, count)?;
    receive(env, comm, &items.part(&array), source, tag, WithEnvelope(out))
}

/// [`recv`] with a given source and tag: the remaining details fit the return value.
pub(crate) fn recv_from(
    env: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
) -> Answer {
    let items = place(datatype, &array, off, count)?;
    receive(env, comm, &items.part(&array), source, tag, Detail)
}

pub(crate) fn irecv(
    env: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    let Placed { placement, is_unit } = place(datatype, &array, off, count)?;
    let selection = match placement {
        Placement::Run { off, count } if is_unit => Selection::Unit { off, count },
        Placement::Run { off, count } => Selection::Run { off, count },
        Placement::Patch(patch) => Selection::Patch(Arc::new(patch)),
        Placement::Items(items) => Selection::Items(items),
    };
    let part = Part::selected(&array, &selection);
    take_or_post(env, comm, &part, array.len(), || selection.clone(), source, tag, WithEnvelope(out))
}

pub(crate) fn sendrecv(
    env: &mut Env,
    comm: i64,
    from_type: i64,
    from: Array,
    from_off: i32,
    send_count: i32,
    dest: i32,
    send_tag: i32,
    to_type: i64,
    to: Array,
    to_off: i32,
    recv_count: i32,
    source: i32,
    recv_tag: i32,
    out: NativeStatus,
) -> Answer {
    let sent = place(from_type, &from, from_off, send_count)?;
    let received = place(to_type, &to, to_off, recv_count)?;
    let (sent, received) = (sent.part(&from), received.part(&to));
    exchange_selected(env, comm, (&sent, dest, send_tag), (&received, source, recv_tag), out)
}
