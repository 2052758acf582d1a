//! Interleavings of the threads that share a pool, and of the two ranks of a ring.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-transport --release --test loom --target-dir target/loom
//! ```
//!
//! The models are bounded: a run has a maximum number of preemptions, besides the switches at which a thread
//! has to wait.
#![cfg(loom)]

#[path = "../../sys/tests/loom/explore.rs"]
mod explore;
#[path = "loom/pool.rs"]
mod pool;
#[path = "loom/ring.rs"]
mod ring;

/// The part of the configuration that the ring uses.
mod config {
    pub(crate) use mpjdev_transport::config::RECORD_MAX;
}
