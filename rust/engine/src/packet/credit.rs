//! Credit: the memory that unmatched messages hold, by sender, and what each of them is charged.

use mpjdev_transport::config::{CREDIT_OVERHEAD, Config, INLINE_MAX};
use mpjdev_transport::{Header, Incoming, Kind, Payload, PeerState, ProtocolViolation};

use crate::packet::engine::{PacketEngine, State};
use crate::packet::outbox::Queued;

/// The credit charge of a message until it is matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreditCharge {
    /// Octets charged to the sender's credit; 0 when the sender waits for a match ack.
    credit: u64,
    /// Octets of this rank's memory.
    memory: u64,
    /// The sender's request, when it waits for a match ack.
    pub(crate) token: Option<u64>,
}

impl CreditCharge {
    #[inline]
    fn of(body: &Incoming<'_>, token: Option<u64>, config: &Config) -> CreditCharge {
        let (held, memory) = match body {
            Incoming::Inline(_, len) => (*len as u64, *len as u64),
            Incoming::Reference(payload) => (config.counted(payload.held_len(), payload.len()), 0),
            Incoming::Nothing | Incoming::Lost(_) => (0, 0),
        };
        match token {
            Some(_) => CreditCharge { credit: 0, memory: 0, token },
            None => CreditCharge { credit: held + CREDIT_OVERHEAD, memory: memory + CREDIT_OVERHEAD, token },
        }
    }

    /// The charge of a message that was copied into this rank's memory, as far as it has arrived. The sender
    /// charges the same octets, and nothing for an RTS.
    fn of_copy(body: &Incoming<'_>, kind: Kind, token: Option<u64>) -> CreditCharge {
        let memory = match body {
            _ if kind == Kind::Rts => return CreditCharge { credit: 0, memory: 0, token },
            Incoming::Inline(_, len) => *len,
            Incoming::Reference(Payload::Partial { here, .. }) => *here,
            Incoming::Reference(payload) => payload.len(),
            Incoming::Nothing | Incoming::Lost(_) => 0,
        };
        let memory = memory as u64 + CREDIT_OVERHEAD;
        CreditCharge { credit: if token.is_some() { 0 } else { memory }, memory, token }
    }
}

/// The unmatched messages of one source, and the credit that was returned to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecvCredit {
    /// Octets of credit that were matched, and those of them that were reported to the source.
    matched: u64,
    reported: u64,
    /// Octets of this rank's memory in unmatched messages.
    memory: u64,
    /// Unmatched messages whose sender waits for a match ack.
    waiting: u32,
    /// The source is foreign and was asked to stop sending.
    is_backpressured: bool,
}

impl RecvCredit {
    /// Checks whether the credit allows a message with this charge.
    ///
    /// # Errors
    /// The sender has exceeded its credit.
    #[inline]
    fn check(&self, charge: &CreditCharge, config: &Config) -> Result<(), ProtocolViolation> {
        // One message may exceed the credit.
        let memory_max = config.credit.saturating_add(INLINE_MAX as u64 + CREDIT_OVERHEAD);
        if charge.memory > 0 && self.memory > memory_max {
            return Err(ProtocolViolation("more messages than its credit allows"));
        }
        // An honest sender refuses this send.
        if charge.token.is_some() && self.waiting >= config.unmatched_limit() {
            return Err(ProtocolViolation("more unmatched messages than may wait past its credit"));
        }
        Ok(())
    }

    /// Charges a message.
    #[inline]
    fn charge(&mut self, charge: &CreditCharge) {
        self.waiting += u32::from(charge.token.is_some());
        self.memory += charge.memory;
    }

    /// Releases the charge of a matched message. Returns the matched octets when they are due to be reported
    /// to the sender.
    #[inline]
    fn release(&mut self, charge: &CreditCharge, credit: u64) -> Option<u64> {
        self.memory -= charge.memory;
        if charge.token.is_some() {
            self.waiting -= 1;
            return None;
        }
        // A peer may state wrong sizes of the slabs on loan; that harms its own credit only.
        self.matched = self.matched.wrapping_add(charge.credit);
        // A report is due per quarter of the credit, so that not every message costs the sender's cache line.
        (self.matched.wrapping_sub(self.reported) > credit / 4).then(|| {
            self.reported = self.matched;
            self.matched
        })
    }
}

impl PacketEngine {
    /// Checks and charges an arriving message.
    #[inline]
    pub(crate) fn charge(
        &self,
        state: &mut State,
        source: u32,
        body: &Incoming<'_>,
        kind: Kind,
        token: Option<u64>,
    ) -> Result<CreditCharge, ProtocolViolation> {
        let credit = &mut state.recv_credit[source as usize];
        if !self.is_remote(source) {
            let charge = CreditCharge::of(body, token, &self.config);
            credit.check(&charge, &self.config)?;
            credit.charge(&charge);
            return Ok(charge);
        }
        let charge = CreditCharge::of_copy(body, kind, token);
        if !self.transport.is_foreign(source) {
            credit.check(&charge, &self.config)?;
            credit.charge(&charge);
            return Ok(charge);
        }
        // A foreign sender knows no credit: it is asked to stop, and the packets that it may still send are
        // bounded elsewhere.
        credit.charge(&charge);
        if credit.memory > self.config.credit && !credit.is_backpressured {
            credit.is_backpressured = true;
            self.transport.set_backpressure(source, true);
        }
        Ok(charge)
    }

    /// Releases the charge of a message that was matched or withdrawn, and reports credit to a sender that
    /// does not wait.
    #[inline]
    pub(crate) fn release(&self, state: &mut State, source: u32, charge: &CreditCharge) {
        let credit = &mut state.recv_credit[source as usize];
        if let Some(octets) = credit.release(charge, self.config.credit) {
            self.transport.return_credit(source, octets);
        }
        if credit.is_backpressured && credit.memory <= self.config.credit {
            credit.is_backpressured = false;
            self.transport.set_backpressure(source, false);
        }
    }

    /// Sends the match ack of a message, or returns its credit. `wanted` is the number of octets to send of a
    /// message that has not arrived in full.
    #[inline]
    pub(crate) fn acknowledge(&self, state: &mut State, source: u32, charge: &CreditCharge, wanted: u64) {
        // The queue of a finished rank is never emptied: a packet for it would stay in the outbox for ever.
        if let Some(token) = charge.token
            && (self.transport.epoch() == 0 || self.transport.peer(source) == PeerState::Alive)
        {
            let header = Header { kind: Kind::MatchAck, context: wanted, tag: 0, token };
            self.enqueue(state, Queued { dest: source, header, payload: None, request: None });
        }
        self.release(state, source, charge);
    }
}
