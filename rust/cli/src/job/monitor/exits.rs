//! Reactions of a monitor to the ends of its ranks.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tracing::{debug, info};

use super::Monitor;
use crate::job::exit_status::{ExitStatus, RankExit};

/// Time to wait for the failure that explains another one. A connection ends before its process does. The
/// other ranks are not killed during that time, since the status of a killed rank shows no cause.
const ROOT_CAUSE_WAIT: Duration = Duration::from_secs(2);
/// The status of a rank that has died while its program runs on.
const LOST: u8 = 1;
/// The signal of a process that writes to a closed pipe.
const SIGPIPE: u8 = 13;

/// The end of a rank's program or process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramExit {
    pub(super) rank: u32,
    pub(super) pid: Pid,
    pub(super) status: ExitStatus,
    /// Whether the process was a rank that had not finished.
    pub(super) is_lost: bool,
}

impl Monitor {
    /// A rank's process has died, and its program still runs.
    pub(super) fn handle_loss(&mut self, rank: u32) {
        let is_first = self.result.handle_lost(rank);
        if is_first {
            info!(target: "mpjdev::failure", member = rank, "root cause of the job's failure is chosen");
        }
        // A later end of the program no longer explains the death.
        self.result.handle_own(LOST);
        if !is_first || self.closing.is_some() {
            return;
        }
        let after = self.begun.elapsed().as_secs_f64();
        let name = self.names.rank_on_host(rank);
        let text = format!("{name} has died without Comm.finish, {after:.1} s after the start");
        if !self.report(rank, ExitStatus::Exited(LOST), &text) {
            self.print_line(&text);
        }
        if !self.plan.keep_going {
            self.close(Signal::TERM, false);
        }
    }

    /// Handles the end of a rank's program or process, or defers it if it may follow from another failure.
    pub(super) fn handle_or_defer_exit(&mut self, end: ProgramExit) {
        let is_good = end.status.is_good() && !end.is_lost;
        if !is_good && self.may_be_explained(end.rank) {
            let ProgramExit { rank, status, .. } = end;
            debug!(target: "mpjdev::failure", member = rank, %status, "failure may follow from another one");
            return self.deferred_exits.push((end, Instant::now() + ROOT_CAUSE_WAIT));
        }
        self.handle_exit(&end);
    }

    /// Whether the failure of a peer may explain the end of a rank: the rank had reported the peer, whose end
    /// is not known yet, and some ranks still run.
    fn may_be_explained(&self, rank: u32) -> bool {
        let Some(reported) = self.members.reported_peer(rank) else { return false };
        // This monitor does not see the ends of other sites' ranks.
        let own = reported.checked_sub(self.names.first.unwrap_or(0)).map(|own| own as usize);
        let is_known = own.is_some_and(|own| own < self.ranks.len() && !self.is_running(own));
        self.closing.is_none() && !is_known && self.running_count() > 0
    }

    /// Handles the deferred exits whose wait is over.
    pub(super) fn handle_deferred_exits(&mut self) {
        let now = Instant::now();
        let deferred = std::mem::take(&mut self.deferred_exits);
        let waits = |(end, until): &(ProgramExit, Instant)| *until > now && self.may_be_explained(end.rank);
        let (deferred, over): (Vec<_>, Vec<_>) = deferred.into_iter().partition(waits);
        self.deferred_exits = deferred;
        over.into_iter().for_each(|(end, _)| self.handle_exit(&end));
    }

    /// Handles the end of a rank's program or process.
    fn handle_exit(&mut self, end: &ProgramExit) {
        let ProgramExit { rank, pid, status, is_lost } = *end;
        let was_lost = self.losses.iter().any(|(lost, _)| *lost == rank);
        self.losses.retain(|(lost, _)| *lost != rank);
        let is_lost = is_lost || was_lost;
        if self.has_reported(rank) {
            return;
        }
        if !status.is_good() {
            // Ranks that died before this end come first.
            std::mem::take(&mut self.losses).into_iter().for_each(|(lost, _)| self.handle_loss(lost));
        }
        let pid = pid.as_raw_nonzero().get();
        let end = RankExit { name: self.names.rank_on_host(rank), pid, status, after: self.begun.elapsed() };
        let failed = self.result.handle_end(rank, status);
        let is_first = failed || (is_lost && self.result.handle_lost(rank));
        if is_first {
            info!(
                target: "mpjdev::failure", member = rank, pid, %status,
                "root cause of the job's failure is chosen"
            );
        }
        if status.is_good() && !is_lost {
            return;
        }
        // A program that writes to a closed output ends by SIGPIPE. The user has closed it, and needs no
        // report.
        let is_unread =
            status == ExitStatus::Killed(SIGPIPE) && (self.out.is_unread() || self.err.is_unread());
        // A site that exits has reported the reason itself.
        let has_reported = self.plan.sites.is_some() && matches!(status, ExitStatus::Exited(_));
        let end = match is_unread || has_reported {
            true => String::new(),
            false if is_lost => format!("{end}, without Comm.finish"),
            false => end.to_string(),
        };
        let is_reported = self.report(rank, status, &end);
        if self.closing.is_some() {
            return;
        }
        if !is_reported && !end.is_empty() {
            self.print_end(&end, is_first);
        }
        if !self.plan.keep_going {
            self.close(Signal::TERM, false);
        }
    }

    /// Reports the failure of a rank, and the consequence for the others.
    fn print_end(&mut self, end: &str, is_first: bool) {
        let left = self.running_count();
        if self.plan.keep_going || left == 0 {
            self.print_line(end);
        } else if is_first {
            let noun = self.names.noun();
            let others =
                if left == 1 { format!("the other {noun}") } else { format!("the other {left} {noun}s") };
            self.print_line(&format!("{end}; ending {others}"));
        }
    }
}
