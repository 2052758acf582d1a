//! Types of the elements.

use std::fmt;

/// Type of the elements of a vector; the discriminant is the code of the type in the message format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    /// Java `byte`.
    Byte = 0,
    /// Java `char`: 16 bits without a sign.
    Char = 1,
    /// Java `short`.
    Short = 2,
    /// Java `boolean`: one octet, 0 or 1; any other octet is true, too.
    Boolean = 3,
    /// Java `int`.
    Int = 4,
    /// Java `long`.
    Long = 5,
    /// Java `float`.
    Float = 6,
    /// Java `double`.
    Double = 7,
}

impl Element {
    /// All types in the order of their codes.
    pub const ALL: [Element; 8] = [
        Element::Byte,
        Element::Char,
        Element::Short,
        Element::Boolean,
        Element::Int,
        Element::Long,
        Element::Float,
        Element::Double,
    ];

    /// The type with this code; `None` for an unknown one, and for objects.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Element> {
        Element::ALL.get(usize::from(code)).copied()
    }

    /// Whether results of all operations have the same bits however the operands are grouped. Sums of
    /// floating-point numbers are rounded, and zeros of both signs are equal.
    #[must_use]
    pub fn is_exact(self) -> bool {
        !matches!(self, Element::Float | Element::Double)
    }

    /// Octets of one element.
    pub(crate) fn len(self) -> usize {
        match self {
            Element::Byte | Element::Boolean => 1,
            Element::Char | Element::Short => 2,
            Element::Int | Element::Float => 4,
            Element::Long | Element::Double => 8,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::Byte => "byte",
            Element::Char => "char",
            Element::Short => "short",
            Element::Boolean => "boolean",
            Element::Int => "int",
            Element::Long => "long",
            Element::Float => "float",
            Element::Double => "double",
        })
    }
}
