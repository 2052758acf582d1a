//! Jobs on several hosts: `mpjrun --hosts a:4,b:4`.
//!
//! The launcher starts an [`agent`] on each host through a remote shell and exchanges [`frame`]s with it.
//! When all hosts are ready, each agent starts the monitor of its ranks. [`monitor`] is the launcher's side.
//! The rules are in pure modules: [`host_list`], [`allocation`], [`rank_map`], [`frame`], [`window`],
//! [`addresses`], [`remote_command`].

pub mod addresses;
pub mod agent;
pub mod allocation;
pub mod channel;
pub mod frame;
pub mod hello;
pub mod host_link;
pub mod host_list;
pub mod java;
pub mod monitor;
pub mod node_list;
pub mod plan;
pub mod rank_map;
pub mod remote_command;
pub mod stage;
pub mod window;
