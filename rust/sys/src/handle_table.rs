//! Handle table: values behind numbers. A handle is slot and generation, never an address.
//!
//! A stale, doubled or forged handle is an error and not a crash. Using a value takes it exclusively: one
//! compare-and-swap that also checks the generation, and one store to release it. Two threads that use one
//! value at once are thereby caught too.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock_order::order::{HeldLock, Order};
use crate::sync::{AtomicU64, LockRank, Mutex, OnceLock, UnsafeCell, yield_now};

/// Slots of one chunk. Chunks are allocated as they are needed and never move.
const CHUNK: usize = if cfg!(loom) { 1 } else { 1024 };
/// Most chunks, for four million values at a time; two where every interleaving is tried.
const CHUNKS: usize = if cfg!(loom) { 2 } else { 4096 };
/// State bit of a slot whose value is in use.
const BUSY: u64 = 1;
/// Largest generation, so that a handle is a positive number.
const GENERATION_MAX: u64 = (1 << 31) - 1;
/// Order of the values of all tables: a thread that waits for one uses no other.
const ORDER: Order = Order::new(LockRank::Handle);

/// Reason why a handle cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleError {
    /// The handle was never given out, or its value was removed.
    Stale,
    /// Another thread uses the value at this moment.
    Busy,
    /// The table is full: it has four million values.
    Full,
}

/// One slot: `generation << 32 | BUSY?`; odd generations hold a value.
///
/// Aligned so that two threads that use adjacent slots do not write to one cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<T> {
    state: AtomicU64,
    value: UnsafeCell<Option<T>>,
}

impl<T> Slot<T> {
    fn empty() -> Self {
        Slot { state: AtomicU64::new(0), value: UnsafeCell::new(None) }
    }
}

/// A table of values of one kind.
#[derive(Debug)]
pub struct HandleTable<T> {
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    returned: Vec<u32>,
    fresh: u32,
    live: usize,
    /// Values in each chunk that has had any.
    live_in: Vec<u32>,
}

impl Free {
    const NONE: Free = Free { returned: Vec::new(), fresh: 0, live: 0, live_in: Vec::new() };
}

// SAFETY: a value is only reached by the one thread that has set BUSY, or by the one that inserts or removes
// it while no other thread knows the generation. So T moves between threads but is never shared.
unsafe impl<T: Send> Sync for HandleTable<T> {}

