//! Credit: the memory that unmatched messages hold, by sender, and what each of them is charged.
//!
//! The sender keeps [`SendCredit`], the receiver [`CreditTable`]. Both charge the same octets for a message,
//! so an honest sender never exceeds what its receiver allows.

// No thread waits on these counts: they stay with `std`, which spares the model checker their interleavings.
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use mpjdev_transport::config::{CREDIT_OVERHEAD, Config, RECORD_MAX};
use mpjdev_transport::{Incoming, Kind, Payload, ProtocolViolation};

/// The credit of a rank at each destination. Threads charge it without the rank's lock.
///
/// Invariant: a destination has matched no more octets than are charged for it. What is charged and not
/// matched exceeds the limit by one message at most.
#[derive(Debug)]
pub(crate) struct SendCredit {
    limit: u64,
    dests: Box<[CachePadded<SendCharge>]>,
}

/// Octets that were sent to one rank against the credit, and those that it had matched at the last query.
#[derive(Debug, Default)]
struct SendCharge {
    charged: AtomicU64,
    matched: AtomicU64,
}

impl SendCredit {
    /// The unused credit of `limit` octets at each of `ranks` ranks.
    pub(crate) fn new(ranks: u32, limit: u64) -> Self {
        SendCredit { limit, dests: (0..ranks).map(|_| CachePadded::default()).collect() }
    }

    /// Charges a message of `len` octets; false when the credit is used up. `matched` asks the transport for
    /// the octets that the destination has matched. `is_copied` states whether the destination copies the
    /// message into its own memory.
    ///
    /// A message larger than the credit is sent when no other message is in flight. A destination reports
    /// matches per quarter of the credit, so up to a quarter in flight counts as none.
    #[inline]
    pub(crate) fn charge(
        &self,
        dest: u32,
        len: u64,
        matched: impl FnOnce() -> u64,
        is_copied: impl FnOnce() -> bool,
    ) -> bool {
        let len = len + CREDIT_OVERHEAD;
        let charge = &self.dests[dest as usize];
        let before = charge.charged.fetch_add(len, Ordering::Relaxed);
        // The cached count suffices mostly. The receiver's own count is in a cache line that the receiver
        // writes often.
        if before + len <= charge.matched.load(Ordering::Relaxed) + self.limit {
            return true;
        }
        // A peer cannot have matched more than was sent, whatever it reports.
        let matched = matched().min(before);
        charge.matched.store(matched, Ordering::Relaxed);
        let in_flight = before.saturating_sub(matched);
        // A copied message takes the receiver's memory, whatever its length.
        if in_flight + len <= self.limit || (in_flight <= self.limit / 4 && !is_copied()) {
            return true;
        }
        charge.charged.fetch_sub(len, Ordering::Relaxed);
        false
    }

    /// Returns the charge of a message that was never sent, or whose match ack returns its credit.
    /// `charged` includes the overhead.
    #[inline]
    pub(crate) fn uncharge(&self, dest: u32, charged: u64) {
        self.dests[dest as usize].charged.fetch_sub(charged, Ordering::Relaxed);
    }

    /// Panics when an invariant does not hold. For tests, while no thread sends and all peers are honest.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn check(&self) {
        for (dest, charge) in self.dests.iter().enumerate() {
            let [charged, matched] = [&charge.charged, &charge.matched].map(|n| n.load(Ordering::Relaxed));
            assert!(matched <= charged, "rank {dest} has matched {matched} octets of {charged}");
        }
    }
}

/// The credit charge of a message until it is matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreditCharge {
    /// Octets charged to the sender's credit; 0 when the sender waits for a match ack.
    credit: u64,
    /// Octets of this rank's memory.
    memory: u64,
    /// The sender's request, when it waits for a match ack.
    token: Option<u64>,
}

impl CreditCharge {
    /// The sender's request, when it waits for a match ack.
    #[inline]
    pub(crate) fn token(&self) -> Option<u64> {
        self.token
    }

