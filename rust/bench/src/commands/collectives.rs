//! Command `collectives`: collective calls of package `mpi` beside C and MPJ Express.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mpjdev_cli::commands::machine::java;
use serde::Serialize;

use super::contestants::{PeerKind, Selection};
use super::measure::{print, seconds, stop_at_signals};
use crate::BenchError;
use crate::collectives::{CollectiveRun, picture, text};
use crate::contest::Pace;
use crate::contestant::{Folder, Tools, Transport, processors};
use crate::environment::Environment;
use crate::figures::Figure;
use crate::installation::Installation;
use crate::mpj_express::MpjExpress;
use crate::peer::{Peer, Program};
use crate::report::{Absent, Row};
use crate::targets::Outcome;

/// Arguments of `collectives`.
#[derive(Args, Debug)]
#[command(after_help = "\
Ranks in Java call package mpi, and a C program makes the same calls under Open MPI and MPICH. Ranks in Rust make the \
calls of the native methods, without Java; they are only reported. All contestants run at the same time and take turns; only one works at any moment. A turn is a loop of calls. Before each call the ranks \
synchronise by a barrier of their own library, which is not timed. Each rank times the call alone. The figure of a \
turn is the mean over the ranks of the median over the calls; that of a job is the median over its turns, of which \
only those of one mode count (see pingpong); that of several jobs is their median. The number of calls follows from a \
first estimate and is the same at all ranks. Calls with a root have root 0. Elements are doubles, and sums are \
MPI.SUM. Octets are those of a rank, or of a pair in Alltoall. In JSON 'median' is the time of a call and 'extra' the \
time of a barrier and a call at rank 0; of garbage it is the number of octets.

The ratio is the time of Java divided by that of the better C program. Limits are those of docs/performance; numbers \
of ranks without a limit are only reported. By default each row has 2 and 8 ranks, and Alltoall 4 and 8. Other rows:
  user function   Allreduce of 1000 doubles by a class of the program, divided by MPI.SUM in Java
  garbage         octets of Java heap that a rank allocates for an Allreduce of 1 double
  beside MPJ Express
                  time of MPJ Express, whose ranks are threads of one JVM, divided by that of Java
  over Open MPI, over MPICH
                  ranks in Java over that library beside C with MPI_THREAD_MULTIPLE: ns beyond C, or the ratio

With more ranks than processors C yields when idle: Open MPI by mpi_yield_when_idle, and MPICH by the program, which \
calls sched_yield after each poll of UCX that finds nothing. MPICH has no option for it that works.

  mpjdev-bench collectives
  mpjdev-bench collectives --ranks 2 --rows barrier,bcast --time 0.2
  mpjdev-bench collectives --jobs 5 --json collectives.json --svg collectives.svg
  mpjdev-bench collectives --mpj-express /opt/mpj --rows 'MPJ Express'

A contestant that cannot be started, or that fails, is named, and the others are measured.

Exit status: 0 measured, 1 something failed, 2 wrong usage, or something that was requested is missing.")]
pub struct Collectives {
    /// Numbers of ranks [default: 2 and 8, or those of the row]
    #[arg(short = 'n', long, value_name = "N", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=64))]
    ranks: Vec<u32>,

    /// Rows whose names have one of these parts, such as '8 ranks', bcast, 'of 64 KiB' [default: all]
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    rows: Vec<String>,

    /// Transport of the ranks in Java and in Rust
    #[arg(long, value_enum, default_value_t = Transport::Shm)]
    transport: Transport,

    /// Seconds for each contestant and row, after a warm-up of the same length
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0.5")]
    time: Duration,

    /// Jobs whose medians the figures are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=99))]
    jobs: u8,

    /// C programs to compare with [default: those whose MPI is installed]
    #[arg(long, value_enum, value_delimiter = ',')]
    peer: Vec<PeerKind>,

    /// Compare with no C program
    #[arg(long, conflicts_with = "peer")]
    no_peer: bool,

    /// Home folder of MPJ Express, with lib/starter.jar and lib/mpj.jar [default: MPJ_HOME, if it is set]
    #[arg(long, value_name = "HOME")]
    mpj_express: Option<PathBuf>,

    /// Class path of the Java benchmarks [default: the jars of the installation]
    #[arg(long, value_name = "PATH")]
    class_path: Option<OsString>,

    /// Write JSON to a file; without a file print it instead of the tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,

