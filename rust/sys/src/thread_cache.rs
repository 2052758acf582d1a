//! Per-thread cached values that any thread may take from all threads.
//!
//! A cached reference spares a thread the shared lookup. But a thread that idles would keep the referent
//! alive for as long as it idles. So the owner uses a cached value between two plain stores, and the thread
//! that takes it pays for both sides: it makes every processor that runs this process pass a barrier
//! (`membarrier`). Where the system has none, both sides use fences.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::barrier;
use crate::sync::{Arc, AtomicBool, AtomicU64, LockRank, Mutex, UnsafeCell, fence};

/// The slot of one thread.
///
/// Aligned so that two threads never write to one cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<T> {
    /// Key of the value; 0 without a value.
    key: AtomicU64,
    /// The owner uses the value.
    is_busy: AtomicBool,
    /// Another thread wants to take the value. Changed only under the lock of all slots.
    is_wanted: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is accessed by the owner between storing `is_busy` and clearing it, if it has found
// `is_wanted` clear; and by the thread that holds the lock of all slots, has stored `is_wanted`, and has then
// found `is_busy` clear. Both have a fence between the store and the load, so at least one of them sees the
// other. So T moves between threads but is never shared.
unsafe impl<T: Send> Sync for Slot<T> {}

/// The values of one kind of all threads.
#[derive(Debug)]
pub struct ThreadCaches<T> {
    slots: Mutex<Vec<Arc<Slot<T>>>>,
}

/// The cached value of one thread.
#[derive(Debug)]
pub struct ThreadCache<'a, T> {
    all: &'a ThreadCaches<T>,
    /// Set from the first value on.
    slot: std::cell::OnceCell<Arc<Slot<T>>>,
}

impl<T> Default for ThreadCaches<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ThreadCaches<T> {
    /// A cache without values.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        ThreadCaches { slots: Mutex::new(LockRank::Leaf, Vec::new()) }
    }

    /// A cache without values.
    #[cfg(loom)]
    pub fn new() -> Self {
        ThreadCaches { slots: Mutex::new(LockRank::Leaf, Vec::new()) }
    }

    fn slot(&self) -> Arc<Slot<T>> {
        barrier::prepare();
        let slot = Arc::new(Slot {
            key: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        });
        self.slots.lock().push(slot.clone());
        slot
    }

    /// Drops the values with these keys. A value in use is dropped by its thread after the use.
    ///
    /// No value is left if the caller removes the original first, and if every [store](ThreadCache::store) is
    /// followed by a check for the original.
    pub fn take(&self, is_its: impl Fn(u64) -> bool) {
        let slots = self.slots.lock();
        fence(SeqCst);
        let wanted: Vec<_> = slots.iter().filter(|slot| is_its(slot.key.load(Relaxed))).collect();
        if wanted.is_empty() {
            return;
        }
        wanted.iter().for_each(|slot| slot.is_wanted.store(true, Relaxed));
        if !barrier::heavy() {
            return;
        }
        let idle = wanted.into_iter().filter(|slot| !slot.is_busy.load(Acquire));
        let taken: Vec<_> = idle.filter_map(|slot| slot.take_wanted()).collect();
        drop(slots);
        drop(taken);
    }
}

impl<T> Slot<T> {
    /// Takes the value for the thread that wants it. The caller holds the lock of all slots, and the owner
    /// does not use the value.
    fn take_wanted(&self) -> Option<T> {
        // SAFETY: as for `Sync`.
        let value = self.value.with_mut(|value| unsafe { (*value).take() });
        self.key.store(0, Relaxed);
        self.is_wanted.store(false, Release);
        value
    }
}

impl<'a, T> ThreadCache<'a, T> {
    /// An empty cache of the calling thread.
    pub const fn new(all: &'a ThreadCaches<T>) -> Self {
        ThreadCache { all, slot: std::cell::OnceCell::new() }
    }

    /// The value, if it has this key and no other thread wants it, for the lifetime of the guard.
    #[inline(always)]
    pub fn with_key(&self, key: u64) -> Option<CacheGuard<'_, T>> {
        let slot = &**self.slot.get()?;
        if slot.key.load(Relaxed) != key {
            return None;
        }
        self.begin(slot).filter(CacheGuard::has_value)
    }

    /// Caches a value under this key instead of the one before. A fence separates it from the caller's later
    /// loads.
    pub fn store(&self, key: u64, value: T) {
        let slot = self.slot.get_or_init(|| self.all.slot());
        if let Some(guard) = self.begin(slot) {
            // SAFETY: as for `Sync`; the guard has given no reference.
            let before = slot.value.with_mut(|slot| unsafe { (*slot).replace(value) });
            slot.key.store(key, Relaxed);
            drop(guard);
            drop(before);
        }
        fence(SeqCst);
    }

    /// Drops the value.
    pub fn forget(&self) {
        if let Some(slot) = self.slot.get()
            && let Some(guard) = self.begin(slot)
        {
            // SAFETY: as for `Sync`; the guard has given no reference.
            let before = slot.value.with_mut(|slot| unsafe { (*slot).take() });
            slot.key.store(0, Relaxed);
            drop(guard);
            drop(before);
        }
    }

    /// Begins to use the value. `None` while it is in use further up the stack, or while another thread wants
    /// it.
    #[inline(always)]
    fn begin<'b>(&self, slot: &'b Slot<T>) -> Option<CacheGuard<'b, T>>
    where
        'a: 'b,
    {
        if slot.is_busy.load(Relaxed) {
            return None;
        }
        slot.is_busy.store(true, Relaxed);
        barrier::light();
        let guard = CacheGuard { all: self.all, slot };
        if slot.is_wanted.load(Acquire) { None } else { Some(guard) }
    }
}

