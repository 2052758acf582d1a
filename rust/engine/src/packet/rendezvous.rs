//! Rendezvous: the rest of a message that was matched when it had arrived in part, and the replay of messages
//! that were deferred behind it.

use mpjdev_buffer::{Message, SlabError};
use mpjdev_transport::{Incoming, Payload, PeerState};
use tracing::debug;

use crate::operation::{Accept, received};
use crate::packet::engine::{PacketEngine, State};
use crate::packet::partial_recv::Completion;
use crate::packet::requests::Work;

impl PacketEngine {
    /// Handles the rest of a message that had arrived in part. A rest without a pending message is dropped.
    pub(crate) fn handle_rendezvous_data(
        &self,
        state: &mut State,
        source: u32,
        token: u64,
        body: Incoming<'_>,
    ) {
        // The receive may have been abandoned meanwhile.
        let Some(completion) = state.recv_queue.take_rendezvous(source, token) else { return };
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "rest of a message has arrived");
        let payload: Result<Payload, SlabError> =
            self.to_owned_payload(Some(&mut state.kept_slabs), body, None);
        match completion {
            Completion::Receive(request, envelope) => {
                let was_ambiguous = state.recv_queue.note_complete(&envelope, token);
                self.deliver(state, request, envelope, payload, token);
                if was_ambiguous {
                    self.replay_deferred(state, source, envelope.context);
                }
            }
            Completion::SecondHalf(half) => self.join_halves(state, *half, payload, token),
        }
        self.notify_observers(state);
        self.drop_kept_halves(state);
    }

    /// Handles more octets of a message that had arrived in part. A receive that reads them as they arrive
    /// takes the message now.
    pub(crate) fn handle_rendezvous_part(
        &self,
        state: &mut State,
        source: u32,
        token: u64,
        body: Incoming<'_>,
    ) {
        // A thread that reads the message waits for no request.
        self.notify_observers(state);
        let Some((waiting, envelope)) = state.recv_queue.rendezvous_receive(source, token) else { return };
        let request = *waiting;
        let Some(Work::Receive(receive)) = state.requests.get(request).map(|r| &r.work) else { return };
        let (capacity, accept) = (receive.capacity, receive.accept);
        if let (Accept::Packing, Incoming::Reference(Payload::Physical(slab, len))) = (accept, body)
            && let Some(message) = Message::from_begun(slab, len, capacity)
        {
            // The end of the message, and a second half that it may name, still need a receive.
            *waiting = state.requests.add_detached_receive(capacity);
            self.complete(state, request, Ok(received(envelope, message)));
        }
    }

    /// Drops an unexpected or deferred message that its sender has withdrawn, and releases its charge.
    pub(crate) fn handle_cancelled(&self, state: &mut State, source: u32, token: u64) {
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer = source, "sender has cancelled a message");
        for message in state.recv_queue.take_cancelled(source, token) {
            self.release(state, source, message.charge());
        }
    }

    /// Replays the deferred messages of a stream up to the first one that is still ambiguous.
    fn replay_deferred(&self, state: &mut State, source: u32, context: u64) {
        while let Some((envelope, message)) = state.recv_queue.next_replayed(source, context) {
            let (payload, charge) = message.into_parts();
            let body = payload.map_or_else(Incoming::Lost, Incoming::Reference);
            match self.take_awaited_second(state, &envelope, &body, charge.token()) {
                Some(wanted) => self.acknowledge(state, source, &charge, wanted),
                None => self.match_or_queue(state, envelope, body, charge, None),
            }
        }
    }

    /// Forgets abandoned ambiguous messages; mostly their sender has ended. If it has, the deferred messages
    /// are dropped: a second half can no longer be distinguished from a separate message.
    pub(crate) fn forget_ambiguous(&self, state: &mut State) {
        for (source, context) in state.recv_queue.forget_ambiguous() {
            if self.transport.peer(source) != PeerState::Alive {
                for (_, message) in state.recv_queue.take_deferred(source) {
                    self.release(state, source, message.charge());
                }
            }
            self.replay_deferred(state, source, context);
        }
    }
}
