//! Pages shared by all ranks beside their segments: the common page that all write, and the monitor's status
//! page.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use mpjdev_sys::segment::{Segment, Writers, allocate};

use super::SegmentPool;
use super::layout::{
    DEATHS, FAILED, FAILED_PEER, FINISHED, FUTEXES, MAGIC, PROGRESS, RANK, STATE, STATUS_EPOCH, STATUS_RANKS,
    WHY, WHY_LEN, WHY_MAX, common_len, futex_words, status_page_len, tables_len,
};
use crate::StatusReporter;

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It exited with this status.
    Exited(u8),
    /// This signal killed it.
    Killed(u8),
    /// The cause is unknown.
    Unknown,
}

/// Entries of the status page: the end of a process, with its status or signal in the low octet.
const EXITED: u64 = 1 << 8;
const KILLED: u64 = 2 << 8;
const UNKNOWN: u64 = 3 << 8;
/// Entry of a process that has ended after its finish.
const ENDED: u64 = 4 << 8;

impl Death {
    fn emit(self) -> u64 {
        match self {
            Death::Exited(status) => EXITED | u64::from(status),
            Death::Killed(signal) => KILLED | u64::from(signal),
            Death::Unknown => UNKNOWN,
        }
    }

    /// The end that an entry states; `None` for a process that runs or has finished.
    fn parse(entry: u64) -> Option<Death> {
        let low = entry as u8;
        match entry & !0xff {
            0 | ENDED => None,
            EXITED => Some(Death::Exited(low)),
            KILLED => Some(Death::Killed(low)),
            _ => Some(Death::Unknown),
        }
    }
}

impl Display for Death {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Death::Exited(status) => write!(f, "its process exited with status {status}"),
            Death::Killed(signal) => write!(f, "its process was killed by signal {signal}"),
            Death::Unknown => f.write_str("its process has died"),
        }
    }
}

/// Both pages, held by the process that starts a job.
#[derive(Debug)]
pub struct StatusPage {
    ranks: usize,
    common: Segment,
    common_file: OwnedFd,
    status: Segment,
    status_file: OwnedFd,
}

impl StatusPage {
    /// Creates the pages of a job of `ranks` ranks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(ranks: usize) -> io::Result<StatusPage> {
        let (common, common_file) = Segment::create("mpjdev-job", common_len(ranks), Writers::All)?;
        allocate(common_file.as_fd(), 0, common_len(ranks))?;
        let (status, status_file) = Segment::create("mpjdev-status", status_page_len(ranks), Writers::Owner)?;
        allocate(status_file.as_fd(), 0, status_page_len(ranks))?;
        status.words()[STATUS_RANKS].store(ranks as u64, Relaxed);
        status.words()[0].store(MAGIC, Release);
        Ok(StatusPage { ranks, common, common_file, status, status_file })
    }

    /// The files that the ranks need, common page first.
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.common_file.as_fd(), self.status_file.as_fd()]
    }

    /// Records that the process of a finished rank has ended. It holds no slab of other ranks any more. Wakes
    /// no rank.
    pub fn note_end(&self, rank: u32) {
        let _ = self.status.words()[DEATHS + rank as usize].compare_exchange(0, ENDED, Release, Relaxed);
    }

    /// Records that a rank's process has ended without finishing, and wakes all ranks.
    pub fn record_death(&self, rank: u32, death: Death) {
        let words = self.status.words();
        words[DEATHS + rank as usize].store(death.emit(), Release);
        words[STATUS_EPOCH].fetch_add(1, SeqCst);
        for rank in 0..self.ranks {
            let part = FUTEXES + rank * futex_words(self.ranks);
            self.common.futex(part).wake();
            // A rank whose program computes may hold packets for the dead rank.
            self.common.futex(part + PROGRESS).wake_counted();
        }
    }
}

/// Both pages as a rank maps them.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) common: Segment,
    status: Segment,
}

