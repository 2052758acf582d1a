//! Message memory in a rank's own segment: slabs by size class, reused last in first out.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};

use mpjdev_buffer::{Slab, SlabError, SlabMemory, SlabSource};
use mpjdev_sys::segment::{Segment, allocate};
use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};

use super::layout::{HUGE, PAGE, RELEASED, peer as peer_at};
use crate::pool::{CLASSES, HeapPool, LEAD, class_of};

/// Least memory taken from the system at a time. The steps grow with the memory already taken, up to
/// [`STEP_MAX`].
const STEP: usize = 64 << 10;
const STEP_MAX: usize = 2 << 20;

/// Collects slabs that other ranks have returned, before memory is taken from the private pool.
pub(super) trait Reclaim: Send + Sync {
    /// Collects them.
    fn collect_returns(&self);
}

/// Pool of slabs in the segment. A message that finds no room in the segment gets private memory and is
/// copied when it is sent. One limit, that of the private pool, covers both.
pub struct SegmentPool {
    this: Weak<SegmentPool>,
    pub(super) segment: Segment,
    /// `None` once the pool is closed.
    file: Mutex<Option<OwnedFd>>,
    /// No slab is handed out and no memory is reused any more: other ranks may still read slabs on loan.
    is_closed: AtomicBool,
    space: Mutex<Space>,
    classes: [Mutex<Vec<Chunk>>; CLASSES],
    /// Octets of the segment's slabs in use.
    used: AtomicU64,
    private: Arc<HeapPool>,
    reclaim: OnceLock<Weak<dyn Reclaim>>,
}

/// The memory of the segment that is in no slab and in no class.
#[derive(Debug)]
struct Space {
    /// Memory from here on was never used, or is free up to the end of the segment.
    top: usize,
    /// Pages of slabs below this are allocated.
    taken: usize,
    /// Offset of the first slab.
    bottom: usize,
    /// Offset from which huge pages are requested.
    huge: usize,
    /// Unused parts below `top`, by offset. No two of them are adjacent.
    holes: BTreeMap<usize, usize>,
}

/// A part of the segment, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chunk {
    pub(super) offset: usize,
    pub(super) len: usize,
}

impl fmt::Debug for SegmentPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentPool({} octets)", self.segment.len())
    }
}

/// A slab of the segment. It returns to its class when the last reference is dropped.
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

    fn packed(&self) -> Option<&AtomicU64> {
        self.pool.segment.words().get(self.chunk.offset / 8)
    }

    /// The slab is reused for other messages, in the same mapping.
    fn hold(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.pool.clone())
    }
}

impl Drop for OwnSlab {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(self.chunk.len as u64, Relaxed);
        if self.pool.is_closed.load(Acquire) {
            return;
        }
        self.pool.class(class_of(self.chunk.len).0).push(self.chunk);
    }
}

impl Space {
    /// End of the allocation step that covers `end`. Steps grow.
    fn step_to(&self, end: usize) -> usize {
        let step = (self.taken - self.bottom).clamp(STEP, STEP_MAX);
        let to = end.next_multiple_of(PAGE).max(self.taken + step);
        if to > self.huge { to.next_multiple_of(HUGE) } else { to }
    }

    /// The first unused part that is long enough.
    fn take_hole(&mut self, len: usize) -> Option<Chunk> {
        let (offset, had) = self.holes.iter().find(|(_, had)| **had >= len).map(|(o, l)| (*o, *l))?;
        self.holes.remove(&offset);
        if had > len {
            self.holes.insert(offset + len, had - len);
        }
        Some(Chunk { offset, len })
    }

    /// Joins these parts with the unused ones. A part that ends at `top` lowers `top`.
    fn add_holes(&mut self, mut free: Vec<Chunk>) {
        free.extend(std::mem::take(&mut self.holes).into_iter().map(|(offset, len)| Chunk { offset, len }));
        free.sort_unstable();
        let mut joined: Vec<Chunk> = Vec::new();
        for chunk in free {
            match joined.last_mut() {
                Some(last) if last.offset + last.len == chunk.offset => last.len += chunk.len,
                _ => joined.push(chunk),
            }
        }
        if let Some(last) = joined.pop_if(|last| last.offset + last.len == self.top) {
            self.top = last.offset;
        }
        self.holes = joined.into_iter().map(|chunk| (chunk.offset, chunk.len)).collect();
    }
}

