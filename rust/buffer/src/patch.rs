//! Strided patches of an array: extents and strides, checked once, then walked as runs.

use crate::error::BufferError;
use crate::layout::COUNT_MAX;

/// Dimensions that need no allocation; a patch of higher rank keeps the rest in a vector.
const FEW: usize = 4;

/// One dimension of a patch: the number of elements and their distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dim {
    extent: usize,
    stride: i64,
}

/// The elements `offset + Σ i_d · stride_d` of an array, `0 ≤ i_d < extent_d`, the last dimension varying
/// fastest (S: strGather, strScatter). Strides may be negative. Rank 0 is one element.
///
/// All elements of a `Patch` are inside the array that it was checked against, so iteration needs no further
/// check. Contiguous dimensions are merged, so runs are as long as possible.
#[derive(Clone, Debug)]
pub struct Patch {
    offset: usize,
    count: usize,
    rank: usize,
    few: [Dim; FEW],
    many: Vec<Dim>,
}

/// Consecutive elements of a patch: `count` elements from `start` on, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the first element.
    pub start: usize,
    /// Distance in elements, may be negative or zero.
    pub stride: i64,
    /// Number of elements, at least 1.
    pub count: usize,
}

/// Rows of elements of a patch: `rows` runs of `count` elements each, `row_stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the first element.
    pub start: usize,
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Distance between the first elements of two rows, may be negative or zero.
    pub row_stride: i64,
    /// Elements per row, at least 1.
    pub count: usize,
    /// Distance between elements of a row, may be negative or zero.
    pub stride: i64,
}

impl Block {
    /// One row of the block.
    pub fn row(&self, row: usize) -> Run {
        let start = (self.start as i64 + self.row_stride * row as i64) as usize;
        Run { start, stride: self.stride, count: self.count }
    }
}

impl Patch {
    /// Checks a patch against an array of `length` elements.
    ///
    /// `offset` is the element where all indices are zero; `extents` and `strides` have one entry per
    /// dimension, strides in elements.
    ///
    /// # Errors
    /// A negative extent; extents that multiply to more than 2³¹−1; an element outside the array. A patch
    /// without elements is inside any array as long as its offset is not negative.
    pub fn check(offset: i64, extents: &[i32], strides: &[i32], length: usize) -> Result<Patch, BufferError> {
        let count = volume(extents)?;
        if offset < 0 {
            return Err(BufferError::Negative { what: "offset", value: offset });
        }
        let mut patch =
            Patch { offset: offset as usize, count, rank: 0, few: [Dim::default(); FEW], many: Vec::new() };
        if count == 0 {
            return Ok(patch);
        }
        let (mut lowest, mut highest) = (i128::from(offset), i128::from(offset));
        for (&extent, &stride) in extents.iter().zip(strides) {
            let reach = i128::from(extent - 1) * i128::from(stride);
            lowest += reach.min(0);
            highest += reach.max(0);
        }
        if lowest < 0 || highest >= length as i128 {
            return Err(BufferError::Patch { lowest, highest, length: length as u64 });
        }
        for (&extent, &stride) in extents.iter().zip(strides) {
            patch.add(Dim { extent: extent as usize, stride: i64::from(stride) });
        }
        Ok(patch)
    }

    /// Number of elements: the product of the extents.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a faster varying dimension; merges it into the previous one if the two are contiguous.
    fn add(&mut self, dim: Dim) {
        if dim.extent == 1 {
            return;
        }
        if self.rank > 0 {
            let before = *self.dim(self.rank - 1);
            if before.stride == dim.stride * dim.extent as i64 {
                let merged = Dim { extent: before.extent * dim.extent, stride: dim.stride };
                *self.dim_mut(self.rank - 1) = merged;
                return;
            }
        }
        if self.rank < FEW {
            self.few[self.rank] = dim;
        } else {
            self.many.push(dim);
        }
        self.rank += 1;
    }

    fn dim(&self, d: usize) -> &Dim {
        if d < FEW { &self.few[d] } else { &self.many[d - FEW] }
    }

    fn dim_mut(&mut self, d: usize) -> &mut Dim {
        if d < FEW { &mut self.few[d] } else { &mut self.many[d - FEW] }
    }

