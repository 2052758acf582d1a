//! Memory of a buffer that others write into: views.
//!
//! A view is an address that a program has, and that cannot be revoked. So that a program that keeps one
//! too long does no harm, the memory stays its buffer's for as long as the view is held, and holds that
//! buffer's messages only. The buffer uses it again when no other reference to a message there is left;
//! views do not count. Without views nothing of this costs anything.

use std::sync::Arc;

use crate::octets::Place;
use crate::slab::{Slab, SlabSource};

/// Slabs with views that a buffer keeps, its message's and those of messages that others still read. Past
/// these it forgets the oldest, whose memory comes back when the last view of it goes.
const VIEWED_MAX: usize = 4;

/// A slab that views refer to. Its holder keeps the memory from other uses than its buffer's.
#[derive(Debug)]
pub struct ViewedSlab(Slab);

impl ViewedSlab {
    /// The `len` octets from `offset` on.
    ///
    /// # Panics
    /// When they reach past the end of the slab.
    pub fn place(&self, offset: usize, len: usize) -> Place<'_> {
        Place::new(self.0.words(), offset, len)
    }
}

/// The slabs of one buffer that views refer to.
#[derive(Debug, Default)]
pub(crate) struct Viewed(Vec<Arc<ViewedSlab>>);

impl Viewed {
    fn find(&self, slab: &Slab) -> Option<&Arc<ViewedSlab>> {
        self.0.iter().find(|viewed| viewed.0.is_same(slab))
    }

    /// Whether the buffer with a message in this slab may change it: there is no other reference to it but
    /// views.
    pub(crate) fn is_alone(&self, slab: &Slab, shared_only: bool) -> bool {
        slab.is_reusable(1 + usize::from(self.find(slab).is_some()), shared_only)
    }

    /// Notes that a view of this slab is given away.
    pub(crate) fn note(&mut self, slab: &Slab) -> Arc<ViewedSlab> {
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

    /// A slab with room for `capacity` octets that holds no message any more.
    pub(crate) fn take(&self, octets: usize, source: &dyn SlabSource) -> Option<Slab> {
        let find = || self.0.iter().find(|v| v.0.len() >= octets && v.0.is_reusable(1, false));
        if self.0.is_empty() {
            return None;
        }
        let found = find().or_else(|| {
            // To count, the source takes in what readers have given back.
            source.used();
            find()
        });
        found.map(|viewed| viewed.0.clone())
    }

    /// Drops all slabs, or those that no other process reads.
    pub(crate) fn forget(&mut self, private_only: bool) {
        self.0.retain(|viewed| private_only && !viewed.0.is_private());
    }
}
