//! How ranks ended, and what the launcher makes of it: its exit status and a line for people.

use std::fmt;
use std::time::Duration;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(u8),
    /// This signal killed it.
    Killed(u8),
}

impl Ending {
    /// The status that shells have for it: signals as 128 + n.
    pub fn status(self) -> u8 {
        match self {
            Ending::Exited(status) => status,
            Ending::Killed(signal) => 128 | signal,
        }
    }

    /// Whether it counts as success.
    pub fn is_good(self) -> bool {
        self == Ending::Exited(0)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exited with status {status}"),
            Ending::Killed(signal) => match name(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

/// Names of the signals that have one on every Linux.
fn name(signal: u8) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
        "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM",
    ];
    NAMES.get(usize::from(signal).checked_sub(1)?).copied()
}

/// The end of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankEnd {
    /// What people call it.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// How it ended.
    pub ending: Ending,
    /// Since the start of the job.
    pub after: Duration,
}

impl fmt::Display for RankEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RankEnd { name, pid, ending, after } = self;
        write!(f, "{name} (process {pid}) {ending}, {:.1} s after the start", after.as_secs_f64())
    }
}

/// What has been seen of a job so far: a machine without clock or processes.
///
/// [`handle_end`](Self::handle_end) for each rank that ends tells whether it is the first that failed;
/// [`status`](Self::status) is the launcher's when all are gone.
#[derive(Debug, Default)]
pub struct Verdict {
    first: Option<Ending>,
    /// The first rank whose process has died behind its program, which may still say how by its own end.
    lost: Option<u32>,
    /// A status of the launcher's own, which goes before the ranks'.
    own: Option<u8>,
}

impl Verdict {
    /// A rank's program has ended; true for the first one that failed.
    pub fn handle_end(&mut self, rank: u32, ending: Ending) -> bool {
        let is_first = self.first.is_none() && self.lost.is_none();
        if !ending.is_good() && self.first.is_none() && self.lost.is_none_or(|lost| lost == rank) {
            self.first = Some(ending);
        }
        is_first && !ending.is_good()
    }

    /// A rank's process has ended without finishing, whatever its status; true for the first failure.
    pub fn handle_lost(&mut self, rank: u32) -> bool {
        let is_first = self.first.is_none() && self.lost.is_none();
        self.lost.get_or_insert(rank);
        is_first
    }

    /// The launcher ended the job for a reason of its own.
    pub fn handle_own(&mut self, status: u8) {
        if self.first.is_none() {
            self.own.get_or_insert(status);
        }
    }

    /// The launcher's exit status.
    pub fn status(&self) -> u8 {
        let lost = self.lost.map(|_| 1);
        self.own.or(self.first.map(Ending::status)).or(lost).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failing_rank_gives_the_status() {
        let mut verdict = Verdict::default();
        assert!(!verdict.handle_end(0, Ending::Exited(0)));
        assert!(verdict.handle_end(0, Ending::Exited(3)));
        assert!(!verdict.handle_end(0, Ending::Killed(15)));
        verdict.handle_own(124);
        assert_eq!(verdict.status(), 3);
    }

    #[test]
    fn signals_are_128_and_more_and_all_good_is_0() {
        let mut verdict = Verdict::default();
        verdict.handle_end(0, Ending::Exited(0));
        assert_eq!(verdict.status(), 0);
        verdict.handle_end(0, Ending::Killed(9));
        assert_eq!(verdict.status(), 137);
    }

    #[test]
    fn a_reason_of_the_launchers_own_goes_before_what_it_does_to_the_ranks() {
        let mut verdict = Verdict::default();
        verdict.handle_own(124);
        verdict.handle_end(0, Ending::Killed(9));
        assert_eq!(verdict.status(), 124);
    }

    #[test]
    fn a_rank_that_died_behind_its_program_gives_the_programs_status_or_1() {
        let mut verdict = Verdict::default();
        assert!(verdict.handle_lost(2));
        assert_eq!(verdict.status(), 1);
        assert!(!verdict.handle_end(0, Ending::Killed(15)));
        assert_eq!(verdict.status(), 1, "what the launcher did to the others does not count");
        assert!(!verdict.handle_end(2, Ending::Exited(137)));
        assert_eq!(verdict.status(), 137);
    }

    #[test]
    fn the_line_says_which_rank_how_and_when() {
        let name = "rank 2".to_owned();
        let end = RankEnd { name, pid: 77, ending: Ending::Killed(9), after: Duration::from_millis(1234) };
        assert_eq!(
            end.to_string(),
            "rank 2 (process 77) was killed by signal 9 (SIGKILL), 1.2 s after the start"
        );
        assert_eq!(Ending::Exited(3).to_string(), "exited with status 3");
        assert_eq!(Ending::Killed(40).to_string(), "was killed by signal 40");
    }
}
