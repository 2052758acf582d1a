//! Operations of a communicator that concern its whole rank, over either engine.

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

    /// The source of memory for this rank's messages.
    pub fn source(&self) -> &Arc<dyn SlabSource> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.source(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().source(),
        }
    }

    /// The statistics of this rank's transport.
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

    /// Checks that this rank has not begun to finish, at the cost of one load.
    ///
    /// # Errors
    /// It has begun.
    #[inline]
    pub fn check_unfinished(&self) -> Result<(), DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.check_unfinished(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().check_unfinished(),
        }
    }

    /// Whether a request of this rank is complete. A complete request stays complete. Does not block.
    pub fn is_done(&self, id: RequestId) -> bool {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.is_done(id),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().is_done(id),
        }
    }

    /// Waits until one of the requests of this rank is complete and returns its index. [`test`](Self::test)
    /// takes its outcome. Blocks.
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

    /// Cancels a request of this rank. True when it will never be matched, which is certain for a receive
    /// without a message. Does not block.
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

    /// Gives up a request of this rank (MPI_Request_free): its operation continues, and its outcome is
    /// dropped.
    pub fn detach(&self, id: RequestId) {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.detach(id),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().detach(id),
        }
    }

    /// Finishes this rank through its engine: [`Endpoint::finish`](crate::Endpoint::finish) or
    /// [`mpi::Rank::finish`](crate::mpi::Rank::finish). Blocks.
    ///
    /// # Errors
    /// Undelivered messages; interrupted. This rank has finished all the same.
    pub fn finish(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.finish(patience),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().finish(patience),
        }
    }

    /// The messages that had arrived at this rank's end and that no receive took, as a warning for the user.
    /// `None` when there are none, and from the second call on.
    pub fn take_unreceived(&self) -> Option<Unreceived> {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.take_unreceived(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().take_unreceived(),
        }
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on.
    /// Over a C MPI all processes end, this one too, and this does not return.
    pub fn fail(&self, why: &str) {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.fail(why),
            #[cfg(not(loom))]
            Engine::Library(group) => group.owner().fail(why),
        }
    }

    /// The number of unexpected messages, as far as it can be counted, and of requests whose outcome was not
    /// taken: for reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        match self.engine() {
            Engine::Packets(endpoint) => endpoint.leftovers(),
            #[cfg(not(loom))]
            Engine::Library(group) => group.leftovers(),
        }
    }
}
