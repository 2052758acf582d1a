//! Collective operations: the pure state machines of `proto`, driven by sends and receives on the collective
//! context.

mod abandonment;
mod data;
mod exchange;
mod failure;
mod machine_run;
mod outcome;
mod over_clients;
mod posted;
mod rooted;
mod short_messages;
mod slot_barrier;
mod spinning_barrier;
#[cfg(all(test, not(loom)))]
mod tests;
mod traffic;
mod vectors;

use std::sync::Arc;

use mpjdev_proto::collective::{Barrier, Creation, IntercommCreation, peer_tag};
use mpjdev_transport::wait::WaitControl;

use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::packet::PacketEngine;
pub use data::{AheadOf, BlockPart, Caller};
use machine_run::{Machine, MachineRun, PeerLink};
pub use outcome::Outcome;
use over_clients::OverClients;
use slot_barrier::SlotBarrier;
pub use vectors::{VECTOR_MAX, Vectors};

/// A collective operation in progress: advance it until it is complete.
///
/// An operation that is dropped earlier, or fails in the middle, is abandoned. This rank then refuses
/// collective operations on the communicator with [`DeviceError::Abandoned`]. So does every other member once
/// it has received the notice, also for the operation that it waits in. Messages from rank to rank continue.
#[derive(Debug)]
pub struct Operation {
    comm: Comm,
    way: Way,
    stage: OperationStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationStage {
    /// No message has been sent.
    Unstarted,
    Started,
    Over,
}

/// The implementation of an operation.
#[derive(Debug)]
enum Way {
    /// A state machine among ranks of this project.
    Machine(Box<MachineRun>),
    /// A barrier in slots.
    InSlots(Box<SlotBarrier>),
    /// A barrier with foreign ranks.
    OverClients(Box<OverClients>),
    /// An error, before anything was sent.
    Refused(DeviceError),
}

impl Comm {
    /// Starts a barrier.
    pub fn start_barrier(&self) -> Operation {
        self.barrier_way(false)
    }

    /// Starts the barrier that ends a job with foreign ranks, on its world.
    pub(crate) fn start_last_barrier(&self) -> Operation {
        self.barrier_way(true)
    }

    fn barrier_way(&self, is_end: bool) -> Operation {
        let clients = self.packet_engine().and_then(|endpoint| Some((endpoint, self.clients()?)));
        let way = match (self.first_foreign(), clients) {
            (None, _) if !is_end && self.has_slots() => Way::InSlots(Box::new(SlotBarrier::new(self))),
            (None, _) => {
                let machine = Barrier::new(self.place(), self.all_members().len() as u32);
                Way::Machine(Box::new(MachineRun::barrier(self, machine, is_end)))
            }
            (Some(_), Some((endpoint, clients))) => {
                Way::OverClients(Box::new(OverClients::new(self, endpoint, clients, is_end)))
            }
            (Some(rank), _) => Way::Refused(DeviceError::Foreign { operation: "barrier", rank }),
        };
        Operation { comm: self.clone(), way, stage: OperationStage::Unstarted }
    }

    /// Starts to make a communicator of the same members, and of the same groups if this is an
    /// intercommunicator. Refused if one of the members is foreign.
    pub fn start_dup(&self) -> Operation {
        self.creation("dup", Creation::dup).with_groups(self.first_len())
    }

    /// Starts to make an intercommunicator of the group of this communicator and another one
    /// (MPI_Intercomm_create). All ranks of both groups take part, the leaders through the peer communicator,
    /// where `remote_leader` is the other one's rank. Only the leader uses `peer`, which is `None` if it was
    /// freed, `remote_leader` and `tag`. If they are not valid, the whole group gets an error, and this
    /// communicator stays usable. Refused if a member of this communicator is foreign.
    pub fn start_intercomm(
        &self,
        leader: i32,
        peer: Option<&Comm>,
        remote_leader: i32,
        tag: i32,
    ) -> Operation {
        let way = self.intercomm_way(leader, peer, remote_leader, tag).unwrap_or_else(Way::Refused);
        Operation { comm: self.clone(), way, stage: OperationStage::Unstarted }
    }

