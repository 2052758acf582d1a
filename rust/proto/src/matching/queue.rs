//! An ordered queue that is searched in order at first, and by an index once a search is long.
//!
//! Entries are in reusable slots; a linked list through them is the queue's order. A search that has visited
//! [`INDEX_ABOVE`] entries without a match builds an index: lists of entries, one for each (class, key),
//! where the class states which of source and tag are wildcards. A posted receive is in the list of its
//! selector; an unexpected message is in four lists, one for each class, so that any selector finds its
//! earliest message at the head of one list. At [`INDEX_BELOW`] entries the index is dropped. Both limits are
//! choices of ours: searching 16 entries costs about as much as hashing. A window of receives whose messages
//! arrive in order finds each at the head, and builds no index.

use rustc_hash::FxHashMap;

use crate::envelope::{Envelope, Selector};

/// Entries in order with an index. `LISTS` is the number of lists of an entry, the order included.
#[derive(Debug)]
pub(super) struct Queue<K, T, const LISTS: usize> {
    slots: Vec<Slot<K, T, LISTS>>,
    /// The first free slot; the others follow through `links[ORDER].next`.
    free: u32,
    order: List,
    len: usize,
    next_sequence: u64,
    indexed: bool,
    /// The hash has no secret key: a peer can choose colliding tags, and so slow down the receives of its own
    /// messages.
    index: [FxHashMap<Key, List>; CLASSES],
}

/// The position of an entry: a slot, and the entry's sequence number, which is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    slot: u32,
    sequence: u64,
}

/// The outcome of a search in order.
enum Scan {
    Found(u32),
    /// No entry fits.
    End,
    /// More entries are left than a search in order visits.
    Long,
}

/// The lists of an entry.
pub(super) trait Filed: Copy {
    /// The class and key of the entry's list number `list`, which is 1 to `LISTS - 1`.
    fn filed_under(&self, list: usize) -> (usize, Key);
}

/// The key of a list within its class: the context, and source and tag with zeros for wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    context: u64,
    name: u64,
}

