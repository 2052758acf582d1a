//! Retransmission buffer: octets of sent messages, kept until they are acked.

use mpjdev_buffer::octets::{copy_out, copy_words};
use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::datagram::reliable::content::Body;
use mpjdev_sys::datagram::Part;
use mpjdev_sys::memory::Memory;

use crate::config::SPARSE_FACTOR;
use crate::net::packed_octets::{is_given_up, is_packed};

/// Octets of a message that is copied. A copy costs less than holding the owner's memory.
const COPIED_MAX: usize = 256;
/// Messages whose copies share a run of memory.
const CHUNK: usize = 64;
/// Most chunks. Further messages keep memory of their own, which counts against the limit.
const CHUNKS_MAX: usize = 256;

/// Location of the octets of a message.
#[derive(Debug)]
enum Octets {
    /// The octets are not needed, or the message is empty.
    None,
    /// A copy, in the slot of the message among the copies.
    Copied,
    /// The message's own memory.
    Referenced(Slab),
}

#[derive(Debug)]
struct Entry {
    octets: Octets,
    /// Octets of the message.
    len: usize,
    /// Whether the octets are needed.
    is_held: bool,
    /// Whether it is a control message, not one of the program.
    is_control: bool,
    /// The request that waits for an answer.
    request: Option<u64>,
}

/// Owner of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The program, without a request that waits for an answer.
    Program,
    /// This request, which waits for an answer.
    Request(u64),
    /// None: it is a control message between our own ranks.
    Control,
}

/// Messages by token. A token is the index plus one, so that no token is 0.
#[derive(Debug, Default)]
pub(super) struct Store {
    entries: Vec<Entry>,
    free: Vec<usize>,
    copies: Vec<Memory>,
    /// Messages that wait for an answer.
    unanswered: usize,
    /// Other messages whose octets are needed.
    held: usize,
    /// Control messages among these.
    extras: usize,
    /// Octets copied so far.
    copied: u64,
}

impl Store {
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// The tokens of the messages that wait for an answer.
    pub(super) fn unanswered_tokens(&self) -> Vec<u64> {
        let entries = (1..).zip(&self.entries);
        entries.filter(|(_, entry)| entry.request.is_some()).map(|(token, _)| token).collect()
    }

    /// Whether octets are needed of the program's messages that wait for no answer.
    pub(super) fn holds_messages(&self) -> bool {
        self.held > self.extras
    }

    /// Number and octets of the program's messages that wait for no answer and whose octets are needed.
    pub(super) fn held_messages(&self) -> (usize, u64) {
        let is_held = |entry: &&Entry| entry.is_held && !entry.is_control && entry.request.is_none();
        let held = self.entries.iter().filter(is_held);
        held.fold((0, 0), |(count, octets), entry| (count + 1, octets + entry.len as u64))
    }

    /// Octets of messages copied so far.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Keeps the first `len` octets of a slab. Returns the token of the message.
    pub(super) fn put(&mut self, slab: &Slab, len: usize, owner: Owner, source: &dyn SlabSource) -> u64 {
        let place = self.free.pop().unwrap_or(self.entries.len());
        let octets = match len {
            0 => Octets::None,
            ..=COPIED_MAX if self.has_copies(place) => {
                let (words, at) = self.copy(place);
                copy_words(slab.words(), 0, words, at, len);
                self.copied += len as u64;
                Octets::Copied
            }
            _ => Octets::Referenced(self.compact_if_sparse(slab, len, source)),
        };
        let is_control = owner == Owner::Control;
        let request = if let Owner::Request(request) = owner { Some(request) } else { None };
        let entry = Entry { octets, len, is_held: true, is_control, request };
        match self.entries.get_mut(place) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        match request {
            Some(_) => self.unanswered += 1,
            None => self.held += 1,
        }
        self.extras += usize::from(is_control);
        place as u64 + 1
    }

    /// Whether octets of a message are packed.
    pub(super) fn is_packed(&self, body: &Body) -> bool {
        match self.entries.get(body.token as usize - 1).map(|entry| &entry.octets) {
            Some(Octets::Referenced(slab)) => is_packed(slab, body.offset, body.len),
            _ => true,
        }
    }

    /// Whether a message will never be packed.
    pub(super) fn has_given_up(&self) -> bool {
        let is_given_up =
            |entry: &Entry| matches!(&entry.octets, Octets::Referenced(slab) if is_given_up(slab));
        self.entries.iter().any(is_given_up)
    }

