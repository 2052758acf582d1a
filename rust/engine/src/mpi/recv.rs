//! Receives over a C MPI. A posted receive has room for every eager message.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mpjdev_buffer::Slab;
use mpjdev_buffer::octets::copy_words;
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::rts::{EAGER_MAX, RTS_LEN};
use mpjdev_proto::send_policy::{LengthError, check_first};
use mpjdev_sys::mpi::{self, Operation, Outcome};

use super::channel::Channel;
use super::group::Group;
use super::memory::{self, Octets};
use super::probed_messages::{Physical, ProbedForm, ProbedMessage, SpillState};
use super::rendezvous::RendezvousRecv;
use super::{Rank, Wanted};
use crate::error::DeviceError;
use crate::operation::{lengths, physical, received};
use crate::request::{Completed, RequestId};

/// Octets up to which a received message is copied out of the memory of its receive.
const COPIED_MAX: usize = 1088;

/// A receive in progress.
#[derive(Debug)]
pub struct Receive {
    pub(super) group: Arc<Group>,
    pub(super) wanted: Wanted,
    capacity: usize,
    pub(super) spare: Option<Slab>,
    pub(super) stage: RecvStage,
}

/// The stage of a receive.
#[derive(Debug)]
pub(super) enum RecvStage {
    /// Posted with the library; not matched as far as this rank can see.
    Posted(Operation<Octets>),
    /// Its message was taken from the library before.
    Matched(Operation<Octets>, Envelope),
    /// Its message was taken from the library before and has arrived, with this number of octets.
    Here(Slab, usize, Envelope),
    /// The RTS of its message has arrived.
    Rendezvous(Box<RendezvousRecv>, i32),
    Over,
}

