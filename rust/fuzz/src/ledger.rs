//! A slab source that counts what is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use mpjdev_buffer::{PlainSource, Slab, SlabError, SlabSource};

/// Counts octets.
#[derive(Debug, Default)]
pub(crate) struct Ledger(AtomicUsize);

impl Ledger {
    /// A ledger to share with buffers.
    pub(crate) fn new() -> Arc<Ledger> {
        Arc::default()
    }

    /// Panics when more was taken than `input` octets allow for.
    pub(crate) fn check(&self, input: usize) {
        let taken = self.0.load(SeqCst);
        assert!(taken <= input, "{taken} octets taken for an input of {input}");
    }
}

impl SlabSource for Ledger {
    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        self.0.fetch_add(octets, SeqCst);
        PlainSource.take(octets)
    }
}
