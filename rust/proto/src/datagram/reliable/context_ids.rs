//! The 16-bit ids that stand for 64-bit contexts on the wire.
//!
//! Each direction of a connection has a table of its own, which its sender fills. The first packet that uses
//! a context has the CONTEXT block, and so has each retransmission of it. Packets are applied in the order of
//! their numbers, so the receiver's table changes at the same packet as the sender's, and an id may be reused
//! without an ack (a choice of ours).
//!
//! Id 0 is [`WORLD`] from the start. When all ids are used, the one that was used least recently gets the new
//! context.

use rustc_hash::FxHashMap;

use super::super::super::context::WORLD;

/// Ids of one direction. With more communicators in use, some messages carry 8 octets more.
pub const CONTEXTS_MAX: u16 = 256;

/// The sender's table.
#[derive(Debug)]
pub(super) struct TxContextIds {
    ids: FxHashMap<u64, u16>,
    entries: Vec<Entry>,
    /// Uses so far.
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    context: u64,
    used: u64,
}

impl TxContextIds {
    pub(super) fn new() -> Self {
        let mut ids = FxHashMap::default();
        ids.insert(WORLD, 0);
        Self { ids, entries: vec![Entry { context: WORLD, used: 0 }], uses: 0 }
    }

    /// The id of this context for the next packet, and whether that packet must define it.
    #[inline]
    pub(super) fn id_of(&mut self, context: u64) -> (u16, bool) {
        self.uses += 1;
        if let Some(id) = self.ids.get(&context) {
            self.entries[usize::from(*id)].used = self.uses;
            return (*id, false);
        }
        (self.define(context), true)
    }

    fn define(&mut self, context: u64) -> u16 {
        let entry = Entry { context, used: self.uses };
        let id = self.entries.len() as u16;
        if id < CONTEXTS_MAX {
            self.entries.push(entry);
            self.ids.insert(context, id);
            return id;
        }
        // Id 0 never changes.
        let others = self.entries.iter().enumerate().skip(1);
        let oldest = others.min_by_key(|(_, entry)| entry.used).map_or(1, |(place, _)| place);
        self.ids.remove(&self.entries[oldest].context);
        self.entries[oldest] = entry;
        self.ids.insert(context, oldest as u16);
        oldest as u16
    }

    pub(super) fn check(&self) {
        assert!(self.entries.len() <= usize::from(CONTEXTS_MAX) && self.entries.len() == self.ids.len());
        assert_eq!(self.ids.get(&WORLD), Some(&0));
    }
}

/// The receiver's table.
#[derive(Debug)]
pub(super) struct RxContextIds {
    entries: Vec<Option<u64>>,
}

impl RxContextIds {
    pub(super) fn new() -> Self {
        Self { entries: vec![Some(WORLD)] }
    }

    /// The context of an id in the current packet, which may define it. `None` if the id is undefined, or if
    /// no honest peer uses it.
    #[inline]
    pub(super) fn resolve(&mut self, id: u16, definition: Option<u64>) -> Option<u64> {
        if let Some(context) = definition {
            self.define(id, context)?;
        }
        self.entries.get(usize::from(id)).copied().flatten()
    }

    fn define(&mut self, id: u16, context: u64) -> Option<()> {
        if id >= CONTEXTS_MAX || id == 0 {
            return None;
        }
        let place = usize::from(id);
        if self.entries.len() <= place {
            self.entries.resize(place + 1, None);
        }
        self.entries[place] = Some(context);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpjdev_sim::Random;

    /// Proves that both ends agree for contexts in any order with a bounded number of ids.
    #[test]
    fn both_ends_agree_on_every_packet() {
        let (mut tx, mut rx) = (TxContextIds::new(), RxContextIds::new());
        let mut random = Random::new(1);
        let mut definitions = 0;
        for _ in 0..20_000 {
            // Eight contexts are used often, the others rarely.
            let spread = if random.up_to(1) == 0 { 8 } else { 1000 };
            let context = random.up_to(spread - 1) * 0x1_0000_0001;
            let known = tx.ids.contains_key(&context);
            let (id, is_new) = tx.id_of(context);
            assert_eq!(known, !is_new);
            assert_eq!(rx.resolve(id, is_new.then_some(context)), Some(context));
            definitions += u32::from(is_new);
            tx.check();
        }
        assert!(definitions > 1000, "{definitions}");
        assert_eq!(tx.id_of(WORLD), (0, false));
    }

    /// Proves that ids that no honest peer uses are refused and take no memory.
    #[test]
    fn undefined_and_too_large_ids_are_refused() {
        let mut rx = RxContextIds::new();
        assert_eq!(rx.resolve(1, None), None);
        assert_eq!(rx.resolve(CONTEXTS_MAX, Some(7)), None);
        assert_eq!(rx.resolve(u16::MAX, Some(7)), None);
        assert_eq!(rx.resolve(0, Some(7)), None);
        assert_eq!(rx.resolve(0, None), Some(WORLD));
        assert!(rx.entries.len() <= usize::from(CONTEXTS_MAX));
    }
}
