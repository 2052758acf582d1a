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
use super::peers::ANSWERS;
use crate::error::DeviceError;

/// Words before the numbers: the session, and the kind of notice.
const HEAD: usize = 2;
/// Numbers in one message, which is an eager message in every library.
const NUMBERS_MAX: usize = 126;

/// The match acks of one rank.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Sends of this rank that wait for a match ack.
    awaited: HashSet<u32>,
    /// Pending match acks of this rank, by world rank.
    owed: BTreeMap<u32, Owed>,
}

#[derive(Debug, Default)]
struct Owed {
    numbers: Vec<u32>,
    leaving: Option<Operation<Octets>>,
}

impl Answers {
    /// Whether all match acks were sent.
    fn have_left(&self) -> bool {
        self.owed.is_empty()
    }
}

impl Rank {
    /// Registers a send that waits for the match ack of its RTS number.
    pub(super) fn await_answer(&self, number: u32) {
        self.answers.lock().awaited.insert(number);
    }

    /// Removes a send that is complete or was given up.
    pub(super) fn forget_answer(&self, number: u32) {
        self.answers.lock().awaited.remove(&number);
    }

    /// Whether a send waits for its match ack.
    pub(super) fn awaits_answer(&self, number: u32) -> bool {
        self.answers.lock().awaited.contains(&number)
    }

    /// Sends the match ack of a message that a receive has taken. Does not block.
    pub(super) fn answer(&self, source: u32, number: u32) {
        let mut answers = self.answers.lock();
        if source == self.rank {
            answers.awaited.remove(&number);
            return;
        }
        answers.owed.entry(source).or_default().numbers.push(number);
        self.let_answers_leave(&mut answers);
    }

    /// Handles the match acks of a rank.
    pub(super) fn hear_answers(&self, slab: &Slab, len: usize) {
        let mut answers = self.answers.lock();
        for at in HEAD..len / 8 {
            let number = u64::from_le_bytes(load_word(slab.words(), 8 * at));
            answers.awaited.remove(&(number as u32));
        }
    }

    /// Sends pending match acks. Does not block.
    pub(super) fn tend_answers(&self) {
        if self.owes_answers.load(Ordering::Relaxed) {
            self.let_answers_leave(&mut self.answers.lock());
        }
    }

    fn let_answers_leave(&self, answers: &mut Answers) {
        answers.owed.retain(|dest, owed| {
            owed.leaving.take_if(|leaving| !matches!(leaving.test(), Ok(None)));
            if owed.leaving.is_none() && !owed.numbers.is_empty() {
                // A failed send is tried again.
                owed.leaving = self.send_answers(*dest, &mut owed.numbers).ok();
                owed.leaving.take_if(|leaving| !matches!(leaving.test(), Ok(None)));
            }
            owed.leaving.is_some() || !owed.numbers.is_empty()
        });
        self.owes_answers.store(!answers.have_left(), Ordering::Relaxed);
    }

    fn send_answers(&self, dest: u32, numbers: &mut Vec<u32>) -> Result<Operation<Octets>, DeviceError> {
        let count = numbers.len().min(NUMBERS_MAX);
        let len = 8 * (HEAD + count);
        let slab = self.source.take(len)?;
        let head = [self.round.number, ANSWERS];
        let words = head.into_iter().chain(numbers[..count].iter().map(|number| u64::from(*number)));
        words.enumerate().for_each(|(at, word)| store_word(slab.words(), 8 * at, word.to_le_bytes()));
        let to = mpi::To { dest, tag: 0, comm: self.round.all, mode: mpi::Mode::Standard };
        let sent = Operation::send(self.mpi, Octets(slab), len, to)?;
        let later = numbers.split_off(count);
        drop(mem::replace(numbers, later));
        Ok(sent)
    }

    /// Waits a limited time until all match acks were sent.
    pub(super) fn await_answers_left(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let end = Instant::now() + self.config.finish_patience;
        let left = self.block(Some(end), Backoff::new(&self.config), wait_control, || {
            self.tend_answers();
            Ok((!self.owes_answers.load(Ordering::Relaxed)).then_some(()))
        });
        match left {
            // A rank that receives none for this time gets no match acks.
            Err(DeviceError::TimedOut { .. }) => Ok(()),
            left => left,
        }
    }
}
