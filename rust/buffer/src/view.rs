//! Slabs with views: memory of a buffer that a Java program reads or writes directly.
//!
//! A view is an address outside the library's control. The buffer keeps the slab while a view exists, so a
//! stale view reaches only its own messages. The buffer reuses the slab for its next message when no reader
//! refers to it, whether or not views exist. Without views this costs nothing.

use std::sync::Arc;

use crate::octets::Octets;
use crate::slab::{Slab, SlabSource};

/// Slabs with views that a buffer keeps: that of its message, and those of messages that others still read.
/// Beyond this number it drops the oldest, which is released with the last view.
const VIEWED_MAX: usize = 4;

/// A slab that views refer to. While it is held, only its buffer uses the memory.
#[derive(Debug)]
pub struct ViewedSlab(Slab);

impl ViewedSlab {
    /// The `len` octets from `offset` on.
    ///
    /// # Panics
    /// When they reach past the end of the slab.
    pub fn octets(&self, offset: usize, len: usize) -> Octets<'_> {
        Octets::new(self.0.words(), offset, len)
    }
}

/// The slabs of one buffer that views refer to.
#[derive(Debug, Default)]
pub(crate) struct ViewedSlabs(Vec<Arc<ViewedSlab>>);

impl ViewedSlabs {
    fn find(&self, slab: &Slab) -> Option<&Arc<ViewedSlab>> {
        self.0.iter().find(|viewed| viewed.0.is_same(slab))
    }

    /// Whether the buffer may change its message in this slab: nothing else refers to it except views.
    pub(crate) fn is_alone(&self, slab: &Slab, shared_only: bool) -> bool {
        slab.is_reusable(1 + usize::from(self.find(slab).is_some()), shared_only)
    }

    /// Records a view of this slab.
    pub(crate) fn add_view(&mut self, slab: &Slab) -> Arc<ViewedSlab> {
        if let Some(viewed) = self.find(slab) {
            return viewed.clone();
        }
        if self.0.len() == VIEWED_MAX {
            self.0.remove(0);
        }
        let viewed = Arc::new(ViewedSlab(slab.clone()));
        self.0.push(viewed.clone());
        viewed
    }

    /// A slab with room for `octets` octets that holds no message.
    pub(crate) fn take(&self, octets: usize, source: &dyn SlabSource) -> Option<Slab> {
        let find = || self.0.iter().find(|v| v.0.len() >= octets && v.0.is_reusable(1, false));
        if self.0.is_empty() {
            return None;
        }
        let found = find().or_else(|| {
            // Counting makes the source collect what readers have returned.
            source.used();
            find()
        });
        found.map(|viewed| viewed.0.clone())
    }

    /// Drops all slabs, or those that no other process can see.
    pub(crate) fn forget(&mut self, private_only: bool) {
        self.0.retain(|viewed| private_only && !viewed.0.is_private());
    }
}
