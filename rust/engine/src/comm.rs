//! Communicators: a context and its members. Ranks here are numbered in the communicator; errors name world
//! ranks.

mod arrays;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::{Message, SectionHeader, Slab};
use mpjdev_proto::collective::{Communicator, Refusal};
use mpjdev_proto::context::{WORLD, collective};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_transport::wait::WaitControl;

use crate::abandonment::Abandonment;
use crate::any_engine::{AnyEngine, FastRecv, NewEngine};
use crate::clients::Clients;
use crate::collective_state::CollectiveState;
use crate::engine::Engine;
use crate::error::DeviceError;
#[cfg(not(loom))]
use crate::mpi::{CommCreation, Group};
use crate::operation::{Accept, Mode, Probed, Selection, SendArgs, StartedRecv, payload_len};
use crate::packet::PacketEngine;
use crate::request::{Completed, RequestId};

/// A group of ranks with a context of their own.
#[derive(Clone, Debug)]
pub struct Comm {
    engine: AnyEngine,
    context: u64,
    /// World rank of each rank that messages go to: each member, or each one of the remote group.
    members: Arc<[u32]>,
    rank: u32,
    /// The two groups of an intercommunicator.
    groups: Option<Arc<Groups>>,
    abandonment: Arc<Abandonment>,
    /// State between collective operations.
    state: Arc<CollectiveState>,
    /// The clients of IMPI, at the world of a job whose foreign ranks take part in barriers.
    clients: Option<Arc<Clients>>,
}

/// The two groups of an intercommunicator, from the view of one rank.
#[derive(Debug)]
struct Groups {
    /// World ranks of all members, one group behind the other.
    all: Arc<[u32]>,
    first_len: u32,
    /// The group of this rank, by its place among all.
    local: Range<u32>,
    remote_start: u32,
}

impl Groups {
    /// The groups of all these members, of which this rank is the one with this number.
    fn new(all: Arc<[u32]>, first_len: u32, rank: u32) -> Groups {
        let (first, second) = (0..first_len, first_len..all.len() as u32);
        let (local, remote_start) = if rank < first_len { (first, first_len) } else { (second, 0) };
        Groups { all, first_len, local, remote_start }
    }

    fn local(&self) -> &[u32] {
        &self.all[self.local.start as usize..self.local.end as usize]
    }

    fn remote(&self) -> &[u32] {
        let remote_len = self.all.len() - self.local.len();
        &self.all[self.remote_start as usize..][..remote_len]
    }
}

/// A communicator, or its creation in progress.
#[derive(Debug)]
pub(crate) enum Part {
    Made(Comm),
    #[cfg(not(loom))]
    Creating(CommCreation),
}

/// The envelope and size of a message that was received or probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Sender, numbered in the communicator.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Capacity that receiving the message needs: octets of the first physical message without the headers.
    pub size: usize,
    /// Type and count of the first section. `None` for a message without sections, and for a probe if the
    /// section has not arrived: the first packet of a foreign rank may be short.
    pub first: Option<SectionHeader>,
}

/// The source and tag that a caller asks for in a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvFrom {
    /// Rank in the communicator; `None` for any.
    pub source: Option<i32>,
    /// Tag; `None` for any.
    pub tag: Option<i32>,
}

impl Comm {
    /// The communicator of all ranks.
    pub fn world(endpoint: Arc<PacketEngine>) -> Comm {
        Comm::world_with_foreign(endpoint, None)
    }

    /// The communicator of all ranks in a job with foreign ones. If `clients` are given, foreign ranks have a
    /// barrier with the ranks of this project.
    pub fn world_with_foreign(endpoint: Arc<PacketEngine>, clients: Option<Clients>) -> Comm {
        let (rank, members) = (endpoint.rank(), (0..endpoint.size()).collect());
        let world = Comm::new(AnyEngine::Packet(endpoint, None), WORLD, (members, rank));
        Comm { clients: clients.map(Arc::new), ..world }
    }

