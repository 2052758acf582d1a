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

/// Combines the vectors of `ranks` ranks in the order of recursive doubling, without an area. `N` octets hold
/// a vector. `read` copies that of a rank, and `combine` combines the right operand, its first argument, with
/// the other one.
///
/// # Panics
/// There are no ranks, or `into` is longer than `N`.
pub fn combine_vectors<const N: usize>(
    ranks: u32,
    into: &mut [u8],
    read: &mut dyn FnMut(u32, &mut [u8]),
    combine: &mut dyn FnMut(&[u8], &mut [u8]),
) {
    let fold = Fold::new(Node::new(Group { rank: 0, size: ranks }, 0));
    combine_numbers::<N>(&fold, 0..fold.size, into, read, combine);
}

/// The same, of those ranks that have these numbers after the fold.
fn combine_numbers<const N: usize>(
    fold: &Fold,
    numbers: Range<u32>,
    into: &mut [u8],
    read: &mut dyn FnMut(u32, &mut [u8]),
    combine: &mut dyn FnMut(&[u8], &mut [u8]),
) {
    let ranks = fold.in_tree(numbers.start)..fold.in_tree(numbers.end);
    if ranks.len() == 1 {
        return read(ranks.start, into);
    }
    let mut right = [0; N];
    let right = &mut right[..into.len()];
    if numbers.len() == 1 {
        read(ranks.start, into);
        read(ranks.start + 1, right);
    } else {
        let middle = numbers.start.midpoint(numbers.end);
        combine_numbers::<N>(fold, numbers.start..middle, into, read, combine);
        combine_numbers::<N>(fold, middle..numbers.end, right, read, combine);
    }
    combine(right, into);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;

    /// The terms that elements stand for, by their index.
    type Terms = Vec<String>;

    fn combined(terms: &mut Terms, left: u8, right: u8) -> u8 {
        terms.push(format!("({} {})", terms[left as usize], terms[right as usize]));
        terms.len() as u8 - 1
    }

    /// The term that a rank computes by the steps of [`combine_all`].
    fn term_of_steps(group: Group) -> String {
        let mut terms: Terms = (0..group.size).map(|rank| rank.to_string()).collect();
        let mut schedule = Schedule::new(1, Vec::new(), Vec::new());
        let result = combine_all(&mut schedule, group, Run { start: 0, len: 1 });
        let mut area = vec![0; schedule.len];
        area[0] = group.rank as u8;
        for step in &schedule.steps {
            match *step {
                Step::Receive { source, into } => area[into.start] = source as u8,
                Step::Copy { from, into } => area[into] = area[from.start],
                Step::Combine { from, into } => {
                    area[into.start] = combined(&mut terms, area[into.start], area[from.start]);
                }
                Step::ReceiveCombine { source, into, is_lower } => {
                    let (source, own) = (source as u8, area[into.start]);
                    let (left, right) = if is_lower { (source, own) } else { (own, source) };
                    area[into.start] = combined(&mut terms, left, right);
                }
                ref other => panic!("{other:?}"),
            }
        }
        terms.swap_remove(area[result.start] as usize)
    }

    #[test]
    fn vectors_are_combined_in_the_order_of_the_steps() {
        for size in 1..=33 {
            let mut terms: Terms = (0..size).map(|rank| rank.to_string()).collect();
            let mut result = [0];
            combine_vectors::<4>(
                size,
                &mut result,
                &mut |rank, into| into.fill(rank as u8),
                &mut |right, left| left[0] = combined(&mut terms, left[0], right[0]),
            );
            for rank in 0..size {
                assert_eq!(
                    terms[result[0] as usize],
                    term_of_steps(Group { rank, size }),
                    "{rank} of {size}"
                );
            }
        }
    }
}
