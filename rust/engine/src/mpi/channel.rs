//! The two communicators that a group has in the library.

/// The communicators of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Program,
    Collective,
}
