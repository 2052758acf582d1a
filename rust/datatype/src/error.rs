//! Errors of datatypes: refused constructors, and items outside an array.

use thiserror::Error;

use crate::base::Base;

/// A refused constructor, or items that an array does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DatatypeError {
    /// A negative count of a constructor.
    #[error("{what} is negative: {value}")]
    Negative {
        /// Name of the argument.
        what: &'static str,
        /// Its value.
        value: i32,
    },
    /// Arrays of one constructor with different lengths.
    #[error("{blocks} block lengths, {displacements} displacements and {types} types: one of each per block")]
    Lengths {
        /// Block lengths.
        blocks: usize,
        /// Displacements.
        displacements: usize,
        /// Types.
        types: usize,
    },
    /// The blocks of a structure have different base types.
    #[error("block {block} has elements of type {found}, the blocks before it of type {wanted}")]
    BaseMismatch {
        /// Number of the block, from 0.
        block: usize,
        /// Base type of the blocks before.
        wanted: Base,
        /// Base type of this block.
        found: Base,
    },
    /// The size, the extent or a bound does not fit 32 bits.
    #[error("the {what} of the datatype is {value}, outside {} to {}", i32::MIN, i32::MAX)]
    Overflow {
        /// Name of the number.
        what: &'static str,
        /// The number.
        value: i128,
    },
    /// Flattening makes too many runs.
    #[error("the datatype has more than {max} runs of consecutive elements")]
    TooComplex {
        /// The largest number of runs.
        max: usize,
    },
    /// The items have more elements than a section can count.
    #[error("{count} items of {size} elements are more than {max} elements")]
    TooMany {
        /// Number of items.
        count: i32,
        /// Elements of an item.
        size: usize,
        /// The largest number of elements.
        max: usize,
    },
    /// Elements of the items are outside the array.
    #[error("the items reach from element {first} to {last}, outside an array of length {length}")]
    Range {
        /// The lowest element.
        first: i128,
        /// The highest element.
        last: i128,
        /// Elements of the array.
        length: usize,
    },
}
