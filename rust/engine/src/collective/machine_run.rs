//! The driver of one collective state machine of `proto`, by sends and receives on the collective context.

use std::sync::Arc;

use mpjdev_buffer::Message;
use mpjdev_proto::collective::{
    Action, Barrier, Collective, Communicator, Creation, IntercommCreation, Intercommunicator, ProtocolError,
    Refusal,
};
use mpjdev_proto::context::ContextError;
use mpjdev_transport::wait::WaitControl;

use super::outcome::Outcome;
use super::traffic::{capacity_of_ranks, pack, unpack};
use crate::comm::{Comm, Part};
use crate::engine::Engine;
use crate::error::DeviceError;
#[cfg(not(loom))]
use crate::mpi::CommCreation;
use crate::request::RequestId;

#[derive(Debug)]
pub(super) enum Machine {
    Barrier(Barrier),
    Creation(Box<Creation>),
    Intercomm(Box<IntercommCreation>),
}

impl Machine {
    /// The machine behind what all have in common.
    fn driven(&mut self) -> &mut dyn Driven {
        match self {
            Machine::Barrier(machine) => machine,
            Machine::Creation(machine) => &mut **machine,
            Machine::Intercomm(machine) => &mut **machine,
        }
    }
}

/// The inputs and outputs of a machine, whatever its result.
trait Driven {
    fn poll_action(&mut self) -> Option<Action>;
    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError>;
    fn handle_ended(&mut self, source: u32, tag: i32) -> bool;
    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, ContextError>);
}

impl<C: Collective> Driven for C {
    fn poll_action(&mut self) -> Option<Action> {
        Collective::poll_action(self)
    }

    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError> {
        Collective::handle_received(self, source, tag, octets)
    }

    fn handle_ended(&mut self, source: u32, tag: i32) -> bool {
        Collective::handle_ended(self, source, tag)
    }

    fn handle_contexts(&mut self, contexts: Result<Vec<u64>, ContextError>) {
        Collective::handle_contexts(self, contexts);
    }
}

/// The way of a leader of an intercommunicator to the other one.
#[derive(Debug)]
pub(super) struct PeerLink {
    /// The peer communicator.
    comm: Comm,
    /// Number of the other leader among all its members.
    place: u32,
    tag: i32,
}

impl PeerLink {
    pub(super) fn new(comm: &Comm, place: u32, tag: i32) -> PeerLink {
        PeerLink { comm: comm.clone(), place, tag }
    }
}

/// The sender of an awaited message.
#[derive(Clone, Copy, Debug)]
enum Sender {
    Member {
        source: u32,
        tag: i32,
    },
    /// The other leader.
    Peer,
}

/// Context and world ranks of a new communicator, and the number of this rank there.
type NewMembers = (u64, Arc<[u32]>, u32);

/// A state machine in progress.
#[derive(Debug)]
pub(super) struct MachineRun {
    comm: Comm,
    machine: Machine,
    /// The way to the other leader, at a leader of an intercommunicator.
    link: Option<PeerLink>,
    /// Length of the first group if the new communicator has two.
    first_len: Option<u32>,
    /// Receives that the machine has asked for.
    pending: Vec<(RequestId, Sender)>,
    /// A message that broke the protocol. The operation fails once the other ranks have received the messages
    /// that they wait for.
    broken: Option<DeviceError>,
    /// The error of this rank's arguments, of which the machine informs the others.
    refused: Option<DeviceError>,
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
            link: None,
            first_len: None,
            pending: Vec::new(),
            broken: None,
            refused: None,
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

    /// A barrier in progress that may wait for a message, given by its source and tag.
    pub(super) fn barrier_awaiting(
        comm: &Comm,
        barrier: Barrier,
        awaited: Option<(u32, i32)>,
    ) -> Result<MachineRun, DeviceError> {
        let mut running = MachineRun::barrier(comm, barrier, false);
        if let Some((source, tag)) = awaited {
            let id = comm.receive_collective(source, tag, running.capacity(), false)?;
            running.pending.push((id, Sender::Member { source, tag }));
        }
        Ok(running)
    }

    /// The creation of an intercommunicator, at a leader with the way to the other one.
    pub(super) fn intercomm(comm: &Comm, machine: IntercommCreation, link: Option<PeerLink>) -> MachineRun {
        let machine = Machine::Intercomm(Box::new(machine));
        let mut running = MachineRun::new(comm, machine, false);
        running.link = link;
        running
    }

