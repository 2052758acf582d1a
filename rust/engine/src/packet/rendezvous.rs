//! Pending rendezvous: messages that are matched and have arrived in part, and their completion.

use mpjdev_buffer::SlabError;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::{Incoming, Payload, ProtocolViolation};
use tracing::debug;

use crate::packet::endpoint::{Endpoint, State};
use crate::packet::requests::RequestId;
use crate::packet::split::Half;

/// A matched message whose rest is still to arrive.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) source: u32,
    /// The token of its first packet.
    pub(crate) token: u64,
    pub(crate) then: Then,
}

/// The receive that takes the message.
#[derive(Debug)]
pub(crate) enum Then {
    /// A receive that takes it as its only or its first physical message.
    Receive(RequestId, Envelope),
    /// A receive that takes it as its second half.
    Half(Box<Half>),
}

impl Begun {
    pub(crate) fn request(&self) -> RequestId {
        match &self.then {
            Then::Receive(request, _) => *request,
            Then::Half(half) => half.request,
        }
    }

    /// The request and the envelope that it still waits for.
    pub(crate) fn waits_for(&self) -> (RequestId, Selector) {
        match &self.then {
            Then::Receive(request, envelope) => (*request, Selector::from(*envelope)),
            Then::Half(half) => half.waits_for(),
        }
    }
}

impl Endpoint {
    /// Handles the rest of a message that had arrived in part. A rest without a pending message is dropped.
    ///
    /// # Errors
    /// None at present.
    pub(crate) fn arrive_rest(
        &self,
        state: &mut State,
        source: u32,
        token: u64,
        body: Incoming<'_>,
    ) -> Result<(), ProtocolViolation> {
        let at = state.begun.iter().position(|begun| begun.source == source && begun.token == token);
        // The receive may have been given up meanwhile.
        let Some(at) = at else { return Ok(()) };
        let begun = state.begun.swap_remove(at);
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "rest of a message has arrived");
        let payload: Result<Payload, SlabError> = self.keep(body, None);
        match begun.then {
            Then::Receive(request, envelope) => {
                let was_undecided = state.note_decided(&envelope, token);
                self.deliver(state, request, envelope, payload, token);
                if was_undecided {
                    self.release_held(state, source, envelope.context);
                }
            }
            Then::Half(half) => self.join(state, *half, payload, token),
        }
        self.drop_kept_halves(state);
        Ok(())
    }

    /// Drops an unexpected or deferred message that its sender has withdrawn, and releases its charge.
    pub(crate) fn arrive_withdrawal(&self, state: &mut State, source: u32, token: u64) {
        let withdrawn = state.matcher.remove_unexpected(|envelope, message| {
            envelope.source == source && message.token() == Some(token)
        });
        let withdrawn = withdrawn.into_iter().map(|(_, message)| message);
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "sender has cancelled a message");
        for message in withdrawn.chain(state.take_held_token(source, token)).collect::<Vec<_>>() {
            self.settle(state, source, message.charge());
        }
    }
}