    #[inline]
    fn of(body: &Incoming<'_>, token: Option<u64>, config: &Config) -> CreditCharge {
        let (held, memory) = match body {
            Incoming::Inline(_, len) => (*len as u64, *len as u64),
            Incoming::Reference(payload) => (config.counted(payload.held_len(), payload.len()), 0),
            Incoming::Nothing | Incoming::Lost(_) => (0, 0),
        };
        match token {
            // Its sender counts it among the unmatched messages. The octets of an inline one are few.
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

/// The receiver's side of the credit, and the sends past the credit. The rank's lock guards it.
///
/// Invariants, by source: the memory is the sum over the unmatched messages; at most a quarter of the credit
/// is matched and not reported; a source under backpressure exceeds the credit. By destination: no more
/// match acks are expected than packets that ask for one were sent.
#[derive(Debug)]
pub(crate) struct CreditTable {
    limit: u64,
    sources: Vec<CachePadded<RecvCredit>>,
    /// Messages in flight that ask for a match ack, by destination.
    unanswered: Vec<u32>,
}

/// Reports that the release of a charge makes due.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// Octets to report to the source as matched: a running number.
    pub(crate) report: Option<u64>,
    /// The source is foreign, was asked to stop sending, and may send again.
    pub(crate) ends_backpressure: bool,
}

impl CreditTable {
    /// A table for a world of `ranks` ranks, each with a credit of `limit` octets.
    pub(crate) fn new(ranks: u32, limit: u64) -> Self {
        let sources = vec![CachePadded::default(); ranks as usize];
        CreditTable { limit, sources, unanswered: vec![0; ranks as usize] }
    }

    /// Charges an arriving message of a source that shares memory with this rank.
    ///
    /// # Errors
    /// The source has exceeded its credit.
    #[inline]
    pub(crate) fn charge(
        &mut self,
        source: u32,
        body: &Incoming<'_>,
        token: Option<u64>,
        config: &Config,
    ) -> Result<CreditCharge, ProtocolViolation> {
        let charge = CreditCharge::of(body, token, config);
        self.charge_checked(source, &charge, config)?;
        Ok(charge)
    }

    /// Charges an arriving message that was copied into this rank's memory.
    ///
    /// # Errors
    /// The source has exceeded its credit.
    #[inline]
    pub(crate) fn charge_copy(
        &mut self,
        source: u32,
        body: &Incoming<'_>,
        kind: Kind,
        token: Option<u64>,
        config: &Config,
    ) -> Result<CreditCharge, ProtocolViolation> {
        let charge = CreditCharge::of_copy(body, kind, token);
        self.charge_checked(source, &charge, config)?;
        Ok(charge)
    }

    #[inline]
    fn charge_checked(
        &mut self,
        source: u32,
        charge: &CreditCharge,
        config: &Config,
    ) -> Result<(), ProtocolViolation> {
        let credit = &mut self.sources[source as usize];
        credit.check_charge(charge, self.limit, config)?;
        credit.charge(charge);
        Ok(())
    }

    /// Charges an arriving message of a foreign source, which counts no credit. Returns whether the source is
    /// to be asked to stop. The flow control of IMPI bounds the packets that it may still send.
    pub(crate) fn charge_foreign(
        &mut self,
        source: u32,
        body: &Incoming<'_>,
        kind: Kind,
        token: Option<u64>,
    ) -> (CreditCharge, bool) {
        let charge = CreditCharge::of_copy(body, kind, token);
        let credit = &mut self.sources[source as usize];
        credit.charge(&charge);
        let begins = credit.memory > self.limit && !credit.is_backpressured;
        credit.is_backpressured |= begins;
        (charge, begins)
    }

    /// Releases the charge of a message that was matched or withdrawn.
    #[inline]
    pub(crate) fn release(&mut self, source: u32, charge: &CreditCharge) -> Released {
        let credit = &mut self.sources[source as usize];
        let report = credit.release(charge, self.limit);
        let ends_backpressure = credit.is_backpressured && credit.memory <= self.limit;
        if ends_backpressure {
            credit.is_backpressured = false;
        }
        Released { report, ends_backpressure }
    }

    /// Charges and releases an eager message of `len` octets that is matched at once. Returns the matched
    /// octets when they are due to be reported to the source. No message of the source is unmatched.
    #[inline]
    pub(crate) fn pass(&mut self, source: u32, len: usize) -> Option<u64> {
        let charge = CreditCharge { credit: len as u64 + CREDIT_OVERHEAD, memory: 0, token: None };
        self.sources[source as usize].release(&charge, self.limit)
    }

    /// Counts a sent packet that asks for a match ack.
    #[inline]
    pub(crate) fn note_unanswered(&mut self, dest: u32) {
        self.unanswered[dest as usize] += 1;
    }

    /// Counts a match ack. A peer may send more of them than it was asked for.
    pub(crate) fn note_answered(&mut self, dest: u32) {
        let unanswered = &mut self.unanswered[dest as usize];
        *unanswered = unanswered.saturating_sub(1);
    }

    /// Messages in flight to a rank that ask for a match ack.
    pub(crate) fn unanswered_by(&self, dest: u32) -> u32 {
        self.unanswered[dest as usize]
    }

    /// The ranks from which a match ack is expected.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.unanswered).filter(|(_, count)| **count > 0).map(|(dest, _)| dest)
    }

    /// Panics when an invariant does not hold. Takes time for each rank of the world.
    pub(crate) fn check(&self) {
        for (source, credit) in self.sources.iter().enumerate() {
            let unreported = credit.matched.wrapping_sub(credit.reported);
            assert!(unreported <= self.limit / 4, "{unreported} octets of rank {source} are not reported");
            assert!(!credit.is_backpressured || credit.memory > self.limit, "rank {source} may send again");
        }
    }

    /// Panics unless these are the unmatched messages that are charged, by source.
    pub(crate) fn check_held<'a>(&self, messages: impl Iterator<Item = (u32, &'a CreditCharge)>) {
        let mut held = vec![(0, 0); self.sources.len()];
        for (source, charge) in messages {
            let (memory, waiting) = &mut held[source as usize];
            *memory += charge.memory;
            *waiting += u32::from(charge.token.is_some());
        }
        for (source, (credit, held)) in self.sources.iter().zip(held).enumerate() {
            assert_eq!((credit.memory, credit.waiting), held, "octets and waiting messages of rank {source}");
        }
    }
}

