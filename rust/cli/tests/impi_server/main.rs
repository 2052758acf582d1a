//! Tests of `mpjdev impi-server` with a real process, connections and signals.

mod guesses;
mod jobs;
mod keys;
mod process;
mod refusals;
