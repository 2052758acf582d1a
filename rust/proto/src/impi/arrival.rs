//! The ids of received messages over IMPI.

use crate::arrival_table;

/// Names a received message to the driver and, as drqid, to the peer (IMPI 18, 7). After 2^32 messages a
/// stale id may name another one.
pub type ArrivalId = arrival_table::ArrivalId<32, 32>;

/// Messages by their ids.
pub(super) type ArrivalTable<T> = arrival_table::ArrivalTable<T, 32, 32>;

impl ArrivalId {
    /// The drqid of this message.
    #[must_use]
    pub const fn drqid(self) -> u64 {
        self.number()
    }
}