    /// The elements in order, as runs of at most `limit` elements.
    ///
    /// # Panics
    /// When `limit` is 0.
    pub fn runs(&self, limit: usize) -> impl Iterator<Item = Run> + '_ {
        self.blocks(limit).flat_map(|block| (0..block.rows).map(move |row| block.row(row)))
    }

    /// The elements in order, as blocks of at most `limit` elements, for tight loops.
    ///
    /// # Panics
    /// When `limit` is 0.
    pub fn blocks(&self, limit: usize) -> Blocks<'_> {
        assert!(limit > 0, "a block has at least one element");
        let dim = |from_last: usize| match self.rank.checked_sub(from_last) {
            Some(d) => *self.dim(d),
            None => Dim { extent: 1, stride: 0 },
        };
        Blocks {
            patch: self,
            inner: dim(1),
            middle: dim(2),
            base: self.offset as i64,
            row: 0,
            taken: 0,
            left: self.count,
            limit,
            digits: [0; FEW],
            more_digits: vec![0; self.many.len()],
        }
    }
}

/// Iterator over the blocks of a patch.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    patch: &'a Patch,
    inner: Dim,
    middle: Dim,
    /// Index of the element at which the two inner dimensions begin.
    base: i64,
    /// Rows that are done, and elements of the next row.
    row: usize,
    taken: usize,
    left: usize,
    limit: usize,
    digits: [usize; FEW],
    more_digits: Vec<usize>,
}

impl Blocks<'_> {
    /// The first `count` elements.
    #[must_use]
    pub fn first(self, count: usize) -> Self {
        Blocks { left: self.left.min(count), ..self }
    }

    /// Advances the outer dimensions.
    fn next_plane(&mut self) {
        for d in (0..self.patch.rank.saturating_sub(2)).rev() {
            let dim = *self.patch.dim(d);
            let digit = if d < FEW { &mut self.digits[d] } else { &mut self.more_digits[d - FEW] };
            *digit += 1;
            self.base += dim.stride;
            if *digit < dim.extent {
                return;
            }
            self.base -= dim.stride * dim.extent as i64;
            *digit = 0;
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    #[inline]
    fn next(&mut self) -> Option<Block> {
        if self.left == 0 {
            return None;
        }
        let limit = self.limit.min(self.left);
        let row_start = self.base + self.middle.stride * self.row as i64;
        let start = (row_start + self.inner.stride * self.taken as i64) as usize;
        let whole_rows = limit / self.inner.extent;
        let (rows, count) = if self.taken == 0 && whole_rows > 0 {
            (whole_rows.min(self.middle.extent - self.row), self.inner.extent)
        } else {
            (1, limit.min(self.inner.extent - self.taken))
        };
        self.left -= rows * count;
        self.taken += count;
        if self.taken == self.inner.extent {
            self.taken = 0;
            self.row += rows;
            if self.row == self.middle.extent {
                self.row = 0;
                self.next_plane();
            }
        }
        Some(Block { start, rows, row_stride: self.middle.stride, count, stride: self.inner.stride })
    }
}
/// Number of elements of a patch with these extents.
///
/// # Errors
/// A negative extent, or more than 2³¹−1 elements.
pub fn volume(extents: &[i32]) -> Result<usize, BufferError> {
    if let Some(&negative) = extents.iter().find(|e| **e < 0) {
        return Err(BufferError::Negative { what: "extent", value: i64::from(negative) });
    }
    if extents.contains(&0) {
        return Ok(0);
    }
    extents
        .iter()
        .try_fold(1usize, |n, &e| n.checked_mul(e as usize).filter(|n| *n <= COUNT_MAX))
        .ok_or(BufferError::Volume { max: COUNT_MAX as u64 })
}

/// Checks that `count` elements from `offset` on are inside an array of `length` elements.
///
/// # Errors
/// A negative number, or elements outside; `what` names the array.
#[inline]
pub fn check_range(what: &'static str, offset: i64, count: i64, length: usize) -> Result<(), BufferError> {
    if offset < 0 || count < 0 || offset.saturating_add(count) > length as i64 {
        return Err(BufferError::ArrayBounds { what, offset, count, length: length as u64 });
    }
    Ok(())
}

/// Checks that all indices, `base` added, are inside an array of `length` elements. `from` is the position of
/// the first one among the indices of the call.
///
/// # Errors
/// Names the first index that is outside.
#[inline]
pub fn check_indices(indices: &[i32], base: i64, length: usize, from: usize) -> Result<(), BufferError> {
    // One pass that the compiler vectorises; an invalid index is searched only if there is one.
    let (low, high) = indices.iter().fold((i32::MAX, i32::MIN), |(l, h), &i| (l.min(i), h.max(i)));
    let inside = |i: i32| (0..length as i64).contains(&i64::from(i).saturating_add(base));
    if indices.is_empty() || (inside(low) && inside(high)) {
        return Ok(());
    }
    let at = indices.iter().position(|&i| !inside(i)).unwrap_or(0);
    Err(BufferError::Index {
        index: i64::from(indices[at]).saturating_add(base),
        position: (from + at) as u64,
        length: length as u64,
    })
}
