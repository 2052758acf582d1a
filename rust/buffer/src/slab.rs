//! Message memory by reference: slabs, and where they come from.
//!
//! A slab is a fixed run of octets with the sixteen header octets inside. It is shared by counting
//! references; the last one gives the memory back to its pool. This crate only defines what a slab must be
//! able to do; pools in the heap and in shared segments are built elsewhere.

use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counted::{Arc, fence};
use crate::error::SlabError;

/// Memory that a slab refers to; dropping it gives it back.
pub trait SlabMemory: Debug + Send + Sync + 'static {
    /// All octets of the slab, aligned to eight, in words of eight. A source that cares for speed lets them
    /// begin 48 octets into a cache line, so that the data of the first section begin at one.
    fn words(&self) -> &[AtomicU64];

    /// This memory as itself, for a transport that wants to know whether it is its own.
    fn as_any(&self) -> &dyn Any;

    /// The number of octets that are there while a message is packed into this memory. It lies outside of
    /// [`words`](Self::words). `None` where a message is packed before it is sent.
    fn packed(&self) -> Option<&AtomicU64> {
        None
    }

    /// Owner that keeps the octets readable after this handle is dropped; `None` where nothing else
    /// does.
    fn hold(&self) -> Option<std::sync::Arc<dyn Any + Send + Sync>> {
        None
    }
}

/// Source of slabs.
pub trait SlabSource: Debug + Send + Sync + 'static {
    /// A slab with room for at least `octets` octets, with any content. May wait for memory to be freed, for
    /// a bounded time.
    ///
    /// # Errors
    /// The limit is reached, or the system has no memory.
    fn take(&self, octets: usize) -> Result<Slab, SlabError>;

    /// As [`take`](Self::take), for octets that have arrived already: never waits, and may go past a limit,
    /// as the credit of their senders bounds what arrives.
    ///
    /// # Errors
    /// The system has no memory.
    fn take_arrived(&self, octets: usize) -> Result<Slab, SlabError> {
        self.take(octets)
    }

    /// Octets of the slabs in use; 0 where they are not counted.
    fn used(&self) -> u64 {
        0
    }
}

/// A counted reference to message memory. Cloning is cheap and copies nothing.
#[derive(Clone, Debug)]
pub struct Slab {
    memory: Arc<dyn SlabMemory>,
    /// Octets, kept here because every write asks.
    len: usize,
    /// [`FOREIGN`], [`PRIVATE`], [`PACKING`].
    kind: u8,
}

/// Bit of a slab in another process's memory: its octets may be read only, whatever the number of
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
        // The same type, but under the model checker.
        #[allow(clippy::useless_conversion)]
        Slab { memory: memory.into(), len, kind: 0 }
    }

    /// A slab of memory that no other process can see.
    pub fn private(memory: impl SlabMemory) -> Self {
        Slab { kind: PRIVATE, ..Slab::new(memory) }
    }

    /// A slab in the memory of another process, for reading.
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
    /// Everything that former holders did happens before a `true`.
    #[inline(always)]
    pub fn is_exclusive(&self) -> bool {
        self.is_reusable(1, false)
    }

    /// As [`is_exclusive`](Self::is_exclusive), for a holder of `references` references; when only shared
    /// memory will do, false for memory that no other process sees.
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

    /// Whether it is marked as packing.
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

    /// Removes the mark: the message is packed.
    pub(crate) fn end_packing(&mut self) {
        self.kind &= !PACKING;
    }

    /// Whether both refer to the same memory.
    pub(crate) fn is_same(&self, other: &Slab) -> bool {
        std::ptr::addr_eq(std::ptr::from_ref(&*self.memory), std::ptr::from_ref(&*other.memory))
    }

    /// Whether no other process can see the memory, so that between processes only a copy of it can go.
    #[inline(always)]
    pub fn is_private(&self) -> bool {
        self.kind & PRIVATE != 0
    }

    /// The memory, for a transport that wants to know whether it is its own.
    pub fn memory(&self) -> &dyn SlabMemory {
        &*self.memory
    }
}

/// The counter of a message that will never be packed.
const BROKEN: u64 = u64::MAX;

/// Counts the octets of a message that is packed after it was sent. Dropped before the end, it breaks the
/// message: no receiver waits for a sender that has failed.
#[derive(Debug)]
pub struct Packer {
    slab: Slab,
    is_finished: bool,
}

impl Packer {
    /// Publishes that the first `octets` octets of the message are there.
    #[inline]
    pub fn publish(&self, octets: usize) {
        self.store(octets as u64);
    }

    /// Publishes that all octets are there.
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
