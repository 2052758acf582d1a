//! Messages of short parts of arrays: the bodies of the native methods whose elements are in the bounce
//! buffer of the calling thread.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::patch::check_range;
use mpjdev_buffer::{layout, sole_section};
use mpjdev_engine::{Comm, RequestId};

use crate::array::Array;
use crate::boundary::{Env, NativeStatus};
use crate::comm::{Answer, await_send};
use crate::handle::{self, Request, Selection};

use super::part::Part;
use super::{Detail, WithEnvelope, isend_array, receive, take_or_post};

/// Words of a message that is sent from the stack: three of headers, and up to 32 of elements.
const WORDS: usize = 35;

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
    let section = part.section();
    let len = layout::MESSAGE_OVERHEAD + layout::SECTION_HEADER_LEN + section.padded_len();
    if !synchronous && len <= 8 * WORDS {
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
    receive(env, comm, &Part::whole(&elements), source, tag, WithEnvelope(out))
}

/// [`recv`] with a given source and tag: the remaining details fit the return value.
#[inline(always)]
pub(crate) fn recv_from(env: &mut Env, comm: i64, elements: Array, source: i32, tag: i32) -> Answer {
    receive(env, comm, &Part::whole(&elements), source, tag, Detail)
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
    let selection = || Selection::Run { off: off as usize, count: part.count };
    take_or_post(env, comm, &part, len, selection, source, tag, Detail)
}
