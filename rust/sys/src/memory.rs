//! Run of zeroed memory that starts at a multiple of 64 octets.
//!
//! Small runs come from the allocator, large ones are mappings of their own: the system then zeroes pages at
//! first touch and may back them with huge pages. Such a mapping begins at a huge page. From a MiB on a
//! shorter run gets a whole huge page, though it is charged only for its length: a contiguous MiB fits a
//! cache, whereas 256 scattered pages evict each other (decision 0003).

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Every run starts at a multiple of this: a cache line.
pub const LINE: usize = 64;
/// From this length on a run is a mapping of its own.
const MAPPED_FROM: usize = 128 * 1024;
/// From this length on huge pages are requested.
const HUGE_FROM: usize = 1 << 20;
/// Octets of a huge page, or less where the system has larger ones.
const HUGE: usize = 2 << 20;
/// A multiple of every system's pages.
const PAGES: usize = 64 << 10;

/// Zeroed memory seen as words of eight octets; freed when dropped, unless its run is held.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<AtomicU64>,
    words: usize,
    /// The holder that frees the run, from the first request on; before that, this.
    run: OnceLock<Arc<Run>>,
}

/// The run of a [`Memory`]. It stays readable and writable until this is dropped.
#[derive(Debug)]
pub struct Run {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a Run only frees its memory.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

// SAFETY: a Memory owns its run, and the run is atomics.
unsafe impl Send for Memory {}
// SAFETY: as above; all access through a shared reference is atomic.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory of at least `len` octets, a multiple of 64; `None` if the system refuses.
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

    /// The run, for a holder that may still use an address in it after this is dropped.
    pub fn run(&self) -> Arc<Run> {
        self.run.get_or_init(|| Arc::new(self.new_run())).clone()
    }

    fn new_run(&self) -> Run {
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
            drop(self.new_run());
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.len < MAPPED_FROM {
            // SAFETY: allocated by `allocate` with this very layout; there is one Run of each Memory, and no
            // other code frees it.
            unsafe { dealloc(self.start.as_ptr(), layout(self.len)) }
        } else {
            // SAFETY: mapped by `map` for this very length, and there is no reference to it any more.
            let freed = unsafe { munmap(self.start.as_ptr().cast(), mapped_by(self.len)) };
            debug_assert!(freed.is_ok());
        }
    }
}

/// Fetches the cache line of a word that is read soon, without waiting for it.
#[inline(always)]
pub fn prefetch(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, whatever the address; this one is a word's.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, LINE).expect("lengths are checked before")
}

fn allocate(len: usize) -> Option<NonNull<u8>> {
    // SAFETY: the length is at least 64.
    NonNull::new(unsafe { alloc_zeroed(layout(len)) })
}

/// Octets of the mapping of a run of `len`. It begins and ends with a page, because part of a larger mapping
/// is unmapped.
fn mapped_by(len: usize) -> usize {
    match len {
        ..HUGE_FROM => len,
        HUGE_FROM..HUGE => HUGE,
        _ => len.saturating_add(PAGES - 1) / PAGES * PAGES,
    }
}

fn map(len: usize) -> Option<NonNull<u8>> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a fresh anonymous mapping; no address is asked for.
    let mapped = |len| unsafe {
        mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags).ok()
    };
    if len < HUGE_FROM {
        return NonNull::new(mapped(len)?.cast());
    }
    let len = mapped_by(len);
    let first: *mut u8 = mapped(len.checked_add(HUGE)?)?.cast();
    let before = first.align_offset(HUGE);
    // SAFETY: the range from `first` on, of `len` and HUGE octets, was just mapped, and no other code knows
    // of it; `len` octets of it stay. Refusal of the advice only means ordinary pages.
    unsafe {
        let start = first.add(before);
        unmap(first, before);
        unmap(start.add(len), HUGE - before);
        let _ = madvise(start.cast(), len, Advice::LinuxHugepage);
        NonNull::new(start)
    }
}

/// Unmaps part of a mapping.
///
/// # Safety
/// There is no reference to it.
unsafe fn unmap(start: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: as promised. A refused part stays mapped and untouched.
        let _ = unsafe { munmap(start.cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn memory_is_zeroed_aligned_and_writable_on_both_sides_of_the_mapping_limit() {
        for len in [0, 1, 64, 65, MAPPED_FROM - 64, MAPPED_FROM, HUGE_FROM, HUGE - 64, HUGE, 3 * HUGE + 1] {
            let m = Memory::zeroed(len).expect("memory");
            assert!(m.len() >= len && m.len().is_multiple_of(LINE));
            assert_eq!(m.words().as_ptr() as usize % LINE, 0);
            assert!(m.words().iter().all(|w| w.load(Relaxed) == 0));
            m.words()[m.words().len() - 1].store(7, Relaxed);
        }
    }

    #[test]
    fn long_memory_begins_at_a_huge_page_and_fills_one() {
        for len in [HUGE_FROM, HUGE_FROM + 64, HUGE, HUGE + 64] {
            let runs = [(); 3].map(|()| Memory::zeroed(len).expect("memory"));
            for memory in &runs {
                assert_eq!(memory.words().as_ptr() as usize % HUGE, 0);
                assert_eq!(memory.len(), len);
                assert!(mapped_by(len) >= len.max(HUGE) && mapped_by(len).is_multiple_of(PAGES));
            }
        }
    }

    #[test]
    fn dropped_memory_is_unmapped() {
        // The count is of the process, and other tests map meanwhile. What a mapping leaves counts each time.
        let pages = || {
            let said = std::fs::read_to_string("/proc/self/statm").expect("Linux");
            said.split(' ').next().and_then(|size| size.parse::<usize>().ok()).expect("pages")
        };
        let is_level = || {
            let before = pages();
            (0..2000).for_each(|_| drop(Memory::zeroed(HUGE_FROM)));
            pages() < before + 1000 * HUGE / PAGES
        };
        assert!((0..20).any(|_| is_level()));
    }

    #[test]
    fn held_run_outlives_its_memory() {
        for len in [64, MAPPED_FROM, HUGE_FROM, HUGE + 64] {
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
    fn memory_of_an_impossible_length_is_refused() {
        assert!(Memory::zeroed(usize::MAX).is_none());
        assert!(Memory::zeroed(1 << 60).is_none());
    }
}
