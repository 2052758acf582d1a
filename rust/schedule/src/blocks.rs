//! Division of consecutive elements into one block for each rank.

use std::ops::Range;

use crate::step::Run;

/// Blocks that follow each other, from the beginning of the area on.
pub(crate) struct Blocks {
    /// Index of the first element of each block, and of the end.
    bounds: Vec<usize>,
}

impl Blocks {
    /// Blocks of these lengths.
    pub(crate) fn new(counts: impl IntoIterator<Item = usize>) -> Blocks {
        let mut bounds = vec![0];
        let mut end = 0;
        bounds.extend(counts.into_iter().map(|count| {
            end += count;
            end
        }));
        Blocks { bounds }
    }

    /// A block of `count` elements for each of `ranks` ranks.
    pub(crate) fn equal(count: usize, ranks: u32) -> Blocks {
        Blocks { bounds: (0..=ranks as usize).map(|rank| rank * count).collect() }
    }

    /// `count` elements in blocks whose lengths differ by at most one unit.
    pub(crate) fn divide(count: usize, unit: usize, blocks: u32) -> Blocks {
        let (units, blocks) = (count / unit, blocks as usize);
        Blocks { bounds: (0..=blocks).map(|k| units * k / blocks * unit).collect() }
    }

    /// Elements of all blocks.
    pub(crate) fn len(&self) -> usize {
        self.bounds[self.bounds.len() - 1]
    }

    /// The elements of a block.
    pub(crate) fn run(&self, block: u32) -> Run {
        self.runs(block..block + 1)
    }

    /// The elements of blocks that follow each other.
    pub(crate) fn runs(&self, blocks: Range<u32>) -> Run {
        let [start, end] = [blocks.start, blocks.end].map(|block| self.bounds[block as usize]);
        Run { start, len: end - start }
    }

    /// The elements of each block.
    pub(crate) fn all(&self) -> Vec<Run> {
        self.bounds.windows(2).map(|bounds| Run { start: bounds[0], len: bounds[1] - bounds[0] }).collect()
    }
}

/// Input and output of a block that a rank sends to itself: the same elements. The output has the length of
/// the shorter one; the caller reports a block that is longer than its room.
pub(crate) fn own_block(start: usize, sent: usize, room: usize) -> (Run, Run) {
    (Run { start, len: sent }, Run { start, len: sent.min(room) })
}