    /// Draw the times over the size to a file, with a panel for each call
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Results, with the keys of `figures`.
#[derive(Serialize)]
struct Measured<'a> {
    environment: Environment,
    jobs: u8,
    rows: &'a [Row],
    figures: &'a [Figure],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    absent: &'a [Absent],
    /// Ways in which C yields with more ranks than processors.
    yields: &'a [String],
}

impl Collectives {
    /// Measures, prints the results and returns the exit status.
    pub fn run(&self) -> ExitCode {
        match self.measure() {
            Ok(is_complete) => ExitCode::from(u8::from(!is_complete)),
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::from(if matches!(error, BenchError::Missing(_)) { crate::UNUSABLE } else { 1 })
            }
        }
    }

    /// Returns whether no contestant failed.
    fn measure(&self) -> Result<bool, BenchError> {
        if env::var_os(mpjdev_bootstrap::control::CONTROL).is_some() {
            let why = "this process is a rank of a job; mpjdev-bench starts its own ranks";
            return Err(BenchError::Missing(why.into()));
        }
        if self.transport == Transport::Mpi {
            let why = "--transport mpi: ranks over an MPI have rows of their own; name another transport";
            return Err(BenchError::Missing(why.into()));
        }
        if let Some(peer) = self.peer.iter().find(|peer| !peer.is_mpi()) {
            return Err(BenchError::Missing(format!("--peer: {peer:?} has no collective calls")));
        }
        let tools = self.tools()?;
        let given = self.mpj_express.as_deref();
        let mpj_express = MpjExpress::find(given, &tools.class_path, tools.folder.path());
        if let (Some(_), Err(why)) = (given, &mpj_express) {
            return Err(BenchError::Missing(format!("--mpj-express: {why}")));
        }
        let stop = stop_at_signals()?;
        let peers = self.selection().programs(&tools, &Peer::ALL)?;
        let run = CollectiveRun {
            tools: &tools,
            transport: self.transport,
            peers: &peers,
            mpj_express: mpj_express.as_ref().map_err(String::as_str),
            ranks: &self.ranks,
            rows: &self.rows,
            pace: Pace::of(self.time),
            jobs: usize::from(self.jobs),
            stop: &stop,
        };
        let outcome = run.run(&|what| eprintln!("mpjdev-bench: measuring {what}"))?;
        let environment = Environment::now(env::args_os(), &tools.own, &tools.java);
        self.print_results(&outcome, &peers, environment)?;
        outcome.errors.iter().for_each(|error| eprintln!("mpjdev-bench: {error}"));
        Ok(outcome.errors.is_empty())
    }

    fn print_results(
        &self,
        outcome: &Outcome,
        peers: &[Program],
        environment: Environment,
    ) -> Result<(), BenchError> {
        let Outcome { figures, rows, absent, .. } = outcome;
        let is_crowded = rows.iter().any(|row| row.ranks > processors());
        let yields: Vec<String> = peers
            .iter()
            .filter(|_| is_crowded)
            .map(|program| format!("{} yields when idle: {}", program.name(), program.yields_by()))
            .collect();
        let measured = Measured { environment, jobs: self.jobs, rows, figures, absent, yields: &yields };
        let json = serde_json::to_string_pretty(&measured).map_err(std::io::Error::from);
        let json = json.map_err(BenchError::system("JSON"))? + "\n";
        if let Some(file) = &self.svg {
            let drawn = picture::draw(rows).map_err(BenchError::system("the chart"))?;
            drawn.map_or(Ok(()), |drawn| write(file, &drawn))?;
        }
        match &self.json {
            Some(file) if file == Path::new("-") => return print(&json),
            Some(file) => write(file, &json)?,
            None => {}
        }
        let notes: String = yields.iter().map(|line| format!("{line}\n")).collect();
        print(&(text::table(rows, figures, absent) + &notes))
    }

    fn selection(&self) -> Selection<'_> {
        Selection {
            transports: std::slice::from_ref(&self.transport),
            is_java: true,
            is_of_two: false,
            peers: &self.peer,
            has_no_peers: self.no_peer,
        }
    }

    fn tools(&self) -> Result<Tools, BenchError> {
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let class_path = installation.java_class_path(self.class_path.as_ref())?;
        let (own, launcher) = (installation.program().to_owned(), installation.launcher());
        let (aeron, baseline) = (None, None);
        Ok(Tools { folder: Folder::new()?, own, launcher, java: java(), class_path, aeron, baseline })
    }
}

fn write(file: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(file, text).map_err(BenchError::system(file.display().to_string()))
}
