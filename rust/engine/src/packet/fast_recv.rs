//! Fast path of a blocking receive: spin on the transport and take the first matching message without a
//! request.
//!
//! Posted receives match first. The path is unavailable, and the caller posts a receive, when messages are
//! carried as physical ones only, when the machine is oversubscribed, when a rank has finished or failed, and
//! when the first matching message has not arrived in full.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::Message;
use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::ShortTaker;
use mpjdev_transport::wait::{Backoff, Step};

use crate::operation::{Accept, FastRecv, damaged};
use crate::packet::engine::{Core, PacketEngine, State};
use crate::packet::recv::UnpostedRecv;

/// Packets for other receives that are handled before the lock is released.
const OTHERS: usize = 16;
/// Polls for a short message before the thread checks for other events.
const POLLS: u32 = 8;
/// One of this number of attempts at a short message handles the packets of all sources instead.
const SHORT_MAX: u32 = 64;

impl State {
    /// Whether a receive may take the next message of a source without the packets of others.
    #[inline(always)]
    fn takes_next(&mut self) -> bool {
        self.short_count = self.short_count.wrapping_add(1);
        !self.end.has_begun()
            && self.outbox.is_empty()
            && self.recv_queue.is_empty()
            && !self.short_count.is_multiple_of(SHORT_MAX)
    }
}

/// The destination of the octets of a short message.
enum ShortTarget<'a, 't> {
    Words(&'a [AtomicU64]),
    Taker(&'a mut ShortTaker<'t>),
}

/// Receives a short message into the memory of `message`, if `look` finds one; `None` for a wildcard.
#[inline(always)]
fn receive_short(
    selector: Selector,
    capacity: usize,
    message: &mut Message,
    look: impl FnOnce(ShortTarget<'_, '_>) -> Option<usize>,
) -> Option<FastRecv> {
    let envelope = Envelope { context: selector.context, source: selector.source?, tag: selector.tag? };
    let room = message.room().min(capacity.saturating_add(MESSAGE_OVERHEAD)) / 8;
    let len = look(ShortTarget::Words(message.first_words().get(..room)?))?;
    Some(match message.receive(len, capacity) {
        Ok(()) => FastRecv::Done(envelope),
        Err(error) => damaged(&envelope)(error).into(),
    })
}

impl PacketEngine {
    /// Spins for a message and stores it in `place`; a rank without a processor of its own yields, too. The
    /// caller posts a receive when no message was taken. The memory in `place` has no other reference; its
    /// contents are undefined after an error.
    #[inline(always)]
    pub fn try_recv_polling(
        &self,
        selector: Selector,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        spins: u32,
    ) -> FastRecv {
        let received = self.poll_spinning(selector, capacity, accept, place, spins);
        if matches!(received, FastRecv::Empty) && !self.config.leaves_processor {
            return self.poll_yielding(selector, capacity, accept, place);
        }
        received
    }

    /// Spins for a message, and then yields between polls. The caller posts a receive when the thread should
    /// sleep.
    pub(crate) fn try_recv_yielding(
        &self,
        selector: Selector,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        spins: u32,
    ) -> FastRecv {
        match self.poll_spinning(selector, capacity, accept, place, spins) {
            FastRecv::Empty => self.poll_yielding(selector, capacity, accept, place),
            received => received,
        }
    }

    /// Yields, and polls when there is news. The first poll needs none: another thread may have taken the
    /// message from its queue since the last one.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_yielding(
        &self,
        selector: Selector,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
    ) -> FastRecv {
        let mut received = FastRecv::Empty;
        let mut backoff = Backoff::after_pauses(&self.config);
        backoff.adapt_to(&self.oversubscription);
        let mut seen = None;
        while let (FastRecv::Empty, Step::Yield) = (&received, backoff.step()) {
            self.progress_for_process();
            backoff.yield_now(&self.oversubscription);
            // Mostly there is nothing, and another rank waits for this processor.
            let changes = Some(self.signals.changes());
            if self.transport.is_ready() || changes != seen || self.transport.epoch() != 0 {
                seen = changes;
                received = self.poll_spinning(selector, capacity, accept, place, 0);
            }
        }
        if matches!(received, FastRecv::Done(_)) {
            self.note_wait(&backoff);
        }
        received
    }

