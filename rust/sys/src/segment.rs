//! Shared memory of processes: one unnamed file for each owner, written by the owner alone.
//!
//! The owner maps its file first and then seals it: from then on its length is fixed, and no other process
//! can map it for writing. All processes see words of atomics, so a process that writes at any moment breaks
//! no rule of the language. Every reader must check the words.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Duration;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs,
    ftruncate,
};
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};
use rustix::thread::{Timespec, futex};

/// Number of the file system of reserved huge pages (`HUGETLBFS_MAGIC`).
const HUGETLBFS: u64 = 0x9584_58f6;

/// A multiple of any system's page size, and at least twice as long.
const PAGE: usize = 128 << 10;

/// Octets that one call allocates, few enough for it to end between two signals.
const PIECE: usize = 256 << 10;

/// A mapping of a shared file.
#[derive(Debug)]
pub struct Segment {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: a Segment owns its mapping, and the mapping is atomics.
unsafe impl Send for Segment {}
// SAFETY: as above; all access through a shared reference is atomic.
unsafe impl Sync for Segment {}

/// The processes that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// The process that made it, through its own mapping.
    Owner,
    /// All processes: for hints, on which no correctness depends.
    All,
}

impl Segment {
    /// Creates a new file of `len` octets, all zero, and this process's mapping of it. Its pages are
    /// allocated by [`allocate`], or at first touch.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(name: &str, len: usize, writers: Writers) -> io::Result<(Segment, OwnedFd)> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        uninterrupted(|| ftruncate(&file, len as u64))?;
        let segment = map(file.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?;
        fcntl_add_seals(&file, seals(writers))?;
        Ok((segment, file))
    }

    /// Maps the file of another process, of at least `least` octets: for reading, unless all may write.
    ///
    /// # Errors
    /// The file is shorter or is not sealed as required; the system refuses.
    pub fn open(file: BorrowedFd<'_>, least: usize, writers: Writers) -> io::Result<Segment> {
        let len = usize::try_from(fstat(file)?.st_size).unwrap_or(0);
        if len < least {
            return Err(io::Error::other(format!(
                "a shared segment has {len} octets, at least {least} are needed"
            )));
        }
        let wanted = seals(writers);
        if !fcntl_get_seals(file)?.contains(wanted) {
            return Err(io::Error::other("a shared segment is not sealed"));
        }
        // Reserved huge pages may be used up at the first access, which is then a fault.
        if fstatfs(file)?.f_type as u64 == HUGETLBFS {
            return Err(io::Error::other("a shared segment is in reserved huge pages"));
        }
        let protection = match writers {
            Writers::Owner => ProtFlags::READ,
            Writers::All => ProtFlags::READ | ProtFlags::WRITE,
        };
        map(file, len, protection)
    }

    /// Requests huge pages from `offset` on, a multiple of their size. The system may grant them later or
    /// never.
    pub fn advise_huge(&self, offset: usize) {
        if let Some(len) = self.len().checked_sub(offset) {
            // SAFETY: a part of the mapping that `self` owns; advice changes no octet.
            let _ = unsafe {
                madvise(self.start.as_ptr().cast::<u8>().add(offset).cast(), len, Advice::LinuxHugepage)
            };
        }
    }

