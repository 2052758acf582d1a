//! Messages between arrays: the bodies of the native methods that send a part of an array as one section and
//! receive one section into a part of an array.
//!
//! No buffer takes part. The message lies in memory that the calling thread keeps, so a call allocates
//! nothing; that memory is not in use while a call waits. A result that describes the message has its size in
//! bits 32 to 62 and the number of elements below.
#![allow(clippy::too_many_arguments, reason = "a body has the arguments of its Java method")]

pub(crate) mod bounced;
pub(crate) mod exchange;
pub(crate) mod packing_unit;
pub(crate) mod part;
mod reply;
pub(crate) mod typed;

use std::cell::Cell;
use std::sync::Arc;

use mpjdev_buffer::patch::{check_indices, check_range};
use mpjdev_buffer::{Message, Type, layout, sole_section};
use mpjdev_engine::{
    Accept, Comm, DeviceError, Done, FastRecv, Mode, RecvFrom, RequestId, SentAhead, StartedRecv, Status,
};

use crate::array::pipeline::Ahead;
use crate::array::{Array, IntArray};
use crate::boundary::{Env, NativeStatus};
use crate::buffer::patch;
use crate::comm::{Answer, PENDING, await_send, checked_from, deadline, mode};
use crate::error::Fault;
use crate::handle::{self, Destination, Request, Selection};

use part::{ELEMENTS, Part};
use reply::{Both, Detail, Reply, WithEnvelope};

/// Octets from which a message is sent before it is packed.
const AHEAD_FROM: usize = 32 * 1024;

// ---- Sending