    #[inline(always)]
    fn poll_spinning(
        &self,
        selector: Selector,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        mut pauses: u32,
    ) -> FastRecv {
        if !self.may_spin() {
            return FastRecv::Unavailable;
        }
        if self.takes_short
            && let Some(message) = place
            && let Some(taken) =
                receive_short(selector, capacity, message, |to| self.take_short(selector, &mut pauses, to))
        {
            return taken;
        }
        let mut unposted = UnpostedRecv {
            selector,
            capacity,
            accept,
            place,
            uses_kept: false,
            outcome: None,
            must_post: Cell::new(false),
        };
        // The first poll receives at once: to ask whether a packet is ready costs as much.
        loop {
            match self.take_next(&mut unposted) {
                FastRecv::Empty => {}
                other => return other,
            }
            // Packets for other receives may arrive without end: the spins bound this loop.
            loop {
                if pauses == 0 {
                    return FastRecv::Empty;
                }
                pauses -= 1;
                if self.transport.is_ready() {
                    break;
                }
                std::hint::spin_loop();
            }
        }
    }

    /// Spins for a short message from a given source with a given tag, which goes from the queue to `take`.
    /// Returns false, with the pauses that are left, when no message has taken this path.
    #[inline(always)]
    pub(crate) fn try_recv_words(
        &self,
        selector: Selector,
        pauses: &mut u32,
        take: &mut ShortTaker<'_>,
    ) -> bool {
        self.takes_short
            && self.may_spin()
            && self.take_short(selector, pauses, ShortTarget::Taker(take)).is_some()
    }

    /// Spins for a short message from a given source with a given tag. It holds the lock, and releases it
    /// when another thread waits for it. Returns the number of octets; `None` when the message cannot take
    /// this path: `pauses` then has the pauses that are left.
    ///
    /// The next message of the source is the first match while no receive is posted and no message is
    /// unexpected.
    #[inline(always)]
    fn take_short(&self, selector: Selector, pauses: &mut u32, mut to: ShortTarget<'_, '_>) -> Option<usize> {
        let mut core = self.lock();
        // A receive that does not wait polls once.
        let polls = POLLS.min(*pauses).max(1);
        loop {
            if !self.may_take_short(&mut core.state, selector) {
                return None;
            }
            if let Some(len) = self.poll_short(&mut core, selector, polls, &mut to) {
                return Some(len);
            }
            *pauses = pauses.saturating_sub(polls);
            if *pauses == 0 || core.is_wanted() || self.transport.is_ready() {
                return None;
            }
        }
    }

    /// Whether a receive may take the next message of its source now.
    #[inline(always)]
    fn may_take_short(&self, state: &mut State, selector: Selector) -> bool {
        state.takes_next() && selector.source.is_some_and(|source| !self.is_remote(source))
    }

    /// Polls for a short message and stores it. Returns the number of octets.
    #[inline(always)]
    fn poll_short(
        &self,
        core: &mut Core,
        selector: Selector,
        polls: u32,
        to: &mut ShortTarget<'_, '_>,
    ) -> Option<usize> {
        let Core { packet_source, state } = core;
        let (source, context, tag) = (selector.source?, selector.context, selector.tag?);
        let len = match to {
            ShortTarget::Words(words) => packet_source.take_short(source, context, tag, polls, words),
            ShortTarget::Taker(take) => packet_source.take_short_with(source, context, tag, polls, take),
        }?;
        if let Some(octets) = state.credit.pass(source, len) {
            self.transport.return_credit(source, octets);
        }
        Some(len)
    }

    /// Whether a receive may take messages without a request: the engine carries whole messages, and no rank
    /// has failed or finished.
    #[inline(always)]
    fn takes_unposted(&self) -> bool {
        !self.config.message_oriented && self.transport.epoch() == 0
    }

