//! The C MPI engine as a communicator uses it.

use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_proto::context::ContextAllocator;
use mpjdev_proto::envelope::Envelope;
use mpjdev_sys::sync::Mutex;
use mpjdev_transport::config::Config;
use mpjdev_transport::stats::Stats;
use mpjdev_transport::wait::WaitControl;

use super::{Group, Receive, Wanted};
use crate::abandonment::{Abandonment, NOTICE_CAPACITY};
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::{
    Accept, FastRecv, LastBarrier, Probed, Selection, SendArgs, SentAhead, StartedRecv, Unreceived,
};
use crate::request::{Completed, RequestId};

impl From<Selection<'_>> for Wanted {
    #[inline]
    fn from(from: Selection<'_>) -> Wanted {
        Wanted { source: from.member, tag: from.selector.tag }
    }
}

impl Engine for Arc<Group> {
    type Posted = Box<Receive>;

    fn send(&self, args: SendArgs<'_>, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let SendArgs { message, member, tag, mode, .. } = args;
        Group::send(self, member, tag, message, mode, wait_control)
    }

    #[inline]
    fn isend(&self, args: SendArgs<'_>) -> Result<Option<RequestId>, DeviceError> {
        let SendArgs { message, member, tag, mode, .. } = args;
        Group::isend(self, member, tag, message, mode)
    }

    /// Never: the library takes packed messages only.
    fn send_ahead(&self, _: SendArgs<'_>) -> Result<Option<SentAhead>, DeviceError> {
        Ok(None)
    }

    fn send_packed(&self, _: u32) {}

    fn await_packed(
        &self,
        _: u32,
        message: &mut Message,
        _: usize,
        _: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        Ok(message.first_len())
    }

    #[inline]
    fn try_recv_polling(
        &self,
        from: Selection<'_>,
        capacity: usize,
        _: Accept,
        place: &mut Option<Message>,
        _: u32,
    ) -> FastRecv<Box<Receive>> {
        Group::try_recv_polling(self, from.into(), capacity, place)
    }

    fn recv_posted(
        &self,
        fast: FastRecv<Box<Receive>>,
        from: Selection<'_>,
        capacity: usize,
        _: Accept,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        Group::recv_posted(self, fast, from.into(), capacity, spare, wait_control)
    }

    fn irecv(
        &self,
        from: Selection<'_>,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Result<RequestId, DeviceError> {
        Group::irecv(self, from.into(), capacity, spare)
    }

    /// Posts a receive: the library says of each message when it has arrived.
    fn irecv_into(
        &self,
        from: Selection<'_>,
        capacity: usize,
        place: &mut Option<Message>,
        _: &dyn Fn(&Message) -> bool,
    ) -> Result<StartedRecv<Envelope>, DeviceError> {
        let spare = place.take().map(Message::into_slab);
        Group::irecv(self, from.into(), capacity, spare).map(StartedRecv::Posted)
    }

    fn probe(&self, from: Selection<'_>, wait_control: &mut dyn WaitControl) -> Result<Probed, DeviceError> {
        Group::probe(self, from.into(), wait_control)
    }

    fn probe_now(&self, from: Selection<'_>) -> Result<Option<Probed>, DeviceError> {
        Group::probe_now(self, from.into())
    }

    fn test(&self, id: RequestId) -> Result<Option<Completed>, DeviceError> {
        self.owner().test(id)
    }

    fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError> {
        self.owner().wait(id, deadline, wait_control)
    }

    fn is_done(&self, id: RequestId) -> bool {
        self.owner().is_done(id)
    }

    fn wait_any(
        &self,
        ids: &[RequestId],
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        self.owner().wait_any(ids, deadline, wait_control)
    }

    fn cancel(&self, id: RequestId) -> Result<bool, DeviceError> {
        self.owner().cancel(id)
    }

    fn detach(&self, id: RequestId) {
        self.owner().detach(id);
    }

    fn world_rank(&self) -> u32 {
        self.owner().rank()
    }

    fn world_size(&self) -> u32 {
        self.owner().size()
    }

    #[inline]
    fn config(&self) -> &Config {
        self.owner().config()
    }

    fn source(&self) -> &Arc<dyn SlabSource> {
        self.owner().source()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    #[inline]
    fn check_unfinished(&self) -> Result<(), DeviceError> {
        self.owner().check_unfinished()
    }

    // No rank of a C MPI is foreign.
    fn finish(
        &self,
        _: Option<&mut LastBarrier<'_>>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        self.owner().finish(wait_control)
    }

    fn take_unreceived(&self) -> Option<Unreceived> {
        self.owner().take_unreceived()
    }

    fn fail(&self, why: &str) {
        self.owner().fail(why);
    }

    fn leftovers(&self) -> (usize, usize) {
        Group::leftovers(self)
    }

    fn check_going(&self, _: bool) -> Result<(), DeviceError> {
        self.owner().check_unfinished()
    }

    fn send_collective(&self, args: SendArgs<'_>, _: bool) -> Result<Option<RequestId>, DeviceError> {
        Group::send_collective(self, args.member, args.tag, args.message)
    }

    fn receive_collective(
        &self,
        from: Selection<'_>,
        capacity: usize,
        _: bool,
    ) -> Result<RequestId, DeviceError> {
        Group::receive_collective(self, from.into(), capacity)
    }

    fn contexts(&self) -> &Mutex<ContextAllocator> {
        self.owner().contexts()
    }

    fn peer_error(&self, world: u32) -> Option<DeviceError> {
        self.owner().first_finished(&[world])
    }

    fn reported_peer_error(&self, world: u32) -> DeviceError {
        DeviceError::PeerFinished { rank: world }
    }

    fn take_abandonment(
        &self,
        _: u64,
        _: &Abandonment,
    ) -> Result<Option<(u32, Option<Message>)>, DeviceError> {
        Group::take_abandonment(self, NOTICE_CAPACITY)
    }

    fn wait_collective(
        &self,
        _: u64,
        pending: &[RequestId],
        _: &Abandonment,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        Group::wait_collective(self, pending, wait_control)
    }
}
