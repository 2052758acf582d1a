//! The job of `mpjrun`.
//!
//! A user starts the [`launcher`]. The launcher starts the [`monitor`], and the monitor starts the program of
//! each rank. The rules are in pure modules: [`target`], [`lines`], [`exit_status`], [`root_cause`].

pub mod descendants;
pub mod exit_status;
pub mod host_site;
pub mod launcher;
pub mod launcher_link;
pub mod library;
pub mod limits;
pub mod lines;
pub mod member_list;
pub mod monitor;
pub mod names;
pub mod network;
pub mod output;
pub mod plan;
pub mod processors;
pub mod root_cause;
pub mod site;
pub mod target;

/// First argument of a monitor process. Its standard input is the launcher's socket.
pub const MONITOR: &str = "__monitor";
