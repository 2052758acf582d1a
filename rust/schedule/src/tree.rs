//! Binomial tree over the ranks of a group.
//!
//! Ranks are numbered from the root on, around the end. The subtree of a number is a range of numbers: of all
//! for 0, and otherwise of as many as the lowest one bit says. Eight ranks:
//!
//! ```text
//! 0 -+- 1
//!    +- 2 --- 3
//!    +- 4 -+- 5
//!          +- 6 --- 7
//! ```

use std::ops::Range;

use crate::group::Group;
use crate::schedule::Schedule;
use crate::step::Run;

/// A rank in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Its number.
    pub(crate) number: u32,
    /// Ranks of the group.
    pub(crate) size: u32,
    root: u32,
}

impl Node {
    /// The node of the group's rank.
    ///
    /// # Panics
    /// The rank or the root is outside the group.
    pub(crate) fn new(group: Group, root: u32) -> Node {
        let Group { rank, size } = group;
        assert!(rank < size && root < size, "rank {rank} or root {root} in a group of {size}");
        let mut node = Node { number: 0, size, root };
        node.number = node.number_of(rank);
        node
    }

    /// The number of a rank.
    pub(crate) fn number_of(&self, rank: u32) -> u32 {
        (rank + self.size - self.root) % self.size
    }

    /// The rank with a number.
    pub(crate) fn rank(&self, number: u32) -> u32 {
        (number + self.root) % self.size
    }

    /// Numbers of the subtree that begins with a number.
    pub(crate) fn subtree(&self, number: u32) -> Range<u32> {
        let most = if number == 0 { self.size } else { lowest_bit(number) };
        number..self.size.min(number + most)
    }

    /// The number of the parent.
    fn parent(&self) -> Option<u32> {
        (self.number != 0).then(|| self.number - lowest_bit(self.number))
    }

    /// Numbers of the children, those with small subtrees first.
    pub(crate) fn children(&self) -> impl DoubleEndedIterator<Item = u32> {
        let number = self.number;
        let descendants = self.subtree(number).len() as u32 - 1;
        let levels = u32::BITS - descendants.leading_zeros();
        (0..levels).map(move |level| number + (1 << level))
    }

    /// Blocks of `count` elements each, in an area that begins with the block of this rank.
    pub(crate) fn blocks(&self, numbers: Range<u32>, count: usize) -> Run {
        let start = (numbers.start - self.number) as usize * count;
        Run { start, len: numbers.len() * count }
    }

    /// The block of each rank in such an area at the root, and no block elsewhere.
    pub(crate) fn blocks_at_root(&self, count: usize) -> Vec<Run> {
        let ranks = if self.number == 0 { 0..self.size } else { 0..0 };
        let numbers = ranks.map(|rank| self.number_of(rank));
        numbers.map(|number| self.blocks(number..number + 1, count)).collect()
    }

    /// Receives from the parent the elements of this subtree, and sends to each child those of its subtree,
    /// large subtrees first. With `is_output`, no later step reads or writes what this rank receives.
    pub(crate) fn pass_down(
        &self,
        schedule: &mut Schedule,
        is_output: bool,
        run: impl Fn(Range<u32>) -> Run,
    ) {
        if let Some(parent) = self.parent() {
            let (parent, own) = (self.rank(parent), run(self.subtree(self.number)));
            match is_output && self.children().next().is_none() {
                true => schedule.store(parent, own),
                false => schedule.receive(parent, own),
            }
        }
        for child in self.children().rev() {
            schedule.send(self.rank(child), run(self.subtree(child)));
        }
    }

    /// Receives from each child the elements of its subtree, and sends to the parent those of this subtree.
    pub(crate) fn pass_up(&self, schedule: &mut Schedule, run: impl Fn(Range<u32>) -> Run) {
        for child in self.children() {
            schedule.receive(self.rank(child), run(self.subtree(child)));
        }
        self.send_up(schedule, run(self.subtree(self.number)));
    }

    /// Combines the vectors of the children with the own one, in the order of their numbers, and sends the
    /// result to the parent.
    pub(crate) fn combine_up(&self, schedule: &mut Schedule, vector: Run) {
        for child in self.children() {
            schedule.receive_combine(self.rank(child), vector, false);
        }
        self.send_up(schedule, vector);
    }

    fn send_up(&self, schedule: &mut Schedule, run: Run) {
        if let Some(parent) = self.parent() {
            schedule.send(self.rank(parent), run);
        }
    }
}

fn lowest_bit(number: u32) -> u32 {
    number & number.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_subtree_of_one_child() {
        for size in 1..70 {
            for root in [0, size / 2, size - 1] {
                for rank in 0..size {
                    let node = Node::new(Group { rank, size }, root);
                    assert_eq!(node.rank(node.number), rank);
                    let children = node.children().map(|child| node.subtree(child));
                    let below: Vec<u32> = children.flatten().collect();
                    let all: Vec<u32> = node.subtree(node.number).skip(1).collect();
                    assert_eq!(below, all, "rank {rank} of {size}, root {root}");
                }
            }
        }
    }

    #[test]
    fn children_and_parents_agree() {
        for size in 1..70 {
            let nodes: Vec<Node> = (0..size).map(|rank| Node::new(Group { rank, size }, 0)).collect();
            for node in &nodes {
                node.children().for_each(|c| assert_eq!(nodes[c as usize].parent(), Some(node.number)));
            }
            let children: usize = nodes.iter().map(|node| node.children().count()).sum();
            assert_eq!(children as u32, size - 1);
        }
    }
}
