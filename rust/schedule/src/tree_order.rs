//! Combination of the vectors of all ranks at one rank, to which each other rank has sent its own.
//!
//! The order is that of recursive doubling, so both give the same bits: the pairs of the fold first, then
//! neighbours, then pairs of neighbours, and so on. Six ranks:
//!
//! ```text
//! ((0 1) (2 3)) (4 5)
//! ```

use std::ops::Range;

use crate::fold::Fold;
use crate::group::Group;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;

/// Combines the elements `own` of this rank with one message of each other rank. Returns the result's place:
/// `own`, or elements that are added to the area.
pub(crate) fn combine_all(schedule: &mut Schedule, group: Group, own: Run) -> Run {
    if group.size == 1 {
        return own;
    }
    let fold = Fold::new(Node::new(group, 0));
    let mut order = TreeOrder { schedule, rank: group.rank, own, slots: Vec::new() };
    for pair in 0..fold.size / 2 {
        // As many results of subtrees wait for their right neighbours.
        let mut slot = pair.count_ones() as usize;
        let [left, right] =
            [2 * pair, 2 * pair + 1].map(|number| fold.in_tree(number)..fold.in_tree(number + 1));
        order.combine_neighbours(left, right, slot);
        for _ in 0..pair.trailing_ones() {
            order.merge(slot);
            slot -= 1;
        }
    }
    order.slots[0]
}

struct TreeOrder<'a> {
    schedule: &'a mut Schedule,
    rank: u32,
    own: Run,
    /// Places of the results that wait.
    slots: Vec<Run>,
}

impl TreeOrder<'_> {
    /// Combines the ranks of two neighbours among those that remain after the fold.
    fn combine_neighbours(&mut self, left: Range<u32>, right: Range<u32>, slot: usize) {
        match (left.len(), right.len()) {
            (1, _) => self.load_pair(left.start, right.start, slot),
            (_, 1) => {
                self.load_pair(left.start, left.start + 1, slot);
                self.add(right.start, slot);
            }
            _ => {
                self.load_pair(left.start, left.start + 1, slot);
                self.load_pair(right.start, right.start + 1, slot + 1);
                self.merge(slot + 1);
            }
        }
    }

    /// Puts the combination of two ranks in a slot.
    fn load_pair(&mut self, first: u32, second: u32, slot: usize) {
        if first == self.rank || second == self.rank {
            let place = self.load_own(slot);
            let other = if first == self.rank { second } else { first };
            return self.schedule.receive_combine(other, place, other == first);
        }
        if slot == self.slots.len() {
            let place = Run { start: self.schedule.len, len: self.own.len };
            self.schedule.len += place.len;
            self.slots.push(place);
        }
        let place = self.slots[slot];
        self.schedule.receive(first, place);
        self.schedule.receive_combine(second, place, false);
    }

    /// Puts the elements of this rank in a slot, which they become if it was not in use before.
    fn load_own(&mut self, slot: usize) -> Run {
        match self.slots.get(slot) {
            None => self.slots.push(self.own),
            Some(place) => self.schedule.copy(self.own, place.start),
        }
        self.slots[slot]
    }

    /// Combines a slot with the vector of a rank.
    fn add(&mut self, rank: u32, slot: usize) {
        let place = self.slots[slot];
        match rank == self.rank {
            true => self.schedule.combine(self.own, place),
            false => self.schedule.receive_combine(rank, place, false),
        }
    }

    /// Combines the slot before with a slot.
    fn merge(&mut self, slot: usize) {
        self.schedule.combine(self.slots[slot], self.slots[slot - 1]);
    }
}
