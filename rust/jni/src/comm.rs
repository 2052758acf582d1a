//! Communication: the bodies of the native methods that send, receive, probe, wait and make communicators.
//!
//! A result that describes a message is one number: source in bits 32 to 62, tag below. Its size, and type
//! and count of the first section, are returned in the `NativeStatus` argument. [`PENDING`] and [`SENT`] are
//! negative.

use std::time::{Duration, Instant};

use mpjdev_engine::collective::{Operation, Outcome};
use mpjdev_engine::{
    Accept, Comm, DeviceError, Done, FastRecv, Mode, RecvFrom, RequestId, Status, deadline_after,
};

use crate::array::{Array, IntArray};
use crate::boundary::{Env, NativeStatus};
use crate::error::{Failure, Fault, reserved, zeroed};
use crate::handle::{self, Destination, Kind, Pending, Request};

/// Not complete, or no message found.
pub(crate) const PENDING: i64 = -1;
/// A send is complete.
const SENT: i64 = -2;
/// A collective operation is complete and makes no communicator.
const PASSED: i64 = 0;
/// Type code for "no section".
const NO_TYPE: i64 = 15;
/// The largest count that fits beside the type; it means that count or more.
const COUNT_MAX: i64 = (1 << 28) - 1;

/// Wildcards with the values of the original implementation, which are those of the MPICH family.
const ANY_SOURCE: i32 = -2;
const ANY_TAG: i32 = -1;

/// The constants that Java has as well.
pub(crate) const CONSTANTS: [(&str, i64); 6] = [
    ("ANY_SOURCE", ANY_SOURCE as i64),
    ("ANY_TAG", ANY_TAG as i64),
    ("PENDING", PENDING),
    ("SENT", SENT),
    ("NO_TYPE", NO_TYPE),
    ("COUNT_MAX", COUNT_MAX),
];

pub(crate) type Answer<T = i64> = Result<T, Failure>;

fn from(source: i32, tag: i32) -> RecvFrom {
    RecvFrom { source: (source != ANY_SOURCE).then_some(source), tag: (tag != ANY_TAG).then_some(tag) }
}

/// The source and tag of a receive, checked before its buffer is emptied: a refused call changes nothing.
#[inline(always)]
pub(crate) fn checked_from(comm: &Comm, source: i32, tag: i32) -> Answer<RecvFrom> {
    comm.check_unfinished()?;
    let from = from(source, tag);
    let size = comm.peers().len();
    if let Some(rank) = from.source.filter(|rank| usize::try_from(*rank).map_or(true, |r| r >= size)) {
        return Err(DeviceError::BadRank { rank, size }.into());
    }
    let max = comm.config().tag_ub;
    match from.tag {
        Some(tag) if tag < 0 || tag > max => Err(DeviceError::BadTag { tag, max }.into()),
        _ => Ok(from),
    }
}

#[inline(always)]
pub(crate) fn mode(synchronous: bool) -> Mode {
    if synchronous { Mode::Synchronous } else { Mode::Standard }
}

/// Size, and type and count of the first section, in one number.
#[inline(always)]
fn detail(status: &Status) -> i64 {
    let (element, count) = match status.first {
        Some(first) => (i64::from(first.element.code()), (first.count as i64).min(COUNT_MAX)),
        None => (NO_TYPE, 0),
    };
    (status.size as i64) << 32 | element << 28 | count
}

#[inline(always)]
fn pack(env: &mut Env, status: &Status, out: NativeStatus) -> i64 {
    out.set(env, detail(status));
    envelope(status)
}

/// Source and tag in one number.
#[inline(always)]
pub(crate) fn envelope(status: &Status) -> i64 {
    i64::from(status.source) << 32 | i64::from(status.tag)
}

// ---- Communicators

/// Makes the communicator of the calling rank alone.
pub(crate) fn alone(env: &mut Env, comm: i64) -> Answer {
    let comm = handle::comm(comm)?;
    handle::keep_comm(comm.alone(&mut || env.may_wait())?)
}

