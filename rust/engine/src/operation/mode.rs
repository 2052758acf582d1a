//! The mode of a send: standard or synchronous.

/// The condition that completes a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The message is sent, or the credit is used up and it is matched (MPI standard mode).
    Standard,
    /// The message is matched (MPI synchronous mode).
    Synchronous,
}
