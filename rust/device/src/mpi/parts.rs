//! The physical messages of an announced message, on their way beside it.

use mpjdev_buffer::{Message, Slab};
use mpjdev_proto::announcement::Announcement;
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::send_policy::{check_first, check_second};
use mpjdev_sys::mpi::{self, MpiError, Operation, Outcome};

use super::Rank;
use super::octets::Octets;
use crate::error::DeviceError;
use crate::unexpected::{lengths, physical};

/// Physical messages that belong to a receive.
#[derive(Debug)]
pub(super) struct Parts {
    /// Source in the world.
    pub(super) envelope: Envelope,
    capacity: usize,
    first: Part,
    second: Option<Part>,
}

/// One of them.
#[derive(Debug)]
struct Part {
    comm: mpi::Comm,
    len: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Announced; of one that fits its receive, memory for it if that has some.
    Announced(Option<Slab>),
    Arriving(Operation<Octets>),
    Here(Slab, usize),
    Failed(DeviceError),
    /// It is moved.
    Moving,
}

impl Parts {
    /// Those of an announcement from a source in the world, for a receive of this capacity. Memory that it has may be used.
    pub(super) fn new(
        rank: &Rank,
        envelope: Envelope,
        announcement: &Announcement,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Parts {
        let part = |comm, len: u32, memory: Option<Slab>| {
            let len = len as usize;
            // What does not fit has to be consumed, which needs a look at it first.
            let memory = memory.filter(|slab| slab.len() >= len);
            Part { comm, len, stage: Stage::Announced(memory) }
        };
        let second = match announcement.second_len {
            0 => None,
            len => Some(part(rank.round.seconds, len, None)),
        };
        Parts { envelope, capacity, first: part(rank.round.firsts, announcement.first_len, spare), second }
    }

    /// Goes on: the message when all of it is here.
    ///
    /// # Errors
    /// It is larger than the capacity, or damaged; the library's. All of it has been consumed.
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

impl Part {
    /// Goes on; whether it is over.
    fn advance(&mut self, rank: &Rank, source: u32, tag: i32) -> bool {
        loop {
            let next = match &mut self.stage {
                Stage::Here(..) | Stage::Failed(_) | Stage::Moving => return true,
                Stage::Announced(spare) => {
                    let from = mpi::From { source: Some(source), tag: Some(tag) };
                    match spare.take() {
                        Some(slab) => {
                            begun(Operation::receive(rank.mpi, owned(slab), self.len, from, self.comm))
                        }
                        None => match rank.mpi.improbe(from, self.comm) {
                            Ok(None) => return false,
                            Ok(Some((matched, envelope))) => receive_matched(rank, matched, envelope.len),
                            Err(error) => Stage::Failed(error.into()),
                        },
                    }
                }
                Stage::Arriving(operation) => match operation.test() {
                    Ok(None) => return false,
                    Ok(Some(Outcome::Cancelled)) => Stage::Failed(DeviceError::Cancelled),
                    Ok(Some(Outcome::Done(seen))) => self.arrived(seen.len),
                    Err(error) => Stage::Failed(error.into()),
                },
            };
            self.stage = next;
        }
    }

    fn arrived(&mut self, len: usize) -> Stage {
        match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Arriving(operation) => match operation.into_owner() {
                Ok(Octets(slab)) => Stage::Here(slab, len),
                Err(operation) => Stage::Arriving(operation),
            },
            other => other,
        }
    }

    /// Its octets, which must be as many as were announced.
    fn take(&mut self, envelope: &Envelope) -> Result<(Slab, usize), DeviceError> {
        match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Here(slab, len) => {
                check_second(self.len, len).map_err(|error| lengths(error, envelope))?;
                Ok((slab, len))
            }
            Stage::Failed(error) => Err(error),
            Stage::Announced(_) | Stage::Arriving(_) | Stage::Moving => Err(DeviceError::NoSuchRequest),
        }
    }
}

/// Starts to receive what was taken from the library, whatever its length: what does not have the announced one is consumed too.
fn receive_matched(rank: &Rank, matched: mpi::Matched, len: usize) -> Stage {
    match rank.source.take_arrived(len) {
        Ok(slab) => begun(Operation::receive_matched(rank.mpi, owned(slab), len, matched)),
        Err(error) => Stage::Failed(error.into()),
    }
}

fn begun(operation: Result<Operation<Octets>, MpiError>) -> Stage {
    match operation {
        Ok(operation) => Stage::Arriving(operation),
        Err(error) => Stage::Failed(error.into()),
    }
}

fn owned(slab: Slab) -> Box<Octets> {
    Box::new(Octets(slab))
}
