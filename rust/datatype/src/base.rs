//! Base types: the one type that all elements of a datatype have.

use std::fmt;

use mpjdev_buffer::Type;

/// The type of the elements of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Elements of a section, objects among them.
    Element(Type),
    /// Octets of packed sections.
    Packed,
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base::Element(element) => element.fmt(f),
            Base::Packed => f.write_str("packed"),
        }
    }
}
