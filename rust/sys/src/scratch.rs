//! Memory of one owner, who uses it as octets or as words of eight octets.

use std::sync::atomic::AtomicU64;

use crate::memory::Memory;

/// Zeroed memory without another holder.
#[derive(Debug)]
pub struct Scratch(Memory);

impl Scratch {
    /// Memory of at least `len` octets; `None` if the system refuses.
    pub fn zeroed(len: usize) -> Option<Scratch> {
        Memory::zeroed(len).map(Scratch)
    }

    /// All octets, as words.
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }

    /// All octets.
    pub fn octets(&mut self) -> &mut [u8] {
        let (start, len) = (self.0.words().as_ptr().cast::<u8>().cast_mut(), self.0.len());
        // SAFETY: the run is `len` initialised octets, and `self` is the only holder of it, since `Scratch`
        // passes on no run. The reference is exclusive while the borrow of `self` lasts.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Number of octets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no octets; never so.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn octets_and_words_are_the_same_memory() {
        let mut scratch = Scratch::zeroed(100).expect("memory");
        assert!(scratch.len() >= 100 && !scratch.is_empty());
        scratch.octets()[8..16].copy_from_slice(&7_u64.to_ne_bytes());
        assert_eq!(scratch.words()[1].load(Relaxed), 7);
        scratch.words()[0].store(9, Relaxed);
        assert_eq!(scratch.octets()[..8], 9_u64.to_ne_bytes());
    }
}
