//! Messages of datatypes: the bodies of the native methods that send items of an array as one section and
//! receive one section into items.

use std::sync::Arc;

use mpjdev_datatype::{Base, Placement};

use crate::array::Array;
use crate::boundary::{Env, NativeStatus};
use crate::comm::Answer;
use crate::error::Fault;
use crate::handle::Selection;
use crate::types;

use super::exchange::exchange_selected;
use super::part::Part;
use super::{Detail, WithEnvelope, isend_part, post, receive, send_part};

/// The elements of items that begin at `off`.
fn place(datatype: i64, array: &Array, off: i32, count: i32) -> Answer<Placement> {
    types::with(datatype, |datatype| {
        if datatype.base().is_some_and(|base| base != Base::Element(array.element())) {
            let why = "its elements are not of the base type of the datatype";
            return Err(Fault::Unusable { what: "array", why }.into());
        }
        Ok(datatype.place(i64::from(off), count, array.len())?)
    })
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
    send_part(env, comm, &Part::placed(&array, &items), dest, tag, synchronous)
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
    isend_part(env, comm, &Part::placed(&array, &items), dest, tag, synchronous)
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
    receive(env, comm, &Part::placed(&array, &items), source, tag, WithEnvelope(out))
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
    receive(env, comm, &Part::placed(&array, &items), source, tag, Detail)
}

pub(crate) fn irecv(
    _: &mut Env,
    comm: i64,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
) -> Answer {
    let selection = match place(datatype, &array, off, count)? {
        Placement::Run { off, count } => Selection::Run { off, count },
        Placement::Patch(patch) => Selection::Patch(Arc::new(patch)),
        Placement::Items(items) => Selection::Items(items),
    };
    post(comm, &array, selection, source, tag)
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
    let (sent, received) = (Part::placed(&from, &sent), Part::placed(&to, &received));
    exchange_selected(env, comm, (&sent, dest, send_tag), (&received, source, recv_tag), out)
}
