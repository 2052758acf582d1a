//! Ranks, requests, progress and transports: send, receive, probe, cancel, wait.
//!
//! The pure parts are elsewhere: the format in `mpjdev-buffer`, matching and protocols in `mpjdev-proto`. This crate owns
//! the clock, the threads' sleep and the transports, and is the same for all of them.
#![forbid(unsafe_code)]

mod accounts;
mod begun;
mod beside;
mod clients;
pub mod collective;
pub mod comm;
pub mod config;
#[cfg(not(loom))]
pub mod control;
mod direct;
mod ending;
pub mod endpoint;
pub mod error;
mod freed;
pub mod job;
#[cfg(not(loom))]
pub mod mpi;
mod outbox;
mod pairing;
pub mod pool;
mod probing;
mod progress;
mod rank;
mod remote;
mod requests;
#[cfg(not(loom))]
mod room;
mod sending;
pub mod stats;
pub mod transport;
mod undecided;
mod unexpected;
mod unreceived;
mod waiting;

pub use clients::Clients;
pub use comm::{Comm, Done, From, MatchedMessage, Status};
pub use config::Config;
pub use direct::Direct;
pub use endpoint::{Endpoint, Mode};
pub use error::DeviceError;
/// What threads keep of them for themselves.
pub use mpjdev_sys::keepsake;
/// Handles for values that Java refers to by number.
pub use mpjdev_sys::slots as handles;
pub use requests::{Completed, RequestId};
pub use unreceived::Unreceived;
pub use waiting::{Patience, Patient, deadline_after};