    fn intercomm_way(
        &self,
        leader: i32,
        peer: Option<&Comm>,
        remote_leader: i32,
        tag: i32,
    ) -> Result<Way, DeviceError> {
        if let Some(rank) = self.first_foreign() {
            return Err(DeviceError::Foreign { operation: INTERCOMM, rank });
        }
        let group = self.all_members();
        let bad_leader = DeviceError::BadRank { rank: leader, size: group.len() };
        let leader =
            u32::try_from(leader).ok().filter(|rank| (*rank as usize) < group.len()).ok_or(bad_leader)?;
        let (group, world_size) = (group.to_vec(), self.engine().world_size());
        let new = |remote| IntercommCreation::new(group.clone(), self.place(), leader, remote, world_size);
        let running = if leader != self.place() {
            MachineRun::intercomm(self, new(0), None)
        } else {
            match self.peer_link(peer, remote_leader, tag) {
                Ok((remote, link)) => MachineRun::intercomm(self, new(remote), Some(link)),
                Err(why) => MachineRun::refused(self, IntercommCreation::left(group.clone(), leader), why),
            }
        };
        Ok(Way::Machine(Box::new(running)))
    }

    /// The other leader's world rank, and the way to it.
    fn peer_link(
        &self,
        peer: Option<&Comm>,
        remote_leader: i32,
        tag: i32,
    ) -> Result<(u32, PeerLink), DeviceError> {
        let peer = peer.ok_or(DeviceError::Freed)?;
        peer.check_tag(tag)?;
        let remote = peer.member(remote_leader)?;
        if !peer.is_of_same_rank(self) {
            return Err(DeviceError::MixedRanks);
        }
        if peer.packet_engine().is_some_and(|engine| engine.is_foreign(remote)) {
            return Err(DeviceError::Foreign { operation: INTERCOMM, rank: remote });
        }
        let place = peer.first_peer() + remote_leader as u32;
        Ok((remote, PeerLink::new(peer, place, peer_tag(tag, self.config().tag_ub))))
    }

    /// Starts to make a communicator of both groups of an intercommunicator (MPI_Intercomm_merge): the ranks
    /// that pass `is_high` come last. If both groups pass the same, the first group comes first.
    pub fn start_merge(&self, is_high: bool) -> Operation {
        self.creation("merge", |place, size| {
            Creation::split(place, size, 0, (place + if is_high { size } else { 0 }) as i32)
        })
    }

    /// Starts to make a communicator of these members, in this order (MPI_Comm_create). All ranks take part;
    /// lists without a common rank make one communicator each. Refused if a member of this communicator is
    /// foreign.
    pub fn start_create(&self, ids: &[i32]) -> Operation {
        self.creation("create", |rank, size| Creation::create(rank, size, ids))
    }

    /// Starts to make one communicator per colour, ordered by key (MPI_Comm_split). A negative colour takes
    /// no part. Refused if a member of this communicator is foreign.
    pub fn start_split(&self, color: i32, key: i32) -> Operation {
        self.creation("split", |rank, size| Creation::split(rank, size, color, key))
    }

    fn creation(&self, operation: &'static str, machine: impl FnOnce(u32, u32) -> Creation) -> Operation {
        let way = match self.first_foreign() {
            None => {
                let creation = machine(self.place(), self.all_members().len() as u32);
                let machine = Machine::Creation(Box::new(creation));
                Way::Machine(Box::new(MachineRun::new(self, machine, false)))
            }
            Some(rank) => Way::Refused(DeviceError::Foreign { operation, rank }),
        };
        Operation { comm: self.clone(), way, stage: OperationStage::Unstarted }
    }

    /// Waits until all ranks have entered. Blocks.
    ///
    /// # Errors
    /// A member has failed or finished; interrupted, which abandons the barrier: see [`Operation`]. The
    /// draft's dialect of IMPI has no barrier with foreign ranks.
    pub fn barrier(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        match self.packet_engine() {
            _ if self.has_slots() => self.barrier_in_slots(wait_control),
            Some(engine) if self.first_foreign().is_none() => self.barrier_spinning(engine, wait_control),
            _ => self.start_barrier().finish(wait_control).map(drop),
        }
    }
}

impl Operation {
    /// Gives the new communicator the groups of an intercommunicator, of which the first has this length.
    fn with_groups(mut self, first_len: Option<u32>) -> Operation {
        if let Way::Machine(running) = &mut self.way {
            running.set_groups(first_len);
        }
        self
    }

