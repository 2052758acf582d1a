//! The tables of the values behind Java's handles.

mod memory;
mod thread_memory;

use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use mpjdev_buffer::{Message, Patch, ReadBuffer, Slab, SlabSource, Type, ViewedSlab, WriteBuffer};
use mpjdev_datatype::{Datatype, Items};
use mpjdev_engine::collective::Operation;
use mpjdev_engine::handle_table::HandleTable;
use mpjdev_engine::lock_order::{LockRank, Mutex, MutexGuard};
use mpjdev_engine::thread_cache::{ThreadCache, ThreadCaches};
use mpjdev_engine::{Comm, PacketEngine, RequestId};

use crate::error::{Failure, Fault};

pub(crate) use memory::{clear, pool, private, process_rank, session, source};
pub(crate) use thread_memory::with_memory;

/// A buffer that Java holds.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) kind: Kind,
    /// A receive into this buffer that is in progress.
    pub(crate) pending: Option<Pending>,
}

/// The use of a buffer. Either kind can be sent and received into.
#[derive(Debug)]
pub(crate) enum Kind {
    Write(WriteBuffer),
    Read(ReadBuffer),
}

/// A receive that keeps its buffer in use.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A thread or a request waits for it.
    Awaited,
    /// No thread will wait for it: its message is adopted at the next use of the buffer.
    Detached(Arc<Comm>, RequestId),
}

/// A request that Java holds.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) comm: Arc<Comm>,
    pub(crate) id: RequestId,
    /// The destination if the request is a receive.
    pub(crate) destination: Option<Destination>,
}

/// The destination of a receive.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// A buffer, which is in use until then.
    Buffer(i64),
    /// Elements of an array of this type and length, which Java passes when it waits.
    Array { element: Type, len: usize, selection: Selection },
}

/// The elements of an array that a posted receive stores.
#[derive(Clone, Debug)]
pub(crate) enum Selection {
    /// `count` elements from `off` on.
    Run { off: usize, count: usize },
    /// The elements of these indices.
    Picked(Arc<Vec<i32>>),
    /// The elements of a patch.
    Patch(Arc<Patch>),
    /// The elements of items of a datatype.
    Items(Items),
    /// `count` octets from `off` on, which are a packing unit.
    Unit { off: usize, count: usize },
}

impl Request {
    /// The buffer of a receive into one.
    pub(crate) fn buffer(&self) -> Option<i64> {
        match &self.destination {
            Some(Destination::Buffer(buffer)) => Some(*buffer),
            _ => None,
        }
    }
}

/// The owner of a view's memory.
#[derive(Debug)]
pub(crate) enum Hold {
    /// A view for writing: while it exists, the memory holds messages of its buffer only.
    Written { _slab: Arc<ViewedSlab> },
    /// A view for reading: the memory may be reused for other messages meanwhile.
    Read { _memory: Arc<dyn Any + Send + Sync> },
    /// A view for reading, of memory that cannot be kept without the message.
    Message { _slab: Slab },
}

static BUFFERS: HandleTable<Buffer> = HandleTable::new();
static COMMS: HandleTable<Arc<Comm>> = HandleTable::new();
static REQUESTS: HandleTable<Request> = HandleTable::new();
static OPERATIONS: HandleTable<Operation> = HandleTable::new();
static VIEWS: HandleTable<Hold> = HandleTable::new();
static DATATYPES: HandleTable<Datatype> = HandleTable::new();

const BUFFER: &str = "buffer";
const COMM: &str = "communicator";
const REQUEST: &str = "request";
const OPERATION: &str = "collective operation";
const VIEW: &str = "view";
const DATATYPE: &str = "datatype";

// ---- Buffers

/// Keeps a buffer for Java and returns its handle.
pub(crate) fn keep(kind: Kind) -> Result<i64, Failure> {
    BUFFERS.insert(Buffer { kind, pending: None }).map_err(|(_, r)| Failure::handle(BUFFER)(r))
}

/// Holds a buffer for the duration of one call; fails while a receive is in progress.
#[inline(always)]
pub(crate) fn with_buffer<R>(
    handle: i64,
    f: impl FnOnce(&mut Kind) -> Result<R, Failure>,
) -> Result<R, Failure> {
    BUFFERS.lock(handle).map_err(Failure::handle(BUFFER))?.with(
        #[inline(always)]
        |buffer| {
            if buffer.pending.is_some() {
                complete_detached(handle, buffer)?;
            }
            f(&mut buffer.kind)
        },
    )
}

