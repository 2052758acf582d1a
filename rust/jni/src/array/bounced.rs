//! Octets of the elements in a bounce buffer.

use super::{Array, Place, kernels};

impl Array {
    /// Copies the first elements in the bounce buffer to octets.
    ///
    /// # Panics
    /// The elements are in Java's heap, or there are fewer of them.
    #[inline(always)]
    pub(crate) fn take_bounced(&self, into: &mut [u8]) {
        let size = self.element.size();
        let count = into.len() / size;
        assert!(into.len().is_multiple_of(size) && count <= self.len);
        // SAFETY: the elements are in the bounce buffer, and there is room for them.
        unsafe { kernels::copy_just_stored(self.bounced(), into.as_mut_ptr(), size, count) };
    }

    /// Copies octets to the elements in the bounce buffer, from element `off` on.
    ///
    /// # Panics
    /// The elements are in Java's heap, or there is no room for the octets.
    #[inline(always)]
    pub(crate) fn put_bounced(&self, off: usize, octets: &[u8]) {
        let size = self.element.size();
        let count = octets.len() / size;
        assert!(octets.len().is_multiple_of(size) && off + count <= self.len);
        // SAFETY: the bounce buffer has room for the elements from `off` on.
        unsafe { kernels::copy_just_stored(octets.as_ptr(), self.bounced().add(off * size), size, count) };
    }

    /// The octets of the elements in the bounce buffer.
    ///
    /// # Panics
    /// The elements are in Java's heap.
    pub(crate) fn bounced_octets(&mut self) -> &mut [u8] {
        // SAFETY: only this call uses the bounce buffer of its thread, and `self` is its only reference.
        unsafe { std::slice::from_raw_parts_mut(self.bounced(), self.len * self.element.size()) }
    }

    fn bounced(&self) -> *mut u8 {
        match self.place {
            Place::Bounced(start) => start,
            Place::Heap(_) => panic!("the elements are in an array"),
        }
    }
}
