//! Sends: straight to the transport while there is credit and room, else in order through the outbox.

use std::sync::atomic::Ordering;

use mpjdev_buffer::{Message, SlabError};
use mpjdev_proto::context::is_collective;
use mpjdev_transport::config::{CREDIT_OVERHEAD, ENVELOPE_LEN, SPARSE};
use mpjdev_transport::waiting::Patience;
use mpjdev_transport::{Header, Kind, Outgoing, Payload, goes_inline};

use crate::error::DeviceError;
use crate::packet::endpoint::{Core, Endpoint, Mode, State};
use crate::packet::outbox::Queued;
use crate::packet::requests::{Completed, RequestId, Work};

impl Endpoint {
    /// Sends a message and waits until that counts as done.
    ///
    /// # Errors
    /// The peer or this rank has failed or finished; interrupted: then the message may still arrive.
    pub fn send(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
        patience: &mut dyn Patience,
    ) -> Result<(), DeviceError> {
        match self.start_send(dest, context, tag, message, mode)? {
            None => Ok(()),
            Some(id) => match self.wait(id, None, patience) {
                Ok(_) => Ok(()),
                Err(error) => {
                    self.lock().state.requests.detach(id);
                    Err(error)
                }
            },
        }
    }

    /// Starts to send a message; none when that is done already.
    ///
    /// # Errors
    /// The peer or this rank has failed or finished.
    #[inline]
    pub fn start_send(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        if self.wire.epoch() != 0 || self.finishing.load(Ordering::Relaxed) {
            self.check_peer(dest)?;
        }
        self.begin_send(dest, context, tag, message, mode)
    }

    /// As [`start_send`](Self::start_send), of a rank that may have begun to finish, to one that may be gone.
    #[inline]
    pub(crate) fn begin_send(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        if self.is_physical(dest) {
            return self.start_physical(dest, context, tag, message, mode);
        }
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        if mode == Mode::Standard
            && (goes_inline(message, self.config.inline_max) || self.carries(message))
            && self.take_credit(dest, self.charge(message))
        {
            return Ok(self.send_eager(dest, header, message));
        }
        self.send_past_credit(dest, header, message, mode)
    }

    fn carries(&self, message: &Message) -> bool {
        self.wire.carries(message.first_slab())
            && message.second_slab().is_none_or(|slab| self.wire.carries(slab))
    }

    /// Straight to the transport, unless packets wait that must not be overtaken.
    #[inline]
    fn send_eager(&self, dest: u32, header: Header, message: &Message) -> Option<RequestId> {
        if self.queued_count.load(Ordering::Acquire) == 0
            && self.wire.try_send(dest, header, Outgoing::Message(message))
        {
            return None;
        }
        // The first time in vain: what will be copied on its way keeps no more memory than it needs. It counts the same.
        let waits = match goes_inline(message, self.config.inline_max) {
            true => self.slim(message).unwrap_or_else(|_| message.clone()),
            false => message.clone(),
        };
        let work = send(dest, header.tag, Some(message.logical_len()), 0, Mode::Standard);
        self.queue(dest, header, Payload::Whole(waits), work)
    }

    /// For a message that its receiver's memory, or the credit, is not to be used for: it is lent until it is matched. What
    /// the others cannot see is copied first, such as a message that another rank has sent.
    #[cold]
    fn send_past_credit(
        &self,
        dest: u32,
        header: Header,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let copy = match self.slim(message) {
            Ok(copy) => copy,
            Err(_) if self.carries(message) => message.clone(),
            Err(error) => return Err(error.into()),
        };
        // A copy may hold little enough.
        if mode == Mode::Standard && self.take_credit(dest, self.charge(&copy)) {
            return Ok(self.send_eager(dest, header, &copy));
        }
        let work = send(dest, header.tag, Some(message.logical_len()), 0, mode);
        let header = Header { kind: Kind::Synchronous, ..header };
        let mut core = self.lock();
        self.check_unmatched(&mut core, dest, header.context, 1)?;
        Ok(self.queue_locked(&mut core, dest, header, Payload::Whole(copy), work))
    }

