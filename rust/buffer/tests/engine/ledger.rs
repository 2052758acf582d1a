//! A slab source that counts its octets and refuses on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use mpjdev_buffer::{PlainSource, Slab, SlabError, SlabSource};

/// Counts octets. Its memory has arbitrary contents, like that of a pool.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    taken: AtomicUsize,
    refusing: AtomicBool,
}

impl Ledger {
    /// A ledger to share with buffers.
    pub(crate) fn new() -> Arc<Ledger> {
        Arc::default()
    }

    /// Octets taken since the last call.
    pub(crate) fn taken(&self) -> usize {
        self.taken.swap(0, SeqCst)
    }

    /// Whether to refuse from now on.
    pub(crate) fn refuse(&self, refusing: bool) {
        self.refusing.store(refusing, SeqCst);
    }
}

impl SlabSource for Ledger {
    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        if self.refusing.load(SeqCst) {
            return Err(SlabError::Limit { asked: octets as u64, used: 0, limit: 0 });
        }
        self.taken.fetch_add(octets, SeqCst);
        let slab = PlainSource.take(octets)?;
        for word in slab.words() {
            word.store(0xbad0_bad1_bad2_bad3, SeqCst);
        }
        Ok(slab)
    }
}
