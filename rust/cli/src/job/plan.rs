//! What is to be run: the launcher's command line, worked out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A job as its monitor gets it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of ranks.
    pub ranks: u32,
    /// The program with its arguments.
    pub program: Vec<OsString>,
    /// Our own jar, which has the native library.
    pub jar: Option<PathBuf>,
    /// Names the job, for people who look at processes and environments.
    pub job: String,
    /// `[rank] ` before each line.
    pub tag_output: bool,
    /// Each rank on a processor of its own.
    pub bind: bool,
    /// When the job is ended.
    pub timeout: Option<Duration>,
    /// Between asking ranks to end and killing them.
    pub grace: Duration,
    /// After which ranks are named that keep others waiting at their start.
    pub init_wait: Duration,
    /// A failing rank does not end the others.
    pub keep_going: bool,
    /// How ranks reach each other.
    pub transport: String,
    /// Variables for the ranks beside those that are inherited.
    pub exports: Vec<(OsString, OsString)>,
}

impl Plan {
    /// The variables that a rank gets.
    pub fn environment(&self, rank: u32) -> Vec<(OsString, OsString)> {
        let own = [
            ("MPJDEV_RANK", rank.to_string()),
            ("MPJDEV_SIZE", self.ranks.to_string()),
            ("MPJDEV_JOB", self.job.clone()),
            ("MPJDEV_TRANSPORT", self.transport.clone()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.exports.iter().cloned().chain(own).collect()
    }
}
