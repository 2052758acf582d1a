//! Match acks of synchronous sends: the numbers of RTS that receives have matched.
//!
//! They travel with the notices, so a rank's match acks precede the notice of its finish. One message per
//! rank is in flight at a time; later matches go in the next one.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::atomic::Ordering;
use std::time::Instant;

use mpjdev_buffer::Slab;
use mpjdev_buffer::octets::{load_word, store_word};
use mpjdev_sys::mpi::{self, Operation};
use mpjdev_transport::wait::{Backoff, WaitControl};

use super::Rank;
use super::memory::Octets;
use super::peers::MATCH_ACKS;
use crate::error::DeviceError;

/// Words before the numbers: the session, and the kind of notice.
const HEAD: usize = 2;
/// Numbers in one message, which is an eager message in every library.
const NUMBERS_MAX: usize = 126;

/// The match acks of one rank.
#[derive(Debug, Default)]
pub(super) struct MatchAcks {
    /// Sends of this rank that wait for a match ack.
    awaited: HashSet<u32>,
    /// Pending match acks of this rank, by world rank.
    pending: BTreeMap<u32, PendingAcks>,
}

#[derive(Debug, Default)]
struct PendingAcks {
    numbers: Vec<u32>,
    in_flight: Option<Operation<Octets>>,
}

impl MatchAcks {
    /// Whether all match acks were sent.
    fn are_sent(&self) -> bool {
        self.pending.is_empty()
    }
}

impl Rank {
    /// Registers a send that waits for the match ack of its RTS number.
    pub(super) fn await_match_ack(&self, number: u32) {
        self.match_acks.lock().awaited.insert(number);
    }

    /// Removes a send that is complete or was abandoned.
    pub(super) fn forget_match_ack(&self, number: u32) {
        self.match_acks.lock().awaited.remove(&number);
    }

    /// Whether a send waits for its match ack.
    pub(super) fn awaits_match_ack(&self, number: u32) -> bool {
        self.match_acks.lock().awaited.contains(&number)
    }

    /// Sends the match ack of a message that a receive has taken. Does not block.
    pub(super) fn acknowledge(&self, source: u32, number: u32) {
        let mut acks = self.match_acks.lock();
        if source == self.rank {
            acks.awaited.remove(&number);
            return;
        }
        acks.pending.entry(source).or_default().numbers.push(number);
        self.flush_match_acks(&mut acks);
    }

    /// Handles the match acks of a rank.
    pub(super) fn handle_match_acks(&self, slab: &Slab, len: usize) {
        let mut acks = self.match_acks.lock();
        for at in HEAD..len / 8 {
            let number = u64::from_le_bytes(load_word(slab.words(), 8 * at));
            acks.awaited.remove(&(number as u32));
        }
    }

    /// Sends pending match acks. Does not block.
    pub(super) fn progress_match_acks(&self) {
        if self.has_pending_match_acks.load(Ordering::Relaxed) {
            self.flush_match_acks(&mut self.match_acks.lock());
        }
    }

    fn flush_match_acks(&self, acks: &mut MatchAcks) {
        acks.pending.retain(|dest, pending| {
            pending.in_flight.take_if(|in_flight| !matches!(in_flight.test(), Ok(None)));
            if pending.in_flight.is_none() && !pending.numbers.is_empty() {
                // A failed send is repeated.
                pending.in_flight = self.send_match_acks(*dest, &mut pending.numbers).ok();
                pending.in_flight.take_if(|in_flight| !matches!(in_flight.test(), Ok(None)));
            }
            pending.in_flight.is_some() || !pending.numbers.is_empty()
        });
        self.has_pending_match_acks.store(!acks.are_sent(), Ordering::Relaxed);
    }

    fn send_match_acks(&self, dest: u32, numbers: &mut Vec<u32>) -> Result<Operation<Octets>, DeviceError> {
        let count = numbers.len().min(NUMBERS_MAX);
        let len = 8 * (HEAD + count);
        let slab = self.source.take(len)?;
        let head = [self.session.number, MATCH_ACKS];
        let words = head.into_iter().chain(numbers[..count].iter().map(|number| u64::from(*number)));
        words.enumerate().for_each(|(at, word)| store_word(slab.words(), 8 * at, word.to_le_bytes()));
        let to = mpi::To { dest, tag: 0, comm: self.session.all, mode: mpi::Mode::Standard };
        let sent = Operation::send(self.mpi, Octets(slab), len, to)?;
        let later = numbers.split_off(count);
        drop(mem::replace(numbers, later));
        Ok(sent)
    }

    /// Waits a limited time until all match acks were sent.
    pub(super) fn await_match_acks_sent(
        &self,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let end = Instant::now() + self.config.finish_timeout;
        let sent = self.block(Some(end), Backoff::new(&self.config), wait_control, || {
            self.progress_match_acks();
            Ok((!self.has_pending_match_acks.load(Ordering::Relaxed)).then_some(()))
        });
        match sent {
            // A rank that receives none for this time gets no match acks.
            Err(DeviceError::TimedOut { .. }) => Ok(()),
            sent => sent,
        }
    }
}
