//! `budget`: the steps of a message of 8 octets and what they cost on this machine.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::BenchError;
use crate::budget;

/// Arguments of `budget`.
#[derive(Args, Debug)]
#[command(after_help = "\
The counts are those of the code. One thread measures the costs, best of many slices; two threads \
measure the bare line. Instructions overlap in a program, so their sum is no bound. The whole is measured by \
'pingpong --java --transport shm --sizes 8'.")]
pub struct Budget {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Budget {
    /// Prints the budget; gives the exit status.
    pub fn run(&self) -> ExitCode {
        let printed = budget::Budget::measure().and_then(|budget| {
            let text = match self.json {
                true => serde_json::to_string_pretty(&budget).unwrap_or_default() + "\n",
                false => budget.text(),
            };
            io::stdout().write_all(text.as_bytes()).map_err(BenchError::system("standard output"))
        });
        match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
