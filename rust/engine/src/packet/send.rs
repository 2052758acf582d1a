//! Sends: directly to the transport while there is credit and room, else in order through the outbox.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::{Message, SlabError};
use mpjdev_proto::context::is_collective;
use mpjdev_transport::config::{CREDIT_OVERHEAD, ENVELOPE_LEN, RECORD_MAX, SPARSE_FACTOR};
use mpjdev_transport::wait::WaitControl;
use mpjdev_transport::{Header, Kind, Outgoing, Payload, ShortSend, fits_with_token, goes_inline};

use crate::error::DeviceError;
use crate::operation::Mode;
use crate::packet::engine::{Core, PacketEngine, State};
use crate::packet::outbox::Queued;
use crate::packet::requests::Work;
use crate::request::{Completed, RequestId};

/// Part of the credit at a rank that is charged at once for short messages.
const PREPAID_PART: u64 = 1024;
/// Octets below which nothing is prepaid: the largest inline message, and some more.
const PREPAID_MIN: u64 = 2048;

impl PacketEngine {
    /// Sends a message and waits until the send is complete.
    ///
    /// # Errors
    /// The peer or this rank has failed or finished; interrupted: the message may still arrive then.
    pub fn send(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        match self.isend(dest, context, tag, message, mode)? {
            None => Ok(()),
            Some(id) => match self.wait(id, None, wait_control) {
                Ok(_) => Ok(()),
                Err(error) => {
                    self.lock().state.requests.detach(id);
                    Err(error)
                }
            },
        }
    }

    /// Starts a send; `None` when it is complete already.
    ///
    /// # Errors
    /// The peer or this rank has failed or finished.
    #[inline]
    pub fn isend(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        if self.transport.epoch() != 0 || self.end_flags.has_begun() {
            self.check_peer(dest)?;
        }
        self.isend_unchecked(dest, context, tag, message, mode)
    }

    /// [`isend`](Self::isend) without its checks: this rank may have begun to finish, and the peer
    /// may have ended.
    #[inline]
    pub(crate) fn isend_unchecked(
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
        let is_short = mode == Mode::Standard && goes_inline(message, self.config.inline_max);
        if is_short && self.queued_count.get() == 0 && self.send_short(dest, context, tag, message) {
            return Ok(None);
        }
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        if mode == Mode::Standard
            && (goes_inline(message, self.config.inline_max) || self.can_send_by_reference(message))
            && self.take_credit(dest, self.charge_of(message))
        {
            return Ok(self.send_eager(dest, header, message));
        }
        self.send_past_credit(dest, header, message, mode)
    }

    /// Copies a message that is longer than an inline one into the queue to a rank. Returns false if it is
    /// too long for that, or the queue is half full.
    #[inline(always)]
    pub(crate) fn try_send_copy(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> bool {
        mode == Mode::Standard
            && message.first_len() > self.config.inline_max
            && goes_inline(message, RECORD_MAX)
            && self.send_copy(dest, context, tag, message)
    }

    /// Sends a message of `len` octets in standard mode, if it is short enough to go inline, and can leave at
    /// once; `pack` returns its words. Returns false if not. Then nothing was packed, or the queue is full.
    #[inline(always)]
    pub(crate) fn try_send_words<'w>(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        len: usize,
        pack: impl FnOnce() -> &'w [AtomicU64],
    ) -> bool {
        len <= self.config.inline_max
            && self.can_send_first(dest)
            && self.send_inline(dest, context, tag, pack(), len)
    }

    /// Whether a message may leave at once: no packet is queued before it, the transport takes whole messages
    /// for this rank, and no rank has failed or finished.
    #[inline(always)]
    fn can_send_first(&self, dest: u32) -> bool {
        self.transport.epoch() == 0
            && !self.end_flags.has_begun()
            && !self.is_physical(dest)
            && self.queued_count.get() == 0
    }

    #[inline(never)]
    fn send_copy(&self, dest: u32, context: u64, tag: i32, message: &Message) -> bool {
        if !self.can_send_first(dest) {
            return false;
        }
        let (words, len) = (message.first_words(), message.first_len());
        loop {
            match self.transport.try_send_copy(dest, context, tag, words, len) {
                ShortSend::Sent => return true,
                ShortSend::Unpaid if self.prepay(dest) => {}
                ShortSend::Unpaid | ShortSend::Unavailable => return false,
            }
        }
    }

    pub(crate) fn can_send_by_reference(&self, message: &Message) -> bool {
        self.transport.can_send_by_reference(message.first_slab())
            && message.second_slab().is_none_or(|slab| self.transport.can_send_by_reference(slab))
    }

