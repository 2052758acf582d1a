//! The plan of a job on several hosts.

use std::path::PathBuf;
use std::time::Duration;

use super::hello::Setup;
use super::rank_map::Share;
use super::remote_command::{AgentCommand, RemoteShell, command, local_command, shown};
use super::stage::Source;

/// Octets of the agent's program and of the files that are copied to each host.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// Octets of the program.
    pub program_len: u64,
    /// The other files.
    pub sources: Vec<Source>,
}

/// The plan of a job on several hosts.
#[derive(Clone, Debug)]
pub struct HostsPlan {
    /// The hosts with their ranks.
    pub shares: Vec<Share>,
    /// The program that starts agents.
    pub shell: RemoteShell,
    /// Our own program, which hosts have at the same place unless it is staged.
    pub program: PathBuf,
    /// The files for each host, if they are copied.
    pub stage: Option<StagePlan>,
    /// The setup of each host, but for its name and its first rank.
    pub setup: Setup,
    /// Words that precede the program's in the setup of a host: those of its options.
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
        self.stage.is_none() && self.local_names.contains(&self.shares[host].host)
    }

    /// The words that start the agent of a host.
    #[must_use]
    pub fn words(&self, host: usize) -> Vec<std::ffi::OsString> {
        if self.is_local(host) {
            return local_command();
        }
        let agent = match &self.stage {
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
        let words = own.into_iter().chain(self.options.clone()).chain(self.setup.words.clone());
        Setup {
            host: share.host.clone(),
            words: words.collect(),
            first: share.ranks.start,
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
        let words: Vec<_> = self.setup.words.iter().map(std::ffi::OsString::from).collect();
        text += &format!("program: {}\n", shown(&words));
        if let Some(stage) = &self.stage {
            let (octets, count) = (self.staged_octets(), stage.sources.len() + 1);
            text += &format!("staged on each host: {count} files, {octets} octets\n");
        }
        text
    }

    /// Octets that are copied to each host.
    #[must_use]
    pub fn staged_octets(&self) -> u64 {
        let files = |stage: &StagePlan| {
            stage.program_len + stage.sources.iter().map(|source| source.staged.len).sum::<u64>()
        };
        self.stage.as_ref().map_or(0, files)
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
