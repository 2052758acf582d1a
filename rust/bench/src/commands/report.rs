//! `report`: a page of docs/performance from saved results.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::BenchError;
use crate::page::{Source, charts, page};

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Each file becomes a section with the name of the file. Files are those of figures, series, goodput and budget \
with --save, and the report.json of ./gradlew bench. The chart of a series is written to a file beside the page.

  mpjdev-bench figures --transport shm --jobs 5 --save shm.json
  mpjdev-bench series --transport shm --save series-shm.json
  mpjdev-bench goodput --save goodput.json
  mpjdev-bench budget --save budget.json
  cp build/reports/bench/report.json jmh.json
  mpjdev-bench report shm.json series-shm.json goodput.json budget.json jmh.json > docs/performance/2026-11.md

./gradlew benchPage writes the page of report.json and goodput.")]
pub struct Report {
    /// Files with saved results
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Subject of the page, for its title
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,

    /// Folder of the page, for the charts of series
    #[arg(long, value_name = "FOLDER", default_value = "docs/performance")]
    folder: PathBuf,
}

impl Report {
    /// Draws the charts, prints the page and returns the exit status.
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
        let sources = self.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        for (name, svg) in charts(&sources).map_err(BenchError::system("a chart"))? {
            let file = self.folder.join(name);
            let written = std::fs::write(&file, svg);
            written.map_err(BenchError::system(format!("{}, see --folder", file.display())))?;
        }
        let page = page(self.subject.as_deref(), &sources);
        io::stdout().write_all(page.as_bytes()).map_err(BenchError::system("standard output"))
    }
}

/// Name and results of a file.
fn read(file: &Path) -> Result<(String, Source), BenchError> {
    let wrong = |why: String| BenchError::Missing(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let source = Source::parse(&text).map_err(|error| wrong(error.to_string()))?;
    if !source.has_results() {
        return Err(wrong(
            "no results; --save of figures, series, goodput and budget writes them".to_owned(),
        ));
    }
    Ok((file.file_stem().unwrap_or_default().to_string_lossy().into_owned(), source))
}