#[inline(always)]
pub(crate) fn send(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    count: i32,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<()> {
    let part = Part::check("source", &array, off, count)?;
    send_and_wait(env, comm, &part, dest, tag, synchronous)
}

pub(crate) fn isend(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    count: i32,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer {
    let part = Part::check("source", &array, off, count)?;
    isend_part(env, comm, &part, dest, tag, synchronous)
}

pub(crate) fn send_gathered(
    env: &mut Env,
    comm: i64,
    array: Array,
    count: i32,
    offs: i32,
    indexes: IntArray,
    dest: i32,
    tag: i32,
) -> Answer<()> {
    let part = Part::picked(&array, count, offs, &indexes)?;
    send_part(env, comm, &part, dest, tag, false)
}

pub(crate) fn isend_gathered(
    env: &mut Env,
    comm: i64,
    array: Array,
    count: i32,
    offs: i32,
    indexes: IntArray,
    dest: i32,
    tag: i32,
) -> Answer {
    let part = Part::picked(&array, count, offs, &indexes)?;
    isend_part(env, comm, &part, dest, tag, false)
}

pub(crate) fn send_patch(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    dest: i32,
    tag: i32,
) -> Answer<()> {
    let patch = patch(env, array.len(), off, rank, exts, strs, &indexes)?;
    send_part(env, comm, &Part::patch(&array, &patch), dest, tag, false)
}

pub(crate) fn isend_patch(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    dest: i32,
    tag: i32,
) -> Answer {
    let patch = patch(env, array.len(), off, rank, exts, strs, &indexes)?;
    isend_part(env, comm, &Part::patch(&array, &patch), dest, tag, false)
}

#[inline(never)]
fn send_part(
    env: &mut Env,
    comm: i64,
    part: &Part<'_>,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<()> {
    send_and_wait(env, comm, part, dest, tag, synchronous)
}

/// Sends a message and waits for its send. The elements are captured before the wait.
#[inline(always)]
fn send_and_wait(
    env: &mut Env,
    comm: i64,
    part: &Part<'_>,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<()> {
    handle::with_comm(comm, |comm| match isend_array(env, comm, part, dest, tag, synchronous)? {
        None => Ok(()),
        Some(id) => await_send(env, comm, id),
    })
}

#[inline(never)]
fn isend_part(env: &mut Env, comm: i64, part: &Part<'_>, dest: i32, tag: i32, synchronous: bool) -> Answer {
    handle::with_comm(comm, |comm| match isend_array(env, comm, part, dest, tag, synchronous)? {
        None => Ok(0),
        Some(id) => handle::keep_request(Request { comm: comm.clone(), id, destination: None }),
    })
}

#[inline(always)]
fn isend_array(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<Option<RequestId>> {
    let section = part.section();
    let len = layout::MESSAGE_OVERHEAD + sole_section::primary_len(section)?;
    handle::with_memory(|memory| {
        let message = memory.outgoing(len)?;
        if len >= AHEAD_FROM && part.is_pipelined() {
            let sent = send_ahead(env, comm, part, message, dest, tag, mode(synchronous));
            if !matches!(sent, Ok(None)) {
                memory.release_long();
                return sent.map(|sent| sent.and_then(|sent| sent.request));
            }
        }
        if let Err(failure) = message.write_sole_section(section, |place| part.put(env, place)) {
            memory.release_long();
            return Err(failure);
        }
        if part.is_unit() {
            message.mark_unit();
        }
        let started = comm.isend_by_copy(message, dest, tag, mode(synchronous));
        memory.release_long();
        Ok(started?)
    })
}

/// Sends a long message before it is packed, then packs it; returns its send. `None` if that is not possible
/// now.
#[cold]
#[inline(never)]
fn send_ahead(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    message: &mut Message,
    dest: i32,
    tag: i32,
    mode: Mode,
) -> Answer<Option<PackedSend>> {
    let section = part.section();
    // A bad index sends nothing.
    part.check_indices(env)?;
    message.write_headers_of(section);
    let Some(SentAhead { packer, request, by_reference }) = comm.send_ahead(message, dest, tag, mode)? else {
        return Ok(None);
    };
    let (_, place) = message.sole_section(section.element, section.count)?;
    let send_packed = || comm.send_packed(dest);
    let packed = part.pack(env, Ahead::new(place, ELEMENTS, packer, by_reference, &send_packed));
    // Sends the last octets, or the failure of the packing.
    send_packed();
    if let (Err(_), Some(id)) = (&packed, request) {
        comm.detach(id);
    }
    packed.map(|()| Some(PackedSend { request }))
}

/// A message that was packed after it was sent.
struct PackedSend {
    /// The send, unless it is complete.
    request: Option<RequestId>,
}

// ---- Receiving

#[inline(always)]
pub(crate) fn recv(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    let part = Part::check("destination", &array, off, count)?;
    receive(env, comm, &part, source, tag, WithEnvelope(out))
}

/// [`recv`] with a given source and tag: the remaining details fit the return value.
#[inline(always)]
pub(crate) fn recv_from(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
) -> Answer {
    let part = Part::check("destination", &array, off, count)?;
    receive(env, comm, &part, source, tag, Detail)
}

pub(crate) fn recv_scattered(
    env: &mut Env,
    comm: i64,
    array: Array,
    count: i32,
    offs: i32,
    indexes: IntArray,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    let part = Part::scattered(env, &array, count, offs, &indexes)?;
    receive(env, comm, &part, source, tag, WithEnvelope(out))
}

pub(crate) fn recv_patch(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    let patch = patch(env, array.len(), off, rank, exts, strs, &indexes)?;
    receive(env, comm, &Part::patch(&array, &patch), source, tag, WithEnvelope(out))
}

#[inline(always)]
fn receive(env: &mut Env, comm: i64, part: &Part<'_>, source: i32, tag: i32, reply: impl Reply) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, tag)?;
        receive_checked(env, comm, part, from, comm.config().spins, reply)
    })
}

/// Receives a message. One that arrives at once goes through the memory of this thread. Only the answer is
/// passed from function to function: it fits a register.
#[inline(always)]
fn receive_checked(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    from: RecvFrom,
    spins: u32,
    reply: impl Reply,
) -> Answer {
    let (mut fast, mut begun) = (None, None);
    let answer = handle::with_memory(
        #[inline(always)]
        |memory| {
            let target = memory.recv_target();
            let answer = match comm.try_recv_polling(from, capacity(part), Accept::Packing, target, spins) {
                Ok(status) if target.as_ref().is_some_and(Message::is_packing) => {
                    begun = target.take().map(|message| (status, message));
                    Ok(PENDING)
                }
                Ok(status) => {
                    let Some(message) = target else { unreachable!("a message was received") };
                    part.take(env, message, &status).map(|count| reply.reply(env, &status, count))
                }
                Err(other) => {
                    fast = Some(other);
                    Ok(PENDING)
                }
            };
            memory.release_recv_target();
            answer
        },
    );
    match fast {
        None if begun.is_some() => receive_begun(env, comm, part, &mut begun, reply),
        None => answer,
        Some(fast) => receive_posted(env, comm, part, from, fast, reply),
    }
}

/// Octets of primary payload that a receive accepts.
#[inline(always)]
fn capacity(part: &Part<'_>) -> usize {
    sole_section::primary_len(part.section()).unwrap_or(layout::CAPACITY_MAX)
}

/// Receives a message that has to be waited for. The memory of this thread is free meanwhile.
#[cold]
#[inline(never)]
fn receive_posted(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    from: RecvFrom,
    fast: FastRecv,
    reply: impl Reply,
) -> Answer {
    let spare = handle::with_memory(|memory| memory.take_spare());
    let (status, message) =
        comm.recv_posted(fast, from, capacity(part), Accept::Packing, spare, &mut || env.may_wait())?;
    receive_begun(env, comm, part, &mut Some((status, message)), reply)
}

/// Copies the elements of a received message. If its sender still packs it, each part is copied as soon as it
/// is packed.
#[cold]
#[inline(never)]
fn receive_begun(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    begun: &mut Option<(Status, Message)>,
    reply: impl Reply,
) -> Answer {
    let Some((status, mut message)) = begun.take() else { return Ok(PENDING) };
    let count = part.take_begun(env, comm, &mut message, &status);
    handle::with_memory(|memory| memory.keep(message));
    Ok(reply.reply(env, &status, count?))
}

// ---- Requests

#[inline(always)]
pub(crate) fn irecv(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    count: i32,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    let part = Part::check("destination", &array, off, count)?;
    let selection = || Selection::Run { off: off as usize, count: part.count };
    take_or_post(env, comm, &part, array.len(), selection, source, tag, WithEnvelope(out))
}

pub(crate) fn irecv_scattered(
    env: &mut Env,
    comm: i64,
    array: Array,
    count: i32,
    offs: i32,
    indexes: IntArray,
    source: i32,
    tag: i32,
) -> Answer {
    check_range("index array", i64::from(offs), i64::from(count), indexes.len())?;
    let captured = indexes.capture(env, offs as usize, count as usize)?;
    check_indices(&captured, 0, array.len(), 0)?;
    post(comm, &array, Selection::Picked(Arc::new(captured)), source, tag)
}

pub(crate) fn irecv_patch(
    env: &mut Env,
    comm: i64,
    array: Array,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    source: i32,
    tag: i32,
) -> Answer {
    let patch = patch(env, array.len(), off, rank, exts, strs, &indexes)?;
    post(comm, &array, Selection::Patch(Arc::new(patch)), source, tag)
}

/// Stores a message that has arrived, or posts a receive. The answer to a stored message is the complement of
/// the reply, which no handle is. `len` is the length of the array.
#[inline(always)]
fn take_or_post(
    env: &mut Env,
    comm: i64,
    part: &Part<'_>,
    len: usize,
    selection: impl FnOnce() -> Selection,
    source: i32,
    tag: i32,
    reply: impl Reply,
) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, tag)?;
        let mut posted = None;
        let answer = handle::with_memory(|memory| {
            let target = memory.irecv_target();
            let accepts = |message: &Message| part.accepts(message);
            let answer = match comm.irecv_into(from, capacity(part), target, &accepts)? {
                StartedRecv::Received(status) => {
                    let Some(message) = target else { unreachable!("a message was received") };
                    part.take(env, message, &status).map(|count| !reply.reply(env, &status, count))
                }
                StartedRecv::Posted(id) => {
                    posted = Some(id);
                    Ok(PENDING)
                }
            };
            memory.release_recv_target();
            answer
        });
        match posted {
            None => answer,
            Some(id) => keep_receive(comm, id, (part.array.element(), len), selection()),
        }
    })
}

