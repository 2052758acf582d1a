//! The options of `mpjrun` for several hosts, and the plan that they make.

use std::env;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use thiserror::Error;

use super::profile::ProfileOptions;
use crate::hosts::allocation::{self, Allocation, AllocationError, System};
use crate::hosts::hello::Setup;
use crate::hosts::host_list::{Host, HostListError, parse_hostfile, parse_hosts};
use crate::hosts::plan::{HostsPlan, StagePlan};
use crate::hosts::rank_map::{MapBy, SlotsError, map};
use crate::hosts::remote_command::RemoteShell;
use crate::hosts::stage::{Stage, StageError};
use crate::job::target::{Program, Surroundings, TargetError};

/// Options of `mpjrun` for several hosts.
#[derive(Args, Debug)]
pub struct HostOptions {
    /// Hosts with their slots, as a:4,b:4: start the ranks there through ssh
    #[arg(long, alias = "host", value_name = "HOSTS", conflicts_with_all = ["client", "sites", "threads", "hostfile"])]
    hosts: Option<String>,

    /// File with a host on each line: HOST, HOST:N or HOST slots=N
    #[arg(long, value_name = "FILE", conflicts_with_all = ["client", "sites", "threads"])]
    hostfile: Option<PathBuf>,

    /// Order in which hosts receive ranks
    #[arg(long, value_enum, default_value_t = MapBy::Slot)]
    map_by: MapBy,

    /// Program that starts a command on a host: ssh, srun, or another with its options, called with HOST and
    /// COMMAND [default: MPJDEV_RSH, srun within Slurm, else ssh]
    #[arg(long, value_name = "PROGRAM")]
    launcher: Option<String>,

    /// Copy mpjdev and the class path into a temporary folder on each host
    #[arg(long)]
    stage: bool,

    /// Interface or network, such as eth0 or 10.1.0.0/16, whose addresses the ranks on hosts listen at
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,

    /// Hosts that are started at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    at_once: u32,

    /// Print the commands for the hosts, and start nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Print what each host is, and the addresses of its ranks
    #[arg(long)]
    verbose: bool,
}

/// The hosts of a job.
#[derive(Debug)]
pub(super) struct FoundHosts {
    hosts: Vec<Host>,
    /// The batch system that has given them, if it was one.
    system: Option<System>,
}

/// The options of a job that the launcher of ranks has as well.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// Number of ranks, if the user gives it.
    pub(super) ranks: Option<u32>,
    /// The program, as the user has written it.
    pub(super) program: &'a [OsString],
    /// Variables for the ranks.
    pub(super) exports: &'a [(OsString, OsString)],
    pub(super) profile: &'a ProfileOptions,
    /// Addresses that ranks may listen at.
    pub(super) addresses: &'a [IpAddr],
    /// Further options, in the words of `mpjdev run`.
    pub(super) words: Vec<String>,
    /// Time for a host to get ready.
    pub(super) connect_time: Duration,
    /// Time without a sign of a rank after which it has failed.
    pub(super) peer_timeout: Duration,
    /// Time after which the job is ended.
    pub(super) timeout: Option<Duration>,
    /// Time between asking ranks to end and killing them.
    pub(super) grace: Duration,
    /// Time after which hosts are named that delay the start.
    pub(super) init_timeout: Duration,
    /// Whether the other ranks continue when one fails.
    pub(super) keep_going: bool,
}