    /// Sends a short message directly through the transport, with prepaid credit. Returns false if that is
    /// not possible.
    #[inline(always)]
    fn send_short(&self, dest: u32, context: u64, tag: i32, message: &Message) -> bool {
        self.send_inline(dest, context, tag, message.first_words(), message.first_len())
    }

    #[inline(always)]
    fn send_inline(&self, dest: u32, context: u64, tag: i32, words: &[AtomicU64], len: usize) -> bool {
        loop {
            match self.transport.try_send_short(dest, context, tag, words, len) {
                ShortSend::Sent => return true,
                ShortSend::Unpaid if self.prepay(dest) => {}
                ShortSend::Unpaid | ShortSend::Unavailable => return false,
            }
        }
    }

    /// Charges the credit for short messages to come; false when little credit is left.
    #[cold]
    fn prepay(&self, dest: u32) -> bool {
        let octets = self.config.credit / PREPAID_PART;
        let is_charged = octets >= PREPAID_MIN && self.take_credit(dest, octets - CREDIT_OVERHEAD);
        if is_charged {
            self.transport.prepay(dest, octets);
        }
        is_charged
    }

    /// Sends directly through the transport, unless queued packets must not be overtaken.
    #[inline]
    fn send_eager(&self, dest: u32, header: Header, message: &Message) -> Option<RequestId> {
        if self.queued_count.get() == 0 && self.transport.try_send(dest, header, Outgoing::Message(message)) {
            return None;
        }
        // There is no room. A message that will be copied into a queue entry keeps no more memory than it
        // needs meanwhile; its charge is the same.
        let waits = match goes_inline(message, self.config.inline_max) {
            true => self.compact_if_sparse(message).unwrap_or_else(|_| message.clone()),
            false => message.clone(),
        };
        let work = send(dest, header.tag, Some(message.logical_len()), 0, Mode::Standard);
        self.queue(dest, header, Payload::Logical(waits), work)
    }

    /// Sends a message that cannot go eagerly: it is on loan to the receiver until it is matched. Memory that
    /// the other ranks cannot map is copied first, such as that of a message received from another rank. A
    /// short message of a collective operation needs no memory for that: it fits the packet.
    #[cold]
    fn send_past_credit(
        &self,
        dest: u32,
        header: Header,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let needs_no_copy = || {
            self.can_send_by_reference(message)
                || (is_collective(header.context) && fits_with_token(message, self.config.inline_max))
        };
        let copy = match self.compact_if_sparse(message) {
            Ok(copy) => copy,
            Err(_) if needs_no_copy() => message.clone(),
            Err(error) => return Err(error.into()),
        };
        // The copy may hold few enough octets for the credit.
        if mode == Mode::Standard && self.take_credit(dest, self.charge_of(&copy)) {
            return Ok(self.send_eager(dest, header, &copy));
        }
        let work = send(dest, header.tag, Some(message.logical_len()), 0, mode);
        let header = Header { kind: Kind::Synchronous, ..header };
        let mut core = self.lock();
        self.check_unmatched(&mut core, dest, header.context, 1)?;
        Ok(self.queue_locked(&mut core, dest, header, Payload::Logical(copy), work))
    }

    /// The message in a form that may wait: a copy if the others cannot map its memory, or if it holds much
    /// more memory than it has octets, unless it has more octets than a quarter of the credit.
    pub(crate) fn compact_if_sparse(&self, message: &Message) -> Result<Message, SlabError> {
        let is_sparse = message.held_len() / SPARSE_FACTOR > message.logical_len()
            && message.logical_len() as u64 <= self.config.credit / 4;
        if self.can_send_by_reference(message) && !is_sparse {
            return Ok(message.clone());
        }
        let copy = message.compact(&*self.source)?;
        if self.can_send_by_reference(&copy) {
            Ok(copy)
        } else {
            Err(SlabError::Shared { asked: copy.held_len() as u64 })
        }
    }

    /// The credit charge of a message: the octets that it holds at the receiver until it is matched.
    #[inline]
    pub(crate) fn charge_of(&self, message: &Message) -> u64 {
        let len = message.logical_len();
        match goes_inline(message, self.config.inline_max) {
            true => len as u64,
            false => self.config.counted(message.held_len(), len),
        }
    }

    /// Charges octets to the credit for a destination; false when the credit is used up.
    #[inline]
    pub(crate) fn take_credit(&self, dest: u32, len: u64) -> bool {
        let matched = || self.transport.credits_returned_by(dest);
        self.send_credit.charge(dest, len, matched, || self.is_remote(dest))
    }

    /// Returns the charge of a message that was never sent.
    pub(crate) fn uncharge(&self, dest: u32, message: &Message) {
        self.send_credit.uncharge(dest, self.charge_of(message) + CREDIT_OVERHEAD);
    }

