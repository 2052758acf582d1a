//! Mutexes with a rank. A debug build checks that each thread takes them in the order of their ranks.
//!
//! A thread that waits for a lock may hold locks of lower ranks only; otherwise it panics, and the panic
//! names both locks. A lock that is tried cannot deadlock, so it is exempt from the order. It is recorded,
//! since locks that are taken while it is held must be in order. Release builds and the model checker check
//! nothing, and a mutex has no room for its rank there. No mutex is poisoned.

use std::ops::{Deref, DerefMut};

use order::{HeldLock, Order};

/// Ranks of the locks of this project, in the order in which a thread takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockRank {
    /// The process's connection to its launcher, and the runtime of a C MPI.
    Job,
    /// A handle in use.
    Handle,
    /// The buffers with a detached receive.
    DetachedBuffers,
    /// The receive of a notice of an abandoned collective operation.
    Notice,
    /// Freed communicators that a C MPI still has.
    FreedComms,
    /// A rank: matching, requests, outbox.
    Engine,
    /// Spilled messages of a communicator of a C MPI.
    SpilledMessages,
    /// Spilled first physical messages of rendezvous messages of a C MPI.
    SpilledFirsts,
    /// Match acks of a rank of a C MPI.
    MatchAcks,
    /// The receive side of a channel, a datagram stage.
    ReceiveSide,
    /// The send side of a channel, a peer's window, a queue in shared memory.
    SendSide,
    /// The file of a peer's segment, until it is mapped.
    SegmentFile,
    /// Slabs that wait to be returned to a peer.
    SlabReturns,
    /// Communicators that were freed since the last visit, for a C MPI.
    FreedQueue,
    /// The uses of a rank's slots for short vectors.
    Slots,
    /// The unused part of a rank's segment.
    SegmentSpace,
    /// Any lock under which no other one is taken: loopback queues, liveness connections, context allocators,
    /// lists of threads, size classes of pools.
    Leaf,
}

/// A mutex with a rank.
#[derive(Debug)]
pub struct Mutex<T> {
    order: Order,
    inner: inner::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex that is taken at this rank.
    #[cfg(not(loom))]
    pub const fn new(rank: LockRank, value: T) -> Self {
        Mutex { order: Order::new(rank), inner: inner::Mutex::new(value) }
    }

    /// A mutex that is taken at this rank.
    #[cfg(loom)]
    pub fn new(rank: LockRank, value: T) -> Self {
        Mutex { order: Order::new(rank), inner: inner::Mutex::new(value) }
    }

    /// Takes the lock. Waits for a thread that holds it.
    ///
    /// # Panics
    /// In debug builds, if this thread holds a lock of this rank or a higher one.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.order.check();
        MutexGuard { guard: self.inner.lock(), _held: self.order.hold() }
    }

    /// Takes the lock; `None` if a thread holds it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Some(MutexGuard { guard: self.inner.try_lock()?, _held: self.order.hold() })
    }

    /// The value, which no other thread can reach.
    #[cfg(not(loom))]
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

/// A lock that this thread holds until the guard is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    guard: inner::MutexGuard<'a, T>,
    _held: HeldLock,
}

impl<T> MutexGuard<'_, T> {
    /// Whether another thread waits for the lock.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.guard.is_wanted()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A mutex without a rank.
#[cfg(not(loom))]
mod inner {
    use std::fmt;
    use std::ops::{Deref, DerefMut};

    use crate::raw_lock::RawLock;
    use crate::sync::UnsafeCell;

    pub(super) struct Mutex<T> {
        lock: RawLock,
        value: UnsafeCell<T>,
    }

    // SAFETY: the value is reached by the thread that has the lock, or through an exclusive reference. So T
    // moves between threads but is never shared.
    unsafe impl<T: Send> Sync for Mutex<T> {}

    impl<T> Mutex<T> {
        pub(super) const fn new(value: T) -> Self {
            Mutex { lock: RawLock::new(), value: UnsafeCell::new(value) }
        }

        #[inline(always)]
        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.lock.lock();
            MutexGuard { mutex: self }
        }

        #[inline(always)]
        pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.lock.try_lock().then(|| MutexGuard { mutex: self })
        }

        pub(super) fn get_mut(&mut self) -> &mut T {
            self.value.get_mut()
        }
    }

    impl<T> fmt::Debug for Mutex<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.lock.fmt(f)
        }
    }

    #[derive(Debug)]
    pub(super) struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
    }

    impl<T> MutexGuard<'_, T> {
        #[inline(always)]
        pub(super) fn is_wanted(&self) -> bool {
            self.mutex.lock.is_wanted()
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        #[inline(always)]
        fn deref(&self) -> &T {
            // SAFETY: this thread has the lock until the guard is dropped.
            self.mutex.value.with_mut(|value| unsafe { &*value })
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: as above, and `&mut self` keeps the thread from taking a second reference.
            self.mutex.value.with_mut(|value| unsafe { &mut *value })
        }
    }

    impl<T> Drop for MutexGuard<'_, T> {
        #[inline(always)]
        fn drop(&mut self) {
            self.mutex.lock.unlock();
        }
    }
}

/// The model checker's mutex: [`RawLock`](crate::raw_lock::RawLock) has a model of its own.
#[cfg(loom)]
mod inner {
    use std::ops::{Deref, DerefMut};

    #[derive(Debug)]
    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(self.0.lock().expect("no panic under the lock"))
        }

        pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(MutexGuard)
        }
    }

    #[derive(Debug)]
    pub(super) struct MutexGuard<'a, T>(loom::sync::MutexGuard<'a, T>);

    impl<T> MutexGuard<'_, T> {
        /// A thread that waits is not seen: the holder then keeps the lock no longer than it would.
        pub(super) fn is_wanted(&self) -> bool {
            true
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }
}

