//! Slots of a rank for vectors, in its segment.
//!
//! ```text
//! word   0  per pair: the context of its communicator; 0 before the first
//!       16  per pair: the base, vectors of earlier communicators
//!       32  per pair two slots of 17 lines:
//!             0  stamp: the base plus the number of the vector
//!             1  label
//!             2  octets of a short vector
//!
//! then per pair two long parts: octets of a longer vector
//! ```
//!
//! The owner stores the stamp last, with release. A reader polls it. A vector of some words takes one cache
//! line. The long parts of a pair are allocated for its first long vector. The
//! context of a pair that was given back stays until the pair is claimed again: a rank may have still to read
//! the last vector. The pair is free when each other member has closed it as often as it was claimed.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use mpjdev_buffer::octets::{copy_in, copy_out};

use super::layout::{CLOSED, LONG_SLOTS_LEN, PAGE, SLOTS_LEN, long_slots_at, slots_at};
use super::slot_table::{PAIRS, Use, count_at};
use super::transport::ShmTransport;
use crate::slots::{Awaited, LONG_SLOT_MAX, SLOT_MAX, SlotPair, Slots};

const CONTEXTS: usize = 0;
const BASES: usize = PAIRS;
const FIRST: usize = 2 * PAIRS;

const LABEL: usize = 1;
const OCTETS: usize = 2;
/// Words of a slot: whole cache lines.
const SLOT_WORDS: usize = (OCTETS + SLOT_MAX / 8).next_multiple_of(8);

/// Octets of the long parts of a pair.
const LONG_PAIR_LEN: usize = 2 * LONG_SLOT_MAX;

const _: () = assert!(PAIRS * LONG_PAIR_LEN == LONG_SLOTS_LEN && LONG_PAIR_LEN.is_multiple_of(PAGE));
const _: () = assert!((FIRST + 2 * PAIRS * SLOT_WORDS) * 8 <= SLOTS_LEN && SLOTS_LEN.is_multiple_of(PAGE));

/// Index of the first word of the slot of a vector.
#[inline(always)]
fn slot_at(pair: SlotPair, number: u64) -> usize {
    let turn = pair.base.wrapping_add(number) as usize % 2;
    FIRST + (2 * (pair.index as usize % PAIRS) + turn) * SLOT_WORDS
}

/// Index of the first word of the long part of a slot, in the words of all long parts.
fn long_part_at(pair: SlotPair, number: u64) -> usize {
    let turn = pair.base.wrapping_add(number) as usize % 2;
    (2 * (pair.index as usize % PAIRS) + turn) * LONG_SLOT_MAX / 8
}

/// The long part of the slot of a vector, in a segment.
fn long_part_of(words: &[AtomicU64], ranks: usize, pair: SlotPair, number: u64) -> &[AtomicU64] {
    &words[long_slots_at(ranks) / 8 + long_part_at(pair, number)..][..LONG_SLOT_MAX / 8]
}

#[inline(always)]
fn stamp(pair: SlotPair, number: u64) -> u64 {
    pair.base.wrapping_add(number)
}

/// The words of the slots in a segment.
#[inline(always)]
fn slots_of(words: &[AtomicU64], ranks: usize) -> &[AtomicU64] {
    &words[slots_at(ranks) / 8..][..SLOTS_LEN / 8]
}

impl ShmTransport {
    #[inline(always)]
    fn own_slots(&self) -> &[AtomicU64] {
        slots_of(self.words(), self.job.ranks())
    }

    /// The slots of a rank whose segment is mapped.
    #[inline(always)]
    fn slots_of(&self, source: u32) -> Option<&[AtomicU64]> {
        let peer = self.peers.get(source as usize)?.get()?;
        Some(slots_of(peer.words(), self.job.ranks()))
    }

    /// The slot of a vector, if its rank has published it.
    #[inline(always)]
    fn published_slot(&self, source: u32, pair: SlotPair, number: u64) -> Option<&[AtomicU64]> {
        let slot = &self.slots_of(source)?[slot_at(pair, number)..][..SLOT_WORDS];
        (slot[0].load(Acquire) == stamp(pair, number)).then_some(slot)
    }

    /// Whether each reader of a pair has closed it as often as it was claimed.
    fn is_closed(&self, index: usize, claims: &[u16]) -> bool {
        let (word, bit) = count_at(index);
        self.peers.iter().zip(claims).all(|(peer, claims)| {
            *claims == 0 || peer.get().is_some_and(|peer| (peer.closed(word) >> bit) as u16 == *claims)
        })
    }

    /// Whether a vector is there that a thread waits for.
    #[inline(always)]
    pub(super) fn has_awaited_slot(&self) -> bool {
        self.slot_table.awaited_count.load(Acquire) > 0 && self.finds_awaited_slot()
    }

    #[cold]
    fn finds_awaited_slot(&self) -> bool {
        let awaited = self.slot_table.awaited.lock();
        awaited.iter().any(|&Awaited { source, context, number }| {
            let pair = self.find_slots(source, context);
            pair.is_some_and(|pair| self.published_slot(source, pair, number).is_some())
        })
    }

    fn find_slots(&self, source: u32, context: u64) -> Option<SlotPair> {
        let slots = self.slots_of(source)?;
        let index = slots[CONTEXTS..][..PAIRS].iter().position(|word| word.load(Acquire) == context)?;
        Some(SlotPair { index: index as u32, base: slots[BASES + index].load(Relaxed) })
    }
}

