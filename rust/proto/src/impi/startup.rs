//! The protocol between clients and the startup server (IMPI 5).
//!
//! A job has one server. Each client keeps one connection to it until the job ends. [`Client`] and [`Server`]
//! are the two machines. Inputs are octets in pieces of any length, and the time where there are deadlines.
//! Outputs are octets, connections to close with the reason, and events. The outcome is the same on every
//! client: the [`Tables`] of the job.
//!
//! Peers are not trusted. Lengths are checked when they are received, memory is allocated as octets arrive,
//! and all COLL data of a job have at most [`COLL_TOTAL_MAX`](layout::COLL_TOTAL_MAX) octets.

mod auth;
mod client;
pub mod layout;
mod reader;
mod server;
mod settings;
mod tables;

pub use auth::{Auth, Key};
pub use client::{Client, ClientError, Event, Stage};
pub use server::{Failure, Fault, Limits, Output, Ranks, Server, ServerEvent, ServerSettings};
pub use settings::{HostSettings, Settings, SettingsError};
pub use tables::{JobClient, JobHost, JobProc, TableError, Tables};