/// Holds a buffer for the start of a receive; fails while another receive is in progress.
#[inline(always)]
pub(crate) fn with_idle_buffer<R>(handle: i64, f: impl FnOnce(&mut Buffer) -> R) -> Result<R, Failure> {
    BUFFERS.lock(handle).map_err(Failure::handle(BUFFER))?.with(
        #[inline(always)]
        |buffer| {
            if buffer.pending.is_some() {
                complete_detached(handle, buffer)?;
            }
            Ok(f(buffer))
        },
    )
}

/// Holds a buffer in any state.
pub(crate) fn with_any_buffer<R>(handle: i64, f: impl FnOnce(&mut Buffer) -> R) -> Result<R, Failure> {
    let mut held = BUFFERS.lock_spinning(handle).map_err(Failure::handle(BUFFER))?;
    Ok(held.with(f))
}

/// Completes a detached receive, if its message has arrived.
#[cold]
fn complete_detached(handle: i64, buffer: &mut Buffer) -> Result<(), Failure> {
    if let Some(Pending::Detached(comm, id)) = &buffer.pending {
        match comm.test(*id) {
            Ok(None) => return Err(Fault::InUse.into()),
            Ok(Some(done)) => {
                if let Some(message) = done.message {
                    buffer.adopt(message);
                }
            }
            // The detached receive has failed, and the buffer is empty.
            Err(_) => {}
        }
        buffer.pending = None;
        detached().remove(&handle);
        return Ok(());
    }
    Err(Fault::InUse.into())
}

/// Buffers with a detached receive. The end of a rank finds them here, without a scan of all buffers, which
/// other threads use meanwhile.
static DETACHED: Mutex<BTreeSet<i64>> = Mutex::new(LockRank::DetachedBuffers, BTreeSet::new());

fn detached() -> MutexGuard<'static, BTreeSet<i64>> {
    DETACHED.lock()
}

/// Leaves a buffer to a receive that no thread waits for any more.
pub(crate) fn detach_buffer(handle: i64, comm: Arc<Comm>, id: RequestId) -> Result<(), Failure> {
    with_any_buffer(handle, |buffer| {
        buffer.pending = Some(Pending::Detached(comm, id));
        detached().insert(handle);
    })
}

impl Buffer {
    /// Stores a received message.
    pub(crate) fn adopt(&mut self, message: Message) {
        match &mut self.kind {
            Kind::Write(w) => w.adopt(message),
            Kind::Read(r) => r.adopt(message),
        }
    }
}

/// Removes a buffer; a second call is no error.
pub(crate) fn close(handle: i64) {
    // A stale handle was closed before, as the caller wants.
    if let Ok(Buffer { pending: Some(Pending::Detached(comm, id)), .. }) = BUFFERS.remove(handle) {
        detached().remove(&handle);
        comm.detach(id);
    }
}

/// Number of buffers that are not closed.
pub(crate) fn open_buffers() -> usize {
    BUFFERS.len()
}

// ---- Communicators

/// Keeps a communicator for Java and returns its handle.
pub(crate) fn keep_comm(comm: Comm) -> Result<i64, Failure> {
    COMMS.insert(Arc::new(comm)).map_err(|(_, r)| Failure::handle(COMM)(r))
}

/// A communicator. Many threads may use one at once, so it is not held for the length of the call.
#[inline(always)]
pub(crate) fn comm(handle: i64) -> Result<Arc<Comm>, Failure> {
    let mut held = COMMS.lock_spinning(handle).map_err(Failure::handle(COMM))?;
    Ok(held.with(|comm| comm.clone()))
}

/// The communicators that threads have used last.
static LAST: ThreadCaches<Arc<Comm>> = ThreadCaches::new();

thread_local! {
    /// The one that this thread has used last. An idle thread would keep its rank alive, so another thread
    /// may take it away.
    static OWN: ThreadCache<'static, Arc<Comm>> = const { ThreadCache::new(&LAST) };
}