/// Keeps the request of a receive into an array, which Java passes again when it waits. The array is not kept
/// here: a request that Java has lost keeps none.
#[inline(never)]
fn keep_receive(
    comm: &Arc<Comm>,
    id: RequestId,
    (element, len): (Type, usize),
    selection: Selection,
) -> Answer {
    let destination = Destination::Array { element, len, selection };
    handle::keep_request(Request { comm: comm.clone(), id, destination: Some(destination) })
}

/// Posts a receive into an array.
#[inline(always)]
fn post(comm: i64, array: &Array, selection: Selection, source: i32, tag: i32) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, tag)?;
        let spare = handle::with_memory(|memory| memory.take_spare());
        let id = comm.irecv(from, capacity(&Part::selected(array, &selection)), spare)?;
        keep_receive(comm, id, (array.element(), array.len()), selection)
    })
}

pub(crate) fn wait(env: &mut Env, request: i64, array: Array, nanos: i64, out: NativeStatus) -> Answer {
    let r = handle::request(request)?;
    let part = destination(&r, &array)?;
    match r.comm.wait(r.id, deadline(nanos), &mut || env.may_wait()) {
        Err(error @ (DeviceError::TimedOut { .. } | DeviceError::Interrupted)) => Err(error.into()),
        result => conclude(env, request, &part, result, WithEnvelope(out)),
    }
}