    /// The message as it may wait: a copy of what others cannot see, and of what holds much more memory than it has octets,
    /// unless that is much too.
    pub(crate) fn slim(&self, message: &Message) -> Result<Message, SlabError> {
        let is_sparse = message.held_len() / SPARSE > message.logical_len()
            && message.logical_len() as u64 <= self.config.credit / 4;
        if self.carries(message) && !is_sparse {
            return Ok(message.clone());
        }
        let copy = message.compact(&*self.source)?;
        if self.carries(&copy) { Ok(copy) } else { Err(SlabError::Shared { asked: copy.held_len() as u64 }) }
    }

    /// What a message counts for against the credit: the octets that it holds at the receiver until it is matched.
    #[inline]
    fn charge(&self, message: &Message) -> u64 {
        let len = message.logical_len();
        match goes_inline(message, self.config.inline_max) {
            true => len as u64,
            false => self.config.counted(message.held_len(), len),
        }
    }

    /// Counts octets against the credit for a destination; false when that is used up.
    ///
    /// A message larger than the credit may go all the same when nothing else is on its way: as far as this rank knows,
    /// which hears of matches a quarter of the credit late.
    #[inline]
    pub(crate) fn take_credit(&self, dest: u32, len: u64) -> bool {
        let len = len + CREDIT_OVERHEAD;
        let account = &self.sent[dest as usize];
        let before = account.sent.fetch_add(len, Ordering::Relaxed);
        let credit = self.config.credit;
        // What is known will do most of the time: what the receiver says is in a line of the receiver's, which it writes often.
        if before + len <= account.matched.load(Ordering::Relaxed) + credit {
            return true;
        }
        // More than was sent cannot be matched, whatever a peer says.
        let matched = self.wire.matched_by(dest).min(before);
        account.matched.store(matched, Ordering::Relaxed);
        let under_way = before.saturating_sub(matched);
        // What is copied takes the receiver's memory, however large a message is.
        if under_way + len <= credit || (under_way <= credit / 4 && !self.is_remote(dest)) {
            return true;
        }
        account.sent.fetch_sub(len, Ordering::Relaxed);
        false
    }

    /// A message that counted against the credit has not left and never will.
    fn give_credit_back(&self, dest: u32, payload: &Payload) {
        let len = match payload {
            Payload::Whole(message) => self.charge(message),
            physical => self.config.counted(physical.held_len(), physical.len()),
        };
        self.sent[dest as usize].sent.fetch_sub(len + CREDIT_OVERHEAD, Ordering::Relaxed);
    }

    /// Whether so many more messages to a rank may wait to be matched, past the credit. They would occupy memory there that
    /// nothing but receives gives back, and to wait for those could take for ever.
    ///
    /// # Errors
    /// They may not.
    pub(crate) fn check_unmatched(
        &self,
        core: &mut Core,
        dest: u32,
        context: u64,
        more: u32,
    ) -> Result<(), DeviceError> {
        let count = |state: &State| state.unanswered[dest as usize] + state.outbox.answered_to(dest);
        let max = match is_collective(context) {
            true => self.config.unmatched_limit(),
            false => self.config.unmatched_max(),
        };
        if count(&core.state) + more <= max {
            return Ok(());
        }
        // Answers may be here that nobody has looked at.
        self.progress(core);
        let count = count(&core.state);
        if count + more <= max {
            return Ok(());
        }
        let octets = |count: u32| u64::from(count) * ENVELOPE_LEN;
        Err(DeviceError::Unmatched { rank: dest, count, octets: octets(count), limit: octets(max) })
    }

    /// Queues a packet behind those that wait, and sends what can be sent. Gives the request unless it is done.
    pub(crate) fn queue(&self, dest: u32, header: Header, payload: Payload, work: Work) -> Option<RequestId> {
        self.queue_locked(&mut self.lock(), dest, header, payload, work)
    }

