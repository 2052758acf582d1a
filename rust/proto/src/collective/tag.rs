//! All tags of the collective context. They fit the tags of IMPI and of a C MPI (`MPI_TAG_UB` is at least
//! 32767).

/// Barrier, round 0; round k has the tag k, and there are at most 32.
pub(super) const BARRIER: i32 = 0;
/// Dup: rank 0 to all.
pub(super) const DUP_DECISION: i32 = 64;
/// Create: all to rank 0.
pub(super) const CREATE_REQUEST: i32 = 65;
/// Create: rank 0 to all.
pub(super) const CREATE_DECISION: i32 = 66;
/// Split: all to rank 0.
pub(super) const SPLIT_REQUEST: i32 = 67;
/// Split: rank 0 to all.
pub(super) const SPLIT_DECISION: i32 = 68;
/// Dup, create, split: all to rank 0, once they have their decision.
pub(super) const CONFIRMATION: i32 = 69;
/// Dup, create, split: rank 0 to all, once all have confirmed.
pub(super) const SETTLEMENT: i32 = 70;

/// Intercommunicator: leader to its group.
pub(super) const INTERCOMM_DECISION: i32 = 73;
/// Intercommunicator: all to their leader, once they have their decision.
pub(super) const INTERCOMM_CONFIRMATION: i32 = 74;
/// Intercommunicator: leader to its group, once all of both groups have confirmed.
pub(super) const INTERCOMM_SETTLEMENT: i32 = 75;
/// Intercommunicator: leader to leader, in the peer communicator; the program's tag is added.
pub(super) const INTERCOMM_PEER: i32 = 128;

/// The tag, in the collective context, of the notice that its sender has abandoned a collective operation. It
/// has no payload. No machine receives it: the driver probes for it while a machine waits.
pub const ABANDONED_TAG: i32 = 71;

/// The tag of the messages by which members of a communicator over a C MPI announce that they have freed it.
pub const RETIRED_TAG: i32 = 72;

/// The first tag of operations with data, and the number of these tags. They are in turn those of the
/// operations of a communicator, so that an operation whose ranks disagree leaves the next one its messages.
const DATA: i32 = 1024;
const DATA_TAGS: u32 = 1 << 14;

/// The tag of the messages of an operation with data, by its number in the communicator.
#[must_use]
pub const fn data_tag(number: u32) -> i32 {
    DATA + (number % DATA_TAGS) as i32
}
