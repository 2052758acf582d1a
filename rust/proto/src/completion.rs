//! The completion of a send.

/// When a send is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// When its octets are no longer needed: handed over to TCP, or acked as datagrams.
    #[default]
    Standard,
    /// When a receive has matched it as well.
    Synchronous,
}
