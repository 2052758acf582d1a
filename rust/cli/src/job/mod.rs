//! The job of `mpjrun`.
//!
//! A job has three kinds of processes. A user starts the [`launcher`]. The launcher starts the [`monitor`].
//! The monitor starts a [`stub`] for each rank, which becomes the rank's program. The rules are apart and
//! pure: [`target`], [`lines`], [`exit_status`], [`root_cause`].

pub mod descendants;
pub mod exit_status;
pub mod launcher;
pub mod launcher_link;
pub mod library;
pub mod limits;
pub mod lines;
pub mod monitor;
pub mod names;
pub mod network;
pub mod output;
pub mod plan;
pub mod root_cause;
pub mod roster;
pub mod site;
pub mod stub;
pub mod target;

/// First argument of a monitor process. Its standard input is the launcher's socket.
pub const MONITOR: &str = "__monitor";
/// First argument of a stub.
pub const STUB: &str = "__rank";
