//! Freed communicators: messages that no receive has taken are dropped, both unexpected ones and later
//! arrivals.
//!
//! A dropped message counts as received: its memory and credit return to its sender, and a synchronous send
//! is complete. So a sender never waits for a receive that cannot be posted any more. Posted receives still
//! get their messages first.
//!
//! A rank may get messages of a communicator before it has completed the creation itself. Only contexts that
//! were freed here are dropped.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_proto::context::{WORLD, communicator, kinds};
use mpjdev_proto::envelope::Envelope;
use mpjdev_transport::Incoming;

use crate::error::DeviceError;
use crate::packet::credit::CreditCharge;
use crate::packet::engine::{PacketEngine, State};
use crate::packet::unexpected::Unexpected;

impl State {
    /// Whether a message that no posted receive takes is dropped.
    #[inline]
    pub(crate) fn must_drop(&mut self, envelope: &Envelope) -> bool {
        communicator(envelope.context) != WORLD
            && !self.end.has_begun()
            && self.recv_queue.must_drop(envelope)
    }
}

impl PacketEngine {
    /// Checks that this rank has not freed a communicator.
    ///
    /// # Errors
    /// It has freed the communicator.
    #[inline]
    pub(crate) fn check_kept(&self, state: &State, context: u64) -> Result<(), DeviceError> {
        match context != WORLD && state.recv_queue.is_freed(context) {
            true => Err(DeviceError::Freed),
            false => Ok(()),
        }
    }

    /// Frees a communicator, given by its own context. Running collective operations end first: their
    /// messages are dropped when the last reference is dropped.
    pub(crate) fn free_context(&self, context: u64, is_last: bool) {
        if context == WORLD {
            return;
        }
        let mut core = self.lock();
        if !core.state.end.has_begun() {
            self.poll_packets(&mut core);
        }
        core.state.recv_queue.free(context, is_last);
        for kind in kinds(context) {
            self.drop_freed(&mut core.state, kind);
        }
        // A thread that probes the communicator has nothing to wait for any more.
        self.notify_observers(&mut core.state);
    }

    /// Drops the unexpected messages in a context of a freed communicator.
    fn drop_freed(&self, state: &mut State, context: u64) {
        for (envelope, message) in state.recv_queue.take_freed(context) {
            self.drop_unexpected(state, envelope, *message);
        }
    }

    fn drop_unexpected(&self, state: &mut State, envelope: Envelope, message: Unexpected) {
        // A finished rank sends no match acks.
        if !state.end.has_begun() {
            state.end.add_unreceived(&envelope, message.payload_len());
            drop(self.take_unexpected(state, envelope, message, 0));
        }
    }

    /// Drops an arriving message.
    #[cold]
    pub(crate) fn drop_arrived(
        &self,
        state: &mut State,
        envelope: &Envelope,
        body: Incoming<'_>,
        charge: &CreditCharge,
    ) {
        let len = match &body {
            Incoming::Inline(_, len) => *len,
            Incoming::Reference(payload) => payload.len(),
            Incoming::Nothing | Incoming::Lost(_) => 0,
        };
        state.end.add_unreceived(envelope, len.saturating_sub(MESSAGE_OVERHEAD));
        drop(body);
        self.acknowledge(state, envelope.source, charge, 0);
    }

    /// Drops second halves that were kept for a first half which has arrived in full or was abandoned.
    #[inline]
    pub(crate) fn drop_kept_halves(&self, state: &mut State) {
        for context in state.recv_queue.take_kept() {
            self.drop_freed(state, context);
        }
    }
}