impl<T> Default for HandleTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> HandleTable<T> {
    /// An empty table.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        HandleTable {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(LockRank::Leaf, Free::NONE),
        }
    }

    /// An empty table.
    #[cfg(loom)]
    pub fn new() -> Self {
        HandleTable {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            free: Mutex::new(LockRank::Leaf, Free::NONE),
        }
    }

    /// Inserts a value and returns its handle, a positive number.
    ///
    /// # Errors
    /// The table is full; the value is returned.
    pub fn insert(&self, value: T) -> Result<i64, (T, HandleError)> {
        let mut free = self.free.lock();
        let index = match free.returned.pop() {
            Some(index) => index,
            None if (free.fresh as usize) < CHUNK * CHUNKS => {
                free.fresh += 1;
                free.fresh - 1
            }
            None => return Err((value, HandleError::Full)),
        };
        free.live += 1;
        match free.live_in.get_mut(index as usize / CHUNK) {
            Some(live) => *live += 1,
            // Fresh slots are in sequence, so this is the next chunk.
            None => free.live_in.push(1),
        }
        drop(free);
        let chunk =
            self.chunks[index as usize / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Slot::empty()).collect());
        let slot = &chunk[index as usize % CHUNK];
        // SAFETY: the index is from the free list, so the generation is even and no thread holds the slot.
        slot.value.with_mut(|v| unsafe { *v = Some(value) });
        let generation = (slot.state.load(Relaxed) >> 32) + 1;
        slot.state.store(generation << 32, Release);
        Ok((generation << 32 | u64::from(index)) as i64)
    }

    /// Takes the value exclusively until the guard is dropped.
    ///
    /// # Errors
    /// Stale handle, or in use by another thread.
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self, handle: i64) -> Result<HandleGuard<'_, T>, HandleError> {
        let slot = self.slot(handle)?;
        let idle = handle as u64 & !0xffff_ffff;
        match slot.state.compare_exchange(idle, idle | BUSY, Acquire, Relaxed) {
            Ok(_) => Ok(HandleGuard { used: Used { slot, idle }, _held: ORDER.hold() }),
            Err(state) if state == idle | BUSY => Err(HandleError::Busy),
            Err(_) => Err(HandleError::Stale),
        }
    }

    /// Whether there is a value behind this handle, in use or not.
    #[inline(always)]
    pub fn is_live(&self, handle: i64) -> bool {
        match self.slot(handle) {
            Ok(slot) => slot.state.load(Acquire) >> 32 == handle as u64 >> 32,
            Err(_) => false,
        }
    }

    /// Takes the value exclusively, after waiting for a thread that uses it.
    ///
    /// # Errors
    /// Stale handle.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock_spinning(&self, handle: i64) -> Result<HandleGuard<'_, T>, HandleError> {
        ORDER.check();
        loop {
            match self.lock(handle) {
                Err(HandleError::Busy) => yield_now(),
                other => return other,
            }
        }
    }

    /// Removes a value; the handle is stale from then on. Waits for a thread that uses the value.
    ///
    /// # Errors
    /// Stale handle: another thread has removed it before.
    pub fn remove(&self, handle: i64) -> Result<T, HandleError> {
        let guard = self.lock_spinning(handle)?;
        Ok(self.remove_locked(guard, handle))
    }

    fn remove_locked(&self, guard: HandleGuard<'_, T>, handle: i64) -> T {
        let HandleGuard { used, _held } = guard;
        let slot = used.slot;
        let generation = (used.idle >> 32) + 1;
        // SAFETY: this thread holds the slot.
        let value = slot.value.with_mut(|v| unsafe { (*v).take() });
        std::mem::forget(used);
        slot.state.store(generation << 32, Release);
        let mut free = self.free.lock();
        free.live -= 1;
        free.live_in[handle as u32 as usize / CHUNK] -= 1;
        // A slot whose generations are used up is never used again, so that no old handle becomes valid.
        if generation < GENERATION_MAX - 1 {
            free.returned.push(handle as u32);
        }
        value.expect("an odd generation has a value")
    }

    /// Passes every value to `f`, with its handle; waits for values that other threads use. The cost grows
    /// with the chunks that have values.
    pub fn for_each(&self, f: impl FnMut(i64, &mut T)) {
        self.walk(|handle| self.lock_spinning(handle), f);
    }

    /// As [`for_each`](Self::for_each), without the values that other threads use at this moment.
    pub fn for_each_idle(&self, f: impl FnMut(i64, &mut T)) {
        self.walk(|handle| self.lock(handle), f);
    }

    fn walk<'a>(
        &'a self,
        lock: impl Fn(i64) -> Result<HandleGuard<'a, T>, HandleError>,
        mut f: impl FnMut(i64, &mut T),
    ) {
        for at in self.used_chunks() {
            let Some(chunk) = self.chunks[at].get() else { continue };
            for (index, slot) in ((at * CHUNK) as u64..).zip(chunk) {
                let generation = slot.state.load(Relaxed) >> 32;
                let handle = (generation << 32 | index) as i64;
                if let Ok(mut guard) = lock(handle) {
                    guard.with(|value| f(handle, value));
                }
            }
        }
    }

    fn used_chunks(&self) -> Vec<usize> {
        let free = self.free.lock();
        (0..).zip(&free.live_in).filter(|(_, live)| **live > 0).map(|(at, _)| at).collect()
    }

    /// Number of values in the table.
    pub fn len(&self) -> usize {
        self.free.lock().live
    }

    /// Whether the table has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn slot(&self, handle: i64) -> Result<&Slot<T>, HandleError> {
        let index = handle as u32 as usize;
        let live = handle > 0 && (handle >> 32) & 1 == 1;
        match self.chunks.get(index / CHUNK).and_then(OnceLock::get) {
            Some(chunk) if live => Ok(&chunk[index % CHUNK]),
            _ => Err(HandleError::Stale),
        }
    }
}

/// A value in exclusive use.
#[derive(Debug)]
pub struct HandleGuard<'a, T> {
    used: Used<'a, T>,
    _held: HeldLock,
}

/// A slot that is busy until this is dropped.
#[derive(Debug)]
struct Used<'a, T> {
    slot: &'a Slot<T>,
    idle: u64,
}

