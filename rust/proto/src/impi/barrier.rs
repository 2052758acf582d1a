//! The barrier of a communicator whose members run under several clients (IMPI 13).
//!
//! The members of each client have a barrier of their own kind; then the clients' *masters* have one with the
//! messages of IMPI; then the members of each client have one again. [`Masters`] lists the masters,
//! [`Barrier`] is the part in the middle.

use thiserror::Error;

use super::layout::TAG_BARRIER;

/// The member with the lowest rank of each client (IMPI 1): numbered from 0 by rank. Rank 0 is one, and has
/// the number 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masters {
    all: Vec<Master>,
}

/// The master of a client's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Master {
    /// Rank of the client.
    pub client: u32,
    /// Its rank in the communicator: lsrank of its packets.
    pub rank: u32,
    /// Its rank in MPI_COMM_WORLD.
    pub world_rank: u32,
}

/// A request of the machine to its driver: empty messages of [`TAG`](Barrier::TAG) on the communicator's
/// collective context id, which is its own plus one (IMPI 11.2). Ranks are those in MPI_COMM_WORLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Send a message, in standard mode, without waiting for it.
    Send {
        /// World rank of the destination.
        dest: u32,
    },
    /// Receive a message from exactly this source, and pass it to [`Barrier::handle_received`].
    Receive {
        /// World rank of the source.
        source: u32,
    },
}

/// The masters' part of a barrier, on one process of the communicator.
///
/// The calling order: the barrier of the process's own client, then
/// [`handle_local_done`](Self::handle_local_done); then [`poll_action`](Self::poll_action) until it returns
/// `None`, carrying out each action; until it [`is_over`](Self::is_over), wait for the requested receive,
/// pass it in, and begin again. When it is over, the second barrier of the own client begins. A process that
/// is not a master has no action in between: it waits in its second local barrier until its master enters
/// that.
///
/// ```text
///   linear, m <= maxlinear       tree, m > maxlinear; here m = 6
///
///     1   2   3   4                    0             each: receive from the children, the farthest first;
///      \   \ /   /                   / | \                  send to the parent, receive from the parent;
///       +-- 0 --+                  1  2  4                 send to the children, the nearest first
///                                 / \
///   0 receives from 1, 2, ...,    3   5              parent of v: v without its highest bit
///   then sends to 1, 2, ...                          here 0 receives from 4, 2, 1 and sends to 1, 2, 4
/// ```
///
/// When a receive cannot complete because its source has failed or finished, the barrier cannot complete
/// either: IMPI has no message to notify the others. The driver drops the machine, and the job fails.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// The remaining actions, the next one last; empty where this process is no master.
    left: Vec<Action>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Not all members of the own client have entered.
    Local,
    /// The next of `left`.
    Ready,
    /// A receive from this source was requested.
    Waiting { source: u32 },
}

/// An unexpected message; its sender violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BarrierError {
    /// No receive for it was requested.
    #[error("a barrier message of rank {source_rank} was not asked for")]
    NotAskedFor {
        /// World rank of the sender.
        source_rank: u32,
    },
    /// It has data.
    #[error("the barrier message of rank {source_rank} has {len} octets, it must have none")]
    NotEmpty {
        /// World rank of the sender.
        source_rank: u32,
        /// Its msglen.
        len: u64,
    },
}

impl Masters {
    /// The masters of MPI_COMM_WORLD, from the client of each process by rank.
    #[must_use]
    pub fn of_clients(clients: impl IntoIterator<Item = u32>) -> Self {
        Self::find((0..).zip(clients).map(|(rank, client)| Master { client, rank, world_rank: rank }))
    }

    /// The first member of each client, of members by ascending rank.
    fn find(members: impl IntoIterator<Item = Master>) -> Self {
        let mut all: Vec<Master> = Vec::new();
        for member in members {
            // A job has 32 clients at most.
            if all.iter().all(|master| master.client != member.client) {
                all.push(member);
            }
        }
        Self { all }
    }

    /// All masters; a master's number is its index.
    #[must_use]
    pub fn all(&self) -> &[Master] {
        &self.all
    }

    /// The number of the master with this world rank.
    #[must_use]
    pub fn number(&self, world_rank: u32) -> Option<usize> {
        self.all.iter().position(|master| master.world_rank == world_rank)
    }
}

impl Barrier {
    /// The tag of all its messages (IMPI 3.6).
    pub const TAG: i32 = TAG_BARRIER;

    /// Enters the barrier of a communicator with these masters, as the process with this world rank;
    /// `maxlinear` is that of the job's [`Tables`](super::startup::Tables).
    #[must_use]
    pub fn new(masters: &Masters, world_rank: u32, maxlinear: u32) -> Self {
        let (m, at) = (masters.all.len(), |number: usize| masters.all[number].world_rank);
        let mut left = match masters.number(world_rank) {
            None => Vec::new(),
            Some(number) if m <= maxlinear as usize => linear(number, m, at),
            Some(number) => tree(number, m, at),
        };
        left.reverse();
        Self { left, step: Step::Local }
    }

    /// All members that run under the own client have entered.
    pub fn handle_local_done(&mut self) {
        if self.step == Step::Local {
            self.step = Step::Ready;
        }
    }

    /// The next action; `None` if there is none before the next input.
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.step != Step::Ready {
            return None;
        }
        let action = self.left.pop()?;
        if let Action::Receive { source } = action {
            self.step = Step::Waiting { source };
        }
        Some(action)
    }

    /// The requested receive is complete: the world rank of its source, and its msglen.
    ///
    /// # Errors
    /// It was not requested, or has data; nothing changes.
    pub fn handle_received(&mut self, source_rank: u32, len: u64) -> Result<(), BarrierError> {
        if self.step != (Step::Waiting { source: source_rank }) {
            return Err(BarrierError::NotAskedFor { source_rank });
        }
        if len != 0 {
            return Err(BarrierError::NotEmpty { source_rank, len });
        }
        self.step = Step::Ready;
        Ok(())
    }

    /// Whether only the second barrier of the own client is left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.step == Step::Ready && self.left.is_empty()
    }
}

/// Master 0 receives from the others in order, then sends to each in order (IMPI 13).
fn linear(number: usize, m: usize, at: impl Fn(usize) -> u32) -> Vec<Action> {
    if number != 0 {
        return vec![Action::Send { dest: at(0) }, Action::Receive { source: at(0) }];
    }
    let receives = (1..m).map(|other| Action::Receive { source: at(other) });
    let sends = (1..m).map(|other| Action::Send { dest: at(other) });
    receives.chain(sends).collect()
}

/// Up the tree, and down again (IMPI 13). The children of v are v + 2^i for every i above the highest bit of
/// v, up to the number of masters.
fn tree(number: usize, m: usize, at: impl Fn(usize) -> u32) -> Vec<Action> {
    let bits_above = number.checked_ilog2().map_or(0, |highest| highest + 1);
    let children: Vec<u32> = (bits_above..usize::BITS)
        .map_while(|bit| number.checked_add(1 << bit).filter(|child| *child < m))
        .map(&at)
        .collect();
    let mut actions: Vec<Action> =
        children.iter().rev().map(|source| Action::Receive { source: *source }).collect();
    if let Some(highest) = number.checked_ilog2() {
        let parent = at(number & !(1 << highest));
        actions.extend([Action::Send { dest: parent }, Action::Receive { source: parent }]);
    }
    actions.extend(children.iter().map(|dest| Action::Send { dest: *dest }));
    actions
}
