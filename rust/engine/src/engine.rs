//! Interface between a communicator and the engine of its rank, and the choice of the engine.
//!
//! There are two engines. The packet engine matches messages over a transport of this project; the C MPI
//! engine leaves matching to the machine's C MPI. A communicator refers to its engine by [`AnyEngine`]: the
//! dispatch is static, so that a small message passes no indirect call.

use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::Envelope;
use mpjdev_sys::sync::Mutex;
use mpjdev_transport::config::Config;
use mpjdev_transport::stats::Stats;
use mpjdev_transport::wait::WaitControl;

use crate::abandonment::Abandonment;
use crate::comm::Part;
use crate::error::DeviceError;
#[cfg(not(loom))]
use crate::mpi::Group;
use crate::operation::{LastBarrier, Selection, SendArgs, Unreceived};
use crate::packet::engine::PacketEngine;
use crate::packet::fast_recv::FastRecv;
use crate::packet::freed::Membership;
use crate::request::{Completed, RequestId};

/// The engine of a communicator, chosen when its rank joins the job.
#[derive(Clone, Debug)]
pub(crate) enum AnyEngine {
    /// The packet engine, over a transport.
    Packet(Arc<PacketEngine>),
    /// The machine's C MPI.
    #[cfg(not(loom))]
    Mpi(Arc<Group>),
}

impl AnyEngine {
    /// The packet engine; `None` over a C MPI.
    pub(crate) fn packet(&self) -> Option<&Arc<PacketEngine>> {
        match self {
            AnyEngine::Packet(endpoint) => Some(endpoint),
            #[cfg(not(loom))]
            AnyEngine::Mpi(_) => None,
        }
    }

    /// Whether both belong to the same rank.
    pub(crate) fn is_of_same_rank(&self, other: &AnyEngine) -> bool {
        match (self, other) {
            (AnyEngine::Packet(own), AnyEngine::Packet(other)) => Arc::ptr_eq(own, other),
            #[cfg(not(loom))]
            (AnyEngine::Mpi(own), AnyEngine::Mpi(other)) => Arc::ptr_eq(own.owner(), other.owner()),
            #[cfg(not(loom))]
            _ => false,
        }
    }
}

/// Declares the trait of the engines and implements it for [`AnyEngine`] by static dispatch.
macro_rules! engine {
    ($($(#[$meta:meta])* fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        /// The operations that a communicator asks its engine for. Each is described at the communicator's
        /// method of the same name.
        pub(crate) trait Engine {
            $($(#[$meta])* fn $name(&self $(, $arg: $type)*) $(-> $result)?;)*
        }

        impl Engine for AnyEngine {
            $(#[inline(always)]
            fn $name(&self $(, $arg: $type)*) $(-> $result)? {
                match self {
                    AnyEngine::Packet(engine) => Engine::$name(engine $(, $arg)*),
                    #[cfg(not(loom))]
                    AnyEngine::Mpi(engine) => Engine::$name(engine $(, $arg)*),
                }
            })*
        }
    };
}

engine! {
    // ---- Messages

    /// Sends a message and waits until the send is complete.
    fn send(&self, args: SendArgs<'_>, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError>;
    /// Starts a send; `None` when it is complete already.
    fn start_send(&self, args: SendArgs<'_>) -> Result<Option<RequestId>, DeviceError>;
    /// Spins for a message and stores it in `place`.
    fn try_recv_spinning(&self, from: Selection<'_>, capacity: usize, place: &mut Option<Message>) -> FastRecv;
    /// Receives a message that the fast path has not taken.
    fn recv_posted(
        &self,
        fast: FastRecv,
        from: Selection<'_>,
        capacity: usize,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl
    ) -> Result<(Envelope, Message), DeviceError>;
    /// Posts a receive.
    fn start_receive(
        &self,
        from: Selection<'_>,
        capacity: usize,
        spare: Option<Slab>
    ) -> Result<RequestId, DeviceError>;
    /// Waits for a message without receiving it. Returns its envelope and the capacity that it needs.
    fn probe(
        &self,
        from: Selection<'_>,
        wait_control: &mut dyn WaitControl
    ) -> Result<(Envelope, usize), DeviceError>;
    /// Polls for a message without receiving it.
    fn probe_now(&self, from: Selection<'_>) -> Result<Option<(Envelope, usize)>, DeviceError>;

    // ---- Requests

    fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError>;
    fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl
    ) -> Result<Completed, DeviceError>;
    fn is_done(&self, id: RequestId) -> bool;
    fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl
    ) -> Result<usize, DeviceError>;
    fn cancel(&self, id: RequestId) -> Result<bool, DeviceError>;
    fn detach(&self, id: RequestId);

    // ---- The rank

    /// Number of the rank in the world.
    fn world_rank(&self) -> u32;
    fn config(&self) -> &Config;
    fn source(&self) -> &Arc<dyn SlabSource>;
    fn stats(&self) -> Stats;
    fn check_unfinished(&self) -> Result<(), DeviceError>;
    fn finish(
        &self,
        last_barrier: Option<&mut LastBarrier<'_>>,
        wait_control: &mut dyn WaitControl
    ) -> Result<(), DeviceError>;
    fn take_unreceived(&self) -> Option<Unreceived>;
    fn fail(&self, why: &str);
    fn leftovers(&self) -> (usize, usize);

    // ---- Communicators and collective operations

    /// A communicator of these world ranks, or its creation.
    fn create(&self, context: u64, members: Arc<[u32]>, rank: u32) -> Part;
    /// Frees the communicator at this rank.
    fn free(&self, membership: Option<&Membership>);
    /// Checks that the rank may communicate or, with `is_end`, that it has a job to end.
    fn check_going(&self, is_end: bool) -> Result<(), DeviceError>;
    /// Starts a send of a collective operation.
    fn send_collective(&self, args: SendArgs<'_>, is_end: bool) -> Result<Option<RequestId>, DeviceError>;
    /// Posts a receive of a collective operation.
    fn receive_collective(
        &self,
        from: Selection<'_>,
        capacity: usize,
        is_end: bool
    ) -> Result<RequestId, DeviceError>;
    /// The allocator of contexts that no other rank allocates.
    fn contexts(&self) -> &Mutex<ContextAllocator>;
    /// The error of a world rank that has finished or failed.
    fn gone(&self, world: u32) -> Option<DeviceError>;
    /// The error of a world rank that another rank has reported as ended.
    fn lost(&self, world: u32) -> DeviceError;
    /// Takes a notice of an abandoned operation: the world rank of its sender, and the message unless it is
    /// damaged.
    fn take_abandonment(
        &self,
        context: u64,
        abandonment: &Abandonment
    ) -> Result<Option<(u32, Option<Message>)>, DeviceError>;
    /// Waits until one of these receives of a collective operation is complete, or a notice has arrived.
    fn wait_collective(
        &self,
        context: u64,
        pending: &[RequestId],
        abandonment: &Abandonment,
        wait_control: &mut dyn WaitControl
    ) -> Result<(), DeviceError>;
}
