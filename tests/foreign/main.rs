//! Ranks of ours with ranks of another implementation, which use only IMPI.
#![forbid(unsafe_code)]

#[path = "../../rust/buffer/tests/vectors/values.rs"]
mod values;
#[path = "../../rust/buffer/tests/vectors/mod.rs"]
#[allow(dead_code, reason = "where a damaged message is damaged is for those that read messages to say")]
mod vectors;

mod barriers;
mod cancel;
mod creations;
mod ends;
mod flow;
mod garbage;
mod halves;
mod last_barrier;
mod masters;
mod plain;
mod site;
mod speaker;