    /// Octets of a message that are needed.
    pub(super) fn part(&self, token: u64, offset: usize, len: usize) -> Part<'_> {
        match self.entries.get(token as usize - 1).map(|entry| &entry.octets) {
            Some(Octets::Referenced(slab)) => Part::new(slab.words(), offset, len),
            Some(Octets::Copied) => {
                let (words, at) = self.copy(token as usize - 1);
                Part::new(words, at + offset, len)
            }
            _ => Part::new(&[], 0, 0),
        }
    }

    /// As [`part`](Self::part), copied.
    pub(super) fn read(&self, token: u64, offset: usize, octets: &mut [u8]) {
        match self.entries.get(token as usize - 1).map(|entry| &entry.octets) {
            Some(Octets::Referenced(slab)) => copy_out(slab.words(), offset, octets),
            Some(Octets::Copied) => {
                let (words, at) = self.copy(token as usize - 1);
                copy_out(words, at + offset, octets);
            }
            _ => {}
        }
    }

    /// Frees the octets of a message, which are no longer needed.
    pub(super) fn release(&mut self, token: u64) {
        let place = token as usize - 1;
        let Some(entry) = self.entries.get_mut(place).filter(|entry| entry.is_held) else { return };
        (entry.octets, entry.is_held) = (Octets::None, false);
        if entry.request.is_none() {
            self.held -= 1;
            self.extras -= usize::from(entry.is_control);
            self.free.push(place);
        }
    }

    /// Records the answer to a message. Returns the request that has waited for it.
    pub(super) fn answer(&mut self, token: u64) -> Option<u64> {
        let place = token as usize - 1;
        let entry = self.entries.get_mut(place)?;
        let request = entry.request.take()?;
        self.unanswered -= 1;
        match entry.is_held {
            // It is held as any other message now.
            true => self.held += 1,
            false => self.free.push(place),
        }
        Some(request)
    }

    /// Drops all messages.
    pub(super) fn clear(&mut self) {
        *self = Store { copied: self.copied, ..Store::default() };
    }

    /// Allocates memory for the copy in a slot, if the system has some.
    fn has_copies(&mut self, place: usize) -> bool {
        if place / CHUNK < self.copies.len() {
            return true;
        }
        let copies = match place / CHUNK == self.copies.len() && self.copies.len() < CHUNKS_MAX {
            true => Memory::zeroed(CHUNK * COPIED_MAX),
            false => None,
        };
        let has_some = copies.is_some();
        self.copies.extend(copies);
        has_some
    }

    fn copy(&self, place: usize) -> (&[std::sync::atomic::AtomicU64], usize) {
        (self.copies[place / CHUNK].words(), place % CHUNK * COPIED_MAX)
    }

    /// The memory to keep for a message: a copy, if it holds much more memory than it has octets.
    fn compact_if_sparse(&mut self, slab: &Slab, len: usize, source: &dyn SlabSource) -> Slab {
        // A message that is still being packed has no octets to copy.
        if slab.is_packing() || slab.len() / SPARSE_FACTOR <= len {
            return slab.clone();
        }
        match source.take_arrived(len) {
            Ok(copy) => {
                copy_words(slab.words(), 0, copy.words(), 0, len);
                self.copied += len as u64;
                copy
            }
            Err(_) => slab.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::HeapPool;

    fn slab(len: usize, octet: u8) -> Slab {
        let slab = HeapPool::new(1 << 20).take(len).expect("memory");
        mpjdev_buffer::octets::copy_in(slab.words(), 0, &vec![octet; len]);
        slab
    }

    fn read(store: &Store, token: u64, offset: usize, len: usize) -> Vec<u8> {
        let mut octets = vec![0xee; len];
        store.read(token, offset, &mut octets);
        octets
    }

    #[test]
    fn octets_are_kept_unchanged_until_they_are_released() {
        let source = HeapPool::new(1 << 20);
        let mut store = Store::default();
        for len in [1, COPIED_MAX, COPIED_MAX + 1, 5000] {
            let tokens: Vec<u64> = (0..2 * CHUNK as u8)
                .map(|octet| store.put(&slab(len, octet), len, Owner::Program, &*source))
                .collect();
            for (octet, token) in (0..).zip(&tokens) {
                assert_eq!(read(&store, *token, 0, len), vec![octet; len], "{len} octets");
                assert_eq!(store.part(*token, len / 2, len - len / 2).len(), len - len / 2);
            }
            assert!(store.holds_messages());
            tokens.into_iter().for_each(|token| store.release(token));
            assert_eq!((store.held(), store.holds_messages()), (0, false));
        }
        assert_eq!(store.entries.len(), 2 * CHUNK, "places are used again");
    }

    #[test]
    fn token_is_free_after_its_octets_and_its_answer() {
        let source = HeapPool::new(1 << 20);
        let mut store = Store::default();
        let first = store.put(&slab(8, 1), 8, Owner::Request(70), &*source);
        let second = store.put(&slab(8, 2), 8, Owner::Request(71), &*source);
        assert_eq!((store.unanswered_tokens(), store.held()), (vec![first, second], 0));
        store.release(first);
        assert_eq!(store.answer(second), Some(71));
        assert_eq!((store.unanswered(), store.held(), store.answer(second)), (1, 1, None));
        let third = store.put(&slab(8, 3), 8, Owner::Control, &*source);
        assert!(third != first && third != second, "both are in use");
        assert_eq!(store.answer(first), Some(70));
        store.release(second);
        store.release(second);
        assert!(!store.holds_messages(), "what is left is none of the program's");
        let fourth = store.put(&slab(8, 4), 8, Owner::Program, &*source);
        assert!(fourth == first || fourth == second);
    }

    /// A long-lived buffer is not kept for a few octets.
    #[test]
    fn small_message_in_a_large_slab_is_copied() {
        let source = HeapPool::new(1 << 20);
        let large = slab(1 << 16, 9);
        let mut store = Store::default();
        let token = store.put(&large, COPIED_MAX + 8, Owner::Program, &*source);
        assert!(large.is_exclusive(), "no other reference is left");
        assert_eq!(read(&store, token, 0, COPIED_MAX + 8), vec![9; COPIED_MAX + 8]);
    }
}
