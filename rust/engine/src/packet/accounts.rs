//! Credit: the memory that unmatched messages hold, by sender, and what each of them is charged.

use mpjdev_transport::config::{CREDIT_OVERHEAD, Config, INLINE_MAX};
use mpjdev_transport::{Header, Incoming, Kind, NotAllowed, Payload, PeerState};

use crate::packet::endpoint::{Endpoint, State};
use crate::packet::outbox::Queued;

/// What a message counts for until it is matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charge {
    /// Octets against its sender's credit; none when the sender waits.
    credit: u64,
    /// Octets of this rank's memory.
    here: u64,
    /// The sender's request, when it waits to hear that the message is matched.
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

    /// Of a message that was copied into this rank's memory, as far as it is here. Its sender counts just that, and nothing for
    /// one that was only announced.
    fn of_copy(body: &Incoming<'_>, kind: Kind, token: Option<u64>) -> Charge {
        let here = match body {
            _ if kind == Kind::Announced => return Charge { credit: 0, here: 0, token },
            Incoming::Inline(_, len) => *len,
            Incoming::Reference(Payload::Begun { here, .. }) => *here,
            Incoming::Reference(payload) => payload.len(),
            Incoming::Nothing | Incoming::Lost(_) => 0,
        };
        let here = here as u64 + CREDIT_OVERHEAD;
        Charge { credit: if token.is_some() { 0 } else { here }, here, token }
    }
}

/// What one rank has sent this one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Octets against the credit that were matched, and those of them that the source was told of.
    matched: u64,
    told: u64,
    /// Octets of this rank's memory in messages that are not matched.
    here: u64,
    /// Messages that are not matched and whose sender waits for that.
    waiting: u32,
    /// The source is foreign and was asked to send no more.
    held_back: bool,
}

impl Account {
    /// Checks whether a message of this charge may come.
    ///
    /// # Errors
    /// Its sender should have waited.
    #[inline]
    fn check(&self, charge: &Charge, config: &Config) -> Result<(), NotAllowed> {
        // One message may go beyond the credit.
        let here_max = config.credit.saturating_add(INLINE_MAX as u64 + CREDIT_OVERHEAD);
        if charge.here > 0 && self.here > here_max {
            return Err(NotAllowed("more messages than its credit allows"));
        }
        // An honest sender has failed the send.
        if charge.token.is_some() && self.waiting >= config.unmatched_limit() {
            return Err(NotAllowed("more unmatched messages than may wait past its credit"));
        }
        Ok(())
    }

    /// Takes a message to account.
    #[inline]
    fn enter(&mut self, charge: &Charge) {
        self.waiting += u32::from(charge.token.is_some());
        self.here += charge.here;
    }

    /// A message of the account is matched. Gives the octets that its sender should be told of.
    #[inline]
    fn settle(&mut self, charge: &Charge, credit: u64) -> Option<u64> {
        self.here -= charge.here;
        if charge.token.is_some() {
            self.waiting -= 1;
            return None;
        }
        // What a peer says of the slabs that it lends may be nonsense, which harms its own credit only.
        self.matched = self.matched.wrapping_add(charge.credit);
        // A quarter of the credit at a time, so that a message does not cost the sender's line each time.
        (self.matched.wrapping_sub(self.told) > credit / 4).then(|| {
            self.told = self.matched;
            self.matched
        })
    }
}

impl Endpoint {
    /// Takes a message to account.
    #[inline]
    pub(crate) fn enter(
        &self,
        state: &mut State,
        source: u32,
        body: &Incoming<'_>,
        kind: Kind,
        token: Option<u64>,
    ) -> Result<Charge, NotAllowed> {
        let account = &mut state.accounts[source as usize];
        if !self.is_remote(source) {
            let charge = Charge::of(body, token, &self.config);
            account.check(&charge, &self.config)?;
            account.enter(&charge);
            return Ok(charge);
        }
        let charge = Charge::of_copy(body, kind, token);
        if !self.wire.is_foreign(source) {
            account.check(&charge, &self.config)?;
            account.enter(&charge);
            return Ok(charge);
        }
        // A foreign sender knows of no credit; it is asked to stop, and what it may send then is bounded elsewhere.
        account.enter(&charge);
        if account.here > self.config.credit && !account.held_back {
            account.held_back = true;
            self.wire.hold_back(source, true);
        }
        Ok(charge)
    }

    /// A message of the account is matched or withdrawn: what its sender hears of it, unless it waits.
    #[inline]
    pub(crate) fn settle(&self, state: &mut State, source: u32, charge: &Charge) {
        let account = &mut state.accounts[source as usize];
        if let Some(octets) = account.settle(charge, self.config.credit) {
            self.wire.tell_matched(source, octets);
        }
        if account.held_back && account.here <= self.config.credit {
            account.held_back = false;
            self.wire.hold_back(source, false);
        }
    }

    /// Tells the sender of a message that it is matched: its request, or its credit. No more than `wanted` octets of it are
    /// wanted, where they are not all here.
    #[inline]
    pub(crate) fn matched(&self, state: &mut State, source: u32, charge: &Charge, wanted: u64) {
        // Nobody empties the queue of a rank that has finished: what is meant for it would wait here for ever.
        if let Some(token) = charge.token
            && (self.wire.epoch() == 0 || self.wire.peer(source) == PeerState::Alive)
        {
            let header = Header { kind: Kind::Matched, context: wanted, tag: 0, token };
            self.enqueue(state, Queued { dest: source, header, payload: None, request: None });
        }
        self.settle(state, source, charge);
    }
}