impl<T> HandleGuard<'_, T> {
    /// Uses the value.
    #[inline(always)]
    pub fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        self.used.slot.value.with_mut(
            #[inline(always)]
            |value| {
                // SAFETY: BUSY is set by this guard, so no other thread touches the value, and `&mut self`
                // keeps this thread from taking a second reference. There is a value while the generation is
                // odd.
                let value = unsafe { (*value).as_mut() };
                f(value.expect("an odd generation has a value"))
            },
        )
    }
}

impl<T> Drop for Used<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.state.store(self.idle, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn handle_is_stale_after_removal_even_when_its_slot_is_reused() {
        let table = HandleTable::new();
        let first = table.insert("first").unwrap();
        assert_eq!(table.lock(first).unwrap().with(|v| *v), "first");
        assert_eq!(table.remove(first), Ok("first"));
        let second = table.insert("second").unwrap();
        assert_eq!(first as u32, second as u32, "the slot is reused");
        assert!(matches!(table.lock(first), Err(HandleError::Stale)));
        assert_eq!(table.remove(first), Err(HandleError::Stale));
        assert_eq!(table.lock(second).unwrap().with(|v| *v), "second");
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn forged_handles_are_stale() {
        let table = HandleTable::new();
        let good = table.insert(1).unwrap();
        for forged in
            [0, -1, 1, i64::MAX, i64::MIN, good + 1, good + (1 << 32), good ^ (1 << 33), good | 1 << 31]
        {
            assert!(matches!(table.lock(forged), Err(HandleError::Stale)), "{forged:#x}");
        }
    }

    #[test]
    fn value_in_use_is_busy_until_its_guard_is_dropped() {
        let table = HandleTable::new();
        let handle = table.insert(1).unwrap();
        let guard = table.lock(handle).unwrap();
        assert!(matches!(table.lock(handle), Err(HandleError::Busy)));
        drop(guard);
        assert!(table.lock(handle).is_ok());
    }

    #[test]
    fn for_each_visits_live_values_only() {
        let table = HandleTable::new();
        let handles: Vec<i64> = (0..3000).map(|i| table.insert(i).unwrap()).collect();
        for handle in handles.iter().step_by(2) {
            table.remove(*handle).unwrap();
        }
        let mut met = Vec::new();
        table.for_each(|handle, value| met.push((handle, *value)));
        let expected: Vec<_> = handles.iter().copied().zip(0..).skip(1).step_by(2).collect();
        assert_eq!(met, expected);
    }

    #[test]
    fn for_each_idle_skips_values_in_use() {
        let table = HandleTable::new();
        let handles: Vec<i64> = (0..3).map(|i| table.insert(i).unwrap()).collect();
        let guard = table.lock(handles[1]).unwrap();
        let mut met = Vec::new();
        table.for_each_idle(|_, value| met.push(*value));
        drop(guard);
        assert_eq!(met, [0, 2]);
    }

    #[test]
    fn for_each_skips_empty_chunks() {
        let table = HandleTable::new();
        let handles: Vec<i64> = (0..10 * CHUNK).map(|i| table.insert(i).unwrap()).collect();
        assert_eq!(table.used_chunks(), (0..10).collect::<Vec<_>>());
        for handle in
            handles.iter().filter(|handle| ![1, 3 * CHUNK + 7].contains(&(**handle as u32 as usize)))
        {
            table.remove(*handle).unwrap();
        }
        assert_eq!(table.used_chunks(), [0, 3]);
        let mut met = Vec::new();
        table.for_each(|_, value| met.push(*value));
        assert_eq!(met, [1, 3 * CHUNK + 7]);
        // Released slots are used again, wherever they are.
        let again: Vec<i64> = (0..10 * CHUNK - 2).map(|i| table.insert(i).unwrap()).collect();
        assert_eq!(table.used_chunks().len(), 10);
        again.into_iter().for_each(|handle| assert!(table.remove(handle).is_ok()));
        assert_eq!(table.used_chunks(), [0, 3]);
    }

    #[test]
    fn many_values_fill_several_chunks() {
        let table = HandleTable::new();
        let handles: Vec<i64> = (0..3000).map(|i| table.insert(i).unwrap()).collect();
        for (i, h) in handles.iter().enumerate() {
            assert_eq!(table.lock(*h).unwrap().with(|v| *v), i);
        }
        for h in handles {
            table.remove(h).unwrap();
        }
        assert!(table.is_empty());
    }
}
