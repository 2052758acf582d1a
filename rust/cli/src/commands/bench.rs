//! `mpjdev bench`: a hidden command that names the program of the benchmarks.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

/// Arguments of a measurement. They belong to `mpjdev-bench`.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Bench {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    _arguments: Vec<OsString>,
}

impl Bench {
    /// Names the program and returns the exit status.
    pub fn run(&self) -> ExitCode {
        eprintln!("mpjdev: the benchmarks are the program mpjdev-bench (./gradlew installBench)");
        ExitCode::from(super::UNUSABLE)
    }
}
