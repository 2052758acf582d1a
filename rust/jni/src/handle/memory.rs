//! The memory that messages are made in: the heap, or what the process's rank shares with other processes.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock, Weak};

use mpjdev_buffer::{Slab, SlabError, SlabSource, WriteBuffer};
use mpjdev_engine::PacketEngine;
use mpjdev_engine::lock_order::{LockRank, Mutex, MutexGuard};
use mpjdev_engine::pool::HeapPool;

/// The heap pool of buffers.
pub(crate) fn pool() -> &'static Arc<HeapPool> {
    static POOL: OnceLock<Arc<HeapPool>> = OnceLock::new();
    POOL.get_or_init(|| HeapPool::new(u64::MAX))
}

/// The pool as a source of slabs.
pub(crate) fn private() -> Arc<dyn SlabSource> {
    pool().clone()
}

/// The memory of the messages of this process's rank, and the rank, until it has finished.
type Shared = Option<(Arc<dyn SlabSource>, Weak<PacketEngine>)>;

static SHARED: Mutex<Shared> = Mutex::new(LockRank::Leaf, None);

/// Whether other processes see that memory: one octet, on the path of every message.
pub(super) static IS_SHARED: AtomicBool = AtomicBool::new(false);

/// Count of changes of the memory that messages take.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// Makes messages take memory from `source` until this rank has finished.
pub(super) fn share(source: Arc<dyn SlabSource>, rank: &Arc<PacketEngine>) {
    change(Some((source, Arc::downgrade(rank))));
}

/// Stops the use of a finished rank's memory by new messages. Existing messages keep theirs.
pub(super) fn unshare(rank: &Arc<PacketEngine>) {
    let is_its = matches!(&*shared(), Some((_, owner)) if owner.as_ptr() == Arc::as_ptr(rank));
    if is_its {
        change(None);
    }
}

/// The rank of this process, unless it has finished.
pub(crate) fn process_rank() -> Option<Arc<PacketEngine>> {
    shared().as_ref().and_then(|(_, rank)| rank.upgrade())
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock()
}

/// Whether a source is the heap pool, whose memory no other process sees. A rank that is connected by a
/// network alone has no other memory.
fn is_private(source: &Arc<dyn SlabSource>) -> bool {
    ptr::addr_eq(Arc::as_ptr(source), Arc::as_ptr(pool()))
}

fn change(to: Shared) {
    let mut shared = shared();
    IS_SHARED.store(to.as_ref().is_some_and(|(source, _)| !is_private(source)), Relaxed);
    // Dropped after the lock is released: it may be the last reference to much memory.
    let before = std::mem::replace(&mut *shared, to);
    CHANGES.fetch_add(1, Release);
    drop(shared);
    drop(before);
}

/// Empties a buffer. It releases memory from before this process became this rank, or from a time when shared
/// memory was used up: its messages would be copied at each send, and the shared memory of an earlier rank
/// would be kept.
#[inline(always)]
pub(crate) fn clear(writer: &mut WriteBuffer) {
    writer.clear_keeping(IS_SHARED.load(Relaxed), session());
}

/// The number of the process's current rank, different after each change.
#[inline(always)]
pub(crate) fn session() -> u32 {
    CHANGES.load(Relaxed)
}

/// The source of memory at the moment of use: a buffer may be older than the rank.
#[derive(Debug, Default)]
pub(super) struct Current {
    /// The first sources that the buffer took memory from, each with the count of changes at that time;
    /// further ones are looked up each time. A buffer has a second one if its process becomes a rank later.
    /// An unused buffer keeps no rank's memory.
    known: [OnceLock<(u32, Weak<dyn SlabSource>)>; 2],
}

impl Current {
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&dyn SlabSource) -> R) -> R {
        let now = CHANGES.load(Acquire);
        for known in &self.known {
            match known.get() {
                Some((then, source)) if *then == now => match source.upgrade() {
                    Some(source) => return f(&*source),
                    None => break,
                },
                Some(_) => {}
                None => break,
            }
        }
        self.with_another(now, f)
    }

    #[cold]
    fn with_another<R>(&self, now: u32, f: impl FnOnce(&dyn SlabSource) -> R) -> R {
        let source = shared().as_ref().map(|(source, _)| source.clone()).unwrap_or_else(private);
        if let Some(free) = self.known.iter().find(|known| known.get().is_none()) {
            // An outdated count only leads here again.
            let _ = free.set((now, Arc::downgrade(&source)));
        }
        f(&*source)
    }
}

impl SlabSource for Current {
    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        self.with(|source| source.take(octets))
    }

    fn take_arrived(&self, octets: usize) -> Result<Slab, SlabError> {
        self.with(|source| source.take_arrived(octets))
    }

    fn used(&self) -> u64 {
        self.with(|source| source.used())
    }
}

/// The source of a buffer's slabs.
pub(crate) fn source() -> Arc<dyn SlabSource> {
    Arc::new(Current::default())
}
