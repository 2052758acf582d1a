//! Datatypes: constructors, bounds, and the placement of items.

use std::sync::{Arc, OnceLock};

use mpjdev_buffer::layout::COUNT_MAX;

use crate::base::Base;
use crate::error::DatatypeError;
use crate::flatten::{Builder, Form, Nest};
use crate::placement::{self, Layout, Placement};

/// A datatype. It never changes; a clone shares its elements.
#[derive(Clone, Debug)]
pub struct Datatype {
    base: Option<Base>,
    /// Bounds of the items; `None` for a type without entries.
    bounds: Option<(i32, i32)>,
    /// Positions of the lowest mark of a lower bound, and of the highest mark of an upper bound.
    marks: (Option<i32>, Option<i32>),
    layout: Arc<Layout>,
}

/// The unit of strides and displacements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The extent of the old type.
    Extent,
    /// One element.
    Element,
}

/// Bounds, marks and size of entries of a type map, in wide arithmetic.
#[derive(Clone, Copy, Debug, Default)]
struct Summary {
    /// The lowest and the highest bound of all entries, if there are any.
    bounds: Option<(i128, i128)>,
    lower_mark: Option<i128>,
    upper_mark: Option<i128>,
    /// The lowest and the highest bound of all elements, if there are any.
    reach: Option<(i128, i128)>,
    /// Number of elements.
    size: i128,
}

/// The union of two ranges.
fn join(a: Option<(i128, i128)>, b: Option<(i128, i128)>) -> Option<(i128, i128)> {
    match (a, b) {
        (Some((low, high)), Some((lower, higher))) => Some((low.min(lower), high.max(higher))),
        (a, b) => a.or(b),
    }
}

impl Summary {
    fn of(datatype: &Datatype) -> Summary {
        let wide = |(low, high): (i32, i32)| (i128::from(low), i128::from(high));
        let Layout { size, reach, .. } = &*datatype.layout;
        Summary {
            bounds: datatype.bounds.map(wide),
            lower_mark: datatype.marks.0.map(i128::from),
            upper_mark: datatype.marks.1.map(i128::from),
            reach: (*size > 0).then_some((i128::from(reach.start), i128::from(reach.end))),
            size: *size as i128,
        }
    }

    /// Moved by `low` at least and `high` at most.
    fn spread(self, low: i128, high: i128) -> Summary {
        let moved = |(from, to)| (from + low, to + high);
        Summary {
            bounds: self.bounds.map(moved),
            lower_mark: self.lower_mark.map(|mark| mark + low),
            upper_mark: self.upper_mark.map(|mark| mark + high),
            reach: self.reach.map(moved),
            ..self
        }
    }

    /// `count` copies, `stride` apart.
    fn repeated(self, count: i32, stride: i128) -> Summary {
        if count == 0 {
            return Summary::default();
        }
        let last = i128::from(count - 1) * stride;
        Summary { size: self.size * i128::from(count), ..self.spread(last.min(0), last.max(0)) }
    }

    fn joined(self, other: Summary) -> Summary {
        let of_both = |a: Option<i128>, b: Option<i128>, pick: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        Summary {
            bounds: join(self.bounds, other.bounds),
            lower_mark: of_both(self.lower_mark, other.lower_mark, i128::min),
            upper_mark: of_both(self.upper_mark, other.upper_mark, i128::max),
            reach: join(self.reach, other.reach),
            size: self.size + other.size,
        }
    }

    /// The type of these entries. `form` makes their form, after the check that all numbers fit.
    fn finish(
        self,
        base: Option<Base>,
        form: impl FnOnce() -> Result<Form, DatatypeError>,
    ) -> Result<Datatype, DatatypeError> {
        let fit = |what, value| i32::try_from(value).map_err(|_| DatatypeError::Overflow { what, value });
        if self.size > COUNT_MAX as i128 {
            return Err(DatatypeError::Overflow { what: "size", value: self.size });
        }
        let bounds = match self.bounds {
            None => None,
            Some((low, high)) => {
                let low = fit("lower bound", self.lower_mark.unwrap_or(low))?;
                Some((low, fit("upper bound", self.upper_mark.unwrap_or(high))?))
            }
        };
        let (lb, ub) = bounds.unwrap_or_default();
        let extent = fit("extent", i128::from(ub) - i128::from(lb))?;
        let (first, end) = self.reach.unwrap_or_default();
        let (first, end) = (fit("lowest element", first)?, fit("highest element", end)?);
        // The marks are among the entries, so they are no further than the bounds.
        let marks = (self.lower_mark.map(|_| lb), self.upper_mark.map(|_| ub));
        let layout = Layout {
            form: if self.size == 0 { Form::Empty } else { form()? },
            size: self.size as usize,
            extent: i64::from(extent),
            reach: i64::from(first)..i64::from(end),
            table: OnceLock::new(),
        };
        Ok(Datatype { base, bounds, marks, layout: Arc::new(layout) })
    }
}

fn check_count(what: &'static str, value: i32) -> Result<i32, DatatypeError> {
    if value < 0 { Err(DatatypeError::Negative { what, value }) } else { Ok(value) }
}

impl Datatype {
    fn entry(base: Option<Base>, upper: i32, marks: (Option<i32>, Option<i32>)) -> Datatype {
        let form = if upper > 0 { Form::Nest(Nest::ELEMENT) } else { Form::Empty };
        let (size, extent) = (upper as usize, i64::from(upper));
        let layout = Layout { form, size, extent, reach: 0..extent, table: OnceLock::new() };
        Datatype { base, bounds: Some((0, upper)), marks, layout: Arc::new(layout) }
    }

