//! Message memory in a rank's own segment: slabs by size class, reused last in first out.

use std::any::Any;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use mpjdev_buffer::{Slab, SlabError, SlabMemory, SlabSource};
use mpjdev_sys::segment::{Segment, allocate};

use super::layout::PAGE;
use crate::pool::{CLASSES, LEAD, class_of};

/// Memory is taken from the system so much at a time at least.
const STEP: usize = 64 << 10;

/// What may be done for memory before the private pool is asked: takes back slabs that other ranks have returned.
pub(super) trait Reclaim: Send + Sync {
    /// Does it.
    fn take_back(&self);
}

/// The pool. Past the end of the segment it gives private memory, whose messages are copied when they are sent.
pub struct SegmentPool {
    this: Weak<SegmentPool>,
    pub(super) segment: Segment,
    file: OwnedFd,
    space: Mutex<Space>,
    classes: [Mutex<Vec<Chunk>>; CLASSES],
    /// Octets of the segment's slabs in use.
    used: AtomicU64,
    private: Arc<dyn SlabSource>,
    reclaim: OnceLock<Weak<dyn Reclaim>>,
}

/// What of the segment was never used.
#[derive(Debug)]
struct Space {
    top: usize,
    /// Pages below this are taken.
    taken: usize,
}

/// A part of the segment, in octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) offset: usize,
    pub(super) len: usize,
}

impl fmt::Debug for SegmentPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentPool({} octets)", self.segment.len())
    }
}

/// A slab of the segment; goes back to its class when the last reference goes.
#[derive(Debug)]
pub(super) struct OwnSlab {
    pub(super) chunk: Chunk,
    pool: Arc<SegmentPool>,
}

impl SlabMemory for OwnSlab {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        let Chunk { offset, len } = self.chunk;
        &self.pool.segment.words()[(offset + LEAD) / 8..(offset + len) / 8]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for OwnSlab {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(self.chunk.len as u64, Relaxed);
        self.pool.class(class_of(self.chunk.len).0).push(self.chunk);
    }
}

impl SegmentPool {
    /// A pool of the segment behind its tables.
    pub(super) fn new(
        segment: Segment,
        file: OwnedFd,
        tables_len: usize,
        private: Arc<dyn SlabSource>,
    ) -> Arc<SegmentPool> {
        Arc::new_cyclic(|this| SegmentPool {
            this: this.clone(),
            segment,
            file,
            space: Mutex::new(Space { top: tables_len, taken: tables_len }),
            classes: [const { Mutex::new(Vec::new()) }; CLASSES],
            used: AtomicU64::new(0),
            private,
            reclaim: OnceLock::new(),
        })
    }

    /// The segment's file, for the other ranks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn share(&self) -> std::io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// Says who takes back the slabs that other ranks have returned.
    pub(super) fn set_reclaim(&self, reclaim: Weak<dyn Reclaim>) {
        let _ = self.reclaim.set(reclaim);
    }

    fn class(&self, class: usize) -> std::sync::MutexGuard<'_, Vec<Chunk>> {
        self.classes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part of the segment that was never used, whose pages are taken; none when there is no room or no memory.
    pub(super) fn fresh(&self, len: usize) -> Option<Chunk> {
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let end = space.top.checked_add(len).filter(|end| *end <= self.segment.len())?;
        if end > space.taken {
            let more = (end - space.taken).max(STEP).next_multiple_of(PAGE);
            let more = more.min(self.segment.len() - space.taken);
            allocate(self.file.as_fd(), space.taken, more).ok()?;
            space.taken += more;
        }
        let chunk = Chunk { offset: space.top, len };
        space.top = end;
        Some(chunk)
    }

    /// A slab of the segment; none when there is no room.
    pub(super) fn own(&self, octets: usize) -> Option<Slab> {
        let (class, len) = class_of(octets.checked_add(LEAD)?);
        if class >= CLASSES {
            return None;
        }
        let kept = || self.class(class).pop();
        let chunk = kept().or_else(|| {
            self.take_back();
            kept().or_else(|| self.fresh(len))
        })?;
        let pool = self.this.upgrade()?;
        self.used.fetch_add(len as u64, Relaxed);
        Some(Slab::new(OwnSlab { chunk, pool }))
    }

    fn take_back(&self) {
        if let Some(reclaim) = self.reclaim.get().and_then(Weak::upgrade) {
            reclaim.take_back();
        }
    }
}

impl SlabSource for SegmentPool {
    /// Those of the segment; the private ones are counted where they come from.
    fn used(&self) -> u64 {
        self.take_back();
        self.used.load(Relaxed)
    }

    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        match self.own(octets) {
            Some(slab) => Ok(slab),
            None => self.private.take(octets),
        }
    }

    fn take_arrived(&self, octets: usize) -> Result<Slab, SlabError> {
        match self.own(octets) {
            Some(slab) => Ok(slab),
            None => self.private.take_arrived(octets),
        }
    }
}

/// The place in the segment of a slab that is this pool's; none for any other one.
pub(super) fn place(slab: &Slab, pool: &SegmentPool) -> Option<Chunk> {
    let own: &OwnSlab = slab.memory().as_any().downcast_ref()?;
    std::ptr::eq(Arc::as_ptr(&own.pool), pool).then_some(own.chunk)
}
