//! `report`: a page of docs/performance from runs of `figures` and of `series`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::BenchError;
use crate::page::{Run, charts, page};

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "\
A file has a section of the page, which has the name of the file. A series has its chart there, as a file \
beside the page, and its cliffs:

  mpjdev-bench figures --transport shm --save shm.json
  mpjdev-bench figures --transport tcp --save tcp.json
  mpjdev-bench series --transport shm --save series-shm.json
  mpjdev-bench report shm.json tcp.json series-shm.json > docs/performance/2026-11.md")]
pub struct Report {
    /// Files that `figures --save` and `series --save` have written
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Folder of the page, for the charts of series
    #[arg(long, value_name = "FOLDER", default_value = "docs/performance")]
    folder: PathBuf,
}

impl Report {
    /// Draws the charts and prints the page; gives the exit status.
    pub fn run(&self) -> ExitCode {
        match self.write() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::from(crate::UNUSABLE)
            }
        }
    }

    fn write(&self) -> Result<(), BenchError> {
        let runs = self.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        for (name, svg) in charts(&runs).map_err(BenchError::system("a chart"))? {
            let file = self.folder.join(name);
            let written = std::fs::write(&file, svg);
            written.map_err(BenchError::system(format!("{}, see --folder", file.display())))?;
        }
        io::stdout().write_all(page(&runs).as_bytes()).map_err(BenchError::system("standard output"))
    }
}

/// A run and its name.
fn read(file: &Path) -> Result<(String, Run), BenchError> {
    let wrong = |why: String| BenchError::Missing(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let run: Run = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if run.figures.is_empty() && run.cliffs.is_none() {
        return Err(wrong("no figures and no series; --save of these commands writes them".to_owned()));
    }
    Ok((file.file_stem().unwrap_or_default().to_string_lossy().into_owned(), run))
}