    /// Allocates memory for a part of the owner's file, whole pages, in huge pages if granted, and maps it.
    /// The file is needed on Linux before 5.14 only.
    ///
    /// # Errors
    /// There is not enough memory, or the part is not inside; without a file, a Linux before 5.14.
    pub fn populate(&self, file: Option<BorrowedFd<'_>>, offset: usize, len: usize) -> io::Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(io::Error::other("memory outside the segment"));
        }
        // SAFETY: a part of the mapping that `self` owns; populating changes no octet.
        let populated = uninterrupted(|| unsafe {
            madvise(self.start.as_ptr().cast::<u8>().add(offset).cast(), len, Advice::LinuxPopulateWrite)
        });
        match populated {
            // Linux before 5.14.
            Err(Errno::INVAL) if let Some(file) = file => allocate(file, offset, len),
            result => Ok(result?),
        }
    }

    /// All octets. A store to a read-only mapping is a fault; code that passes such words on must say so.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` points to `words` words of a mapping that lives as long as `self`. Every octet is
        // initialised, by the system with zeroes, and every bit pattern is a word. The length is sealed, so
        // no page can vanish; pages that the system may lack memory for are allocated before use
        // (`allocate`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// Number of octets.
    pub fn len(&self) -> usize {
        self.words * 8
    }

    /// Whether there are no octets; never so.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// The futex in one word: wakes in one half, sleepers in the other.
    #[inline(always)]
    pub fn futex(&self, word: usize) -> SharedFutex<'_> {
        let place: *const AtomicU64 = &raw const self.words()[word];
        let place: *const AtomicU32 = place.cast();
        // SAFETY: both halves of an initialised word that lives as long as `self`. No code uses it as a whole
        // word.
        unsafe { SharedFutex { wakes: &*place, sleepers: &*place.add(1) } }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this very length, and there is no reference to it any more.
        let freed = unsafe { munmap(self.start.as_ptr().cast(), self.len()) };
        debug_assert!(freed.is_ok());
    }
}

/// Allocates memory for a part of a file, so that touching it cannot fail.
///
/// # Errors
/// There is not enough memory; part of it may be allocated then.
pub fn allocate(file: BorrowedFd<'_>, offset: usize, len: usize) -> io::Result<()> {
    let end = offset.checked_add(len).ok_or(Errno::FBIG)?;
    // An interrupted call frees what it has allocated, so each call requests no more than it gets between two
    // signals.
    for at in (offset..end).step_by(PIECE) {
        let len = PIECE.min(end - at);
        uninterrupted(|| fallocate(file, FallocateFlags::empty(), at as u64, len as u64))?;
    }
    Ok(())
}

/// Repeats a call that a signal has interrupted. A profiler sends a thousand signals a second.
fn uninterrupted<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Whether this process may map `count` more segments of this length: it has the address space, and the
/// system has the mappings. Nothing stays mapped, so another thread may take the room.
pub fn has_room(count: usize, len: usize) -> bool {
    let len = len.checked_next_multiple_of(PAGE);
    let Some((len, all)) = len.and_then(|len| Some((len, len.checked_mul(count)?))) else { return false };
    if all == 0 {
        return true;
    }
    // SAFETY: a mapping of its own; parts of it get another protection, no code touches them, and all of it
    // is unmapped at the end.
    unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let Ok(start) = mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), flags) else {
            return false;
        };
        // Adjacent parts of equal protection count as one mapping.
        let has_mappings = (0..count).all(|at| {
            let page = start.cast::<u8>().add(at * len).cast();
            uninterrupted(|| mprotect(page, PAGE / 2, MprotectFlags::READ)).is_ok()
        });
        munmap(start, all).is_ok() && has_mappings
    }
}

fn seals(writers: Writers) -> SealFlags {
    let fixed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    match writers {
        Writers::Owner => fixed | SealFlags::FUTURE_WRITE,
        Writers::All => fixed,
    }
}

fn map(file: BorrowedFd<'_>, len: usize, protection: ProtFlags) -> io::Result<Segment> {
    if len == 0 || !len.is_multiple_of(8) {
        return Err(io::Error::other(format!("{len} octets cannot be shared")));
    }
    // SAFETY: a fresh mapping; no address is asked for.
    let start = unsafe {
        mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED | MapFlags::NORESERVE, file, 0)?
    };
    let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address 0"))?;
    Ok(Segment { start, words: len / 8 })
}

/// As [`Futex`](crate::futex::Futex), between processes. Any process may write any value: a sleep may end
/// early, or only at its timeout.
#[derive(Clone, Copy, Debug)]
pub struct SharedFutex<'a> {
    wakes: &'a AtomicU32,
    sleepers: &'a AtomicU32,
}

