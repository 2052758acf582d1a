//! Every way a native method can fail, and the Java exception that it becomes.

use mpjdev_buffer::{BufferError, SlabError};
use mpjdev_device::handles::Refused;
use thiserror::Error;

/// A native method that could not do its work.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Buffer(#[from] BufferError),
    #[error("{what} is closed")]
    Closed { what: &'static str },
    #[error("{what} is used by another thread right now: guard it, or use one per thread")]
    Shared { what: &'static str },
    #[error("no further {what}: four million are open")]
    TableFull { what: &'static str },
    #[error("{what} cannot do this: {why}")]
    WrongKind { what: &'static str, why: &'static str },
    #[error("{name} is null")]
    Null { name: &'static str },
    /// A Java exception is pending already and wins.
    #[error("a Java exception is pending")]
    Pending,
}

impl Failure {
    /// A handle of something that was refused.
    pub(crate) fn handle(what: &'static str) -> impl Fn(Refused) -> Failure {
        move |refused| match refused {
            Refused::Stale => Failure::Closed { what },
            Refused::Busy => Failure::Shared { what },
            Refused::Full => Failure::TableFull { what },
        }
    }
}

impl From<SlabError> for Failure {
    fn from(error: SlabError) -> Self {
        Failure::Buffer(BufferError::Slab(error))
    }
}

/// What a failure is for Java: an exception of the platform, or a code that the face makes its own exception of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JavaClass {
    ArrayIndex,
    IllegalArgument,
    IllegalState,
    NullPointer,
    OutOfMemory,
    /// `mpjdev.core.Failure` with this code.
    Coded(i32),
}

/// Codes of `mpjdev.core.Failure`; a JUnit test compares both sides.
pub(crate) mod code {
    pub(crate) const OVERFLOW: i32 = 1;
    pub(crate) const END_OF_SECTIONS: i32 = 2;
    pub(crate) const TYPE_MISMATCH: i32 = 3;
    pub(crate) const SIZE_MISMATCH: i32 = 4;
    pub(crate) const DAMAGED: i32 = 5;
    pub(crate) const TRUNCATED: i32 = 6;

    /// Names as in Java, in the order of the codes from 1.
    pub(crate) const NAMES: [&str; 6] =
        ["OVERFLOW", "END_OF_SECTIONS", "TYPE_MISMATCH", "SIZE_MISMATCH", "DAMAGED", "TRUNCATED"];
}

impl Failure {
    /// The Java exception for this failure. No wildcard: a new variant must be placed.
    pub(crate) fn java_class(&self) -> Option<JavaClass> {
        Some(match self {
            Failure::Buffer(error) => buffer_class(error),
            Failure::Closed { .. } | Failure::Shared { .. } | Failure::WrongKind { .. } => {
                JavaClass::IllegalState
            }
            Failure::TableFull { .. } => JavaClass::OutOfMemory,
            Failure::Null { .. } => JavaClass::NullPointer,
            Failure::Pending => return None,
        })
    }
}

fn buffer_class(error: &BufferError) -> JavaClass {
    match error {
        BufferError::Overflow { .. } | BufferError::SecondaryOverflow { .. } => {
            JavaClass::Coded(code::OVERFLOW)
        }
        BufferError::EndOfSections { .. } => JavaClass::Coded(code::END_OF_SECTIONS),
        BufferError::TypeMismatch { .. } => JavaClass::Coded(code::TYPE_MISMATCH),
        BufferError::SizeMismatch { .. } => JavaClass::Coded(code::SIZE_MISMATCH),
        BufferError::Damaged { .. } => JavaClass::Coded(code::DAMAGED),
        BufferError::TooLong { .. } => JavaClass::Coded(code::TRUNCATED),
        BufferError::ArrayBounds { .. } | BufferError::Index { .. } | BufferError::Patch { .. } => {
            JavaClass::ArrayIndex
        }
        BufferError::Capacity { .. } | BufferError::Negative { .. } | BufferError::Volume { .. } => {
            JavaClass::IllegalArgument
        }
        BufferError::NoOpenSection { .. } | BufferError::ForeignStream => JavaClass::IllegalState,
        BufferError::Slab(_) => JavaClass::OutOfMemory,
    }
}
