//! Messages in both directions: the bodies of the native methods that send a part of an array and receive
//! into a part of another one.

use crate::array::Array;
use crate::boundary::{Env, NativeStatus};
use crate::comm::{Answer, await_send, checked_from};
use crate::handle;

use super::part::Part;
use super::{WithEnvelope, receive_checked, start_send};

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
        let sending = start_send(env, comm, sent, dest, send_tag, false)?;
        let received = receive_checked(env, comm, part, from, WithEnvelope(out));
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
