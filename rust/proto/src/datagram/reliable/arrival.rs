//! The ids of received messages over datagrams.

use crate::arrival_table;

/// Names a received message to the driver and, as destination id, to the peer. After 1023 messages a stale id
/// may name another message, but the peer names a message by its own id as well.
pub type ArrivalId = arrival_table::ArrivalId<22, 10>;

/// Messages by their ids.
pub(super) type ArrivalTable<T> = arrival_table::ArrivalTable<T, 22, 10>;

impl ArrivalId {
    /// The id in packets of the peer.
    #[must_use]
    pub const fn destination_id(self) -> u32 {
        self.number() as u32
    }
}