    /// The communicator of a group of a C MPI.
    #[cfg(not(loom))]
    pub(crate) fn of_group(group: Arc<Group>) -> Comm {
        let (context, members, rank) = (group.context(), group.members().clone(), group.member());
        Comm::new(AnyEngine::Mpi(group), context, (members, rank))
    }

    /// A communicator of these world ranks, of which this rank is the one with this number.
    pub(crate) fn new(engine: AnyEngine, context: u64, (members, rank): (Arc<[u32]>, u32)) -> Comm {
        let (abandonment, state) = (Arc::default(), Arc::default());
        Comm { engine, context, members, rank, groups: None, abandonment, state, clients: None }
    }

    /// An intercommunicator of two groups, the first of which are the first members of this communicator.
    pub(crate) fn into_inter(self, first_len: u32) -> Comm {
        let groups = Groups::new(self.members, first_len, self.rank);
        let (members, rank) = (groups.remote().into(), self.rank - groups.local.start);
        Comm { members, rank, groups: Some(Arc::new(groups)), ..self }
    }

    /// The communicator of this rank alone (MPI_COMM_SELF). Sends no message; over a C MPI it waits for a
    /// local call of the library.
    ///
    /// # Errors
    /// This rank has finished, has no context ids left, or the library fails.
    #[cfg_attr(loom, allow(unused_variables))]
    pub fn alone(&self, wait_control: &mut dyn WaitControl) -> Result<Comm, DeviceError> {
        self.check_unfinished()?;
        let context = self.engine.contexts().lock().allocate().map_err(|_| Refusal::NoContexts)?;
        match self.make(context, Arc::from([self.world_rank()]), 0) {
            Part::Made(comm) => Ok(comm),
            #[cfg(not(loom))]
            Part::Creating(mut creation) => {
                creation.wait(wait_control)?;
                creation.take().unwrap_or(Err(DeviceError::NoSuchRequest)).map(Comm::of_group)
            }
        }
    }

    /// A communicator of some members of this one, given by their ranks in it, or its creation by a C MPI.
    pub(crate) fn part(&self, made: &Communicator) -> Part {
        let all = self.all_members();
        self.make(made.context, made.members.iter().map(|m| all[*m as usize]).collect(), made.rank)
    }

    /// A communicator of these world ranks, of which this rank is the one with this number, or its creation
    /// by a C MPI.
    pub(crate) fn make(&self, context: u64, members: Arc<[u32]>, rank: u32) -> Part {
        match self.engine.create(context, &members, rank) {
            NewEngine::Ready(engine) => Part::Made(Comm::new(engine, context, (members, rank))),
            #[cfg(not(loom))]
            NewEngine::Creating(creation) => Part::Creating(creation),
        }
    }

    /// Frees this communicator at this rank, unless it is the world. Does not block.
    ///
    /// Messages that no receive has taken are dropped, later arrivals too. They count as received, so their
    /// synchronous sends complete. Posted receives still get their messages, and running collective
    /// operations continue. Dropping the last reference has the same effect.
    pub fn free(&self) {
        self.engine.free();
    }

    /// This communicator on the [remains](PacketEngine::remains) of its rank.
    pub fn on(&self, remains: &Arc<PacketEngine>) -> Comm {
        let engine = AnyEngine::Packet(remains.clone(), None);
        // The memory is that of the rank.
        Comm { engine, clients: None, state: Arc::default(), ..self.clone() }
    }

    /// Whether this is the communicator of all ranks, from which the others are created.
    pub fn is_world(&self) -> bool {
        self.context == WORLD
    }

    /// Number of this rank in the communicator, or in its group of an intercommunicator.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of members, in an intercommunicator of the local group.
    #[inline]
    pub fn size(&self) -> usize {
        self.members().len()
    }

    /// World rank of each member, in an intercommunicator of the local group.
    #[inline]
    pub fn members(&self) -> &[u32] {
        self.groups.as_ref().map_or(&self.members, |groups| groups.local())
    }