/// Uses a communicator on the path of every message. Each thread remembers the one that it used last: this
/// costs a read of the handle's generation instead of three writes to cache lines that threads share.
#[inline(always)]
pub(crate) fn with_comm<R>(
    handle: i64,
    f: impl FnOnce(&Arc<Comm>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    OWN.with(|own| {
        if COMMS.is_live(handle)
            && let Some(comm) = own.with_key(handle as u64)
        {
            return f(&comm);
        }
        f(&look_up(own, handle)?)
    })
}

/// Looks up a communicator that this thread has not used last, and remembers it.
#[cold]
fn look_up(own: &ThreadCache<'static, Arc<Comm>>, handle: i64) -> Result<Arc<Comm>, Failure> {
    let found = comm(handle)?;
    own.store(handle as u64, found.clone());
    // A thread that freed or retired the communicator meanwhile may not have seen this reference.
    if !COMMS.is_live(handle) || found.packet_engine().is_some_and(|rank| rank.has_ended()) {
        own.forget();
    }
    Ok(found)
}

/// Removes a communicator; a second call is no error. The world of a rank is removed with the rank: Java's
/// other handles then refer to the rank's remains.
pub(crate) fn free_comm(handle: i64) {
    let Ok(comm) = COMMS.remove(handle) else { return };
    LAST.take(|kept| kept == handle as u64);
    comm.free();
    if let Some(rank) = comm.packet_engine().filter(|_| comm.is_world()) {
        retire(rank);
    }
}

/// Releases a rank whose world was freed. Its transport, its memory and its threads must not wait until Java
/// collects the communicators, requests and buffers that refer to it.
fn retire(rank: &Arc<PacketEngine>) {
    rank.end_progress_threads();
    let remains = OnceCell::new();
    let on_remains = |comm: &mut Arc<Comm>| {
        let remains = remains.get_or_init(|| rank.remains(&private()));
        *comm = Arc::new(comm.on(remains));
    };
    // Communicators first: once they refer to the remains, new requests do too.
    let mut handles = Vec::new();
    COMMS.for_each(|handle, comm| {
        if comm.is_of(rank) {
            on_remains(comm);
            handles.push(handle as u64);
        }
    });
    if !REQUESTS.is_empty() {
        REQUESTS.for_each(|_, request| {
            if request.comm.is_of(rank) {
                on_remains(&mut request.comm);
            }
        });
    }
    if !OPERATIONS.is_empty() {
        // An operation that another thread advances fails there, and is removed then. Operations of other
        // ranks may be in a long wait.
        OPERATIONS.for_each_idle(|_, operation| {
            if operation.is_of(rank) {
                operation.retire(remains.get_or_init(|| rank.remains(&private())));
            }
        });
    }
    let buffers: Vec<i64> = detached().iter().copied().collect();
    for handle in buffers {
        // A buffer that was closed meanwhile has dropped its reference.
        let _ = with_any_buffer(handle, |buffer| match &mut buffer.pending {
            Some(Pending::Detached(comm, _)) if comm.is_of(rank) => on_remains(comm),
            _ => {}
        });
    }
    LAST.take(|kept| handles.contains(&kept));
    thread_memory::take_all();
}

// ---- Requests

/// Keeps a request for Java and returns its handle.
pub(crate) fn keep_request(request: Request) -> Result<i64, Failure> {
    REQUESTS.insert(request).map_err(|(request, r)| {
        request.comm.detach(request.id);
        Failure::handle(REQUEST)(r)
    })
}

/// A request, which any thread may wait for or cancel.
pub(crate) fn request(handle: i64) -> Result<Request, Failure> {
    let mut held = REQUESTS.lock_spinning(handle).map_err(Failure::handle(REQUEST))?;
    Ok(held.with(|request| request.clone()))
}

/// Removes a request that is complete or was abandoned.
pub(crate) fn drop_request(handle: i64) -> Option<Request> {
    REQUESTS.remove(handle).ok()
}

/// The requests of the rank of a communicator.
pub(crate) fn requests_of(comm: &Comm) -> Vec<Request> {
    let mut own = Vec::new();
    REQUESTS.for_each(|_, request| {
        if request.comm.is_of_same_rank(comm) {
            own.push(request.clone());
        }
    });
    own
}

/// Number of requests that are not complete.
pub(crate) fn open_requests() -> usize {
    REQUESTS.len()
}

// ---- Collective operations

/// Keeps a collective operation for Java and returns its handle.
pub(crate) fn keep_operation(operation: Operation) -> Result<i64, Failure> {
    OPERATIONS.insert(operation).map_err(|(_, r)| Failure::handle(OPERATION)(r))
}

/// Uses a collective operation, one thread at a time.
pub(crate) fn with_operation<R>(handle: i64, f: impl FnOnce(&mut Operation) -> R) -> Result<R, Failure> {
    Ok(OPERATIONS.lock(handle).map_err(Failure::handle(OPERATION))?.with(f))
}

/// Removes a collective operation; a second call is no error.
pub(crate) fn drop_operation(handle: i64) {
    let _ = OPERATIONS.remove(handle);
}

// ---- Views

/// Keeps the owner of a view's memory and returns its handle.
pub(crate) fn keep_view(hold: Hold) -> Result<i64, Failure> {
    VIEWS.insert(hold).map_err(|(_, r)| Failure::handle(VIEW)(r))
}

/// Releases a view's memory; a second call is no error.
pub(crate) fn free_view(handle: i64) {
    let _ = VIEWS.remove(handle);
}

// ---- Datatypes

/// Keeps a datatype for Java and returns its handle.
pub(crate) fn keep_datatype(datatype: Datatype) -> Result<i64, Failure> {
    DATATYPES.insert(datatype).map_err(|(_, r)| Failure::handle(DATATYPE)(r))
}

/// Uses a datatype. Any thread may use one, so it is held for a short time only.
pub(crate) fn with_datatype<R>(handle: i64, f: impl FnOnce(&Datatype) -> R) -> Result<R, Failure> {
    let mut held = DATATYPES.lock_spinning(handle).map_err(Failure::handle(DATATYPE))?;
    Ok(held.with(|datatype| f(datatype)))
}

/// Removes a datatype; a second call is no error. Types and receives that were made of it stay.
pub(crate) fn free_datatype(handle: i64) {
    let _ = DATATYPES.remove(handle);
}

// ---- Memory

/// Makes messages take memory from `source` until this rank has finished.
pub(crate) fn share(source: Arc<dyn SlabSource>, rank: &Arc<PacketEngine>) {
    memory::share(source, rank);
    thread_memory::take_all();
}

/// Stops the use of a finished rank's memory by new messages. Existing messages keep theirs.
pub(crate) fn unshare(rank: &Arc<PacketEngine>) {
    memory::unshare(rank);
    thread_memory::take_all();
}

/// Empties a buffer for a receive; returns its memory if it has no other reference and may stay.
#[inline(always)]
pub(crate) fn take_spare(kind: &mut Kind) -> Option<Slab> {
    match kind {
        Kind::Write(w) => {
            clear(w);
            w.take_spare()
        }
        Kind::Read(r) => r.take_spare_of(session()),
    }
}

#[cfg(test)]
mod tests {
    use mpjdev_bootstrap::job;
    use mpjdev_engine::{Config, DeviceError, Mode, RecvFrom, Uninterruptible};

    use super::*;
    use mpjdev_buffer::Encoding;

    const CAPACITY: i64 = 64;

    fn numbers(values: &[i32]) -> Message {
        let mut writer = WriteBuffer::new(private(), CAPACITY, Encoding::NATIVE).expect("memory");
        writer.write(values).expect("room");
        writer.finish().expect("a message").clone()
    }

    /// Java's handles of a rank refer to requests not waited for and operations not complete when the rank
    /// finishes.
    #[test]
    fn finished_rank_is_dropped_while_handles_of_it_are_kept() {
        let world = job::local(2, Config::default(), &private()).remove(0);
        let rank = world.packet_engine().expect("a rank of ours").clone();
        let gone = Arc::downgrade(&rank);
        let handle = keep_comm(world).expect("room");
        let comm = super::comm(handle).expect("a communicator");
        let from = RecvFrom { source: Some(0), tag: Some(1) };
        comm.send(&numbers(&[1, 2, 3]), 0, 1, Mode::Standard, &mut Uninterruptible).expect("sent");
        let id = comm.irecv(from, CAPACITY as usize, None).expect("this rank runs");
        let request = keep_request(Request { comm: comm.clone(), id, destination: None }).expect("room");
        let mut barrier = comm.start_barrier();
        assert!(matches!(barrier.advance(), Ok(None)), "the other rank has not called barrier");
        let operation = keep_operation(barrier).expect("room");

        rank.finish(None, &mut Uninterruptible).expect("nothing is left to be sent");
        drop((rank, comm));
        free_comm(handle);
        assert!(gone.upgrade().is_none(), "something keeps the rank");

        let over = with_operation(operation, |operation| operation.advance().map(drop));
        assert!(matches!(over, Ok(Err(DeviceError::Finished { rank: 0 }))), "{over:?}");
        drop_operation(operation);
        let Request { comm, id, .. } = drop_request(request).expect("it is kept");
        let done = comm.test(id).expect("no error").expect("it is complete");
        let mut reader = ReadBuffer::new(private(), CAPACITY).expect("memory");
        reader.adopt(done.message.expect("a receive has one"));
        let mut values = [0; 3];
        reader.read(&mut values).expect("three numbers");
        assert_eq!(values, [1, 2, 3]);
    }
}
