//! The commands of `mpjdev`: one file and one variant of [`Command`] for each.

pub mod bench;
pub mod impi_server;
pub mod inspect;
pub mod mpi_info;
pub mod run;
pub mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use mpjdev_proto::impi::Dialect;

/// Typed arrays and objects between Java programs.
#[derive(Debug, Parser)]
#[command(name = "mpjdev", version, arg_required_else_help = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A command of `mpjdev`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Name the program of the benchmarks
    #[command(hide = true)]
    Bench(bench::Bench),
    /// Let the sites of an IMPI job find each other: the startup server
    ImpiServer(impi_server::ImpiServer),
    /// Explain the octets of a message, or the packets and commands of an IMPI recording
    Inspect(inspect::Inspect),
    /// Say which C MPI ranks would find here, and what it can do
    MpiInfo(mpi_info::MpiInfo),
    /// Run a program's ranks as processes of this machine; also called mpjrun
    Run(run::Run),
}

/// A text of IMPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Text {
    /// The later text, as all living implementations
    Final,
    /// The draft of March 1999
    Draft,
}

impl From<Text> for Dialect {
    fn from(text: Text) -> Dialect {
        match text {
            Text::Final => Dialect::Final,
            Text::Draft => Dialect::Draft,
        }
    }
}

impl Command {
    /// Runs the command and returns the exit status. `args` are the words of the command line after the
    /// program's name. `is_monitor` is true in the monitor, which a launcher starts with the same command
    /// line.
    pub fn run(&self, args: &[OsString], is_monitor: bool) -> ExitCode {
        match self {
            Command::Bench(bench) => bench.run(),
            Command::ImpiServer(server) => server.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::MpiInfo(info) => info.run(),
            Command::Run(run) => run.run(args, is_monitor),
        }
    }
}

/// Parses a command line.
///
/// # Errors
/// Wrong usage. Help and version are also returned as errors, with the text to print.
pub fn parse(args: Vec<OsString>) -> Result<Command, clap::Error> {
    Line::try_parse_from(args).map(|line| line.command)
}
