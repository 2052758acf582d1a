//! `report`: a page of docs/performance from runs of `figures`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::BenchError;
use crate::page::{Run, page};

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "\
A file has a section of the page, which has the name of the file:

  mpjdev-bench figures --transport shm --save shm.json
  mpjdev-bench figures --transport tcp --save tcp.json
  mpjdev-bench report shm.json tcp.json > docs/performance/2026-11.md")]
pub struct Report {
    /// Files that `figures --save` has written
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Report {
    /// Prints the page; gives the exit status.
    pub fn run(&self) -> ExitCode {
        let runs: Result<Vec<_>, _> = self.files.iter().map(|file| read(file)).collect();
        let printed = runs.and_then(|runs| {
            let printed = io::stdout().write_all(page(&runs).as_bytes());
            printed.map_err(BenchError::system("standard output"))
        });
        match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::from(crate::UNUSABLE)
            }
        }
    }
}

/// A run and its name.
fn read(file: &Path) -> Result<(String, Run), BenchError> {
    let wrong = |why: String| BenchError::Missing(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let run: Run = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if run.figures.is_empty() {
        return Err(wrong("no figures; mpjdev-bench figures --save writes them".to_owned()));
    }
    Ok((file.file_stem().unwrap_or_default().to_string_lossy().into_owned(), run))
}
