//! What the one that starts a job knows of its ranks' processes, and says in the common page.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

use mpjdev_sys::segment::{Segment, Writers};

use super::layout::{BELLS, DEATH, EPOCH, FINISHED, MAGIC, RANK, STATE, bell_words, tables_len};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It exited with this status.
    Exited(u8),
    /// This signal killed it.
    Killed(u8),
    /// Nobody knows how.
    Unknown,
}

impl Death {
    fn emit(self) -> u64 {
        match self {
            Death::Exited(status) => 0x100 | u64::from(status),
            Death::Killed(signal) => 0x200 | u64::from(signal),
            Death::Unknown => 0x300,
        }
    }
}

/// What the other ranks say of it; none while it is not dead.
pub(super) fn parse(word: u64) -> Option<String> {
    let low = word & 0xff;
    Some(match word >> 8 {
        0 => return None,
        1 => format!("its process exited with status {low}"),
        2 => format!("its process was killed by signal {low}"),
        _ => "its process has died".to_owned(),
    })
}

/// Says that a rank's process has ended without finishing, and wakes all ranks.
pub fn announce(common: &Segment, ranks: usize, rank: u32, death: Death) {
    let part = |rank: u32| BELLS + rank as usize * bell_words(ranks);
    let words = common.words();
    words[part(rank) + DEATH].store(death.emit(), Release);
    words[EPOCH].fetch_add(1, SeqCst);
    (0..ranks as u32).for_each(|rank| common.bell(part(rank)).ring());
}

/// Whether a rank has finished, as its segment says.
pub fn has_finished(file: BorrowedFd<'_>, ranks: usize, rank: u32) -> bool {
    let Ok(segment) = Segment::open(file, tables_len(ranks), Writers::Owner) else { return false };
    let words = segment.words();
    let is_its = words[0].load(Acquire) == MAGIC && words[RANK].load(Acquire) == u64::from(rank);
    is_its && words[STATE].load(Acquire) == FINISHED
}