#[cfg(all(debug_assertions, not(loom)))]
pub(crate) mod order {
    use std::cell::RefCell;
    use std::marker::PhantomData;
    use std::panic::Location;

    use super::LockRank;

    /// A lock that a thread holds: its rank, and the line that took it.
    type Taken = (LockRank, &'static Location<'static>);

    thread_local! {
        static HELD: RefCell<Vec<Taken>> = const { RefCell::new(Vec::new()) };
    }

    /// Rank of a lock.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Order(LockRank);

    impl Order {
        pub(crate) const fn new(rank: LockRank) -> Order {
            Order(rank)
        }

        /// Checks that this thread may wait for the lock.
        #[track_caller]
        pub(crate) fn check(self) {
            let here = Location::caller();
            // A thread that ends has no list any more.
            let highest = HELD.try_with(|held| held.borrow().iter().copied().max_by_key(|(rank, _)| *rank));
            if let Ok(Some((held, there))) = highest
                && held >= self.0
            {
                panic!("lock order: {:?} ({here}) is taken while {held:?} ({there}) is held", self.0);
            }
        }

        /// Records that this thread holds the lock.
        #[track_caller]
        pub(crate) fn hold(self) -> HeldLock {
            let taken = (self.0, Location::caller());
            let _ = HELD.try_with(|held| held.borrow_mut().push(taken));
            HeldLock(taken, PhantomData)
        }
    }

    /// Record of a lock that this thread holds.
    #[derive(Debug)]
    pub(crate) struct HeldLock(Taken, PhantomData<*const ()>);

    impl Drop for HeldLock {
        fn drop(&mut self) {
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                if let Some(at) = held.iter().rposition(|taken| *taken == self.0) {
                    held.swap_remove(at);
                }
            });
        }
    }
}

#[cfg(not(all(debug_assertions, not(loom))))]
pub(crate) mod order {
    use std::marker::PhantomData;

    use super::LockRank;

    /// Rank of a lock, which nothing checks.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Order;

    impl Order {
        #[inline(always)]
        pub(crate) const fn new(_: LockRank) -> Order {
            Order
        }

        #[inline(always)]
        pub(crate) fn check(self) {}

        #[inline(always)]
        pub(crate) fn hold(self) -> HeldLock {
            HeldLock(PhantomData)
        }
    }

    /// Record of a lock that this thread holds.
    #[derive(Debug)]
    pub(crate) struct HeldLock(PhantomData<*const ()>);
}

/// A release build pays nothing for the order.
#[cfg(all(not(debug_assertions), not(loom)))]
const _: () = {
    assert!(size_of::<Mutex<u64>>() == size_of::<inner::Mutex<u64>>());
    assert!(size_of::<MutexGuard<'_, u64>>() == size_of::<inner::MutexGuard<'_, u64>>());
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn locks_of_rising_ranks_nest_and_are_released_in_any_order() {
        let engine = Mutex::new(LockRank::Engine, 1);
        let send = Mutex::new(LockRank::SendSide, 2);
        let leaf = Mutex::new(LockRank::Leaf, 3);
        for _ in 0..2 {
            let (first, second) = (engine.lock(), send.lock());
            drop(first);
            let third = leaf.lock();
            assert_eq!((*second, *third), (2, 3));
            drop(second);
            drop(third);
            *engine.lock() = 1;
        }
    }

    #[test]
    fn try_lock_ignores_the_order_and_counts_as_held() {
        let engine = Mutex::new(LockRank::Engine, ());
        let send = Mutex::new(LockRank::SendSide, ());
        let held = send.lock();
        let tried = engine.try_lock().expect("no thread holds it");
        assert!(engine.try_lock().is_none());
        drop(held);
        let after = send.lock();
        drop((tried, after));
    }

    #[test]
    fn lock_is_usable_after_a_panic_under_it() {
        let mutex = std::sync::Arc::new(Mutex::new(LockRank::Leaf, 1));
        let its = mutex.clone();
        let thread = std::thread::spawn(move || {
            let _held = its.lock();
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert_eq!((*mutex.lock(), mutex.try_lock().map(|value| *value)), (1, None));
        assert_eq!(mutex.try_lock().map(|value| *value), Some(1));
    }

    /// The panic of taking `second` while `first` is held.
    #[cfg(debug_assertions)]
    fn panic_of(first: LockRank, second: LockRank) -> String {
        let taken = std::thread::spawn(move || {
            let (first, second) = (Mutex::new(first, ()), Mutex::new(second, ()));
            let _held = first.lock();
            drop(second.lock());
        });
        let panic = taken.join().expect_err("the order is broken");
        panic.downcast_ref::<String>().expect("a text").clone()
    }

    #[cfg(debug_assertions)]
    #[test]
    fn lower_rank_under_a_higher_one_panics_with_both_names() {
        let text = panic_of(LockRank::SendSide, LockRank::Engine);
        assert!(text.starts_with("lock order: Engine ("), "{text}");
        assert!(text.contains("is taken while SendSide ("), "{text}");
    }

    #[cfg(debug_assertions)]
    #[test]
    fn same_rank_twice_panics() {
        let text = panic_of(LockRank::Leaf, LockRank::Leaf);
        assert!(text.contains("Leaf (") && text.contains("while Leaf ("), "{text}");
    }

    #[cfg(not(debug_assertions))]
    #[test]
    fn mutex_of_a_release_build_is_as_large_as_the_plain_one() {
        assert_eq!(size_of::<Mutex<u32>>(), size_of::<inner::Mutex<u32>>());
    }
}
