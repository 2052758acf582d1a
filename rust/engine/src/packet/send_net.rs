//! Sends to ranks that receive copies. A message that is sent before it is matched is charged to the
//! receiver's memory.

use mpjdev_buffer::{Message, Slab};
use mpjdev_proto::context::shadow;
use mpjdev_transport::config::{CREDIT_OVERHEAD, LARGE_PART};
use mpjdev_transport::{Header, Kind, Outgoing, Payload};
use tracing::debug;

use crate::error::DeviceError;
use crate::operation::Mode;
use crate::packet::engine::PacketEngine;
use crate::packet::requests::Work;
use crate::packet::send::send;
use crate::request::RequestId;

impl PacketEngine {
    /// Starts to send a message as physical messages that are copied.
    pub(crate) fn start_remote(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        self.transport.note_send();
        if message.logical_len() > self.transport.eager_max(dest) {
            // Earlier long messages make progress meanwhile, however many are started before the first wait.
            self.progress(&mut self.lock());
        }
        match (message.second_slab(), self.transport.is_foreign(dest)) {
            (None, _) => self.start_single(dest, header, message, mode),
            (Some(second), false) => self.start_paired(dest, header, message, second, mode),
            (Some(second), true) => self.start_for_foreign(dest, header, message, second, mode),
        }
    }

    fn start_single(
        &self,
        dest: u32,
        header: Header,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let len = message.first_len();
        let plan = self.plan_send(dest, self.first_of(dest, message), mode, None);
        // Nothing may be sent between the halves of a message to a foreign rank. Those are queued under the
        // lock.
        if plan.kind == Kind::Eager
            && self.queued_count.get() == 0
            && !self.transport.is_foreign(dest)
            && self.transport.try_send(dest, header, Outgoing::Message(message))
        {
            return Ok(None);
        }
        let payload = Payload::Physical(message.first_slab().clone(), len);
        let work = send(dest, header.tag, Some(len), plan.charged, mode);
        let mut core = self.lock();
        if plan.kind.is_answered() {
            self.check_unmatched(&mut core, dest, header.context, 1)
                .inspect_err(|_| self.send_credit.uncharge(dest, plan.charged))?;
        }
        let id = self.queue_locked(&mut core, dest, Header { kind: plan.kind, ..header }, payload, work);
        drop(core);
        if plan.kind == Kind::Rts {
            self.note_rendezvous(dest, header.tag, len);
        }
        Ok(self.unless_done(id, &plan))
    }

    /// Sends both halves of a split message, paired by number.
    fn start_paired(
        &self,
        dest: u32,
        header: Header,
        message: &Message,
        second: &Slab,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let (number, second_tag, first) = self.open_numbered(message)?;
        let (len, second_len) = (message.first_len(), message.secondary_len());
        let halves = [self.first_of(dest, message), self.second_of(dest, message)];
        let counted = halves.map(|half| self.counted_remote(half));
        let plan = self.plan_send(dest, halves[0], mode, Some(halves[1]));
        let mut core = self.lock();
        // Both halves are sent, or neither.
        let waiting = 1 + u32::from(plan.kind.is_answered());
        if let Err(error) = self.check_unmatched(&mut core, dest, header.context, waiting) {
            core.state.pairs.close(number);
            if plan.has_credit {
                self.send_credit.uncharge(dest, counted.iter().sum());
            }
            return Err(error);
        }
        let payload = Payload::Physical(first, len);
        let work = send(dest, header.tag, None, plan.charged, mode);
        let first = self.queue_locked(&mut core, dest, Header { kind: plan.kind, ..header }, payload, work);
        // The second half is always acked: its pairing number is free only then.
        let kind = match plan.has_credit && halves[1].may_be_eager {
            true => Kind::Synchronous,
            false => Kind::Rts,
        };
        let charged = if plan.has_credit { counted[1] } else { 0 };
        let logical_len = message.logical_len();
        let (tag, len, pair) = (header.tag, Some(logical_len), Some(number));
        let work = Work::Send { dest, tag, len, pair, charged, mode };
        let second_header = Header { kind, context: shadow(header.context), tag: second_tag, token: 0 };
        let payload = Payload::Physical(second.clone(), second_len);
        let second = self.queue_locked(&mut core, dest, second_header, payload, work);
        drop(core);
        second.into_iter().for_each(|id| self.detach(id));
        if plan.kind == Kind::Rts || kind == Kind::Rts {
            self.note_rendezvous(dest, header.tag, logical_len);
        }
        Ok(self.unless_done(first, &plan))
    }

