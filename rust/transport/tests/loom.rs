//! Interleavings of the threads that share a pool.
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
