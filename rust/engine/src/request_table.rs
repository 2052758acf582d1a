//! Table of the requests of a rank, for either engine.

use crate::request::RequestId;

/// Requests in slots that are used again, each request under an id of its own.
///
/// Invariant: a slot is empty if and only if it is listed as free, once.
#[derive(Debug)]
pub(crate) struct RequestTable<R> {
    slots: Vec<Slot<R>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<R> {
    /// The number of requests that have left the slot.
    generation: u32,
    request: Option<R>,
}

impl<R> Default for RequestTable<R> {
    fn default() -> Self {
        RequestTable { slots: Vec::new(), free: Vec::new() }
    }
}

impl<R> RequestTable<R> {
    pub(crate) fn add(&mut self, request: R) -> RequestId {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.request = Some(request);
            return RequestId::new(index, slot.generation);
        }
        self.slots.push(Slot { generation: 0, request: Some(request) });
        RequestId::new(self.slots.len() as u32 - 1, 0)
    }

    pub(crate) fn get(&mut self, id: RequestId) -> Option<&mut R> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation == id.generation() { slot.request.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<R> {
        let slot = self.slots.get_mut(id.index()).filter(|slot| slot.generation == id.generation())?;
        let request = slot.request.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index() as u32);
        Some(request)
    }

    /// Removes a request and drops it in its slot: a long one is not copied.
    pub(crate) fn discard(&mut self, id: RequestId) {
        if let Some(slot) = self.slots.get_mut(id.index()).filter(|slot| slot.generation == id.generation())
            && slot.request.is_some()
        {
            slot.request = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(id.index() as u32);
        }
    }

    /// Number of requests.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Number of slots, which never falls.
    #[cfg(not(loom))]
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The request in a slot.
    #[cfg(not(loom))]
    pub(crate) fn in_slot(&mut self, index: usize) -> Option<(RequestId, &mut R)> {
        let Slot { generation, request } = self.slots.get_mut(index)?;
        let id = RequestId::new(index as u32, *generation);
        request.as_mut().map(|request| (id, request))
    }

    /// All requests. Visits each slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &R)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let request = slot.request.as_ref()?;
            Some((RequestId::new(index as u32, slot.generation), request))
        })
    }

    /// A table of the requests that `map` makes of these, under their ids.
    #[cfg(not(loom))]
    pub(crate) fn filter_map<S>(&self, map: impl Fn(&R) -> Option<S>) -> RequestTable<S> {
        let slot = |slot: &Slot<R>| Slot {
            generation: slot.generation,
            request: slot.request.as_ref().and_then(&map),
        };
        let slots: Vec<Slot<S>> = self.slots.iter().map(slot).collect();
        let free = (0..).zip(&slots).filter(|(_, slot)| slot.request.is_none());
        RequestTable { free: free.map(|(index, _)| index).collect(), slots }
    }

    /// Panics when the invariant does not hold.
    #[cfg(all(test, not(loom)))]
    fn check(&self) {
        let mut free = self.free.clone();
        free.sort_unstable();
        let empty = (0..).zip(&self.slots).filter(|(_, slot)| slot.request.is_none());
        assert_eq!(free, empty.map(|(index, _)| index).collect::<Vec<u32>>());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn id_of_a_removed_request_finds_no_later_request_of_its_slot() {
        let mut table = RequestTable::default();
        let first = table.add("first");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.add("second");
        assert_eq!((first.index(), table.slot_count()), (second.index(), 1));
        assert!(table.get(first).is_none() && table.remove(first).is_none());
        assert_eq!(table.get(second), Some(&mut "second"));
        assert_eq!(table.get(RequestId::from(u64::MAX)), None);
        table.check();
    }

    #[test]
    fn discarded_request_is_dropped_once_and_its_id_finds_nothing() {
        let (mut table, counted) = (RequestTable::default(), std::rc::Rc::new(()));
        let first = table.add(counted.clone());
        table.discard(first);
        assert_eq!((std::rc::Rc::strong_count(&counted), table.len()), (1, 0));
        let second = table.add(counted.clone());
        table.discard(first);
        assert!(table.get(first).is_none() && table.get(second).is_some());
        assert_eq!((std::rc::Rc::strong_count(&counted), second.index()), (2, first.index()));
        table.check();
    }

    #[test]
    fn filtered_table_keeps_ids_and_reuses_the_other_slots() {
        let mut table = RequestTable::default();
        let ids: Vec<RequestId> = (0..4).map(|number| table.add(number)).collect();
        table.remove(ids[1]);
        let mut kept = table.filter_map(|number| (number % 2 == 0).then_some(number * 10));
        kept.check();
        assert_eq!((kept.len(), kept.get(ids[2])), (2, Some(&mut 20)));
        assert_eq!(kept.get(ids[3]), None);
        assert_eq!(kept.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 20]);
        let added = [kept.add(1), kept.add(2)];
        assert!(added.iter().all(|id| !ids.contains(id) || *id == ids[3]));
        assert_eq!(kept.slot_count(), 4);
        kept.check();
    }

    #[test]
    fn table_and_list_have_the_same_requests_in_random_steps() {
        let mut table = RequestTable::default();
        let mut model: Vec<(RequestId, u64)> = Vec::new();
        let mut seed = 7u64;
        for step in 0..10_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 33 & 1 == 0 || model.is_empty() {
                let id = table.add(step);
                assert!(model.iter().all(|(other, _)| *other != id), "an id was used twice");
                model.push((id, step));
            } else {
                let (id, value) = model.swap_remove((seed >> 40) as usize % model.len());
                assert_eq!(table.remove(id), Some(value));
            }
            assert_eq!(table.len(), model.len());
        }
        assert!(model.iter().all(|(id, value)| table.get(*id) == Some(&mut value.clone())));
        assert!(table.iter().all(|(id, value)| model.contains(&(id, *value))));
        let filled = (0..table.slot_count()).filter(|at| table.in_slot(*at).is_some());
        assert_eq!(filled.count(), model.len());
        table.check();
    }
}
