//! Message memory in the heap: slabs by size class, reused last in first out, under one limit.

use std::any::Any;
use std::fmt;
#[cfg(not(loom))]
use std::io;
use std::sync::atomic::{AtomicU64 as Word, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use mpjdev_buffer::layout::{PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};
use mpjdev_buffer::{Slab, SlabError, SlabMemory, SlabSource};
use mpjdev_sys::memory::{LINE, Memory};
use mpjdev_sys::sync::{AtomicU64, LockRank, Mutex, MutexGuard};

/// Slabs of a class are kept for reuse up to this many octets in all classes together.
const KEPT_MAX: u64 = 256 << 20;
/// Least octets of a slab for which others are freed. Fresh memory for a shorter one costs less.
const LONG_LEN: u64 = 64 << 10;
/// Classes per doubling of the size, so that at most a fifth of a slab is wasted.
const STEPS: usize = 4;
/// Enough for slabs of 4 GiB; under the model checker, which counts each lock, for slabs of a few lines.
pub(crate) const CLASSES: usize = if cfg!(loom) { STEPS } else { 27 * STEPS };

/// Last resort of a pool before it fails: makes users free memory, and waits a little.
pub type Reclaim = fn();

/// Pool of slabs in the heap. All threads may take and return slabs.
pub struct HeapPool {
    this: Weak<HeapPool>,
    limit: AtomicU64,
    /// Octets of all slabs, in use or kept.
    total: AtomicU64,
    /// Octets of the slabs that are kept for reuse.
    kept: AtomicU64,
    /// Octets that another pool under the same limit has taken; part of `total`.
    elsewhere: AtomicU64,
    classes: [Mutex<Vec<Memory>>; CLASSES],
    reclaim: OnceLock<Reclaim>,
    make_room: OnceLock<Reclaim>,
}

impl fmt::Debug for HeapPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, kept) = (self.total.load(Relaxed), self.kept.load(Relaxed));
        write!(f, "HeapPool({total} octets, {kept} of them kept, limit {})", self.limit.load(Relaxed))
    }
}

/// Octets at the start of the memory that no message uses. After them a message's two first headers end at a
/// multiple of 64, where the data of its first section then begin. Copies run faster when their destination
/// is aligned.
pub(crate) const LEAD: usize = LINE - PRIMARY_HEADER_LEN - SECTION_HEADER_LEN;

/// A slab of the pool. It returns there when the last reference is dropped.
#[derive(Debug)]
struct HeapSlab {
    memory: Option<Memory>,
    pool: Weak<HeapPool>,
}

impl SlabMemory for HeapSlab {
    #[inline]
    fn words(&self) -> &[Word] {
        match &self.memory {
            Some(memory) => &memory.words()[LEAD / 8..],
            None => &[],
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn packed(&self) -> Option<&Word> {
        self.memory.as_ref()?.words().first()
    }

    /// The pool may free it, or reuse it.
    fn hold(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.memory.as_ref()?.run())
    }
}

impl Drop for HeapSlab {
    fn drop(&mut self) {
        if let (Some(memory), Some(pool)) = (self.memory.take(), self.pool.upgrade()) {
            pool.give_back(memory);
        }
    }
}

impl HeapPool {
    /// A pool that hands out at most `limit` octets at a time.
    pub fn new(limit: u64) -> Arc<HeapPool> {
        Arc::new_cyclic(|this| HeapPool {
            this: this.clone(),
            limit: AtomicU64::new(limit),
            total: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            elsewhere: AtomicU64::new(0),
            classes: std::array::from_fn(|_| Mutex::new(LockRank::Leaf, Vec::new())),
            reclaim: OnceLock::new(),
            make_room: OnceLock::new(),
        })
    }

