//! Reference counts of slabs: `std`'s `Arc`. Under loom each has a second, modelled count.

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, atomic::fence};

#[cfg(loom)]
pub(crate) use self::model::Arc;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;

#[cfg(loom)]
mod model {
    use std::ops::Deref;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    use loom::sync::atomic::{AtomicUsize, fence};

    loom::lazy_static! {
        static ref STEP: AtomicUsize = AtomicUsize::new(0);
    }

    /// Makes every operation depend on every other one; `rust/sys/src/model.rs` says why.
    fn step() {
        STEP.fetch_add(1, Relaxed);
    }

    /// `std`'s reference and the modelled count. The model switches threads at operations on the modelled
    /// count only, so the two always agree.
    #[derive(Debug)]
    pub(crate) struct Arc<T: ?Sized> {
        value: std::sync::Arc<T>,
        count: std::sync::Arc<AtomicUsize>,
    }

    impl<T: ?Sized> From<std::sync::Arc<T>> for Arc<T> {
        fn from(value: std::sync::Arc<T>) -> Self {
            Arc { value, count: std::sync::Arc::new(AtomicUsize::new(1)) }
        }
    }

    impl<T: ?Sized> Arc<T> {
        pub(crate) fn strong_count(this: &Self) -> usize {
            step();
            this.count.load(Relaxed)
        }
    }

    impl<T: ?Sized> Deref for Arc<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.value
        }
    }

    impl<T: ?Sized> Clone for Arc<T> {
        fn clone(&self) -> Self {
            step();
            self.count.fetch_add(1, Relaxed);
            Arc { value: self.value.clone(), count: self.count.clone() }
        }
    }

    impl<T: ?Sized> Drop for Arc<T> {
        fn drop(&mut self) {
            step();
            if self.count.fetch_sub(1, Release) == 1 {
                fence(Acquire);
            }
        }
    }
}