/// The reason why a job on several hosts cannot be planned.
#[derive(Debug, Error)]
pub enum HostsError {
    /// The value of `--hosts`.
    #[error("--hosts: {0}")]
    List(HostListError),
    /// The contents of a hostfile.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: PathBuf,
        /// The error.
        error: HostListError,
    },
    /// A hostfile cannot be read.
    #[error("--hostfile: {file}: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The variables of the batch system.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// More ranks than slots.
    #[error(transparent)]
    Slots(#[from] SlotsError),
    /// There is no such program.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The program cannot be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Options of hosts without hosts.
    #[error(
        "--stage, --launcher, --interface, --dry-run and --verbose are for jobs with --hosts or --hostfile"
    )]
    NoHosts,
    /// There is no such launcher.
    #[error("--launcher: the name of a program is needed, such as ssh, srun or \"ssh -p 2222\"")]
    Launcher,
    /// The command line cannot be sent.
    #[error("{0:?} is not UTF-8 and cannot be sent to another host")]
    Text(OsString),
    /// A folder or file of this machine is unknown.
    #[error("{what}: {source}")]
    Here {
        /// Its name in the message.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

/// The variable that names the program that starts agents.
const RSH: &str = "MPJDEV_RSH";
/// Beginnings of the names of variables that every rank gets.
const FORWARDED: [&str; 2] = ["MPJDEV_", "IMPI_"];
/// Variables of these that belong to this machine, or are secrets of another way to start.
const KEPT: [&str; 4] = [RSH, "IMPI_AUTH_KEY", "IMPI_AUTH_KEY_FILE", "IMPI_AUTH_NONE"];
/// Part of the peer timeout without a sign of a host after which it is lost. The loss is known before the
/// other ranks report theirs, so that it is named as the cause.
const SILENCE: f64 = 0.75;

impl HostOptions {
    /// The hosts of the job; `None` if all ranks run here. `is_other` is true in a job of threads or sites,
    /// which starts no agents.
    ///
    /// # Errors
    /// A list of hosts is malformed, or an option needs hosts and there are none.
    pub(super) fn hosts(&self, is_other: bool) -> Result<Option<FoundHosts>, HostsError> {
        match (&self.hosts, &self.hostfile) {
            (Some(text), _) => {
                return Ok(Some(FoundHosts {
                    hosts: parse_hosts(text).map_err(HostsError::List)?,
                    system: None,
                }));
            }
            (None, Some(file)) => return Ok(Some(FoundHosts { hosts: from_file(file)?, system: None })),
            (None, None) => {}
        }
        if let Some(Allocation { system, hosts }) = if is_other { None } else { allocation()? } {
            return Ok(Some(FoundHosts { hosts, system: Some(system) }));
        }
        let is_for_hosts =
            self.stage || self.dry_run || self.verbose || self.launcher.is_some() || self.interface.is_some();
        if is_for_hosts { Err(HostsError::NoHosts) } else { Ok(None) }
    }

    /// The plan of a job on these hosts.
    ///
    /// # Errors
    /// Slots, program or options do not fit.
    pub(super) fn plan(
        &self,
        FoundHosts { hosts, system }: FoundHosts,
        request: Request<'_>,
        around: &dyn Surroundings,
    ) -> Result<HostsPlan, HostsError> {
        let shares = map(&hosts, request.ranks, self.map_by)?;
        let program = Program::of(request.program, around)?;
        let here = |what| move |source| HostsError::Here { what, source };
        let path = env::current_exe().map_err(here("the program of mpjrun"))?;
        let mut stage = None;
        if self.stage {
            let staged = Stage::of(&program, &around.own_jars())?;
            let program_len = path.metadata().map_err(here("the program of mpjrun"))?.len();
            let words = texts(&staged.words)?;
            stage = Some(StagePlan { program_len, sources: staged.sources, words });
        }
        let folder = env::current_dir().map_err(here("the working directory"))?;
        let setup = Setup {
            words: texts(request.program)?,
            variables: variables(request.exports, request.profile.variables_of_hosts())?,
            folder: text(folder.into_os_string())?,
            class_path: entries(&program)?,
            needs_java: program.is_java,
            silence_ms: request.peer_timeout.mul_f64(SILENCE).as_millis() as u64,
            interface: self.interface.clone(),
            addresses: request.addresses.to_vec(),
            ..Setup::default()
        };
        Ok(HostsPlan {
            shares,
            shell: self.shell(system, around)?,
            program: path,
            stage,
            setup,
            options: request.words,
            local_names: local_names(),
            at_once: self.at_once as usize,
            connect_time: request.connect_time,
            timeout: request.timeout,
            grace: request.grace,
            init_timeout: request.init_timeout,
            keep_going: request.keep_going,
            profiles: request.profile.folder().map(Path::to_owned),
            is_verbose: self.verbose,
        })
    }

    fn shell(&self, system: Option<System>, around: &dyn Surroundings) -> Result<RemoteShell, HostsError> {
        let named = self.launcher.clone().or_else(|| env::var(RSH).ok().filter(|text| !text.is_empty()));
        match named {
            Some(text) => RemoteShell::parse(&text).ok_or(HostsError::Launcher),
            None if system == Some(System::Slurm) && around.is_command("srun".as_ref()) => {
                Ok(RemoteShell::Srun)
            }
            None => Ok(RemoteShell::Ssh(Vec::new())),
        }
    }
}

/// The hosts of the batch system, if it has given this job more than this machine.
fn allocation() -> Result<Option<Allocation>, HostsError> {
    let found = allocation::find(|name| env::var(name).ok(), |file| std::fs::read_to_string(file))?;
    let own = local_names();
    Ok(found.filter(|found| found.hosts.iter().any(|host| !own.contains(&host.name))))
}

fn from_file(file: &PathBuf) -> Result<Vec<Host>, HostsError> {
    let text =
        std::fs::read_to_string(file).map_err(|source| HostsError::Read { file: file.clone(), source })?;
    parse_hostfile(&text).map_err(|error| HostsError::File { file: file.clone(), error })
}

/// The names of this machine.
fn local_names() -> Vec<String> {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = node.split('.').next().unwrap_or_default().to_owned();
    vec!["localhost".to_owned(), node, short]
}

/// The entries of the class path that every host must have.
fn entries(program: &Program) -> Result<Vec<String>, HostsError> {
    let all = program.class_path.iter().chain(program.is_jar.then_some(&program.name));
    let is_here = |entry: &&OsString| {
        !entry.as_encoded_bytes().ends_with(b"*") && std::path::Path::new(entry.as_os_str()).exists()
    };
    let all: Vec<OsString> = all.filter(is_here).cloned().collect();
    texts(&all)
}

/// Variables for the ranks: those of `-x`, and ours of this environment.
fn variables(
    exports: &[(OsString, OsString)],
    own: Vec<(OsString, OsString)>,
) -> Result<Vec<(String, String)>, HostsError> {
    let is_ours = |name: &OsString| {
        let name = name.to_string_lossy();
        FORWARDED.iter().any(|begin| name.starts_with(begin)) && !KEPT.contains(&&*name)
    };
    let inherited = env::vars_os().filter(|(name, _)| is_ours(name));
    let class_path = env::var_os("CLASSPATH").map(|path| ("CLASSPATH".into(), path));
    let all = inherited.chain(class_path).chain(exports.iter().cloned()).chain(own);
    all.map(|(name, value)| Ok((text(name)?, text(value)?))).collect()
}

fn texts(words: &[OsString]) -> Result<Vec<String>, HostsError> {
    words.iter().cloned().map(text).collect()
}

fn text(word: OsString) -> Result<String, HostsError> {
    word.into_string().map_err(HostsError::Text)
}
