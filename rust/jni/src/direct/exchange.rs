//! Messages in both directions: the bodies of the native methods that send a part of an array and receive
//! into a part of another one.

use crate::array::{Array, IntArray};
use crate::boundary::{Env, NativeStatus};
use crate::buffer::patch;
use crate::comm::{Answer, await_send, checked_from};
use crate::handle;

use super::part::Part;
use super::reply::WithEnvelope;
use super::{isend_array, receive_checked};

pub(crate) fn sendrecv(
    env: &mut Env,
    comm: i64,
    from: Array,
    from_off: i32,
    send_count: i32,
    dest: i32,
    send_tag: i32,
    to: Array,
    to_off: i32,
    recv_count: i32,
    source: i32,
    recv_tag: i32,
    out: NativeStatus,
) -> Answer {
    let sent = Part::check("source", &from, from_off, send_count)?;
    let received = Part::check("destination", &to, to_off, recv_count)?;
    exchange(env, comm, (&sent, dest, send_tag), (&received, source, recv_tag), out)
}

pub(crate) fn sendrecv_indexed(
    env: &mut Env,
    comm: i64,
    from: Array,
    send_count: i32,
    from_offs: i32,
    from_indexes: IntArray,
    dest: i32,
    send_tag: i32,
    to: Array,
    recv_count: i32,
    to_offs: i32,
    to_indexes: IntArray,
    source: i32,
    recv_tag: i32,
    out: NativeStatus,
) -> Answer {
    let sent = Part::picked(&from, send_count, from_offs, &from_indexes)?;
    let received = Part::scattered(env, &to, recv_count, to_offs, &to_indexes)?;
    exchange_selected(env, comm, (&sent, dest, send_tag), (&received, source, recv_tag), out)
}

pub(crate) fn sendrecv_patch(
    env: &mut Env,
    comm: i64,
    from: Array,
    from_off: i32,
    from_rank: i32,
    from_exts: i32,
    from_strs: i32,
    from_indexes: IntArray,
    dest: i32,
    send_tag: i32,
    to: Array,
    to_off: i32,
    to_rank: i32,
    to_exts: i32,
    to_strs: i32,
    to_indexes: IntArray,
    source: i32,
    recv_tag: i32,
    out: NativeStatus,
) -> Answer {
    let sent = patch(env, from.len(), from_off, from_rank, from_exts, from_strs, &from_indexes)?;
    let received = patch(env, to.len(), to_off, to_rank, to_exts, to_strs, &to_indexes)?;
    let (sent, received) = (Part::patch(&from, &sent), Part::patch(&to, &received));
    exchange_selected(env, comm, (&sent, dest, send_tag), (&received, source, recv_tag), out)
}

#[inline(never)]
pub(super) fn exchange_selected(
    env: &mut Env,
    comm: i64,
    sent: (&Part<'_>, i32, i32),
    received: (&Part<'_>, i32, i32),
    out: NativeStatus,
) -> Answer {
    exchange(env, comm, sent, received, out)
}

/// Sends, receives, and waits for the send: the message is captured before the receive, and the send
/// continues when the receive fails. The arguments of the receive are checked before anything is sent.
#[inline(always)]
fn exchange(
    env: &mut Env,
    comm: i64,
    (sent, dest, send_tag): (&Part<'_>, i32, i32),
    (part, source, recv_tag): (&Part<'_>, i32, i32),
    out: NativeStatus,
) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, recv_tag)?;
        let sending = isend_array(env, comm, sent, dest, send_tag, false)?;
        let received = receive_checked(env, comm, part, from, comm.config().spins, WithEnvelope(out));
        match sending {
            None => received,
            Some(id) if received.is_err() => {
                comm.detach(id);
                received
            }
            Some(id) => await_send(env, comm, id).and(received),
        }
    })
}