    /// One element.
    pub fn basic(base: Base) -> Datatype {
        Datatype::entry(Some(base), 1, (None, None))
    }

    /// The mark of a lower bound.
    pub fn lower_mark() -> Datatype {
        Datatype::entry(None, 0, (Some(0), None))
    }

    /// The mark of an upper bound.
    pub fn upper_mark() -> Datatype {
        Datatype::entry(None, 0, (None, Some(0)))
    }

    /// `count` items, one extent apart.
    ///
    /// # Errors
    /// A negative count; a type that is too large or too complex.
    pub fn contiguous(&self, count: i32) -> Result<Datatype, DatatypeError> {
        self.vector(check_count("count", count)?, 1, 1, Unit::Extent)
    }

    /// `count` blocks of `block` items, `stride` apart.
    ///
    /// # Errors
    /// A negative count or block length; a type that is too large or too complex.
    pub fn vector(&self, count: i32, block: i32, stride: i32, unit: Unit) -> Result<Datatype, DatatypeError> {
        let (count, block) = (check_count("count", count)?, check_count("block length", block)?);
        let (extent, stride) = (self.layout.extent, i64::from(stride) * self.unit(unit));
        let summary =
            Summary::of(self).repeated(block, i128::from(extent)).repeated(count, i128::from(stride));
        summary.finish(self.base, || {
            self.layout.form.repeated(i64::from(block), extent)?.repeated(i64::from(count), stride)
        })
    }

    /// Blocks of items at displacements of their own.
    ///
    /// # Errors
    /// A negative block length, arrays of different lengths; a type that is too large or too complex.
    pub fn indexed(
        &self,
        blocks: &[i32],
        displacements: &[i32],
        unit: Unit,
    ) -> Result<Datatype, DatatypeError> {
        if blocks.len() != displacements.len() {
            let (blocks, displacements) = (blocks.len(), displacements.len());
            return Err(DatatypeError::Lengths { blocks, displacements, types: blocks });
        }
        let unit = self.unit(unit);
        let parts = || blocks.iter().zip(displacements).map(|(&n, &at)| (n, i64::from(at) * unit, self));
        of_blocks(self.base, parts)
    }

    /// Blocks of items of different types; displacements count elements.
    ///
    /// # Errors
    /// A negative block length, arrays of different lengths, different base types; a type that is too large
    /// or too complex.
    pub fn structure(
        blocks: &[i32],
        displacements: &[i32],
        types: &[Datatype],
    ) -> Result<Datatype, DatatypeError> {
        if blocks.len() != displacements.len() || blocks.len() != types.len() {
            let (blocks, displacements) = (blocks.len(), displacements.len());
            return Err(DatatypeError::Lengths { blocks, displacements, types: types.len() });
        }
        let mut base = None;
        for (block, datatype) in types.iter().enumerate() {
            let of_elements = if blocks[block] > 0 && datatype.size() > 0 { datatype.base } else { None };
            match (base, of_elements) {
                (Some(wanted), Some(found)) if wanted != found => {
                    return Err(DatatypeError::BaseMismatch { block, wanted, found });
                }
                (base_before, found) => base = base_before.or(found),
            }
        }
        let parts = || {
            let places = blocks.iter().zip(displacements);
            places.zip(types).map(|((&n, &at), datatype)| (n, i64::from(at), datatype))
        };
        of_blocks(base, parts)
    }

    fn unit(&self, unit: Unit) -> i64 {
        match unit {
            Unit::Extent => self.layout.extent,
            Unit::Element => 1,
        }
    }

    /// The type of the elements; `None` if there is none.
    pub fn base(&self) -> Option<Base> {
        self.base
    }

    /// Elements of an item.
    pub fn size(&self) -> usize {
        self.layout.size
    }

    /// The distance of items.
    pub fn extent(&self) -> i32 {
        self.ub() - self.lb()
    }

    /// The lower bound.
    pub fn lb(&self) -> i32 {
        self.bounds.map_or(0, |(lb, _)| lb)
    }

    /// The upper bound.
    pub fn ub(&self) -> i32 {
        self.bounds.map_or(0, |(_, ub)| ub)
    }

    /// Whether items are consecutive elements without gaps, the first one at the item's offset.
    pub fn is_contiguous(&self) -> bool {
        let is_run = matches!(&self.layout.form, Form::Nest(nest) if nest.at == 0 && nest.run().is_some());
        is_run && self.layout.extent == self.layout.size as i64
    }

    /// The elements of `count` items in an array of `length` elements, the first item at `offset`. Items
    /// without elements need no array.
    ///
    /// # Errors
    /// A negative count, more elements than a section has, elements outside the array.
    pub fn place(&self, offset: i64, count: i32, length: usize) -> Result<Placement, DatatypeError> {
        placement::place(&self.layout, offset, count, length)
    }
}

/// The type of blocks, each as the number of its items, its displacement in elements and its type.
fn of_blocks<'a, I>(base: Option<Base>, blocks: impl Fn() -> I) -> Result<Datatype, DatatypeError>
where
    I: Iterator<Item = (i32, i64, &'a Datatype)>,
{
    let mut summary = Summary::default();
    for (count, at, datatype) in blocks() {
        let count = check_count("block length", count)?;
        let block = Summary::of(datatype).repeated(count, i128::from(datatype.layout.extent));
        summary = summary.joined(block.spread(i128::from(at), i128::from(at)));
    }
    summary.finish(base, || {
        let mut builder = Builder::default();
        for (count, at, datatype) in blocks() {
            let Layout { form, extent, .. } = &*datatype.layout;
            builder.push(&form.repeated(i64::from(count), *extent)?, at)?;
        }
        builder.finish()
    })
}
