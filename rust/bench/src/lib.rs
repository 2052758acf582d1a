//! Benchmarks of messages between ranks: `mpjdev-bench`.
//!
//! Contestants are jobs: our own ranks in Rust or Java, as processes or threads, a C program under an MPI of
//! the machine, and plain TCP sockets. All of them run at the same time, but only one works: its ranks follow
//! the orders of the [`protocol`] that come through a socket, and sleep in between. So the contestants take
//! turns ([`contest`]) within seconds, warm, on a machine that may change meanwhile; how fast it moves a bare
//! cache line is measured between the turns ([`cacheline`]), and what is compared was measured in the same
//! mode ([`outcome`]). [`contestant`] starts contestants, [`rank`] is our own in Rust, [`sockets`] the plain
//! ones and [`datagrams`] those without connections; [`relay`] is a bad network between sockets, [`netem`]
//! one that all of the system's protocols go through, [`stream`] what TCP does there and [`ends`] what
//! messages over datagrams do, both as [`pairs`] of processes, which [`goodput`] compares; [`series`] finds
//! the cliffs in the time over the size; [`report`], [`counters`], [`page`] and [`chart`] are for readers.
#![forbid(unsafe_code)]

pub mod background_load;
pub mod budget;
pub mod busy_threads;
pub mod cacheline;
pub mod chart;
pub mod commands;
pub mod contest;
pub mod contestant;
pub mod copies;
pub mod counters;
pub mod datagrams;
pub mod ends;
pub mod environment;
pub mod figures;
pub mod goodput;
pub mod impaired;
pub mod installation;
pub mod loops;
pub mod memory;
mod messages;
pub mod netem;
pub mod outcome;
pub mod page;
pub mod pairs;
pub mod peer;
mod plain;
pub mod protocol;
pub mod rank;
pub mod relay;
pub mod relay_client;
pub mod relay_ports;
pub mod report;
pub mod series;
pub mod sleeps;
pub mod sockets;
pub mod startup;
pub mod stream;
pub mod targets;
mod unet;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use mpjdev_cli::job;
use thiserror::Error;

/// Exit status for wrong usage and for what is not on this machine.
const UNUSABLE: u8 = 2;

/// Words of the launcher: ranks are started by its code in this program, with or without an installation
/// beside it.
const LAUNCHER: [&str; 3] = ["run", "impi-server", job::MONITOR];

/// Runs the command line `args`, the first of which is the name of the program.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|word| LAUNCHER.iter().any(|launcher| word == launcher)) {
        return mpjdev_cli::run(args);
    }
    match commands::parse(args) {
        Ok(command) => command.run(),
        Err(usage) => {
            // Help and version are printed the same way, with status 0 and to standard output. A closed
            // output is no error.
            let _ = usage.print();
            ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(UNUSABLE))
        }
    }
}

/// Why nothing can be measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// Intended action.
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
    #[error("{name}: {why}")]
    Contestant {
        /// Its name.
        name: String,
        /// Reason.
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
