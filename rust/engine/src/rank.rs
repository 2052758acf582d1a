//! The operations of a communicator on its rank, over either engine.

use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::SlabSource;
use mpjdev_transport::config::Config;
use mpjdev_transport::stats::Stats;
use mpjdev_transport::waiting::Patience;

use crate::comm::{Comm, Engine};
use crate::error::DeviceError;
use crate::packet::requests::RequestId;
use crate::packet::unreceived::Unreceived;

impl Comm {
    /// Number of this rank in the world.
    pub fn world_rank(&self) -> u32 {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.rank(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().rank(),
        }
    }

    /// The tunables.
    #[inline]
    pub fn config(&self) -> &Config {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.config(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().config(),
        }
    }

    /// Where this rank's messages take memory from.
    pub fn source(&self) -> &Arc<dyn SlabSource> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.source(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().source(),
        }
    }

    /// What this rank's transport counts.
    pub fn stats(&self) -> Stats {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.stats(),
            #[cfg(not(loom))]
            Engine::Library(_) => Stats::default(),
        }
    }

    /// Whether both are communicators of the same rank.
    pub fn is_of_same_rank(&self, other: &Comm) -> bool {
        match (self.engine(), other.engine()) {
            (Engine::Packets(own), Engine::Packets(other)) => Arc::ptr_eq(own, other),
            #[cfg(not(loom))]
            (Engine::Library(own), Engine::Library(other)) => Arc::ptr_eq(own.owner(), other.owner()),
            #[cfg(not(loom))]
            _ => false,
        }
    }

    /// Whether this rank has not begun to finish; costs next to nothing.
    ///
    /// # Errors
    /// It has.
    #[inline]
    pub fn check_unfinished(&self) -> Result<(), DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.check_unfinished(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().check_unfinished(),
        }
    }

    /// Whether a request of this rank is done, which it stays. Does not block.
    pub fn is_done(&self, id: RequestId) -> bool {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.is_done(id),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().is_done(id),
        }
    }

    /// Waits until one of the requests of this rank is done and gives its place; its outcome is for [`test`](Self::test) to
    /// take. Blocks.
    ///
    /// # Errors
    /// Timed out or interrupted.
    pub fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        patience: &mut dyn Patience,
    ) -> Result<usize, DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.wait_any(ids, deadline, patience),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().wait_any(ids, deadline, patience),
        }
    }

    /// Cancels a request of this rank: true when it will never be matched, which is certain for a receive that has no message
    /// yet. Does not block.
    ///
    /// # Errors
    /// No such request.
    pub fn cancel(&self, id: RequestId) -> Result<bool, DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.cancel(id),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().cancel(id),
        }
    }

    /// Nobody will wait for this request of this rank (MPI_Request_free): it goes on, and its outcome is dropped.
    pub fn detach(&self, id: RequestId) {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.detach(id),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().detach(id),
        }
    }

    /// Ends this rank, as its transport has it: [`Endpoint::finish`](crate::Endpoint::finish),
    /// [`mpi::Rank::finish`](crate::mpi::Rank::finish). Blocks.
    ///
    /// # Errors
    /// What was not delivered; interrupted. This rank has finished all the same.
    pub fn finish(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.finish(patience),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().finish(patience),
        }
    }

    /// What this rank has finished with and no receive took, as a warning for people; none when there is nothing, and the second
    /// time.
    pub fn take_unreceived(&self) -> Option<Unreceived> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.take_unreceived(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().take_unreceived(),
        }
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on. Over a C MPI all
    /// processes end, this one too, and this does not return.
    pub fn fail(&self, why: &str) {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.fail(why),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().fail(why),
        }
    }

    /// Messages that arrived and nobody has received, as far as that can be counted, and requests nobody has waited for: for
    /// reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.leftovers(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.leftovers(),
        }
    }
}
