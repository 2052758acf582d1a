//! Fast path of a blocking receive: spin on the transport and take the first matching message without a
//! request.
//!
//! Posted receives match first. The path is unavailable, and the caller posts a receive, when messages are
//! carried as physical ones only, when the machine is oversubscribed, when a rank has finished or failed, and
//! when the first matching message has not arrived in full.

use std::cell::Cell;

use mpjdev_buffer::Message;
use mpjdev_proto::envelope::Selector;

use crate::operation::{Accept, FastRecv};
use crate::packet::engine::{Core, PacketEngine, State};
use crate::packet::recv::UnpostedRecv;

/// Packets for other receives that are handled before the lock is released.
const OTHERS: usize = 16;

impl PacketEngine {
    /// Spins for a message and stores it in `place`. The caller posts a receive when no message was taken.
    /// The memory in `place` has no other reference; its contents are undefined after an error.
    #[inline(always)]
    pub fn try_recv_spinning(
        &self,
        selector: Selector,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
    ) -> FastRecv {
        if self.config.message_oriented || self.transport.epoch() != 0 || self.oversubscription.is_active() {
            return FastRecv::Unavailable;
        }
        let mut unposted =
            UnpostedRecv { selector, capacity, accept, place, outcome: None, must_post: Cell::new(false) };
        let mut pauses = self.config.spins;
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

    /// Whether the first matching message has not arrived in full, or is not packed though it has to be. A
    /// posted receive waits for the rest.
    fn waits_for_more(&self, state: &State, unposted: &UnpostedRecv<'_>) -> bool {
        let first = || state.recv_queue.probe(&unposted.selector);
        if self.has_remote() {
            return first().is_some_and(|(envelope, message)| {
                self.is_remote(envelope.source) && !message.is_all()
                    || unposted.accept == Accept::Packed && message.is_incomplete()
            });
        }
        state.had_packing
            && unposted.accept == Accept::Packed
            && first().is_some_and(|(_, message)| message.is_incomplete())
    }

    /// Takes the message if it has arrived.
    #[inline(always)]
    fn take_next(&self, unposted: &mut UnpostedRecv<'_>) -> FastRecv {
        let mut core = self.lock();
        let Core { packet_source, state } = &mut *core;
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