impl<T> Drop for ThreadCache<'_, T> {
    fn drop(&mut self) {
        let Some(own) = self.slot.get() else { return };
        let mut slots = self.all.slots.lock();
        slots.retain(|slot| !Arc::ptr_eq(slot, own));
    }
}

/// Guard of an owner that uses its value.
#[derive(Debug)]
pub struct CacheGuard<'a, T> {
    all: &'a ThreadCaches<T>,
    slot: &'a Slot<T>,
}

impl<T> std::ops::Deref for CacheGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as for `Sync`; no thread changes the value during the lifetime of this guard.
        let value = self.slot.value.with_mut(|value| unsafe { (*value).as_ref() });
        value.expect("a guard that is given out has a value")
    }
}

impl<T> CacheGuard<'_, T> {
    #[inline(always)]
    fn has_value(&self) -> bool {
        // SAFETY: as for `Sync`.
        self.slot.value.with_mut(|value| unsafe { (*value).is_some() })
    }

    #[cold]
    fn drop_wanted(&self) {
        let slots = self.all.slots.lock();
        // The thread that wants the value may have taken it by now.
        let taken = if self.slot.is_wanted.load(Relaxed) { self.slot.take_wanted() } else { None };
        drop(slots);
        drop(taken);
    }
}

impl<T> Drop for CacheGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.is_busy.store(false, Release);
        barrier::light();
        if self.slot.is_wanted.load(Relaxed) {
            self.drop_wanted();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn value_is_found_under_its_key_only() {
        let all = ThreadCaches::new();
        let own = ThreadCache::new(&all);
        let seen = |key| own.with_key(key).map(|value| *value);
        assert_eq!(seen(1), None, "empty");
        own.store(1, 7);
        assert_eq!((seen(1), seen(2)), (Some(7), None));
        own.store(2, 8);
        assert_eq!((seen(1), seen(2)), (None, Some(8)));
        own.forget();
        assert_eq!(seen(2), None);
    }

    #[test]
    fn take_drops_the_values_of_idle_threads() {
        let all = ThreadCaches::new();
        let shared = Arc::new(());
        let (kept, idle) = (std::sync::Barrier::new(4), std::sync::Barrier::new(4));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (all, shared, kept, idle) = (&all, shared.clone(), &kept, &idle);
                scope.spawn(move || {
                    let own = ThreadCache::new(all);
                    own.store(1 + thread / 2, shared);
                    kept.wait();
                    idle.wait();
                });
            }
            kept.wait();
            all.take(|key| key == 1);
            assert_eq!(Arc::strong_count(&shared), 2, "its own, and the one under another key");
            idle.wait();
        });
    }

    #[test]
    fn value_in_use_is_dropped_when_its_guard_is_dropped() {
        let all = ThreadCaches::new();
        let shared = Arc::new(());
        let own = ThreadCache::new(&all);
        own.store(1, shared.clone());
        let guard = own.with_key(1).expect("stored");
        std::thread::scope(|scope| {
            scope.spawn(|| all.take(|key| key == 1));
        });
        assert_eq!(Arc::strong_count(&guard), 2, "it is in use");
        drop(guard);
        assert_eq!(Arc::strong_count(&shared), 1);
        own.store(2, shared.clone());
        assert!(own.with_key(2).is_some(), "the slot is used again");
    }

    #[test]
    fn nested_use_finds_nothing() {
        let all = ThreadCaches::new();
        let own = ThreadCache::new(&all);
        own.store(1, 7);
        let _guard = own.with_key(1).expect("stored");
        assert!(own.with_key(1).is_none());
    }

    #[test]
    fn ended_threads_leave_no_slot() {
        let all: ThreadCaches<u32> = ThreadCaches::new();
        for _ in 0..10 {
            std::thread::scope(|scope| {
                scope.spawn(|| ThreadCache::new(&all).store(1, 1));
            });
        }
        assert!(all.slots.lock().is_empty());
    }
}
