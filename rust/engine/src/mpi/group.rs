//! A communicator's place in the library: two communicators there, for the program's messages and for collective operations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mpjdev_proto::context::WORLD;
use mpjdev_sys::mpi;

use super::retiring::Freed;
use super::spilled::Spills;
use super::{Rank, lock};
use crate::error::DeviceError;

/// The ranks of a communicator, as one of them sees it.
#[derive(Debug)]
pub struct Group {
    rank: Arc<Rank>,
    context: u64,
    /// World rank of each member.
    members: Arc<[u32]>,
    member: u32,
    /// For the program's messages, and for collective operations.
    pub(super) comms: [mpi::Comm; 2],
    /// Messages that were taken over from the library: all of them came before those that it still has.
    pub(super) spilled: Mutex<Spills>,
    pub(super) spilled_len: AtomicUsize,
    is_freed: AtomicBool,
}

/// Which of a group's communicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Program,
    Collective,
}

impl Group {
    /// The group of all ranks. Its communicators are the round's.
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
        let (spilled, spilled_len) = (Mutex::default(), AtomicUsize::new(0));
        let is_freed = AtomicBool::new(false);
        let group = Arc::new(Group { rank, context, members, member, comms, spilled, spilled_len, is_freed });
        let mut groups = lock(&group.rank.groups);
        groups.retain(|group| group.strong_count() > 0);
        groups.push(Arc::downgrade(&group));
        drop(groups);
        group
    }

    /// The rank that this is a group of.
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

    /// Messages that nobody has received, as far as that can be counted: what the library has is one or none. And requests
    /// that nobody has waited for.
    pub(crate) fn leftovers(&self) -> (usize, usize) {
        self.rank.progress();
        let any = mpi::From { source: None, tag: None };
        let here = matches!(self.rank.mpi.iprobe(any, self.comms[0]), Ok(Some(_)));
        let spilled = self.spilled_len.load(Ordering::Relaxed);
        (spilled + usize::from(here), self.rank.state().requests.len())
    }
}

impl Group {
    /// Frees the communicator while there are references: what no receive has taken is dropped from now on. Receives that are
    /// posted go on, and so do collective operations. Does nothing to the world.
    pub(crate) fn free(&self) {
        if self.context != WORLD && !self.is_freed.swap(true, Ordering::Relaxed) {
            self.retire(false);
        }
    }

    /// Checks that this rank has not freed it.
    ///
    /// # Errors
    /// It has.
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
