//! Pairing numbers, which tie the second half of a split message to the first.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use thiserror::Error;

/// Allocates a sender's pairing numbers.
///
/// A number is at least 1 and different from every other open one, also modulo `TAG_UB` + 1, since the second
/// half's tag is the number modulo that. Numbers ascend from 1, skip open ones and continue with 1 after 2^32
/// - 1. A choice of ours: neither the dissertation nor the original ties the halves together (mpjdev 4.4).
///
/// A number stays open until the second half is sent *and matched* if the transport reports matches, else
/// until its send is complete. While it is open no other message can be taken for the second half.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// `TAG_UB` + 1, 1 to 2^31.
    modulus: u32,
    /// The number to try next, never 0.
    next_number: u32,
    /// The open numbers by their tags; at most `modulus`.
    open: FxHashMap<u32, u32>,
}

/// All pairing numbers are open; try again after closing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{open} split messages are in flight, no pairing number is free; receive some of them first")]
pub struct NoFreePair {
    /// The number of open pairs.
    pub open: usize,
}

impl Pairs {
    /// An allocator for a transport whose largest tag is `tag_ub` (`MPI_TAG_UB`, at least 32767 by MPI 4.1,
    /// 9.1.2).
    ///
    /// A negative value counts as 0: one pair at a time.
    #[must_use]
    pub fn new(tag_ub: i32) -> Self {
        Self { modulus: tag_ub.max(0).cast_unsigned() + 1, next_number: 1, open: FxHashMap::default() }
    }

    /// Opens a pair; returns its number.
    ///
    /// # Errors
    /// [`NoFreePair`] when `TAG_UB` + 1 pairs are open; nothing has changed then, and a later try may
    /// succeed.
    pub fn open(&mut self) -> Result<u32, NoFreePair> {
        // Consecutive numbers have different tags, except once when numbers continue with 1. So twice the
        // open tags and one step more always reach a free one.
        let steps_max = 2 * self.open.len() + 1;
        if self.open.len() < self.modulus as usize {
            for _ in 0..steps_max {
                let number = self.next_number;
                self.next_number = number.checked_add(1).unwrap_or(1);
                if let Entry::Vacant(vacant) = self.open.entry(number % self.modulus) {
                    vacant.insert(number);
                    return Ok(number);
                }
            }
        }
        Err(NoFreePair { open: self.open.len() })
    }

    /// Closes a pair; `false` when it was not open.
    pub fn close(&mut self, number: u32) -> bool {
        match self.open.entry(number % self.modulus) {
            Entry::Occupied(open) if *open.get() == number => {
                open.remove();
                true
            }
            Entry::Occupied(_) | Entry::Vacant(_) => false,
        }
    }

    /// The tag of the second message with this number: the number modulo `TAG_UB` + 1.
    #[inline]
    #[must_use]
    pub fn tag(&self, number: u32) -> i32 {
        (number % self.modulus).cast_signed()
    }

    /// The number of open pairs.
    #[cfg(test)]
    fn open_len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Proves that numbers start at 1 and that the tag is the number modulo TAG_UB + 1, which may be 0.
    #[test]
    fn numbers_go_up_from_one_and_tags_stay_within_the_bound() {
        let mut pairs = Pairs::new(2);
        assert_eq!(pairs.open(), Ok(1));
        assert_eq!(pairs.open(), Ok(2));
        assert_eq!(pairs.open(), Ok(3));
        assert_eq!([1, 2, 3].map(|n| pairs.tag(n)), [1, 2, 0]);
        assert_eq!(pairs.open(), Err(NoFreePair { open: 3 }));
        assert!(pairs.close(2));
        assert_eq!(pairs.open(), Ok(5));
        assert_eq!(pairs.open_len(), 3);
    }

    /// Proves that closing an unknown or closed number does not close the open one with the same tag.
    #[test]
    fn close_of_an_unknown_number_changes_nothing() {
        let mut pairs = Pairs::new(9);
        let number = pairs.open().unwrap();
        assert!(!pairs.close(0));
        assert!(!pairs.close(number + 10));
        assert!(pairs.close(number));
        assert!(!pairs.close(number));
        assert_eq!(pairs.open_len(), 0);
    }

    /// Proves that numbers continue with 1 after 2^32 - 1, and skip open ones.
    #[test]
    fn numbers_wrap_to_one_and_skip_open_ones() {
        let mut pairs = Pairs::new(i32::MAX);
        assert_eq!(pairs.open(), Ok(1));
        pairs.next_number = u32::MAX;
        assert_eq!(pairs.open(), Ok(u32::MAX));
        assert_eq!(pairs.open(), Ok(2));
    }

    /// Proves the bound of the search in the worst case: the tags directly before and after the wrap are
    /// open.
    #[test]
    fn last_free_tag_across_the_wrap_is_found() {
        for tag_ub in 0..8 {
            for start_before_end in 0..16 {
                for free in 0..=tag_ub {
                    let mut pairs = Pairs::new(tag_ub);
                    while pairs.open().is_ok() {}
                    let number = *pairs.open.get(&free.cast_unsigned()).unwrap();
                    assert!(pairs.close(number));
                    pairs.next_number = u32::MAX - start_before_end;
                    let found = pairs.open().unwrap();
                    assert_eq!(pairs.tag(found), free);
                }
            }
        }
    }

    /// Proves that a million pairs use the storage of the few that were open at once.
    #[test]
    fn million_pairs_use_bounded_storage() {
        let mut pairs = Pairs::new(32767);
        let mut open = std::collections::VecDeque::new();
        let mut capacity = 0;
        for step in 0..1_000_000 {
            open.push_back(pairs.open().unwrap());
            if open.len() > 10 {
                assert!(pairs.close(open.pop_front().unwrap()));
            }
            if step == 1000 {
                capacity = pairs.open.capacity();
            }
        }
        assert_eq!(pairs.open.capacity(), capacity);
    }

    proptest! {
        /// Proves for any order of opens and closes that open numbers are at least 1 and differ modulo TAG_UB
        /// + 1, and that a pair is refused exactly when all tags are in use.
        #[test]
        fn open_numbers_differ_in_their_tags(
            tag_ub in 0..20i32,
            before_end in 0..40u32,
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut pairs = Pairs::new(tag_ub);
            pairs.next_number = u32::MAX - before_end;
            let mut open: Vec<u32> = Vec::new();
            for (opens, which) in steps {
                if opens || open.is_empty() {
                    match pairs.open() {
                        Ok(number) => {
                            prop_assert!(number >= 1);
                            prop_assert!(open.iter().all(|o| pairs.tag(*o) != pairs.tag(number)));
                            open.push(number);
                        }
                        Err(NoFreePair { open: count }) => {
                            prop_assert_eq!(count, open.len());
                            prop_assert_eq!(count, tag_ub as usize + 1);
                        }
                    }
                } else {
                    let number = open.swap_remove(which.index(open.len()));
                    prop_assert!(pairs.close(number));
                }
                prop_assert_eq!(pairs.open_len(), open.len());
            }
        }
    }
}
