//! A run of zeroed memory that starts at a multiple of 64 octets.
//!
//! Small runs come from the allocator, large ones are mappings of their own: the system then zeroes pages at
//! first touch and may back them with huge pages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Every run starts at a multiple of this: a cache line.
pub const LINE: usize = 64;
/// From this length on a run is a mapping of its own.
const MAPPED_FROM: usize = 128 * 1024;
/// From this length on huge pages are asked for.
const HUGE_FROM: usize = 2 << 20;

/// Zeroed memory seen as words of eight octets; freed when dropped, unless somebody holds its run.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<AtomicU64>,
    words: usize,
    /// Who frees the run, once somebody has asked to hold it; before that, this.
    run: OnceLock<Arc<Run>>,
}

/// The run of a [`Memory`], which stays readable and writable until this is dropped.
#[derive(Debug)]
pub struct Run {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a Run does nothing with its memory but free it.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

// SAFETY: a Memory owns its run, and the run is atomics.
unsafe impl Send for Memory {}
// SAFETY: as above; all access through a shared reference is atomic.
unsafe impl Sync for Memory {}

impl Memory {
    /// At least `len` octets, a multiple of 64; none when the system refuses.
    pub fn zeroed(len: usize) -> Option<Memory> {
        let len = len.max(1).checked_next_multiple_of(LINE)?;
        let start = if len < MAPPED_FROM { allocate(len)? } else { map(len)? };
        Some(Memory { start: start.cast(), words: len / 8, run: OnceLock::new() })
    }

    /// All octets.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` points to `words` initialised (zeroed) words that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// The run, for whoever may still use an address in it when this is gone.
    pub fn run(&self) -> Arc<Run> {
        self.run.get_or_init(|| Arc::new(self.unheld_run())).clone()
    }

    fn unheld_run(&self) -> Run {
        Run { start: self.start.cast(), len: self.len() }
    }

    /// Number of octets.
    pub fn len(&self) -> usize {
        self.words * 8
    }

    /// Whether there are no octets; never so.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.run.get().is_none() {
            drop(self.unheld_run());
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.len < MAPPED_FROM {
            // SAFETY: allocated by `allocate` with this very layout; there is one Run of each Memory, and nothing else frees.
            unsafe { dealloc(self.start.as_ptr(), layout(self.len)) }
        } else {
            // SAFETY: mapped by `map` with this very length, and nothing refers to it any more.
            let freed = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
            debug_assert!(freed.is_ok());
        }
    }
}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, LINE).expect("lengths are checked before")
}

fn allocate(len: usize) -> Option<NonNull<u8>> {
    // SAFETY: the length is at least 64.
    NonNull::new(unsafe { alloc_zeroed(layout(len)) })
}

fn map(len: usize) -> Option<NonNull<u8>> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a fresh anonymous mapping; no address is asked for.
    let start =
        unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags).ok()? };
    if len >= HUGE_FROM {
        // SAFETY: the range was just mapped. Refusal only means ordinary pages.
        let _ = unsafe { madvise(start, len, Advice::LinuxHugepage) };
    }
    NonNull::new(start.cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn memory_is_zeroed_aligned_and_writable_on_both_sides_of_the_mapping_limit() {
        for len in [0, 1, 64, 65, MAPPED_FROM - 64, MAPPED_FROM, HUGE_FROM + 1] {
            let m = Memory::zeroed(len).expect("memory");
            assert!(m.len() >= len && m.len().is_multiple_of(LINE));
            assert_eq!(m.words().as_ptr() as usize % LINE, 0);
            assert!(m.words().iter().all(|w| w.load(Relaxed) == 0));
            m.words()[m.words().len() - 1].store(7, Relaxed);
        }
    }

    #[test]
    fn a_run_that_is_held_outlives_its_memory() {
        for len in [64, MAPPED_FROM, HUGE_FROM] {
            let memory = Memory::zeroed(len).expect("memory");
            let (run, again) = (memory.run(), memory.run());
            let address: *const AtomicU64 = memory.words().as_ptr();
            drop(memory);
            drop(again);
            // SAFETY: the run is held.
            assert_eq!(unsafe { &*address }.swap(9, Relaxed), 0);
            drop(run);
        }
    }

    #[test]
    fn an_impossible_length_is_refused() {
        assert!(Memory::zeroed(usize::MAX).is_none());
        assert!(Memory::zeroed(1 << 60).is_none());
    }
}