    /// The limit.
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Changes the limit. Memory in use stays in use.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Relaxed);
    }

    /// Sets the last resort before a failure. The first call wins.
    pub fn set_reclaim(&self, reclaim: Reclaim) {
        let _ = self.reclaim.set(reclaim);
    }

    /// Sets the last resort when the system has no descriptor or no address space left. The first call wins.
    pub fn set_make_room(&self, make_room: Reclaim) {
        let _ = self.make_room.set(make_room);
    }

    /// Runs an attempt that may need descriptors or memory of the system. If it finds none, users free some,
    /// and the attempt is repeated once.
    ///
    /// # Errors
    /// Those of the second attempt.
    #[cfg(not(loom))]
    pub fn reclaiming<T>(&self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let first = attempt();
        if first.as_ref().is_err_and(crate::room::is_missing) {
            self.ask_for_room();
            return attempt();
        }
        first
    }

    /// Makes users free unused descriptors and address space.
    #[cfg(not(loom))]
    pub fn ask_for_room(&self) {
        if let Some(make_room) = self.make_room.get() {
            make_room();
        }
    }

    /// Octets in use, without those that are kept for reuse.
    pub fn used(&self) -> u64 {
        let unused = self.kept.load(Relaxed) + self.elsewhere.load(Relaxed);
        self.total.load(Relaxed).saturating_sub(unused)
    }

    /// Reserves memory that another pool takes under the same limit. Returns false if that would exceed the
    /// limit.
    pub fn reserve_elsewhere(&self, len: u64) -> bool {
        if !self.reserve(len) {
            self.trim();
            if !self.reserve(len) {
                return false;
            }
        }
        self.elsewhere.fetch_add(len, Relaxed);
        true
    }

    /// Releases memory that the other pool has freed.
    pub fn release_elsewhere(&self, len: u64) {
        self.elsewhere.fetch_sub(len, Relaxed);
        self.total.fetch_sub(len, Relaxed);
    }

    /// Octets of all slabs, in use or kept for reuse.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    fn class(&self, class: usize) -> MutexGuard<'_, Vec<Memory>> {
        self.classes[class].lock()
    }

    fn reuse(&self, class: usize) -> Option<Memory> {
        let memory = self.class(class).pop()?;
        self.kept.fetch_sub(memory.len() as u64, Relaxed);
        Some(memory)
    }

    fn give_back(&self, memory: Memory) {
        let len = memory.len() as u64;
        let class = class_of(memory.len()).0;
        let kept = self.kept.fetch_add(len, Relaxed) + len;
        if kept > KEPT_MAX && (LONG_LEN..=KEPT_MAX).contains(&len) {
            self.free_others(class);
        }
        if self.kept.load(Relaxed) > KEPT_MAX || self.total.load(Relaxed) > self.limit.load(Relaxed) {
            self.kept.fetch_sub(len, Relaxed);
            self.total.fetch_sub(len, Relaxed);
            return;
        }
        self.class(class).push(memory);
    }

    /// Frees kept slabs of other classes, from the longest on, until a slab of this class can be kept. The
    /// program has just used that one, and may not need the others.
    #[cold]
    fn free_others(&self, class: usize) {
        for other in (0..CLASSES).rev().filter(|other| *other != class) {
            while self.kept.load(Relaxed) > KEPT_MAX
                && let Some(memory) = self.reuse(other)
            {
                self.total.fetch_sub(memory.len() as u64, Relaxed);
            }
        }
    }

    /// Frees all slabs that are kept for reuse.
    pub fn trim(&self) {
        for class in 0..CLASSES {
            let kept = std::mem::take(&mut *self.class(class));
            let len: u64 = kept.iter().map(|m| m.len() as u64).sum();
            self.kept.fetch_sub(len, Relaxed);
            self.total.fetch_sub(len, Relaxed);
        }
    }

    fn reserve(&self, len: u64) -> bool {
        let limit = self.limit.load(Relaxed);
        // The sum never exceeds the real use, not even for a moment: another thread's request may just fit.
        let within = |total: u64| total.checked_add(len).filter(|sum| *sum <= limit);
        self.total.fetch_update(Relaxed, Relaxed, within).is_ok()
    }

    fn fresh(&self, len: usize) -> Result<Memory, SlabError> {
        Memory::zeroed(len).ok_or_else(|| {
            self.total.fetch_sub(len as u64, Relaxed);
            SlabError::System { asked: len as u64 }
        })
    }

    /// Slow path for an empty class near the limit: frees memory step by step.
    #[cold]
    fn take_slowly(&self, class: usize, len: usize) -> Result<Memory, SlabError> {
        let steps: [fn(&HeapPool); 3] = [
            |_| {},
            HeapPool::trim,
            |pool| {
                if let Some(reclaim) = pool.reclaim.get() {
                    reclaim();
                }
                pool.trim();
            },
        ];
        for make_room in steps {
            make_room(self);
            if let Some(memory) = self.reuse(class) {
                return Ok(memory);
            }
            if self.reserve(len as u64) {
                return self.fresh(len);
            }
        }
        Err(SlabError::Limit { asked: len as u64, used: self.used(), limit: self.limit.load(Relaxed) })
    }
}

impl HeapPool {
    fn slab(
        &self,
        octets: usize,
        get: impl FnOnce(usize, usize) -> Result<Memory, SlabError>,
    ) -> Result<Slab, SlabError> {
        let (class, len) = class_of(octets.saturating_add(LEAD));
        if class >= CLASSES {
            return Err(SlabError::System { asked: octets as u64 });
        }
        let memory = match self.reuse(class) {
            Some(memory) => memory,
            None => get(class, len)?,
        };
        Ok(Slab::private(HeapSlab { memory: Some(memory), pool: self.this.clone() }))
    }
}

