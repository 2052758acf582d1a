//! Message memory that each thread keeps for messages between arrays.
//!
//! It is taken once and used for message after message, as the memory of a buffer is. A thread that idles
//! would keep the memory of a finished rank, so the end of a rank takes it away.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_buffer::{Message, Slab, SlabError, SlabSource};
use mpjdev_engine::config::INLINE_MAX;
use mpjdev_engine::thread_cache::{CacheGuard, ThreadCache, ThreadCaches};

use super::memory::{Current, IS_SHARED, session};

/// Larger memory returns to its pool after the message: a copy of that length takes much longer than a visit
/// of the pool.
const KEPT_MAX: usize = 32 << 10;
/// Memories that are kept for posted receives, and the longest of them.
const SPARES: usize = 64;
const SPARE_MAX: usize = 2 * INLINE_MAX;

/// The message memory of one thread. It is of one session of the process.
#[derive(Debug, Default)]
pub(crate) struct ThreadMemory {
    source: Current,
    /// The last message that was sent inline: its receivers have copied it.
    short: Option<Message>,
    /// The last longer one. Its receiver may still refer to it.
    long: Option<Message>,
    /// The last message that was received. It has no other reference.
    recv_target: Option<Message>,
    /// Memory for posted receives: a window of them begins before the first one ends.
    spares: Vec<Slab>,
}

static ALL: ThreadCaches<RefCell<ThreadMemory>> = ThreadCaches::new();

thread_local! {
    static OWN: ThreadCache<'static, RefCell<ThreadMemory>> = const { ThreadCache::new(&ALL) };
}

/// The key of the memory of a session.
fn key(session: u32) -> u64 {
    u64::from(session) + 1
}

/// Uses the memory of the calling thread, which must not wait meanwhile.
#[inline(always)]
pub(crate) fn with_memory<R>(f: impl FnOnce(&mut ThreadMemory) -> R) -> R {
    OWN.with(|own| {
        let session = session();
        let kept = own.with_key(key(session)).or_else(|| renew(own, session));
        // Without kept memory it is in use further up the stack, or the session has just ended.
        let mut otherwise = None;
        let memory: &RefCell<ThreadMemory> = match &kept {
            Some(kept) => kept,
            None => otherwise.insert(RefCell::default()),
        };
        f(&mut memory.borrow_mut())
    })
}

#[cold]
fn renew<'a>(
    own: &'a ThreadCache<'static, RefCell<ThreadMemory>>,
    then: u32,
) -> Option<CacheGuard<'a, RefCell<ThreadMemory>>> {
    own.store(key(then), RefCell::default());
    // The thread that has ended the session may not have seen this memory.
    if session() != then {
        own.forget();
    }
    own.with_key(key(then))
}

/// Takes away the memory of all threads.
pub(super) fn take_all() {
    ALL.take(|key| key != 0);
}

impl ThreadMemory {
    /// Memory for a message of `len` octets, without another reference.
    ///
    /// # Errors
    /// No memory.
    #[inline(always)]
    pub(crate) fn outgoing(&mut self, len: usize) -> Result<&mut Message, SlabError> {
        let is_short = len <= INLINE_MAX;
        let slot = if is_short { &mut self.short } else { &mut self.long };
        let fits = |message: &Message| {
            let slab = message.first_slab();
            // A receiver is charged the memory that a message occupies.
            let is_dense = is_short || slab.len() / 2 <= len;
            slab.len() >= len
                && is_dense
                && slab.is_exclusive()
                && !(slab.is_private() && IS_SHARED.load(Relaxed))
        };
        if !is_short {
            // It is packed next.
            mpjdev_profile::take_time();
        }
        if !slot.as_ref().is_some_and(fits) {
            refill(slot, &self.source, len.max(INLINE_MAX))?;
        }
        let Some(message) = slot else { unreachable!("filled") };
        Ok(message)
    }

    /// Releases the memory of a long message that was sent.
    #[inline]
    pub(crate) fn release_long(&mut self) {
        if self.long.as_ref().is_some_and(|message| message.room() > KEPT_MAX) {
            self.long = None;
        }
    }

    /// The place for a message that is received: empty, or memory without another reference.
    #[inline(always)]
    pub(crate) fn recv_target(&mut self) -> &mut Option<Message> {
        &mut self.recv_target
    }

    /// As [`recv_target`](Self::recv_target), from the memory for posted receives when there is none.
    #[inline(always)]
    pub(crate) fn irecv_target(&mut self) -> &mut Option<Message> {
        if self.recv_target.is_none() {
            self.recv_target = self.spares.pop().map(Message::from_empty_slab);
        }
        &mut self.recv_target
    }

    /// Releases a message that was received, unless its memory can take the next one.
    #[inline(always)]
    pub(crate) fn release_recv_target(&mut self) {
        if self.recv_target.as_ref().is_some_and(|message| !is_kept(message)) {
            self.recv_target = None;
        }
    }

    /// Memory for a receive that waits.
    pub(crate) fn take_spare(&mut self) -> Option<Slab> {
        self.spares.pop().or_else(|| self.recv_target.take().map(Message::into_slab))
    }

    /// Keeps the memory of a received message for the next one, if it can take that. Otherwise the memory
    /// that is kept already stays.
    pub(crate) fn keep(&mut self, message: Message) {
        if !is_kept(&message) {
            return;
        }
        let before = self.recv_target.replace(message).filter(|before| before.room() <= SPARE_MAX);
        if let Some(before) = before.filter(|_| self.spares.len() < SPARES) {
            self.spares.push(before.into_slab());
        }
    }
}

/// Whether the memory of a received message is kept.
#[inline(always)]
fn is_kept(message: &Message) -> bool {
    message.room() <= KEPT_MAX && message.secondary_len() == 0 && message.first_slab().is_exclusive()
}

