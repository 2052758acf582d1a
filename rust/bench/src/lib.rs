//! Benchmarks of messages between ranks: `mpjdev-bench`.
//!
//! A contestant is a job: mpjdev ranks in Rust or Java, as processes or threads, a C program under an MPI of
//! the machine, or plain sockets. All contestants run at the same time, but only one works at any moment. Its
//! ranks execute commands that arrive through a Unix socket ([`protocol`]) and sleep in between. So the
//! contestants are warm and take turns of milliseconds ([`contest`]), while the machine may change.
//!
//! Between turns the time of a bare cache line is measured ([`cacheline`]). Only turns with the same distance
//! of processors are compared ([`outcome`]).
//!
//! | modules | purpose |
//! |---|---|
//! | [`contestant`], [`rank`] | start contestants; the contestant in Rust |
//! | [`loops`], [`collective_calls`] | loops of the contestant in Rust |
//! | [`sockets`], [`datagrams`], [`peer`], [`mpj_express`] | contestants without mpjdev: TCP, UDP, C, Java |
//! | [`calls`], [`collectives`] | collective calls, their targets and their run |
//! | [`figures`], [`targets`], [`series`], [`budget`] | targets and their run; cliffs; costs of one message |
//! | [`relay`], [`netem`] | impaired networks between sockets, and between network namespaces |
//! | [`stream`], [`ends`], [`pairs`], [`goodput`] | streams and messages through an impaired network |
//! | [`profile`], [`hosts`] | costs of whole jobs: counting of calls, start on hosts |
//! | [`report`], [`counters`], [`page`], [`chart`] | tables, Markdown, SVG |
#![forbid(unsafe_code)]

pub mod background_load;
pub mod budget;
pub mod busy_threads;
pub mod cacheline;
pub mod calls;
pub mod chart;
pub mod collective_calls;
pub mod collectives;
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
pub mod hosts;
pub mod impaired;
pub mod installation;
pub mod loops;
pub mod memory;
mod messages;
pub mod mpj_express;
pub mod netem;
pub mod outcome;
pub mod page;
pub mod pairs;
pub mod peer;
mod plain;
pub mod profile;
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

use mpjdev_cli::hosts::remote_command;
use mpjdev_cli::job;
use thiserror::Error;

/// Exit status for wrong usage, and for a missing program or right.
const UNUSABLE: u8 = 2;

/// Commands of the launcher. This program contains its code, so it starts ranks without an installation too.
const LAUNCHER: [&str; 4] = ["run", "impi-server", job::MONITOR, remote_command::AGENT];

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
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// Intended action.
        what: String,
        /// Why not.
        error: io::Error,
    },
    /// Something that the measurement needs is missing, or the options do not fit together.
    #[error("{0}")]
    Missing(String),
    /// A signal ended the measurement.
    #[error("stopped")]
    Stopped,
    /// A contestant has ended or violated the protocol.
    #[error("{name}: {why}")]
    Contestant {
        /// Its name.
        name: String,
        /// Reason.
        why: String,
    },
}

impl BenchError {
    /// Makes an error of a system call, with the intended action.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |error| BenchError::System { what, error }
    }
}
