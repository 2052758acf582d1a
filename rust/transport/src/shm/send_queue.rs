//! Send queue of a pair of ranks: the position in its ring, and the slabs on loan through it.

use super::loans::SlabLoans;
use super::ring::Producer;
use super::segment_fault::Damage;

/// A queue to one other rank.
#[derive(Debug)]
pub(super) struct SendQueue {
    pub(super) producer: Producer,
    pub(super) loans: SlabLoans,
}

/// Reason why a packet cannot be sent.
pub(super) enum Unsent {
    /// The words that the peer has written make no sense.
    Damaged(String),
    /// This rank itself cannot continue.
    Failed(String),
}

impl From<Damage> for Unsent {
    fn from(damage: Damage) -> Unsent {
        Unsent::Damaged(damage.to_string())
    }
}
