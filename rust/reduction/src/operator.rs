//! Predefined operations, and the types that they apply to.

use std::fmt;

use thiserror::Error;

use crate::element::Element;

/// A predefined operation; the discriminant is its code at the boundary to Java. All are commutative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operator {
    /// Maximum.
    Max = 0,
    /// Minimum.
    Min = 1,
    /// Sum.
    Sum = 2,
    /// Product.
    Prod = 3,
    /// Logical and.
    Land = 4,
    /// Bitwise and.
    Band = 5,
    /// Logical or.
    Lor = 6,
    /// Bitwise or.
    Bor = 7,
    /// Logical exclusive or.
    Lxor = 8,
    /// Bitwise exclusive or.
    Bxor = 9,
    /// Maximum and its index.
    Maxloc = 10,
    /// Minimum and its index.
    Minloc = 11,
}

impl Operator {
    /// All operations in the order of their codes.
    pub const ALL: [Operator; 12] = [
        Operator::Max,
        Operator::Min,
        Operator::Sum,
        Operator::Prod,
        Operator::Land,
        Operator::Band,
        Operator::Lor,
        Operator::Bor,
        Operator::Lxor,
        Operator::Bxor,
        Operator::Maxloc,
        Operator::Minloc,
    ];

    /// The operation with this code; `None` for an unknown one.
    #[must_use]
    pub fn from_code(code: i32) -> Option<Operator> {
        usize::try_from(code).ok().and_then(|code| Operator::ALL.get(code).copied())
    }

    /// Checks that the operation applies to elements of a type.
    ///
    /// # Errors
    /// It does not.
    pub fn check(self, element: Element) -> Result<(), Unsupported> {
        use Operator::{Band, Bor, Bxor, Land, Lor, Lxor, Max, Maxloc, Min, Minloc, Prod, Sum};
        let applies = match self {
            Max | Min | Sum | Prod | Maxloc | Minloc => element != Element::Boolean,
            Land | Band | Lor | Bor | Lxor | Bxor => !matches!(element, Element::Float | Element::Double),
        };
        if applies { Ok(()) } else { Err(Unsupported { operator: self, element }) }
    }

    /// Elements that belong together: 2 for pairs of a value and an index, otherwise 1.
    #[must_use]
    pub fn unit(self) -> usize {
        if matches!(self, Operator::Maxloc | Operator::Minloc) { 2 } else { 1 }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Max => "MAX",
            Operator::Min => "MIN",
            Operator::Sum => "SUM",
            Operator::Prod => "PROD",
            Operator::Land => "LAND",
            Operator::Band => "BAND",
            Operator::Lor => "LOR",
            Operator::Bor => "BOR",
            Operator::Lxor => "LXOR",
            Operator::Bxor => "BXOR",
            Operator::Maxloc => "MAXLOC",
            Operator::Minloc => "MINLOC",
        })
    }
}

/// An operation that does not apply to elements of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the operation {operator} does not apply to elements of type {element}")]
pub struct Unsupported {
    /// The operation.
    pub operator: Operator,
    /// The type.
    pub element: Element,
}
