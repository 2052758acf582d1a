//! Commands `profile` and `hosts`: costs of whole jobs, as Markdown for a page of docs/performance.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mpjdev_cli::commands::machine::java;
use serde::Serialize;

use crate::contestant::Folder;
use crate::environment::Environment;
use crate::installation::Installation;
use crate::{BenchError, hosts, profile};

/// Arguments of `profile`.
#[derive(Args, Debug)]
#[command(after_help = "\
Two ranks in Java run under mpjrun --profile, and switch counting off and on between turns of 2000 round \
trips of one double. The cost is the median over the pairs of turns of the difference, and then over jobs. A \
round trip is four calls, one after the other. Calls to the own rank do not wait, so they show the cost of \
the instructions.

  mpjdev-bench profile --jobs 5")]
pub struct Profile {
    /// Jobs whose medians the figures are
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=99))]
    jobs: u8,

    /// Pairs of turns of a job
    #[arg(long, value_name = "N", default_value_t = 401, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    turns: u32,

    /// Class path of the Java benchmarks [default: the jars of the installation]
    #[arg(long, value_name = "PATH")]
    class_path: Option<OsString>,

    /// Write JSON to a file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Arguments of `hosts`.
#[derive(Args, Debug)]
#[command(after_help = "\
Network namespaces with an address and an sshd each stand for hosts. Jobs of mpjrun --hosts and of Open \
MPI's mpirun start /bin/true there in turns, through the same sshd. The time is that from the start of the \
launcher to its end. The last row starts hosts by a local shell in the place of ssh, 32 at once. It needs \
root, iproute2, openssh-server and openmpi-bin.

  mpjdev-bench hosts --jobs 9

Exit status: 0 measured, 1 a job has failed, 2 something is missing.")]
pub struct Hosts {
    /// Simulated hosts
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    hosts: u8,

    /// Ranks of each
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,

    /// Jobs whose medians the figures are
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u8).range(1..=99))]
    jobs: u8,

    /// Hosts of the last row
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    local: u32,

    /// Write JSON to a file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Results with their environment.
#[derive(Serialize)]
struct Measured<'a, T> {
    environment: &'a Environment,
    jobs: u8,
    rows: &'a [T],
}

impl Profile {
    /// Measures, prints the table and returns the exit status.
    pub fn run(&self) -> ExitCode {
        exit_code(self.measure())
    }

    fn measure(&self) -> Result<(), BenchError> {
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let class_path = installation.java_class_path(self.class_path.as_ref())?;
        let folder = Folder::new()?;
        let mut jobs = Vec::new();
        for job in 1..=self.jobs {
            eprintln!("mpjdev-bench: job {job} of {}", self.jobs);
            jobs.push(profile::run(&installation.launcher(), &class_path, folder.path(), self.turns)?);
        }
        let rows = profile::medians(&jobs);
        let environment = environment(&installation);
        save(&self.json, &Measured { environment: &environment, jobs: self.jobs, rows: &rows })?;
        print("Cost of a profile", &environment, self.jobs, &profile::table(&rows))
    }
}

impl Hosts {
    /// Measures, prints the table and returns the exit status.
    pub fn run(&self) -> ExitCode {
        exit_code(self.measure())
    }

    fn measure(&self) -> Result<(), BenchError> {
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let (launcher, jobs) = (installation.launcher(), usize::from(self.jobs));
        eprintln!("mpjdev-bench: {} hosts, mpjrun and mpirun in turns", self.hosts);
        let with_sshd = hosts::on_hosts(&launcher, usize::from(self.hosts), self.ranks, jobs)?;
        eprintln!("mpjdev-bench: {} hosts by local shells", self.local);
        let folder = Folder::new()?;
        let local = hosts::by_local_shells(&launcher, folder.path(), self.local as usize, jobs)?;
        let rows = [with_sshd, local];
        let environment = environment(&installation);
        save(&self.json, &Measured { environment: &environment, jobs: self.jobs, rows: &rows })?;
        print("Start and end of a job on hosts", &environment, self.jobs, &hosts::table(&rows))
    }
}

fn environment(installation: &Installation) -> Environment {
    Environment::now(env::args_os(), installation.program(), &java())
}

fn exit_code(result: Result<(), BenchError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("mpjdev-bench: {error}");
    ExitCode::from(if matches!(error, BenchError::Missing(_)) { crate::UNUSABLE } else { 1 })
}

fn save<T: Serialize>(file: &Option<PathBuf>, measured: &Measured<'_, T>) -> Result<(), BenchError> {
    let Some(file) = file else { return Ok(()) };
    let json = serde_json::to_string_pretty(measured).map_err(io::Error::from);
    let json = json.map_err(BenchError::system("JSON"))? + "\n";
    std::fs::write(file, json).map_err(BenchError::system(file.display().to_string()))
}

/// Prints a section of a page.
fn print(title: &str, environment: &Environment, jobs: u8, table: &str) -> Result<(), BenchError> {
    let Environment { command, date, commit, processor, processors, kernel, jdk } = environment;
    let text = format!(
        "## {title}\n\n    {command}\n\nMedians of {jobs} jobs; {date}, {commit}, {processors} x {processor}, \
         {kernel}, {jdk}.\n\n{table}"
    );
    io::stdout().write_all(text.as_bytes()).map_err(BenchError::system("standard output"))
}
