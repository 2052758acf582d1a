//! The commands: one file each, one variant of [`Command`] each.

pub mod inspect;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Typed arrays and objects between Java programs.
#[derive(Debug, Parser)]
#[command(name = "mpjdev", version, arg_required_else_help = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// What `mpjdev` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explain the octets of a message: sizes, sections, values, and what is wrong with it
    Inspect(inspect::Inspect),
}

impl Command {
    /// Does it; gives the exit status.
    pub fn run(&self) -> ExitCode {
        match self {
            Command::Inspect(inspect) => inspect.run(),
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
