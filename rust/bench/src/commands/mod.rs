//! Commands of `mpjdev-bench`: arguments, files and exit statuses.

pub mod budget;
pub mod contestants;
pub mod measure;
pub mod net;
pub mod rank;
pub mod report;
pub mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use measure::Measure;
use workload::Workload;

/// Benchmarks of mpjdev: messages between ranks, beside a C program under an MPI of the machine.
#[derive(Debug, Parser)]
#[command(name = "mpjdev-bench", version, arg_required_else_help = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A command of `mpjdev-bench`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the time of one way, there and back between two ranks
    Pingpong(Measure),
    /// Measure octets per second in windows of 64 messages
    Bandwidth(Measure),
    /// Measure messages per second in windows of 64
    Rate(Measure),
    /// Measure messages from every rank to every other
    Alltoall(Measure),
    /// Measure the time of one hop round a ring of all ranks
    Ring(Measure),
    /// Measure Java over shared memory beside the baseline, which is what one thread in each of two ranks
    /// that trust each other reaches, and beside the other peers
    Baseline(Measure),
    /// Measure the time of one way between two ranks in Java over the size, from 8 octets to 64 MiB in steps
    /// of 1.4, and name each step of more than 1.6 x between neighbours
    Series(Measure),
    /// List the steps of a message of 8 octets over shared memory with what each costs on this machine
    Budget(budget::Budget),
    /// Hold Java over shared memory, TCP, UDP and an MPI against its targets, most of them ratios to C under
    /// an MPI and plain sockets
    Figures(Measure),
    /// Measure streams and messages through a bad network: the system's TCP, ours over datagrams, and the
    /// protocol of 1997
    Goodput(Measure),
    /// Write a page of docs/performance from runs of figures and of series
    Report(report::Report),
    /// Bad networks
    #[command(hide = true)]
    Net(net::Net),
    /// A rank
    #[command(hide = true)]
    Rank(rank::Rank),
}

impl Command {
    /// Runs the command; gives the exit status.
    pub fn run(self) -> ExitCode {
        match self {
            Command::Pingpong(measure) => measure.run(Workload::Pingpong),
            Command::Bandwidth(measure) => measure.run(Workload::Bandwidth),
            Command::Rate(measure) => measure.run(Workload::Rate),
            Command::Alltoall(measure) => measure.run(Workload::Alltoall),
            Command::Ring(measure) => measure.run(Workload::Ring),
            Command::Baseline(measure) => measure.run(Workload::Baseline),
            Command::Series(measure) => measure.run(Workload::Series),
            Command::Budget(budget) => budget.run(),
            Command::Figures(measure) => measure.run(Workload::Figures),
            Command::Goodput(measure) => measure.run(Workload::Goodput),
            Command::Report(report) => report.run(),
            Command::Net(net) => net.run(),
            Command::Rank(rank) => rank.run(),
        }
    }
}

/// The command of a command line.
///
/// # Errors
/// Wrong usage; also a question for help or the version, whose answer is in the error.
pub fn parse(args: Vec<OsString>) -> Result<Command, clap::Error> {
    Line::try_parse_from(args).map(|line| line.command)
}
