//! Interleavings of the threads that share a pool.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-transport --release --test loom --target-dir target/loom
//! ```
//!
//! The models are bounded: a run has a maximum number of preemptions, besides the switches at which a thread
//! has to wait.
#![cfg(loom)]

#[path = "loom/pool.rs"]
mod pool;

/// Explores the interleavings with at most this number of preemptions.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}
