//! The conversation of clients with the startup server (IMPI 5).
//!
//! One server for each job; each client opens one connection to it and keeps that for the life of the job.
//! [`Client`] and [`Server`] are the two machines. They take in octets in whatever pieces these come, and a
//! time as a number where they have deadlines; they give out octets, what to close and why, and what has
//! happened. The outcome is the same on every client: the [`Tables`] of the job.
//!
//! Nothing that a peer sends is believed. Lengths are checked when they come, memory is taken as octets come,
//! and all COLL data of a job together are at most [`COLL_TOTAL_MAX`](layout::COLL_TOTAL_MAX).

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
