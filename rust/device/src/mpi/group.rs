//! A communicator's place in the library: two communicators there, for the program's messages and for collective operations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mpjdev_proto::context::WORLD;
use mpjdev_sys::mpi;

use super::probing::Spilled;
use super::{Rank, lock, runtime};

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
    /// Messages that probes have taken from the library: all of them came before those that it still has.
    pub(super) spilled: Mutex<Vec<Spilled>>,
    pub(super) spilled_len: AtomicUsize,
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
        Arc::new(Group { rank, context, members, member, comms, spilled, spilled_len })
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

impl Drop for Group {
    fn drop(&mut self) {
        if self.context != WORLD {
            lock(&self.rank.retired).push(self.comms);
        }
    }
}

impl Rank {
    /// Gives back what belongs to communicators that nobody refers to any more: the library has few.
    pub(super) fn free_retired(&self) {
        let retired = std::mem::take(&mut *lock(&self.retired));
        for comm in retired.into_iter().flatten() {
            runtime::empty(self.mpi, comm);
            // MPI has it that this is collective, and that it will normally be local (MPI 4.1, 7.4.3). What cannot be given back
            // is not: no operation depends on it.
            let _ = self.mpi.free(comm);
        }
    }
}
