//! The physical messages of a rendezvous message, received after its RTS.

use mpjdev_buffer::{Message, Slab};
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::rts::Rts;
use mpjdev_proto::send_policy::{check_first, check_second};
use mpjdev_sys::mpi::{self, MpiError, Operation, Outcome};

use super::memory::Octets;
use super::probed_messages::{Physical, ProbedForm, ProbedMessage};
use super::{Rank, Wanted};
use crate::error::DeviceError;
use crate::operation::{lengths, physical};

/// The physical messages of one receive.
#[derive(Debug)]
pub(super) struct RendezvousRecv {
    /// The envelope; its source is numbered in the world.
    pub(super) envelope: Envelope,
    capacity: usize,
    first: PhysicalRecv,
    second: Option<PhysicalRecv>,
}

/// The receive of a physical message.
#[derive(Debug)]
struct PhysicalRecv {
    comm: mpi::Comm,
    /// Whether it is a first message, which may have been spilled from the library before.
    is_first: bool,
    len: usize,
    stage: RendezvousStage,
}

#[derive(Debug)]
enum RendezvousStage {
    /// Named by the RTS, with memory for it if the receive has enough.
    Expected(Option<Slab>),
    Arriving(Operation<Octets>),
    Here(Slab, usize),
    Failed(DeviceError),
    /// Moved out, during a change of stage.
    Moving,
}

impl RendezvousRecv {
    /// The physical messages of an RTS, for a receive of this capacity, which is matched by it. `envelope`
    /// has a world rank as source. `spare` may be used as memory.
    pub(super) fn new(
        rank: &Rank,
        envelope: Envelope,
        rts: &Rts,
        capacity: usize,
        spare: Option<Slab>,
    ) -> RendezvousRecv {
        if rts.is_synchronous {
            rank.acknowledge(envelope.source, rts.number);
        }
        let part = |comm, is_first, len: u32, memory: Option<Slab>| {
            let len = len as usize;
            // A message that does not fit is probed for its length, since it has to be consumed too.
            let memory = memory.filter(|slab| slab.len() >= len);
            PhysicalRecv { comm, is_first, len, stage: RendezvousStage::Expected(memory) }
        };
        let second = match rts.second_len {
            0 => None,
            len => Some(part(rank.session.seconds, false, len, None)),
        };
        let first = part(rank.session.firsts, true, rts.first_len, spare);
        RendezvousRecv { envelope, capacity, first, second }
    }

    /// Makes progress; returns the message when it has arrived in full.
    ///
    /// # Errors
    /// It is larger than the capacity, or damaged; those of the library. All of it has been consumed.
    pub(super) fn advance(&mut self, rank: &Rank, tag: i32) -> Result<Option<Message>, DeviceError> {
        let source = self.envelope.source;
        let is_first_here = self.first.advance(rank, source, tag);
        let is_second_here = self.second.as_mut().is_none_or(|second| second.advance(rank, source, tag));
        if !(is_first_here && is_second_here) {
            return Ok(None);
        }
        let first_len = self.first.len;
        check_first(first_len, self.capacity).map_err(|error| lengths(error, &self.envelope))?;
        let (slab, _) = self.first.take(&self.envelope)?;
        let second = self.second.as_mut().map(|second| second.take(&self.envelope)).transpose()?;
        physical(slab, first_len, second, self.capacity, &self.envelope).map(Some)
    }
}

impl PhysicalRecv {
    /// Makes progress; true when the message is complete or has failed.
    fn advance(&mut self, rank: &Rank, source: u32, tag: i32) -> bool {
        loop {
            let next = match &mut self.stage {
                RendezvousStage::Here(..) | RendezvousStage::Failed(_) | RendezvousStage::Moving => {
                    return true;
                }
                RendezvousStage::Expected(_) => match self.begin(rank, source, tag) {
                    Some(stage) => stage,
                    None => return false,
                },
                RendezvousStage::Arriving(operation) => match operation.test() {
                    Ok(None) => return false,
                    Ok(Some(Outcome::Cancelled)) => RendezvousStage::Failed(DeviceError::Cancelled),
                    Ok(Some(Outcome::Done(seen))) => self.arrived(seen.len),
                    Err(error) => RendezvousStage::Failed(error.into()),
                },
            };
            self.stage = next;
        }
    }

    /// Starts to receive the message if that is possible.
    fn begin(&mut self, rank: &Rank, source: u32, tag: i32) -> Option<RendezvousStage> {
        let RendezvousStage::Expected(spare) = &mut self.stage else { return None };
        let from = Wanted { source: Some(source), tag: Some(tag) };
        // The lock prevents a spill before the receive is posted: a spilled message would miss that receive.
        let _firsts = if self.is_first {
            let mut firsts = rank.firsts.lock();
            if let Some(ProbedMessage { len, what: ProbedForm::Physical(physical), .. }) = firsts.take(from) {
                return Some(match physical {
                    Physical::Here(slab) => RendezvousStage::Here(slab, len),
                    Physical::Arriving(operation) => RendezvousStage::Arriving(operation),
                    Physical::Matched(matched) => receive_matched(rank, matched, len, spare.take()),
                });
            }
            Some(firsts)
        } else {
            None
        };
        if let Some(slab) = spare.take() {
            let posted = Operation::receive(rank.mpi, owned(slab), self.len, from.recv_from(), self.comm);
            return Some(begun(posted));
        }
        match rank.mpi.improbe(from.recv_from(), self.comm) {
            Ok(None) => None,
            Ok(Some((matched, envelope))) => Some(receive_matched(rank, matched, envelope.len, None)),
            Err(error) => Some(RendezvousStage::Failed(error.into())),
        }
    }

    fn arrived(&mut self, len: usize) -> RendezvousStage {
        match std::mem::replace(&mut self.stage, RendezvousStage::Moving) {
            RendezvousStage::Arriving(operation) => match operation.into_owner() {
                Ok(Octets(slab)) => RendezvousStage::Here(slab, len),
                Err(operation) => RendezvousStage::Arriving(operation),
            },
            other => other,
        }
    }

    /// The octets of the message, checked against the length in the RTS.
    fn take(&mut self, envelope: &Envelope) -> Result<(Slab, usize), DeviceError> {
        match std::mem::replace(&mut self.stage, RendezvousStage::Moving) {
            RendezvousStage::Here(slab, len) => {
                check_second(self.len, len).map_err(|error| lengths(error, envelope))?;
                Ok((slab, len))
            }
            RendezvousStage::Failed(error) => Err(error),
            RendezvousStage::Expected(_) | RendezvousStage::Arriving(_) | RendezvousStage::Moving => {
                Err(DeviceError::NoSuchRequest)
            }
        }
    }
}

/// Starts to receive a message that was taken from the library, whatever its length: one of a wrong length is
/// consumed too.
fn receive_matched(rank: &Rank, matched: mpi::Matched, len: usize, spare: Option<Slab>) -> RendezvousStage {
    let memory = match spare.filter(|spare| spare.len() >= len) {
        Some(spare) => Ok(spare),
        None => rank.source.take_arrived(len),
    };
    match memory {
        Ok(slab) => begun(Operation::receive_matched(rank.mpi, owned(slab), len, matched)),
        Err(error) => RendezvousStage::Failed(error.into()),
    }
}

fn begun(operation: Result<Operation<Octets>, MpiError>) -> RendezvousStage {
    match operation {
        Ok(operation) => RendezvousStage::Arriving(operation),
        Err(error) => RendezvousStage::Failed(error.into()),
    }
}

fn owned(slab: Slab) -> Box<Octets> {
    Box::new(Octets(slab))
}
