//! The folder of a profile: the files of the ranks in it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use mpjdev_profile::rank_profile::VERSION;
use mpjdev_profile::{Call, RankProfile};
use thiserror::Error;

/// Maximum octets of one rank's profile.
pub const LINE_MAX: u64 = 128 << 20;
/// More ranks than a job has.
const RANKS_MAX: u32 = 1 << 20;

/// Maximum octets of the name of a host or a call.
const NAME_MAX: usize = 255;
/// Classes of message sizes.
const SIZES_MAX: usize = 65;

/// The reason why there is no report.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// It is not a folder.
    #[error("--profile {folder}: this is a file; name a folder, which is created if there is none")]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// A file of the user is in the way.
    #[error("{path} is not of a profile, which would replace it: move it, or name another folder")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// There is no file of a rank.
    #[error(
        "{folder} has no profile of a rank: ranks write one when they finish or their JVM ends; a rank that \
         was killed, or never called Comm.init or MPI.Init, has none"
    )]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
    /// A file is not a profile.
    #[error("{path}, line {line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The mistake.
        why: String,
    },
    /// Ranks of different jobs.
    #[error(
        "the profile of rank {rank} is of a job of {ranks} ranks, others are of {others}: remove old files"
    )]
    Mixed {
        /// The rank.
        rank: u32,
        /// The size of its job.
        ranks: u32,
        /// The size of the others.
        others: u32,
    },
}

/// The name of the file with the profiles of a host's ranks.
#[must_use]
pub fn host_file(host: usize) -> String {
    format!("host-{host}.json")
}

/// An error of the system about a path.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> FolderError + '_ {
    |source| FolderError::Io { path: path.to_owned(), source }
}

/// Creates the folder if need be, and removes the files of an earlier profile from it.
///
/// # Errors
/// It cannot be created or written to.
pub fn prepare(folder: &Path) -> Result<(), FolderError> {
    if folder.exists() && !folder.is_dir() {
        return Err(FolderError::NotAFolder { folder: folder.to_owned() });
    }
    fs::create_dir_all(folder).map_err(at(folder))?;
    let of_job = [super::JSON, super::PAGE, super::TIMELINE].map(|name| folder.join(name));
    let of_ranks = files(folder)?;
    let old: Vec<&PathBuf> = of_job.iter().chain(&of_ranks).filter(|path| path.exists()).collect();
    for path in &old {
        if !is_ours(path).map_err(at(path))? {
            return Err(FolderError::Foreign { path: path.to_path_buf() });
        }
    }
    for path in old {
        fs::remove_file(path).map_err(at(path))?;
    }
    // A folder that this user cannot write to is an error before a rank starts.
    let probe = folder.join(super::JSON);
    File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(at(folder))
}

/// Whether a file is one of a profile, by its first octets. An empty one is.
fn is_ours(path: &Path) -> io::Result<bool> {
    const MARKS: [&str; 4] = [
        "{\"version\":",
        "{\"size\":",
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[",
        "<title>Profile of ",
    ];
    let mut head = Vec::new();
    File::open(path)?.take(256).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    Ok(head.is_empty() || MARKS.iter().any(|mark| head.contains(mark)))
}

/// The files of ranks in a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = ["rank-", "host-"].iter().find_map(|prefix| name.strip_prefix(prefix));
        let number = number.and_then(|rest| rest.strip_suffix(".json"));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Passes on the profiles in a folder, one at a time. A file has one for each line.
///
/// # Errors
/// The system refuses, a file is not valid, or the error of `each`.
pub fn read(
    folder: &Path,
    mut each: impl FnMut(RankProfile) -> Result<(), FolderError>,
) -> Result<(), FolderError> {
    for path in files(folder)? {
        let mut file = BufReader::new(File::open(&path).map_err(at(&path))?);
        for line in 1.. {
            let mut octets = Vec::new();
            let read = file.by_ref().take(LINE_MAX + 1).read_until(b'\n', &mut octets).map_err(at(&path))?;
            if read == 0 {
                break;
            }
            let profile = match read as u64 > LINE_MAX {
                true => Err(format!("it has more than {LINE_MAX} octets")),
                false => parse(&octets),
            };
            each(profile.map_err(|why| FolderError::Line { path: path.clone(), line, why })?)?;
        }
    }
    Ok(())
}

/// A profile whose numbers are in range.
fn parse(line: &[u8]) -> Result<RankProfile, String> {
    let profile: RankProfile = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let RankProfile { version, rank, ranks, .. } = profile;
    if version != VERSION {
        return Err(format!("it has version {version}, and this mpjdev reads version {VERSION}"));
    }
    if ranks > RANKS_MAX || rank >= ranks {
        return Err(format!("it is of rank {rank} of {ranks}"));
    }
    let is_name = |text: &str| text.len() <= NAME_MAX && !text.chars().any(char::is_control);
    let is_named = profile.calls.iter().all(|count| is_name(&count.call))
        && profile.longest.iter().all(|call| is_name(&call.call))
        && is_name(&profile.host);
    if !is_named {
        return Err("a name is too long, or has control characters".to_owned());
    }
    if profile.sizes.len() > SIZES_MAX {
        return Err(format!("it has {} classes of sizes", profile.sizes.len()));
    }
    let peers = profile.calls.iter().filter_map(|count| count.peer);
    let peers = peers.chain(profile.peers.iter().map(|count| count.peer));
    let mut peers = peers.chain(profile.longest.iter().filter_map(|call| call.peer));
    if let Some(peer) = peers.find(|peer| *peer >= ranks) {
        return Err(format!("it has the peer {peer} in a job of {ranks} ranks"));
    }
    if let Some(event) = profile.events.iter().find(|event| usize::from(event.1) >= Call::ALL.len()) {
        return Err(format!("it has a call with the number {}", event.1));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut RankProfile)) -> String {
        let mut profile = RankProfile { version: VERSION, rank: 1, ranks: 4, ..RankProfile::default() };
        change(&mut profile);
        parse(&serde_json::to_vec(&profile).expect("JSON")).map(|_| ()).expect_err("refused")
    }

    #[test]
    fn profile_with_numbers_out_of_range_is_refused() {
        use mpjdev_profile::rank_profile::{CallCount, Event, LongCall, PeerCount};

        assert!(refused(|profile| profile.version = 7).contains("version 7"));
        assert!(refused(|profile| profile.rank = 4).contains("rank 4 of 4"));
        assert!(refused(|profile| profile.ranks = u32::MAX).contains("of 4294967295"));
        let peer = |peer| PeerCount { peer, ..PeerCount::default() };
        assert!(refused(|profile| profile.peers.push(peer(4))).contains("peer 4"));
        let call = CallCount { peer: Some(9), ..CallCount::default() };
        assert!(refused(|profile| profile.calls.push(call)).contains("peer 9"));
        let long = LongCall { peer: Some(5), ..LongCall::default() };
        assert!(refused(|profile| profile.longest.push(long)).contains("peer 5"));
        assert!(refused(|profile| profile.events.push(Event(0, 200, 0, 0, 0, 0, 0))).contains("number 200"));
        assert!(refused(|profile| profile.host = "a\u{1b}[31m".to_owned()).contains("control"));
        assert!(refused(|profile| profile.host = "a".repeat(256)).contains("too long"));
        assert!(refused(|profile| profile.sizes = vec![0; 66]).contains("66 classes"));
        assert!(parse(b"{}").is_err() && parse(b"rank").is_err());
    }
}
