//! A communicator in the library: two communicators there, for the program's messages and for collective
//! operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mpjdev_proto::context::WORLD;
use mpjdev_sys::mpi;
use mpjdev_sys::sync::{LockRank, Mutex};

use super::Rank;
use super::channel::Channel;
use super::probed_messages::SpillState;
use super::retirement::Freed;
use crate::error::DeviceError;

/// The ranks of a communicator, from the view of one of them.
#[derive(Debug)]
pub struct Group {
    rank: Arc<Rank>,
    context: u64,
    /// World rank of each member.
    members: Arc<[u32]>,
    member: u32,
    /// The communicator of the program's messages, and that of collective operations.
    pub(super) comms: [mpi::Comm; 2],
    pub(super) spilled: Mutex<SpillState>,
    pub(super) spilled_len: AtomicUsize,
    is_freed: AtomicBool,
}

impl Group {
    /// The group of all ranks. Its communicators belong to the session.
    pub(super) fn world(rank: Arc<Rank>, members: Arc<[u32]>, comms: [mpi::Comm; 2]) -> Arc<Group> {
        let member = rank.rank();
        Group::new(rank, WORLD, members, member, comms)
    }

    pub(super) fn new(
        rank: Arc<Rank>,
        context: u64,
        members: Arc<[u32]>,
        member: u32,
        comms: [mpi::Comm; 2],
    ) -> Arc<Group> {
        let (spilled, spilled_len) =
            (Mutex::new(LockRank::SpilledMessages, SpillState::default()), AtomicUsize::new(0));
        let is_freed = AtomicBool::new(false);
        let group = Arc::new(Group { rank, context, members, member, comms, spilled, spilled_len, is_freed });
        let mut groups = group.rank.groups.lock();
        groups.retain(|group| group.strong_count() > 0);
        groups.push(Arc::downgrade(&group));
        drop(groups);
        group
    }

    /// The rank of this group.
    pub(crate) fn owner(&self) -> &Arc<Rank> {
        &self.rank
    }

    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    pub(crate) fn members(&self) -> &Arc<[u32]> {
        &self.members
    }

    /// This rank's number in the group.
    pub(crate) fn member(&self) -> u32 {
        self.member
    }

    pub(super) fn comm(&self, channel: Channel) -> mpi::Comm {
        self.comms[channel as usize]
    }

    /// The number of unreceived messages, as far as it can be counted, and of requests whose outcome was not
    /// taken. The library's messages count as one or none.
    pub(crate) fn leftovers(&self) -> (usize, usize) {
        self.rank.progress();
        let any = mpi::RecvFrom { source: None, tag: None };
        let here = matches!(self.rank.mpi.iprobe(any, self.comms[0]), Ok(Some(_)));
        let spilled = self.spilled_len.load(Ordering::Relaxed);
        (spilled + usize::from(here), self.rank.state().requests.len())
    }
}

impl Group {
    /// Frees the communicator while references remain: messages that no receive has taken are dropped from
    /// now on. Posted receives and collective operations continue. Has no effect on the world.
    pub(crate) fn free(&self) {
        if self.context != WORLD && !self.is_freed.swap(true, Ordering::Relaxed) {
            self.retire(false);
        }
    }

    /// Checks that this rank has not freed the communicator.
    ///
    /// # Errors
    /// It has freed it.
    #[inline]
    pub(super) fn check_kept(&self) -> Result<(), DeviceError> {
        match self.is_freed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(DeviceError::Freed),
        }
    }

    fn retire(&self, is_last: bool) {
        let spilled = self.take_all_spilled();
        let (context, members, comms) = (self.context, self.members.clone(), self.comms);
        self.rank.retire(Freed { context, members, comms, spilled, is_last });
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.context != WORLD {
            self.retire(true);
        }
    }
}