    /// Whether a receive may spin for a message.
    #[inline(always)]
    fn may_spin(&self) -> bool {
        self.takes_unposted() && !self.must_post_at_once()
    }

    /// Whether other threads need the processor more than polling does.
    #[inline(always)]
    pub(super) fn must_post_at_once(&self) -> bool {
        self.oversubscription.is_active() && self.config.oversubscribed_spin.is_zero()
    }

    /// Whether the first matching message has not arrived in full, or is not packed though it has to be. A
    /// posted receive waits for the rest.
    fn waits_for_more(&self, state: &mut State, unposted: &UnpostedRecv<'_>) -> bool {
        let may_be_incomplete = unposted.accept == Accept::Packed && state.had_packing;
        if !self.has_remote() && !may_be_incomplete {
            return false;
        }
        let Some((envelope, message)) = state.recv_queue.probe(&unposted.selector) else { return false };
        self.is_remote(envelope.source) && !message.is_all()
            || unposted.accept == Accept::Packed && message.is_incomplete()
    }

    /// Takes the message of a receive that would be posted, if it has arrived in full. Packets behind it stay
    /// where they are, so the next receive takes its message in the same way. `uses_kept` states whether the
    /// message may use a kept slab.
    #[inline(always)]
    pub(crate) fn take_arrived(
        &self,
        core: &mut Core,
        selector: Selector,
        capacity: usize,
        place: &mut Option<Message>,
        uses_kept: bool,
    ) -> FastRecv {
        if !self.takes_unposted() {
            return FastRecv::Unavailable;
        }
        self.take_next_locked(
            core,
            &mut UnpostedRecv {
                selector,
                capacity,
                accept: Accept::Packed,
                place,
                uses_kept,
                outcome: None,
                must_post: Cell::new(false),
            },
        )
    }

    /// As [`take_arrived`](Self::take_arrived), with one look at the next short message of the source first.
    #[inline(always)]
    pub(crate) fn take_arrived_into(
        &self,
        core: &mut Core,
        selector: Selector,
        capacity: usize,
        place: &mut Option<Message>,
    ) -> FastRecv {
        if self.takes_short
            && self.takes_unposted()
            && let Some(message) = place
            && let Some(taken) = receive_short(selector, capacity, message, |mut to| {
                let may_take = self.may_take_short(&mut core.state, selector);
                may_take.then(|| self.poll_short(core, selector, 1, &mut to))?
            })
        {
            return taken;
        }
        self.take_arrived(core, selector, capacity, place, false)
    }

    /// Takes the message if it has arrived.
    #[inline(always)]
    fn take_next(&self, unposted: &mut UnpostedRecv<'_>) -> FastRecv {
        self.take_next_locked(&mut self.lock(), unposted)
    }

    #[inline(always)]
    fn take_next_locked(&self, core: &mut Core, unposted: &mut UnpostedRecv<'_>) -> FastRecv {
        let Core { packet_source, state } = core;
        if state.end.has_begun() {
            return FastRecv::Unavailable;
        }
        self.transport.heartbeat();
        if !state.outbox.is_empty() {
            self.flush(state);
        }
        if state.recv_queue.unexpected_len() > 0 && self.waits_for_more(state, unposted) {
            return FastRecv::Unavailable;
        }
        if state.recv_queue.unexpected_len() > 0
            && let Some((envelope, message)) = state.recv_queue.take(&unposted.selector)
        {
            unposted.take(self.take_unexpected(state, envelope, *message, 0), envelope);
        }
        for _ in 0..OTHERS {
            if let Some(taken) = unposted.outcome.take() {
                return taken;
            }
            let received = packet_source.receive(1, &mut |source, header, body| {
                self.handle_packet(state, source, header, body, Some(&mut *unposted))
            });
            if unposted.must_post.get() {
                return FastRecv::Unavailable;
            }
            if received == 0 {
                break;
            }
        }
        unposted.outcome.take().unwrap_or(FastRecv::Empty)
    }
}
