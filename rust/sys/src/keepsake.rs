//! Per-thread cached values that any thread may take from all threads.
//!
//! A cached reference spares a thread the shared look-up. But a thread that idles would keep the referent
//! alive for as long as it idles. So the owner uses a cached value between two plain stores, and the thread
//! that takes it pays for both sides: it makes every processor that runs this process pass a barrier
//! (`membarrier`). Where the system has none, both sides use fences.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, UnsafeCell, fence};

/// The slot of one thread.
///
/// Aligned so that two threads never write to one cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Place<T> {
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
unsafe impl<T: Send> Sync for Place<T> {}

/// The values of one kind of all threads.
#[derive(Debug)]
pub struct Keepsakes<T> {
    places: Mutex<Vec<Arc<Place<T>>>>,
}

/// The cached value of one thread.
#[derive(Debug)]
pub struct Keepsake<'a, T> {
    all: &'a Keepsakes<T>,
    /// Set from the first value on.
    place: std::cell::OnceCell<Arc<Place<T>>>,
}

impl<T> Default for Keepsakes<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Keepsakes<T> {
    /// A cache without values.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Keepsakes { places: Mutex::new(Vec::new()) }
    }

    /// A cache without values.
    #[cfg(loom)]
    pub fn new() -> Self {
        Keepsakes { places: Mutex::new(Vec::new()) }
    }

    fn place(&self) -> Arc<Place<T>> {
        barrier::prepare();
        let place = Arc::new(Place {
            key: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        });
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(place.clone());
        place
    }

    /// Drops the values with these keys. A value in use is dropped by its thread after the use.
    ///
    /// No value is left if the caller removes the original first, and if every [keep](Keepsake::keep) is
    /// followed by a check for the original.
    pub fn take(&self, is_its: impl Fn(u64) -> bool) {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        fence(SeqCst);
        let wanted: Vec<_> = places.iter().filter(|place| is_its(place.key.load(Relaxed))).collect();
        if wanted.is_empty() {
            return;
        }
        wanted.iter().for_each(|place| place.is_wanted.store(true, Relaxed));
        if !barrier::heavy() {
            return;
        }
        let idle = wanted.into_iter().filter(|place| !place.is_busy.load(Acquire));
        let taken: Vec<_> = idle.filter_map(|place| place.take_wanted()).collect();
        drop(places);
        drop(taken);
    }
}

impl<T> Place<T> {
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

impl<'a, T> Keepsake<'a, T> {
    /// An empty cache of the calling thread.
    pub const fn new(all: &'a Keepsakes<T>) -> Self {
        Keepsake { all, place: std::cell::OnceCell::new() }
    }

    /// The value, if it has this key and no other thread wants it, for the lifetime of the guard.
    #[inline(always)]
    pub fn with_key(&self, key: u64) -> Option<Using<'_, T>> {
        let place = &**self.place.get()?;
        if place.key.load(Relaxed) != key {
            return None;
        }
        self.begin(place).filter(Using::has_value)
    }

    /// Caches a value under this key instead of the one before. A fence separates it from the caller's later
    /// loads.
    pub fn keep(&self, key: u64, value: T) {
        let place = self.place.get_or_init(|| self.all.place());
        if let Some(using) = self.begin(place) {
            // SAFETY: as for `Sync`; the guard has given no reference.
            let before = place.value.with_mut(|place| unsafe { (*place).replace(value) });
            place.key.store(key, Relaxed);
            drop(using);
            drop(before);
        }
        fence(SeqCst);
    }

    /// Drops the value.
    pub fn forget(&self) {
        if let Some(place) = self.place.get()
            && let Some(using) = self.begin(place)
        {
            // SAFETY: as for `Sync`; the guard has given no reference.
            let before = place.value.with_mut(|place| unsafe { (*place).take() });
            place.key.store(0, Relaxed);
            drop(using);
            drop(before);
        }
    }

    /// Begins to use the value. `None` while it is in use further up the stack, or while another thread wants
    /// it.
    #[inline(always)]
    fn begin<'b>(&self, place: &'b Place<T>) -> Option<Using<'b, T>>
    where
        'a: 'b,
    {
        if place.is_busy.load(Relaxed) {
            return None;
        }
        place.is_busy.store(true, Relaxed);
        barrier::light();
        let using = Using { all: self.all, place };
        if place.is_wanted.load(Acquire) { None } else { Some(using) }
    }
}

impl<T> Drop for Keepsake<'_, T> {
    fn drop(&mut self) {
        let Some(own) = self.place.get() else { return };
        let mut places = self.all.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| !Arc::ptr_eq(place, own));
    }
}

/// Guard of an owner that uses its value.
#[derive(Debug)]
pub struct Using<'a, T> {
    all: &'a Keepsakes<T>,
    place: &'a Place<T>,
}