    /// World rank of each rank that messages go to: of each member, or of the remote group of an
    /// intercommunicator.
    #[inline]
    pub fn peers(&self) -> &[u32] {
        &self.members
    }

    /// Whether this is an intercommunicator: messages go to another group.
    pub fn is_inter(&self) -> bool {
        self.groups.is_some()
    }

    /// World rank of each member, of both groups of an intercommunicator. Collective operations number the
    /// members in this order.
    pub(crate) fn all_members(&self) -> &Arc<[u32]> {
        self.groups.as_ref().map_or(&self.members, |groups| &groups.all)
    }

    /// Number of this rank among all members.
    pub(crate) fn place(&self) -> u32 {
        self.groups.as_ref().map_or(0, |groups| groups.local.start) + self.rank
    }

    /// Number among all members of rank 0 of the ranks that messages go to.
    #[inline]
    pub(crate) fn first_peer(&self) -> u32 {
        self.groups.as_ref().map_or(0, |groups| groups.remote_start)
    }

    /// Number of members of the first group of an intercommunicator.
    pub(crate) fn first_len(&self) -> Option<u32> {
        self.groups.as_ref().map(|groups| groups.first_len)
    }

    /// The rank of this communicator in the packet engine; `None` over a C MPI.
    pub fn packet_engine(&self) -> Option<&Arc<PacketEngine>> {
        self.engine.packet()
    }

    /// The world rank of the first member that is foreign; `None` without foreign members.
    pub(crate) fn first_foreign(&self) -> Option<u32> {
        self.packet_engine()?.first_foreign(self.all_members())
    }

    pub(crate) fn clients(&self) -> Option<&Clients> {
        self.clients.as_deref()
    }

    /// Whether this is a communicator of `endpoint`.
    #[cfg(not(loom))]
    pub fn is_of(&self, endpoint: &Arc<PacketEngine>) -> bool {
        self.packet_engine().is_some_and(|own| Arc::ptr_eq(own, endpoint))
    }

    pub(crate) fn state(&self) -> &CollectiveState {
        &self.state
    }

    pub(crate) fn abandonment(&self) -> &Abandonment {
        &self.abandonment
    }

    pub(crate) fn engine(&self) -> &AnyEngine {
        &self.engine
    }

    /// The context of messages between programs.
    pub fn context(&self) -> u64 {
        self.context
    }

    /// Sends a message. Blocks until it is sent or matched, as the mode requires.
    ///
    /// # Errors
    /// A bad rank or tag; the peer has failed or finished; interrupted.
    #[inline]
    pub fn send(
        &self,
        message: &Message,
        dest: i32,
        tag: i32,
        mode: Mode,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        self.engine.send(self.send_args(message, dest, tag, mode)?, wait_control)
    }

    /// Starts a send; `None` when it is complete already. Does not block.
    ///
    /// # Errors
    /// A bad rank or tag; the peer has failed or finished.
    #[inline]
    pub fn isend(
        &self,
        message: &Message,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        self.engine.isend(self.send_args(message, dest, tag, mode)?)
    }

    /// Receives a message of at most `capacity` octets of primary payload. Blocks.
    ///
    /// # Errors
    /// A bad rank or tag; the message is too large or damaged; no rank is left that could send it;
    /// interrupted.
    #[inline]
    pub fn recv(
        &self,
        from: RecvFrom,
        capacity: usize,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Status, Message), DeviceError> {
        let mut place = spare.map(Message::from_empty_slab);
        let spins = self.config().spins;
        match (self.try_recv_polling(from, capacity, Accept::Packed, &mut place, spins), place) {
            (Ok(status), Some(message)) => Ok((status, message)),
            (Ok(_), None) => Err(DeviceError::NoSuchRequest),
            (Err(fast), place) => {
                let spare = place.map(Message::into_slab);
                self.recv_posted(fast, from, capacity, Accept::Packed, spare, wait_control)
            }
        }
    }

