//! `collectives`: collective calls of package `mpi` beside those of C MPIs.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mpjdev_cli::commands::run::java;

use super::measure::seconds;
use crate::BenchError;
use crate::collectives::{C_SOURCE, Contestant, JAVA_PROGRAM, Measured, rows, run_job, selected, table};
use crate::contestant::{Folder, NATIVE_ACCESS, processors};
use crate::environment::Environment;
use crate::installation::Installation;
use crate::peer::{Peer, Program};

/// Seconds a row.
const TIME: Duration = Duration::from_millis(500);
/// Most ranks of a job.
const RANKS_MAX: u32 = 64;

/// Arguments of `collectives`.
#[derive(Args, Debug)]
#[command(after_help = "\
Rows are a call and the octets of a rank, for allreduce a number of doubles. Before each timed call the ranks \
wait for each other, which is not timed; each rank times its own call. The figure of a job is the mean over \
ranks of the median over calls, and that of a contestant is the median of its jobs. Contestants take turns job \
by job. With more ranks than processors Open MPI yields when idle; MPICH has no such option.

Examples:
  mpjdev-bench collectives
  mpjdev-bench collectives --ranks 2,8 --jobs 5 --save collectives.json
  mpjdev-bench collectives --rows bcast,allreduce:1048576")]
pub struct Collectives {
    /// Ranks of the jobs
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 4, 8],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    ranks: Vec<u32>,
    /// Seconds that each row is measured in each job [default: 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    /// Jobs of each contestant
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=99))]
    jobs: u16,
    /// Only rows whose names contain one of these texts
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    rows: Vec<String>,
    /// Leave out the C programs
    #[arg(long)]
    no_peer: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the JSON to a file too
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Class path of the Java program [default: the jars of the installation]
    #[arg(long, value_name = "PATH")]
    class_path: Option<OsString>,
}

impl Collectives {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        match self.measure() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::from(if matches!(error, BenchError::Missing(_)) { 2 } else { 1 })
            }
        }
    }

    fn measure(&self) -> Result<(), BenchError> {
        if selected(&self.rows, true).is_empty() {
            let all = selected(&[], true).join(", ");
            return Err(BenchError::Missing(format!("--rows selects none of the rows {all}")));
        }
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let class_path = self.class_path.clone().or_else(|| installation.class_path());
        let class_path = class_path.ok_or_else(|| {
            let why = "no Java counterpart: --class-path names mpjdev-bench.jar, mpjdev.jar and mpj.jar";
            BenchError::Missing(why.into())
        })?;
        let folder = Folder::new()?;
        let peers = if self.no_peer { &[][..] } else { &Peer::ALL };
        let mut programs = Vec::new();
        for peer in peers {
            match peer.compile_source(folder.path(), "collectives", C_SOURCE) {
                Ok(program) => programs.push(program),
                Err(error) => eprintln!("mpjdev-bench: {error}"),
            }
        }
        let mut measured = Measured {
            environment: Environment::now(env::args_os(), installation.program(), &java()),
            jobs: self.jobs,
            rows: Vec::new(),
        };
        for ranks in &self.ranks {
            let contestants = contestants(&installation, &class_path, &programs, *ranks);
            measured.rows.extend(self.of_ranks(*ranks, contestants)?);
        }
        self.print(&measured)
    }

    fn of_ranks(
        &self,
        ranks: u32,
        contestants: Vec<Contestant>,
    ) -> Result<Vec<crate::collectives::Row>, BenchError> {
        let mut all: Vec<_> = contestants.into_iter().map(|contestant| (contestant, Vec::new())).collect();
        for job in 1..=self.jobs {
            for (contestant, lines) in &mut all {
                let rows = selected(&self.rows, contestant.is_java);
                if rows.is_empty() {
                    continue;
                }
                eprintln!(
                    "mpjdev-bench: measuring {}, {ranks} ranks, job {job} of {}",
                    contestant.name, self.jobs
                );
                lines.push(run_job(contestant, self.time.unwrap_or(TIME), &rows)?);
            }
        }
        Ok(rows(ranks, &all))
    }

    fn print(&self, measured: &Measured) -> Result<(), BenchError> {
        let json = serde_json::to_string_pretty(measured).map_err(io::Error::from);
        let json = json.map_err(BenchError::system("JSON"))? + "\n";
        if let Some(file) = &self.save {
            std::fs::write(file, &json).map_err(BenchError::system(file.display().to_string()))?;
        }
        let text = if self.json { json } else { table(measured) };
        io::stdout().write_all(text.as_bytes()).map_err(BenchError::system("standard output"))
    }
}

/// Java over shared memory, and each C program.
fn contestants(
    installation: &Installation,
    class_path: &OsString,
    programs: &[Program],
    ranks: u32,
) -> Vec<Contestant> {
    let crowded = ranks > processors();
    let number = OsString::from(ranks.to_string());
    let heap = if crowded { ["-Xmx256m", "-XX:+UseSerialGC"] } else { ["-Xmx1g", "-Xms256m"] };
    let mut words = vec![installation.launcher().into(), "run".into(), "-n".into(), number];
    words.extend(["--transport", "shm"].map(OsString::from));
    words.extend([java(), NATIVE_ACCESS.into()]);
    words.extend(heap.map(OsString::from));
    words.extend(["-cp".into(), class_path.clone(), JAVA_PROGRAM.into()]);
    let ours = Contestant { name: "Java shm".into(), words, is_java: true };
    let theirs = programs.iter().map(|program| {
        let mut words = program.launcher(ranks, crowded);
        words.push(program.path().into());
        Contestant { name: program.name(), words, is_java: false }
    });
    [ours].into_iter().chain(theirs).collect()
}
