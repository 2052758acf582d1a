//! Interleavings of the threads of a rank that wait for messages.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-bootstrap --release --test loom --target-dir target/loom
//! ```
//!
//! The models are bounded: threads are preempted at most so many times in one run, beside the switches at which a thread has
//! to wait.
#![cfg(loom)]

#[path = "loom/wake_ups.rs"]
mod wake_ups;

/// Those interleavings in which a thread is preempted at most so many times.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}
