//! Operations of a communicator that concern its whole rank, over either engine.

use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::SlabSource;
use mpjdev_transport::config::Config;
use mpjdev_transport::stats::Stats;
use mpjdev_transport::wait::WaitControl;

use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
#[cfg(not(loom))]
use crate::mpi;
use crate::operation::{LastBarrier, Unreceived};
use crate::request::RequestId;

impl Comm {
    /// Makes this process a rank of the job that its MPI runs, and returns the world. Blocks until all
    /// processes do so. It may be called again after a finish; then all processes must.
    ///
    /// # Errors
    /// No usable MPI; interrupted: the call can be repeated then.
    #[cfg(not(loom))]
    pub fn join_mpi(
        config: Config,
        source: Arc<dyn SlabSource>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Comm, mpi::Unfit> {
        let leave = |group| Comm::of_group(group).abandon(None);
        mpi::join(config, source, leave, wait_control).map(Comm::of_group)
    }

    /// Number of this rank in the world.
    pub fn world_rank(&self) -> u32 {
        self.engine().world_rank()
    }

    /// The tunables.
    #[inline]
    pub fn config(&self) -> &Config {
        self.engine().config()
    }

    /// The source of memory for this rank's messages.
    pub fn source(&self) -> &Arc<dyn SlabSource> {
        self.engine().source()
    }

    /// The statistics of this rank's transport.
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// Whether both are communicators of the same rank.
    pub fn is_of_same_rank(&self, other: &Comm) -> bool {
        self.engine().is_of_same_rank(other.engine())
    }

    /// Checks that this rank has not begun to finish, at the cost of one load.
    ///
    /// # Errors
    /// It has begun.
    #[inline]
    pub fn check_unfinished(&self) -> Result<(), DeviceError> {
        self.engine().check_unfinished()
    }

    /// Whether a request of this rank is complete. A complete request stays complete. Does not block.
    pub fn is_done(&self, id: RequestId) -> bool {
        self.engine().is_done(id)
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
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        self.engine().wait_any(ids, deadline, wait_control)
    }

    /// Cancels a request of this rank. True when it will never be matched, which is certain for a receive
    /// without a message. Does not block.
    ///
    /// # Errors
    /// No such request.
    pub fn cancel(&self, id: RequestId) -> Result<bool, DeviceError> {
        self.engine().cancel(id)
    }

    /// Detaches a request of this rank (MPI_Request_free): its operation continues, and its outcome is
    /// dropped.
    pub fn detach(&self, id: RequestId) {
        self.engine().detach(id)
    }

    /// Finishes this rank through its engine: [`PacketEngine::finish`](crate::PacketEngine::finish), or the
    /// same over a C MPI. Blocks.
    ///
    /// # Errors
    /// Undelivered messages; interrupted. This rank has finished nevertheless.
    pub fn finish(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let mut last_barrier =
            |wait_control: &mut dyn WaitControl| self.start_last_barrier().finish(wait_control).map(drop);
        let last_barrier = self.clients().map(|_| &mut last_barrier as &mut LastBarrier<'_>);
        self.engine().finish(last_barrier, wait_control)
    }

    /// The messages that had arrived at this rank's end and that no receive took, as a warning for the user.
    /// `None` when there are none, and from the second call on.
    pub fn take_unreceived(&self) -> Option<Unreceived> {
        self.engine().take_unreceived()
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on.
    /// Over a C MPI all processes end, this one too, and this does not return.
    pub fn fail(&self, why: &str) {
        self.engine().fail(why)
    }

    /// The number of unexpected messages, as far as it can be counted, and of requests whose outcome was not
    /// taken: for reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        self.engine().leftovers()
    }
}
