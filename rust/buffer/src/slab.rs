//! Message memory by reference: slabs and their sources.
//!
//! A slab is a fixed range of octets that includes the sixteen octets of message headers. It is
//! reference-counted; the last reference returns the memory to its pool. This crate defines the interface
//! only; transports have pools in the heap and in shared segments.

use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SlabError;
use crate::refcount::{Arc, fence};

/// Memory that a slab refers to; dropping it releases it.
pub trait SlabMemory: Debug + Send + Sync + 'static {
    /// All octets of the slab, aligned to eight, in words of eight. A fast source lets them begin 48 octets
    /// into a cache line, so that the data of the first section begin at a cache line.
    fn words(&self) -> &[AtomicU64];

    /// This memory for a downcast: a transport recognises its own.
    fn as_any(&self) -> &dyn Any;

    /// The counter of packed octets, outside of [`words`](Self::words). `None` where a message is packed
    /// before it is sent.
    fn packed(&self) -> Option<&AtomicU64> {
        None
    }

    /// An owner that keeps the octets readable after this handle is dropped; `None` if there is none.
    fn hold(&self) -> Option<std::sync::Arc<dyn Any + Send + Sync>> {
        None
    }
}

/// Source of slabs.
pub trait SlabSource: Debug + Send + Sync + 'static {
    /// A slab of at least `octets` octets, with any contents. May wait for free memory, for a bounded time.
    ///
    /// # Errors
    /// The limit is reached, or the system is out of memory.
    fn take(&self, octets: usize) -> Result<Slab, SlabError>;

    /// As [`take`](Self::take), for octets that were received: never waits, and may exceed the limit, since
    /// the credit of the senders bounds them.
    ///
    /// # Errors
    /// The system is out of memory.
    fn take_arrived(&self, octets: usize) -> Result<Slab, SlabError> {
        self.take(octets)
    }

    /// Octets of the slabs in use; 0 if the source does not count them.
    fn used(&self) -> u64 {
        0
    }
}

/// A counted reference to message memory. Cloning is cheap and copies nothing.
#[derive(Clone, Debug)]
pub struct Slab {
    memory: Arc<dyn SlabMemory>,
    /// Octets, cached because every write reads it.
    len: usize,
    /// [`FOREIGN`], [`PRIVATE`], [`PACKING`].
    kind: u8,
}

/// Bit of a slab whose memory belongs to another owner: its octets are read-only, whatever the number of
/// references here.
const FOREIGN: u8 = 1;
/// Bit of a slab whose memory no other process can see.
const PRIVATE: u8 = 2;
/// Bit of a slab whose message may still be packed.
const PACKING: u8 = 4;

impl Slab {
    /// A slab of this memory with one reference.
    pub fn new(memory: impl SlabMemory) -> Self {
        let len = memory.words().len() * 8;
        let memory: std::sync::Arc<dyn SlabMemory> = std::sync::Arc::new(memory);
        // The same type, except under loom.
        #[allow(clippy::useless_conversion)]
        Slab { memory: memory.into(), len, kind: 0 }
    }

    /// A slab of memory that no other process can see.
    pub fn private(memory: impl SlabMemory) -> Self {
        Slab { kind: PRIVATE, ..Slab::new(memory) }
    }

    /// A read-only slab of memory that belongs to another owner.
    pub fn foreign(memory: impl SlabMemory) -> Self {
        Slab { kind: FOREIGN, ..Slab::new(memory) }
    }

    /// All octets, in words of eight.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    /// Number of octets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the slab has no octets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this is the only reference, so that its holder may change the octets.
    ///
    /// All accesses of former holders happen before a `true`.
    #[inline(always)]
    pub fn is_exclusive(&self) -> bool {
        self.is_reusable(1, false)
    }

