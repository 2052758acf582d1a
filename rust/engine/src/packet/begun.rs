//! Messages that are matched while only their beginning is here: what is done with them when the rest has come.

use mpjdev_buffer::SlabError;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::{Incoming, NotAllowed, Payload};

use crate::packet::endpoint::{Endpoint, State};
use crate::packet::pairing::Half;
use crate::packet::requests::RequestId;

/// A message that is matched and under way.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) source: u32,
    /// What its beginning was numbered with.
    pub(crate) token: u64,
    pub(crate) then: Then,
}

/// Whose message it is.
#[derive(Debug)]
pub(crate) enum Then {
    /// A receive's only message, or its first.
    Receive(RequestId, Envelope),
    /// The second one of a receive.
    Half(Box<Half>),
}

impl Begun {
    pub(crate) fn request(&self) -> RequestId {
        match &self.then {
            Then::Receive(request, _) => *request,
            Then::Half(half) => half.request,
        }
    }

    /// The request, and what it still needs.
    pub(crate) fn waits_for(&self) -> (RequestId, Selector) {
        match &self.then {
            Then::Receive(request, envelope) => (*request, Selector::from(*envelope)),
            Then::Half(half) => half.waits_for(),
        }
    }
}

impl Endpoint {
    /// Takes in the whole of a message that had only begun to arrive.
    ///
    /// # Errors
    /// There is no such message.
    pub(crate) fn arrive_rest(
        &self,
        state: &mut State,
        source: u32,
        token: u64,
        body: Incoming<'_>,
    ) -> Result<(), NotAllowed> {
        let at = state.begun.iter().position(|begun| begun.source == source && begun.token == token);
        // Its receive may have been given up meanwhile.
        let Some(at) = at else { return Ok(()) };
        let begun = state.begun.swap_remove(at);
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

    /// Forgets a message that its sender has taken back.
    pub(crate) fn arrive_withdrawal(&self, state: &mut State, source: u32, token: u64) {
        let withdrawn = state.matcher.remove_unexpected(|envelope, message| {
            envelope.source == source && message.token() == Some(token)
        });
        let withdrawn = withdrawn.into_iter().map(|(_, message)| message);
        for message in withdrawn.chain(state.take_held_token(source, token)).collect::<Vec<_>>() {
            self.settle(state, source, message.charge());
        }
    }
}
