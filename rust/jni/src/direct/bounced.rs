//! Messages of short parts of arrays: the bodies of the native methods whose elements are in the bounce
//! buffer of the calling thread.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::patch::check_range;
use mpjdev_buffer::{layout, sole_section};
use mpjdev_engine::{Comm, RecvFrom, RequestId, Status};

use crate::array::Array;
use crate::boundary::{Env, NativeStatus};
use crate::comm::{Answer, await_send, checked_from};
use crate::handle::{self, Request, Selection};

use super::part::Part;
use super::reply::{Detail, Reply, WithEnvelope};
use super::{isend_array, receive_checked, take_or_post};

/// Words of a message that passes without message memory: three of headers, and up to 32 of elements.
const WORDS: usize = 35;
/// Octets of such a message. Longer ones gain nothing: in windows, a receive from the queue takes longer.
const SHORT: usize = 8 * WORDS;

#[inline(always)]
pub(crate) fn send(
    env: &mut Env,
    comm: i64,
    elements: Array,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<()> {
    handle::with_comm(comm, |comm| match start(env, comm, &Part::whole(&elements), dest, tag, synchronous)? {
        None => Ok(()),
        Some(id) => await_send(env, comm, id),
    })
}

#[inline(always)]
pub(crate) fn isend(
    env: &mut Env,
    comm: i64,
    elements: Array,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer {
    handle::with_comm(comm, |comm| match start(env, comm, &Part::whole(&elements), dest, tag, synchronous)? {
        None => Ok(0),
        Some(id) => handle::keep_request(Request { comm: comm.clone(), id, destination: None }),
    })
}

/// Starts a send; `None` when it is complete already. A message of few words is sent from the stack, if it
/// can leave at once: the message memory of this thread would cost more than the copy.
#[inline(always)]
fn start(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<Option<RequestId>> {
    let (section, len) = (part.section(), message_len(part));
    if !synchronous && len <= SHORT {
        let words = [const { AtomicU64::new(0) }; WORDS];
        // A copy from the bounce buffer does not fail.
        let mut packed = Ok(());
        let pack = || {
            packed = sole_section::write_words(&words, section, |place| part.put(env, place));
            &words[..]
        };
        if comm.try_send_words(len, dest, tag, pack)? {
            return packed.map(|()| None);
        }
    }
    isend_from_memory(env, comm, part, dest, tag, synchronous)
}

/// Octets of the message of a short part.
#[inline(always)]
fn message_len(part: &Part<'_>) -> usize {
    layout::MESSAGE_OVERHEAD + layout::SECTION_HEADER_LEN + part.section().padded_len()
}

/// Out of line, so that a send from the stack stays short.
#[inline(never)]
fn isend_from_memory(
    env: &mut Env,
    comm: &Comm,
    part: &Part<'_>,
    dest: i32,
    tag: i32,
    synchronous: bool,
) -> Answer<Option<RequestId>> {
    isend_array(env, comm, part, dest, tag, synchronous)
}

#[inline(always)]
pub(crate) fn recv(
    env: &mut Env,
    comm: i64,
    elements: Array,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    receive(env, comm, &elements, source, tag, WithEnvelope(out))
}

/// [`recv`] with a given source and tag: the remaining details fit the return value.
#[inline(always)]
pub(crate) fn recv_from(env: &mut Env, comm: i64, elements: Array, source: i32, tag: i32) -> Answer {
    receive(env, comm, &elements, source, tag, Detail)
}

#[inline(always)]
fn receive(env: &mut Env, comm: i64, elements: &Array, source: i32, tag: i32, reply: impl Reply) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, tag)?;
        let (part, mut spins) = (Part::whole(elements), comm.config().spins);
        if message_len(&part) <= SHORT
            && let Some((status, count)) = take_short(env, comm, elements, from, &mut spins)?
        {
            return Ok(reply.reply(env, &status, count));
        }
        receive_checked(env, comm, &part, from, spins, reply)
    })
}

/// Takes a message that comes in a packet of its own: its elements go from the queue to the bounce buffer,
/// since the message memory of this thread would cost more than the copy. Returns its status and their
/// number; `None`, and nothing has happened, if the next message of the source is no such message.
#[inline(always)]
fn take_short(
    env: &mut Env,
    comm: &Comm,
    elements: &Array,
    from: RecvFrom,
    spins: &mut u32,
) -> Answer<Option<(Status, usize)>> {
    let RecvFrom { source: Some(source), tag: Some(tag) } = from else { return Ok(None) };
    let (mut size, mut count) = (0, 0);
    let is_taken = comm.try_recv_words(from, spins, &mut |words, len| {
        let section = sole_section::read_words(words, len, elements.element(), elements.len());
        let Some((elements_len, place)) = section else { return false };
        (size, count) = (len - layout::MESSAGE_OVERHEAD, elements_len);
        elements.copy_in(env, 0, count, place, false).is_ok()
    })?;
    let status = Status { source: source as u32, tag, size, first: None };
    Ok(is_taken.then_some((status, count)))
}

/// Starts a receive with a given source and tag into elements from `off` on of an array of length `len`. Only
/// a message that has arrived is stored in the bounce buffer.
#[inline(always)]
pub(crate) fn irecv_from(
    env: &mut Env,
    comm: i64,
    elements: Array,
    len: i32,
    off: i32,
    source: i32,
    tag: i32,
) -> Answer {
    let len = usize::try_from(len).unwrap_or(0);
    check_range("destination", i64::from(off), elements.len() as i64, len)?;
    let part = Part::whole(&elements);
    if message_len(&part) <= SHORT {
        let taken = handle::with_comm(comm, |comm| {
            take_short(env, comm, &elements, checked_from(comm, source, tag)?, &mut 0)
        })?;
        if let Some((status, count)) = taken {
            return Ok(!Detail.reply(env, &status, count));
        }
    }
    let selection = || Selection::Run { off: off as usize, count: part.count };
    take_or_post(env, comm, &part, len, selection, source, tag, Detail)
}