impl SharedFutex<'_> {
    /// Wakes all sleepers. They see the caller's earlier stores, and so do threads about to sleep.
    #[inline(always)]
    pub fn wake(&self) {
        fence(SeqCst);
        if self.has_sleepers() {
            self.wake_sleepers();
        }
    }

    /// Whether a thread sleeps, or is about to. The caller has just passed a sequentially consistent fence.
    #[inline(always)]
    pub fn has_sleepers(&self) -> bool {
        self.sleepers.load(Relaxed) != 0
    }

    /// As [`wake`](Self::wake), and counts the wake even without a sleeper.
    pub fn wake_counted(&self) {
        self.wakes.fetch_add(1, SeqCst);
        if self.sleepers.load(SeqCst) != 0 {
            let _ = futex::wake(self.wakes, futex::Flags::empty(), u32::MAX >> 1);
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        self.wakes.fetch_add(1, SeqCst);
        // The only failures are a bad address or bad flags, and neither is possible.
        let _ = futex::wake(self.wakes, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// Number of wakes so far.
    pub fn wakes(&self) -> u32 {
        self.wakes.load(SeqCst)
    }

    /// Sleeps until a wake, at most for `most`. Returns at once if `ready`.
    pub fn sleep(&self, most: Duration, ready: impl FnOnce() -> bool) {
        let seen = self.wakes.load(SeqCst);
        self.sleepers.fetch_add(1, SeqCst);
        fence(SeqCst);
        if !ready()
            && let Ok(timeout) = Timespec::try_from(most)
        {
            // Woken, changed before, interrupted by a signal, timed out: the caller polls again in each case.
            let _ = futex::wait(self.wakes, futex::Flags::empty(), seen, Some(&timeout));
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn has_room_answers_without_reserving() {
        assert!(has_room(4, 64 << 20) && has_room(3, 1) && has_room(0, 1 << 20) && has_room(3, 0));
        assert!(!has_room(1 << 10, 1 << 50) && !has_room(usize::MAX, 2));
        // All together exceed an address space.
        assert!((0..8000).all(|_| has_room(1, 1 << 36)));
    }

    #[test]
    fn other_mappings_read_the_words_of_the_owner() {
        let (own, file) = Segment::create("test", 8192, Writers::Owner).expect("memory");
        let other = Segment::open(file.as_fd(), 8192, Writers::Owner).expect("it is sealed");
        own.words()[1023].store(7, SeqCst);
        assert_eq!(other.words()[1023].load(SeqCst), 7);
        assert!(other.words()[..1023].iter().all(|word| word.load(Relaxed) == 0));
    }

    #[test]
    fn mapping_and_length_are_writable_by_the_owner_only() {
        let (_own, file) = Segment::create("test", 4096, Writers::Owner).expect("memory");
        assert!(map(file.as_fd(), 4096, ProtFlags::READ | ProtFlags::WRITE).is_err());
        assert!(ftruncate(&file, 0).is_err() && ftruncate(&file, 8192).is_err());
        assert!(rustix::io::pwrite(&file, &[1], 0).is_err());
        assert!(fcntl_add_seals(&file, SealFlags::WRITE).is_err(), "the seals are sealed");
    }

    #[test]
    fn short_or_unsealed_file_is_refused() {
        let (_own, file) = Segment::create("test", 4096, Writers::Owner).expect("memory");
        assert!(Segment::open(file.as_fd(), 8192, Writers::Owner).is_err());
        let open = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&open, 4096).expect("a length");
        assert!(Segment::open(open.as_fd(), 4096, Writers::All).is_err());
        let (_own, file) = Segment::create("test", 4096, Writers::All).expect("memory");
        assert!(Segment::open(file.as_fd(), 4096, Writers::Owner).is_err());
        assert!(Segment::open(file.as_fd(), 4096, Writers::All).is_ok());
    }

    #[test]
    fn file_in_reserved_huge_pages_is_refused() {
        const LEN: usize = 1 << 30;
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        let Ok(huge) = rustix::fs::memfd_create("test", flags) else {
            println!("SKIPPED reserved huge pages: the system has none");
            return;
        };
        ftruncate(&huge, LEN as u64).expect("a length");
        fcntl_add_seals(&huge, seals(Writers::Owner)).expect("seals");
        let error = Segment::open(huge.as_fd(), LEN, Writers::Owner).expect_err("touching it may be a fault");
        assert!(error.to_string().contains("huge pages"), "{error}");
    }

    #[test]
    fn allocation_outside_the_file_is_refused() {
        let (_own, file) = Segment::create("test", 1 << 20, Writers::Owner).expect("memory");
        // The part takes several calls, the last one for a shorter piece.
        allocate(file.as_fd(), 4096, (1 << 20) - 4096).expect("memory");
        let blocks = fstat(&file).expect("it is open").st_blocks;
        assert!(blocks * 512 >= (1 << 20) - 4096, "{blocks}");
        assert!(allocate(file.as_fd(), usize::MAX, 1).is_err());
        assert!(allocate(file.as_fd(), 1 << 20, 4096).is_err());
    }

    #[test]
    fn interrupted_call_is_repeated_until_it_ends_otherwise() {
        for end in [Ok(7), Err(Errno::NOSPC), Err(Errno::AGAIN)] {
            let mut calls = 0;
            let result = uninterrupted(|| {
                calls += 1;
                if calls <= 1000 { Err(Errno::INTR) } else { end }
            });
            assert_eq!((result, calls), (end, 1001));
        }
    }

    #[test]
    fn populated_memory_is_zero_and_inside_the_file_only() {
        let (own, file) = Segment::create("test", 8 << 20, Writers::Owner).expect("memory");
        own.advise_huge(2 << 20);
        own.populate(Some(file.as_fd()), 2 << 20, 4 << 20).expect("memory");
        assert!(own.words().iter().all(|word| word.load(Relaxed) == 0));
        assert!(own.populate(Some(file.as_fd()), 6 << 20, 4 << 20).is_err());
        // Populated once more it keeps its contents.
        own.words()[1 << 18].store(7, Relaxed);
        own.populate(Some(file.as_fd()), 2 << 20, 4 << 20).expect("memory");
        assert_eq!(own.words()[1 << 18].load(Relaxed), 7);
    }

    /// The test applies where the system grants huge pages, which most systems are not set to do.
    #[test]
    fn huge_pages_are_used_where_they_are_granted() {
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
        let setting = setting.unwrap_or_default();
        if !["[advise]", "[always]", "[within_size]", "[force]"].iter().any(|set| setting.contains(set)) {
            println!("SKIPPED huge pages: shmem_enabled is {:?}", setting.trim());
            return;
        }
        let (own, file) = Segment::create("test", 16 << 20, Writers::Owner).expect("memory");
        own.advise_huge(4 << 20);
        own.populate(Some(file.as_fd()), 4 << 20, 8 << 20).expect("memory");
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("a process has one");
        let start = format!("{:x}-", own.start.as_ptr() as usize);
        let mapping = maps.lines().skip_while(|line| !line.starts_with(&start[..start.len() - 7]));
        let huge = mapping.filter(|line| line.starts_with("ShmemPmdMapped:")).take(3);
        let kib = |line: &str| line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(huge.map(kib).sum::<u64>() >= 4 << 10, "{start}");
    }

    #[test]
    fn wake_through_another_mapping_ends_a_sleep() {
        let (own, file) = Segment::create("test", 4096, Writers::All).expect("memory");
        let other = Segment::open(file.as_fd(), 4096, Writers::All).expect("it is sealed");
        std::thread::scope(|s| {
            let sleeper = s.spawn(|| {
                let begun = Instant::now();
                while own.words()[1].load(SeqCst) == 0 {
                    own.futex(0).sleep(Duration::from_secs(30), || own.words()[1].load(SeqCst) != 0);
                }
                begun.elapsed()
            });
            other.words()[1].store(1, SeqCst);
            other.futex(0).wake();
            assert!(sleeper.join().expect("no panic") < Duration::from_secs(20));
        });
    }
}
