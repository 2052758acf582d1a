//! Sends over a C MPI. A message that fits every receive is sent eagerly, any other one by rendezvous.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mpjdev_buffer::{Message, Slab};
use mpjdev_proto::rts::{RTS_LEN, Rts, is_eager};
use mpjdev_proto::send_policy::Pairs;
use mpjdev_sys::mpi::{self, Operation, To};
use mpjdev_transport::wait::WaitControl;
use tracing::debug;

use super::Rank;
use super::channel::Channel;
use super::group::Group;
use super::memory::{self, Octets};
use crate::error::DeviceError;
use crate::operation::Mode;
use crate::request::RequestId;

/// A send in progress.
#[derive(Debug)]
pub(super) struct Sending {
    /// The arguments of a send that waits for others to the same rank.
    pub(super) deferred: Option<DeferredSend>,
    /// The error of a send that failed in part; it is returned once the rest is complete.
    pub(super) failed: Option<DeviceError>,
    /// The message itself or its RTS, until the library has sent it.
    posted: Option<Operation<Octets>>,
    /// Physical messages of the rendezvous that are not complete.
    parts: Vec<Operation<Octets>>,
    /// All physical messages of the rendezvous are short.
    is_short: bool,
    /// It counts against the limit of unmatched messages.
    pub(super) is_counted: bool,
    /// Destination in the world.
    pub(super) dest: u32,
    pub(super) tag: i32,
    /// Octets of the logical message.
    pub(super) len: usize,
    /// Its pairing number, if it has one.
    pub(super) number: Option<u32>,
    /// The send mode of the program.
    pub(super) mode: Mode,
    /// Octets of memory that count as in flight to this rank itself.
    pub(super) charged: u64,
}

/// The arguments of a send that waits for others to the same rank.
#[derive(Debug)]
pub(super) struct DeferredSend {
    /// The communicator is kept until the library has the message.
    pub(super) group: Arc<Group>,
    pub(super) message: Message,
    pub(super) to: To,
}

impl Sending {
    /// A send to a world rank of which the library has nothing yet.
    fn new(dest: u32, tag: i32, message: &Message, mode: Mode) -> Sending {
        Sending {
            deferred: None,
            failed: None,
            posted: None,
            parts: Vec::new(),
            is_short: false,
            is_counted: false,
            dest,
            tag,
            len: message.logical_len(),
            number: None,
            mode,
            charged: 0,
        }
    }

    /// Makes progress; true when the send is complete.
    ///
    /// # Errors
    /// Those of the library. Operations in progress continue, and their memory stays.
    pub(super) fn advance(&mut self) -> Result<bool, DeviceError> {
        if self.deferred.is_some() {
            return Ok(false);
        }
        let mut error = None;
        let mut is_pending = |part: &mut Operation<Octets>| match part.test() {
            Ok(outcome) => outcome.is_none(),
            Err(why) => {
                error.get_or_insert(why);
                false
            }
        };
        self.posted.take_if(|posted| !is_pending(posted));
        self.parts.retain_mut(is_pending);
        match error {
            Some(error) => Err(error.into()),
            None if self.posted.is_some() || !self.parts.is_empty() => Ok(false),
            None => self.failed.take().map_or(Ok(true), Err),
        }
    }

    /// Whether the library has short messages of this send, which it sends before they are received.
    pub(super) fn is_leaving(&self) -> bool {
        self.posted.is_some() || (self.is_short && !self.parts.is_empty())
    }

    /// The number of the match ack that this send waits for.
    pub(super) fn match_ack(&self) -> Option<u32> {
        self.number.filter(|_| self.mode == Mode::Synchronous)
    }
}

/// Opens a pair: its number and the tag of its physical messages.
pub(super) fn open(pairs: &mut Pairs) -> Result<(u32, i32), DeviceError> {
    let number = pairs.open()?;
    Ok((number, pairs.tag(number)))
}

