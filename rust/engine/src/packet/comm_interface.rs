//! The packet engine as a communicator uses it.

use std::convert::Infallible;
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
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::{
    Accept, FastRecv, LastBarrier, Probed, Selection, SendArgs, SentAhead, StartedRecv, Unreceived,
};
use crate::packet::engine::PacketEngine;
use crate::packet::posted_recv::ReceiveArgs;
use crate::request::{Completed, RequestId};

impl Selection<'_> {
    #[inline]
    fn receive_args(&self, capacity: usize, spare: Option<Slab>) -> ReceiveArgs {
        // A counted reference costs a write to memory that all threads share. Only a wildcard needs the
        // members.
        let members = self.selector.source.is_none().then(|| self.members.clone());
        ReceiveArgs { selector: self.selector, capacity, spare, members }
    }
}

impl Engine for Arc<PacketEngine> {
    type Posted = Infallible;

    #[inline]
    fn send(&self, args: SendArgs<'_>, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let SendArgs { message, world, context, tag, mode, .. } = args;
        PacketEngine::send(self, world, context, tag, message, mode, wait_control)
    }

    #[inline]
    fn isend(&self, args: SendArgs<'_>) -> Result<Option<RequestId>, DeviceError> {
        let SendArgs { message, world, context, tag, mode, .. } = args;
        PacketEngine::isend(self, world, context, tag, message, mode)
    }

    #[inline(always)]
    fn try_send_copy(&self, args: &SendArgs<'_>) -> bool {
        let &SendArgs { message, world, context, tag, mode, .. } = args;
        PacketEngine::try_send_copy(self, world, context, tag, message, mode)
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
        PacketEngine::try_send_words(self, world, context, tag, len, pack)
    }

    fn send_ahead(&self, args: SendArgs<'_>) -> Result<Option<SentAhead>, DeviceError> {
        let SendArgs { message, world, context, tag, mode, .. } = args;
        PacketEngine::send_ahead(self, world, context, tag, message, mode)
    }

    fn send_packed(&self, dest: u32) {
        PacketEngine::send_packed(self, dest);
    }

    fn await_packed(
        &self,
        source: u32,
        message: &mut Message,
        octets: usize,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        PacketEngine::await_packed(self, source, message, octets, wait_control)
    }

    #[inline(always)]
    fn try_recv_polling(
        &self,
        from: Selection<'_>,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        spins: u32,
    ) -> FastRecv {
        PacketEngine::try_recv_polling(self, from.selector, capacity, accept, place, spins)
    }

    #[inline(always)]
    fn try_recv_words(&self, from: Selection<'_>, spins: &mut u32, take: &mut ShortTaker<'_>) -> bool {
        PacketEngine::try_recv_words(self, from.selector, spins, take)
    }

    fn recv_posted(
        &self,
        fast: FastRecv,
        from: Selection<'_>,
        capacity: usize,
        accept: Accept,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        PacketEngine::recv_posted(self, &fast, from.receive_args(capacity, spare), accept, wait_control)
    }

    fn irecv(
        &self,
        from: Selection<'_>,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Result<RequestId, DeviceError> {
        PacketEngine::irecv(self, from.receive_args(capacity, spare))
    }

    #[inline(always)]
    fn irecv_into(
        &self,
        from: Selection<'_>,
        capacity: usize,
        place: &mut Option<Message>,
        accepts: &dyn Fn(&Message) -> bool,
    ) -> Result<StartedRecv<Envelope>, DeviceError> {
        PacketEngine::irecv_into(self, from.receive_args(capacity, None), place, accepts)
    }

    fn probe(&self, from: Selection<'_>, wait_control: &mut dyn WaitControl) -> Result<Probed, DeviceError> {
        PacketEngine::probe(self, &from.selector, from.members, wait_control)
    }

    fn probe_now(&self, from: Selection<'_>) -> Result<Option<Probed>, DeviceError> {
        PacketEngine::probe_now(self, &from.selector, from.members)
    }

    fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError> {
        PacketEngine::test(self, id)
    }

    fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError> {
        PacketEngine::wait(self, id, deadline, wait_control)
    }

    fn is_done(&self, id: RequestId) -> bool {
        PacketEngine::is_done(self, id)
    }

    fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        PacketEngine::wait_any(self, ids, deadline, wait_control)
    }

    fn cancel(&self, id: RequestId) -> Result<bool, DeviceError> {
        PacketEngine::cancel(self, id)
    }

    fn detach(&self, id: RequestId) {
        PacketEngine::detach(self, id);
    }

    fn world_rank(&self) -> u32 {
        self.rank()
    }

    fn world_size(&self) -> u32 {
        self.size()
    }

    #[inline]
    fn config(&self) -> &Config {
        PacketEngine::config(self)
    }

    fn source(&self) -> &Arc<dyn SlabSource> {
        PacketEngine::source(self)
    }

    fn stats(&self) -> Stats {
        PacketEngine::stats(self)
    }

    #[inline]
    fn check_unfinished(&self) -> Result<(), DeviceError> {
        PacketEngine::check_unfinished(self)
    }

    fn finish(
        &self,
        last_barrier: Option<&mut LastBarrier<'_>>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        PacketEngine::finish(self, last_barrier, wait_control)
    }

    fn take_unreceived(&self) -> Option<Unreceived> {
        PacketEngine::take_unreceived(self)
    }

    fn fail(&self, why: &str) {
        PacketEngine::fail(self, why);
    }

    fn leftovers(&self) -> (usize, usize) {
        PacketEngine::leftovers(self)
    }

    fn check_going(&self, is_end: bool) -> Result<(), DeviceError> {
        PacketEngine::check_going(self, is_end)
    }

    fn send_collective(&self, args: SendArgs<'_>, is_end: bool) -> Result<Option<RequestId>, DeviceError> {
        let SendArgs { message, world, context, tag, mode, .. } = args;
        match is_end {
            true => self.isend_unchecked(world, context, tag, message, mode),
            false => PacketEngine::isend(self, world, context, tag, message, mode),
        }
    }

    fn receive_collective(
        &self,
        from: Selection<'_>,
        capacity: usize,
        is_end: bool,
    ) -> Result<RequestId, DeviceError> {
        match is_end {
            true => Ok(self.irecv_unchecked(from.receive_args(capacity, None))),
            false => PacketEngine::irecv(self, from.receive_args(capacity, None)),
        }
    }

    fn contexts(&self) -> &Mutex<ContextAllocator> {
        &self.contexts
    }

    fn peer_error(&self, world: u32) -> Option<DeviceError> {
        PacketEngine::peer_error(self, world)
    }

    fn reported_peer_error(&self, world: u32) -> DeviceError {
        PacketEngine::reported_peer_error(self, world)
    }

    fn take_abandonment(
        &self,
        context: u64,
        abandonment: &Abandonment,
    ) -> Result<Option<(u32, Option<Message>)>, DeviceError> {
        // A finishing rank takes no messages but those of its last barrier.
        match PacketEngine::check_unfinished(self) {
            Ok(()) => PacketEngine::take_abandonment(self, context, abandonment),
            Err(_) => Ok(None),
        }
    }

    fn wait_collective(
        &self,
        context: u64,
        pending: &[RequestId],
        abandonment: &Abandonment,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let ids: Vec<_> = pending.iter().copied().chain(abandonment.arriving().map(|(id, _)| id)).collect();
        PacketEngine::wait_collective(self, context, &ids, wait_control)
    }
}
