//! Reactions of the launcher of several hosts to failed ranks and lost hosts.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tracing::{info, warn};

use super::{Monitor, NOT_FORMED};
use crate::hosts::host_link::HostLink;
use crate::hosts::plan::ranks;
use crate::job::exit_status::ExitStatus;
use crate::job::root_cause::Failure;

/// Time to wait for the report of a rank that others have reported as failed.
const ROOT_CAUSE_WAIT: Duration = Duration::from_secs(5);

impl Monitor {
    /// A rank of a host has failed.
    pub(super) fn handle_failure(&mut self, at: usize, line: &str) {
        let failure =
            Failure::parse(line).filter(|failure| self.plan.shares[at].ranks.contains(&failure.rank));
        let Some(failure) = failure else {
            return warn!(target: "mpjdev::failure", line, "a host sends a report that is not valid");
        };
        self.take_failure(failure);
    }

    fn take_failure(&mut self, failure: Failure) {
        if self.plan.keep_going && !failure.text.is_empty() {
            self.print_line(&failure.text);
        }
        self.root_cause.handle_failure(failure);
        if !self.is_settled {
            self.settle_at = self.settle_at.or_else(|| Instant::now().checked_add(ROOT_CAUSE_WAIT));
            if self.root_cause.is_sure() {
                self.settle_root_cause();
            }
        }
    }

    /// Takes the best report so far as the root cause, prints it, and sets the exit status.
    pub(super) fn settle_root_cause(&mut self) {
        let Some(failure) = self.root_cause.first().filter(|_| !self.is_settled) else { return };
        let Failure { rank, status, text, .. } = failure.clone();
        info!(target: "mpjdev::failure", member = rank, %status, "root cause of the job's failure is chosen");
        self.is_settled = true;
        self.settle_at = None;
        let at = self.plan.shares.iter().position(|share| share.ranks.contains(&rank)).unwrap_or(0);
        self.result.handle_end(at as u32, status);
        if self.closing.is_some() || self.plan.keep_going {
            return;
        }
        let running = self.hosts.iter().any(HostLink::is_running) && self.plan.ranks() > 1;
        let others = if running { "; ending all other ranks" } else { "" };
        if !text.is_empty() {
            self.print_line(&format!("{text}{others}"));
        }
        self.close(Signal::TERM, true);
    }

    /// All ranks of a host have ended.
    pub(super) fn handle_end(&mut self, at: usize, status: u8) {
        info!(target: "mpjdev::job", host = self.hosts[at].name, status, "ranks of a host have ended");
        if self.root_cause.has_failed(&self.plan.shares[at].ranks) {
            return;
        }
        // The host's monitor has printed the reason.
        if self.result.handle_end(at as u32, ExitStatus::Exited(status)) && !self.plan.keep_going {
            self.close(Signal::TERM, true);
        }
    }

    /// A host is lost.
    pub(super) fn handle_loss(&mut self, at: usize, why: &str) {
        let share = &self.plan.shares[at];
        let name = &self.hosts[at].name;
        warn!(target: "mpjdev::failure", host = name, why, "host is lost");
        let text = format!("host {name} with {} is lost: {why}", ranks(share));
        let failure = Failure {
            rank: share.ranks.start,
            reported_peer: None,
            status: ExitStatus::Exited(NOT_FORMED),
            text,
        };
        if self.closing.is_none() {
            self.take_failure(failure);
        } else {
            self.result.handle_end(at as u32, failure.status);
        }
        self.hosts[at].kill();
    }
}