impl Pages {
    /// Maps the pages.
    ///
    /// # Errors
    /// The files do not have the size or the header of the pages; the system refuses.
    pub(super) fn open(ranks: usize, [common, status]: [BorrowedFd<'_>; 2]) -> io::Result<Pages> {
        let common = Segment::open(common, common_len(ranks), Writers::All)?;
        let status = Segment::open(status, status_page_len(ranks), Writers::Owner)?;
        let words = status.words();
        if words[0].load(Acquire) != MAGIC || words[STATUS_RANKS].load(Relaxed) != ranks as u64 {
            return Err(io::Error::other("the launcher is of another version"));
        }
        Ok(Pages { common, status })
    }

    /// A number that changes when a rank dies.
    #[inline(always)]
    pub(super) fn epoch(&self) -> u32 {
        self.status.words()[STATUS_EPOCH].load(Acquire) as u32
    }

    /// Whether a rank's process has ended, finished or not.
    pub(super) fn has_ended(&self, rank: u32) -> bool {
        self.status.words()[DEATHS + rank as usize].load(Acquire) != 0
    }

    /// The end of a rank's process, if it ended without finishing.
    pub(super) fn death_of(&self, rank: u32) -> Option<Death> {
        Death::parse(self.status.words()[DEATHS + rank as usize].load(Acquire))
    }
}

/// Whether a rank has finished, according to its segment.
pub fn has_finished(file: BorrowedFd<'_>, ranks: usize, rank: u32) -> bool {
    word(file, ranks, rank, STATE) == Some(FINISHED)
}

/// World rank of the first peer that a rank has seen fail on a connection, according to its segment. A rank
/// that ends afterwards may have ended because of that failure.
pub fn reported_failed_peer(file: BorrowedFd<'_>, ranks: usize, rank: u32) -> Option<u32> {
    word(file, ranks, rank, FAILED_PEER)?.checked_sub(1).and_then(|blamed| u32::try_from(blamed).ok())
}

/// A word of a rank's segment; `None` if the file is not that segment.
fn word(file: BorrowedFd<'_>, ranks: usize, rank: u32, at: usize) -> Option<u64> {
    let segment = Segment::open(file, tables_len(ranks), Writers::Owner).ok()?;
    let words = segment.words();
    let is_its = words[0].load(Acquire) == MAGIC && words[RANK].load(Acquire) == u64::from(rank);
    is_its.then(|| words[at].load(Acquire))
}

/// Records in a rank's segment that it has failed, and why. The text is cut to its maximum.
pub(super) fn set_failed(words: &[AtomicU64], why: &str) {
    let mut len = why.len().min(WHY_MAX);
    while !why.is_char_boundary(len) {
        len -= 1;
    }
    mpjdev_buffer::octets::copy_in(words, WHY * 8, &why.as_bytes()[..len]);
    words[WHY_LEN].store(len as u64, Relaxed);
    words[STATE].store(FAILED, Release);
}

/// Records that the process of this segment could not become a rank.
pub fn fail_joining(pool: &SegmentPool, why: &str) {
    set_failed(pool.segment.words(), why);
}

/// Reports in the rank's own segment. A process that does not become its rank marks itself as finished.
impl StatusReporter for SegmentPool {
    fn report_failed_peer(&self, rank: u32) {
        let _ = self.segment.words()[FAILED_PEER].compare_exchange(0, u64::from(rank) + 1, Release, Relaxed);
    }

    fn mark_finished(&self) {
        self.segment.words()[STATE].store(FINISHED, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_death_survives_the_round_trip_through_its_entry() {
        let octets = || 0..=u8::MAX;
        let deaths = octets().map(Death::Exited).chain(octets().map(Death::Killed)).chain([Death::Unknown]);
        for death in deaths {
            assert_eq!(Death::parse(death.emit()), Some(death));
        }
    }

    #[test]
    fn process_that_runs_or_has_finished_has_no_death() {
        assert_eq!([0, ENDED].map(Death::parse), [None, None]);
    }

    #[test]
    fn unknown_entry_is_a_death_of_unknown_cause() {
        assert_eq!([0x500, u64::MAX].map(Death::parse), [Some(Death::Unknown); 2]);
    }

    #[test]
    fn death_has_its_status_or_signal() {
        let texts = [
            (Death::Exited(3), "its process exited with status 3"),
            (Death::Killed(9), "its process was killed by signal 9"),
            (Death::Unknown, "its process has died"),
        ];
        for (death, text) in texts {
            assert_eq!(death.to_string(), text);
        }
    }
}
