//! The boundaries that ARCHITECTURE.md draws, checked against the sources.
#![forbid(unsafe_code)]

mod dependencies;
mod sources;
