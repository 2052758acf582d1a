//! Reports of failed ranks from sites to the launcher that started all of them. With these reports its
//! message and its exit status name the root cause instead of a consequence.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Signal, getpid};
use tracing::info;

use super::Monitor;
use crate::job::exit_status::ExitStatus;
use crate::job::plan::Plan;
use crate::job::root_cause::{Failure, RootCause};

/// Time to wait for the report of a rank that others have reported as failed.
const ROOT_CAUSE_WAIT: Duration = Duration::from_secs(5);
/// Octets of one read.
const PIECE: usize = 4096;
/// Maximum octets of an incomplete line, more than a site sends.
const LINE_MAX: usize = 4096;

/// The launcher's end of the pipe for reports.
#[derive(Debug)]
pub(super) struct SiteReports {
    reader: PipeReader,
    /// The sites open the pipe by its path in /proc, so that no rank inherits it.
    writer: PipeWriter,
    octets: BytesMut,
    root_cause: RootCause,
    /// The time at which the best report so far is taken as the root cause.
    settle_at: Option<Instant>,
    is_settled: bool,
}

impl SiteReports {
    /// The pipe of a plan that starts sites.
    ///
    /// # Errors
    /// The system refuses a pipe.
    pub(super) fn new(plan: &Plan) -> io::Result<Option<SiteReports>> {
        if plan.sites.is_none() {
            return Ok(None);
        }
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let root_cause = RootCause::default();
        Ok(Some(SiteReports {
            reader,
            writer,
            octets: BytesMut::new(),
            root_cause,
            settle_at: None,
            is_settled: false,
        }))
    }

    /// The path of the pipe for the sites.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), self.writer.as_raw_fd())
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    pub(super) fn settle_at(&self) -> Option<Instant> {
        self.settle_at
    }

    /// The reports that have arrived since the last call.
    fn read(&mut self) -> Vec<Failure> {
        let mut octets = [0; PIECE];
        loop {
            match rustix::io::read(&self.reader, &mut octets) {
                Ok(0) => break,
                Ok(n) => self.octets.extend_from_slice(&octets[..n]),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let end = self.octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
        let lines = self.octets.split_to(end);
        self.octets.truncate(LINE_MAX);
        String::from_utf8_lossy(&lines).lines().filter_map(Failure::parse).collect()
    }
}

/// The site's end of the pipe, if one launcher has started all sites and still runs. Without it the site
/// reports to its own standard error.
pub(super) fn report_pipe(plan: &Plan) -> Option<std::fs::File> {
    let path = plan.report_pipe.as_ref()?;
    // A write must not block when the reader is stopped.
    OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).ok()
}

impl Monitor {
    /// The world ranks of a site.
    fn ranks_of(&self, site: u32) -> Range<u32> {
        let ranks = self.plan.sites.as_ref().map_or(0, |sites| sites.ranks);
        site * ranks..(site + 1) * ranks
    }

    /// Whether a site has reported failed ranks. Such a site ends by itself, and its status adds nothing.
    pub(super) fn has_reported(&self, site: u32) -> bool {
        self.site_reports
            .as_ref()
            .is_some_and(|site_reports| site_reports.root_cause.has_failed(&self.ranks_of(site)))
    }

    /// Receives the reports of the sites.
    pub(super) fn read_site_reports(&mut self) {
        let Some(site_reports) = &mut self.site_reports else { return };
        let failures = site_reports.read();
        let all = self.ranks_of(0).end * self.plan.ranks;
        for failure in failures.into_iter().filter(|failure| failure.rank < all) {
            if self.plan.keep_going && !failure.text.is_empty() {
                self.print_line(&failure.text);
            }
            self.site_reports
                .iter_mut()
                .for_each(|site_reports| site_reports.root_cause.handle_failure(failure.clone()));
        }
        let Some(site_reports) = self.site_reports.as_mut().filter(|site_reports| !site_reports.is_settled)
        else {
            return;
        };
        let now = Instant::now();
        if site_reports.root_cause.first().is_some() {
            let at = *site_reports.settle_at.get_or_insert(now + ROOT_CAUSE_WAIT);
            if site_reports.root_cause.is_sure() || at <= now {
                self.settle_root_cause();
            }
        }
    }

    /// Takes the best report so far as the root cause, prints it, and sets the exit status.
    pub(super) fn settle_root_cause(&mut self) {
        let Some(site_reports) = self.site_reports.as_mut().filter(|site_reports| !site_reports.is_settled)
        else {
            return;
        };
        let Some(Failure { rank, status, text, .. }) = site_reports.root_cause.first().cloned() else {
            return;
        };
        info!(target: "mpjdev::failure", member = rank, %status, "root cause of the job's failure is chosen");
        site_reports.is_settled = true;
        site_reports.settle_at = None;
        let site_ranks = self.ranks_of(0).end;
        self.result.handle_end(rank / site_ranks, status);
        if self.closing.is_some() || self.plan.keep_going {
            return;
        }
        if !text.is_empty() {
            let is_alone = site_ranks * self.plan.ranks == 1;
            self.print_line(&if is_alone { text } else { format!("{text}; ending all other ranks") });
        }
        self.close(Signal::TERM, false);
    }

    /// Reports the end of a failed rank; false if there is no pipe.
    pub(super) fn report(&mut self, rank: u32, status: ExitStatus, text: &str) -> bool {
        let reported_peer = self.members.reported_peer(rank);
        let is_own = self.closing.is_none() || self.has_failed_before(rank, status);
        let rank = self.names.first.unwrap_or(0) + rank;
        let Some(report_pipe) = &mut self.report_pipe else { return false };
        if is_own {
            let failure = Failure { rank, reported_peer, status, text: text.to_owned() };
            // An error means that the launcher of all sites has died, which ends the job.
            let _ = report_pipe.write_all(failure.emit().as_bytes());
        }
        true
    }

    /// Whether a rank that ended while the job is ending had failed before: a signal of another sender killed
    /// it, or other ranks had reported it.
    fn has_failed_before(&self, rank: u32, status: ExitStatus) -> bool {
        let is_sent = |signal: u8| self.sent.contains(&i32::from(signal));
        match status {
            ExitStatus::Killed(signal) => !is_sent(signal),
            ExitStatus::Exited(status) => {
                let world_rank = self.names.first.unwrap_or(0) + rank;
                let is_reported =
                    (0..self.plan.ranks).any(|other| self.members.reported_peer(other) == Some(world_rank));
                is_reported && !(status > 128 && is_sent(status - 128))
            }
        }
    }
}
