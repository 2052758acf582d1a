//! How communicators are made: by the library, which waits inside until all members are there, whatever happens to them. So they meet
//! before, where a member that has finished is noticed; and threads make several at once without meeting each other's.

use std::sync::Arc;

use mpjdev_sys::mpi::{self, Operation, Outcome};

use super::Rank;
use super::group::Group;
use super::octets::Octets;
use crate::error::DeviceError;
use crate::waiting::{Backoff, Patient};

impl Group {
    /// A group of these ranks of the world, all of which make it now. Blocks until they do: they have agreed on it, so that each is
    /// here or about to be.
    ///
    /// # Errors
    /// The library's.
    pub(crate) fn part(
        &self,
        context: u64,
        members: Arc<[u32]>,
        member: u32,
    ) -> Result<Arc<Group>, DeviceError> {
        let rank = self.owner();
        rank.free_retired();
        let tag = tag_of(context, rank.round.tag_max);
        rank.meet(&members, tag)?;
        let make = || {
            let comm = rank.mpi.create_group(rank.round.origin, &members, tag)?;
            rank.mpi.return_errors(comm).map(|()| comm)
        };
        let comms = [make()?, make()?];
        Ok(Group::new(rank.clone(), context, members, member, comms))
    }
}

impl Rank {
    /// Comes back when all these ranks of the world have come: the first one hears from all others, and tells them.
    fn meet(&self, members: &[u32], tag: i32) -> Result<(), DeviceError> {
        let Some((first, others)) = members.split_first() else { return Ok(()) };
        if *first != self.rank {
            self.call(*first, tag)?;
            return self.await_call(*first, tag, members);
        }
        others.iter().try_for_each(|other| self.await_call(*other, tag, members))?;
        others.iter().try_for_each(|other| self.call(*other, tag))
    }

    /// Waits for a call, unless a member has finished, which may not have come.
    fn await_call(&self, from: u32, tag: i32, members: &[u32]) -> Result<(), DeviceError> {
        let from = mpi::From { source: Some(from), tag: Some(tag) };
        let slab = self.source.take(0)?;
        let mut call = Operation::receive(self.mpi, Box::new(Octets(slab)), 0, from, self.round.calls)?;
        let backoff = Backoff::new(&self.config);
        self.block(None, backoff, &mut Patient, || {
            if call.test()?.is_some() {
                return Ok(Some(()));
            }
            let Some(error) = self.first_finished(members) else { return Ok(None) };
            // It may have come, and finished since. A receive that stayed would keep the communicator.
            call.cancel()?;
            loop {
                match call.test()? {
                    Some(Outcome::Done(_)) => return Ok(Some(())),
                    Some(Outcome::Cancelled) => return Err(error),
                    None => std::thread::yield_now(),
                }
            }
        })
    }

    fn call(&self, dest: u32, tag: i32) -> Result<(), DeviceError> {
        let slab = self.source.take(0)?;
        let to = mpi::To { dest, tag, comm: self.round.calls, mode: mpi::Mode::Standard };
        let mut call = Operation::send(self.mpi, Octets(slab), 0, to)?;
        let backoff = Backoff::new(&self.config);
        self.block(None, backoff, &mut Patient, || Ok(call.test()?.map(drop)))
    }
}

/// The tag of what belongs to the making of a context's communicator: another one for each that may be made meanwhile.
fn tag_of(context: u64, tag_max: i32) -> i32 {
    let (rank, counter) = ((context >> 32) & 0xfff, (context >> 1) & 0xffff);
    ((rank << 16 | counter) % (tag_max as u64 + 1)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_of_a_time_have_tags_of_their_own() {
        let contexts = (0..40).flat_map(|rank| (1..500).map(move |counter| (rank << 32) | (2 * counter)));
        let mut tags: Vec<i32> = contexts.map(|context| tag_of(context, (1 << 28) - 1)).collect();
        let made = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), made);
        assert!((0..=32_767).contains(&tag_of(u64::MAX >> 2, 32_767)));
    }
}
