//! Collective operations: the pure machines of `proto`, driven by sends and receives on the collective context.

mod over_clients;
mod running;
mod traffic;

use mpjdev_proto::collective::{Barrier, Creation};
use mpjdev_proto::context::WORLD;

use crate::comm::Comm;
use crate::error::DeviceError;
use crate::waiting::Patience;
use over_clients::OverClients;
use running::{Machine, Running};

/// A collective operation under way: advance it until it is done.
#[derive(Debug)]
pub struct Operation {
    comm: Comm,
    way: Way,
}

/// How it is done.
#[derive(Debug)]
enum Way {
    /// Among ranks of ours.
    Machine(Running),
    /// A barrier with foreign ranks.
    OverClients(Box<OverClients>),
    /// Not at all.
    Refused(DeviceError),
}

/// What a collective operation gives.
#[derive(Debug)]
pub enum Outcome {
    /// All have entered.
    Passed,
    /// A communicator, or none for a rank that is not in it.
    Created(Option<Comm>),
}

impl Comm {
    /// Begins a barrier.
    pub fn start_barrier(&self) -> Operation {
        self.barrier_way(false)
    }

    /// Begins the barrier that a job with foreign ranks ends with, on its world.
    pub(crate) fn start_last_barrier(&self) -> Operation {
        self.barrier_way(true)
    }

    fn barrier_way(&self, is_end: bool) -> Operation {
        let clients = self.endpoint().and_then(|endpoint| Some((endpoint, endpoint.clients()?)));
        let way = match (self.first_foreign(), clients) {
            (None, _) => {
                let machine = Barrier::new(self.rank(), self.size() as u32);
                Way::Machine(Running::barrier(self, machine, is_end))
            }
            (Some(_), Some((endpoint, clients))) if self.context() == WORLD => {
                Way::OverClients(Box::new(OverClients::new(self, endpoint, clients, is_end)))
            }
            (Some(rank), _) => Way::Refused(DeviceError::Foreign { operation: "barrier", rank }),
        };
        Operation { comm: self.clone(), way }
    }

    /// Begins to make a communicator of the same members. Refused where one of them is foreign.
    pub fn start_dup(&self) -> Operation {
        self.creation("dup", Creation::dup)
    }

    /// Begins to make a communicator of these members, in this order (MPI_Comm_create). All ranks take part. Refused where a
    /// member of this communicator is foreign.
    pub fn start_create(&self, ids: &[i32]) -> Operation {
        self.creation("create", |rank, size| Creation::create(rank, size, ids))
    }

    /// Begins to make one communicator per colour, ordered by key (MPI_Comm_split). A negative colour takes no part. Refused
    /// where a member of this communicator is foreign.
    pub fn start_split(&self, color: i32, key: i32) -> Operation {
        self.creation("split", |rank, size| Creation::split(rank, size, color, key))
    }

    fn creation(&self, operation: &'static str, machine: impl FnOnce(u32, u32) -> Creation) -> Operation {
        let way = match self.first_foreign() {
            None => {
                let machine = Machine::Creation(machine(self.rank(), self.size() as u32));
                Way::Machine(Running::new(self, machine, false))
            }
            Some(rank) => Way::Refused(DeviceError::Foreign { operation, rank }),
        };
        Operation { comm: self.clone(), way }
    }

    /// Waits until all ranks have entered. Blocks.
    ///
    /// # Errors
    /// A member has failed or finished; interrupted, which leaves the communicator unusable for collectives. In the draft's
    /// dialect of IMPI there is none with foreign ranks.
    pub fn barrier(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        self.start_barrier().finish(patience).map(drop)
    }
}

impl Operation {
    /// Goes on as far as possible without blocking: the outcome when that is to the end.
    ///
    /// # Errors
    /// A member has failed, finished or broken the protocol; the communicator cannot be made; refused, and nothing has been
    /// sent. The operation is over then.
    pub fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        match &mut self.way {
            Way::Machine(running) => running.advance(),
            Way::OverClients(barrier) => barrier.advance(),
            Way::Refused(error) => {
                self.comm.check_going(false)?;
                Err(error.clone())
            }
        }
    }

    /// Goes on to the end. Blocks.
    ///
    /// # Errors
    /// As for [`advance`](Self::advance); interrupted: the operation is over for this rank, and the others may wait for it.
    pub fn finish(mut self, patience: &mut dyn Patience) -> Result<Outcome, DeviceError> {
        loop {
            match self.advance()? {
                Some(outcome) => return Ok(outcome),
                None => self.wait(patience)?,
            }
        }
    }

    /// Waits until there is something to go on with. Blocks.
    ///
    /// # Errors
    /// Interrupted.
    pub fn wait(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        let pending = match &self.way {
            Way::Machine(running) => running.pending(),
            Way::OverClients(barrier) => match barrier.wait(patience) {
                Some(waited) => return waited,
                None => barrier.pending(),
            },
            Way::Refused(_) => return Ok(()),
        };
        self.comm.wait_any(&pending, None, patience).map(drop)
    }
}
