//! Commands of `mpjdev-bench`: arguments, files and exit statuses.

pub mod budget;
pub mod collectives;
pub mod contestants;
pub mod jobs;
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
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// A command of `mpjdev-bench`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the time of one way between two ranks, half of a round trip
    Pingpong(Measure),
    /// Measure octets per second in windows of 64 messages
    Bandwidth(Measure),
    /// Measure messages per second in windows of 64
    Rate(Measure),
    /// Measure messages from every rank to every other
    Alltoall(Measure),
    /// Measure the time of one hop around a ring of all ranks
    Ring(Measure),
    /// Measure Java over shared memory beside the baseline (one thread in each of two ranks that trust each
    /// other) and the other peers
    Baseline(Measure),
    /// Measure the time of one way between two ranks in Java from 8 octets to 64 MiB in steps of 1.4, and
    /// name each step of more than 1.6 x between neighbours
    Series(Measure),
    /// Compare package mpi with its targets: ratios to direct calls of mpjdev, to C with derived datatypes,
    /// and to one JVM
    Mpj(Measure),
    /// Compare collective calls of package mpi in Java with C under Open MPI and MPICH
    Collectives(collectives::Collectives),
    /// List the steps of a message of 8 octets over shared memory with their costs on this machine
    Budget(budget::Budget),
    /// Compare Java over shared memory, TCP, UDP and an MPI with its targets, mostly ratios to C under an MPI
    /// and to plain sockets
    Figures(Measure),
    /// Measure streams and messages through an impaired network: the system's TCP, mpjdev over UDP, and the
    /// U-Net protocol of 1997
    Goodput(Measure),
    /// Measure the cost of counting calls for mpjrun --profile
    Profile(jobs::Profile),
    /// Compare the start and end of a job on simulated hosts with mpirun of Open MPI
    Hosts(jobs::Hosts),
    /// Write a page of docs/performance from saved results
    Report(report::Report),
    /// Impaired networks
    #[command(hide = true)]
    Net(net::Net),
    /// A rank
    #[command(hide = true)]
    Rank(rank::Rank),
}

impl Command {
    /// Runs the command and returns the exit status.
    pub fn run(self) -> ExitCode {
        match self {
            Command::Pingpong(measure) => measure.run(Workload::Pingpong),
            Command::Bandwidth(measure) => measure.run(Workload::Bandwidth),
            Command::Rate(measure) => measure.run(Workload::Rate),
            Command::Alltoall(measure) => measure.run(Workload::Alltoall),
            Command::Ring(measure) => measure.run(Workload::Ring),
            Command::Baseline(measure) => measure.run(Workload::Baseline),
            Command::Series(measure) => measure.run(Workload::Series),
            Command::Mpj(measure) => measure.run(Workload::Mpj),
            Command::Collectives(collectives) => collectives.run(),
            Command::Budget(budget) => budget.run(),
            Command::Figures(measure) => measure.run(Workload::Figures),
            Command::Goodput(measure) => measure.run(Workload::Goodput),
            Command::Profile(profile) => profile.run(),
            Command::Hosts(hosts) => hosts.run(),
            Command::Report(report) => report.run(),
            Command::Net(net) => net.run(),
            Command::Rank(rank) => rank.run(),
        }
    }
}

/// Parses a command line.
///
/// # Errors
/// Wrong usage. The texts of --help and --version are errors too.
pub fn parse(args: Vec<OsString>) -> Result<Command, clap::Error> {
    CommandLine::try_parse_from(args).map(|line| line.command)
}