#[cold]
fn refill(slot: &mut Option<Message>, source: &Current, len: usize) -> Result<(), SlabError> {
    // Before the pool is asked: it may have no more.
    *slot = None;
    *slot = Some(Message::from_empty_slab(source.take(len)?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use mpjdev_bootstrap::job;
    use mpjdev_buffer::layout::{CAPACITY_MAX, MESSAGE_OVERHEAD};
    use mpjdev_buffer::{SectionHeader, Type, sole_section};
    use mpjdev_engine::{Accept, Comm, Config, Mode, RecvFrom, Uninterruptible};

    use super::super::private;
    use super::*;

    impl ThreadMemory {
        fn slab(&mut self, len: usize) -> Slab {
            self.outgoing(len).expect("memory").first_slab().clone()
        }

        fn address(&mut self, len: usize) -> usize {
            self.slab(len).words().as_ptr().addr()
        }
    }

    #[test]
    fn memory_is_used_again_when_no_receiver_refers_to_it() {
        let mut memory = ThreadMemory::default();
        let (short, long) = (memory.address(8), memory.address(5000));
        assert_eq!((memory.address(INLINE_MAX), memory.address(4000)), (short, long));
        let held = memory.slab(5000);
        assert_ne!(memory.address(5000), held.words().as_ptr().addr(), "a receiver reads it");
        assert_eq!(memory.address(8), short);
    }

    #[test]
    fn memory_of_a_long_message_is_not_kept() {
        let mut memory = ThreadMemory::default();
        let long = memory.slab(KEPT_MAX + 1);
        memory.release_long();
        assert!(long.is_exclusive());
        memory.keep(Message::from_empty_slab(long));
        assert!(memory.take_spare().is_none());
    }

    #[test]
    fn memory_with_another_reference_is_not_received_into() {
        let mut memory = ThreadMemory::default();
        let held = ThreadMemory::default().slab(100);
        memory.keep(Message::from_empty_slab(held.clone()));
        assert!(memory.take_spare().is_none());
        memory.keep(Message::from_empty_slab(held));
        assert!(memory.take_spare().is_some(), "the last reference");
    }

    /// Receives as a receive into an array does: at once, or after a wait on a busy machine.
    fn receive(memory: &mut ThreadMemory, comm: &Comm) -> usize {
        let from = RecvFrom { source: Some(0), tag: Some(1) };
        let target = memory.recv_target();
        let received = comm.try_recv_polling(from, CAPACITY_MAX, Accept::Packed, target, comm.config().spins);
        memory.release_recv_target();
        let fast = match received {
            Ok(status) => return status.size,
            Err(fast) => fast,
        };
        let spare = memory.take_spare();
        let received =
            comm.recv_posted(fast, from, CAPACITY_MAX, Accept::Packed, spare, &mut Uninterruptible);
        let (status, message) = received.expect("a message");
        memory.keep(message);
        status.size
    }

    #[test]
    fn long_messages_leave_three_slabs_of_32_kib_at_most() {
        let worlds = job::local(2, Config::default(), &private());
        let (mut sender, mut receiver) = (ThreadMemory::default(), ThreadMemory::default());
        for count in [8, KEPT_MAX / 2, 1 << 20, 8, 1 << 20, 3000, KEPT_MAX, 8] {
            let section = SectionHeader { element: Type::Byte, count };
            let size = sole_section::primary_len(section).expect("it fits");
            let message = sender.outgoing(MESSAGE_OVERHEAD + size).expect("memory");
            message.write_sole_section(section, |_| Ok::<_, SlabError>(())).expect("nothing fails");
            worlds[0].isend(message, 1, 1, Mode::Standard).expect("sent");
            sender.release_long();
            assert_eq!(receive(&mut receiver, &worlds[1]), size);
            for memory in [&sender, &receiver] {
                let kept = [&memory.short, &memory.long, &memory.recv_target]
                    .map(|slab| slab.as_ref().map_or(0, Message::room));
                assert!(kept.iter().all(|room| *room <= KEPT_MAX), "{kept:?} after {count} octets");
            }
        }
    }

    #[test]
    fn recv_target_outlives_a_long_message_that_was_waited_for() {
        let mut memory = ThreadMemory::default();
        let short = ThreadMemory::default().slab(100);
        let address = short.words().as_ptr().addr();
        memory.keep(Message::from_empty_slab(short));
        let long = ThreadMemory::default().slab(1 << 20);
        memory.keep(Message::from_empty_slab(long));
        let spare = memory.take_spare().expect("the short one");
        assert_eq!(spare.words().as_ptr().addr(), address);
    }

    #[test]
    fn memory_of_a_window_of_short_messages_is_kept_for_the_next_window() {
        let mut memory = ThreadMemory::default();
        for _ in 0..2 * SPARES {
            let slab = ThreadMemory::default().slab(8);
            memory.keep(Message::from_empty_slab(slab));
        }
        let spares: Vec<Slab> = std::iter::from_fn(|| memory.take_spare()).collect();
        assert_eq!(spares.len(), SPARES + 1);
        assert!(spares.iter().all(Slab::is_exclusive));
    }

    #[test]
    fn end_of_a_rank_takes_the_memory_of_idle_threads() {
        let (kept, idle) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let held = with_memory(|memory| memory.slab(8));
                kept.wait();
                idle.wait();
                held.is_exclusive()
            });
            kept.wait();
            take_all();
            idle.wait();
            assert!(thread.join().expect("no panic"), "the cache still has it");
        });
    }

    #[test]
    fn nested_use_has_memory_of_its_own() {
        with_memory(|outer| {
            let outer = outer.address(8);
            assert_ne!(with_memory(|inner| inner.address(8)), outer);
        });
    }
}
