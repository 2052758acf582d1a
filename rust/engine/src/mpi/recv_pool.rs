//! Memory of receives over a C MPI: each has room for every eager message.

use std::fmt;

use crossbeam_utils::atomic::AtomicCell;
use mpjdev_buffer::{SlabError, SlabSource};
use mpjdev_proto::rts::EAGER_MAX;
use mpjdev_sys::sync::{LockRank, Mutex};

use super::memory::Octets;

/// Slabs that are kept for the next receives.
const KEPT: usize = 64;

/// Memory of receives that is not in use.
pub(super) struct RecvPool {
    /// The memory of the last receive. Most ranks have one at a time.
    last: AtomicCell<Option<Box<Octets>>>,
    #[expect(clippy::vec_box, reason = "an operation keeps its memory in a box")]
    others: Mutex<Vec<Box<Octets>>>,
}

impl Default for RecvPool {
    fn default() -> Self {
        RecvPool { last: AtomicCell::new(None), others: Mutex::new(LockRank::Leaf, Vec::new()) }
    }
}

impl fmt::Debug for RecvPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecvPool({} beside the last)", self.others.lock().len())
    }
}

impl RecvPool {
    #[inline]
    pub(super) fn take(&self, source: &dyn SlabSource) -> Result<Box<Octets>, SlabError> {
        match self.last.take() {
            Some(memory) => Ok(memory),
            None => self.take_other(source),
        }
    }

    fn take_other(&self, source: &dyn SlabSource) -> Result<Box<Octets>, SlabError> {
        if let Some(memory) = self.others.lock().pop() {
            return Ok(memory);
        }
        Ok(Box::new(Octets(source.take_arrived(EAGER_MAX)?)))
    }

    #[inline]
    pub(super) fn give_back(&self, memory: Box<Octets>) {
        // A spilled message has memory of its own length.
        if memory.0.len() < EAGER_MAX {
            return;
        }
        if let Some(before) = self.last.swap(Some(memory)) {
            let mut others = self.others.lock();
            if others.len() < KEPT {
                others.push(before);
            }
        }
    }
}