impl SegmentPool {
    /// Pool of the segment from `bottom` on, with huge pages, if granted, from `huge` on.
    pub(super) fn new(
        segment: Segment,
        file: OwnedFd,
        (bottom, huge): (usize, usize),
        private: Arc<HeapPool>,
    ) -> Arc<SegmentPool> {
        segment.advise_huge(huge);
        Arc::new_cyclic(|this| SegmentPool {
            this: this.clone(),
            segment,
            file: Mutex::new(LockRank::Leaf, Some(file)),
            is_closed: AtomicBool::new(false),
            space: Mutex::new(
                LockRank::SegmentSpace,
                Space { top: bottom, taken: bottom, bottom, huge, holes: BTreeMap::new() },
            ),
            classes: [const { Mutex::new(LockRank::Leaf, Vec::new()) }; CLASSES],
            used: AtomicU64::new(0),
            private,
            reclaim: OnceLock::new(),
        })
    }

    fn file(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.file.lock()
    }

    /// The file of the segment, for the other ranks.
    ///
    /// # Errors
    /// The system refuses; the pool is closed.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.file().as_ref().ok_or_else(|| io::Error::other("the memory of this rank is closed"))?.try_clone()
    }

    /// Allocates the pages of a part of the segment. A repeated call is harmless.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn claim(&self, offset: usize, len: usize) -> io::Result<()> {
        match &*self.file() {
            Some(file) => allocate(file.as_fd(), offset, len),
            None => self.segment.populate(None, offset, len),
        }
    }

    /// Closes the pool after the end of its rank. Later requests get private memory, and returned slabs are
    /// not reused. The mapping stays while a slab is held; the descriptor is closed.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Release);
        drop(self.file().take());
    }

    /// Publishes to a rank that this one reads none of its slabs any more.
    pub(super) fn release(&self, rank: u32) {
        self.segment.words()[peer_at(rank) + RELEASED].store(1, Release);
    }

    /// Sets the collector of slabs that other ranks have returned.
    pub(super) fn set_reclaim(&self, reclaim: Weak<dyn Reclaim>) {
        let _ = self.reclaim.set(reclaim);
    }

    fn class(&self, class: usize) -> MutexGuard<'_, Vec<Chunk>> {
        self.classes[class].lock()
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock()
    }

    /// A part of the segment that is in no class, with its pages allocated. `None` when there is no room, or
    /// at the limit.
    fn fresh(&self, len: usize) -> Option<Chunk> {
        let mut space = self.space();
        if let Some(chunk) = space.take_hole(len) {
            return Some(chunk);
        }
        let end = space.top.checked_add(len).filter(|end| *end <= self.segment.len())?;
        if end > space.taken {
            // The last step before the limit may be a short one.
            let steps = [space.step_to(end), end.next_multiple_of(PAGE)];
            let mut steps = steps.into_iter().map(|to| to.min(self.segment.len()) - space.taken);
            let more = steps.find(|more| self.private.reserve_elsewhere(*more as u64))?;
            if self.segment.populate(self.file().as_ref().map(AsFd::as_fd), space.taken, more).is_err() {
                self.private.release_elsewhere(more as u64);
                return None;
            }
            space.taken += more;
        }
        let chunk = Chunk { offset: space.top, len };
        space.top = end;
        Some(chunk)
    }

    /// Dissolves the unused slabs of all classes, so that their memory serves other sizes.
    #[cold]
    fn gather(&self) {
        let free = (0..CLASSES).flat_map(|class| std::mem::take(&mut *self.class(class))).collect();
        self.space().add_holes(free);
    }

    /// A slab of the segment; `None` when there is no room.
    pub fn own(&self, octets: usize) -> Option<Slab> {
        let (class, len) = class_of(octets.checked_add(LEAD)?);
        if class >= CLASSES || self.is_closed.load(Relaxed) {
            return None;
        }
        let kept = || self.class(class).pop();
        let chunk = kept().or_else(|| {
            self.collect_returns();
            kept().or_else(|| self.fresh(len))
        });
        let chunk = chunk.or_else(|| {
            self.gather();
            self.fresh(len)
        })?;
        let pool = self.this.upgrade()?;
        self.used.fetch_add(len as u64, Relaxed);
        Some(Slab::new(OwnSlab { chunk, pool }))
    }

    fn collect_returns(&self) {
        if let Some(reclaim) = self.reclaim.get().and_then(Weak::upgrade) {
            reclaim.collect_returns();
        }
    }
}