impl<K: Filed, T, const LISTS: usize> Queue<K, T, LISTS> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NIL,
            order: List::EMPTY,
            len: 0,
            next_sequence: 0,
            indexed: false,
            index: Default::default(),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Appends an entry.
    #[inline]
    pub(super) fn push(&mut self, key: K, value: T) -> Place {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let slot = self.fill_slot(key, value, sequence);
        append(&mut self.slots, &mut self.order, ORDER, slot);
        self.len += 1;
        if self.indexed {
            self.file(slot);
        }
        Place { slot, sequence }
    }

    /// Removes the entry; `None` if it was removed before.
    pub(super) fn remove(&mut self, place: Place) -> Option<(K, T)> {
        let slot = self.slots.get(place.slot as usize)?;
        if slot.value.is_none() || slot.sequence != place.sequence {
            return None;
        }
        self.remove_slot(place.slot)
    }

    /// The entry in a slot that a search has returned.
    #[inline]
    pub(super) fn get_slot(&self, slot: u32) -> Option<(K, &T)> {
        let slot = &self.slots[slot as usize];
        Some((slot.key, slot.value.as_ref()?))
    }

    /// Replaces the value in a slot that a search has returned.
    pub(super) fn update_slot(&mut self, slot: u32, f: impl FnOnce(T) -> T) {
        let value = &mut self.slots[slot as usize].value;
        *value = value.take().map(f);
    }

    /// Removes the entry in a slot that a search has returned.
    #[inline]
    pub(super) fn remove_slot(&mut self, slot: u32) -> Option<(K, T)> {
        if self.indexed {
            self.unfile(slot);
        }
        unlink(&mut self.slots, &mut self.order, ORDER, slot);
        self.len -= 1;
        let vacated = &mut self.slots[slot as usize];
        let key = vacated.key;
        let value = vacated.value.take();
        vacated.links[ORDER].next = self.free;
        self.free = slot;
        if self.indexed && self.len <= INDEX_BELOW {
            self.drop_index();
        }
        if self.len == 0 && self.slots.len() > RETAINED {
            self.slots = Vec::new();
            self.free = NIL;
        }
        value.map(|value| (key, value))
    }

    /// Removes, in order, the entries for which `picks` returns true.
    pub(super) fn extract(&mut self, mut picks: impl FnMut(&K, &T) -> bool) -> Vec<(K, T)> {
        let mut picked = Vec::new();
        let mut at = self.order.first;
        while at != NIL {
            let slot = &self.slots[at as usize];
            let next = slot.links[ORDER].next;
            if slot.value.as_ref().is_some_and(|v| picks(&slot.key, v)) {
                picked.extend(self.remove_slot(at));
            }
            at = next;
        }
        picked
    }

    /// The entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        let mut at = self.order.first;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = slot.links[ORDER].next;
            slot.value.as_ref().map(|value| (slot.key, value))
        })
    }

    /// Searches the first [`INDEX_ABOVE`] entries in order.
    #[inline]
    fn scan(&self, fits: impl Fn(&K) -> bool) -> Scan {
        let mut at = self.order.first;
        for _ in 0..INDEX_ABOVE {
            let Some(slot) = self.slots.get(at as usize) else { return Scan::End };
            if fits(&slot.key) {
                return Scan::Found(at);
            }
            at = slot.links[ORDER].next;
        }
        if at == NIL { Scan::End } else { Scan::Long }
    }

    /// The earliest entry with this class and key; only while indexed.
    #[inline]
    fn look_up(&self, (class, key): (usize, Key)) -> Option<u32> {
        let lists = &self.index[class];
        if lists.is_empty() {
            return None;
        }
        lists.get(&key).map(|list| list.first)
    }

    #[inline]
    fn fill_slot(&mut self, key: K, value: T, sequence: u64) -> u32 {
        let slot = self.free;
        if let Some(vacant) = self.slots.get_mut(slot as usize) {
            self.free = vacant.links[ORDER].next;
            vacant.key = key;
            vacant.value = Some(value);
            vacant.sequence = sequence;
            return slot;
        }
        let slot = self.slots.len();
        assert!(slot < NIL as usize, "a queue holds less than 2^32 entries");
        self.slots.push(Slot { key, value: Some(value), sequence, links: [Link::NONE; LISTS] });
        slot as u32
    }

    fn file(&mut self, slot: u32) {
        let key = self.slots[slot as usize].key;
        for list in ORDER + 1..LISTS {
            let (class, key) = key.filed_under(list);
            let header = self.index[class].entry(key).or_insert(List::EMPTY);
            append(&mut self.slots, header, list, slot);
        }
    }

    fn unfile(&mut self, slot: u32) {
        let key = self.slots[slot as usize].key;
        for list in ORDER + 1..LISTS {
            let (class, key) = key.filed_under(list);
            if let Some(header) = self.index[class].get_mut(&key) {
                unlink(&mut self.slots, header, list, slot);
                if header.first == NIL {
                    self.index[class].remove(&key);
                }
            }
        }
    }

    #[cold]
    fn build_index(&mut self) {
        self.indexed = true;
        let mut at = self.order.first;
        while at != NIL {
            self.file(at);
            at = self.slots[at as usize].links[ORDER].next;
        }
    }

    #[cold]
    fn drop_index(&mut self) {
        let mut at = self.order.first;
        while at != NIL {
            self.unfile(at);
            at = self.slots[at as usize].links[ORDER].next;
        }
        self.indexed = false;
        for lists in &mut self.index {
            if lists.capacity() > RETAINED {
                *lists = FxHashMap::default();
            }
        }
    }
}

impl<T> Queue<Envelope, T, MESSAGE_LISTS> {
    /// The messages of a context in order.
    pub(super) fn iter_in(&self, context: u64) -> impl Iterator<Item = (Envelope, &T)> {
        self.slots_in(context).filter_map(|slot| self.get_slot(slot))
    }

    /// Removes, in order, the messages of a context for which `picks` returns true.
    pub(super) fn extract_in(
        &mut self,
        context: u64,
        mut picks: impl FnMut(&Envelope, &T) -> bool,
    ) -> Vec<(Envelope, T)> {
        let is_picked = |slot: &u32| self.get_slot(*slot).is_some_and(|(key, value)| picks(&key, value));
        let picked: Vec<u32> = self.slots_in(context).filter(is_picked).collect();
        picked.into_iter().filter_map(|slot| self.remove_slot(slot)).collect()
    }

    /// The slots of a context's messages in order.
    fn slots_in(&self, context: u64) -> impl Iterator<Item = u32> {
        // Both wildcards: the last list of an indexed message.
        let list = if self.indexed { MESSAGE_LISTS - 1 } else { ORDER };
        let mut at = match self.indexed {
            true => self.look_up((ANY_SOURCE | ANY_TAG, Key::new(context, 0, 0))).unwrap_or(NIL),
            false => self.order.first,
        };
        std::iter::from_fn(move || {
            loop {
                let here = at;
                let slot = self.slots.get(here as usize)?;
                at = slot.links[list].next;
                if slot.key.context == context {
                    return Some(here);
                }
            }
        })
    }

    /// The earliest message that matches the selector.
    #[inline]
    pub(super) fn find(&mut self, selector: &Selector) -> Option<u32> {
        if !self.indexed {
            match self.scan(|envelope| selector.matches(envelope)) {
                Scan::Found(slot) => return Some(slot),
                Scan::End => return None,
                Scan::Long => self.build_index(),
            }
        }
        self.look_up(selector.filed_under(ORDER + 1))
    }
}