    /// The creation of an intercommunicator at a leader with invalid arguments.
    pub(super) fn refused(comm: &Comm, machine: IntercommCreation, why: DeviceError) -> MachineRun {
        let mut running = MachineRun::intercomm(comm, machine, None);
        running.refused = Some(why);
        running
    }

    /// Gives the new communicator two groups, of which the first has this length.
    pub(super) fn set_groups(&mut self, first_len: Option<u32>) {
        self.first_len = first_len;
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
                Machine::Intercomm(m) => m.result().is_some(),
            }
    }

    /// Receives of the machine. One of them has to complete before it advances.
    pub(super) fn pending(&self) -> Vec<RequestId> {
        self.pending.iter().map(|p| p.0).collect()
    }

    /// Carries out the actions of the machine.
    fn act(&mut self) -> Result<(), DeviceError> {
        self.comm.check_going(self.is_end)?;
        while let Some(action) = self.machine.driven().poll_action() {
            match (action, &self.link) {
                (Action::Send { dest, tag, octets }, _) => self.send(&self.comm, dest, tag, &octets)?,
                (Action::SendPeer { octets }, Some(link)) => {
                    self.send(&link.comm, link.place, link.tag, &octets)?;
                }
                (Action::Receive { source, tag }, _) => {
                    let id = self.comm.receive_collective(source, tag, self.capacity(), self.is_end)?;
                    self.pending.push((id, Sender::Member { source, tag }));
                }
                (Action::ReceivePeer, Some(link)) => {
                    let id = link.comm.receive_collective(link.place, link.tag, self.capacity(), false)?;
                    self.pending.push((id, Sender::Peer));
                }
                (Action::Allocate { count }, _) => {
                    let allocated = self.comm.allocate_contexts(count);
                    self.machine.driven().handle_contexts(allocated);
                }
                (Action::SendPeer { .. } | Action::ReceivePeer, None) => {
                    return Err(DeviceError::NoSuchRequest);
                }
            }
        }
        Ok(())
    }

    fn send(&self, comm: &Comm, dest: u32, tag: i32, octets: &[u8]) -> Result<(), DeviceError> {
        let message = pack(comm.source(), octets)?;
        send_unless_finished(comm, dest, tag, &message, self.is_end)
    }

    /// Hands the first complete receive to the machine; false when there is none.
    fn take_one(&mut self) -> Result<bool, DeviceError> {
        for i in 0..self.pending.len() {
            let (id, sender) = self.pending[i];
            let completed = match self.comm.test(id) {
                Ok(None) => continue,
                Ok(Some(completed)) => completed,
                Err(error) => {
                    self.pending.swap_remove(i);
                    let can_continue =
                        matches!(error, DeviceError::PeerFinished { .. }) && self.handle_ended(sender);
                    return if can_continue { Ok(true) } else { Err(error) };
                }
            };
            self.pending.swap_remove(i);
            let octets = match completed.message {
                Some(message) => unpack(self.comm.source(), message, self.capacity())?,
                None => Vec::new(),
            };
            let handled = match (sender, &mut self.machine) {
                (Sender::Peer, Machine::Intercomm(m)) => m.handle_peer(Some(&octets)),
                (Sender::Peer, _) => Ok(()),
                (Sender::Member { source, tag }, m) => m.driven().handle_received(source, tag, &octets),
            };
            if let Err(error) = handled {
                self.broken.get_or_insert(error.into());
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn handle_ended(&mut self, sender: Sender) -> bool {
        match (sender, &mut self.machine) {
            (Sender::Peer, Machine::Intercomm(m)) => m.handle_peer(None).is_ok(),
            (Sender::Peer, _) => false,
            (Sender::Member { source, tag }, m) => m.driven().handle_ended(source, tag),
        }
    }

    /// The error of a member among `ranks` that has finished or failed.
    fn missing_peer_error(&self, ranks: &[u32]) -> DeviceError {
        let worlds = ranks.first().and_then(|rank| self.comm.all_members().get(*rank as usize));
        worlds.map_or(DeviceError::NoSourceLeft, |rank| self.comm.reported_peer_error(*rank))
    }

    fn outcome(&mut self) -> Result<Option<Outcome>, DeviceError> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
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
                Some(Ok(Some(made))) => self.make(|comm| comm.part(&made)),
            },
            Machine::Intercomm(m) => match m.result() {
                None => Ok(None),
                Some(Err(Refusal::Ended { ranks })) => {
                    let ended = ranks.first().map(|rank| self.comm.reported_peer_error(*rank));
                    Err(ended.unwrap_or(DeviceError::NoSourceLeft))
                }
                Some(Err(refusal)) => Err(refusal.into()),
                Some(Ok(made)) => {
                    self.first_len = Some(made.first_len);
                    self.make(|comm| comm.make(made.context, made.members.into(), made.rank))
                }
            },
        }
    }

    /// The outcome with the new communicator, once that is made.
    fn make(&mut self, begin: impl FnOnce(&Comm) -> Part) -> Result<Option<Outcome>, DeviceError> {
        let comm = self.made(begin)?;
        Ok(comm.map(|comm| Outcome::Created(Some(self.grouped(comm)))))
    }

    fn grouped(&self, comm: Comm) -> Comm {
        match self.first_len {
            Some(first_len) => comm.into_inter(first_len),
            None => comm,
        }
    }

    #[cfg(not(loom))]
    fn made(&mut self, begin: impl FnOnce(&Comm) -> Part) -> Result<Option<Comm>, DeviceError> {
        let Some(creation) = &mut self.creation else {
            return match begin(&self.comm) {
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
    fn made(&mut self, begin: impl FnOnce(&Comm) -> Part) -> Result<Option<Comm>, DeviceError> {
        let Part::Made(comm) = begin(&self.comm);
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
    fn made_elsewhere(&self) -> Option<NewMembers> {
        let all = self.comm.all_members();
        let of_part = |made: Communicator| {
            (made.context, made.members.iter().map(|m| all[*m as usize]).collect(), made.rank)
        };
        let of_groups = |made: Intercommunicator| (made.context, made.members.into(), made.rank);
        // Rank 0, or a leader, may have failed between two settlements.
        match &self.machine {
            Machine::Barrier(_) => None,
            Machine::Creation(machine) => match machine.result() {
                Some(outcome) => outcome.ok().flatten().map(of_part),
                None if self.has_failed => None,
                None => machine.confirmed().cloned().map(of_part),
            },
            Machine::Intercomm(machine) => match machine.result() {
                Some(outcome) => outcome.ok().map(of_groups),
                None if self.has_failed => None,
                None => machine.confirmed().cloned().map(of_groups),
            },
        }
    }

    /// Leaves the operation after a part of it, and takes no part in the communicator that it makes.
    pub(super) fn abandon(mut self, why: DeviceError) {
        if let Machine::Intercomm(machine) = &mut self.machine {
            machine.leave();
            // The ranks that these messages do not reach notice the notice of this rank, or its end.
            let _ = self.act();
        }
        let Some((context, members, rank)) = self.made_elsewhere() else { return };
        // The other members wait for this rank inside the library, if they have their settlements.
        #[cfg(not(loom))]
        if let Some(group) = self.comm.engine().mpi() {
            group.owner().clone().make_aside(move || self.end_aside(why));
            return;
        }
        match self.comm.make(context, members, rank) {
            Part::Made(comm) => comm.leave(why),
            #[cfg(not(loom))]
            Part::Creating(_) => {}
        }
    }

    /// Advances until rank 0 has decided about a creation or has left it. Blocks. The leader of an
    /// intercommunicator does not leave once its group has confirmed.
    #[cfg(not(loom))]
    fn end_aside(mut self, why: DeviceError) {
        let comm = self.comm.clone();
        let mut wait_control = || comm.check_unfinished().is_ok();
        loop {
            let has_root_left = matches!(self.machine, Machine::Creation(_)) && self.comm.has_root_left();
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
        capacity_of_ranks(match self.machine {
            Machine::Barrier(_) | Machine::Creation(_) => self.comm.all_members().len(),
            Machine::Intercomm(_) => self.comm.engine().world_size() as usize,
        })
    }
}

/// Sends a message of a machine, which does not wait for it. A rank that waits for the message notices the
/// end of its source itself.
pub(super) fn send_unless_finished(
    comm: &Comm,
    dest: u32,
    tag: i32,
    message: &Message,
    is_end: bool,
) -> Result<(), DeviceError> {
    match comm.send_collective(dest, tag, message, is_end) {
        Ok(()) | Err(DeviceError::PeerFinished { .. }) => Ok(()),
        Err(error) => Err(error),
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