impl Slots for ShmTransport {
    fn claim(&self, context: u64, members: &[u32]) -> Option<SlotPair> {
        // A reader whose segment is not mapped has closed nothing that this rank could see.
        let others = || members.iter().filter(|rank| **rank != self.rank);
        if others().any(|reader| self.peer_of(*reader).is_err()) {
            return None;
        }
        let mut uses = self.slot_table.uses.lock();
        let index = (0..).zip(&*uses).find_map(|(index, Use { is_claimed, claims })| {
            (!is_claimed && self.is_closed(index, claims)).then_some(index)
        })?;
        self.pool.claim(slots_at(self.job.ranks()), SLOTS_LEN).ok()?;
        let slots = self.own_slots();
        let pair = SlotPair { index: index as u32, base: 0 };
        let last = [0, 1].map(|number| slots[slot_at(pair, number)].load(Relaxed)).into_iter().max();
        let pair = SlotPair { base: last.unwrap_or(0), ..pair };
        // A reader that finds the context finds its base.
        slots[BASES + index].store(pair.base, Relaxed);
        slots[CONTEXTS + index].store(context, Release);
        let Use { is_claimed, claims } = &mut uses[index];
        *is_claimed = true;
        claims.resize(self.job.ranks(), 0);
        for reader in others() {
            claims[*reader as usize] = claims[*reader as usize].wrapping_add(1);
        }
        Some(pair)
    }

    fn retire(&self, pair: SlotPair) {
        if let Some(found) = self.slot_table.uses.lock().get_mut(pair.index as usize) {
            found.is_claimed = false;
        }
    }

    fn close(&self, source: u32, pair: SlotPair) {
        // The lock orders the updates of the threads of this rank.
        let _uses = self.slot_table.uses.lock();
        let (word, bit) = count_at(pair.index as usize % PAIRS);
        let counts = self.about(source, CLOSED + word);
        let old = counts.load(Relaxed);
        let count = ((old >> bit) as u16).wrapping_add(1);
        counts.store(old & !(u64::from(u16::MAX) << bit) | u64::from(count) << bit, Release);
    }

    #[inline]
    fn publish(&self, pair: SlotPair, number: u64, label: u64, octets: &[u8]) {
        let slot = &self.own_slots()[slot_at(pair, number)..][..SLOT_WORDS];
        slot[LABEL].store(label, Relaxed);
        copy_in(slot, OCTETS * 8, octets);
        slot[0].store(stamp(pair, number), Release);
    }

    fn long_part(&self, pair: SlotPair, number: u64) -> Option<&[AtomicU64]> {
        let index = pair.index as usize % PAIRS;
        if !self.slot_table.has_long_parts[index].load(Relaxed) {
            let at = long_slots_at(self.job.ranks()) + index * LONG_PAIR_LEN;
            self.pool.claim(at, LONG_PAIR_LEN).ok()?;
            self.slot_table.has_long_parts[index].store(true, Relaxed);
        }
        Some(long_part_of(self.words(), self.job.ranks(), pair, number))
    }

    fn publish_long(&self, pair: SlotPair, number: u64, label: u64) {
        let slot = &self.own_slots()[slot_at(pair, number)..][..SLOT_WORDS];
        slot[LABEL].store(label, Relaxed);
        slot[0].store(stamp(pair, number), Release);
    }

    fn vector(&self, source: u32, pair: SlotPair, number: u64, len: usize) -> Option<&[AtomicU64]> {
        assert!(len <= LONG_SLOT_MAX, "{len} octets of a slot");
        let slot = self.published_slot(source, pair, number)?;
        if len <= SLOT_MAX {
            return Some(&slot[OCTETS..]);
        }
        let peer = self.peers.get(source as usize)?.get()?;
        Some(long_part_of(peer.words(), self.job.ranks(), pair, number))
    }

    #[inline]
    fn wake_readers(&self, readers: &[u32]) {
        fence(SeqCst);
        readers.iter().filter(|rank| **rank != self.rank).for_each(|rank| self.wake_if_parked(*rank));
    }

    fn find(&self, source: u32, context: u64) -> Option<SlotPair> {
        self.peer_of(source).ok()?;
        self.find_slots(source, context)
    }

    #[inline]
    fn is_published(&self, source: u32, pair: SlotPair, number: u64) -> bool {
        self.published_slot(source, pair, number).is_some()
    }

    #[inline]
    fn label(&self, source: u32, pair: SlotPair, number: u64) -> u64 {
        self.published_slot(source, pair, number).map_or(0, |slot| slot[LABEL].load(Relaxed))
    }

    #[inline]
    fn copy(&self, source: u32, pair: SlotPair, number: u64, skip: usize, into: &mut [u8]) {
        assert!(skip + into.len() <= SLOT_MAX, "octets {skip} to {} of a slot", skip + into.len());
        if let Some(slot) = self.published_slot(source, pair, number) {
            copy_out(slot, OCTETS * 8 + skip, into);
        }
    }

    fn begin_wait(&self, awaited: Awaited) {
        let mut all = self.slot_table.awaited.lock();
        all.push(awaited);
        self.slot_table.awaited_count.store(all.len() as u32, SeqCst);
    }

    fn end_wait(&self, awaited: Awaited) {
        let mut all = self.slot_table.awaited.lock();
        if let Some(at) = all.iter().position(|other| *other == awaited) {
            all.swap_remove(at);
        }
        self.slot_table.awaited_count.store(all.len() as u32, SeqCst);
    }

    fn has_awaited(&self) -> bool {
        self.has_awaited_slot()
    }
}