    /// Returns the charge of a payload that was never sent.
    fn uncharge_payload(&self, dest: u32, payload: &Payload) {
        let len = match payload {
            Payload::Logical(message) => self.charge_of(message),
            physical => self.config.counted(physical.held_len(), physical.len()),
        };
        self.send_credit.uncharge(dest, len + CREDIT_OVERHEAD);
    }

    /// Checks whether `more` further messages to a rank may wait to be matched, past the credit. They occupy
    /// memory there that only receives release, and those receives may never be posted.
    ///
    /// # Errors
    /// The limit is reached.
    pub(crate) fn check_unmatched(
        &self,
        core: &mut Core,
        dest: u32,
        context: u64,
        more: u32,
    ) -> Result<(), DeviceError> {
        let count = |state: &State| state.credit.unanswered_by(dest) + state.outbox.answered_to(dest);
        let max = match is_collective(context) {
            true => self.config.unmatched_limit(),
            false => self.config.unmatched_max(),
        };
        if count(&core.state) + more <= max {
            return Ok(());
        }
        // Match acks may have arrived that were not polled yet.
        self.progress(core);
        let count = count(&core.state);
        if count + more <= max {
            return Ok(());
        }
        let octets = |count: u32| u64::from(count) * ENVELOPE_LEN;
        Err(DeviceError::Unmatched { rank: dest, count, octets: octets(count), limit: octets(max) })
    }

    /// Queues a packet behind the waiting ones, and sends as many as possible. Returns the request unless it
    /// is complete.
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
        self.fail_ended_send(core, id, dest);
        Some(id)
    }

    /// Fails a send whose destination has ended since it was checked: no other code would fail it.
    pub(crate) fn fail_ended_send(&self, core: &mut Core, id: RequestId, dest: u32) {
        if self.transport.epoch() != 0
            && let Some(error) = self.unsatisfiable_send(dest)
        {
            self.fail_requests(core, vec![(id, error)]);
            self.drop_queued(&mut core.state, |ended| ended == dest);
        }
    }

    /// Drops all queued packets for the destinations that have ended.
    pub(crate) fn drop_queued(&self, state: &mut State, has_ended: impl Fn(u32) -> bool) {
        state.outbox.drop_to(&self.queued_count, |dest| {
            let drops = has_ended(dest);
            if drops {
                self.transport.cancel_room_request(dest);
            }
            drops
        });
    }

    /// Puts a packet behind the waiting ones, and sends as many as possible.
    pub(crate) fn enqueue(&self, state: &mut State, packet: Queued) {
        state.outbox.push(packet, &self.queued_count);
        self.flush(state);
        // A progress thread must send the packet if the program computes from now on.
        if self.transport.has_progress_threads() && self.queued_count.get() == 1 {
            self.transport.kick_progress_thread(self.rank);
        }
    }

    /// Sends the waiting packets, in order per destination, as far as there is room.
    pub(crate) fn flush(&self, state: &mut State) {
        let mut outbox = std::mem::take(&mut state.outbox);
        let mut try_send = |packet: &Queued| {
            let body = match &packet.payload {
                None => Outgoing::Nothing,
                Some(Payload::Logical(message)) => Outgoing::Message(message),
                Some(physical) => Outgoing::Payload(physical),
            };
            self.transport.try_send(packet.dest, packet.header, body)
        };
        outbox.send(&self.queued_count, &mut try_send, |packet| {
            if packet.header.kind.is_answered() {
                state.credit.note_unanswered(packet.dest);
            }
            if let Some(id) = packet.request {
                self.complete(state, id, Ok(Completed::SENT));
            }
        });
        state.outbox = outbox;
        self.note_left(state);
    }

    /// Removes the queued packet of a send; the send of a split message stays.
    pub(crate) fn unqueue(&self, state: &mut State, id: RequestId, dest: u32) -> bool {
        if self.is_physical(dest) {
            return false;
        }
        let is_its = |q: &Queued| {
            q.request == Some(id) || (q.header.kind == Kind::Synchronous && q.header.token == u64::from(id))
        };
        let Some(packet) = state.outbox.remove(dest, &self.queued_count, is_its) else { return false };
        if state.outbox.is_empty_to(dest) {
            self.transport.cancel_room_request(dest);
        }
        if let (Kind::Eager, Some(payload)) = (packet.header.kind, &packet.payload) {
            self.uncharge_payload(packet.dest, payload);
        }
        true
    }
}

/// The work of a send that is no second half.
pub(crate) fn send(dest: u32, tag: i32, len: Option<usize>, charged: u64, mode: Mode) -> Work {
    Work::Send { dest, tag, len, pair: None, charged, mode }
}