impl SlabSource for SegmentPool {
    /// Octets of the segment only. The private pool counts its own slabs.
    fn used(&self) -> u64 {
        self.collect_returns();
        self.used.load(Relaxed)
    }

    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        if let Some(slab) = self.own(octets) {
            return Ok(slab);
        }
        let first = self.private.take(octets);
        // The private pool may have caused users to free memory, that of the segment included.
        match first {
            Ok(slab) => Ok(slab),
            Err(SlabError::Limit { asked, used, limit }) => self
                .own(octets)
                .ok_or_else(|| SlabError::Limit { asked, used: used + self.used.load(Relaxed), limit }),
            Err(other) => Err(other),
        }
    }

    fn take_arrived(&self, octets: usize) -> Result<Slab, SlabError> {
        match self.own(octets) {
            Some(slab) => Ok(slab),
            None => self.private.take_arrived(octets),
        }
    }
}

/// Location of a slab in the segment of this pool; `None` for any other slab.
pub(super) fn place(slab: &Slab, pool: &SegmentPool) -> Option<Chunk> {
    let own: &OwnSlab = slab.memory().as_any().downcast_ref()?;
    std::ptr::eq(Arc::as_ptr(&own.pool), pool).then_some(own.chunk)
}

impl Drop for SegmentPool {
    fn drop(&mut self) {
        let space = self.space.get_mut();
        self.private.release_elsewhere((space.taken - space.bottom) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpjdev_sys::segment::Writers;

    fn pool(len: usize, limit: u64) -> (Arc<SegmentPool>, Arc<HeapPool>) {
        let private = HeapPool::new(limit);
        let (segment, file) = Segment::create("test", len, Writers::Owner).expect("memory");
        (SegmentPool::new(segment, file, (PAGE, HUGE), private.clone()), private)
    }

    #[test]
    fn unused_slabs_of_one_size_become_slabs_of_another() {
        let (pool, _) = pool((1 << 20) + PAGE, 1 << 30);
        for octets in [100, 5000, 900_000, 100, 60_000, 300_000] {
            let mut all = Vec::new();
            while let Some(slab) = pool.own(octets) {
                all.push(slab);
            }
            let in_use: usize = all.iter().map(Slab::len).sum();
            assert!(in_use > (1 << 20) / 2, "{in_use} octets of a MiB in slabs of {octets}");
        }
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn no_two_slabs_share_an_octet_whatever_their_sizes() {
        let (pool, _) = pool((256 << 10) + PAGE, 1 << 30);
        let mut seed = 1u64;
        let mut held: Vec<(Slab, u64)> = Vec::new();
        for step in 1..20_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if seed >> 63 == 0
                && let Some(slab) = pool.own((seed >> 33) as usize % (40 << 10))
            {
                slab.words().iter().for_each(|word| word.store(step, Relaxed));
                held.push((slab, step));
            } else if !held.is_empty() {
                let (slab, mark) = held.swap_remove((seed >> 33) as usize % held.len());
                assert!(slab.words().iter().all(|word| word.load(Relaxed) == mark));
            }
        }
    }

    #[test]
    fn one_limit_holds_for_the_segment_and_for_private_memory() {
        let (pool, private) = pool(64 << 20, 1 << 20);
        let slabs: Vec<_> = (0..3).map(|_| pool.take(300 << 10).expect("within the limit")).collect();
        assert!(slabs.iter().all(|slab| place(slab, &pool).is_some()));
        let error = pool.take(300 << 10).expect_err("past the limit");
        assert!(
            matches!(error, SlabError::Limit { limit: 0x10_0000, used, .. } if used >= 900 << 10),
            "{error}"
        );
        assert!(private.take(300 << 10).is_err(), "the private pool counts the segment");
        drop(slabs);
        pool.take(860 << 10).expect("the three, joined");
        drop(pool);
        private.take(700 << 10).expect("the segment was dropped");
    }
}
