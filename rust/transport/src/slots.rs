//! Slots in which a rank publishes a short vector to all ranks of a communicator at once.
//!
//! A message to each rank needs a record, its credit and a copy for each of them. A slot is written once, and
//! each rank reads it where it lies. A rank has two slots for a communicator and uses them in turn. So it may
//! publish the next vector while others still read the last one, but not the one after that.

use std::fmt::Debug;

use std::sync::atomic::AtomicU64;

/// Octets of the longest short vector, which lies behind its stamp.
pub const SLOT_MAX: usize = 1024;
/// Octets of the longest vector of a slot. One that is not short lies in the long part of its slot.
pub const LONG_SLOT_MAX: usize = 32 * 1024;

/// The two slots of a rank for one communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPair {
    /// The number of the pair at its rank.
    pub index: u32,
    /// Vectors that were published there for other communicators before.
    pub base: u64,
}

/// A vector of another rank that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The world rank.
    pub source: u32,
    /// The context of the communicator.
    pub context: u64,
    /// The number of the vector, from 1 on.
    pub number: u64,
}

/// The slots of one rank, and its view of those of the others.
///
/// The words of another rank are hostile: a label and the octets may change at any time, so each is read once
/// and then checked.
pub trait Slots: Debug + Send + Sync {
    /// Claims slots for a communicator of these world ranks. `None` if all are in use, or the system has no
    /// memory for them.
    fn claim(&self, context: u64, members: &[u32]) -> Option<SlotPair>;

    /// Gives slots back. They are claimed again when each other member has [closed](Self::close) them.
    fn retire(&self, pair: SlotPair);

    /// Closes the slots of another rank, which this rank reads no more.
    fn close(&self, source: u32, pair: SlotPair);

    /// Publishes a vector of at most [`SLOT_MAX`] octets. Each reader has read the vector before the last
    /// one. A reader that is parked has to be [woken](Self::wake_readers).
    ///
    /// # Panics
    /// The vector is longer.
    fn publish(&self, pair: SlotPair, number: u64, label: u64, octets: &[u8]);

    /// The long part of a slot of this rank, to be filled before the vector is
    /// [published](Self::publish_long). The first call for a pair takes memory; `None` if the system has
    /// none.
    fn long_part(&self, pair: SlotPair, number: u64) -> Option<&[AtomicU64]>;

    /// As [`publish`](Self::publish), for a vector in the [long part](Self::long_part) of its slot.
    fn publish_long(&self, pair: SlotPair, number: u64, label: u64);

    /// The words that begin with the `len` octets of a published vector. Its owner may change them at any
    /// time.
    ///
    /// # Panics
    /// There are more than [`LONG_SLOT_MAX`].
    fn vector(&self, source: u32, pair: SlotPair, number: u64, len: usize) -> Option<&[AtomicU64]>;

    /// Wakes those of these ranks that are parked, so that they see what was published before.
    fn wake_readers(&self, readers: &[u32]);

    /// The slots of a rank for a communicator, once it has claimed them.
    fn find(&self, source: u32, context: u64) -> Option<SlotPair>;

    /// Whether a rank has published a vector.
    fn is_published(&self, source: u32, pair: SlotPair, number: u64) -> bool;

    /// The label of a published vector.
    fn label(&self, source: u32, pair: SlotPair, number: u64) -> u64;

    /// Copies octets from `skip` on of a published vector.
    ///
    /// # Panics
    /// They end behind [`SLOT_MAX`].
    fn copy(&self, source: u32, pair: SlotPair, number: u64, skip: usize, into: &mut [u8]);

    /// Makes [`Transport::is_ready`](crate::Transport::is_ready) and the sleep of this rank see a vector.
    fn begin_wait(&self, awaited: Awaited);

    /// Ends the effect of [`begin_wait`](Self::begin_wait).
    fn end_wait(&self, awaited: Awaited);

    /// Whether a vector is there that a thread waits for.
    fn has_awaited(&self) -> bool;
}
