//! Index tables of items whose runs are too short to be copied one by one.

use crate::flatten::RunAt;

/// A table of smaller items has at least about this many entries.
const ENTRIES: usize = 4096;

/// The elements of some items in order, by their distance from the first item.
#[derive(Debug)]
pub(crate) struct Table {
    /// Number of items, at least 1.
    pub(crate) items: usize,
    pub(crate) indices: Box<[i32]>,
}

/// Elements in order, as indices that a base is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The element of index 0.
    pub base: i64,
    /// The elements, relative to the base.
    pub indices: &'a [i32],
}

impl Table {
    /// The table of as many items as are worth a call, and whose indices fit 32 bits. An item has `size`
    /// elements, none further from it than `reach`.
    pub(crate) fn new(runs: &[RunAt], size: usize, extent: i64, reach: i64) -> Table {
        let room = i64::from(i32::MAX) - reach;
        let fit = if extent == 0 { i64::MAX } else { 1 + room.max(0) / extent.abs() };
        let items = (ENTRIES / size).clamp(1, fit.min(ENTRIES as i64) as usize);
        let mut indices = Vec::with_capacity(items * size);
        for item in 0..items as i64 {
            for run in runs {
                let at = item * extent + i64::from(run.at);
                indices.extend((at..at + i64::from(run.len)).map(|index| index as i32));
            }
        }
        Table { items, indices: indices.into() }
    }
}
