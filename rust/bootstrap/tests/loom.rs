//! Interleavings of the threads of a rank that wait for messages.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-bootstrap --release --test loom --target-dir target/loom
//! ```
//!
//! The models are bounded: a run has a maximum number of preemptions, besides the switches at which a thread
//! has to wait.
#![cfg(loom)]

#[path = "../../sys/tests/loom/explore.rs"]
mod explore;
#[path = "loom/wake_ups.rs"]
mod wake_ups;