impl Receive {
    /// Posts a receive with the library, or starts to receive a spilled message.
    pub(super) fn post(
        group: &Arc<Group>,
        channel: Channel,
        wanted: Wanted,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Result<Receive, DeviceError> {
        Ok(match group.post(channel, wanted)? {
            Post::Posted(posted) => Receive::of_posted(group, posted, wanted, capacity, spare),
            Post::Taken(taken) => Receive::taken(group, taken, capacity, spare),
        })
    }

    /// The receive of an operation that was posted.
    pub(super) fn of_posted(
        group: &Arc<Group>,
        posted: Operation<Octets>,
        wanted: Wanted,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Receive {
        Receive { group: group.clone(), wanted, capacity, spare, stage: RecvStage::Posted(posted) }
    }

    /// Receives a message that was taken from the library.
    pub(super) fn taken(
        group: &Arc<Group>,
        taken: ProbedMessage,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Receive {
        let ProbedMessage { source, tag, len, what } = taken;
        let (rank, envelope) = (group.owner(), group.envelope(source, tag));
        let wanted = Wanted { source: Some(source), tag: Some(tag) };
        let stage = match what {
            ProbedForm::Rts(rts) => {
                let tag = rank.rendezvous_tag(rts.number);
                let parts = RendezvousRecv::new(rank, envelope, &rts, capacity, None);
                Ok(RecvStage::Rendezvous(Box::new(parts), tag))
            }
            ProbedForm::Physical(Physical::Here(slab)) => Ok(RecvStage::Here(slab, len, envelope)),
            ProbedForm::Physical(Physical::Arriving(operation)) => {
                Ok(RecvStage::Matched(operation, envelope))
            }
            ProbedForm::Physical(Physical::Matched(matched)) => {
                let begun = rank.recv_pool.take(&*rank.source).map_err(DeviceError::from);
                begun
                    .and_then(|memory| Ok(Operation::receive_matched(rank.mpi, memory, len, matched)?))
                    .map(|operation| RecvStage::Matched(operation, envelope))
            }
        };
        let stage = stage.unwrap_or(RecvStage::Over);
        Receive { group: group.clone(), wanted, capacity, spare, stage }
    }

    /// Makes progress; returns the received message when the receive is complete.
    ///
    /// # Errors
    /// Those of the receive, which has ended then. Cancelled if it was.
    pub(super) fn advance(&mut self) -> Result<Option<Completed>, DeviceError> {
        let outcome = match &mut self.stage {
            RecvStage::Posted(operation) | RecvStage::Matched(operation, _) => operation.test(),
            RecvStage::Rendezvous(parts, tag) => {
                let envelope = parts.envelope;
                let message = parts.advance(self.group.owner(), *tag);
                if !matches!(message, Ok(None)) {
                    self.stage = RecvStage::Over;
                }
                return Ok(message?.map(|message| received(envelope, message)));
            }
            RecvStage::Here(..) => {
                let RecvStage::Here(slab, len, envelope) =
                    std::mem::replace(&mut self.stage, RecvStage::Over)
                else {
                    return Err(DeviceError::NoSuchRequest);
                };
                let message = physical(slab, len, None, self.capacity, &envelope)?;
                return Ok(Some(received(envelope, message)));
            }
            RecvStage::Over => return Err(DeviceError::NoSuchRequest),
        };
        match outcome {
            Ok(None) => Ok(None),
            Ok(Some(outcome)) => match self.ended(outcome)? {
                None => self.advance(),
                completed => Ok(completed),
            },
            Err(error) => {
                self.stage = RecvStage::Over;
                Err(error.into())
            }
        }
    }

    /// Handles the end of the library's operation. `None` when only the RTS has arrived.
    pub(super) fn ended(&mut self, outcome: Outcome) -> Result<Option<Completed>, DeviceError> {
        let (operation, envelope) = match std::mem::replace(&mut self.stage, RecvStage::Over) {
            RecvStage::Posted(operation) => (operation, None),
            RecvStage::Matched(operation, envelope) => (operation, Some(envelope)),
            _ => return Err(DeviceError::NoSuchRequest),
        };
        let memory = operation.into_box().map_err(|_| DeviceError::NoSuchRequest)?;
        match outcome {
            Outcome::Done(seen) => self.arrived(memory, seen, envelope),
            Outcome::Cancelled => {
                self.group.owner().recv_pool.give_back(memory);
                Err(DeviceError::Cancelled)
            }
        }
    }

    /// Handles a message that the library has received: the message itself, or an RTS.
    fn arrived(
        &mut self,
        memory: Box<Octets>,
        seen: mpi::Envelope,
        envelope: Option<Envelope>,
    ) -> Result<Option<Completed>, DeviceError> {
        let rank = self.group.owner();
        let envelope = envelope.unwrap_or_else(|| {
            let envelope = self.group.envelope(seen.source, seen.tag);
            rank.note_received(envelope.source);
            envelope
        });
        if seen.len == RTS_LEN {
            let rts = memory::read(&memory.0);
            rank.recv_pool.give_back(memory);
            let no_headers = LengthError::NoHeaders { first_len: RTS_LEN };
            let rts = rts.map_err(|_| lengths(no_headers, &envelope))?;
            let tag = rank.rendezvous_tag(rts.number);
            let parts = RendezvousRecv::new(rank, envelope, &rts, self.capacity, self.spare.take());
            self.stage = RecvStage::Rendezvous(Box::new(parts), tag);
            return Ok(None);
        }
        if let Err(error) = check_first(seen.len, self.capacity) {
            rank.recv_pool.give_back(memory);
            return Err(lengths(error, &envelope));
        }
        let slab = rank.keep(memory, seen.len, self.spare.take())?;
        let message = physical(slab, seen.len, None, self.capacity, &envelope)?;
        Ok(Some(received(envelope, message)))
    }

    /// Withdraws the receive if it is not matched. Returns its outcome, [`DeviceError::Cancelled`] if it was
    /// withdrawn; `None` when the RTS of its message has arrived and the receive continues.
    pub(super) fn withdraw(&mut self) -> Option<Result<Completed, DeviceError>> {
        let RecvStage::Posted(operation) = &mut self.stage else { return self.advance().transpose() };
        if let Err(error) = operation.cancel() {
            return Some(Err(error.into()));
        }
        loop {
            let over = self.advance().transpose();
            // Either the cancel or the receive succeeds, independently of other processes (MPI 4.1, 3.8.4).
            match self.stage {
                RecvStage::Posted(_) if over.is_none() => std::thread::yield_now(),
                _ => return over,
            }
        }
    }

    /// Its source in the world; `None` for any source.
    pub(super) fn source(&self) -> Option<u32> {
        self.wanted.source.map(|source| self.group.members()[source as usize])
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if matches!(self.stage, RecvStage::Over) {
            return;
        }
        // The library still has memory of the receive, and its message must be consumed.
        if self.withdraw().is_none() {
            let stage = std::mem::replace(&mut self.stage, RecvStage::Over);
            let rest =
                Receive { group: self.group.clone(), wanted: self.wanted, capacity: 0, spare: None, stage };
            self.group.owner().abandoned.lock().push(rest);
        }
    }
}

impl Rank {
    /// The memory that a received message keeps. A small message does not keep the memory of its receive.
    fn keep(&self, memory: Box<Octets>, len: usize, spare: Option<Slab>) -> Result<Slab, DeviceError> {
        let kept = match spare {
            Some(spare) if spare.len() >= len => spare,
            _ if len > COPIED_MAX => return Ok(memory.0),
            _ => self.source.take_arrived(len)?,
        };
        copy_words(memory.0.words(), 0, kept.words(), 0, len);
        self.recv_pool.give_back(memory);
        Ok(kept)
    }

    #[inline]
    pub(super) fn note_received(&self, source: u32) {
        self.received[source as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The tag of the physical messages behind the RTS with this number.
    pub(super) fn rendezvous_tag(&self, number: u32) -> i32 {
        (number % (self.session.tag_max.cast_unsigned() + 1)).cast_signed()
    }
}

/// The result of a posting.
pub(super) enum Post {
    Posted(Operation<Octets>),
    /// A spilled message has matched.
    Taken(ProbedMessage),
}

impl Group {
    /// Posts a receive with the library, unless a spilled message matches.
    pub(super) fn post(&self, channel: Channel, wanted: Wanted) -> Result<Post, DeviceError> {
        let mut spilled = self.spilled.lock();
        match channel {
            Channel::Program => self.post_program(&mut spilled, wanted),
            Channel::Collective => self.post_in_library(&mut spilled, channel, wanted),
        }
    }

    /// Posts a receive for the program. The lock of the spilled messages prevents a spill before the receive
    /// is posted: a spilled message would miss that receive.
    #[inline]
    pub(super) fn post_program(&self, spilled: &mut SpillState, wanted: Wanted) -> Result<Post, DeviceError> {
        match self.take_spilled(&mut spilled.messages, wanted)? {
            Some(taken) => Ok(Post::Taken(taken)),
            None => self.post_in_library(spilled, Channel::Program, wanted),
        }
    }

    #[inline]
    fn post_in_library(
        &self,
        spilled: &mut SpillState,
        channel: Channel,
        wanted: Wanted,
    ) -> Result<Post, DeviceError> {
        let rank = self.owner();
        let memory = match spilled.memory.take() {
            Some(memory) => memory,
            None => rank.recv_pool.take(&*rank.source)?,
        };
        let comm = self.comm(channel);
        Ok(Post::Posted(Operation::receive(rank.mpi, memory, EAGER_MAX, wanted.recv_from(), comm)?))
    }

    /// The envelope of a message from a member, as errors and statuses name it.
    #[inline]
    pub(super) fn envelope(&self, source: u32, tag: i32) -> Envelope {
        Envelope { context: self.context(), source: self.members()[source as usize], tag }
    }

    /// Posts a receive.
    pub(crate) fn irecv(
        self: &Arc<Self>,
        wanted: Wanted,
        capacity: usize,
        spare: Option<Slab>,
    ) -> Result<RequestId, DeviceError> {
        self.owner().check_unfinished()?;
        self.check_kept()?;
        let receive = Receive::post(self, Channel::Program, wanted, capacity, spare)?;
        Ok(self.owner().keep_receive(receive))
    }

    /// Posts a receive of a collective operation.
    pub(crate) fn receive_collective(
        self: &Arc<Self>,
        wanted: Wanted,
        capacity: usize,
    ) -> Result<RequestId, DeviceError> {
        let receive = Receive::post(self, Channel::Collective, wanted, capacity, None)?;
        Ok(self.owner().keep_receive(receive))
    }
}