impl<T> std::ops::Deref for Using<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as for `Sync`; no thread changes the value during the lifetime of this guard.
        let value = self.place.value.with_mut(|value| unsafe { (*value).as_ref() });
        value.expect("a guard that is given out has a value")
    }
}

impl<T> Using<'_, T> {
    #[inline(always)]
    fn has_value(&self) -> bool {
        // SAFETY: as for `Sync`.
        self.place.value.with_mut(|value| unsafe { (*value).is_some() })
    }

    #[cold]
    fn give_up(&self) {
        let places = self.all.places.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread that wants the value may have taken it by now.
        let taken = if self.place.is_wanted.load(Relaxed) { self.place.take_wanted() } else { None };
        drop(places);
        drop(taken);
    }
}

impl<T> Drop for Using<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.is_busy.store(false, Release);
        barrier::light();
        if self.place.is_wanted.load(Relaxed) {
            self.give_up();
        }
    }
}

/// Asymmetric barrier: one side costs nothing, the other one a system call.
mod barrier {
    #[cfg(not(loom))]
    use std::sync::atomic::AtomicBool;
    #[cfg(not(loom))]
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::Ordering::SeqCst;

    use crate::sync::fence;

    /// The system makes all processors pass a barrier. False until that is known: a superfluous fence is
    /// harmless.
    #[cfg(not(loom))]
    static IS_ASYMMETRIC: AtomicBool = AtomicBool::new(false);

    /// Asks the system, once.
    pub(super) fn prepare() {
        #[cfg(not(loom))]
        {
            use rustix::thread::{MembarrierCommand, membarrier};
            static ASKED: std::sync::Once = std::sync::Once::new();
            ASKED.call_once(|| {
                let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
                IS_ASYMMETRIC.store(registered, SeqCst);
            });
        }
    }

    /// The side of an owner.
    #[inline(always)]
    pub(super) fn light() {
        #[cfg(not(loom))]
        if IS_ASYMMETRIC.load(Relaxed) {
            return std::sync::atomic::compiler_fence(SeqCst);
        }
        fence(SeqCst);
    }

    /// The side of the taking thread. Returns false without a barrier: then the owners drop their values
    /// themselves.
    pub(super) fn heavy() -> bool {
        #[cfg(not(loom))]
        if IS_ASYMMETRIC.load(SeqCst) {
            use rustix::thread::{MembarrierCommand, membarrier};
            return membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        }
        fence(SeqCst);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_used_under_its_key_only() {
        let all = Keepsakes::new();
        let own = Keepsake::new(&all);
        let seen = |key| own.with_key(key).map(|value| *value);
        assert_eq!(seen(1), None, "none is kept");
        own.keep(1, 7);
        assert_eq!((seen(1), seen(2)), (Some(7), None));
        own.keep(2, 8);
        assert_eq!((seen(1), seen(2)), (None, Some(8)));
        own.forget();
        assert_eq!(seen(2), None);
    }

    #[test]
    fn values_of_idle_threads_are_dropped_by_whoever_takes_them() {
        let all = Keepsakes::new();
        let shared = Arc::new(());
        let (kept, idle) = (std::sync::Barrier::new(4), std::sync::Barrier::new(4));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (all, shared, kept, idle) = (&all, shared.clone(), &kept, &idle);
                scope.spawn(move || {
                    let own = Keepsake::new(all);
                    own.keep(1 + thread / 2, shared);
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
    fn a_value_in_use_is_dropped_when_its_thread_is_done_with_it() {
        let all = Keepsakes::new();
        let shared = Arc::new(());
        let own = Keepsake::new(&all);
        own.keep(1, shared.clone());
        let using = own.with_key(1).expect("it is kept");
        std::thread::scope(|scope| {
            scope.spawn(|| all.take(|key| key == 1));
        });
        assert_eq!(Arc::strong_count(&using), 2, "it is in use");
        drop(using);
        assert_eq!(Arc::strong_count(&shared), 1);
        own.keep(2, shared.clone());
        assert!(own.with_key(2).is_some(), "the place serves again");
    }

    #[test]
    fn a_use_within_a_use_finds_nothing() {
        let all = Keepsakes::new();
        let own = Keepsake::new(&all);
        own.keep(1, 7);
        let _using = own.with_key(1).expect("it is kept");
        assert!(own.with_key(1).is_none());
    }

    #[test]
    fn threads_that_end_leave_no_place() {
        let all: Keepsakes<u32> = Keepsakes::new();
        for _ in 0..10 {
            std::thread::scope(|scope| {
                scope.spawn(|| Keepsake::new(&all).keep(1, 1));
            });
        }
        assert!(all.places.lock().expect("no panic").is_empty());
    }
}