impl SlabSource for HeapPool {
    fn used(&self) -> u64 {
        HeapPool::used(self)
    }

    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        self.slab(octets, |class, len| self.take_slowly(class, len))
    }

    fn take_arrived(&self, octets: usize) -> Result<Slab, SlabError> {
        self.slab(octets, |_, len| {
            self.total.fetch_add(len as u64, Relaxed);
            self.fresh(len)
        })
    }
}

/// Number and slab length of the class for this many octets: the length is a multiple of 64.
///
/// A class is a rounded size and one line more, so that a capacity that is a power of two, and the headers
/// beside it, do not fall into the next class.
pub(crate) fn class_of(octets: usize) -> (usize, usize) {
    let lines = octets.saturating_sub(LINE).div_ceil(LINE);
    if lines <= STEPS {
        return (lines, (lines + 1) * LINE);
    }
    // With `lines` in (2^k, 2^(k+1)], the steps are 2^k / 4 apart.
    let k = usize::BITS - 1 - (lines - 1).leading_zeros();
    let step = 1 << (k - STEPS.trailing_zeros());
    let number = (lines - (1 << k)).div_ceil(step);
    let class = STEPS + (k as usize - STEPS.trailing_zeros() as usize) * STEPS + number;
    (class, ((1 << k) + number * step + 1) * LINE)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slab_of_a_class_holds_its_octets_and_is_in_that_class() {
        let mut last = 0;
        for octets in (0..100_000).chain([1 << 20, (1 << 20) + 1, 1 << 26, (1 << 31) - 1]) {
            let (class, len) = class_of(octets);
            assert!(len >= octets && len % LINE == 0, "{octets}: {len}");
            assert!(len <= octets + octets / 4 + 64, "{octets} waste {len}");
            assert_eq!(class_of(len), (class, len), "{octets}");
            assert!(class >= last && class < CLASSES);
            last = class;
        }
    }

    #[test]
    fn power_of_two_with_headers_wastes_less_than_a_line() {
        for shift in 6..31 {
            let (_, len) = class_of((1 << shift) + 16 + LEAD);
            assert_eq!(len, (1 << shift) + 64);
        }
    }

    #[test]
    fn data_of_the_first_section_begin_at_a_line() {
        let pool = HeapPool::new(1 << 30);
        for octets in [16, 1000, 100_000, 10_000_000] {
            let slab = pool.take(octets).unwrap();
            assert!(slab.len() >= octets && slab.is_private());
            assert_eq!((slab.words().as_ptr() as usize + 16) % LINE, 0);
        }
    }

    #[test]
    fn returned_slab_is_taken_next() {
        let pool = HeapPool::new(1 << 20);
        let first = pool.take(1000).unwrap();
        let address = first.words().as_ptr();
        drop(first);
        assert_eq!(pool.take(1000).unwrap().words().as_ptr(), address);
    }

    #[test]
    fn slab_that_was_used_last_is_kept_in_place_of_others() {
        const MIB: usize = 1 << 20;
        let pool = HeapPool::new(1 << 40);
        drop((0..40).map(|_| pool.take(8 * MIB).unwrap()).collect::<Vec<_>>());
        let least = KEPT_MAX - 9 * MIB as u64;
        let kept = || {
            assert!((least..=KEPT_MAX).contains(&pool.total()), "{}", pool.total());
            pool.total()
        };
        kept();
        for octets in [32 * MIB, MIB, LONG_LEN as usize] {
            drop(pool.take(octets).unwrap());
            let before = kept();
            let slab = pool.take(octets).unwrap();
            assert_eq!(pool.total(), before, "it was kept");
            drop(slab);
        }
        let before = kept();
        drop(pool.take(300 * MIB).unwrap());
        assert_eq!(pool.total(), before, "one that exceeds the limit alone is not kept, and frees no others");
    }

    #[test]
    fn kept_slabs_are_freed_at_the_limit() {
        let pool = HeapPool::new(4 * 1088);
        let all: Vec<_> = (0..4).map(|_| pool.take(1024 + 16).unwrap()).collect();
        assert_eq!(pool.used(), 4 * 1088);
        assert_eq!(pool.take(1).unwrap_err(), SlabError::Limit { asked: 64, used: 4352, limit: 4352 });
        drop(all);
        assert_eq!(pool.used(), 0);
        assert_eq!(pool.take(4096 + 16).unwrap().len(), 4096 + 16);
    }

    #[test]
    fn pool_at_its_limit_reclaims_once_before_it_fails() {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        let pool = HeapPool::new(128);
        pool.set_reclaim(|| {
            ASKED.fetch_add(1, Relaxed);
        });
        let _held = pool.take(64).unwrap();
        assert!(pool.take(64).is_err(), "both take 128 with the lead");
        assert_eq!(ASKED.load(Relaxed), 1);
    }
}
