//! Reduction of a group to a power of two.
//!
//! The first ranks form pairs of neighbours, as many as there are ranks too many. The second rank of a pair
//! is folded: it gives its vector to the first one, which combines both. The others keep their order, so that
//! results in the order of the remaining ranks are results in rank order. Six ranks leave four:
//!
//! ```text
//! number in the tree   0 1   2 3   4   5
//! remaining number     0     1     2   3
//! ```

use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;

/// A rank of a group that is folded.
pub(crate) struct Fold {
    node: Node,
    /// Number of pairs.
    pairs: u32,
    /// Ranks that remain.
    pub(crate) size: u32,
}

impl Fold {
    pub(crate) fn new(node: Node) -> Fold {
        let size = 1 << node.size.ilog2();
        Fold { node, pairs: node.size - size, size }
    }

    /// The number of this rank among those that remain.
    pub(crate) fn number(&self) -> Option<u32> {
        let number = self.node.number;
        if number >= 2 * self.pairs {
            return Some(number - self.pairs);
        }
        number.is_multiple_of(2).then_some(number / 2)
    }

    /// The number in the tree of one that remains; that of the end is the size of the group.
    pub(crate) fn in_tree(&self, number: u32) -> u32 {
        number + number.min(self.pairs)
    }

    /// The rank that remains with a number.
    pub(crate) fn rank(&self, number: u32) -> u32 {
        self.node.rank(self.in_tree(number))
    }

    /// Combines the vectors of the pairs.
    pub(crate) fn fold(&self, schedule: &mut Schedule, vector: Run) {
        match self.pair() {
            Some((first, second)) if first == self.node.number => {
                schedule.receive_combine(self.node.rank(second), vector, false);
            }
            Some((first, _)) => schedule.send(self.node.rank(first), vector),
            None => {}
        }
    }

    /// Sends the result of each folded rank to it, by its number in the tree.
    pub(crate) fn unfold(&self, schedule: &mut Schedule, result: impl Fn(u32) -> Run) {
        match self.pair() {
            Some((first, second)) if first == self.node.number => {
                schedule.send(self.node.rank(second), result(second));
            }
            Some((first, second)) => schedule.receive(self.node.rank(first), result(second)),
            None => {}
        }
    }

    /// Numbers in the tree of the pair that this rank belongs to.
    fn pair(&self) -> Option<(u32, u32)> {
        let number = self.node.number;
        (number < 2 * self.pairs).then_some((number & !1, number | 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;

    #[test]
    fn remaining_ranks_keep_their_order() {
        for size in 1..70 {
            let folds: Vec<Fold> =
                (0..size).map(|rank| Fold::new(Node::new(Group { rank, size }, 0))).collect();
            let remaining: Vec<u32> = folds.iter().filter_map(Fold::number).collect();
            let power = 1 << size.ilog2();
            assert_eq!(remaining, (0..power).collect::<Vec<u32>>());
            let ranks = folds.iter().filter(|fold| fold.number().is_some()).map(|fold| fold.node.number);
            assert_eq!(ranks.collect::<Vec<_>>(), (0..power).map(|n| folds[0].rank(n)).collect::<Vec<_>>());
            assert_eq!(folds[0].in_tree(power), size);
        }
    }
}
