//! The driver of one collective state machine of `proto`, by sends and receives on the collective context.

use mpjdev_buffer::{Type, capacity::section_capacity};
use mpjdev_proto::collective::{
    Action, Barrier, Collective, Communicator, Creation, Refusal, payload_len_max,
};
use mpjdev_transport::wait::WaitControl;

use super::outcome::Outcome;
use super::traffic::{pack, unpack};
use crate::comm::{Comm, Part};
use crate::error::DeviceError;
#[cfg(not(loom))]
use crate::mpi::CommCreation;
use crate::request::RequestId;

#[derive(Debug)]
pub(super) enum Machine {
    Barrier(Barrier),
    Creation(Box<Creation>),
}

/// A state machine in progress.
#[derive(Debug)]
pub(super) struct MachineRun {
    comm: Comm,
    machine: Machine,
    /// Receives that the machine has asked for, with their source and tag.
    pending: Vec<(RequestId, u32, i32)>,
    /// A message that broke the protocol. The operation fails once the other ranks have received the messages
    /// that they wait for.
    broken: Option<DeviceError>,
    /// The new communicator, while a C MPI makes it.
    #[cfg(not(loom))]
    creation: Option<CommCreation>,
    /// An action of the machine has failed: the others may have seen any part of it.
    has_failed: bool,
    /// The operation is part of the rank's finish, in which no other operation starts.
    is_end: bool,
}

impl MachineRun {
    pub(super) fn new(comm: &Comm, machine: Machine, is_end: bool) -> MachineRun {
        MachineRun {
            comm: comm.clone(),
            machine,
            pending: Vec::new(),
            broken: None,
            #[cfg(not(loom))]
            creation: None,
            has_failed: false,
            is_end,
        }
    }

    /// A barrier, at the end of the rank or before.
    pub(super) fn barrier(comm: &Comm, barrier: Barrier, is_end: bool) -> MachineRun {
        MachineRun::new(comm, Machine::Barrier(barrier), is_end)
    }

