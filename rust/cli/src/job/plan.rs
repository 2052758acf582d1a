//! The plan of a job: the launcher's command line, parsed and checked.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::host_site::HostPlan;
use super::names::Names;
use super::network::Network;
use super::site::SitePlan;

/// The plan of a job, as the monitor uses it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of ranks, or of sites.
    pub ranks: u32,
    /// The program with its arguments.
    pub program: Vec<OsString>,
    /// The place in it of rank, number of ranks and device, which MPJ Express passes, if they are passed.
    pub prefix_at: Option<usize>,
    /// Our own jar, which holds the native library.
    pub jar: Option<PathBuf>,
    /// The name of the job in process lists and environments.
    pub job: String,
    /// Whether each line of output begins with `[rank] `.
    pub tag_output: bool,
    /// Whether each rank runs on a processor of its own.
    pub bind: bool,
    /// Time after which the job is ended.
    pub timeout: Option<Duration>,
    /// Time between asking ranks to end and killing them.
    pub grace: Duration,
    /// Time after which ranks are named that delay the start.
    pub init_timeout: Duration,
    /// Whether the other ranks continue when one fails.
    pub keep_going: bool,
    /// The transport that the user asked for.
    pub transport: String,
    /// Network settings, if ranks connect to each other.
    pub network: Option<Network>,
    /// The site in a job of several sites, if this is one.
    pub site: Option<SitePlan>,
    /// The host of these ranks, if an agent has started their monitor.
    pub host: Option<HostPlan>,
    /// The sites, if this launcher starts all of them.
    pub sites: Option<SitesPlan>,
    /// The name of the pipe for reports of failed ranks, if one launcher has started all sites.
    pub report_pipe: Option<PathBuf>,
    /// Variables for the ranks besides the inherited ones.
    pub exports: Vec<(OsString, OsString)>,
}

/// The device that MPJ Express names for ranks of one machine.
const DEVICE: &str = "multicore";

/// The sites of a job that one launcher starts.
#[derive(Clone, Debug)]
pub struct SitesPlan {
    /// Ranks of each site.
    pub ranks: u32,
    /// The text of IMPI that they follow, as the value of the option.
    pub dialect: &'static str,
    /// The words of the command line that all sites share.
    pub words: Vec<OsString>,
}

impl Plan {
    /// The names of ranks before a job of several sites has formed.
    pub fn names(&self) -> Names {
        match (&self.site, &self.host) {
            (Some(site), _) => Names { site: Some(site.client), first: site.first, ..Names::default() },
            (None, Some(host)) => {
                Names { host: Some(host.name.clone()), first: Some(host.first), ..Names::default() }
            }
            (None, None) => Names { are_sites: self.sites.is_some(), ..Names::alone() },
        }
    }

    /// The command line of a rank or of a site. `server` is the address of the startup server, `report_pipe`
    /// the pipe for reports of failed ranks.
    pub fn words(&self, rank: u32, server: &str, report_pipe: &str) -> Vec<OsString> {
        let Some(sites) = &self.sites else { return self.program_of(rank) };
        let (place, first) = (rank.to_string(), (rank * sites.ranks).to_string());
        let own = [
            "/proc/self/exe",
            "run",
            "--client",
            &place,
            server,
            "--first-rank",
            &first,
            "--report-pipe",
            report_pipe,
        ];
        own.into_iter().map(OsString::from).chain(sites.words.iter().cloned()).collect()
    }

    fn program_of(&self, rank: u32) -> Vec<OsString> {
        let mut words = self.program.clone();
        if let Some(at) = self.prefix_at {
            let (first, size) = self.world().unwrap_or((0, self.ranks));
            let prefix = [(first + rank).to_string(), size.to_string(), DEVICE.to_owned()];
            words.splice(at..at, prefix.map(OsString::from));
        }
        words
    }

    /// The world rank of the first rank, and the size of the job. A site of several does not know them yet.
    fn world(&self) -> Option<(u32, u32)> {
        match (&self.host, &self.site) {
            (Some(host), _) => Some((host.first, host.size)),
            (None, None) => Some((0, self.ranks)),
            (None, Some(_)) => None,
        }
    }

    /// The variables of a rank.
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
        let world = self.world().map(|(first, size)| {
            [("MPJDEV_WORLD_RANK", (first + rank).to_string()), ("MPJDEV_WORLD_SIZE", size.to_string())]
        });
        let own = own.into_iter().chain(world.into_iter().flatten());
        let own = own.map(|(name, value)| (name.into(), value.into()));
        self.exports.iter().cloned().chain(own).collect()
    }
}
