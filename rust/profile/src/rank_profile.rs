//! The file of a rank's profile: one line of JSON.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Raised when a field changes its meaning.
pub const VERSION: u32 = 1;

/// The counts of one rank from the end of its init on. Times are nanoseconds, octets those of messages
/// with the headers of their sections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankProfile {
    /// Version of this form.
    pub version: u32,
    /// World rank.
    pub rank: u32,
    /// Number of ranks of the job.
    pub ranks: u32,
    /// Name of the machine.
    pub host: String,
    /// Process id.
    pub process: u32,
    /// The end of init, since 1970 by the machine's clock.
    pub begun_ns: u64,
    /// Time from there to the last count.
    pub elapsed_ns: u64,
    /// Threads that made calls.
    pub threads: u32,
    /// Sum over these threads of the time from their first call to their end.
    pub thread_ns: u64,
    /// Sum over these threads of the time in calls.
    pub calls_ns: u64,
    /// Counts by call and peer.
    pub calls: Vec<CallCount>,
    /// Messages by rank that they were sent to or received from.
    pub peers: Vec<PeerCount>,
    /// Sent messages by size: element n counts those of less than 2^n octets that no earlier element counts.
    pub sizes: Vec<u64>,
    /// The longest calls, longest first.
    pub longest: Vec<LongCall>,
    /// Single calls in the order of their ends, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Calls that were asked for and are not in `events`, because there were too many.
    #[serde(default)]
    pub events_lost: u64,
}

/// The counts of a call with one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCount {
    /// Name of the call in MPI.
    pub call: String,
    /// World rank of the peer; `None` for a collective call, or if no message was sent or received.
    pub peer: Option<u32>,
    /// Number of calls.
    pub count: u64,
    /// Time in them.
    pub ns: u64,
    /// Octets that they sent.
    pub sent: u64,
    /// Octets that they received.
    pub received: u64,
}

/// Messages between this rank and a peer, those of collective calls among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCount {
    /// World rank of the peer.
    pub peer: u32,
    /// Messages sent to it.
    pub messages_sent: u64,
    /// Their octets.
    pub sent: u64,
    /// Messages received from it.
    pub messages_received: u64,
    /// Their octets.
    pub received: u64,
}

/// A call that took long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongCall {
    /// Name of the call in MPI.
    pub call: String,
    /// World rank of the peer, as in [`CallCount::peer`].
    pub peer: Option<u32>,
    /// Its start, since the end of init.
    pub at_ns: u64,
    /// Its time.
    pub ns: u64,
    /// Octets that it sent and received.
    pub octets: u64,
}

/// A single call: thread, number of the call in [`Call::ALL`](crate::Call::ALL), start since the end of init,
/// time, peer or -1, octets sent, octets received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event(pub u32, pub u8, pub u64, pub u64, pub i64, pub u64, pub u64);

/// The reason why there is no file of a rank.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The system refuses.
    #[error("{path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// The number of events is not valid.
    #[error(
        "{variable} is {value:?}: give the number of calls to keep, from 1 to {most}",
        variable = crate::EVENTS_VARIABLE,
        most = crate::EVENTS_MAX
    )]
    Events {
        /// The value.
        value: String,
    },
}

/// The name of a rank's file.
fn file_name(rank: u32) -> String {
    format!("rank-{rank}.json")
}

impl RankProfile {
    /// Writes the file of this rank in a folder. Another one of that name is replaced at once, so that no
    /// reader finds a part of it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&self, folder: &Path) -> Result<(), ProfileError> {
        let path = folder.join(file_name(self.rank));
        let part = folder.join(format!(".{}.{}", file_name(self.rank), std::process::id()));
        let mut line = serde_json::to_vec(self).map_err(io::Error::from).map_err(at(&path))?;
        line.push(b'\n');
        let written = File::create(&part).and_then(|mut file| file.write_all(&line));
        let moved = written.and_then(|()| fs::rename(&part, &path));
        if moved.is_err() {
            let _ = fs::remove_file(&part);
        }
        moved.map_err(at(&path))
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> ProfileError + '_ {
    |source| ProfileError::Write { path: path.to_owned(), source }
}
