//! The ids of received messages.

use std::num::NonZeroU32;

/// Names a received message to the driver and, as destination id, to the peer: a slot index and a generation,
/// never an address. A stale or invented id names nothing. After 1023 messages a stale id may name another
/// message, but the peer names a message by its own id as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrivalId(NonZeroU32);

impl ArrivalId {
    /// From a slot index below [`SLOTS_MAX`] and a generation of 1 to [`GENERATION_MAX`].
    pub(super) fn new(slot_index: u32, generation: u32) -> Self {
        let generation = NonZeroU32::new(generation).unwrap_or(NonZeroU32::MIN);
        Self(generation.saturating_mul(SLOTS) | slot_index)
    }

    pub(super) fn of(destination_id: u32) -> Option<Self> {
        NonZeroU32::new(destination_id).map(Self)
    }

    /// The id in packets of the peer.
    #[must_use]
    pub const fn destination_id(self) -> u32 {
        self.0.get()
    }

    pub(super) const fn slot_index(self) -> usize {
        (self.0.get() & (SLOTS.get() - 1)) as usize
    }

    pub(super) const fn generation(self) -> u32 {
        self.0.get() >> SLOT_BITS
    }
}

/// Bits of an id that are a slot index; the others are the generation.
const SLOT_BITS: u32 = 22;
/// The largest generation.
pub(super) const GENERATION_MAX: u32 = u32::MAX >> SLOT_BITS;
/// The number of slots that an id can name.
pub(super) const SLOTS_MAX: usize = 1 << SLOT_BITS;
/// The same.
const SLOTS: NonZeroU32 = NonZeroU32::new(SLOTS_MAX as u32).unwrap();
