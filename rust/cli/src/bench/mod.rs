//! Measuring how fast messages go: `mpjdev bench`.
//!
//! Contestants are jobs: our own ranks in Rust or Java, as processes or threads, a C program under an MPI of the machine, and plain TCP
//! sockets.
//! All of them run at the same time, but only one works: its ranks follow the [`order`]s that come through a socket, and sleep
//! in between. So the contestants take turns ([`contest`]) within seconds, warm, on a machine that may change meanwhile; how
//! fast it moves a bare cache line is measured between the turns ([`line`](mod@line)), and what is compared was measured in
//! the same mode ([`outcome`]). [`side`] starts contestants, [`rank`] is our own in Rust, [`sockets`] the plain ones
//! and [`datagrams`] those without connections; [`relay`] is a bad network between sockets, [`netem`] one that all of the system's
//! protocols go through, [`stream`] what TCP does there and [`ends`] what messages over datagrams do, both as [`pairs`] of processes, which [`goodput`]
//! compares;
//! [`report`], [`counters`] and [`chart`] are for people.

pub mod chart;
mod classic;
pub mod contest;
pub mod counters;
pub mod datagrams;
pub mod desk;
pub mod ends;
pub mod figures;
pub mod foreign;
pub mod goodput;
pub mod impaired;
pub mod line;
pub mod loops;
pub mod memory;
mod messages;
pub mod netem;
pub mod order;
pub mod outcome;
pub mod pairs;
pub mod peer;
mod plain;
pub mod rank;
pub mod relay;
pub mod report;
pub mod side;
pub mod sleeps;
pub mod sockets;
pub mod startup;
pub mod stream;
pub mod trial;

use std::io;

use thiserror::Error;

/// Why nothing can be measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// What was to be done.
        what: String,
        /// Why not.
        error: io::Error,
    },
    /// Something that is needed is not on this machine.
    #[error("{0}")]
    Missing(String),
    /// Somebody wants all this to end.
    #[error("stopped")]
    Stopped,
    /// A contestant has ended, or says something else than it should.
    #[error("{side}: {why}")]
    Side {
        /// Who.
        side: String,
        /// What it did.
        why: String,
    },
}

impl BenchError {
    /// An error of the system, with what was to be done.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |error| BenchError::System { what, error }
    }
}