pub(crate) fn rank(_: &mut Env, comm: i64) -> Answer<i32> {
    Ok(handle::comm(comm)?.rank() as i32)
}

pub(crate) fn size(_: &mut Env, comm: i64) -> Answer<i32> {
    Ok(handle::comm(comm)?.size() as i32)
}

pub(crate) fn free(_: &mut Env, comm: i64) -> Answer<()> {
    handle::free_comm(comm);
    Ok(())
}

// ---- Sending

pub(crate) fn send(
    env: &mut Env,
    comm: i64,
    buffer: i64,
    dest: i32,
    tag: i32,
    synchronous: bool,
    flags: i32,
) -> Answer<()> {
    handle::with_comm(comm, |comm| {
        // The buffer is released before the wait: the message is captured.
        match isend_buffer(comm, buffer, dest, tag, synchronous, flags)? {
            None => Ok(()),
            Some(id) => await_send(env, comm, id),
        }
    })
}

/// Waits for a send without a request in Java. When the wait is abandoned, the send continues.
#[cold]
pub(crate) fn await_send(env: &mut Env, comm: &Comm, id: RequestId) -> Answer<()> {
    match comm.wait(id, None, &mut || env.may_wait()) {
        Ok(_) => Ok(()),
        Err(error) => {
            comm.detach(id);
            Err(error.into())
        }
    }
}

pub(crate) fn isend(
    _: &mut Env,
    comm: i64,
    buffer: i64,
    dest: i32,
    tag: i32,
    synchronous: bool,
    flags: i32,
) -> Answer {
    handle::with_comm(comm, |comm| match isend_buffer(comm, buffer, dest, tag, synchronous, flags)? {
        None => Ok(0),
        Some(id) => handle::keep_request(Request { comm: comm.clone(), id, destination: None }),
    })
}

#[inline(always)]
fn isend_buffer(
    comm: &Comm,
    buffer: i64,
    dest: i32,
    tag: i32,
    synchronous: bool,
    flags: i32,
) -> Answer<Option<RequestId>> {
    crate::buffer::with_message(buffer, flags, |message| match message {
        Some(message) => Ok(comm.isend(message, dest, tag, mode(synchronous))?),
        None => {
            Err(Fault::WrongKind { what: "buffer", why: "it is empty: receive or load a message first" }
                .into())
        }
    })
}

// ---- Receiving

pub(crate) fn recv(
    env: &mut Env,
    comm: i64,
    buffer: i64,
    source: i32,
    tag: i32,
    out: NativeStatus,
) -> Answer {
    receive(env, comm, buffer, source, tag, &|env: &mut Env, status: &Status| pack(env, status, out))
}

/// [`recv`] with a given source and tag: the remaining details fit the return value.
pub(crate) fn recv_from(env: &mut Env, comm: i64, buffer: i64, source: i32, tag: i32) -> Answer {
    receive(env, comm, buffer, source, tag, &|_: &mut Env, status: &Status| detail(status))
}

/// Receives, and returns the number that `answer` makes of the status. Only that number is passed from
/// function to function: it fits a register.
#[inline(always)]
fn receive(
    env: &mut Env,
    comm: i64,
    buffer: i64,
    source: i32,
    tag: i32,
    answer: &impl Fn(&mut Env, &Status) -> i64,
) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, tag)?;
        let mut fast = None;
        let received = recv_in_place(env, comm, buffer, from, answer, &mut fast)?;
        match fast {
            None => Ok(received),
            Some(fast) => receive_posted(env, comm, buffer, from, fast, answer),
        }
    })
}