    /// Advances as far as possible without blocking; returns the outcome when the operation is complete.
    pub(super) fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        loop {
            self.act().inspect_err(|_| self.has_failed = true)?;
            if let Some(outcome) = self.outcome()? {
                return Ok(Some(outcome));
            }
            if self.pending.is_empty()
                && let Some(error) = self.broken.take()
            {
                return Err(error);
            }
            if !self.take_one()? {
                return Ok(None);
            }
        }
    }

    /// Whether the machine has ended, with or without success: no rank waits for a message of this rank. A
    /// machine can have its result before its last messages have left. If one of them fails, a rank waits.
    pub(super) fn is_complete(&self) -> bool {
        !self.has_failed
            && match &self.machine {
                Machine::Barrier(m) => m.result().is_some(),
                Machine::Creation(m) => m.result().is_some(),
            }
    }

    /// Receives of the machine. One of them has to complete before it advances.
    pub(super) fn pending(&self) -> Vec<RequestId> {
        self.pending.iter().map(|p| p.0).collect()
    }

    /// Carries out the actions of the machine.
    fn act(&mut self) -> Result<(), DeviceError> {
        self.comm.check_going(self.is_end)?;
        while let Some(action) = self.poll_action() {
            match action {
                Action::Send { dest, tag, octets } => {
                    let message = pack(self.comm.source(), &octets)?;
                    match self.comm.send_collective(dest, tag, &message, self.is_end) {
                        // The machine does not wait for this send. A rank that waits for the message notices
                        // the end itself.
                        Ok(()) | Err(DeviceError::PeerFinished { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Action::Receive { source, tag } => {
                    let id = self.comm.receive_collective(source, tag, self.capacity(), self.is_end)?;
                    self.pending.push((id, source, tag));
                }
                Action::Allocate { count } => {
                    let allocated = self.comm.allocate_contexts(count);
                    match &mut self.machine {
                        Machine::Barrier(m) => m.handle_contexts(allocated),
                        Machine::Creation(m) => m.handle_contexts(allocated),
                    }
                }
            }
        }
        Ok(())
    }

    /// Hands the first complete receive to the machine; false when there is none.
    fn take_one(&mut self) -> Result<bool, DeviceError> {
        for i in 0..self.pending.len() {
            let (id, source, tag) = self.pending[i];
            let completed = match self.comm.test(id) {
                Ok(None) => continue,
                Ok(Some(completed)) => completed,
                Err(error) => {
                    self.pending.swap_remove(i);
                    let can_continue =
                        matches!(error, DeviceError::PeerFinished { .. }) && self.handle_ended(source, tag);
                    return if can_continue { Ok(true) } else { Err(error) };
                }
            };
            self.pending.swap_remove(i);
            let octets = match completed.message {
                Some(message) => unpack(self.comm.source(), message, self.capacity())?,
                None => Vec::new(),
            };
            let handled = match &mut self.machine {
                Machine::Barrier(m) => m.handle_received(source, tag, &octets),
                Machine::Creation(m) => m.handle_received(source, tag, &octets),
            };
            if let Err(error) = handled {
                self.broken.get_or_insert(error.into());
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn handle_ended(&mut self, source: u32, tag: i32) -> bool {
        match &mut self.machine {
            Machine::Barrier(m) => m.handle_ended(source, tag),
            Machine::Creation(m) => m.handle_ended(source, tag),
        }
    }

    /// The error of a rank among `ranks` that has finished or failed.
    fn missing_peer_error(&self, ranks: &[u32]) -> DeviceError {
        match ranks.first().map(|rank| self.comm.member(*rank as i32)) {
            Some(Ok(rank)) => self.comm.reported_peer_error(rank),
            _ => DeviceError::NoSourceLeft,
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        match &mut self.machine {
            Machine::Barrier(m) => m.poll_action(),
            Machine::Creation(m) => m.poll_action(),
        }
    }

    fn outcome(&mut self) -> Result<Option<Outcome>, DeviceError> {
        match &self.machine {
            Machine::Barrier(m) => match (m.result(), m.ended()) {
                (Some(()), Some(rank)) => Err(self.missing_peer_error(&[rank])),
                (result, _) => Ok(result.map(|()| Outcome::Passed)),
            },
            Machine::Creation(m) => match m.result() {
                None => Ok(None),
                Some(Err(Refusal::Ended { ranks })) => Err(self.missing_peer_error(&ranks)),
                Some(Err(refusal)) => Err(refusal.into()),
                Some(Ok(None)) => Ok(Some(Outcome::Created(None))),
                Some(Ok(Some(made))) => {
                    let comm = self.make(&made)?;
                    Ok(comm.map(|comm| Outcome::Created(Some(comm))))
                }
            },
        }
    }

    /// The new communicator, once it is made.
    #[cfg(not(loom))]
    fn make(&mut self, made: &Communicator) -> Result<Option<Comm>, DeviceError> {
        let Some(creation) = &mut self.creation else {
            return match self.comm.part(made) {
                Part::Made(comm) => Ok(Some(comm)),
                // A waiting thread makes it; a later call only polls.
                Part::Creating(creation) => {
                    self.creation = Some(creation);
                    Ok(None)
                }
            };
        };
        creation.start();
        let taken = creation.take();
        taken.map(|group| group.map(Comm::of_group)).transpose()
    }

    #[cfg(loom)]
    fn make(&mut self, made: &Communicator) -> Result<Option<Comm>, DeviceError> {
        let Part::Made(comm) = self.comm.part(made);
        Ok(Some(comm))
    }

    /// Waits until the machine can advance. Blocks.
    pub(super) fn wait(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        #[cfg(not(loom))]
        if let Some(creation) = &self.creation {
            return creation.wait(wait_control);
        }
        self.comm.wait_collective(&self.pending(), wait_control)
    }

    /// The new communicator that other members may have already, though this rank has not. Not after a failed
    /// confirmation: without it no member has the communicator.
    fn made_elsewhere(&self) -> Option<Communicator> {
        let Machine::Creation(machine) = &self.machine else { return None };
        match machine.result() {
            // Rank 0 may have failed between two settlements.
            Some(outcome) => outcome.ok().flatten(),
            None if self.has_failed => None,
            None => machine.confirmed().cloned(),
        }
    }

    /// Leaves the operation after a part of it, and takes no part in the communicator that it makes.
    pub(super) fn abandon(self, why: DeviceError) {
        let Some(made) = self.made_elsewhere() else { return };
        // The other members wait for this rank inside the library, if they have their settlements.
        #[cfg(not(loom))]
        if let Some(group) = self.comm.engine().mpi() {
            group.owner().clone().make_aside(move || self.end_aside(why));
            return;
        }
        match self.comm.part(&made) {
            Part::Made(comm) => comm.leave(why),
            #[cfg(not(loom))]
            Part::Creating(_) => {}
        }
    }

    /// Advances until rank 0 has decided about a creation or has left it. Blocks.
    #[cfg(not(loom))]
    fn end_aside(mut self, why: DeviceError) {
        let comm = self.comm.clone();
        let mut wait_control = || comm.check_unfinished().is_ok();
        loop {
            let has_root_left = self.comm.has_root_left();
            match self.advance() {
                Ok(Some(Outcome::Created(Some(comm)))) => return comm.leave(why),
                Ok(None)
                    if (!has_root_left || self.creation.is_some())
                        && self.wait(&mut wait_control).is_ok() => {}
                _ => return,
            }
        }
    }

    /// Capacity for the largest message of the operation.
    fn capacity(&self) -> usize {
        section_capacity(Type::Byte, payload_len_max(self.comm.size() as u32) as u32) as usize
    }
}

impl Drop for MachineRun {
    fn drop(&mut self) {
        // A receive of an abandoned operation must not stay posted: it would take later messages.
        for (id, ..) in &self.pending {
            let _ = self.comm.cancel(*id);
            self.comm.detach(*id);
        }
    }
}
