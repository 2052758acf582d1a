//! State of a communicator between its collective operations.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_schedule::{Placement, Schedule, UniformCall};
use mpjdev_sys::sync::{LockRank, Mutex};
use mpjdev_transport::config::INLINE_MAX;
use mpjdev_transport::pool::HeapPool;

use crate::exchanges::Exchanges;

/// Slabs that are kept: one to send and one to receive.
const KEPT_MAX: usize = 2;
/// Steps and blocks of the longest schedule that is kept.
const SCHEDULE_MAX: usize = 64;

/// The number of operations with data, memory of short messages, and the last schedule.
#[derive(Debug)]
pub(crate) struct CollectiveState {
    /// Number of operations with data that have begun, which all members count alike.
    operations: AtomicU32,
    /// Memory of the heap, which does not keep the rank's pool in use.
    heap: Arc<HeapPool>,
    /// A slab is used again when no message refers to it.
    kept: Mutex<[Option<Slab>; KEPT_MAX]>,
    placement: OnceLock<Placement>,
    /// The schedule of the last call: programs repeat their calls.
    schedule: Mutex<Option<Box<KeptSchedule>>>,
    /// The exchanges in slots, from the first one on; `None` without slots.
    exchanges: OnceLock<Option<Exchanges>>,
}

/// A call, and its schedule for this rank.
#[derive(Debug)]
pub(crate) struct KeptSchedule {
    pub(crate) call: UniformCall,
    pub(crate) schedule: Schedule,
}

enum Reuse {
    /// No message refers to this slab.
    Kept(Slab),
    /// A further slab may be kept.
    Room,
    /// Messages refer to all slabs.
    None,
}

impl Default for CollectiveState {
    fn default() -> Self {
        CollectiveState {
            operations: AtomicU32::new(0),
            heap: HeapPool::new(u64::MAX),
            kept: Mutex::new(LockRank::Leaf, [const { None }; KEPT_MAX]),
            placement: OnceLock::new(),
            schedule: Mutex::new(LockRank::Leaf, None),
            exchanges: OnceLock::new(),
        }
    }
}

impl CollectiveState {
    /// The number of the operation with data that begins.
    pub(crate) fn next_operation(&self) -> u32 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// The places of the members; `find` finds them once.
    pub(crate) fn placement(&self, find: impl FnOnce() -> Placement) -> &Placement {
        self.placement.get_or_init(find)
    }

    /// The exchanges in slots; `begin` decides once whether there are any.
    pub(crate) fn exchanges(&self, begin: impl FnOnce() -> Option<Exchanges>) -> Option<&Exchanges> {
        self.exchanges.get_or_init(begin).as_ref()
    }

    /// Takes the last call, if it was an equal one.
    pub(crate) fn take_schedule(&self, call: &UniformCall) -> Option<Box<KeptSchedule>> {
        self.schedule.lock().take_if(|kept| kept.call == *call)
    }

    /// Keeps the schedule of a call for the next one, unless it is long.
    pub(crate) fn keep_schedule(&self, kept: Box<KeptSchedule>) {
        let Schedule { steps, input, output, .. } = &kept.schedule;
        if steps.len().max(input.len()).max(output.len()) <= SCHEDULE_MAX {
            *self.schedule.lock() = Some(kept);
        }
    }

    /// Memory for a short message, from `source` if older messages refer to the kept slabs. `None` if there
    /// is none.
    pub(crate) fn take_short_memory(&self, source: &dyn SlabSource) -> Option<Message> {
        let slab = match self.reuse() {
            Reuse::Kept(slab) => slab,
            Reuse::None => source.take(INLINE_MAX).ok()?,
            Reuse::Room => {
                let slab = self.heap.take_arrived(INLINE_MAX).ok()?;
                let mut kept = self.kept.lock();
                if let Some(place) = kept.iter_mut().find(|place| place.is_none()) {
                    *place = Some(slab.clone());
                }
                slab
            }
        };
        Some(Message::from_empty_slab(slab))
    }

    fn reuse(&self) -> Reuse {
        let kept = self.kept.lock();
        match kept.iter().find(|place| place.as_ref().is_none_or(Slab::is_exclusive)) {
            Some(Some(slab)) => Reuse::Kept(slab.clone()),
            Some(None) => Reuse::Room,
            None => Reuse::None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use mpjdev_schedule::{Call, Choices, Group};
    use mpjdev_transport::pool::HeapPool;

    use super::*;

    fn words_of(message: &Message) -> *const std::sync::atomic::AtomicU64 {
        message.first_slab().words().as_ptr()
    }

    #[test]
    fn memory_of_a_dropped_message_is_used_again() {
        let (state, pool) = (CollectiveState::default(), HeapPool::new(1 << 20));
        let take = || state.take_short_memory(&*pool).expect("memory");
        let messages = [take(), take(), take()];
        let first = messages.each_ref().map(words_of);
        drop(messages);
        let [again, other] = [take(), take()];
        assert_eq!([words_of(&again), words_of(&other)], [first[0], first[1]]);
        assert_eq!(pool.used(), 0, "the third message was in memory of the pool");
    }

    #[test]
    fn memory_of_a_message_with_another_reference_is_not_used() {
        let (state, pool) = (CollectiveState::default(), HeapPool::new(1 << 20));
        let message = state.take_short_memory(&*pool).expect("memory");
        let other = message.clone();
        let words = words_of(&message);
        drop(message);
        assert_ne!(words_of(&state.take_short_memory(&*pool).expect("memory")), words);
        drop(other);
    }

    fn kept(root: u32, size: u32) -> Box<KeptSchedule> {
        let call = UniformCall { call: Call::Gather { root }, count: 1, element_len: 1 };
        let schedule = call.schedule(Group { rank: 0, size }, &Choices::default());
        Box::new(KeptSchedule { call, schedule })
    }

    #[test]
    fn schedule_is_kept_for_an_equal_call_unless_it_is_long() {
        let state = CollectiveState::default();
        let (first, other) = (kept(0, 4), kept(1, 4));
        let (call, schedule) = (first.call, first.schedule.clone());
        state.keep_schedule(first);
        assert!(state.take_schedule(&other.call).is_none());
        assert_eq!(state.take_schedule(&call).map(|kept| kept.schedule), Some(schedule));
        assert!(state.take_schedule(&call).is_none(), "an operation in progress has it");
        state.keep_schedule(kept(0, SCHEDULE_MAX as u32 + 1));
        assert!(state.take_schedule(&call).is_none());
    }
}
