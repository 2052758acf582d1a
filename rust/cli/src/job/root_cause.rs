//! The root cause of a failed job of several sites, found from the reports of the sites.

use super::exit_status::ExitStatus;

/// Maximum characters of a failure's text. A report must reach its reader whole; a pipe promises that up to
/// 4096 octets.
const TEXT_MAX: usize = 512;

/// A rank that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the rank in the world.
    pub rank: u32,
    /// The peer that this rank had reported as failed, if any.
    pub reported_peer: Option<u32>,
    /// The end of its program or process.
    pub status: ExitStatus,
    /// The text for the user; empty if there is nothing to report.
    pub text: String,
}

impl Failure {
    /// The line that a site sends: rank, reported peer or `-`, `exited` or `killed`, a number, the text.
    #[must_use]
    pub fn emit(&self) -> String {
        let Failure { rank, reported_peer, status, text } = self;
        let reported_peer =
            reported_peer.map_or_else(|| "-".to_owned(), |reported_peer| reported_peer.to_string());
        let (how, number) = match status {
            ExitStatus::Exited(status) => ("exited", status),
            ExitStatus::Killed(signal) => ("killed", signal),
        };
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = text.chars().take(TEXT_MAX).map(printable).collect();
        format!("{rank} {reported_peer} {how} {number} {text}\n")
    }

    /// Parses a line, with or without its line feed; `None` if it is no report.
    #[must_use]
    pub fn parse(line: &str) -> Option<Failure> {
        let mut words = line.trim_end_matches('\n').splitn(5, ' ');
        let rank = words.next()?.parse().ok()?;
        let reported_peer = match words.next()? {
            "-" => None,
            reported_peer => Some(reported_peer.parse().ok()?),
        };
        let (how, number) = (words.next()?, words.next()?.parse().ok()?);
        let status = match how {
            "exited" => ExitStatus::Exited(number),
            "killed" => ExitStatus::Killed(number),
            _ => return None,
        };
        Some(Failure { rank, reported_peer, status, text: words.next()?.to_owned() })
    }
}

/// The reports of all sites. A pure state machine.
///
/// A rank may end because another rank has failed, and its site may report that first: a connection ends
/// before its process does. So the order of reports does not show the root cause. The root cause is the first
/// failure of a rank that had reported no peer.
#[derive(Debug, Default)]
pub struct RootCause {
    /// The reported failures in their order, one for each rank.
    failures: Vec<Failure>,
}

impl RootCause {
    /// A site has reported a failure. Only the first failure of a rank counts.
    pub fn handle_failure(&mut self, failure: Failure) {
        if !self.failures.iter().any(|other| other.rank == failure.rank) {
            self.failures.push(failure);
        }
    }

    /// The root cause, as far as the reports show it.
    #[must_use]
    pub fn first(&self) -> Option<&Failure> {
        self.failures.iter().find(|failure| failure.reported_peer.is_none()).or(self.failures.first())
    }

    /// Whether no further report changes [`first`](Self::first).
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.first().is_some_and(|failure| failure.reported_peer.is_none())
    }

    /// Whether one of these ranks has failed.
    #[must_use]
    pub fn has_failed(&self, ranks: &std::ops::Range<u32>) -> bool {
        self.failures.iter().any(|failure| ranks.contains(&failure.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(rank: u32, reported_peer: Option<u32>) -> Failure {
        Failure { rank, reported_peer, status: ExitStatus::Exited(3), text: format!("rank {rank} exited") }
    }

    fn first(failures: &[Failure]) -> (Option<u32>, bool) {
        let mut root_cause = RootCause::default();
        failures.iter().for_each(|failure| root_cause.handle_failure(failure.clone()));
        (root_cause.first().map(|failure| failure.rank), root_cause.is_sure())
    }

    #[test]
    fn rank_without_a_reported_peer_is_the_root_cause() {
        assert_eq!(first(&[]), (None, false));
        assert_eq!(first(&[failure(1, None)]), (Some(1), true));
        let (one, two, three) = (failure(1, None), failure(2, Some(1)), failure(3, Some(0)));
        assert_eq!(first(&[two.clone(), three.clone(), one.clone()]), (Some(1), true));
        assert_eq!(first(&[one.clone(), three.clone()]), (Some(1), true));
        assert_eq!(first(&[failure(5, None), one]), (Some(5), true), "then it is the first");
        assert_eq!(first(&[two, three]), (Some(2), false), "without another report");
    }

    #[test]
    fn a_rank_fails_once_and_blames_go_in_circles_without_harm() {
        assert_eq!(first(&[failure(2, Some(3)), failure(3, Some(2)), failure(2, None)]), (Some(2), false));
        let mut root_cause = RootCause::default();
        root_cause.handle_failure(failure(4, None));
        assert!(root_cause.has_failed(&(4..6)) && !root_cause.has_failed(&(0..4)));
    }

    #[test]
    fn failure_survives_the_round_trip_through_its_line() {
        let killed = Failure {
            rank: 1,
            reported_peer: Some(40),
            status: ExitStatus::Killed(9),
            text: "rank 1 (process 77) was killed by signal 9 (SIGKILL), 1.2 s after the start".to_owned(),
        };
        let line = format!("1 40 killed 9 {}\n", killed.text);
        assert_eq!(killed.emit(), line);
        for failure in
            [killed, failure(0, None), Failure { text: String::new(), ..failure(u32::MAX, Some(0)) }]
        {
            let line = failure.emit();
            assert!(line.ends_with('\n') && line.lines().count() == 1);
            assert_eq!(Failure::parse(&line), Some(failure));
        }
        let long = Failure { text: "\u{e4}\n".repeat(1000), ..failure(7, None) };
        assert!(long.emit().len() < 4096 && long.emit().lines().count() == 1);
    }

    #[test]
    fn malformed_failure_lines_are_refused() {
        for line in [
            "",
            "\n",
            "1",
            "1 - exited 3",
            "x - exited 3 t",
            "1 x exited 3 t",
            "1 - ended 3 t",
            "1 - killed 256 t",
            "-1 - killed 9 t",
            "1  - killed 9 t",
        ] {
            assert_eq!(Failure::parse(line), None, "{line:?}");
        }
    }
}
