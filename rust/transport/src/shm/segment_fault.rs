//! Faults of another rank's segment.

use std::io;

use thiserror::Error;

use crate::ProtocolViolation;

/// Part of a segment whose words are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Damage {
    #[error("the position of the receiver")]
    Position,
    #[error("the length of its queue")]
    QueueLen,
    #[error("the stamp of a record")]
    Stamp,
    #[error("a skip of the whole ring")]
    Skip,
    #[error("the length of a record")]
    RecordLen,
    #[error("the form of a packet")]
    Form,
    #[error("the tag of a packet")]
    Tag,
    #[error("the length of a packet")]
    PacketLen,
    #[error("the position of a slab")]
    Slab,
    #[error("the number of slabs it has returned")]
    ReturnedCount,
    #[error("the number of a slab it has returned")]
    ReturnedSlab,
}

/// Fault of a packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum PacketFault {
    /// Its words are invalid.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The engine rejects it.
    #[error(transparent)]
    Violation(#[from] ProtocolViolation),
}

/// Fault that makes another rank's segment unusable.
#[derive(Debug, Error)]
pub(super) enum SegmentFault {
    /// The file was closed before it was mapped.
    #[error("its file is closed")]
    Closed,
    /// The system refuses to map the file, or it is too short or not sealed.
    #[error(transparent)]
    Unmapped(#[from] io::Error),
    /// The segment is not that of the rank, or of this job.
    #[error("word {word} of its segment is {found:#x}, not {expected:#x}")]
    Word { word: usize, found: u64, expected: u64 },
    #[error(transparent)]
    Damage(#[from] Damage),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_of_a_segment_has_its_numbers() {
        let texts = [
            (SegmentFault::Closed, "its file is closed"),
            (io::Error::other("a shared segment is not sealed").into(), "a shared segment is not sealed"),
            (
                SegmentFault::Word { word: 2, found: 16, expected: 255 },
                "word 2 of its segment is 0x10, not 0xff",
            ),
            (Damage::Stamp.into(), "the stamp of a record"),
        ];
        for (fault, text) in texts {
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn damage_is_named_by_its_part() {
        let texts = [
            (Damage::Position, "the position of the receiver"),
            (Damage::QueueLen, "the length of its queue"),
            (Damage::Stamp, "the stamp of a record"),
            (Damage::Skip, "a skip of the whole ring"),
            (Damage::RecordLen, "the length of a record"),
            (Damage::Form, "the form of a packet"),
            (Damage::Tag, "the tag of a packet"),
            (Damage::PacketLen, "the length of a packet"),
            (Damage::Slab, "the position of a slab"),
            (Damage::ReturnedCount, "the number of slabs it has returned"),
            (Damage::ReturnedSlab, "the number of a slab it has returned"),
        ];
        for (damage, text) in texts {
            assert_eq!(damage.to_string(), text);
        }
    }

    #[test]
    fn packet_fault_has_the_text_of_its_reason() {
        let texts = [
            (PacketFault::from(Damage::Form), "the form of a packet"),
            (ProtocolViolation::Credit.into(), "more messages than its credit allows"),
            (ProtocolViolation::Unmatched.into(), "more unmatched messages than may wait past its credit"),
        ];
        for (fault, text) in texts {
            assert_eq!(fault.to_string(), text);
        }
    }
}
