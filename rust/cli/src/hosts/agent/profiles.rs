//! The profiles of the host's ranks: the folder that they write into, and their way to the launcher.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::process::getpid;

use crate::hosts::channel::Channel;
use crate::hosts::frame::{DATA_MAX, Stream};

/// Names that are tried for the folder.
const NAMES_MAX: u32 = 100;

/// The folder, which is removed in the end.
#[derive(Debug)]
pub(super) struct Profiles {
    folder: PathBuf,
    /// The files that are left, once the ranks have ended.
    left: Option<Vec<PathBuf>>,
    sending: Option<File>,
}

impl Profiles {
    /// Makes the folder, within the one with the copied files if there is one.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn create(staged: Option<&Path>) -> io::Result<Profiles> {
        let parent = staged.map_or_else(env::temp_dir, Path::to_owned);
        let mut number = 0;
        loop {
            let folder = parent.join(format!("mpjdev-profiles-{}-{number}", getpid().as_raw_nonzero()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                // An agent with this process id was killed, and has left its folder.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => {
                    number += 1;
                }
                Err(error) => {
                    let why = format!("the folder for profiles, {}: {error}", folder.display());
                    return Err(io::Error::new(error.kind(), why));
                }
                Ok(()) => return Ok(Profiles { folder, left: None, sending: None }),
            }
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends what the ranks have written, as far as the credit allows. True when everything is sent. A file
    /// that cannot be read is left out: the launcher names the ranks without a profile.
    pub(super) fn send(&mut self, channel: &mut Channel) -> bool {
        let left = self.left.get_or_insert_with(|| files(&self.folder));
        loop {
            let Some(file) = &mut self.sending else {
                let Some(path) = left.pop() else { return true };
                self.sending = File::open(path).ok();
                continue;
            };
            let room = channel.room(Stream::Profiles);
            if room == 0 {
                return false;
            }
            let mut octets = vec![0; room.min(DATA_MAX)];
            match file.read(&mut octets) {
                Ok(0) | Err(_) => self.sending = None,
                Ok(n) => {
                    octets.truncate(n);
                    channel.send_data(Stream::Profiles, octets.into());
                }
            }
        }
    }
}

/// The files of a folder but those that a killed rank has left unfinished, whose names begin with a point.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let whole = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    whole.map(|entry| entry.path()).collect()
}

impl Drop for Profiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_killed_agent_is_left_alone() {
        let first = Profiles::create(None).expect("a folder");
        let second = Profiles::create(None).expect("another one");
        let (first_folder, second_folder) = (first.folder().to_owned(), second.folder().to_owned());
        assert!(first_folder != second_folder && second_folder.is_dir());
        drop(second);
        assert!(first_folder.is_dir() && !second_folder.exists());
    }

    #[test]
    fn folder_that_cannot_be_made_is_named() {
        let error = Profiles::create(Some(Path::new("/proc/none"))).expect_err("no folder").to_string();
        assert!(error.contains("/proc/none/mpjdev-profiles-"), "{error}");
    }
}
