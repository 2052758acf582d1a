//! The files for the profiles that agents send.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::hosts::plan::HostsPlan;
use crate::profile::folder::{LINE_MAX, host_file};

/// A file for each host, which has a line for each of its ranks.
#[derive(Debug)]
pub(super) struct ProfileFiles {
    folder: Option<PathBuf>,
    /// The file of each host, and octets that it may still get.
    files: Vec<(Option<File>, u64)>,
}

impl ProfileFiles {
    /// No file is made before a host has sent octets for it.
    pub(super) fn new(plan: &HostsPlan) -> ProfileFiles {
        let most = |ranks: u32| u64::from(ranks).saturating_mul(LINE_MAX);
        let files = plan.shares.iter().map(|share| (None, most(share.ranks.len() as u32)));
        ProfileFiles { folder: plan.profiles.clone(), files: files.collect() }
    }

    /// Stores octets of a host. After an error all others of this host are dropped.
    ///
    /// # Errors
    /// The system refuses, or the host sends more than its ranks can have.
    pub(super) fn store(&mut self, host: usize, octets: &[u8]) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let (file, left) = &mut self.files[host];
        if *left == 0 {
            return Ok(());
        }
        let stored = match left.checked_sub(octets.len() as u64) {
            None => Err(io::Error::other("they are longer than profiles of its ranks can be")),
            Some(rest) => {
                *left = rest;
                let file = match file {
                    Some(file) => file,
                    none => none.insert(File::create(folder.join(host_file(host)))?),
                };
                file.write_all(octets)
            }
        };
        if stored.is_err() {
            *left = 0;
        }
        stored
    }
}