impl<T> Queue<Selector, T, RECEIVE_LISTS> {
    /// The earliest posted receive that matches the envelope.
    #[inline]
    pub(super) fn find(&mut self, envelope: &Envelope) -> Option<u32> {
        if !self.indexed {
            match self.scan(|selector| selector.matches(envelope)) {
                Scan::Found(slot) => return Some(slot),
                Scan::End => return None,
                Scan::Long => self.build_index(),
            }
        }
        (ORDER + 1..MESSAGE_LISTS)
            .filter_map(|list| self.look_up(envelope.filed_under(list)))
            .min_by_key(|slot| self.slots[*slot as usize].sequence)
    }
}

impl Filed for Envelope {
    /// Lists 1 to 4: exact, any tag, any source, both wildcards.
    #[inline]
    fn filed_under(&self, list: usize) -> (usize, Key) {
        let class = list - (ORDER + 1);
        let source = if class & ANY_SOURCE == 0 { self.source } else { 0 };
        let tag = if class & ANY_TAG == 0 { self.tag } else { 0 };
        (class, Key::new(self.context, source, tag))
    }
}

impl Filed for Selector {
    /// List 1: its selector.
    #[inline]
    fn filed_under(&self, _list: usize) -> (usize, Key) {
        let any_source = if self.source.is_none() { ANY_SOURCE } else { 0 };
        let any_tag = if self.tag.is_none() { ANY_TAG } else { 0 };
        let key = Key::new(self.context, self.source.unwrap_or(0), self.tag.unwrap_or(0));
        (any_source | any_tag, key)
    }
}

impl Key {
    #[inline]
    fn new(context: u64, source: u32, tag: i32) -> Self {
        let name = u64::from(source) << 32 | u64::from(tag.cast_unsigned());
        Self { context, name }
    }
}

#[derive(Debug)]
struct Slot<K, T, const LISTS: usize> {
    /// The key of the entry; that of the last one while the slot is free.
    key: K,
    /// `None` while the slot is free.
    value: Option<T>,
    sequence: u64,
    links: [Link; LISTS],
}

/// An entry's neighbours in one list.
#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

impl Link {
    const NONE: Self = Self { previous: NIL, next: NIL };
}

/// The ends of one list.
#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self { first: NIL, last: NIL };
}

#[inline]
fn append<K, T, const LISTS: usize>(
    slots: &mut [Slot<K, T, LISTS>],
    header: &mut List,
    list: usize,
    slot: u32,
) {
    slots[slot as usize].links[list] = Link { previous: header.last, next: NIL };
    match slots.get_mut(header.last as usize) {
        Some(last) => last.links[list].next = slot,
        None => header.first = slot,
    }
    header.last = slot;
}

#[inline]
fn unlink<K, T, const LISTS: usize>(
    slots: &mut [Slot<K, T, LISTS>],
    header: &mut List,
    list: usize,
    slot: u32,
) {
    let Link { previous, next } = slots[slot as usize].links[list];
    match slots.get_mut(previous as usize) {
        Some(before) => before.links[list].next = next,
        None => header.first = next,
    }
    match slots.get_mut(next as usize) {
        Some(after) => after.links[list].previous = previous,
        None => header.last = previous,
    }
}

/// No slot: the end of a list.
const NIL: u32 = u32::MAX;

/// The list that holds all entries in order.
const ORDER: usize = 0;

/// Lists of an unexpected message: the order, and one per class.
pub(super) const MESSAGE_LISTS: usize = 1 + CLASSES;

/// Lists of a posted receive: the order, and that of its selector.
pub(super) const RECEIVE_LISTS: usize = 2;

/// Classes of selectors: source exact or any, tag exact or any.
const CLASSES: usize = 4;

/// The bit of a class whose tag is a wildcard.
const ANY_TAG: usize = 1;

/// The bit of a class whose source is a wildcard.
const ANY_SOURCE: usize = 2;

/// A search that visits this number of entries without a match builds the index.
pub(super) const INDEX_ABOVE: usize = 16;

/// With at most this number of entries the index is dropped. It is well below [`INDEX_ABOVE`], so that a
/// queue near that length is not indexed repeatedly.
pub(super) const INDEX_BELOW: usize = 4;

/// Slots and index entries that an empty queue keeps for reuse; more are released.
pub(super) const RETAINED: usize = 1024;

#[cfg(test)]
impl<K, T, const LISTS: usize> Queue<K, T, LISTS> {
    /// Allocated slots, and allocated index entries of all classes.
    pub(super) fn capacities(&self) -> (usize, usize) {
        let index = self.index.iter().map(FxHashMap::capacity).sum();
        (self.slots.capacity(), index)
    }
}
