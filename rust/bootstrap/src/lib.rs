//! The start of a job: what a rank, the launcher and the other ranks say to each other before the first packet.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
pub mod control;
pub mod job;
#[cfg(not(loom))]
pub mod meeting;
#[cfg(not(loom))]
pub mod mesh;
