//! Fast path of a blocking receive over a C MPI: a message that arrives while it spins is copied to its
//! destination, and no request is made.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mpjdev_buffer::octets::copy_words;
use mpjdev_buffer::{Message, Slab};
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::rts::RTS_LEN;
use mpjdev_proto::send_policy::check_first;
use mpjdev_sys::mpi::{self, Outcome};
use mpjdev_transport::wait::{Backoff, Uninterruptible, WaitControl, deadline_after};

use super::channel::Channel;
use super::group::Group;
use super::memory::Octets;
use super::recv::{Post, Receive};
use super::{Rank, Wanted};
use crate::error::DeviceError;
use crate::operation::{FastRecv, damaged, lengths};
use crate::request::Completed;

/// Time that an interrupted receive still waits for a message whose RTS has arrived.
const RENDEZVOUS_TIMEOUT: Duration = Duration::from_secs(1);

impl Group {
    /// Posts a receive and spins for its message, which is stored in `place`.
    pub(crate) fn try_recv_polling(
        self: &Arc<Self>,
        wanted: Wanted,
        capacity: usize,
        place: &mut Option<Message>,
    ) -> FastRecv<Box<Receive>> {
        let rank = self.owner();
        if rank.finishing.load(Ordering::Relaxed)
            || rank.oversubscription.is_active()
            || self.check_kept().is_err()
        {
            return FastRecv::Unavailable;
        }
        let mut spilled = self.spilled.lock();
        let mut posted = match self.post_program(&mut spilled, wanted) {
            Ok(Post::Posted(posted)) => posted,
            Ok(Post::Taken(taken)) => {
                drop(spilled);
                return FastRecv::Posted(Box::new(Receive::taken(self, taken, capacity, None)));
            }
            Err(error) => return error.into(),
        };
        let mut tested = posted.test();
        // A message that has arrived already is copied under the lock, which guards `memory` too.
        if let Ok(Some(Outcome::Done(seen))) = tested
            && fits(seen, place)
        {
            let Ok(memory) = posted.into_box() else { return DeviceError::NoSuchRequest.into() };
            let put = self.put(&memory, seen, capacity, place);
            spilled.memory = Some(memory);
            return put.into();
        }
        drop(spilled);
        let mut polls = rank.config.spins;
        loop {
            match tested {
                Ok(None) if polls <= 1 => {
                    let receive = Receive::of_posted(self, posted, wanted, capacity, None);
                    return FastRecv::Posted(Box::new(receive));
                }
                // No pause: a call of the library takes as long as one.
                Ok(None) => tested = posted.test(),
                Ok(Some(Outcome::Done(seen))) if fits(seen, place) => {
                    let Ok(memory) = posted.into_box() else { return DeviceError::NoSuchRequest.into() };
                    let put = self.put(&memory, seen, capacity, place);
                    rank.recv_pool.give_back(memory);
                    return put.into();
                }
                Ok(Some(outcome)) => {
                    // The physical message of a rendezvous is received into the same memory.
                    let spare = place.take().map(Message::into_slab);
                    let receive = Receive::of_posted(self, posted, wanted, capacity, spare);
                    return receive.spin_on(outcome, polls, place);
                }
                Err(error) => return DeviceError::from(error).into(),
            }
            polls -= 1;
        }
    }

    /// Copies a received message that fits to `place`.
    #[inline]
    fn put(
        &self,
        memory: &Octets,
        seen: mpi::Envelope,
        capacity: usize,
        place: &mut Option<Message>,
    ) -> Result<Envelope, DeviceError> {
        let envelope = self.envelope(seen.source, seen.tag);
        self.owner().note_received(envelope.source);
        check_first(seen.len, capacity).map_err(|error| lengths(error, &envelope))?;
        let place = place.as_mut().ok_or(DeviceError::NoSuchRequest)?;
        copy_words(memory.0.words(), 0, place.first_words(), 0, seen.len);
        place.receive(seen.len, capacity).map_err(damaged(&envelope))?;
        Ok(envelope)
    }

    /// Receives a message after an empty [fast path](Self::try_recv_polling).
    pub(crate) fn recv_posted(
        self: &Arc<Self>,
        fast: FastRecv<Box<Receive>>,
        wanted: Wanted,
        capacity: usize,
        spare: Option<Slab>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        let rank = self.owner();
        let (mut receive, backoff) = match fast {
            FastRecv::Posted(receive) => (*receive, Backoff::after_pauses(&rank.config)),
            _ => {
                rank.check_unfinished()?;
                self.check_kept()?;
                let receive = Receive::post(self, Channel::Program, wanted, capacity, None)?;
                (receive, Backoff::new(&rank.config))
            }
        };
        receive.spare = spare;
        let completed = rank.block(None, backoff, wait_control, || rank.advance_asked(&mut receive));
        let completed = match completed {
            Err(DeviceError::Interrupted) => rank.end_receive(&mut receive)?,
            other => other?,
        };
        match (completed.envelope, completed.message) {
            (Some(envelope), Some(message)) => Ok((envelope, message)),
            _ => Err(DeviceError::NoSuchRequest),
        }
    }
}

/// Whether this is a message, not an RTS, and the memory in `place` has room for it.
#[inline]
fn fits(seen: mpi::Envelope, place: &Option<Message>) -> bool {
    seen.len != RTS_LEN && place.as_ref().is_some_and(|place| place.room() >= seen.len)
}

impl Receive {
    /// Continues when the library's operation has ended, for `polls` further polls.
    fn spin_on(
        mut self,
        outcome: Outcome,
        polls: u32,
        place: &mut Option<Message>,
    ) -> FastRecv<Box<Receive>> {
        let mut over = self.ended(outcome);
        for _ in 0..polls {
            match over {
                Ok(None) => {}
                _ => break,
            }
            over = self.advance();
        }
        match over {
            Ok(None) => FastRecv::Posted(Box::new(self)),
            Ok(Some(Completed { envelope, message })) => {
                *place = message;
                envelope.ok_or(DeviceError::NoSuchRequest).into()
            }
            Err(error) => error.into(),
        }
    }
}

impl Rank {
    /// Ends a receive that its thread abandons, unless its message has arrived or its RTS has.
    fn end_receive(&self, receive: &mut Receive) -> Result<Completed, DeviceError> {
        match receive.withdraw() {
            Some(Err(DeviceError::Cancelled)) => return Err(DeviceError::Interrupted),
            Some(over) => return over,
            None => {}
        }
        let soon = deadline_after(RENDEZVOUS_TIMEOUT);
        let waited = self.block(soon, Backoff::new(&self.config), &mut Uninterruptible, || receive.advance());
        match waited {
            Err(DeviceError::TimedOut { .. }) => Err(DeviceError::Interrupted),
            other => other,
        }
    }
}
