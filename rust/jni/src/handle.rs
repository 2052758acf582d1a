//! What Java's handles stand for.

use std::sync::{Arc, OnceLock};

use mpjdev_buffer::{ReadBuffer, SlabSource, WriteBuffer};
use mpjdev_device::handles::{Held, Slots};
use mpjdev_device::pool::HeapPool;

use crate::error::Failure;

/// A buffer that Java holds.
#[derive(Debug)]
pub(crate) enum Buffer {
    Write(WriteBuffer),
    Read(ReadBuffer),
}

static BUFFERS: Slots<Buffer> = Slots::new();

/// Keeps a buffer for Java and gives its handle.
pub(crate) fn keep(buffer: Buffer) -> Result<i64, Failure> {
    BUFFERS.insert(buffer).map_err(|(_, refused)| Failure::handle("buffer")(refused))
}

/// Takes a buffer for the duration of one call.
#[inline(always)]
pub(crate) fn hold(handle: i64) -> Result<Held<'static, Buffer>, Failure> {
    BUFFERS.hold(handle).map_err(Failure::handle("buffer"))
}

/// Removes a buffer; a second time is no error.
pub(crate) fn close(handle: i64) {
    // Stale: closed before, which is what the caller wants.
    let _ = BUFFERS.remove(handle);
}

/// Number of buffers that are not closed.
pub(crate) fn open_buffers() -> usize {
    BUFFERS.len()
}

/// The heap pool that buffers take their memory from.
pub(crate) fn pool() -> &'static Arc<HeapPool> {
    static POOL: OnceLock<Arc<HeapPool>> = OnceLock::new();
    POOL.get_or_init(|| HeapPool::new(u64::MAX))
}

/// The pool as a source of slabs.
pub(crate) fn source() -> Arc<dyn SlabSource> {
    pool().clone()
}