/// Receives a message that arrives at once directly into its buffer, which is held meanwhile. Another outcome
/// goes to `other`.
#[inline(always)]
fn recv_in_place(
    env: &mut Env,
    comm: &Comm,
    buffer: i64,
    from: RecvFrom,
    answer: &impl Fn(&mut Env, &Status) -> i64,
    other: &mut Option<FastRecv>,
) -> Answer {
    handle::with_idle_buffer(
        buffer,
        #[inline(always)]
        |b| {
            let Kind::Read(reader) = &mut b.kind else {
                *other = Some(FastRecv::Unavailable);
                return PENDING;
            };
            let capacity = reader.capacity();
            let target = reader.recv_target(handle::session());
            match comm.try_recv_polling(from, capacity, Accept::Packed, target, comm.config().spins) {
                Ok(status) => answer(env, &status),
                Err(fast) => {
                    if let FastRecv::Failed(_) = fast {
                        reader.clear();
                    }
                    *other = Some(fast);
                    PENDING
                }
            }
        },
    )
}

/// Receives a message that has to be waited for.
#[cold]
#[inline(never)]
fn receive_posted(
    env: &mut Env,
    comm: &Comm,
    buffer: i64,
    from: RecvFrom,
    fast: FastRecv,
    answer: &impl Fn(&mut Env, &Status) -> i64,
) -> Answer {
    let (capacity, spare) = receive_memory(buffer)?;
    let result = comm.recv_posted(fast, from, capacity, Accept::Packed, spare, &mut || env.may_wait());
    let (status, message) = end_receive(buffer, result)?;
    deliver(buffer, message);
    Ok(answer(env, &status))
}

pub(crate) fn irecv(_: &mut Env, comm: i64, buffer: i64, source: i32, tag: i32) -> Answer {
    handle::with_comm(comm, |comm| {
        let from = checked_from(comm, source, tag)?;
        let (capacity, spare) = receive_memory(buffer)?;
        let id = end_receive(buffer, comm.irecv(from, capacity, spare))?;
        let destination = Some(Destination::Buffer(buffer));
        keep_receive(Request { comm: comm.clone(), id, destination }, buffer)
    })
}

/// Marks a buffer as in use and empties it; returns its capacity and its memory.
#[inline(always)]
fn receive_memory(buffer: i64) -> Answer<(usize, Option<mpjdev_buffer::Slab>)> {
    handle::with_idle_buffer(buffer, |b| {
        b.pending = Some(Pending::Awaited);
        let capacity = match &b.kind {
            Kind::Write(w) => w.capacity(),
            Kind::Read(r) => r.capacity(),
        };
        (capacity, handle::take_spare(&mut b.kind))
    })
}

/// Frees a buffer for use after a failed receive; it is empty.
fn end_receive<T>(buffer: i64, result: Result<T, DeviceError>) -> Answer<T> {
    if result.is_err() {
        // The buffer may have been closed: then there is nothing to free.
        let _ = handle::with_any_buffer(buffer, |b| b.pending = None);
    }
    Ok(result?)
}

/// Stores a message in its buffer; drops it when the buffer has been closed meanwhile.
#[inline(always)]
fn deliver(buffer: i64, message: mpjdev_buffer::Message) {
    let _ = handle::with_any_buffer(buffer, |b| {
        b.pending = None;
        b.adopt(message);
    });
}

pub(crate) fn probe(env: &mut Env, comm: i64, source: i32, tag: i32, out: NativeStatus) -> Answer {
    let status = handle::comm(comm)?.probe(from(source, tag), &mut || env.may_wait())?;
    Ok(pack(env, &status, out))
}

pub(crate) fn iprobe(env: &mut Env, comm: i64, source: i32, tag: i32, out: NativeStatus) -> Answer {
    let found = handle::comm(comm)?.iprobe(from(source, tag))?;
    Ok(found.map_or(PENDING, |status| pack(env, &status, out)))
}

/// The elements of the first section of the message that [`iprobe`] finds.
pub(crate) fn probed_count(_: &mut Env, comm: i64, source: i32, tag: i32) -> Answer {
    let found = handle::comm(comm)?.iprobe(from(source, tag))?;
    Ok(found.and_then(|status| status.first).map_or(PENDING, |first| first.count as i64))
}

