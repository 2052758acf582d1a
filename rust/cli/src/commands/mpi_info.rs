//! `mpjdev mpi-info`: the C MPI that ranks find on this machine, and its abilities.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use mpjdev_engine::mpi::{Unfit, check};
use mpjdev_sys::mpi::{Candidates, Mpi, MpiError, OpenError, ThreadLevel};
use serde::Serialize;

/// Arguments of `mpjdev mpi-info`.
#[derive(Args, Debug)]
#[command(after_help = "\
A rank under the launcher of an MPI finds its library as this command does: first the library that \
MPJDEV_MPI_LIBRARY names by path or by name; else the libraries of the launcher (OMPI_COMM_WORLD_RANK: Open \
MPI; PMI_RANK: MPICH and its derivatives); then all others that mpjdev knows. Nothing has to be compiled for \
a library.

  mpjdev mpi-info                                            the library without a launcher
  mpirun -n 2 mpjdev mpi-info                                the library of a job; its first process prints
  MPJDEV_MPI_LIBRARY=/opt/mpi/lib/libmpi.so mpjdev mpi-info  the abilities of that library

The JSON is {\"library\", \"version\", \"abi\", \"launcher\", \"thread_level\", \"rank\", \"size\", \
\"tag_max\"}; --no-init leaves out the last four. launcher is null without a launcher.

Exit status: 0 the library can be used, 1 it cannot, 2 there is none or the command line is wrong.")]
pub struct MpiInfo {
    /// Do not initialise the library: thread level, rank, size and tags remain unknown
    #[arg(long)]
    no_init: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Info {
    library: String,
    version: String,
    abi: String,
    launcher: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    running: Option<Running>,
}

#[derive(Clone, Debug, Serialize)]
struct Running {
    thread_level: String,
    rank: u32,
    size: u32,
    tag_max: i32,
}

#[derive(Debug, thiserror::Error)]
enum InfoError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{library} ({version}): {error}")]
    Mpi { library: String, version: String, error: MpiError },
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl MpiInfo {
    /// Prints the library and returns the exit status.
    pub fn run(&self) -> ExitCode {
        match self.inspect() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev: {error}");
                ExitCode::from(if matches!(error, InfoError::Open(_)) { super::UNUSABLE } else { 1 })
            }
        }
    }

    fn inspect(&self) -> Result<(), InfoError> {
        let candidates = Candidates::from_environment();
        let mpi = Mpi::open(&candidates)?;
        let mut info = Info {
            library: mpi.path().to_owned(),
            version: mpi.version().to_owned(),
            abi: mpi.family().to_string(),
            launcher: candidates.launcher.map(|launcher| launcher.to_string()),
            running: None,
        };
        if self.no_init {
            return self.print(&info);
        }
        let of_library = |error| InfoError::Mpi {
            library: mpi.path().to_owned(),
            version: mpi.version().to_owned(),
            error,
        };
        let level = mpi.init().map_err(of_library)?;
        let running = running(&mpi, level).map_err(of_library)?;
        let result = match check(&mpi, &candidates, level, running.size).map_err(InfoError::from) {
            Ok(()) if running.rank == 0 => {
                info.running = Some(running);
                self.print(&info)
            }
            // Rank 0 prints for all processes.
            other => other,
        };
        mpi.finalize().map_err(of_library)?;
        result
    }

    fn print(&self, info: &Info) -> Result<(), InfoError> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, info).map_err(io::Error::from)?;
            return Ok(writeln!(out)?);
        }
        writeln!(out, "library   {}", info.library)?;
        writeln!(out, "version   {}", info.version)?;
        writeln!(out, "ABI       {}", info.abi)?;
        writeln!(out, "launcher  {}", info.launcher.as_deref().unwrap_or("none"))?;
        if let Some(Running { thread_level, rank, size, tag_max }) = &info.running {
            writeln!(out, "threads   {thread_level}")?;
            writeln!(out, "process   {rank} of {size}")?;
            writeln!(out, "tags      0 to {tag_max}")?;
        }
        Ok(())
    }
}

fn running(mpi: &Mpi, level: ThreadLevel) -> Result<Running, MpiError> {
    let world = mpi.world();
    mpi.return_errors(world)?;
    let (rank, size) = (mpi.rank(world)?, mpi.size(world)?);
    Ok(Running { thread_level: level.to_string(), rank, size, tag_max: mpi.tag_max(world)? })
}