    pub(crate) fn queue_locked(
        &self,
        core: &mut Core,
        dest: u32,
        mut header: Header,
        payload: Payload,
        work: Work,
    ) -> Option<RequestId> {
        let state = &mut core.state;
        let id = state.requests.add(work);
        let waits = header.kind.is_answered();
        if waits {
            header.token = id.into();
        }
        let request = (!waits).then_some(id);
        self.enqueue(state, Queued { dest, header, payload: Some(payload), request });
        if let Ok(Some(_)) = state.requests.take_outcome(id) {
            return None;
        }
        self.give_up_send(core, id, dest);
        Some(id)
    }

    /// Fails a send whose destination has gone since it was looked at: nobody else would.
    pub(crate) fn give_up_send(&self, core: &mut Core, id: RequestId, dest: u32) {
        if self.wire.epoch() != 0
            && let Some(error) = self.hopeless_send(dest)
        {
            self.give_up(core, vec![(id, error)]);
            self.drop_queued(&mut core.state, |gone| gone == dest);
        }
    }

    /// Drops all packets that wait for destinations that `gone` picks.
    pub(crate) fn drop_queued(&self, state: &mut State, gone: impl Fn(u32) -> bool) {
        let dropped = state.outbox.drop_to(|dest| {
            let is_gone = gone(dest);
            if is_gone {
                self.wire.forget_room(dest);
            }
            is_gone
        });
        self.queued_count.fetch_sub(dropped, Ordering::Release);
    }

    /// Puts a packet behind those that wait, and sends what can be sent.
    pub(crate) fn enqueue(&self, state: &mut State, packet: Queued) {
        state.outbox.push(packet);
        self.queued_count.fetch_add(1, Ordering::Release);
        self.flush(state);
        // From now on something is due, should the program go on computing.
        if self.wire.has_helpers() && self.queued_count.load(Ordering::Acquire) == 1 {
            self.wire.call(self.rank);
        }
    }

    /// Sends what waits, in order per destination, as far as there is room.
    pub(crate) fn flush(&self, state: &mut State) {
        let mut outbox = std::mem::take(&mut state.outbox);
        let mut unanswered = std::mem::take(&mut state.unanswered);
        let mut try_send = |packet: &Queued| {
            let body = match &packet.payload {
                None => Outgoing::Nothing,
                Some(Payload::Whole(message)) => Outgoing::Message(message),
                Some(physical) => Outgoing::Payload(physical),
            };
            let sent = self.wire.try_send(packet.dest, packet.header, body);
            unanswered[packet.dest as usize] += u32::from(sent && packet.header.kind.is_answered());
            sent
        };
        outbox.send(&mut try_send, |packet| {
            self.queued_count.fetch_sub(1, Ordering::Release);
            if let Some(id) = packet.request {
                self.complete(state, id, Ok(Completed::SENT));
            }
        });
        state.outbox = outbox;
        state.unanswered = unanswered;
        self.note_left(state);
    }

    /// Removes the one packet of a send that has not left; a split message's send stays.
    pub(crate) fn unqueue(&self, state: &mut State, id: RequestId, dest: u32) -> bool {
        if self.is_physical(dest) {
            return false;
        }
        let is_its = |q: &Queued| {
            q.request == Some(id) || (q.header.kind == Kind::Synchronous && q.header.token == u64::from(id))
        };
        let Some(packet) = state.outbox.remove(dest, is_its) else { return false };
        self.queued_count.fetch_sub(1, Ordering::Release);
        if state.outbox.is_empty_to(dest) {
            self.wire.forget_room(dest);
        }
        if let (Kind::Eager, Some(payload)) = (packet.header.kind, &packet.payload) {
            self.give_credit_back(packet.dest, payload);
        }
        true
    }
}

/// The work of a send that is no second half.
pub(crate) fn send(dest: u32, tag: i32, len: Option<usize>, charged: u64, mode: Mode) -> Work {
    Work::Send { dest, tag, len, pair: None, charged, mode }
}
