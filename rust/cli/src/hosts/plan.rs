//! The plan of a job on several hosts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::hello::Setup;
use super::rank_map::Share;
use super::remote_command::{AgentCommand, RemoteShell, command, local_command, shown};
use super::stage::Source;

/// The files that are copied to each host but this machine.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// Octets of the agent's program.
    pub program_len: u64,
    /// The other files.
    pub sources: Vec<Source>,
    /// Words of the program that names these files.
    pub words: Vec<String>,
}

impl StagePlan {
    /// Octets that are copied to a host.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.program_len + self.sources.iter().map(|source| source.staged.len).sum::<u64>()
    }
}

/// The plan of a job on several hosts.
#[derive(Clone, Debug)]
pub struct HostsPlan {
    /// The hosts with their ranks.
    pub shares: Vec<Share>,
    /// The program that starts agents.
    pub shell: RemoteShell,
    /// Our own program, which hosts have at the same place unless it is copied.
    pub program: PathBuf,
    /// The files that are copied, if any are.
    pub stage: Option<StagePlan>,
    /// The setup that all hosts share. Its words are those of the program.
    pub setup: Setup,
    /// Words of the options of each host's monitor.
    pub options: Vec<String>,
    /// Names that mean this machine. No remote shell is needed there.
    pub local_names: Vec<String>,
    /// Agents that are started at the same time.
    pub at_once: usize,
    /// Time for a host to get ready.
    pub connect_time: Duration,
    /// Time after which the job is ended.
    pub timeout: Option<Duration>,
    /// Time between asking ranks to end and killing them.
    pub grace: Duration,
    /// Time after which hosts are named that delay the start.
    pub init_timeout: Duration,
    /// Whether the other ranks continue when one fails.
    pub keep_going: bool,
    /// The folder for the profiles of the ranks, if they write any.
    pub profiles: Option<PathBuf>,
    /// Whether to print what each host is.
    pub is_verbose: bool,
}

impl HostsPlan {
    /// Number of ranks of the job.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.shares.last().map_or(0, |share| share.ranks.end)
    }

    /// Whether a host is this machine, so that its agent needs no remote shell.
    #[must_use]
    pub fn is_local(&self, host: usize) -> bool {
        self.local_names.contains(&self.shares[host].host)
    }

    /// The files that are copied to a host.
    #[must_use]
    pub fn stage_of(&self, host: usize) -> Option<&StagePlan> {
        self.stage.as_ref().filter(|_| !self.is_local(host))
    }

    /// The words that start the agent of a host.
    #[must_use]
    pub fn words(&self, host: usize) -> Vec<OsString> {
        if self.is_local(host) {
            return local_command();
        }
        let agent = match self.stage_of(host) {
            Some(stage) => AgentCommand::Staged { len: stage.program_len },
            None => AgentCommand::Installed,
        };
        command(&self.shell, &self.shares[host].host, &self.program, &agent)
    }

    /// The setup of a host.
    #[must_use]
    pub fn setup(&self, host: usize) -> Setup {
        let share = &self.shares[host];
        let own = [
            "-n".to_owned(),
            share.ranks.len().to_string(),
            "--first-rank".to_owned(),
            share.ranks.start.to_string(),
            "--world-size".to_owned(),
            self.ranks().to_string(),
            "--of-host".to_owned(),
            share.host.clone(),
        ];
        let stage = self.stage_of(host);
        let program = stage.map_or(&self.setup.words, |stage| &stage.words);
        let words = own.into_iter().chain(self.options.iter().cloned()).chain(program.iter().cloned());
        Setup {
            host: share.host.clone(),
            profiles: self.profiles.is_some(),
            words: words.collect(),
            files: stage.map_or(0, |stage| stage.sources.len() as u32),
            ..self.setup.clone()
        }
    }

    /// The text of `--dry-run`.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut text = String::new();
        for (at, share) in self.shares.iter().enumerate() {
            text += &format!("{}: {}\n  {}\n", share.host, ranks(share), shown(&self.words(at)));
        }
        let words: Vec<_> = self.setup.words.iter().map(OsString::from).collect();
        text += &format!("program: {}\n", shown(&words));
        if let Some(stage) = &self.stage {
            let count = stage.sources.len() + 1;
            text += &format!("copied to each other host: {count} files, {} octets\n", stage.octets());
        }
        text
    }
}

/// The ranks of a share, as messages show them.
#[must_use]
pub fn ranks(share: &Share) -> String {
    match share.ranks.len() {
        1 => format!("rank {}", share.ranks.start),
        _ => format!("ranks {} to {}", share.ranks.start, share.ranks.end - 1),
    }
}
