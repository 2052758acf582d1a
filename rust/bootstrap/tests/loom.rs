//! Interleavings of the threads of a rank that wait for messages.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-bootstrap --release --test loom --target-dir target/loom
//! ```
//!
//! The models are bounded: a run has a maximum number of preemptions, besides the switches at which a thread
//! has to wait.
#![cfg(loom)]

#[path = "loom/wake_ups.rs"]
mod wake_ups;

/// Explores the interleavings with at most `preemptions` preemptions.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}
