//! Credit: the memory that unmatched messages hold, by sender, and what each of them is charged.

use mpjdev_transport::config::{CREDIT_OVERHEAD, Config, INLINE_MAX};
use mpjdev_transport::{Header, Incoming, Kind, Payload, PeerState, ProtocolViolation};

use crate::packet::endpoint::{Endpoint, State};
use crate::packet::outbox::Queued;

/// The credit charge of a message until it is matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charge {
    /// Octets charged to the sender's credit; 0 when the sender waits for a match ack.
    credit: u64,
    /// Octets of this rank's memory.
    here: u64,
    /// The sender's request, when it waits for a match ack.
    pub(crate) token: Option<u64>,
}

impl Charge {
    #[inline]
    fn of(body: &Incoming<'_>, token: Option<u64>, config: &Config) -> Charge {
        let (held, here) = match body {
            Incoming::Inline(_, len) => (*len as u64, *len as u64),
            Incoming::Reference(payload) => (config.counted(payload.held_len(), payload.len()), 0),
            Incoming::Nothing | Incoming::Lost(_) => (0, 0),
        };
        match token {
            Some(_) => Charge { credit: 0, here: 0, token },
            None => Charge { credit: held + CREDIT_OVERHEAD, here: here + CREDIT_OVERHEAD, token },
        }
    }

    /// The charge of a message that was copied into this rank's memory, as far as it has arrived. The sender
    /// charges the same octets, and nothing for an RTS.
    fn of_copy(body: &Incoming<'_>, kind: Kind, token: Option<u64>) -> Charge {
        let here = match body {
            _ if kind == Kind::Rts => return Charge { credit: 0, here: 0, token },
            Incoming::Inline(_, len) => *len,
            Incoming::Reference(Payload::Partial { here, .. }) => *here,
            Incoming::Reference(payload) => payload.len(),
            Incoming::Nothing | Incoming::Lost(_) => 0,
        };
        let here = here as u64 + CREDIT_OVERHEAD;
        Charge { credit: if token.is_some() { 0 } else { here }, here, token }
    }
}

/// The unmatched messages of one source, and the credit that was returned to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Octets of credit that were matched, and those of them that were reported to the source.
    matched: u64,
    told: u64,
    /// Octets of this rank's memory in unmatched messages.
    here: u64,
    /// Unmatched messages whose sender waits for a match ack.
    waiting: u32,
    /// The source is foreign and was asked to stop sending.
    held_back: bool,
}

impl Account {
    /// Checks whether the credit allows a message with this charge.
    ///
    /// # Errors
    /// The sender has exceeded its credit.
    #[inline]
    fn check(&self, charge: &Charge, config: &Config) -> Result<(), ProtocolViolation> {
        // One message may exceed the credit.
        let here_max = config.credit.saturating_add(INLINE_MAX as u64 + CREDIT_OVERHEAD);
        if charge.here > 0 && self.here > here_max {
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
    fn enter(&mut self, charge: &Charge) {
        self.waiting += u32::from(charge.token.is_some());
        self.here += charge.here;
    }

    /// Releases the charge of a matched message. Returns the matched octets when they are due to be reported
    /// to the sender.
    #[inline]
    fn settle(&mut self, charge: &Charge, credit: u64) -> Option<u64> {
        self.here -= charge.here;
        if charge.token.is_some() {
            self.waiting -= 1;
            return None;
        }
        // A peer may state wrong sizes of slabs that it lends; that harms its own credit only.
        self.matched = self.matched.wrapping_add(charge.credit);
        // A report is due per quarter of the credit, so that not every message costs the sender's cache line.
        (self.matched.wrapping_sub(self.told) > credit / 4).then(|| {
            self.told = self.matched;
            self.matched
        })
    }
}

impl Endpoint {
    /// Checks and charges an arriving message.
    #[inline]
    pub(crate) fn enter(
        &self,
        state: &mut State,
        source: u32,
        body: &Incoming<'_>,
        kind: Kind,
        token: Option<u64>,
    ) -> Result<Charge, ProtocolViolation> {
        let account = &mut state.accounts[source as usize];
        if !self.is_remote(source) {
            let charge = Charge::of(body, token, &self.config);
            account.check(&charge, &self.config)?;
            account.enter(&charge);
            return Ok(charge);
        }
        let charge = Charge::of_copy(body, kind, token);
        if !self.transport.is_foreign(source) {
            account.check(&charge, &self.config)?;
            account.enter(&charge);
            return Ok(charge);
        }
        // A foreign sender knows no credit: it is asked to stop, and the packets that it may still send are
        // bounded elsewhere.
        account.enter(&charge);
        if account.here > self.config.credit && !account.held_back {
            account.held_back = true;
            self.transport.set_backpressure(source, true);
        }
        Ok(charge)
    }

    /// Releases the charge of a message that was matched or withdrawn, and reports credit to a sender that
    /// does not wait.
    #[inline]
    pub(crate) fn settle(&self, state: &mut State, source: u32, charge: &Charge) {
        let account = &mut state.accounts[source as usize];
        if let Some(octets) = account.settle(charge, self.config.credit) {
            self.transport.return_credit(source, octets);
        }
        if account.held_back && account.here <= self.config.credit {
            account.held_back = false;
            self.transport.set_backpressure(source, false);
        }
    }

    /// Sends the match ack of a message, or returns its credit. `wanted` is the number of octets to send of a
    /// message that has not arrived in full.
    #[inline]
    pub(crate) fn matched(&self, state: &mut State, source: u32, charge: &Charge, wanted: u64) {
        // The queue of a finished rank is never emptied: a packet for it would stay in the outbox for ever.
        if let Some(token) = charge.token
            && (self.transport.epoch() == 0 || self.transport.peer(source) == PeerState::Alive)
        {
            let header = Header { kind: Kind::MatchAck, context: wanted, tag: 0, token };
            self.enqueue(state, Queued { dest: source, header, payload: None, request: None });
        }
        self.settle(state, source, charge);
    }
}