    /// Advances as far as possible without blocking; returns the outcome when the operation is complete.
    ///
    /// # Errors
    /// A member has failed, finished or broken the protocol; an operation on this communicator was abandoned;
    /// the communicator cannot be made; refused, and nothing was sent. The operation has ended then.
    pub fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        if self.stage == OperationStage::Unstarted {
            self.begin()?;
        }
        let advanced = match &mut self.way {
            Way::Machine(running) => running.advance(),
            Way::InSlots(barrier) => barrier.advance(),
            Way::OverClients(barrier) => barrier.advance(),
            Way::Refused(error) => Err(error.clone()),
        };
        let is_complete = self.is_complete();
        let advanced = advanced.and_then(|outcome| match outcome {
            None if !is_complete => self.comm.check_abandonment()?.map_or(Ok(None), Err),
            outcome => Ok(outcome),
        });
        match &advanced {
            Ok(None) => {}
            Err(error) if !is_complete => self.abandon(Some(error)),
            _ => self.stage = OperationStage::Over,
        }
        advanced
    }

    fn begin(&mut self) -> Result<(), DeviceError> {
        let is_end = matches!(&self.way, Way::OverClients(barrier) if barrier.is_end());
        match self.way {
            Way::Refused(_) => self.comm.check_going(is_end)?,
            Way::Machine(_) | Way::InSlots(_) | Way::OverClients(_) => self.comm.check_collectives(is_end)?,
        }
        self.stage = OperationStage::Started;
        Ok(())
    }

    /// Whether this is an operation of `endpoint`.
    #[cfg(not(loom))]
    pub fn is_of(&self, endpoint: &Arc<PacketEngine>) -> bool {
        self.comm.is_of(endpoint)
    }

    /// Ends the operation because its rank has ended, and moves it to the rank's
    /// [remains](PacketEngine::remains).
    pub fn retire(&mut self, remains: &Arc<PacketEngine>) {
        self.stage = OperationStage::Over;
        self.comm = self.comm.on(remains);
        let finished = DeviceError::Finished { rank: remains.rank() };
        self.way = Way::Refused(self.comm.check_going(false).err().unwrap_or(finished));
    }

    /// Whether this rank has done its part, or has none.
    fn is_complete(&self) -> bool {
        match &self.way {
            Way::Machine(running) => running.is_complete(),
            Way::InSlots(barrier) => barrier.is_complete(),
            Way::OverClients(barrier) => barrier.is_complete(),
            Way::Refused(_) => true,
        }
    }

    fn abandon(&mut self, cause: Option<&DeviceError>) {
        self.stage = OperationStage::Over;
        self.comm.abandon(cause);
        let refused = Way::Refused(DeviceError::NoSuchRequest);
        if let Way::Machine(running) = std::mem::replace(&mut self.way, refused)
            && let Some(why) = self.comm.abandoned()
        {
            running.abandon(why.clone());
        }
    }

    /// Runs the operation to its end. Blocks.
    ///
    /// # Errors
    /// As for [`advance`](Self::advance); interrupted, which abandons the operation.
    pub fn finish(mut self, wait_control: &mut dyn WaitControl) -> Result<Outcome, DeviceError> {
        loop {
            match self.advance()? {
                Some(outcome) => return Ok(outcome),
                None => self.wait(wait_control)?,
            }
        }
    }

    /// Waits until [`advance`](Self::advance) can make progress. Blocks.
    ///
    /// # Errors
    /// Interrupted.
    pub fn wait(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let pending = match &self.way {
            Way::Machine(running) => return running.wait(wait_control),
            Way::InSlots(barrier) => return barrier.wait(wait_control),
            Way::OverClients(barrier) => match barrier.wait(wait_control) {
                Some(waited) => return waited,
                None => barrier.pending(),
            },
            Way::Refused(_) => return Ok(()),
        };
        self.comm.wait_collective(&pending, wait_control)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.stage == OperationStage::Started && !self.is_complete() {
            self.abandon(None);
        }
    }
}

/// The name of the operation in errors.
const INTERCOMM: &str = "an intercommunicator";
