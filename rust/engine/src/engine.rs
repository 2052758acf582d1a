//! The interface between a communicator and the engine of its rank.
//!
//! There are two engines. The packet engine matches messages over a transport of this project; the C MPI
//! engine leaves matching to the machine's C MPI.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::Envelope;
use mpjdev_sys::sync::Mutex;
use mpjdev_transport::ShortTaker;
use mpjdev_transport::config::Config;
use mpjdev_transport::stats::Stats;
use mpjdev_transport::wait::WaitControl;

use crate::abandonment::Abandonment;
use crate::error::DeviceError;
use crate::operation::{
    Accept, FastRecv, LastBarrier, Probed, Selection, SendArgs, SentAhead, StartedRecv, Unreceived,
};
use crate::request::{Completed, RequestId};

/// The operations that a communicator asks its engine for. Each is described at the communicator's method of
/// the same name.
pub(crate) trait Engine {
    /// A receive that the fast path leaves posted.
    type Posted;

    // ---- Messages

    /// Sends a message and waits until the send is complete.
    fn send(&self, args: SendArgs<'_>, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError>;
    /// Starts a send; `None` when it is complete already.
    fn isend(&self, args: SendArgs<'_>) -> Result<Option<RequestId>, DeviceError>;
    /// Sends a copy of a message that would be a loan otherwise, if that is faster. Returns false if
    /// it is not.
    #[inline(always)]
    fn try_send_copy(&self, args: &SendArgs<'_>) -> bool {
        let _ = args;
        false
    }
    /// Sends a short message of `len` octets in standard mode to a rank of the world, if it can leave at
    /// once; `pack` returns its words. Returns false if it cannot.
    #[inline(always)]
    fn try_send_words<'w>(
        &self,
        world: u32,
        context: u64,
        tag: i32,
        len: usize,
        pack: impl FnOnce() -> &'w [AtomicU64],
    ) -> bool {
        let _ = (world, context, tag, len, pack);
        false
    }
    /// Sends a message of which only the headers are written, if it can leave before it is packed; `None` if
    /// not.
    fn send_ahead(&self, args: SendArgs<'_>) -> Result<Option<SentAhead>, DeviceError>;
    /// Sends the octets that the calling thread has packed of a message to this rank of the world.
    fn send_packed(&self, dest: u32);
    /// Waits until a received message has that many octets.
    fn await_packed(
        &self,
        source: u32,
        message: &mut Message,
        octets: usize,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError>;
    /// Spins for a short message, and passes its words to `take`. Returns whether it has taken one; if not,
    /// `spins` has the spins that are left.
    #[inline(always)]
    fn try_recv_words(&self, from: Selection<'_>, spins: &mut u32, take: &mut ShortTaker<'_>) -> bool {
        let _ = (from, spins, take);
        false
    }
    /// Polls for a message and stores it in `place`.
    fn try_recv_polling(
        &self,
        from: Selection<'_>,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        spins: u32,
    ) -> FastRecv<Self::Posted>;
    /// Receives a message that the fast path has not taken.
    fn recv_posted(
        &self,
        fast: FastRecv<Self::Posted>,
        from: Selection<'_>,
        capacity: usize,
        accept: Accept,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError>;
    /// Posts a receive.
    fn irecv(
        &self,
        from: Selection<'_>,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Result<RequestId, DeviceError>;
    /// Stores a message that has arrived in `place`, or posts a receive.
    fn irecv_into(
        &self,
        from: Selection<'_>,
        capacity: usize,
        place: &mut Option<Message>,
        accepts: &dyn Fn(&Message) -> bool,
    ) -> Result<StartedRecv<Envelope>, DeviceError>;
    /// Waits for a message without receiving it.
    fn probe(&self, from: Selection<'_>, wait_control: &mut dyn WaitControl) -> Result<Probed, DeviceError>;
    /// Polls for a message without receiving it.
    fn probe_now(&self, from: Selection<'_>) -> Result<Option<Probed>, DeviceError>;

    // ---- Requests

    fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError>;
    fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError>;
    fn is_done(&self, id: RequestId) -> bool;
    fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError>;
    fn cancel(&self, id: RequestId) -> Result<bool, DeviceError>;
    fn detach(&self, id: RequestId);

    // ---- The rank

    /// Number of the rank in the world.
    fn world_rank(&self) -> u32;
    /// Number of ranks of the world.
    fn world_size(&self) -> u32;
    fn config(&self) -> &Config;
    fn source(&self) -> &Arc<dyn SlabSource>;
    fn stats(&self) -> Stats;
    fn check_unfinished(&self) -> Result<(), DeviceError>;
    fn finish(
        &self,
        last_barrier: Option<&mut LastBarrier<'_>>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError>;
    fn take_unreceived(&self) -> Option<Unreceived>;
    fn fail(&self, why: &str);
    fn leftovers(&self) -> (usize, usize);

    // ---- Communicators and collective operations

    /// Checks that the rank may communicate or, with `is_end`, that it has a job to end.
    fn check_going(&self, is_end: bool) -> Result<(), DeviceError>;
    /// Starts a send of a collective operation.
    fn send_collective(&self, args: SendArgs<'_>, is_end: bool) -> Result<Option<RequestId>, DeviceError>;
    /// Posts a receive of a collective operation.
    fn receive_collective(
        &self,
        from: Selection<'_>,
        capacity: usize,
        is_end: bool,
    ) -> Result<RequestId, DeviceError>;
    /// The allocator of contexts that no other rank allocates.
    fn contexts(&self) -> &Mutex<ContextAllocator>;
    /// The error of a world rank that has finished or failed.
    fn peer_error(&self, world: u32) -> Option<DeviceError>;
    /// The error of a world rank that another rank has reported as ended.
    fn reported_peer_error(&self, world: u32) -> DeviceError;
    /// Takes a notice of an abandoned operation: the world rank of its sender, and the message unless it is
    /// damaged.
    fn take_abandonment(
        &self,
        context: u64,
        abandonment: &Abandonment,
    ) -> Result<Option<(u32, Option<Message>)>, DeviceError>;
    /// Waits until one of these receives of a collective operation is complete, or a notice has arrived.
    fn wait_collective(
        &self,
        context: u64,
        pending: &[RequestId],
        abandonment: &Abandonment,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError>;
}
