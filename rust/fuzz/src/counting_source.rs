//! Slab source that counts the octets of its slabs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use mpjdev_buffer::{PlainSource, Slab, SlabError, SlabSource};

/// Slab source with a count of octets.
#[derive(Debug, Default)]
pub(crate) struct CountingSource(AtomicUsize);

impl CountingSource {
    /// A source that buffers can share.
    pub(crate) fn new() -> Arc<CountingSource> {
        Arc::default()
    }

    /// Panics if the slabs have more octets than the input.
    pub(crate) fn check(&self, input: usize) {
        let taken = self.0.load(SeqCst);
        assert!(taken <= input, "{taken} octets taken for an input of {input}");
    }
}

impl SlabSource for CountingSource {
    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        self.0.fetch_add(octets, SeqCst);
        PlainSource.take(octets)
    }
}