    /// Sends both halves of a split message to a rank without pairing numbers. The second follows the first
    /// directly, in the same context and with the same tag (mpjdev 4.1).
    fn start_for_foreign(
        &self,
        dest: u32,
        header: Header,
        message: &Message,
        second: &Slab,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        let (len, second_len) = (message.first_len(), message.secondary_len());
        // A message that was received from a rank of this project has a number in it.
        let first = self.numbered(message, 0)?;
        let mut core = self.lock();
        self.check_unmatched(&mut core, dest, header.context, 2)?;
        let kind = self.foreign_kind(dest, len, mode);
        let work = send(dest, header.tag, None, 0, mode);
        let payload = Payload::Physical(first, len);
        let first = self.queue_locked(&mut core, dest, Header { kind, ..header }, payload, work);
        let kind = self.foreign_kind(dest, second_len, mode);
        let work = send(dest, header.tag, Some(message.logical_len()), 0, mode);
        let payload = Payload::Physical(second.clone(), second_len);
        let second = self.queue_locked(&mut core, dest, Header { kind, ..header }, payload, work);
        drop(core);
        // The second half is complete last.
        first.into_iter().for_each(|id| self.detach(id));
        Ok(second)
    }

    /// Reports the start of a rendezvous.
    fn note_rendezvous(&self, peer: u32, tag: i32, octets: usize) {
        debug!(target: "mpjdev::rendezvous", rank = self.rank, peer, tag, octets, "send is started");
    }

    /// The first physical message. Its RTS goes ahead while it is packed.
    fn first_of(&self, dest: u32, message: &Message) -> Physical {
        let len = message.first_len();
        Physical { len, may_be_eager: !message.is_packing() && len <= self.transport.eager_max(dest) }
    }

    /// The second physical message, which is packed in any case.
    fn second_of(&self, dest: u32, message: &Message) -> Physical {
        let len = message.secondary_len();
        Physical { len, may_be_eager: len <= self.transport.eager_max(dest) }
    }

    /// The send plan of a message; the credit covers its second half too.
    pub(crate) fn plan_send(
        &self,
        dest: u32,
        first: Physical,
        mode: Mode,
        second: Option<Physical>,
    ) -> SendPlan {
        if self.transport.is_foreign(dest) {
            return SendPlan {
                kind: self.foreign_kind(dest, first.len, mode),
                has_credit: false,
                is_done: false,
                charged: 0,
            };
        }
        let charged = self.counted_remote(first);
        let all = charged + second.map_or(0, |second| self.counted_remote(second));
        let has_credit = self.take_remote_credit(dest, all);
        let kind = match (has_credit && first.may_be_eager, mode) {
            (true, Mode::Standard) => Kind::Eager,
            (true, Mode::Synchronous) => Kind::Synchronous,
            (false, _) => Kind::Rts,
        };
        SendPlan {
            kind,
            has_credit,
            is_done: has_credit && mode == Mode::Standard && kind != Kind::Eager,
            // For an eager message the receiver returns the credit.
            charged: if has_credit && kind != Kind::Eager { charged } else { 0 },
        }
    }

    /// The credit charge of a message. An eager one is charged its octets, which occupy the receiver's
    /// memory. A rendezvous stays in the sender's memory until it is matched, and is charged a part of the
    /// credit at most.
    fn counted_remote(&self, Physical { len, may_be_eager }: Physical) -> u64 {
        let counted = match may_be_eager {
            true => len as u64,
            false => (len as u64).min(self.config.credit / LARGE_PART),
        };
        counted + CREDIT_OVERHEAD
    }

    fn take_remote_credit(&self, dest: u32, counted: u64) -> bool {
        let len = counted - CREDIT_OVERHEAD;
        if self.take_credit(dest, len) {
            return true;
        }
        // The receiver returns credit in a message, which may have arrived.
        self.progress(&mut self.lock());
        self.take_credit(dest, len)
    }

    /// A foreign rank acks long and synchronous messages.
    fn foreign_kind(&self, dest: u32, len: usize, mode: Mode) -> Kind {
        match mode == Mode::Standard && len <= self.transport.eager_max(dest) {
            true => Kind::Eager,
            false => Kind::Synchronous,
        }
    }

    /// A standard send within the credit is complete at once, though a long message is acked only when it is
    /// matched.
    fn unless_done(&self, id: Option<RequestId>, plan: &SendPlan) -> Option<RequestId> {
        if plan.is_done {
            id.into_iter().for_each(|id| self.detach(id));
            return None;
        }
        id
    }
}

/// A physical message to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Physical {
    pub(crate) len: usize,
    /// Whether it is eager if the credit suffices: it is packed, and not too long.
    pub(crate) may_be_eager: bool,
}

/// The send plan of a message.
pub(crate) struct SendPlan {
    pub(crate) kind: Kind,
    has_credit: bool,
    /// Whether its send is complete as soon as it has started.
    is_done: bool,
    /// Octets that count against the credit until it is acked.
    pub(crate) charged: u64,
}
