//! Slabs that a rank keeps for the short messages of posted receives.

use std::sync::Arc;

use mpjdev_buffer::{Slab, SlabError, SlabSource};
use mpjdev_transport::pool::HeapPool;

/// Number of slabs: two windows of 64 messages.
const KEPT_MAX: usize = 128;

/// Slabs that are used in turn. A slab is used again when no message refers to it. That costs two updates of
/// its reference count. A slab of the pool costs a lock, two counters and an allocation.
///
/// The slabs are memory of the heap and not of the rank's pool, whose counters show messages only. Each has
/// the length of an inline packet at most.
#[derive(Debug)]
pub(crate) struct KeptSlabs {
    heap: Arc<HeapPool>,
    slabs: Vec<Slab>,
    next: usize,
}

impl Default for KeptSlabs {
    fn default() -> Self {
        KeptSlabs { heap: HeapPool::new(u64::MAX), slabs: Vec::new(), next: 0 }
    }
}

impl KeptSlabs {
    /// A slab for the octets of an inline packet. It comes from `source` if a message still refers to the
    /// kept slab whose turn it is.
    ///
    /// # Errors
    /// The system is out of memory.
    #[inline]
    pub(crate) fn take(&mut self, source: &dyn SlabSource, len: usize) -> Result<Slab, SlabError> {
        let at = self.next;
        self.next = (at + 1) % KEPT_MAX;
        match self.slabs.get_mut(at) {
            Some(kept) if !kept.is_exclusive() => source.take_arrived(len),
            Some(kept) if kept.len() >= len => Ok(kept.clone()),
            Some(kept) => {
                *kept = self.heap.take_arrived(len)?;
                Ok(kept.clone())
            }
            None => {
                // The slabs before this one are there: `next` counts up from 0.
                let slab = self.heap.take_arrived(len)?;
                self.slabs.push(slab.clone());
                Ok(slab)
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn take(kept: &mut KeptSlabs, source: &dyn SlabSource, len: usize) -> Slab {
        kept.take(source, len).expect("memory")
    }

    #[test]
    fn slab_without_a_message_is_used_again_in_turn() {
        let source = HeapPool::new(1 << 20);
        let mut kept = KeptSlabs::default();
        let addresses = |kept: &mut KeptSlabs| -> Vec<usize> {
            (0..KEPT_MAX).map(|_| take(kept, &*source, 64).words().as_ptr().addr()).collect()
        };
        let first = addresses(&mut kept);
        assert_eq!(addresses(&mut kept), first);
    }

    #[test]
    fn slab_of_a_message_or_a_short_one_is_not_used() {
        let source = HeapPool::new(1 << 20);
        let mut kept = KeptSlabs::default();
        let held: Vec<Slab> = (0..KEPT_MAX).map(|_| take(&mut kept, &*source, 64)).collect();
        for slab in &held {
            let other = take(&mut kept, &*source, 64);
            assert_ne!(other.words().as_ptr(), slab.words().as_ptr(), "a message refers to it");
        }
        drop(held);
        assert!((0..KEPT_MAX).all(|_| take(&mut kept, &*source, 1000).len() >= 1000));
        assert_eq!(kept.slabs.len(), KEPT_MAX);
    }
}
