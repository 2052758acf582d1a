//! Status reports of a rank to its launcher, through the rank's shared segment.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use crate::shm::{SegmentPool, mark_finished, report_failed_peer};

/// Status reporter; it does nothing without a launcher.
#[derive(Debug, Default)]
pub(in super::super) struct Teller {
    own_segment: OnceLock<Arc<SegmentPool>>,
    tells_finish: AtomicBool,
}

impl Teller {
    /// Reports from now on the first peer that this rank sees fail.
    pub(in super::super) fn tell_failures(&self, own_segment: Arc<SegmentPool>) {
        let _ = self.own_segment.set(own_segment);
    }

    /// Reports in addition when this rank has finished.
    pub(in super::super) fn tell_finish(&self, own_segment: Arc<SegmentPool>) {
        self.tell_failures(own_segment);
        self.tells_finish.store(true, Relaxed);
    }

    /// Reports a failed peer. The launcher must know before this rank does, because this rank may end as a
    /// consequence.
    pub(in super::super) fn report_failed_peer(&self, rank: u32) {
        if let Some(own_segment) = self.own_segment.get() {
            report_failed_peer(own_segment, rank);
        }
    }

    /// Reports that this rank has finished and had not failed.
    pub(in super::super) fn finish(&self) {
        if let Some(own_segment) = self.own_segment.get().filter(|_| self.tells_finish.load(Relaxed)) {
            mark_finished(own_segment);
        }
    }
}
