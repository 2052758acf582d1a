//! Additions to the primitives of the model checker.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use loom::sync::Mutex;

loom::lazy_static! {
    static ref STEP: loom::sync::atomic::AtomicU32 = loom::sync::atomic::AtomicU32::new(0);
}

/// Makes every operation on our atomics depend on every other one.
///
/// loom 0.7 remembers only the last access to an object when it searches for operations that could run in
/// another order: after a thread's load, another thread's load and store of the same word, it has forgotten
/// the first load and never tries the store before it. With one object in all operations there is nothing to
/// forget. Relaxed, so that it adds no order.
fn step() {
    STEP.fetch_add(1, Relaxed);
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// As in `std`.
        #[derive(Debug, Default)]
        pub struct $name(loom::sync::atomic::$name);

        #[allow(missing_docs)]
        impl $name {
            pub fn new(value: $value) -> Self {
                $name(loom::sync::atomic::$name::new(value))
            }

            pub fn load(&self, order: Ordering) -> $value {
                step();
                self.0.load(order)
            }

            pub fn store(&self, value: $value, order: Ordering) {
                step();
                self.0.store(value, order);
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.swap(value, order)
            }
        }
    };
}

macro_rules! counting_atomic {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        #[allow(missing_docs)]
        impl $name {
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.fetch_add(value, order)
            }

            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.fetch_sub(value, order)
            }

            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                self.0.compare_exchange(old, new, success, failure)
            }

            pub fn compare_exchange_weak(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                self.0.compare_exchange_weak(old, new, success, failure)
            }

            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(failure);
                while let Some(new) = update(old) {
                    match self.compare_exchange_weak(old, new, success, failure) {
                        Ok(old) => return Ok(old),
                        Err(now) => old = now,
                    }
                }
                Err(old)
            }
        }
    };
}
atomic!(AtomicBool, bool);
counting_atomic!(AtomicU32, u32);
counting_atomic!(AtomicU64, u64);
counting_atomic!(AtomicUsize, usize);

/// `std`'s `OnceLock`, with its guarantees made known to the checker.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    ready: AtomicBool,
    making: Mutex<()>,
}

#[allow(missing_docs)]
impl<T> OnceLock<T> {
    pub fn new() -> Self {
        let value = std::sync::OnceLock::new();
        OnceLock { value, ready: AtomicBool::new(false), making: Mutex::new(()) }
    }

    pub fn get(&self) -> Option<&T> {
        if self.ready.load(Acquire) { self.value.get() } else { None }
    }

    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            let _making = self.making.lock().expect("no panic while making");
            self.value.get_or_init(make);
            self.ready.store(true, Release);
        }
        self.value.get().expect("made")
    }
}
