//! The engine of a communicator: either of the two.
//!
//! The dispatch is static, so that a small message passes no indirect call.

#[cfg(loom)]
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use mpjdev_buffer::{Message, Slab, SlabSource, layout};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::Envelope;
use mpjdev_sys::sync::Mutex;
use mpjdev_transport::ShortTaker;
use mpjdev_transport::config::Config;
use mpjdev_transport::stats::Stats;
use mpjdev_transport::wait::WaitControl;

use crate::abandonment::Abandonment;
use crate::engine::Engine;
use crate::error::DeviceError;
#[cfg(not(loom))]
use crate::mpi::{CommCreation, Group, Receive};
use crate::operation::{
    self, Accept, LastBarrier, Probed, Selection, SendArgs, SentAhead, StartedRecv, Unreceived,
};
use crate::packet::{Membership, PacketEngine};
use crate::request::{Completed, RequestId};

/// The engine of a communicator, chosen when its rank joins the job.
#[derive(Clone, Debug)]
pub(crate) enum AnyEngine {
    /// The packet engine, over a transport. The membership frees the communicator with the last reference;
    /// the world has none.
    Packet(Arc<PacketEngine>, Option<Arc<Membership>>),
    /// The machine's C MPI.
    #[cfg(not(loom))]
    Mpi(Arc<Group>),
}

/// The engine of a new communicator, or its creation in progress.
#[derive(Debug)]
pub(crate) enum NewEngine {
    Ready(AnyEngine),
    #[cfg(not(loom))]
    Creating(CommCreation),
}

/// A receive that the fast path leaves posted: only the C MPI engine does.
#[cfg(not(loom))]
type Posted = Box<Receive>;
#[cfg(loom)]
type Posted = Infallible;

/// The outcome of the fast path over either engine.
pub type FastRecv = operation::FastRecv<Posted>;

impl AnyEngine {
    /// The packet engine; `None` over a C MPI.
    pub(crate) fn packet(&self) -> Option<&Arc<PacketEngine>> {
        match self {
            AnyEngine::Packet(engine, _) => Some(engine),
            #[cfg(not(loom))]
            AnyEngine::Mpi(_) => None,
        }
    }

    /// The communicator in the C MPI; `None` over a transport.
    #[cfg(not(loom))]
    pub(crate) fn mpi(&self) -> Option<&Arc<Group>> {
        match self {
            AnyEngine::Packet(..) => None,
            AnyEngine::Mpi(group) => Some(group),
        }
    }

    /// Whether both belong to the same rank.
    pub(crate) fn is_of_same_rank(&self, other: &AnyEngine) -> bool {
        match (self, other) {
            (AnyEngine::Packet(own, _), AnyEngine::Packet(other, _)) => Arc::ptr_eq(own, other),
            #[cfg(not(loom))]
            (AnyEngine::Mpi(own), AnyEngine::Mpi(other)) => Arc::ptr_eq(own.owner(), other.owner()),
            #[cfg(not(loom))]
            _ => false,
        }
    }

    /// The engine of a new communicator of these world ranks, of which this rank is the one with this number.
    #[cfg_attr(loom, allow(unused_variables))]
    pub(crate) fn create(&self, context: u64, members: &Arc<[u32]>, rank: u32) -> NewEngine {
        match self {
            AnyEngine::Packet(engine, _) => {
                let membership = Membership::new(engine.clone(), context);
                NewEngine::Ready(AnyEngine::Packet(engine.clone(), Some(membership)))
            }
            #[cfg(not(loom))]
            AnyEngine::Mpi(group) => {
                NewEngine::Creating(CommCreation::new(group, context, members.clone(), rank))
            }
        }
    }

    /// Frees the communicator at this rank, unless it is the world.
    pub(crate) fn free(&self) {
        match self {
            AnyEngine::Packet(_, membership) => {
                if let Some(membership) = membership {
                    membership.free();
                }
            }
            #[cfg(not(loom))]
            AnyEngine::Mpi(group) => group.free(),
        }
    }
}

/// Implements operations of [`Engine`] that both engines have in the same form.
macro_rules! dispatch {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)*) => {
        $(#[inline(always)]
        fn $name(&self $(, $arg: $type)*) $(-> $result)? {
            match self {
                AnyEngine::Packet(engine, _) => Engine::$name(engine $(, $arg)*),
                #[cfg(not(loom))]
                AnyEngine::Mpi(engine) => Engine::$name(engine $(, $arg)*),
            }
        })*
    };
}

/// As `dispatch`, for operations that send a message. `$has_sent` tells whether one has.
macro_rules! dispatch_counted {
    ($(fn $name:ident(&self, $args:ident: $type:ty $(, $arg:ident: $more:ty)*) -> $result:ty, $has_sent:path;)*) => {
        $(#[inline(always)]
        fn $name(&self, $args: $type $(, $arg: $more)*) -> $result {
            let (dest, message) = ($args.world, $args.message);
            let result = match self {
                AnyEngine::Packet(engine, _) => Engine::$name(engine, $args $(, $arg)*),
                #[cfg(not(loom))]
                AnyEngine::Mpi(engine) => Engine::$name(engine, $args $(, $arg)*),
            };
            if $has_sent(&result) {
                mpjdev_profile::sent(dest, || operation::payload_len(message));
            }
            result
        })*
    };
}