    /// As [`is_exclusive`](Self::is_exclusive), for a holder of `references` references. With `shared_only`
    /// false for memory that no other process can see.
    #[inline(always)]
    pub(crate) fn is_reusable(&self, references: usize, shared_only: bool) -> bool {
        let unfit = FOREIGN | if shared_only { PRIVATE } else { 0 };
        if self.kind & unfit != 0 || Arc::strong_count(&self.memory) != references {
            return false;
        }
        fence(Ordering::Acquire);
        true
    }

    /// Sets the counter of packed octets to `octets` and returns this slab, marked as packing, with the
    /// [`Packer`] that advances the counter. `None` if the memory has no counter or is foreign.
    pub fn begin_packing(&self, octets: usize) -> Option<(Slab, Packer)> {
        let packed = self.memory.packed().filter(|_| self.kind & FOREIGN == 0)?;
        packed.store(octets as u64, Ordering::Relaxed);
        Some((self.clone().packing(), Packer { slab: self.clone(), is_finished: false }))
    }

    /// This slab, marked as packing: its sender may still pack the message.
    #[must_use]
    pub fn packing(mut self) -> Slab {
        self.kind |= PACKING;
        self
    }

    /// Whether this slab is marked as packing.
    #[inline(always)]
    pub fn is_packing(&self) -> bool {
        self.kind & PACKING != 0
    }

    /// Octets of the message that may be read; `None` if it will never be packed. The packer's writes to them
    /// happen before.
    #[inline]
    pub fn packed_len(&self) -> Option<usize> {
        match self.memory.packed().filter(|_| self.is_packing()).map(|packed| packed.load(Ordering::Acquire))
        {
            Some(BROKEN) => None,
            Some(packed) => Some(usize::try_from(packed).map_or(self.len, |n| n.min(self.len))),
            None => Some(self.len),
        }
    }

    /// Removes the packing mark.
    pub(crate) fn end_packing(&mut self) {
        self.kind &= !PACKING;
    }

    /// Whether both refer to the same memory.
    pub(crate) fn is_same(&self, other: &Slab) -> bool {
        std::ptr::addr_eq(std::ptr::from_ref(&*self.memory), std::ptr::from_ref(&*other.memory))
    }

    /// Whether no other process can see the memory, so that it is copied to be sent to one.
    #[inline(always)]
    pub fn is_private(&self) -> bool {
        self.kind & PRIVATE != 0
    }

    /// The memory: a transport recognises its own.
    pub fn memory(&self) -> &dyn SlabMemory {
        &*self.memory
    }
}

/// The counter of a message that will never be packed.
const BROKEN: u64 = u64::MAX;

/// Counts the octets of a message that is packed after it was sent. If it is dropped unfinished, the message
/// counts as broken, so no receiver waits for a sender that has failed.
#[derive(Debug)]
pub struct Packer {
    slab: Slab,
    is_finished: bool,
}

impl Packer {
    /// Publishes that the first `octets` octets of the message are packed.
    #[inline]
    pub fn publish(&self, octets: usize) {
        self.store(octets as u64);
    }

    /// Publishes that all octets are packed.
    pub fn finish(mut self) {
        self.store(self.slab.len as u64);
        self.is_finished = true;
    }

    #[inline]
    fn store(&self, octets: u64) {
        if let Some(packed) = self.slab.memory.packed() {
            packed.store(octets, Ordering::Release);
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        if !self.is_finished {
            self.store(BROKEN);
        }
    }
}

/// Slabs from the global allocator, without a pool or a limit: for tools and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainSource;

#[derive(Debug)]
struct PlainMemory(Vec<AtomicU64>);

impl SlabMemory for PlainMemory {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl SlabSource for PlainSource {
    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        let mut words = Vec::new();
        let n = octets.div_ceil(8);
        words.try_reserve_exact(n).map_err(|_| SlabError::System { asked: octets as u64 })?;
        words.resize_with(n, AtomicU64::default);
        Ok(Slab::new(PlainMemory(words)))
    }
}
