//! Contexts of freed communicators: a message that arrives in one of them is dropped.

use std::collections::BTreeMap;

use crate::context::{communicator, is_communicator};

/// The contexts of the communicators that one rank has freed.
///
/// A rank may receive messages in a context that it does not know yet, since another member may complete the
/// creation of a communicator first. So an unknown context is not a freed one, and freed contexts are
/// recorded. Context ids are never reused.
///
/// Consecutive ids of one allocating rank form one range, so a program that creates and frees communicators
/// of all ranks needs one range. Ids that are not consecutive need a range each. Beyond [`RANGES_MAX`] the
/// least recently changed range is dropped, and its contexts count as unknown: packets in flight there have
/// most likely arrived.
#[derive(Debug, Clone, Default)]
pub struct FreedContexts {
    /// By the first communicator's context of each range.
    ranges: BTreeMap<u64, Range>,
    /// First contexts by age.
    ages: BTreeMap<u64, u64>,
    next_age: u64,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    /// The last communicator's context.
    last: u64,
    age: u64,
}

/// Most ranges, some 200 KiB.
pub const RANGES_MAX: usize = 4096;

/// From a communicator's context to the next.
const STEP: u64 = 2;

impl FreedContexts {
    /// Records a communicator's base context.
    ///
    /// # Panics
    /// In debug builds, for a context that is not a communicator's base context.
    pub fn insert(&mut self, context: u64) {
        debug_assert!(is_communicator(context), "{context:#x} is no communicator's context");
        if self.covers(context) {
            return;
        }
        let last = self.take(context + STEP).unwrap_or(context);
        let before = self.ranges.range(..context).next_back();
        let before = before.filter(|(_, range)| range.last + STEP == context).map(|(first, _)| *first);
        let first = before.unwrap_or(context);
        self.take(first);
        self.put(first, last);
        if self.ranges.len() > RANGES_MAX
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.ranges.remove(&oldest);
        }
    }

    /// Removes the range that begins here; returns its last context.
    fn take(&mut self, first: u64) -> Option<u64> {
        let range = self.ranges.remove(&first)?;
        self.ages.remove(&range.age);
        Some(range.last)
    }

    fn put(&mut self, first: u64, last: u64) {
        self.ranges.insert(first, Range { last, age: self.next_age });
        self.ages.insert(self.next_age, first);
        self.next_age += 1;
    }

    /// Whether the context, or the communicator that it belongs to, is recorded as freed.
    #[inline]
    #[must_use]
    pub fn contains(&self, context: u64) -> bool {
        !self.ranges.is_empty() && self.covers(communicator(context))
    }

    fn covers(&self, context: u64) -> bool {
        self.ranges.range(..=context).next_back().is_some_and(|(_, range)| context <= range.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{collective, control, shadow};

    fn id(rank: u64, counter: u64) -> u64 {
        rank << 32 | counter
    }

    #[test]
    fn recorded_contexts_cover_all_kinds_of_their_communicator() {
        let mut freed = FreedContexts::default();
        freed.insert(id(3, 8));
        for context in [id(3, 8), collective(id(3, 8))] {
            assert!([context, shadow(context), control(context)].iter().all(|kind| freed.contains(*kind)));
        }
        for other in [0, id(3, 6), id(3, 10), id(2, 8), id(4, 8)] {
            assert!(!freed.contains(other) && !freed.contains(shadow(collective(other))), "{other:#x}");
        }
    }

    #[test]
    fn consecutive_contexts_are_one_range_in_any_order() {
        let mut freed = FreedContexts::default();
        let count = 1000;
        // 7 has no common divisor with the count, so each context occurs once.
        for i in (0..count).map(|i| i * 7 % count) {
            freed.insert(id(1, 2 + 2 * i));
            freed.insert(id(1, 2 + 2 * i));
        }
        assert_eq!(freed.ranges.len(), 1);
        assert!((0..count).all(|i| freed.contains(id(1, 2 + 2 * i))));
        assert!(!freed.contains(id(1, 2 + 2 * count)));
    }

    #[test]
    fn oldest_range_is_dropped_past_the_bound() {
        let mut freed = FreedContexts::default();
        // Later communicators have lower contexts.
        let context = |i: usize| id(0, 2 + 4 * (2 * RANGES_MAX - i) as u64);
        (0..RANGES_MAX + 10).for_each(|i| freed.insert(context(i)));
        assert_eq!((freed.ranges.len(), freed.ages.len()), (RANGES_MAX, RANGES_MAX));
        assert!((0..10).all(|i| !freed.contains(context(i))));
        assert!((10..RANGES_MAX + 10).all(|i| freed.contains(context(i))));
    }

    #[test]
    fn growing_range_is_not_the_oldest() {
        let mut freed = FreedContexts::default();
        let alone = |i: usize| id(1, 2 + 4 * i as u64);
        let grown = |i: usize| id(0, 2 + 2 * i as u64);
        for i in 0..3 * RANGES_MAX {
            freed.insert(grown(i));
            freed.insert(alone(i));
        }
        assert_eq!((freed.ranges.len(), freed.ages.len()), (RANGES_MAX, RANGES_MAX));
        assert!((0..3 * RANGES_MAX).all(|i| freed.contains(grown(i))));
    }
}
