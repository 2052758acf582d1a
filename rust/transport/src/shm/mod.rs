//! Transport between processes of one machine: packets go through queues in shared memory, large messages by
//! reference.
//!
//! Each rank has one segment that it alone writes: its queues to the others, its slabs, and its positions in
//! the queues of the others. All other ranks map it for reading. A rank that writes invalid words harms
//! only itself: every word of it is copied once, checked, and then used.
//!
//! All ranks write the common page with its hints: which queues to poll and which rank to wake. The end of a
//! sleep corrects lost and false hints. The monitor's status page states which ranks have died.

mod hints;
mod layout;
mod loans;
mod packet_source;
mod peer;
mod pool;
pub mod progress_thread;
mod ring;
mod segment_fault;
mod send;
mod send_queue;
mod slot_table;
mod slots;
mod status_page;
#[cfg(test)]
mod tests;
mod transport;
mod wakeup;
mod words;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use mpjdev_sys::segment::{Segment, Writers};
use mpjdev_sys::sync::{LockRank, Mutex};
use tracing::debug;

use super::Kind;
use crate::config::Config;
use crate::pool::HeapPool;
pub use hints::{ProgressFutex, ProgressWaker};
use layout::{ALIVE, CREDIT, LEN, MAGIC, RANK, RANKS, STATE, huge_at, slabs_at, tables_len};
pub use packet_source::ShmSource;
use pool::Reclaim;
pub use pool::SegmentPool;
use status_page::Pages;
pub use status_page::{Death, StatusPage, fail_joining, has_finished, reported_failed_peer};
pub use transport::ShmTransport;

/// The shared files that the ranks of a job hold before the first packet.
#[derive(Debug)]
pub struct Job {
    pages: Pages,
    /// Files of the segments by rank, until they are mapped.
    files: Box<[Mutex<Option<OwnedFd>>]>,
    /// Offset of rank numbers in error texts.
    base: u32,
}

impl Job {
    /// The job of the two files of the [`StatusPage`] and the segments of the ranks.
    ///
    /// # Errors
    /// The files are not those of a status page; the system refuses.
    pub fn open(pages: [BorrowedFd<'_>; 2], files: Vec<OwnedFd>) -> io::Result<Job> {
        let pages = Pages::open(files.len(), pages)?;
        Ok(Job {
            pages,
            files: files.into_iter().map(|file| Mutex::new(LockRank::SegmentFile, Some(file))).collect(),
            base: 0,
        })
    }

    /// Error texts number its ranks from `base` on.
    #[must_use]
    pub fn numbered_from(self, base: u32) -> Job {
        Job { base, ..self }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.files.len()
    }
}

/// Carriage of a packet's octets. Together with the packet's kind this is the form of a record.
const NOTHING: u8 = 0;
const INLINE: u8 = 1;
const BY_REFERENCE: u8 = 2;
const IN_TWO: u8 = 3;
const HEADED: u8 = 4;
/// As [`HEADED`], and the sender still packs the message.
const PACKING: u8 = 5;

fn form(kind: Kind, body: u8) -> ring::Form {
    let kind = match kind {
        Kind::Eager => 0,
        Kind::Synchronous => 1,
        Kind::MatchAck => 2,
        Kind::Rts | Kind::RendezvousPart | Kind::RendezvousData | Kind::Cancelled => {
            unreachable!("for messages that are copied")
        }
    };
    kind << 4 | body
}

fn parse_form(form: ring::Form) -> Option<(Kind, u8)> {
    let kind = match form >> 4 {
        0 => Kind::Eager,
        1 => Kind::Synchronous,
        2 => Kind::MatchAck,
        _ => return None,
    };
    (form & 15 <= PACKING).then_some((kind, form & 15))
}

/// Creates a rank's segment with `len` octets of slabs, none of them allocated yet. Messages of the rank take
/// their memory from the returned pool.
///
/// # Errors
/// The system refuses.
pub fn create(
    rank: u32,
    ranks: usize,
    len: usize,
    config: &Config,
    private: Arc<HeapPool>,
) -> io::Result<Arc<SegmentPool>> {
    let len = slabs_at(ranks) + len.next_multiple_of(layout::PAGE);
    let (segment, file) = Segment::create(&format!("mpjdev-rank-{rank}"), len, Writers::Owner)?;
    let pool = SegmentPool::new(segment, file, (slabs_at(ranks), huge_at(ranks)), private);
    pool.claim(0, tables_len(ranks))?;
    let words = pool.segment.words();
    words[RANK].store(u64::from(rank), Relaxed);
    words[RANKS].store(ranks as u64, Relaxed);
    words[LEN].store(len as u64, Relaxed);
    words[CREDIT].store(config.credit, Relaxed);
    words[STATE].store(ALIVE, Relaxed);
    words[0].store(MAGIC, Release);
    Ok(pool)
}

/// The transport and the packet source of a rank.
pub fn connect(
    rank: u32,
    config: &Config,
    pool: Arc<SegmentPool>,
    job: Arc<Job>,
) -> (Arc<ShmTransport>, ShmSource) {
    let ranks = job.ranks();
    debug!(target: "mpjdev::shm", rank, ranks, "segments of the other ranks can be mapped");
    let transport = Arc::new(ShmTransport::new(rank, config, pool, job));
    let as_reclaim: std::sync::Weak<dyn Reclaim> = Arc::downgrade(&transport) as _;
    transport.pool.set_reclaim(as_reclaim);
    let packet_source = ShmSource::new(transport.clone(), ranks);
    (transport, packet_source)
}