    /// Polls for a message of at most `capacity` octets of primary payload and stores it in `place`. Spins up
    /// to `spins` times before it yields. If `accept` allows it, the sender may still pack the message. The
    /// memory in `place` has no other reference; its contents are undefined after an error.
    ///
    /// # Errors
    /// `FastRecv::Failed`: a bad rank or tag, and nothing has changed; or the message is too large or
    /// damaged, and is consumed. Any other result without a message goes to
    /// [`recv_posted`](Self::recv_posted), which receives the message.
    #[inline(always)]
    pub fn try_recv_polling(
        &self,
        from: RecvFrom,
        capacity: usize,
        accept: Accept,
        place: &mut Option<Message>,
        spins: u32,
    ) -> Result<Status, FastRecv> {
        match self.engine.try_recv_polling(self.selection(from)?, capacity, accept, place, spins) {
            FastRecv::Done(envelope) => match place {
                Some(message) => Ok(self.status(&envelope, message)),
                None => Err(DeviceError::NoSuchRequest.into()),
            },
            fast => Err(fast),
        }
    }

    /// Completes a [`recv`](Self::recv) after an empty [`try_recv_polling`](Self::try_recv_polling).
    /// Blocks.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv).
    pub fn recv_posted(
        &self,
        fast: FastRecv,
        from: RecvFrom,
        capacity: usize,
        accept: Accept,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Status, Message), DeviceError> {
        if let FastRecv::Failed(error) = fast {
            return Err(*error);
        }
        mpjdev_profile::take_time();
        let selection = self.selection(from)?;
        let (envelope, message) =
            self.engine.recv_posted(fast, selection, capacity, accept, spare, wait_control)?;
        Ok((self.status(&envelope, &message), message))
    }

