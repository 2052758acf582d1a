//! The ids of received messages.

use std::num::NonZeroU64;

/// Names a received message to the driver and, as drqid, to the peer: a slot index and a generation, never an
/// address (IMPI 18, 7). A stale or invented id names nothing. After 2^32 messages a stale id may name
/// another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrivalId(NonZeroU64);

impl ArrivalId {
    pub(super) fn new(place: u32, generation: u32) -> Self {
        let generation =
            NonZeroU64::from(std::num::NonZeroU32::new(generation).unwrap_or(std::num::NonZeroU32::MIN));
        Self((generation.saturating_mul(PLACES)) | u64::from(place))
    }

    pub(super) fn of(drqid: u64) -> Option<Self> {
        NonZeroU64::new(drqid).map(Self)
    }

    /// The drqid of this message.
    pub const fn drqid(self) -> u64 {
        self.0.get()
    }

    pub(super) const fn place(self) -> usize {
        self.0.get() as u32 as usize
    }

    pub(super) const fn generation(self) -> u32 {
        (self.0.get() >> 32) as u32
    }
}

/// 2^32, the number of slots that an id can name.
const PLACES: NonZeroU64 = NonZeroU64::new(1 << 32).unwrap();
