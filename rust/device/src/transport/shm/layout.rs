//! Where things stand in a rank's segment and in the job's common page. All places are words of eight octets.
//!
//! ```text
//! segment of rank r, written by r alone            common page, written by everybody
//!   0  magic, version, rank, ranks, octets           0  epoch
//!   8  state, life                                   16 + 16 r ...  of rank r: bell, then doorbells: one bit for each
//!  16  octets of the text why it failed, the text       rank that has put something into its queue for r
//!                                                       (helper's bell and how it died in between)
//!  64  per rank p, 16 words:
//!        0  where its queue to p begins, in octets
//!        1  lines of that queue
//!        2  slabs of its own that it has taken back from p
//!        8  how far it has come in p's queue to it
//!        9  octets of p's messages that it has matched
//!       10  where the ring of slabs that it returns to p begins, in octets
//!       11  slabs it has returned to p
//!      then queues, rings and slabs as they are needed
//! ```

/// "mpjdev" and a version: a segment of another version is refused.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"mpjdev\x00\x01");

pub(super) const RANK: usize = 1;
pub(super) const RANKS: usize = 2;
pub(super) const LEN: usize = 3;
pub(super) const STATE: usize = 8;
pub(super) const LIFE: usize = 9;
pub(super) const WHY_LEN: usize = 16;
pub(super) const WHY: usize = 17;
/// Octets of the text why a rank failed.
pub(super) const WHY_MAX: usize = (PEERS - WHY) * 8;
pub(super) const PEERS: usize = 64;
pub(super) const PEER_WORDS: usize = 16;

/// Offsets in the words of a peer.
pub(super) const QUEUE: usize = 0;
pub(super) const QUEUE_LINES: usize = 1;
pub(super) const TAKEN_BACK: usize = 2;
pub(super) const CONSUMED: usize = 8;
pub(super) const MATCHED: usize = 9;
pub(super) const RETURNS: usize = 10;
pub(super) const RETURNED: usize = 11;

/// States of a rank.
pub(super) const ALIVE: u64 = 0;
pub(super) const FINISHED: u64 = 1;
pub(super) const FAILED: u64 = 2;

/// Places of the ring in which slabs come back from one other rank.
pub(super) const RETURNS_MAX: usize = 512;

/// Words of the common page.
pub(super) const EPOCH: usize = 0;
pub(super) const BELLS: usize = 16;
/// Words of a rank's part: its bell, its helper's, how its process ended, its doorbells.
pub(super) const HELPER: usize = 1;
pub(super) const DEATH: usize = 2;
pub(super) const DOORBELLS: usize = 3;

/// Words of a rank's part of the common page: whole pairs of lines.
pub(super) fn bell_words(ranks: usize) -> usize {
    (DOORBELLS + ranks.div_ceil(64)).next_multiple_of(16)
}

/// The words of a peer.
#[inline(always)]
pub(super) fn peer(rank: u32) -> usize {
    PEERS + rank as usize * PEER_WORDS
}

/// Octets of the tables in front of queues and slabs: whole pages.
pub(super) fn tables_len(ranks: usize) -> usize {
    (peer(ranks as u32) * 8).next_multiple_of(PAGE)
}

/// Octets of the common page.
pub(super) fn common_len(ranks: usize) -> usize {
    ((BELLS + ranks * bell_words(ranks)) * 8).next_multiple_of(PAGE)
}

/// Memory is taken from the system in multiples of this.
pub(super) const PAGE: usize = 4096;
