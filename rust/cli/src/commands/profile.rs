//! `mpjdev profile`, and the options of `mpjrun` for profiles.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use mpjdev_profile::{EVENTS_VARIABLE, VARIABLE};

use super::output::print;
use crate::profile::folder::FolderError;
use crate::profile::{folder, report};

/// Single calls of a rank that `--trace` keeps.
const EVENTS: u32 = 100_000;

/// Arguments of `mpjdev profile`.
#[derive(Args, Debug)]
#[command(after_help = "\
Under mpirun, which is not mpjrun, ranks write their profiles into the folder that MPJDEV_PROFILE names. It \
has to exist, and all hosts have to share it:

  mkdir profile; MPJDEV_PROFILE=$PWD/profile mpirun -x MPJDEV_PROFILE -n 4 java -cp app.jar:mpjdev.jar Main
  mpjdev profile profile

MPJDEV_TRACE=N has each rank keep its first N calls for the timeline, trace.json.

Exit status: 0, 1 if there is no valid profile.")]
pub struct Profile {
    /// Folder with the profiles of the ranks
    folder: PathBuf,
}

impl Profile {
    /// Writes the files of the job and prints its table.
    pub fn run(&self) -> ExitCode {
        match report(&self.folder) {
            Ok(table) => ExitCode::from(print(&table)),
            Err(error) => {
                eprintln!("mpjdev: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Options of `mpjrun` for a profile.
#[derive(Args, Debug)]
pub struct ProfileOptions {
    /// Count the calls of each rank; print a table at the end, and write it with a page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "threads")]
    profile: Option<PathBuf>,

    /// With --profile, keep the first 100000 calls of each rank and write a timeline for Perfetto
    #[arg(long, requires = "profile")]
    trace: bool,
}

impl ProfileOptions {
    /// The folder, if a profile is asked for.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.profile.as_deref()
    }

    /// Prepares the folder for a new profile.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn prepare(&self) -> Result<(), FolderError> {
        self.folder().map_or(Ok(()), folder::prepare)
    }

    /// The options of a site, whose ranks write into the same folder.
    pub(super) fn words_for_site(&self) -> Vec<OsString> {
        let words = self.variables().into_iter().flat_map(|(name, value)| {
            let (mut word, option) = (name, OsString::from("-x"));
            word.push("=");
            word.push(value);
            [option, word]
        });
        words.collect()
    }

    /// The variables for ranks on other hosts, where agents make the folders.
    pub(super) fn variables_of_hosts(&self) -> Vec<(OsString, OsString)> {
        let mut variables = self.variables();
        variables.retain(|(name, _)| name != VARIABLE);
        variables
    }

    /// The variables for the ranks.
    pub(super) fn variables(&self) -> Vec<(OsString, OsString)> {
        let Some(folder) = self.folder() else { return Vec::new() };
        // A rank may change its folder.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let mut variables = vec![(VARIABLE.into(), folder.into_os_string())];
        variables.extend(self.trace.then(|| (EVENTS_VARIABLE.into(), EVENTS.to_string().into())));
        variables
    }

    /// Prints the table of a job that has ended, and writes its files.
    pub(super) fn report(&self) {
        let Some(folder) = self.folder() else { return };
        match report(folder) {
            Ok(table) => table.lines().for_each(|line| eprintln!("mpjrun: {line}")),
            Err(error) => eprintln!("mpjrun: there is no profile: {error}"),
        }
    }
}
