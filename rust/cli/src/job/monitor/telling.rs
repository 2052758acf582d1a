//! What sites tell whoever has started them all of ranks that have failed, so that one line and the exit status say where it
//! began and not what came of it elsewhere.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Signal, getpid};

use super::Job;
use crate::job::ending::Ending;
use crate::job::origin::{Failure, Origin};
use crate::job::plan::Plan;

/// How long a rank that was seen failing elsewhere is waited for, when others have ended because of it.
const ORIGIN_WAIT: Duration = Duration::from_secs(5);
/// Octets that are read at a time.
const PIECE: usize = 4096;
/// Octets of a line that has no end yet, at most; whoever writes more is not one of ours.
const LINE_MAX: usize = 4096;

/// Where sites are heard by whoever has started them.
#[derive(Debug)]
pub(super) struct Hearing {
    reader: PipeReader,
    /// Sites open it by its name in /proc, so no rank inherits it.
    writer: PipeWriter,
    octets: Vec<u8>,
    origin: Origin,
    /// When nobody waits any more for a failure that explains the others.
    settle_at: Option<Instant>,
    is_settled: bool,
}

impl Hearing {
    /// For a plan whose ranks are sites.
    ///
    /// # Errors
    /// The system has no pipe.
    pub(super) fn new(plan: &Plan) -> io::Result<Option<Hearing>> {
        if plan.sites.is_none() {
            return Ok(None);
        }
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let origin = Origin::default();
        Ok(Some(Hearing { reader, writer, octets: Vec::new(), origin, settle_at: None, is_settled: false }))
    }

    /// Where a site is to tell.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), self.writer.as_raw_fd())
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    pub(super) fn settle_at(&self) -> Option<Instant> {
        self.settle_at
    }

    /// What has been told since the last time.
    fn read(&mut self) -> Vec<Failure> {
        let mut octets = [0; PIECE];
        loop {
            match rustix::io::read(&self.reader, &mut octets) {
                Ok(0) => break,
                Ok(n) => self.octets.extend(&octets[..n]),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let end = self.octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.octets.drain(..end).collect();
        self.octets.truncate(LINE_MAX);
        String::from_utf8_lossy(&lines).lines().filter_map(Failure::parse).collect()
    }
}

/// Where a site tells of its ranks, if somebody has started all sites; none also when that is gone, and then the site says by
/// itself what there is to say.
pub(super) fn teller(plan: &Plan) -> Option<std::fs::File> {
    let path = plan.tells.as_ref()?;
    // Nobody waits for a reader that has stopped.
    OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).ok()
}

impl Job {
    /// The ranks of the world that a site has.
    fn ranks_of(&self, site: u32) -> Range<u32> {
        let ranks = self.plan.sites.as_ref().map_or(0, |sites| sites.ranks);
        site * ranks..(site + 1) * ranks
    }

    /// Whether a site has told that ranks of it have failed: it ends by itself, and its status says no more.
    pub(super) fn has_told(&self, site: u32) -> bool {
        self.hearing.as_ref().is_some_and(|hearing| hearing.origin.has_failed(&self.ranks_of(site)))
    }

    /// Takes in what the sites tell.
    pub(super) fn hear_sites(&mut self) {
        let Some(hearing) = &mut self.hearing else { return };
        let told = hearing.read();
        let all = self.ranks_of(0).end * self.plan.ranks;
        for failure in told.into_iter().filter(|failure| failure.rank < all) {
            if self.plan.keep_going && !failure.text.is_empty() {
                self.say(&failure.text);
            }
            self.hearing.iter_mut().for_each(|hearing| hearing.origin.handle_failure(failure.clone()));
        }
        let Some(hearing) = self.hearing.as_mut().filter(|hearing| !hearing.is_settled) else { return };
        let now = Instant::now();
        if hearing.origin.first().is_some() {
            let at = *hearing.settle_at.get_or_insert(now + ORIGIN_WAIT);
            if hearing.origin.is_sure() || at <= now {
                self.settle();
            }
        }
    }

    /// Settles where the failure began, as far as anybody has told: that is what people hear of it, and the exit status.
    pub(super) fn settle(&mut self) {
        let Some(hearing) = self.hearing.as_mut().filter(|hearing| !hearing.is_settled) else { return };
        let Some(Failure { rank, ending, text, .. }) = hearing.origin.first().cloned() else { return };
        hearing.is_settled = true;
        hearing.settle_at = None;
        let site_ranks = self.ranks_of(0).end;
        self.verdict.handle_end(rank / site_ranks, ending);
        if self.closing.is_some() || self.plan.keep_going {
            return;
        }
        if !text.is_empty() {
            let is_alone = site_ranks * self.plan.ranks == 1;
            self.say(&if is_alone { text } else { format!("{text}; ending all other ranks") });
        }
        self.close(Signal::TERM, false);
    }

    /// Tells of the end of a rank that has failed; false when nobody listens.
    pub(super) fn tell(&mut self, rank: u32, ending: Ending, text: &str) -> bool {
        let blames = self.roster.blamed(rank);
        let is_own = self.closing.is_none() || self.has_failed_before(rank, ending);
        let rank = self.names.first.unwrap_or(0) + rank;
        let Some(teller) = &mut self.teller else { return false };
        if is_own {
            let failure = Failure { rank, blames, ending, text: text.to_owned() };
            // Whoever has started the sites may be gone, and then the job is ended anyway.
            let _ = teller.write_all(failure.emit().as_bytes());
        }
        true
    }

    /// Whether a rank that has ended while the job is being ended had failed before that: it was killed by what nobody has sent
    /// from here, or others had seen it fail.
    fn has_failed_before(&self, rank: u32, ending: Ending) -> bool {
        let is_sent = |signal: u8| self.sent.contains(&i32::from(signal));
        match ending {
            Ending::Killed(signal) => !is_sent(signal),
            Ending::Exited(status) => {
                let world_rank = self.names.first.unwrap_or(0) + rank;
                let is_blamed =
                    (0..self.plan.ranks).any(|other| self.roster.blamed(other) == Some(world_rank));
                is_blamed && !(status > 128 && is_sent(status - 128))
            }
        }
    }
}