/// Keeps the request of a receive. Without room for another request, the receive is cancelled and its buffer
/// is free.
fn keep_receive(request: Request, buffer: i64) -> Answer {
    let kept = handle::keep_request(request);
    if kept.is_err() {
        let _ = handle::with_any_buffer(buffer, |b| b.pending = None);
    }
    kept
}

// ---- Requests

/// The deadline of a wait; `None` for a wait without one.
pub(crate) fn deadline(nanos: i64) -> Option<Instant> {
    u64::try_from(nanos).ok().and_then(|n| deadline_after(Duration::from_nanos(n)))
}

pub(crate) fn wait(env: &mut Env, request: i64, nanos: i64, out: NativeStatus) -> Answer {
    let r = request_without_array(request)?;
    let result = r.comm.wait(r.id, deadline(nanos), &mut || env.may_wait());
    match result {
        Err(error @ (DeviceError::TimedOut { .. } | DeviceError::Interrupted)) => Err(error.into()),
        result => reply(env, conclude(request, &r, result)?, out),
    }
}

/// The answer of a complete request.
fn reply(env: &mut Env, (envelope, detail): (i64, i64), out: NativeStatus) -> Answer {
    if envelope != SENT {
        out.set(env, detail);
    }
    Ok(envelope)
}

/// A request that completes without an array.
fn request_without_array(request: i64) -> Answer<Request> {
    let r = handle::request(request)?;
    match r.destination {
        Some(Destination::Array { .. }) => {
            Err(Fault::WrongKind { what: "request", why: "it needs the array that it receives into" }.into())
        }
        _ => Ok(r),
    }
}

pub(crate) fn test(env: &mut Env, request: i64, out: NativeStatus) -> Answer {
    let r = request_without_array(request)?;
    match r.comm.test(r.id).transpose() {
        None => Ok(PENDING),
        Some(result) => reply(env, conclude(request, &r, result)?, out),
    }
}

/// Completes a request: removes its handle, and stores its message in the buffer. Returns envelope and
/// details.
pub(crate) fn conclude(
    handle: i64,
    request: &Request,
    result: Result<Done, DeviceError>,
) -> Answer<(i64, i64)> {
    handle::drop_request(handle);
    let buffer = request.buffer();
    let done = match buffer {
        // Another thread has completed this request: the buffer belongs to that thread, and may be in use
        // again.
        _ if matches!(result, Err(DeviceError::NoSuchRequest)) => result?,
        Some(buffer) => end_receive(buffer, result)?,
        None => result?,
    };
    if let (Some(buffer), Some(message)) = (buffer, done.message) {
        deliver(buffer, message);
    }
    Ok(done.status.map_or((SENT, 0), |status| (envelope(&status), detail(&status))))
}

/// Waits until one of the first `count` requests is complete and returns its index. Zero handles are skipped;
/// returns -1 when all are zero.
pub(crate) fn wait_any(env: &mut Env, requests: Array, count: i32, nanos: i64) -> Answer<i32> {
    let mut handles = zeroed((count.max(0) as usize).min(requests.len()))?;
    requests.get_longs(env, &mut handles);
    let mut active = reserved(handles.iter().filter(|h| **h != 0).count())?;
    for (place, &handle) in handles.iter().enumerate().filter(|(_, h)| **h != 0) {
        active.push((place, handle::request(handle)?));
    }
    let Some((_, first)) = active.first() else { return Ok(-1) };
    let comm = first.comm.clone();
    if active.iter().any(|(_, r)| !r.comm.is_of_same_rank(&comm)) {
        return Err(DeviceError::MixedRanks.into());
    }
    let mut ids = reserved(active.len())?;
    ids.extend(active.iter().map(|(_, r)| r.id));
    let at = comm.wait_any(&ids, deadline(nanos), &mut || env.may_wait())?;
    Ok(active[at].0 as i32)
}

