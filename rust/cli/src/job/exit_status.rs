//! Ends of ranks, the launcher's exit status, and the line that reports a failure.

use std::fmt;
use std::time::Duration;

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The process exited with this status.
    Exited(u8),
    /// This signal killed the process.
    Killed(u8),
}

impl ExitStatus {
    /// The exit status that a shell reports: 128 + n for signal n.
    pub fn status(self) -> u8 {
        match self {
            ExitStatus::Exited(status) => status,
            ExitStatus::Killed(signal) => 128 | signal,
        }
    }

    /// Whether the end is a success.
    pub fn is_good(self) -> bool {
        self == ExitStatus::Exited(0)
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitStatus::Exited(status) => write!(f, "exited with status {status}"),
            ExitStatus::Killed(signal) => match name(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

/// Names of the signals that every Linux has.
fn name(signal: u8) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
        "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM",
    ];
    NAMES.get(usize::from(signal).checked_sub(1)?).copied()
}

/// The end of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankExit {
    /// The name of the rank in messages.
    pub name: String,
    /// The number of its process.
    pub pid: i32,
    /// The end.
    pub status: ExitStatus,
    /// Time since the start of the job.
    pub after: Duration,
}

impl fmt::Display for RankExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RankExit { name, pid, status, after } = self;
        write!(f, "{name} (process {pid}) {status}, {:.1} s after the start", after.as_secs_f64())
    }
}

/// The result of a job, as far as its ranks have ended. A pure state machine.
///
/// [`handle_end`](Self::handle_end) takes the end of each rank and returns whether it is the first failure.
/// [`status`](Self::status) is the launcher's exit status when all ranks have ended.
#[derive(Debug, Default)]
pub struct JobResult {
    first: Option<ExitStatus>,
    /// The first rank whose process has died while its program runs on. The program's own end may still
    /// explain it.
    lost: Option<u32>,
    /// A status of the launcher's own. It wins over those of the ranks.
    own: Option<u8>,
}

impl JobResult {
    /// A rank's program has ended; true for the first failure.
    pub fn handle_end(&mut self, rank: u32, status: ExitStatus) -> bool {
        let is_first = self.first.is_none() && self.lost.is_none();
        if !status.is_good() && self.first.is_none() && self.lost.is_none_or(|lost| lost == rank) {
            self.first = Some(status);
        }
        is_first && !status.is_good()
    }

    /// A rank's process has ended without finishing, with any status; true for the first failure.
    pub fn handle_lost(&mut self, rank: u32) -> bool {
        let is_first = self.first.is_none() && self.lost.is_none();
        self.lost.get_or_insert(rank);
        is_first
    }

    /// The launcher ends the job for a reason of its own.
    pub fn handle_own(&mut self, status: u8) {
        if self.first.is_none() {
            self.own.get_or_insert(status);
        }
    }

    /// The launcher's exit status.
    pub fn status(&self) -> u8 {
        let lost = self.lost.map(|_| 1);
        self.own.or(self.first.map(ExitStatus::status)).or(lost).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_that_of_the_first_failed_rank() {
        let mut result = JobResult::default();
        assert!(!result.handle_end(0, ExitStatus::Exited(0)));
        assert!(result.handle_end(0, ExitStatus::Exited(3)));
        assert!(!result.handle_end(0, ExitStatus::Killed(15)));
        result.handle_own(124);
        assert_eq!(result.status(), 3);
    }

    #[test]
    fn status_of_a_signal_is_128_plus_its_number() {
        let mut result = JobResult::default();
        result.handle_end(0, ExitStatus::Exited(0));
        assert_eq!(result.status(), 0);
        result.handle_end(0, ExitStatus::Killed(9));
        assert_eq!(result.status(), 137);
    }

    #[test]
    fn status_of_the_launcher_precedes_kills_by_it() {
        let mut result = JobResult::default();
        result.handle_own(124);
        result.handle_end(0, ExitStatus::Killed(9));
        assert_eq!(result.status(), 124);
    }

    #[test]
    fn status_of_a_dead_rank_is_that_of_its_program_or_1() {
        let mut result = JobResult::default();
        assert!(result.handle_lost(2));
        assert_eq!(result.status(), 1);
        assert!(!result.handle_end(0, ExitStatus::Killed(15)));
        assert_eq!(result.status(), 1, "what the launcher did to the others does not count");
        assert!(!result.handle_end(2, ExitStatus::Exited(137)));
        assert_eq!(result.status(), 137);
    }

    #[test]
    fn exit_line_has_rank_cause_and_time() {
        let name = "rank 2".to_owned();
        let end =
            RankExit { name, pid: 77, status: ExitStatus::Killed(9), after: Duration::from_millis(1234) };
        assert_eq!(
            end.to_string(),
            "rank 2 (process 77) was killed by signal 9 (SIGKILL), 1.2 s after the start"
        );
        assert_eq!(ExitStatus::Exited(3).to_string(), "exited with status 3");
        assert_eq!(ExitStatus::Killed(40).to_string(), "was killed by signal 40");
    }
}
