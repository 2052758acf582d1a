//! Rendezvous: the rest of a message that was matched when it had arrived in part.

use mpjdev_buffer::SlabError;
use mpjdev_transport::{Incoming, Payload, ProtocolViolation};
use tracing::debug;

use crate::packet::engine::{PacketEngine, State};
use crate::packet::partial_recv::Completion;

impl PacketEngine {
    /// Handles the rest of a message that had arrived in part. A rest without a pending message is dropped.
    ///
    /// # Errors
    /// None at present.
    pub(crate) fn handle_rendezvous_data(
        &self,
        state: &mut State,
        source: u32,
        token: u64,
        body: Incoming<'_>,
    ) -> Result<(), ProtocolViolation> {
        let at =
            state.rendezvous.iter().position(|pending| pending.source == source && pending.token == token);
        // The receive may have been given up meanwhile.
        let Some(at) = at else { return Ok(()) };
        let pending = state.rendezvous.swap_remove(at);
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "rest of a message has arrived");
        let payload: Result<Payload, SlabError> = self.to_owned_payload(body, None);
        match pending.completion {
            Completion::Receive(request, envelope) => {
                let was_ambiguous = state.note_complete(&envelope, token);
                self.deliver(state, request, envelope, payload, token);
                if was_ambiguous {
                    self.replay_deferred(state, source, envelope.context);
                }
            }
            Completion::SecondHalf(half) => self.join_halves(state, *half, payload, token),
        }
        self.drop_kept_halves(state);
        Ok(())
    }

    /// Drops an unexpected or deferred message that its sender has withdrawn, and releases its charge.
    pub(crate) fn handle_cancelled(&self, state: &mut State, source: u32, token: u64) {
        let withdrawn = state.matcher.remove_unexpected(|envelope, message| {
            envelope.source == source && message.token() == Some(token)
        });
        let withdrawn = withdrawn.into_iter().map(|(_, message)| message);
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "sender has cancelled a message");
        for message in withdrawn.chain(state.take_deferred_token(source, token)).collect::<Vec<_>>() {
            self.release(state, source, message.charge());
        }
    }
}
