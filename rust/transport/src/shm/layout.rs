//! Layout of a rank's segment, of the common page that all ranks write, and of the monitor's status page. All
//! locations are words of eight octets.
//!
//! ```text
//! segment of rank r, written by r alone            common page, written by all ranks
//!   0  magic, version, rank, ranks, octets,           0  epoch: a rank's state has changed
//!      credit                                        16 + 16 r ...  of rank r: futex, futex of the progress
//!   8  state, heartbeat, first failed peer + 1          thread, 1 + processor of the last rank that woke r,
//!  16  octets of the text why it failed, the text       then doorbells: one bit for each rank that has put
//!  64  per rank p, 16 words:                            a record into its queue to r
//!        0  lines of its queue to p                  status page, written by the monitor alone
//!        1  slabs of its own collected from p          0  magic, version, ranks, epoch: a rank has died
//!        2  whether it waits for room in that queue    8 + r  how the process of rank r has ended
//!        8  its position in p's queue to it
//!        9  octets of p's messages that it has matched
//!       10  slabs it has returned to p
//!       11  whether it holds no slab of p's and reads none any more
//!       12  for each pair of p's slots how often it has closed it, in 16 bits
//!      then 40 KiB of slots for short vectors and 1 MiB of their long parts, see `slots`
//!      then per rank p, 68 KiB: its queue to p, the ring of slabs that it returns to p
//!      then slabs
//! ```
//!
//! Pages of slots, queues and slabs are allocated when they are needed.

/// "mpjdev" and a version. A segment of another version is rejected.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"mpjdev\x00\x07");

pub(super) const RANK: usize = 1;
pub(super) const RANKS: usize = 2;
pub(super) const LEN: usize = 3;
pub(super) const CREDIT: usize = 4;
pub(super) const STATE: usize = 8;
pub(super) const HEARTBEAT: usize = 9;
/// 1 more than the world rank of the peer that this rank has seen fail first; 0 without a failed peer.
pub(super) const FAILED_PEER: usize = 10;
pub(super) const WHY_LEN: usize = 16;
pub(super) const WHY: usize = 17;
/// Largest text in octets why a rank failed.
pub(super) const WHY_MAX: usize = (PEERS - WHY) * 8;
pub(super) const PEERS: usize = 64;
pub(super) const PEER_WORDS: usize = 16;

/// Offsets in the words of a peer: those a rank writes as its sender, and as its receiver.
pub(super) const QUEUE_LINES: usize = 0;
pub(super) const COLLECTED: usize = 1;
pub(super) const WAITS: usize = 2;
pub(super) const CONSUMED: usize = 8;
pub(super) const MATCHED: usize = 9;
pub(super) const RETURNED: usize = 10;
pub(super) const RELEASED: usize = 11;
pub(super) const CLOSED: usize = 12;

/// States of a rank.
pub(super) const ALIVE: u64 = 0;
pub(super) const FINISHED: u64 = 1;
pub(super) const FAILED: u64 = 2;

/// Entries of the ring that returns slabs to one other rank: a page.
pub(super) const RETURNS_MAX: usize = 512;
/// Octets that one rank has for queue and ring to another one.
const PAIR_LEN: usize = QUEUE_LINES_MAX * 64 + RETURNS_MAX * 8;
/// Largest number of lines of a queue, a power of two.
pub(super) const QUEUE_LINES_MAX: usize = 1024;

/// Words of the common page.
pub(super) const EPOCH: usize = 0;
pub(super) const FUTEXES: usize = 16;
/// Words of a rank's part: its futex, that of its progress thread, the processor of its waker, its doorbells.
pub(super) const PROGRESS: usize = 1;
pub(super) const WAKER: usize = 2;
pub(super) const DOORBELLS: usize = 3;

/// Words of the status page.
pub(super) const STATUS_RANKS: usize = 1;
pub(super) const STATUS_EPOCH: usize = 2;
pub(super) const DEATHS: usize = 8;

/// Number of words of a rank's part of the common page: whole pairs of lines.
pub(super) fn futex_words(ranks: usize) -> usize {
    (DOORBELLS + ranks.div_ceil(64)).next_multiple_of(16)
}

/// Index of the first word about a peer.
#[inline(always)]
pub(super) fn peer(rank: u32) -> usize {
    PEERS + rank as usize * PEER_WORDS
}

/// Octets of the tables before the queues: whole pages.
pub(super) fn tables_len(ranks: usize) -> usize {
    (peer(ranks as u32) * 8).next_multiple_of(PAGE)
}

/// Offset of the slots, in octets.
pub(super) fn slots_at(ranks: usize) -> usize {
    tables_len(ranks)
}

/// Octets of the slots: whole pages.
pub(super) const SLOTS_LEN: usize = 10 * PAGE;

/// Offset of the long parts of the slots, in octets.
pub(super) fn long_slots_at(ranks: usize) -> usize {
    slots_at(ranks) + SLOTS_LEN
}

/// Octets of the long parts of the slots.
pub(super) const LONG_SLOTS_LEN: usize = 1 << 20;

/// Offset of the queue to a rank, in octets.
pub(super) fn queue_at(ranks: usize, rank: u32) -> usize {
    long_slots_at(ranks) + LONG_SLOTS_LEN + rank as usize * PAIR_LEN
}

/// Offset of the ring of slabs returned to a rank, in octets.
pub(super) fn returns_at(ranks: usize, rank: u32) -> usize {
    queue_at(ranks, rank) + QUEUE_LINES_MAX * 64
}

/// Offset of the slabs, in octets.
pub(super) fn slabs_at(ranks: usize) -> usize {
    queue_at(ranks, ranks as u32)
}

/// Octets of the common page.
pub(super) fn common_len(ranks: usize) -> usize {
    ((FUTEXES + ranks * futex_words(ranks)) * 8).next_multiple_of(PAGE)
}

/// Octets of the status page.
pub(super) fn status_page_len(ranks: usize) -> usize {
    ((DEATHS + ranks) * 8).next_multiple_of(PAGE)
}

/// Memory is allocated in multiples of this.
pub(super) const PAGE: usize = 4096;

/// Huge pages are requested in these units, after the first [`HUGE_BEHIND`] octets of slabs, so that a rank
/// with small needs takes little memory.
pub(super) const HUGE: usize = 2 << 20;
const HUGE_BEHIND: usize = 4 << 20;

/// Offset of the first huge page, in octets.
pub(super) fn huge_at(ranks: usize) -> usize {
    (slabs_at(ranks) + HUGE_BEHIND).next_multiple_of(HUGE)
}