pub(crate) fn test(env: &mut Env, request: i64, array: Array, out: NativeStatus) -> Answer {
    let r = handle::request(request)?;
    let part = destination(&r, &array)?;
    match r.comm.test(r.id).transpose() {
        None => Ok(PENDING),
        Some(result) => conclude(env, request, &part, result, WithEnvelope(out)),
    }
}

/// The part of the array that a request receives into.
fn destination<'a>(request: &'a Request, array: &'a Array) -> Answer<Part<'a>> {
    match &request.destination {
        Some(Destination::Array { element, len, selection })
            if array.element() == *element && array.len() == *len =>
        {
            Ok(Part::selected(array, selection))
        }
        _ => Err(Fault::WrongKind { what: "request", why: "it does not receive into this array" }.into()),
    }
}

/// Completes one of several receives: stores its elements in the array. Returns envelope and details.
pub(crate) fn conclude_selected(
    env: &mut Env,
    handle: i64,
    (array, selection): (&Array, &Selection),
    result: Result<Done, DeviceError>,
) -> Answer<(i64, i64)> {
    let details = Cell::new(0);
    let envelope = conclude(env, handle, &Part::selected(array, selection), result, Both(&details))?;
    Ok((envelope, details.get()))
}

/// Completes a request: removes its handle, and copies its message to the array.
fn conclude(
    env: &mut Env,
    handle: i64,
    part: &Part<'_>,
    result: Result<Done, DeviceError>,
    reply: impl Reply,
) -> Answer {
    handle::drop_request(handle);
    let Done { status: Some(status), message: Some(message) } = result? else {
        return Err(DeviceError::NoSuchRequest.into());
    };
    let count = part.take(env, &message, &status);
    handle::with_memory(|memory| memory.keep(message));
    Ok(reply.reply(env, &status, count?))
}
