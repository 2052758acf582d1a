//! Collective operations: the pure state machines of `proto`, driven by sends and receives on the collective
//! context.

mod abandonment;
mod machine_run;
mod outcome;
mod over_clients;
#[cfg(all(test, not(loom)))]
mod tests;
mod traffic;

use std::sync::Arc;

use mpjdev_proto::collective::{Barrier, Creation};
use mpjdev_transport::wait::WaitControl;

use crate::comm::Comm;
use crate::error::DeviceError;
use crate::packet::PacketEngine;
use machine_run::{Machine, MachineRun};
pub use outcome::Outcome;
use over_clients::OverClients;

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
    Machine(MachineRun),
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
            (None, _) => {
                let machine = Barrier::new(self.rank(), self.size() as u32);
                Way::Machine(MachineRun::barrier(self, machine, is_end))
            }
            (Some(_), Some((endpoint, clients))) => {
                Way::OverClients(Box::new(OverClients::new(self, endpoint, clients, is_end)))
            }
            (Some(rank), _) => Way::Refused(DeviceError::Foreign { operation: "barrier", rank }),
        };
        Operation { comm: self.clone(), way, stage: OperationStage::Unstarted }
    }

    /// Starts to make a communicator of the same members. Refused if one of them is foreign.
    pub fn start_dup(&self) -> Operation {
        self.creation("dup", Creation::dup)
    }

    /// Starts to make a communicator of these members, in this order (MPI_Comm_create). All ranks take part.
    /// Refused if a member of this communicator is foreign.
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
                let machine = Machine::Creation(Box::new(machine(self.rank(), self.size() as u32)));
                Way::Machine(MachineRun::new(self, machine, false))
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
        self.start_barrier().finish(wait_control).map(drop)
    }
}

impl Operation {
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
            Way::Machine(_) | Way::OverClients(_) => self.comm.check_collectives(is_end)?,
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
