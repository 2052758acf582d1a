//! Words of a segment, as [`ring`](super::ring) uses them. A model has words of its own.

pub(super) use std::sync::atomic::AtomicU64;

pub(super) use mpjdev_sys::memory::prefetch;
