//! Creation of the library's communicators for a new communicator, off the threads that must not block.
//!
//! The library makes a communicator in a call that blocks until all members have made it. By then rank 0 of
//! the parent has decided the creation. So every member is in this call or about to be, even if its program
//! has left it meanwhile, and the call is short. A thread that blocks makes the communicator itself, without
//! a reaction to interrupts meanwhile. A thread that only polls may be the carrier of a virtual thread that
//! another member waits for; a thread of its own makes the communicator then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use mpjdev_sys::sync::{LockRank, Mutex};
use mpjdev_transport::wait::{Backoff, WaitControl};

use super::Rank;
use super::group::Group;
use crate::error::DeviceError;

/// The result of the library's calls.
type Made = Result<Arc<Group>, DeviceError>;

/// The creation of a communicator. If it is dropped before the group is taken, the group is made and
/// left.
#[derive(Debug)]
pub(crate) struct CommCreation {
    parent: Arc<Group>,
    /// The arguments of the creation, until a thread starts it.
    due: Mutex<Option<Due>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Due {
    context: u64,
    members: Arc<[u32]>,
    member: u32,
}

#[derive(Debug)]
struct Shared {
    is_done: AtomicBool,
    slot: Mutex<Slot>,
}

impl Default for Shared {
    fn default() -> Self {
        Shared { is_done: AtomicBool::new(false), slot: Mutex::new(LockRank::Leaf, Slot::Pending) }
    }
}

#[derive(Debug)]
enum Slot {
    Pending,
    Made(Made),
    /// The group was taken, or will never be.
    Closed,
}

impl CommCreation {
    /// The creation of a group of these world ranks.
    pub(crate) fn new(parent: &Arc<Group>, context: u64, members: Arc<[u32]>, member: u32) -> CommCreation {
        let due = Mutex::new(LockRank::Leaf, Some(Due { context, members, member }));
        CommCreation { parent: parent.clone(), due, shared: Arc::default() }
    }

    /// Starts the creation on a thread of its own, unless it is in progress. Does not block, unless the
    /// system has no thread left.
    pub(crate) fn start(&self) {
        let Some(due) = self.due.lock().take() else { return };
        let (group, shared) = (self.parent.clone(), self.shared.clone());
        let make = Arc::new(move || shared.put(group.make(&due)));
        let calls = make.clone();
        if !self.parent.owner().clone().make_aside(move || calls()) {
            make();
        }
    }

    /// The group, once it is made.
    pub(crate) fn take(&mut self) -> Option<Made> {
        if !self.shared.is_done.load(Ordering::Acquire) {
            return None;
        }
        match std::mem::replace(&mut *self.shared.slot.lock(), Slot::Closed) {
            Slot::Made(made) => Some(made),
            Slot::Pending | Slot::Closed => Some(Err(DeviceError::NoSuchRequest)),
        }
    }

    /// Makes the group, or waits until it is made.
    pub(crate) fn wait(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let rank = self.parent.owner();
        let due = self.due.lock().take();
        if let Some(due) = due {
            self.shared.put(self.parent.make(&due));
            return Ok(());
        }
        let is_done = || self.shared.is_done.load(Ordering::Acquire);
        rank.block(None, Backoff::new(rank.config()), wait_control, || Ok(is_done().then_some(())))
    }
}

impl Drop for CommCreation {
    fn drop(&mut self) {
        // The other members wait for this rank inside the library.
        self.start();
        let before = std::mem::replace(&mut *self.shared.slot.lock(), Slot::Closed);
        if let Slot::Made(made) = before {
            leave(made);
        }
    }
}

impl Shared {
    fn put(&self, made: Made) {
        let mut slot = self.slot.lock();
        if let Slot::Closed = *slot {
            drop(slot);
            return leave(made);
        }
        *slot = Slot::Made(made);
        self.is_done.store(true, Ordering::Release);
    }
}

/// Leaves a group that this rank takes no part in.
fn leave(made: Made) {
    if let Ok(group) = made {
        let leave = group.owner().leave;
        leave(group);
    }
}

impl Rank {
    /// Runs `make` on a thread of its own, which the finish waits for; false when the system has no thread
    /// left.
    pub(crate) fn make_aside(self: Arc<Self>, make: impl FnOnce() + Send + 'static) -> bool {
        self.makers.fetch_add(1, Ordering::AcqRel);
        let rank = self.clone();
        let maker = move || {
            make();
            rank.makers.fetch_sub(1, Ordering::AcqRel);
        };
        let is_begun = std::thread::Builder::new().name("mpjdev-comm".into()).spawn(maker).is_ok();
        if !is_begun {
            self.makers.fetch_sub(1, Ordering::AcqRel);
        }
        is_begun
    }

    /// Waits a limited time for the threads that make communicators: other ranks may wait for them inside the
    /// library.
    pub(super) fn await_makers(&self, wait_control: &mut dyn WaitControl) {
        let end = Instant::now() + self.config.finish_timeout;
        let _ = self.block(Some(end), Backoff::new(&self.config), wait_control, || {
            Ok((self.makers.load(Ordering::Acquire) == 0).then_some(()))
        });
    }
}

impl Group {
    /// Makes a group of these world ranks, all of which make it now. Blocks until they do.
    ///
    /// # Errors
    /// Those of the library.
    fn make(&self, due: &Due) -> Made {
        let Due { context, members, member } = due;
        let (context, member) = (*context, *member);
        let rank = self.owner();
        rank.visit_freed(usize::MAX);
        let tag = tag_of(context, rank.session.tag_max);
        let make = || {
            let comm = rank.mpi.create_group(rank.session.origin, members, tag)?;
            rank.mpi.return_errors(comm).map(|()| comm)
        };
        let comms = [make()?, make()?];
        Ok(Group::new(rank.clone(), context, members.clone(), member, comms))
    }
}

/// The tag of the library's messages during the creation of a context's communicator. Creations at the same
/// time have different tags.
fn tag_of(context: u64, tag_max: i32) -> i32 {
    let (rank, counter) = ((context >> 32) & 0xfff, (context >> 1) & 0xffff);
    ((rank << 16 | counter) % (tag_max as u64 + 1)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_contexts_have_different_tags() {
        let contexts = (0..40).flat_map(|rank| (1..500).map(move |counter| (rank << 32) | (2 * counter)));
        let mut tags: Vec<i32> = contexts.map(|context| tag_of(context, (1 << 28) - 1)).collect();
        let made = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), made);
        assert!((0..=32_767).contains(&tag_of(u64::MAX >> 2, 32_767)));
    }
}
