//! Unsafe leaf crate: message memory, exclusive slots, a lock-free queue and the futex that threads sleep on.
//!
//! Everything here is safe to call. Each file states which few lines the compiler does not check, and why
//! they are sound. No code in this crate knows what a message is.

pub(crate) mod barrier;
#[cfg(not(loom))]
pub mod child;
#[cfg(not(loom))]
pub mod datagram;
pub mod futex;
pub mod handle_table;
#[cfg(not(loom))]
pub mod inherited;
pub mod lock_order;
pub mod memory;
#[cfg(not(loom))]
pub mod mpi;
#[cfg(not(loom))]
pub mod processors;
pub mod queue;
pub mod raw_lock;
pub mod scratch;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod stream;
pub mod thread_cache;
#[cfg(not(loom))]
pub mod ticks;
#[cfg(not(loom))]
pub mod tunnel;
pub mod wake_request;

#[cfg(loom)]
mod model;

/// Primitives that the model checker replaces. All state that threads share here and in the engine is made of
/// these, so that the code that runs is the code that is checked.
pub mod sync {
    pub use crate::lock_order::{LockRank, Mutex, MutexGuard};
    #[cfg(loom)]
    pub use crate::model::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, OnceLock};
    #[cfg(loom)]
    pub(crate) use loom::{cell::UnsafeCell, sync::Arc};
    #[cfg(loom)]
    pub use loom::{sync::atomic::fence, thread_local};
    #[cfg(not(loom))]
    pub(crate) use std::sync::Arc;
    #[cfg(not(loom))]
    pub use std::{
        sync::{
            OnceLock,
            atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence},
        },
        thread_local,
    };

    #[cfg(loom)]
    pub(crate) use loom::thread::yield_now;
    #[cfg(not(loom))]
    pub(crate) use std::thread::yield_now;

    /// `std`'s cell with the interface of the model checker's.
    #[cfg(not(loom))]
    #[derive(Debug, Default)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[cfg(not(loom))]
    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }
}