/// The unmatched messages of one source, and the credit that was returned to it.
#[derive(Clone, Copy, Debug, Default)]
struct RecvCredit {
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
    fn check_charge(
        &self,
        charge: &CreditCharge,
        limit: u64,
        config: &Config,
    ) -> Result<(), ProtocolViolation> {
        // One message may exceed the credit.
        let memory_max = limit.saturating_add(RECORD_MAX as u64 + CREDIT_OVERHEAD);
        if charge.memory > 0 && self.memory > memory_max {
            return Err(ProtocolViolation::Credit);
        }
        // An honest sender refuses this send.
        if charge.token.is_some() && self.waiting >= config.unmatched_limit() {
            return Err(ProtocolViolation::Unmatched);
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
    fn release(&mut self, charge: &CreditCharge, limit: u64) -> Option<u64> {
        self.memory -= charge.memory;
        if charge.token.is_some() {
            self.waiting -= 1;
            return None;
        }
        // A peer may state wrong sizes of the slabs on loan; that harms its own credit only.
        self.matched = self.matched.wrapping_add(charge.credit);
        // A report is due per quarter of the credit, so that not every message costs the sender's cache line.
        (self.matched.wrapping_sub(self.reported) > limit / 4).then(|| {
            self.reported = self.matched;
            self.matched
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 16;

    fn body(words: &[AtomicU64]) -> Incoming<'_> {
        Incoming::Inline(words, words.len() * 8)
    }

    fn config() -> Config {
        Config { credit: LIMIT, ..Config::default() }
    }

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn send_is_refused_when_the_credit_is_used_up() {
        let credit = SendCredit::new(2, LIMIT);
        let send = |matched| credit.charge(1, 1000 - CREDIT_OVERHEAD, || matched, || true);
        let sent = (0..).take_while(|_| send(0)).count() as u64;
        assert_eq!(sent, LIMIT / 1000);
        credit.check();
        assert!(!send(0), "a refused send is not charged");
        assert!(send(1000) && !send(1000));
        credit.uncharge(1, 1000);
        assert!(send(1000) && !send(1000));
        assert!(credit.charge(0, LIMIT - CREDIT_OVERHEAD, || 0, || true), "each destination has its own");
        credit.check();
    }

    #[test]
    fn message_above_the_credit_is_sent_alone_unless_it_is_copied() {
        let credit = SendCredit::new(1, LIMIT);
        assert!(!credit.charge(0, 2 * LIMIT, || 0, || true));
        assert!(credit.charge(0, 2 * LIMIT, || 0, || false));
        assert!(!credit.charge(0, 8, || 0, || false), "the credit is used up");
        assert!(credit.charge(0, 8, || 2 * LIMIT + CREDIT_OVERHEAD, || false));
        credit.check();
    }

    #[test]
    fn peer_that_reports_more_than_was_sent_gets_no_more_credit() {
        let credit = SendCredit::new(1, LIMIT);
        assert!(credit.charge(0, 2 * LIMIT, || u64::MAX, || false));
        assert!(!credit.charge(0, 2 * LIMIT, || LIMIT, || false));
        credit.check();
    }

    #[test]
    fn credit_is_reported_per_quarter() {
        let mut table = CreditTable::new(2, LIMIT);
        let words = words(125);
        let mut reported = Vec::new();
        for sent in 1..=1000u64 {
            let charge = table.charge(1, &body(&words), None, &config()).expect("within the credit");
            let released = table.release(1, &charge);
            assert!(!released.ends_backpressure);
            let all = sent * (1000 + CREDIT_OVERHEAD);
            reported.extend(released.report.inspect(|octets| assert_eq!(*octets, all)));
            table.check();
            assert!(all - reported.last().copied().unwrap_or_default() <= LIMIT / 4);
        }
        assert!(reported.len() as u64 <= 1000 * (1000 + CREDIT_OVERHEAD) / (LIMIT / 4));
    }

    #[test]
    fn source_that_exceeds_its_credit_is_refused() {
        let mut table = CreditTable::new(1, LIMIT);
        let words = words(125);
        let charges =
            std::iter::from_fn(|| table.charge_copy(0, &body(&words), Kind::Eager, None, &config()).ok());
        let charges: Vec<_> = charges.collect();
        let charged = charges.len() as u64 * (1000 + CREDIT_OVERHEAD);
        assert!(charged > LIMIT && charged <= LIMIT + RECORD_MAX as u64 + 1000 + 2 * CREDIT_OVERHEAD);
        for charge in charges {
            let _ = table.release(0, &charge);
        }
        assert!(table.charge_copy(0, &body(&words), Kind::Eager, None, &config()).is_ok());
    }

    #[test]
    fn waiting_messages_are_limited_by_number() {
        let mut table = CreditTable::new(1, LIMIT);
        let config = Config { envelopes: 100 * mpjdev_transport::config::ENVELOPE_LEN, ..config() };
        let charges = std::iter::from_fn(|| table.charge(0, &body(&[]), Some(7), &config).ok());
        let charges: Vec<_> = charges.collect();
        assert_eq!(charges.len() as u32, config.unmatched_limit());
        assert_eq!(charges[0].token(), Some(7));
        assert_eq!(table.release(0, &charges[0]), Released { report: None, ends_backpressure: false });
        assert!(table.charge(0, &body(&[]), Some(8), &config).is_ok());
    }

    #[test]
    fn foreign_source_is_stopped_above_its_credit_and_released_below_it() {
        let mut table = CreditTable::new(1, LIMIT);
        let words = words(125);
        let mut charges = Vec::new();
        loop {
            let (charge, begins) = table.charge_foreign(0, &body(&words), Kind::Eager, None);
            table.check();
            charges.push(charge);
            if begins {
                break;
            }
        }
        assert_eq!(charges.len() as u64, LIMIT / (1000 + CREDIT_OVERHEAD) + 1);
        let (more, begins) = table.charge_foreign(0, &body(&words), Kind::Eager, None);
        assert!(!begins, "it was asked already");
        assert!(!table.release(0, &more).ends_backpressure);
        let ends: Vec<bool> =
            charges.iter().map(|charge| table.release(0, charge).ends_backpressure).collect();
        assert_eq!(ends.iter().position(|ends| *ends), Some(0));
        assert_eq!(ends.iter().filter(|ends| **ends).count(), 1);
        table.check();
    }

    #[test]
    fn unexpected_match_ack_changes_nothing() {
        let mut table = CreditTable::new(3, LIMIT);
        table.note_answered(2);
        table.note_unanswered(2);
        table.note_unanswered(0);
        assert_eq!(table.unanswered().collect::<Vec<_>>(), [0, 2]);
        table.note_answered(2);
        assert_eq!((table.unanswered_by(0), table.unanswered_by(2)), (1, 0));
    }
}
