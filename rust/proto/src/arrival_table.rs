//! Table of received messages that a peer may name: slots, and ids made of a slot index and a generation.

use std::num::NonZeroU64;

/// Names a received message to the driver and to the peer: a slot index in the low bits and a generation
/// above it, never an address. A stale or forged id names nothing, until generations repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrivalId<const SLOT_BITS: u32, const GENERATION_BITS: u32>(NonZeroU64);

/// Values of type `T` by their ids.
#[derive(Debug)]
pub(crate) struct ArrivalTable<T, const SLOT_BITS: u32, const GENERATION_BITS: u32> {
    slots: Vec<Slot<T>>,
    /// Indexes of slots without a value.
    free: Vec<u32>,
    len: usize,
    /// Generation of the latest value.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    generation: u64,
    value: Option<T>,
}

/// An empty table with more slots than this releases its storage.
const SLOTS_KEPT: usize = 64;

impl<const SLOT_BITS: u32, const GENERATION_BITS: u32> ArrivalId<SLOT_BITS, GENERATION_BITS> {
    /// The number of slots that an id can name.
    pub(crate) const SLOTS_MAX: usize = 1 << SLOT_BITS;
    /// Generations are 1 to this.
    const GENERATION_MAX: u64 = (1 << GENERATION_BITS) - 1;

    fn new(slot_index: u32, generation: u64) -> Self {
        let number = generation << SLOT_BITS | u64::from(slot_index);
        Self(NonZeroU64::new(number).expect("generations begin with 1"))
    }

