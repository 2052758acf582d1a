//! Where things stand in a rank's segment, on the page that all ranks write, and on the monitor's. All places are words of
//! eight octets.
//!
//! ```text
//! segment of rank r, written by r alone            common page, written by all ranks
//!   0  magic, version, rank, ranks, octets,           0  epoch: a rank's state has changed
//!      credit                                        16 + 16 r ...  of rank r: bell, helper's bell, then doorbells:
//!   8  state, life, rank that failed first, + 1           one bit for each rank that has put something into its queue to r
//!  16  octets of the text why it failed, the text
//!  64  per rank p, 16 words:                        board, written by the monitor alone
//!        0  lines of its queue to p                   0  magic, version, ranks, epoch: a rank has died
//!        1  slabs of its own taken back from p        8 + r  how the process of rank r has died
//!        2  whether it waits for room in that queue
//!        8  how far it has come in p's queue to it
//!        9  octets of p's messages that it has matched
//!       10  slabs it has returned to p
//!       11  whether it holds no slab of p's and reads none any more
//!      then per rank p, 68 KiB: its queue to p, the ring of slabs that it returns to p
//!      then slabs
//! ```
//!
//! Pages of queues and slabs are taken when they are needed.

/// "mpjdev" and a version: a segment of another version is refused.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"mpjdev\x00\x03");

pub(super) const RANK: usize = 1;
pub(super) const RANKS: usize = 2;
pub(super) const LEN: usize = 3;
pub(super) const CREDIT: usize = 4;
pub(super) const STATE: usize = 8;
pub(super) const LIFE: usize = 9;
/// 1 more than the world rank of the peer that this rank has seen fail first; 0 while there is none.
pub(super) const BLAMED: usize = 10;
pub(super) const WHY_LEN: usize = 16;
pub(super) const WHY: usize = 17;
/// Octets of the text why a rank failed.
pub(super) const WHY_MAX: usize = (PEERS - WHY) * 8;
pub(super) const PEERS: usize = 64;
pub(super) const PEER_WORDS: usize = 16;

/// Offsets in the words of a peer: what a rank says as its sender, and as its receiver.
pub(super) const QUEUE_LINES: usize = 0;
pub(super) const TAKEN_BACK: usize = 1;
pub(super) const WAITS: usize = 2;
pub(super) const CONSUMED: usize = 8;
pub(super) const MATCHED: usize = 9;
pub(super) const RETURNED: usize = 10;
pub(super) const RELEASED: usize = 11;

/// States of a rank.
pub(super) const ALIVE: u64 = 0;
pub(super) const FINISHED: u64 = 1;
pub(super) const FAILED: u64 = 2;

/// Places of the ring in which slabs come back from one other rank: a page.
pub(super) const RETURNS_MAX: usize = 512;
/// Octets that one rank has for queue and ring to another one.
const PAIR_LEN: usize = QUEUE_LINES_MAX * 64 + RETURNS_MAX * 8;
/// Lines of a queue at most; their number is a power of two.
pub(super) const QUEUE_LINES_MAX: usize = 1024;

/// Words of the common page.
pub(super) const EPOCH: usize = 0;
pub(super) const BELLS: usize = 16;
/// Words of a rank's part: its bell, its helper's, its doorbells.
pub(super) const HELPER: usize = 1;
pub(super) const DOORBELLS: usize = 2;

/// Words of the board.
pub(super) const BOARD_RANKS: usize = 1;
pub(super) const BOARD_EPOCH: usize = 2;
pub(super) const DEATHS: usize = 8;

/// Words of a rank's part of the common page: whole pairs of lines.
pub(super) fn bell_words(ranks: usize) -> usize {
    (DOORBELLS + ranks.div_ceil(64)).next_multiple_of(16)
}

/// The words of a peer.
#[inline(always)]
pub(super) fn peer(rank: u32) -> usize {
    PEERS + rank as usize * PEER_WORDS
}

/// Octets of the tables in front of the queues: whole pages.
pub(super) fn tables_len(ranks: usize) -> usize {
    (peer(ranks as u32) * 8).next_multiple_of(PAGE)
}

/// Where the queue to a rank begins, in octets.
pub(super) fn queue_at(ranks: usize, rank: u32) -> usize {
    tables_len(ranks) + rank as usize * PAIR_LEN
}

/// Where the ring of slabs that are returned to a rank begins, in octets.
pub(super) fn returns_at(ranks: usize, rank: u32) -> usize {
    queue_at(ranks, rank) + QUEUE_LINES_MAX * 64
}

/// Where the slabs begin, in octets.
pub(super) fn slabs_at(ranks: usize) -> usize {
    queue_at(ranks, ranks as u32)
}

/// Octets of the common page.
pub(super) fn common_len(ranks: usize) -> usize {
    ((BELLS + ranks * bell_words(ranks)) * 8).next_multiple_of(PAGE)
}

/// Octets of the board.
pub(super) fn board_len(ranks: usize) -> usize {
    ((DEATHS + ranks) * 8).next_multiple_of(PAGE)
}

/// Memory is taken from the system in multiples of this.
pub(super) const PAGE: usize = 4096;

/// Huge pages are asked for in these units, behind so many octets of slabs, so that a rank that needs little takes little.
pub(super) const HUGE: usize = 2 << 20;
const HUGE_BEHIND: usize = 4 << 20;

/// Where huge pages begin, in octets.
pub(super) fn huge_at(ranks: usize) -> usize {
    (slabs_at(ranks) + HUGE_BEHIND).next_multiple_of(HUGE)
}
