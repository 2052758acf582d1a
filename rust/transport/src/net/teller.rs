//! What a rank tells its launcher, in the segment that it has of it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use crate::shm::{SegmentPool, blame, resign};

/// What a rank tells its launcher; nothing without one.
#[derive(Debug, Default)]
pub(in super::super) struct Teller {
    own_segment: OnceLock<Arc<SegmentPool>>,
    tells_finish: AtomicBool,
}

impl Teller {
    /// The launcher is to see there whom this rank has seen fail first.
    pub(in super::super) fn tell_failures(&self, own_segment: Arc<SegmentPool>) {
        let _ = self.own_segment.set(own_segment);
    }

    /// The same, and when this rank has finished.
    pub(in super::super) fn tell_finish(&self, own_segment: Arc<SegmentPool>) {
        self.tell_failures(own_segment);
        self.tells_finish.store(true, Relaxed);
    }

    /// A peer has failed: the launcher knows before this rank does, which may end because of it.
    pub(in super::super) fn blame(&self, rank: u32) {
        if let Some(own_segment) = self.own_segment.get() {
            blame(own_segment, rank);
        }
    }

    /// This rank has finished, and had not failed.
    pub(in super::super) fn finish(&self) {
        if let Some(own_segment) = self.own_segment.get().filter(|_| self.tells_finish.load(Relaxed)) {
            resign(own_segment);
        }
    }
}