impl Group {
    /// Starts to send a message to a member; `None` when that is complete already.
    pub(crate) fn isend(
        self: &Arc<Self>,
        dest: u32,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let rank = self.owner();
        rank.check_unfinished()?;
        rank.check_peer(self.members()[dest as usize])?;
        self.isend_on(Channel::Program, dest, tag, message, mode)
    }

    /// Sends a message to a member and waits until the send is complete.
    pub(crate) fn send(
        self: &Arc<Self>,
        dest: u32,
        tag: i32,
        message: &Message,
        mode: Mode,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let Some(id) = self.isend(dest, tag, message, mode)? else { return Ok(()) };
        match self.owner().wait(id, None, wait_control) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.owner().detach(id);
                Err(error)
            }
        }
    }

    /// Starts to send a message of a collective operation to a member.
    pub(crate) fn send_collective(
        self: &Arc<Self>,
        dest: u32,
        tag: i32,
        message: &Message,
    ) -> Result<Option<RequestId>, DeviceError> {
        self.owner().check_peer(self.members()[dest as usize])?;
        self.isend_on(Channel::Collective, dest, tag, message, Mode::Standard)
    }

    /// Starts to send a message on a channel. Does not check whether the member still receives.
    #[inline]
    fn isend_on(
        self: &Arc<Self>,
        channel: Channel,
        dest: u32,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let rank = self.owner();
        let world = self.members()[dest as usize];
        let to = To { dest, tag, comm: self.comm(channel), mode: mpi::Mode::Standard };
        let is_deferred = channel == Channel::Program && rank.is_send_queue_full(world);
        // A spilled message is not matched yet, so a synchronous send needs a match ack.
        let is_eager = mode == Mode::Standard
            && is_eager(message.first_len(), message.second_slab().map_or(0, Slab::len));
        let mut posted = None;
        if is_eager && !is_deferred {
            posted = rank.send_at_once(world, message, to)?;
            if posted.is_none() {
                return Ok(None);
            }
        }
        let is_counted = is_deferred || mode == Mode::Synchronous;
        if is_counted {
            rank.check_unmatched(world)?;
        }
        let mut sending = Sending { posted, is_counted, ..Sending::new(world, tag, message, mode) };
        if is_deferred {
            sending.deferred = Some(DeferredSend { group: self.clone(), message: message.clone(), to });
        } else if !is_eager {
            let started = rank.start(message, to, &mut sending, || open(&mut rank.state().pairs));
            if let Err(error) = started {
                rank.abandon_send(sending);
                return Err(error);
            }
        }
        rank.keep_send(channel, sending, message)
    }
}

impl Rank {
    /// Passes an eager message to the library; `None` when its memory is free already.
    #[inline]
    fn send_at_once(
        &self,
        dest: u32,
        message: &Message,
        to: To,
    ) -> Result<Option<Operation<Octets>>, DeviceError> {
        let slab = message.first_slab();
        let owner = || Octets(slab.clone());
        let sent = Operation::send_at_once(self.mpi, slab.words(), message.first_len(), to, owner)?;
        self.sent[dest as usize].fetch_add(1, Ordering::Relaxed);
        Ok(sent)
    }