pub(crate) fn cancel(_: &mut Env, request: i64) -> Answer<bool> {
    // Another thread may have waited for it meanwhile: then it is too late, which is no error.
    let Ok(r) = handle::request(request) else { return Ok(false) };
    match r.comm.cancel(r.id) {
        Err(DeviceError::NoSuchRequest) => Ok(false),
        answer => Ok(answer?),
    }
}

/// Frees a request; a second call is no error.
pub(crate) fn free_request(_: &mut Env, request: i64) -> Answer<()> {
    let Some(request) = handle::drop_request(request) else { return Ok(()) };
    let buffer = request.buffer();
    let Request { comm, id, .. } = request;
    let kept = buffer.is_some_and(|buffer| handle::detach_buffer(buffer, comm.clone(), id).is_ok());
    if !kept {
        comm.detach(id);
    }
    Ok(())
}

// ---- Collective operations

/// Waits until all ranks have entered.
pub(crate) fn barrier(env: &mut Env, comm: i64) -> Answer<()> {
    handle::with_comm(comm, |comm| Ok(comm.barrier(&mut || env.may_wait())?))
}

pub(crate) fn start_barrier(_: &mut Env, comm: i64) -> Answer {
    handle::keep_operation(handle::comm(comm)?.start_barrier())
}

pub(crate) fn start_dup(_: &mut Env, comm: i64) -> Answer {
    handle::keep_operation(handle::comm(comm)?.start_dup())
}

pub(crate) fn start_create(env: &mut Env, comm: i64, ids: IntArray) -> Answer {
    let comm = handle::comm(comm)?;
    // A list of more ranks than the communicator has repeats one: one entry more than the ranks reports that
    // as well.
    let mut ranks = zeroed(ids.len().min(comm.size() + 1))?;
    ids.get(env, 0, &mut ranks);
    handle::keep_operation(comm.start_create(&ranks))
}

pub(crate) fn start_split(_: &mut Env, comm: i64, color: i32, key: i32) -> Answer {
    handle::keep_operation(handle::comm(comm)?.start_split(color, key))
}

pub(crate) fn start_intercomm(
    _: &mut Env,
    comm: i64,
    leader: i32,
    peer: i64,
    remote_leader: i32,
    tag: i32,
) -> Answer {
    // Only the leader uses it, and tells its group if it was freed.
    let peer = handle::comm(peer).ok();
    handle::keep_operation(handle::comm(comm)?.start_intercomm(leader, peer.as_deref(), remote_leader, tag))
}

pub(crate) fn start_merge(_: &mut Env, comm: i64, high: bool) -> Answer {
    handle::keep_operation(handle::comm(comm)?.start_merge(high))
}

/// Advances a collective operation, to its end when blocking. Returns the new communicator's handle,
/// [`PASSED`] without one, or [`PENDING`] when it is not complete. The operation is removed when it is
/// complete or has failed.
pub(crate) fn advance(env: &mut Env, operation: i64, blocking: bool) -> Answer {
    let outcome = handle::with_operation(operation, |op| run(env, op, blocking))?;
    match outcome {
        Ok(None) => Ok(PENDING),
        Ok(Some(Outcome::Created(Some(comm)))) => {
            handle::drop_operation(operation);
            handle::keep_comm(comm)
        }
        Ok(Some(_)) => {
            handle::drop_operation(operation);
            Ok(PASSED)
        }
        Err(error @ DeviceError::Interrupted) => Err(error.into()),
        Err(error) => {
            handle::drop_operation(operation);
            Err(error.into())
        }
    }
}

fn run(env: &mut Env, op: &mut Operation, blocking: bool) -> Result<Option<Outcome>, DeviceError> {
    loop {
        match op.advance()? {
            None if blocking => op.wait(&mut || env.may_wait())?,
            outcome => return Ok(outcome),
        }
    }
}

pub(crate) fn free_operation(_: &mut Env, operation: i64) -> Answer<()> {
    handle::drop_operation(operation);
    Ok(())
}
