//! One machine of `proto` on its way, driven by sends and receives on the collective context.

use mpjdev_buffer::{Encoding, Message, ReadBuffer, Type, WriteBuffer, capacity::section_capacity};
use mpjdev_proto::collective::{Action, Barrier, Collective, Creation, Refusal, payload_len_max};

use super::Outcome;
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::requests::RequestId;

#[derive(Debug)]
pub(super) enum Machine {
    Barrier(Barrier),
    Creation(Creation),
}

/// A machine under way.
#[derive(Debug)]
pub(super) struct Running {
    comm: Comm,
    machine: Machine,
    /// Receives that the machine has asked for, with their source and tag.
    pending: Vec<(RequestId, u32, i32)>,
    /// A message that broke the protocol: the operation fails once the other ranks have been told what they wait for.
    broken: Option<DeviceError>,
    /// It belongs to the end of the rank, which may do nothing else any more.
    is_end: bool,
}

impl Running {
    pub(super) fn new(comm: &Comm, machine: Machine, is_end: bool) -> Running {
        Running { comm: comm.clone(), machine, pending: Vec::new(), broken: None, is_end }
    }

    /// A barrier, at the end of the rank or before.
    pub(super) fn barrier(comm: &Comm, barrier: Barrier, is_end: bool) -> Running {
        Running::new(comm, Machine::Barrier(barrier), is_end)
    }

    /// Goes on as far as possible without blocking: the outcome when that is to the end.
    pub(super) fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        loop {
            self.act()?;
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

    /// Receives of which one has to be done before it goes on.
    pub(super) fn pending(&self) -> Vec<RequestId> {
        self.pending.iter().map(|p| p.0).collect()
    }

    /// Carries out what the machine wants done.
    fn act(&mut self) -> Result<(), DeviceError> {
        self.comm.check_going(self.is_end)?;
        while let Some(action) = self.poll_action() {
            match action {
                Action::Send { dest, tag, octets } => {
                    let message = self.pack(&octets)?;
                    match self.comm.send_collective(dest, tag, &message, self.is_end) {
                        // It does not wait for this; whoever waits for it finds out by itself.
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

    /// Hands the first receive that is done to the machine; false when none is.
    fn take_one(&mut self) -> Result<bool, DeviceError> {
        for i in 0..self.pending.len() {
            let (id, source, tag) = self.pending[i];
            let completed = match self.comm.test(id) {
                Ok(None) => continue,
                Ok(Some(completed)) => completed,
                Err(error) => {
                    self.pending.swap_remove(i);
                    let goes_on =
                        matches!(error, DeviceError::PeerFinished { .. }) && self.handle_gone(source, tag);
                    return if goes_on { Ok(true) } else { Err(error) };
                }
            };
            self.pending.swap_remove(i);
            let octets = match completed.message {
                Some(message) => self.unpack(message)?,
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

    fn handle_gone(&mut self, source: u32, tag: i32) -> bool {
        match &mut self.machine {
            Machine::Barrier(m) => m.handle_gone(source, tag),
            Machine::Creation(m) => m.handle_gone(source, tag),
        }
    }

    /// The rank of the world that has finished, or failed, of those of the communicator that have.
    fn gone(&self, ranks: &[u32]) -> DeviceError {
        match ranks.first().map(|rank| self.comm.member(*rank as i32)) {
            Some(Ok(rank)) => self.comm.lost(rank),
            _ => DeviceError::NobodyLeft,
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        match &mut self.machine {
            Machine::Barrier(m) => m.poll_action(),
            Machine::Creation(m) => m.poll_action(),
        }
    }

    fn outcome(&self) -> Result<Option<Outcome>, DeviceError> {
        match &self.machine {
            Machine::Barrier(m) => match (m.result(), m.gone()) {
                (Some(()), Some(rank)) => Err(self.gone(&[rank])),
                (result, _) => Ok(result.map(|()| Outcome::Passed)),
            },
            Machine::Creation(m) => match m.result() {
                None => Ok(None),
                Some(Err(Refusal::Gone { ranks })) => Err(self.gone(&ranks)),
                Some(Err(refusal)) => Err(refusal.into()),
                Some(Ok(None)) => Ok(Some(Outcome::Created(None))),
                Some(Ok(Some(made))) => {
                    let comm = self.comm.part(made.context, &made.members, made.rank)?;
                    Ok(Some(Outcome::Created(Some(comm))))
                }
            },
        }
    }

    /// Capacity for the largest message of the operation.
    fn capacity(&self) -> usize {
        section_capacity(Type::Byte, payload_len_max(self.comm.size() as u32) as u32) as usize
    }

    /// A message with one section of these octets.
    fn pack(&self, octets: &[u8]) -> Result<Message, DeviceError> {
        let bytes: Vec<i8> = octets.iter().map(|o| *o as i8).collect();
        let source = self.comm.source().clone();
        let mut buffer = WriteBuffer::new(source, self.capacity() as i64, Encoding::NATIVE).map_err(ours)?;
        buffer.write(&bytes).map_err(ours)?;
        Ok(buffer.finish().map_err(ours)?.clone())
    }

    /// The octets of a message's one section.
    fn unpack(&self, message: Message) -> Result<Vec<u8>, DeviceError> {
        let source = self.comm.source().clone();
        let mut buffer = ReadBuffer::new(source, message.capacity() as i64).map_err(ours)?;
        buffer.adopt(message);
        let count = buffer.peek().map_err(ours)?.map_or(0, |header| header.count);
        let mut bytes = vec![0i8; count.min(self.capacity())];
        buffer.read(&mut bytes).map_err(ours)?;
        Ok(bytes.iter().map(|b| *b as u8).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An operation that is given up must not leave receives behind that would take later messages.
        for (id, ..) in &self.pending {
            let _ = self.comm.cancel(*id);
            self.comm.detach(*id);
        }
    }
}

/// Failures of messages that the device packs and unpacks for itself.
fn ours(error: mpjdev_buffer::BufferError) -> DeviceError {
    match error {
        mpjdev_buffer::BufferError::Slab(error) => error.into(),
        error => DeviceError::Damaged { error, source_rank: 0, tag: 0 },
    }
}
