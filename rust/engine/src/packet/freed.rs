//! Freed communicators: messages that no receive has taken are dropped, both unexpected ones and later
//! arrivals.
//!
//! A dropped message counts as received: its memory and credit return to its sender, and a synchronous send
//! is complete. So a sender never waits for a receive that cannot be posted any more. Posted receives still
//! get their messages first.
//!
//! A rank may get messages of a communicator before it has completed the creation itself. Only contexts that
//! were freed here are dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_proto::context::{WORLD, communicator, is_internal, is_shadow, kinds, shadow};
use mpjdev_proto::envelope::Envelope;
use mpjdev_transport::Incoming;

use crate::error::DeviceError;
use crate::packet::credit::CreditCharge;
use crate::packet::engine::{PacketEngine, State};
use crate::packet::partial_recv::Completion;
use crate::packet::unexpected::Unexpected;

/// The freed communicators of a rank.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// Contexts of programs' messages, and those of collective operations, which end with the last reference.
    contexts: [mpjdev_proto::freed::FreedContexts; 2],
    /// Contexts of freed communicators with second halves that were kept.
    kept: BTreeSet<u64>,
}

impl Freed {
    fn contains(&self, context: u64) -> bool {
        self.contexts[usize::from(is_internal(context))].contains(context)
    }

    fn insert(&mut self, context: u64, is_last: bool) {
        self.contexts[0].insert(context);
        if is_last {
            self.contexts[1].insert(context);
        }
    }
}

impl State {
    /// Whether a message that no posted receive takes is dropped.
    #[inline]
    pub(crate) fn is_freed(&mut self, envelope: &Envelope) -> bool {
        communicator(envelope.context) != WORLD && self.must_drop(envelope)
    }

    fn must_drop(&mut self, envelope: &Envelope) -> bool {
        if self.finished || !self.freed.contains(envelope.context) {
            return false;
        }
        let keeps = is_shadow(envelope.context) && self.awaits_second(envelope);
        if keeps {
            self.freed.kept.insert(envelope.context);
        }
        !keeps
    }

    /// Whether this may be the second half of a message that a receive has in part.
    fn awaits_second(&self, second: &Envelope) -> bool {
        let is_first =
            |first: &Envelope| (first.source, shadow(first.context)) == (second.source, second.context);
        self.rendezvous
            .iter()
            .any(|pending| matches!(&pending.completion, Completion::Receive(_, first) if is_first(first)))
    }
}

impl PacketEngine {
    /// Checks that this rank has not freed a communicator.
    ///
    /// # Errors
    /// It has freed the communicator.
    #[inline]
    pub(crate) fn check_kept(&self, state: &State, context: u64) -> Result<(), DeviceError> {
        match context != WORLD && state.freed.contains(context) {
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
        if !core.state.finished {
            self.poll_packets(&mut core);
        }
        core.state.freed.insert(context, is_last);
        for kind in kinds(context) {
            self.drop_freed(&mut core.state, kind);
        }
        // A thread that probes the communicator has nothing to wait for any more.
        self.note_unexpected(&mut core.state);
    }

    /// Drops the unexpected messages in a context of a freed communicator.
    fn drop_freed(&self, state: &mut State, context: u64) {
        if !state.freed.contains(context) {
            return;
        }
        let mut kept = Vec::new();
        if is_shadow(context) {
            let here = state.matcher.unexpected_in(context).map(|(envelope, _)| envelope);
            kept.extend(here.filter(|envelope| state.awaits_second(envelope)));
        }
        if !kept.is_empty() {
            state.freed.kept.insert(context);
        }
        let dropped = state.matcher.remove_unexpected_in(context, |envelope, _| !kept.contains(envelope));
        for (envelope, message) in dropped {
            self.drop_unexpected(state, envelope, *message);
        }
    }

    fn drop_unexpected(&self, state: &mut State, envelope: Envelope, message: Unexpected) {
        // A finished rank sends no match acks.
        if !state.finished {
            state.unreceived.add(&envelope, message.payload_len());
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
        state.unreceived.add(envelope, len.saturating_sub(MESSAGE_OVERHEAD));
        drop(body);
        self.acknowledge(state, envelope.source, charge, 0);
    }

    /// Drops second halves that were kept for a first half which has arrived in full or was given up.
    #[inline]
    pub(crate) fn drop_kept_halves(&self, state: &mut State) {
        if !state.freed.kept.is_empty() {
            for context in std::mem::take(&mut state.freed.kept) {
                self.drop_freed(state, context);
            }
        }
    }
}

/// A rank's membership in a communicator other than the world. Dropping the last reference frees the
/// communicator.
#[derive(Debug)]
pub(crate) struct Membership {
    endpoint: Arc<PacketEngine>,
    context: u64,
}

impl Membership {
    pub(crate) fn new(endpoint: Arc<PacketEngine>, context: u64) -> Arc<Membership> {
        Arc::new(Membership { endpoint, context })
    }

    /// Frees the communicator while references remain.
    pub(crate) fn free(&self) {
        self.endpoint.free_context(self.context, false);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.endpoint.free_context(self.context, true);
    }
}
