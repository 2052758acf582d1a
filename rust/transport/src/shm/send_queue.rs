//! Send queue of a pair of ranks: the position in its ring, and the slabs on loan through it.

use std::io;

use thiserror::Error;

use super::loans::SlabLoans;
use super::ring::Producer;
use super::segment_fault::{Damage, SegmentFault};

/// A queue to one other rank.
#[derive(Debug)]
pub(super) struct SendQueue {
    pub(super) producer: Producer,
    pub(super) loans: SlabLoans,
    /// Octets that are charged to the credit of this rank there, for short messages to come.
    pub(super) prepaid: u64,
}

/// Reason why a packet cannot be sent.
#[derive(Debug, Error)]
pub(super) enum Unsent {
    /// The receiver's segment is unusable.
    #[error(transparent)]
    Peer(#[from] SegmentFault),
    #[error("no shared memory for a queue to rank {rank}: {error}")]
    Queue { rank: u32, error: io::Error },
    #[error("a message outside shared memory was to be sent")]
    Outside,
}

impl From<Damage> for Unsent {
    fn from(damage: Damage) -> Unsent {
        Unsent::Peer(damage.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsent_packet_has_the_text_of_its_reason() {
        let error = io::Error::from_raw_os_error(12);
        let texts = [
            (Damage::Position.into(), "the position of the receiver"),
            (
                Unsent::Queue { rank: 3, error },
                "no shared memory for a queue to rank 3: Cannot allocate memory (os error 12)",
            ),
            (Unsent::Outside, "a message outside shared memory was to be sent"),
        ];
        for (unsent, text) in texts {
            assert_eq!(unsent.to_string(), text);
        }
    }
}