    /// Posts a receive. Does not block.
    ///
    /// # Errors
    /// A bad rank or tag; this rank has finished.
    pub fn irecv(
        &self,
        from: RecvFrom,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Result<RequestId, DeviceError> {
        self.engine.irecv(self.selection(from)?, capacity, spare)
    }

    /// Starts a receive as [`irecv`](Self::irecv) does. A message that has arrived in full and that `accepts`
    /// takes is received at once and is in `place`, and no request is made. The memory in `place` has no
    /// other reference; its contents are undefined unless a message is received. Does not block.
    ///
    /// # Errors
    /// As for [`irecv`](Self::irecv). The failure of a message is the outcome of the request.
    #[inline(always)]
    pub fn irecv_into(
        &self,
        from: RecvFrom,
        capacity: usize,
        place: &mut Option<Message>,
        accepts: &dyn Fn(&Message) -> bool,
    ) -> Result<StartedRecv<Status>, DeviceError> {
        match self.engine.irecv_into(self.selection(from)?, capacity, place, accepts)? {
            StartedRecv::Received(envelope) => match place {
                Some(message) => Ok(StartedRecv::Received(self.status(&envelope, message))),
                None => Err(DeviceError::NoSuchRequest),
            },
            StartedRecv::Posted(id) => Ok(StartedRecv::Posted(id)),
        }
    }

    /// Waits for a message without receiving it. Blocks.
    ///
    /// # Errors
    /// A bad rank or tag; no rank is left that could send it; interrupted.
    pub fn probe(&self, from: RecvFrom, wait_control: &mut dyn WaitControl) -> Result<Status, DeviceError> {
        let probed = self.engine.probe(self.selection(from)?, wait_control)?;
        Ok(self.probed(probed))
    }

    /// Polls for a message without receiving it. Does not block.
    ///
    /// # Errors
    /// A bad rank or tag; no rank is left that could send it.
    pub fn iprobe(&self, from: RecvFrom) -> Result<Option<Status>, DeviceError> {
        let found = self.engine.probe_now(self.selection(from)?)?;
        Ok(found.map(|probed| self.probed(probed)))
    }

    fn probed(&self, Probed { envelope, size, first }: Probed) -> Status {
        Status { first, ..self.seen(&envelope, size) }
    }

    /// The outcome of a request if it is complete; the request is removed then. Does not block.
    ///
    /// # Errors
    /// Those of the operation; no such request.
    pub fn test(&self, id: RequestId) -> Result<Option<Done>, DeviceError> {
        let completed = self.engine.test(id)?;
        Ok(completed.map(|completed| self.done(completed)))
    }

    /// Waits for a request. Blocks.
    ///
    /// # Errors
    /// Those of the operation; timed out or interrupted: the request is still pending then.
    pub fn wait(
        &self,
        id: RequestId,
        deadline: Option<Instant>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Done, DeviceError> {
        mpjdev_profile::take_time();
        let completed = self.engine.wait(id, deadline, wait_control)?;
        Ok(self.done(completed))
    }

    fn done(&self, completed: Completed) -> Done {
        match (completed.envelope, completed.message) {
            (Some(envelope), Some(message)) => {
                Done { status: Some(self.status(&envelope, &message)), message: Some(message) }
            }
            _ => Done { status: None, message: None },
        }
    }

    #[inline(always)]
    fn status(&self, envelope: &Envelope, message: &Message) -> Status {
        let size = message.first_len() - mpjdev_buffer::layout::MESSAGE_OVERHEAD;
        mpjdev_profile::received(envelope.source, || payload_len(message));
        Status { first: message.first_section(), ..self.seen(envelope, size) }
    }

    #[inline(always)]
    fn seen(&self, envelope: &Envelope, size: usize) -> Status {
        Status { source: self.rank_of(envelope.source), tag: envelope.tag, size, first: None }
    }

    /// The rank in this communicator of a world rank.
    #[inline]
    fn rank_of(&self, world: u32) -> u32 {
        // The world, and any communicator whose members begin in the same order, needs no search.
        if self.members.get(world as usize) == Some(&world) {
            return world;
        }
        self.members.iter().position(|m| *m == world).map_or(world, |at| at as u32)
    }

    /// The world rank of a rank in this communicator.
    #[inline]
    pub(crate) fn member(&self, rank: i32) -> Result<u32, DeviceError> {
        match usize::try_from(rank).ok().and_then(|r| self.members.get(r)) {
            Some(world) => Ok(*world),
            None => Err(DeviceError::BadRank { rank, size: self.members.len() }),
        }
    }

    #[inline]
    pub(crate) fn check_tag(&self, tag: i32) -> Result<(), DeviceError> {
        let max = self.config().tag_ub;
        if tag < 0 || tag > max { Err(DeviceError::BadTag { tag, max }) } else { Ok(()) }
    }

    /// The checked arguments of a send.
    #[inline]
    fn send_args<'a>(
        &self,
        message: &'a Message,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<SendArgs<'a>, DeviceError> {
        let world = self.member(dest)?;
        self.check_tag(tag)?;
        let member = self.first_peer() + dest as u32;
        Ok(SendArgs { message, member, world, context: self.context, tag, mode })
    }

    /// The checked source and tag of a receive or a probe.
    #[inline]
    fn selection(&self, from: RecvFrom) -> Result<Selection<'_>, DeviceError> {
        let source = from.source.map(|s| self.member(s)).transpose()?;
        if let Some(tag) = from.tag {
            self.check_tag(tag)?;
        }
        let selector = Selector { context: self.context, source, tag: from.tag };
        let member = from.source.map(|source| self.first_peer() + source as u32);
        Ok(Selection { selector, member, members: &self.members })
    }

    /// The source, numbered among all members, and tag of a receive in a collective operation.
    pub(crate) fn collective_selection(&self, source: u32, tag: i32) -> Selection<'_> {
        let members = self.all_members();
        let selector = Selector {
            context: collective(self.context),
            source: Some(members[source as usize]),
            tag: Some(tag),
        };
        Selection { selector, member: Some(source), members }
    }
}

/// The result of a finished request.
#[derive(Debug)]
pub struct Done {
    /// The status of a receive; `None` for a send.
    pub status: Option<Status>,
    /// The message of a receive; `None` for a send.
    pub message: Option<Message>,
}
