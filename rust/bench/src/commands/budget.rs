//! `budget`: the steps of a message of 8 octets and their costs on this machine.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mpjdev_cli::commands::machine::java;

use crate::BenchError;
use crate::budget;
use crate::environment::Environment;
use crate::installation::Installation;

/// Arguments of `budget`.
#[derive(Args, Debug)]
#[command(after_help = "\
The numbers are counted in the code, and the costs are measured: one thread measures each kind of \
instruction, best of many slices, and two threads measure the bare cache line. A JVM measures the call of a \
native method. Without the Java benchmarks its cost is unknown and counts as 0. Instructions overlap in a \
program, so the sum is an estimate and no bound. 'pingpong --java --transport shm --sizes 8' measures the \
whole message.

  mpjdev-bench budget --save budget.json
  mpjdev-bench report budget.json")]
pub struct Budget {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Write the JSON to a file too, for report
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Class path of the Java benchmarks [default: the jars of the installation]
    #[arg(long, value_name = "PATH")]
    class_path: Option<OsString>,
}

impl Budget {
    /// Prints the budget and returns the exit status.
    pub fn run(&self) -> ExitCode {
        match self.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn print(&self) -> Result<(), BenchError> {
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let class_path = self.class_path.clone().or_else(|| installation.class_path());
        let java = java();
        let environment = Environment::now(env::args_os(), installation.program(), &java);
        let native = class_path.as_deref().map(|class_path| (java.as_os_str(), class_path));
        let budget = budget::Budget::measure(environment, native)?;
        let json = serde_json::to_string_pretty(&budget).map_err(io::Error::from);
        let json = json.map_err(BenchError::system("JSON"))? + "\n";
        if let Some(file) = &self.save {
            std::fs::write(file, &json).map_err(BenchError::system(file.display().to_string()))?;
        }
        let text = if self.json { json } else { budget.text() };
        io::stdout().write_all(text.as_bytes()).map_err(BenchError::system("standard output"))
    }
}
