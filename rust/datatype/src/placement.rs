//! Placement of items in an array: the check of their range, and their elements in order.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use mpjdev_buffer::Patch;
use mpjdev_buffer::layout::COUNT_MAX;

use crate::error::DatatypeError;
use crate::flatten::{Form, NEST_MAX, Nest, RunAt};
use crate::indices::{Chunk, Table};

/// Elements per run from which runs are copied one by one.
const LONG_RUN: usize = 16;

/// The elements of an item and the distance of items.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) form: Form,
    /// Elements of an item.
    pub(crate) size: usize,
    pub(crate) extent: i64,
    /// The lowest element, and the end behind the highest one, by their distance from the item.
    pub(crate) reach: Range<i64>,
    pub(crate) table: OnceLock<Table>,
}

/// Checked elements of an array, in the order in which a message has them.
#[derive(Clone, Debug)]
pub enum Placement {
    /// `count` elements from `off` on.
    Run {
        /// The first element.
        off: usize,
        /// Number of elements; 0 needs no array.
        count: usize,
    },
    /// A strided patch.
    Patch(Patch),
    /// Items of a list of runs.
    Items(Items),
}

/// Checked items of a type that is a list of runs.
#[derive(Clone, Debug)]
pub struct Items {
    layout: Arc<Layout>,
    offset: i64,
    count: usize,
}

/// Checks items against an array: the only check of a range.
pub(crate) fn place(
    layout: &Arc<Layout>,
    offset: i64,
    count: i32,
    length: usize,
) -> Result<Placement, DatatypeError> {
    if count < 0 {
        return Err(DatatypeError::Negative { what: "count", value: count });
    }
    let (items, size) = (count as usize, layout.size);
    if items.saturating_mul(size) > COUNT_MAX {
        return Err(DatatypeError::TooMany { count, size, max: COUNT_MAX });
    }
    if items * size == 0 {
        return Ok(Placement::Run { off: 0, count: 0 });
    }
    let last_item = i128::from(count - 1) * i128::from(layout.extent);
    let first = i128::from(offset) + i128::from(layout.reach.start) + last_item.min(0);
    let end = i128::from(offset) + i128::from(layout.reach.end) + last_item.max(0);
    if first < 0 || end > length as i128 {
        return Err(DatatypeError::Range { first, last: end - 1, length });
    }
    Ok(match &layout.form {
        Form::Nest(nest) => place_nest(nest, layout.extent, offset, items, length),
        _ => Placement::Items(Items { layout: layout.clone(), offset, count: items }),
    })
}

/// Items of a nest. All elements are inside the array, so each distance between two fits 32 bits.
fn place_nest(nest: &Nest, extent: i64, offset: i64, items: usize, length: usize) -> Placement {
    let start = offset + nest.at;
    if let Some(count) = nest.repeated(items as i64, extent).and_then(|nest| nest.run()) {
        return Placement::Run { off: start as usize, count };
    }
    let (mut extents, mut strides, mut rank) = ([0; NEST_MAX + 1], [0; NEST_MAX + 1], 0);
    let mut add = |extent: i64, stride: i64| {
        (extents[rank], strides[rank]) = (extent as i32, stride as i32);
        rank += 1;
    };
    if items > 1 {
        add(items as i64, extent);
    }
    nest.dims().iter().for_each(|dim| add(dim.extent, dim.stride));
    match Patch::check(start, &extents[..rank], &strides[..rank], length) {
        Ok(patch) => Placement::Patch(patch),
        Err(error) => unreachable!("the elements are inside: {error}"),
    }
}

impl Placement {
    /// Number of elements.
    pub fn count(&self) -> usize {
        match self {
            Placement::Run { count, .. } => *count,
            Placement::Patch(patch) => patch.count(),
            Placement::Items(items) => items.elements(),
        }
    }
}

impl Items {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.count * self.layout.size
    }

    /// Whether the runs are so short that elements are better picked by indices.
    pub fn has_short_runs(&self) -> bool {
        self.layout.size < LONG_RUN * self.list().len()
    }

    fn list(&self) -> &[RunAt] {
        match &self.layout.form {
            Form::Runs(runs) => runs,
            _ => unreachable!("items of another form are a run or a patch"),
        }
    }

    /// The first `elements` elements in order, as runs.
    pub fn runs(&self, elements: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let items = (0..self.count as i64).map(|item| self.offset + item * self.layout.extent);
        let runs = items.flat_map(|item| {
            self.list().iter().map(move |run| {
                let start = (item + i64::from(run.at)) as usize;
                start..start + run.len as usize
            })
        });
        let mut left = elements;
        runs.map_while(move |run| {
            let len = run.len().min(left);
            left -= len;
            (len > 0).then_some(run.start..run.start + len)
        })
    }

    /// The first `elements` elements in order, as indices. The first call for a type makes its index table.
    pub fn chunks(&self, elements: usize) -> impl Iterator<Item = Chunk<'_>> {
        let Layout { size, extent, reach, .. } = &*self.layout;
        let furthest = reach.start.abs().max(reach.end.abs());
        let new = || Table::new(self.list(), *size, *extent, furthest);
        let Table { items, indices } = self.layout.table.get_or_init(new);
        let elements = elements.min(self.elements());
        (0..elements.div_ceil(indices.len())).map(move |chunk| {
            let left = elements - chunk * indices.len();
            let base = self.offset + (chunk * items) as i64 * extent;
            Chunk { base, indices: &indices[..left.min(indices.len())] }
        })
    }
}
