//! What is to be run: the launcher's command line, worked out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::names::Names;
use super::network::Network;
use super::site::SitePlan;

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
    /// How ranks reach each other, as the user has asked for it.
    pub transport: String,
    /// Where they listen, when they reach each other over connections.
    pub network: Option<Network>,
    /// Where they belong, when they are a part of a job of several sites.
    pub site: Option<SitePlan>,
    /// What is started are sites, each with ranks of its own.
    pub sites: Option<SitesPlan>,
    /// Where failed ranks are told of, when somebody has started all sites: the name of a pipe.
    pub tells: Option<PathBuf>,
    /// Variables for the ranks beside those that are inherited.
    pub exports: Vec<(OsString, OsString)>,
}

/// Sites that are all started here.
#[derive(Clone, Debug)]
pub struct SitesPlan {
    /// Ranks of each.
    pub ranks: u32,
    /// The text of IMPI that they follow, as an option says it.
    pub dialect: &'static str,
    /// What the command line of each has in common, behind its place among the others.
    pub words: Vec<OsString>,
}

impl Plan {
    /// What ranks are called before a job of several sites has formed.
    pub fn names(&self) -> Names {
        match &self.site {
            Some(site) => Names { site: Some(site.client), first: site.first, are_sites: false },
            None => Names { are_sites: self.sites.is_some(), ..Names::alone() },
        }
    }

    /// The program of a rank, or what a site is; `server` is where sites join, `tells` where they tell of failed ranks.
    pub fn words(&self, rank: u32, server: &str, tells: &str) -> Vec<OsString> {
        let Some(sites) = &self.sites else { return self.program.clone() };
        let (place, first) = (rank.to_string(), (rank * sites.ranks).to_string());
        let own =
            ["/proc/self/exe", "run", "--client", &place, server, "--first-rank", &first, "--tells", tells];
        own.into_iter().map(OsString::from).chain(sites.words.iter().cloned()).collect()
    }

    /// The variables that a rank gets.
    pub fn environment(&self, rank: u32) -> Vec<(OsString, OsString)> {
        if self.sites.is_some() {
            return Vec::new();
        }
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
