//! What the machines of collective operations want done, for whoever matches the messages.

use std::sync::PoisonError;

use mpjdev_buffer::Message;
use mpjdev_proto::context::{ContextError, collective};

use crate::comm::{Comm, Engine};
use crate::endpoint::Mode;
use crate::error::DeviceError;
use crate::requests::RequestId;

impl Comm {
    /// Whether this rank may still communicate, or, at its end, has a job to end.
    pub(super) fn check_going(&self, is_end: bool) -> Result<(), DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.check_going(is_end),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().check_unfinished(),
        }
    }

    /// Sends a message of a collective operation to a member, and does not wait for it: the receiver's answer is what counts.
    pub(super) fn send_collective(
        &self,
        dest: u32,
        tag: i32,
        message: &Message,
        is_end: bool,
    ) -> Result<(), DeviceError> {
        let world = self.member(dest as i32)?;
        let context = collective(self.context());
        let sent = match self.engine() {
            Engine::Packets(endpoint) if is_end => {
                endpoint.begin_send(world, context, tag, message, Mode::Standard)
            }
            Engine::Packets(endpoint) => endpoint.start_send(world, context, tag, message, Mode::Standard),
            #[cfg(not(loom))]
            Engine::Library(group) => group.send_collective(dest, tag, message),
        };
        sent.map(|id| id.into_iter().for_each(|id| self.detach(id)))
    }

    /// Posts a receive of a collective operation.
    pub(super) fn receive_collective(
        &self,
        source: u32,
        tag: i32,
        capacity: usize,
        is_end: bool,
    ) -> Result<RequestId, DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) if is_end => {
                Ok(endpoint.begin_receive(self.collective_args(source, tag, capacity)))
            }
            Engine::Packets(endpoint) => endpoint.start_receive(self.collective_args(source, tag, capacity)),
            #[cfg(not(loom))]
            Engine::Library(group) => group.receive_collective(source, tag, capacity),
        }
    }

    /// Contexts that no other rank hands out.
    pub(super) fn allocate_contexts(&self, count: u32) -> Result<Vec<u64>, ContextError> {
        let contexts = match self.engine() {
            Engine::Packets(endpoint) => &endpoint.contexts,
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().contexts(),
        };
        contexts.lock().unwrap_or_else(PoisonError::into_inner).allocate_many(count)
    }

    /// Why there is no counting any more on a rank of the world that another one says is gone.
    pub(super) fn lost(&self, world: u32) -> DeviceError {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.lost(world),
            #[cfg(not(loom))]
            Engine::Library(_) => DeviceError::PeerFinished { rank: world },
        }
    }
}
