//! The end of a rank: its finish, and the messages that the finish reports.

// No thread waits on these flags: they stay with `std`, which spares the model checker their interleavings.
use std::sync::atomic::{AtomicBool, Ordering};

use mpjdev_proto::envelope::Envelope;

use crate::operation::{Undelivered, Unreceived};

/// State of the end that threads read without the rank's lock.
#[derive(Debug, Default)]
pub(crate) struct EndFlags {
    has_begun: AtomicBool,
    stats_printed: AtomicBool,
}

impl EndFlags {
    /// Whether this rank has begun to finish, at the cost of one load.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Records that the statistics of this rank are printed; false if they were printed before.
    pub(crate) fn note_stats_printed(&self) -> bool {
        !self.stats_printed.swap(true, Ordering::Relaxed)
    }
}

/// The end of a rank. The rank's lock guards it.
///
/// Invariants: [`EndFlags`] have begun exactly when this has; unreceived messages are handed out once, and
/// only after the end has begun.
#[derive(Debug)]
pub(crate) struct RankEnd {
    rank: u32,
    has_begun: bool,
    /// Failed sends without a thread that waits for their requests.
    undelivered: Undelivered,
    /// Messages that were dropped with their communicators, and after the end all that no receive took.
    unreceived: Unreceived,
}

impl RankEnd {
    /// The end of this rank, which has not begun.
    pub(crate) fn new(rank: u32) -> Self {
        RankEnd {
            rank,
            has_begun: false,
            undelivered: Undelivered::default(),
            unreceived: Unreceived::of(rank),
        }
    }

    /// Whether this rank has begun to finish.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Begins the end; false if it has begun before.
    pub(crate) fn begin(&mut self, flags: &EndFlags) -> bool {
        flags.has_begun.store(true, Ordering::Relaxed);
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// Adds a failed send without a thread that waits for it: destination, tag and logical length.
    pub(crate) fn add_undelivered(&mut self, message: Option<(u32, i32, usize)>) {
        self.undelivered.add_all(message);
    }

    /// The failed sends so far without a thread that waits for them.
    pub(crate) fn undelivered(&self) -> Undelivered {
        self.undelivered
    }

    /// Adds a message of `len` octets of payload that no receive took.
    pub(crate) fn add_unreceived(&mut self, envelope: &Envelope, len: usize) {
        self.unreceived.add(envelope, len);
    }

    /// Forgets the messages that no receive took.
    pub(crate) fn forget_unreceived(&mut self) {
        self.unreceived = Unreceived::of(self.rank);
    }

    /// Takes the messages that no receive took; `None` when there are none, and before the end.
    pub(crate) fn take_unreceived(&mut self) -> Option<Unreceived> {
        match self.has_begun && self.unreceived.count() > 0 {
            true => Some(std::mem::replace(&mut self.unreceived, Unreceived::of(self.rank))),
            false => None,
        }
    }

    /// Panics when an invariant does not hold.
    pub(crate) fn check(&self, flags: &EndFlags) {
        assert_eq!(self.has_begun, flags.has_begun(), "the end has begun for some threads only");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use mpjdev_proto::context::WORLD;

    use super::*;

    const MESSAGE: Envelope = Envelope { context: WORLD, source: 1, tag: 7 };

    #[test]
    fn end_begins_once_for_all_threads() {
        let (mut end, flags) = (RankEnd::new(0), EndFlags::default());
        end.check(&flags);
        assert!(end.begin(&flags) && !end.begin(&flags));
        assert!(end.has_begun() && flags.has_begun());
        end.check(&flags);
        assert!(flags.note_stats_printed() && !flags.note_stats_printed());
    }

    #[test]
    fn unreceived_messages_are_taken_once_after_the_end() {
        let mut end = RankEnd::new(0);
        end.add_unreceived(&MESSAGE, 8);
        assert_eq!(end.take_unreceived(), None, "it has not begun");
        end.begin(&EndFlags::default());
        end.add_unreceived(&MESSAGE, 8);
        assert_eq!(end.take_unreceived().map(|unreceived| unreceived.count()), Some(2));
        assert_eq!(end.take_unreceived(), None);
        end.add_unreceived(&MESSAGE, 8);
        end.forget_unreceived();
        assert_eq!(end.take_unreceived(), None);
    }

    #[test]
    fn undelivered_messages_are_counted_and_the_first_is_named() {
        let mut end = RankEnd::new(0);
        end.add_undelivered(None);
        assert_eq!(end.undelivered().reported(), Ok(()));
        end.add_undelivered(Some((3, 7, 8)));
        end.add_undelivered(Some((2, 1, 9)));
        let error = crate::error::DeviceError::Undelivered { count: 2, rank: 3, tag: 7, len: 8 };
        assert_eq!(end.undelivered().reported(), Err(error));
    }
}