    /// The id that has this number.
    pub(crate) const fn of(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    pub(crate) const fn number(self) -> u64 {
        self.0.get()
    }

    const fn slot_index(self) -> usize {
        (self.0.get() & ((1 << SLOT_BITS) - 1)) as usize
    }

    const fn generation(self) -> u64 {
        self.0.get() >> SLOT_BITS
    }
}

impl<T, const SLOT_BITS: u32, const GENERATION_BITS: u32> ArrivalTable<T, SLOT_BITS, GENERATION_BITS> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), len: 0, generation: 0 }
    }

    /// The number of values.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds a value; `None` if all slots are occupied.
    pub(crate) fn insert(&mut self, value: T) -> Option<ArrivalId<SLOT_BITS, GENERATION_BITS>> {
        type Id<const S: u32, const G: u32> = ArrivalId<S, G>;
        let generation = self.generation % Id::<SLOT_BITS, GENERATION_BITS>::GENERATION_MAX + 1;
        let slot = Slot { generation, value: Some(value) };
        let slot_index = match self.free.pop() {
            Some(slot_index) => {
                self.slots[slot_index as usize] = slot;
                slot_index
            }
            None if self.slots.len() < Id::<SLOT_BITS, GENERATION_BITS>::SLOTS_MAX => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        self.generation = generation;
        self.len += 1;
        Some(ArrivalId::new(slot_index, generation))
    }

    /// The value with this id.
    pub(crate) fn get_mut(&mut self, id: ArrivalId<SLOT_BITS, GENERATION_BITS>) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.slot_index())?;
        if slot.generation == id.generation() { slot.value.as_mut() } else { None }
    }

    /// Removes and returns the value with this id.
    pub(crate) fn remove(&mut self, id: ArrivalId<SLOT_BITS, GENERATION_BITS>) -> Option<T> {
        let slot = self.slots.get_mut(id.slot_index()).filter(|slot| slot.generation == id.generation())?;
        let value = slot.value.take()?;
        self.free.push(id.slot_index() as u32);
        self.len -= 1;
        if self.len == 0 && self.slots.len() > SLOTS_KEPT {
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
        Some(value)
    }

    /// All values with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ArrivalId<SLOT_BITS, GENERATION_BITS>, &T)> {
        let values = self.slots.iter().enumerate();
        values.filter_map(|(slot_index, slot)| {
            Some((ArrivalId::new(slot_index as u32, slot.generation), slot.value.as_ref()?))
        })
    }

    /// Removes all values. Later ids differ from earlier ones.
    pub(crate) fn clear(&mut self) {
        (self.slots, self.free, self.len) = (Vec::new(), Vec::new(), 0);
    }

    /// Panics when an invariant does not hold.
    pub(crate) fn check(&self) {
        assert_eq!(self.iter().count(), self.len);
        assert_eq!(self.slots.len(), self.len + self.free.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four slots and seven generations.
    type Id = ArrivalId<2, 3>;
    type Table = ArrivalTable<char, 2, 3>;

    fn table(values: &str) -> (Table, Vec<Id>) {
        let mut table = Table::new();
        let ids = values.chars().map(|value| table.insert(value).expect("a slot is free")).collect();
        table.check();
        (table, ids)
    }

    #[test]
    fn value_is_found_by_its_id_until_it_is_removed() {
        let (mut table, ids) = table("ab");
        assert_eq!((table.get_mut(ids[0]).copied(), table.len()), (Some('a'), 2));
        assert_eq!((table.remove(ids[0]), table.remove(ids[0])), (Some('a'), None));
        assert_eq!((table.get_mut(ids[0]).copied(), table.len()), (None, 1));
        assert_eq!(table.get_mut(ids[1]), Some(&mut 'b'));
        table.check();
    }

    #[test]
    fn stale_id_does_not_name_the_next_value_of_its_slot() {
        let (mut table, ids) = table("a");
        table.remove(ids[0]);
        let id = table.insert('b').expect("a slot is free");
        assert_eq!((id.slot_index(), id.generation()), (ids[0].slot_index(), 2));
        assert_eq!((table.get_mut(ids[0]).copied(), table.remove(ids[0])), (None, None));
        assert_eq!(table.get_mut(id), Some(&mut 'b'));
    }

    #[test]
    fn invented_id_names_nothing() {
        let (mut table, ids) = table("a");
        assert_eq!(Id::of(0), None);
        assert_eq!(Id::of(ids[0].number()), Some(ids[0]));
        for number in (1..64).chain([u64::MAX]).filter(|number| *number != ids[0].number()) {
            assert_eq!(table.get_mut(Id::of(number).expect("it is not 0")), None, "{number}");
        }
    }

    #[test]
    fn full_table_refuses_a_value_until_one_is_removed() {
        let (mut table, ids) = table("abcd");
        assert_eq!(table.insert('e'), None);
        table.remove(ids[2]);
        assert!(table.insert('e').is_some());
        table.check();
    }

    #[test]
    fn generations_repeat_without_zero() {
        let mut table = Table::new();
        let generations: Vec<u64> = (0..9)
            .map(|_| {
                let id = table.insert('a').expect("a slot is free");
                table.remove(id);
                id.generation()
            })
            .collect();
        assert_eq!(generations, [1, 2, 3, 4, 5, 6, 7, 1, 2]);
    }

    #[test]
    fn largest_slot_and_generation_fit_an_id() {
        let id = ArrivalId::<32, 32>::new(u32::MAX, u32::MAX.into());
        assert_eq!((id.slot_index(), id.generation()), (u32::MAX as usize, u32::MAX.into()));
        let id = ArrivalId::<22, 10>::new((1 << 22) - 1, 1023);
        assert_eq!((id.number(), id.slot_index(), id.generation()), (u32::MAX.into(), (1 << 22) - 1, 1023));
    }

    #[test]
    fn cleared_table_gives_new_ids() {
        let (mut table, ids) = table("abc");
        assert_eq!(table.iter().collect::<Vec<_>>(), [(ids[0], &'a'), (ids[1], &'b'), (ids[2], &'c')]);
        table.clear();
        table.check();
        let id = table.insert('d').expect("a slot is free");
        assert!(!ids.contains(&id) && table.len() == 1);
    }

    #[test]
    fn storage_of_an_emptied_large_table_is_released() {
        let mut table = ArrivalTable::<(), 32, 32>::new();
        let ids: Vec<_> = (0..=SLOTS_KEPT).map(|_| table.insert(()).expect("a slot is free")).collect();
        ids.into_iter().for_each(|id| assert!(table.remove(id).is_some()));
        assert_eq!((table.slots.capacity(), table.free.capacity(), table.len()), (0, 0, 0));
    }
}
