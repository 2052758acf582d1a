//! State of a rank about slots: which of its own are in use, and the vectors that its threads wait for.

use std::sync::atomic::{AtomicBool, AtomicU32};

use mpjdev_sys::sync::{LockRank, Mutex};

use crate::slots::Awaited;

/// Communicators for which a rank has slots at a time.
pub(super) const PAIRS: usize = 16;
/// Counts of closed slots in a word.
const COUNTS: usize = 4;
const COUNT_BITS: usize = 16;

/// The count of a pair in the words about closed slots: the word, and its first bit there.
pub(super) fn count_at(index: usize) -> (usize, usize) {
    (index / COUNTS, index % COUNTS * COUNT_BITS)
}

/// The use of a pair of slots.
#[derive(Debug, Default)]
pub(super) struct Use {
    pub(super) is_claimed: bool,
    /// The number of claims of the pair for each rank to read.
    pub(super) claims: Vec<u16>,
}

/// State of a rank about slots.
#[derive(Debug)]
pub(super) struct SlotTable {
    pub(super) uses: Mutex<[Use; PAIRS]>,
    pub(super) awaited: Mutex<Vec<Awaited>>,
    /// The length of `awaited`.
    pub(super) awaited_count: AtomicU32,
    /// Whether the long parts of a pair are allocated.
    pub(super) has_long_parts: [AtomicBool; PAIRS],
}

impl SlotTable {
    pub(super) fn new() -> SlotTable {
        SlotTable {
            uses: Mutex::new(LockRank::Slots, Default::default()),
            awaited: Mutex::new(LockRank::Leaf, Vec::new()),
            awaited_count: AtomicU32::new(0),
            has_long_parts: Default::default(),
        }
    }
}
