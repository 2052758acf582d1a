//! The boundaries that ARCHITECTURE.md draws and the texts that the manual lists, checked against the
//! sources.
#![forbid(unsafe_code)]

mod dependencies;
mod logging;
mod sources;
mod troubleshooting;