fn has_sent(result: &Result<Option<SentAhead>, DeviceError>) -> bool {
    matches!(result, Ok(Some(_)))
}

impl Engine for AnyEngine {
    type Posted = Posted;

    #[inline(always)]
    fn try_recv_polling(
        &self,
        from: Selection<'_>,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        spins: u32,
    ) -> FastRecv {
        match self {
            AnyEngine::Packet(engine, _) => {
                Engine::try_recv_polling(engine, from, capacity, accept, place, spins).with_posted()
            }
            #[cfg(not(loom))]
            AnyEngine::Mpi(engine) => Engine::try_recv_polling(engine, from, capacity, accept, place, spins),
        }
    }

    #[inline(always)]
    fn try_recv_words(&self, from: Selection<'_>, spins: &mut u32, take: &mut ShortTaker<'_>) -> bool {
        let (source, mut len) = (from.selector.source, 0);
        let take = &mut |words: &[AtomicU64], octets: usize| {
            len = octets;
            take(words, octets)
        };
        let is_taken = match self {
            AnyEngine::Packet(engine, _) => Engine::try_recv_words(engine, from, spins, take),
            #[cfg(not(loom))]
            AnyEngine::Mpi(engine) => Engine::try_recv_words(engine, from, spins, take),
        };
        if is_taken && let Some(source) = source {
            mpjdev_profile::received(source, || len.saturating_sub(layout::MESSAGE_OVERHEAD));
        }
        is_taken
    }

    #[inline(always)]
    fn recv_posted(
        &self,
        fast: FastRecv,
        from: Selection<'_>,
        capacity: usize,
        accept: Accept,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        match self {
            AnyEngine::Packet(engine, _) => Engine::recv_posted(
                engine,
                fast.without_posted(),
                from,
                capacity,
                accept,
                spare,
                wait_control,
            ),
            #[cfg(not(loom))]
            AnyEngine::Mpi(engine) => {
                Engine::recv_posted(engine, fast, from, capacity, accept, spare, wait_control)
            }
        }
    }

    #[inline(always)]
    fn try_send_words<'w>(
        &self,
        world: u32,
        context: u64,
        tag: i32,
        len: usize,
        pack: impl FnOnce() -> &'w [AtomicU64],
    ) -> bool {
        let is_sent = match self {
            AnyEngine::Packet(engine, _) => Engine::try_send_words(engine, world, context, tag, len, pack),
            #[cfg(not(loom))]
            AnyEngine::Mpi(engine) => Engine::try_send_words(engine, world, context, tag, len, pack),
        };
        if is_sent {
            mpjdev_profile::sent(world, || len.saturating_sub(layout::MESSAGE_OVERHEAD));
        }
        is_sent
    }

    // The profile counts the messages of every sending operation, of collective ones as well.
    dispatch_counted! {
        fn send(&self, args: SendArgs<'_>, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError>, Result::is_ok;
        fn isend(&self, args: SendArgs<'_>) -> Result<Option<RequestId>, DeviceError>, Result::is_ok;
        fn try_send_copy(&self, args: &SendArgs<'_>) -> bool, bool::clone;
        fn send_ahead(&self, args: SendArgs<'_>) -> Result<Option<SentAhead>, DeviceError>, has_sent;
        fn send_collective(&self, args: SendArgs<'_>, is_end: bool) -> Result<Option<RequestId>, DeviceError>, Result::is_ok;
    }

    dispatch! {
        // ---- Messages
        fn send_packed(&self, dest: u32);
        fn await_packed(
            &self,
            source: u32,
            message: &mut Message,
            octets: usize,
            wait_control: &mut dyn WaitControl
        ) -> Result<usize, DeviceError>;
        fn irecv(
            &self,
            from: Selection<'_>,
            capacity: usize,
            spare: Option<Slab>
        ) -> Result<RequestId, DeviceError>;
        fn irecv_into(
            &self,
            from: Selection<'_>,
            capacity: usize,
            place: &mut Option<Message>,
            accepts: &dyn Fn(&Message) -> bool
        ) -> Result<StartedRecv<Envelope>, DeviceError>;
        fn probe(
            &self,
            from: Selection<'_>,
            wait_control: &mut dyn WaitControl
        ) -> Result<Probed, DeviceError>;
        fn probe_now(&self, from: Selection<'_>) -> Result<Option<Probed>, DeviceError>;
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
        fn world_rank(&self) -> u32;
        fn world_size(&self) -> u32;
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
        fn check_going(&self, is_end: bool) -> Result<(), DeviceError>;
        fn receive_collective(
            &self,
            from: Selection<'_>,
            capacity: usize,
            is_end: bool
        ) -> Result<RequestId, DeviceError>;
        fn contexts(&self) -> &Mutex<ContextAllocator>;
        fn peer_error(&self, world: u32) -> Option<DeviceError>;
        fn reported_peer_error(&self, world: u32) -> DeviceError;
        fn take_abandonment(
            &self,
            context: u64,
            abandonment: &Abandonment
        ) -> Result<Option<(u32, Option<Message>)>, DeviceError>;
        fn wait_collective(
            &self,
            context: u64,
            pending: &[RequestId],
            abandonment: &Abandonment,
            wait_control: &mut dyn WaitControl
        ) -> Result<(), DeviceError>;
    }
}
