//! The messages that a blocking receive accepts.

/// Whether a receive takes a message whose sender still packs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Packed messages only: all octets may be read.
    Packed,
    /// Also a message that is being packed: its reader waits for the octets.
    Packing,
}