    /// Adds a send to the table. Returns its request unless it is complete.
    fn keep_send(
        &self,
        channel: Channel,
        mut sending: Sending,
        message: &Message,
    ) -> Result<Option<RequestId>, DeviceError> {
        let (dest, is_counted, is_deferred) = (sending.dest, sending.is_counted, sending.deferred.is_some());
        let is_done = sending.mode == Mode::Standard
            && dest == self.rank
            && self.charge_to_itself(&mut sending, message);
        let id = {
            let mut state = self.state();
            let id = state.requests.add_send(sending);
            if channel == Channel::Program {
                self.enqueue_send(&mut state, dest, id, is_deferred);
            }
            id
        };
        if is_done {
            self.detach(id);
            return Ok(None);
        }
        if is_counted {
            return Ok(Some(id));
        }
        match self.test(id) {
            Ok(Some(_)) => Ok(None),
            Ok(None) => Ok(Some(id)),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn send_slab(&self, slab: &Slab, len: usize, to: To) -> Result<Operation<Octets>, DeviceError> {
        Ok(Operation::send(self.mpi, Octets(slab.clone()), len, to)?)
    }

    /// Charges a standard send to this rank itself to the credit; true if the send is complete because the
    /// credit covers it. The library may keep the message until this rank receives it, perhaps much later.
    fn charge_to_itself(&self, sending: &mut Sending, message: &Message) -> bool {
        let charge = message.held_len() as u64;
        let take = || {
            let before = self.own.fetch_add(charge, Ordering::Relaxed);
            let is_within = before == 0 || before + charge <= self.config.credit;
            if !is_within {
                self.own.fetch_sub(charge, Ordering::Relaxed);
            }
            is_within
        };
        // Completed messages may not have been polled yet.
        let is_within = take() || {
            self.progress_all();
            take()
        };
        if is_within {
            sending.charged = charge;
        }
        is_within
    }

    /// Abandons a send that could not be started in full. The parts that the library has continue.
    fn abandon_send(&self, sending: Sending) {
        if sending.posted.is_none() && sending.parts.is_empty() {
            self.close(&mut self.state().pairs, &sending);
            return;
        }
        let id = self.state().requests.add_send(sending);
        self.detach(id);
    }

    /// Frees the number of a send that has ended.
    pub(super) fn close(&self, pairs: &mut Pairs, sending: &Sending) {
        sending.number.map(|number| pairs.close(number));
        sending.match_ack().into_iter().for_each(|number| self.forget_match_ack(number));
    }

    /// Starts to send a message: the message itself, or an RTS and then its physical messages.
    pub(super) fn start(
        &self,
        message: &Message,
        to: To,
        sending: &mut Sending,
        open: impl FnOnce() -> Result<(u32, i32), DeviceError>,
    ) -> Result<(), DeviceError> {
        let (first_len, second_len) =
            (message.first_len(), message.second_slab().map_or(0, |_| message.secondary_len()));
        let count = || self.sent[sending.dest as usize].fetch_add(1, Ordering::Relaxed);
        if sending.mode == Mode::Standard && is_eager(first_len, message.second_slab().map_or(0, Slab::len)) {
            sending.posted = Some(self.send_slab(message.first_slab(), first_len, to)?);
            count();
            return Ok(());
        }
        let (number, tag) = open()?;
        let (peer, octets) = (sending.dest, first_len + second_len);
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer, number, octets, "send is started");
        sending.number = Some(number);
        sending.is_short = is_eager(first_len, second_len);
        let is_synchronous = sending.mode == Mode::Synchronous;
        if is_synchronous {
            self.await_match_ack(number);
        }
        let rts = Rts {
            number,
            first_len: first_len as u32,
            second_len: second_len as u32,
            is_synchronous,
            first_section: message.first_section().map(|first| (first.element.code(), first.count as u32)),
        };
        let slab = memory::write(&rts, &*self.source)?;
        // The RTS is sent first, so that the receiver has posted its memory when the physical messages
        // arrive.
        sending.posted = Some(self.send_slab(&slab, RTS_LEN, to)?);
        count();
        let first = To { dest: sending.dest, tag, comm: self.session.firsts, mode: mpi::Mode::Standard };
        let first_sent = self.send_behind_rts(message.first_slab(), first_len, first, &slab, sending);
        let Some(second) = message.second_slab() else { return first_sent };
        let beside = To { comm: self.session.seconds, ..first };
        first_sent.and(self.send_behind_rts(second, second_len, beside, &slab, sending))
    }

    /// Starts to send a physical message of a rendezvous, behind its RTS. The receiver waits for it: if the
    /// library refuses it, an empty message is sent instead, which the receiver reports as damaged.
    fn send_behind_rts(
        &self,
        slab: &Slab,
        len: usize,
        to: To,
        any: &Slab,
        sending: &mut Sending,
    ) -> Result<(), DeviceError> {
        let sent = self.send_slab(slab, len, to).map(|part| sending.parts.push(part));
        if sent.is_err() {
            sending.parts.extend(self.send_slab(any, 0, to));
        }
        sent
    }
}
