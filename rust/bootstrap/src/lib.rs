//! The start of a job: the protocols between a rank, its launcher and the other ranks before the first
//! packet.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
pub mod control;
pub mod job;
#[cfg(not(loom))]
pub mod mesh;
#[cfg(not(loom))]
pub mod setup;
