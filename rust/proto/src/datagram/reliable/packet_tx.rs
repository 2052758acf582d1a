//! Packets that have left and are not acknowledged: what is known of each, which are lost, which leave again (5.3, 5.5).
//!
//! ```text
//!         una                                       next
//!    ------+-----------------------------------------+------
//!     come | under way, come out of order, or lost   | free
//! ```
//!
//! A packet keeps its number when it leaves again, so each transmission has a number of its own as well, which nobody
//! else sees: what left later is told by that. An acknowledgment of a packet that left twice is taken for one of the
//! second transmission unless it comes sooner than any answer can.

use std::collections::{BTreeSet, VecDeque};

use super::super::layout::WINDOW_MAX;
use super::bitmap::Bitmap;
use super::time::{Nanos, earlier};

/// What is under way, with some `T` for each number.
#[derive(Debug)]
pub(super) struct Sender<T> {
    una: u64,
    records: VecDeque<Record<T>>,
    /// Numbers that count as lost and have not left again.
    lost: BTreeSet<u64>,
    /// Packets that have come out of order, and how many those are.
    came: Bitmap,
    sacked: usize,
    /// Packets that are no longer under way, but which of both no acknowledgment has said yet.
    gone: usize,
    /// Of the next packet that leaves.
    transmission: u64,
    /// The latest transmission that has come.
    come: u64,
    /// The first number of which the latest acknowledgment says nothing.
    unreported: u64,
    /// Whether it says that the left edge is missing.
    is_edge_missing: bool,
    /// When the left edge moved, or something about it happened.
    edge_since: Nanos,
    /// When the next packet is lost unless it has come.
    loss_at: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct Record<T> {
    content: T,
    transmission: u64,
    sent_at: Nanos,
    is_again: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UnderWay,
    Come,
    Lost,
    /// Come or lost: what left later has come, and acknowledgments do not reach this far.
    Gone,
}

/// What an acknowledgment says, numbers in full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report<'a> {
    /// Everything before it has come.
    pub(super) ack: u64,
    /// Bit k of word w: ack + 1 + 64 w + k has come.
    pub(super) sack: &'a [u64],
    /// The first number of which nothing is said.
    pub(super) unreported: u64,
    /// Whether `ack` itself is missing though a later one has come.
    pub(super) is_missing: bool,
}

/// What has come of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Packets of which this is the first news.
    pub(super) count: u32,
    /// Of them, those whose latest transmission was `epoch` or later.
    pub(super) since_epoch: u32,
    /// How long the latest of all packets that have come took, if it left once and this is the first news of it.
    pub(super) sample: Option<Nanos>,
}

impl<T: Copy> Sender<T> {
    pub(super) fn new(first: u64) -> Self {
        Self {
            una: first,
            records: VecDeque::new(),
            lost: BTreeSet::new(),
            came: Bitmap::new(WINDOW_MAX as usize),
            sacked: 0,
            gone: 0,
            transmission: 1,
            come: 0,
            unreported: first,
            is_edge_missing: false,
            edge_since: 0,
            loss_at: None,
        }
    }

    /// The oldest number that is not acknowledged: the left edge.
    #[inline]
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// The next number: the right edge.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.una + self.records.len() as u64
    }

    /// Whether everything has come.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Packets that are under way, as far as is known.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.records.len() - self.sacked - self.gone - self.lost.len()
    }

    /// The latest transmission that has come.
    #[inline]
    pub(super) const fn latest_come(&self) -> u64 {
        self.come
    }

    /// The number of the next transmission.
    #[inline]
    pub(super) const fn next_transmission(&self) -> u64 {
        self.transmission
    }

    /// When the left edge moved, or was asked for, if there is one: the timer counts from there.
    #[inline]
    pub(super) fn edge_since(&self) -> Option<Nanos> {
        (!self.records.is_empty()).then_some(self.edge_since)
    }

    /// The timer counts from now on.
    pub(super) const fn wait_anew(&mut self, now: Nanos) {
        self.edge_since = now;
    }

    /// When [`detect`](Self::detect) may find something that it has not found yet.
    #[inline]
    pub(super) const fn loss_at(&self) -> Option<Nanos> {
        self.loss_at
    }

    /// The first hole that is to be filled.
    #[inline]
    pub(super) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// Whether a packet with such contents may leave again.
    pub(super) fn holds(&self, is_such: impl Fn(&T) -> bool) -> bool {
        self.records.iter().any(|record| is_such(&record.content))
    }

    /// A new packet leaves; its number.
    #[inline]
    pub(super) fn push(&mut self, now: Nanos, content: T) -> u64 {
        if self.records.is_empty() {
            self.edge_since = now;
        }
        let number = self.next();
        self.records.push_back(Record {
            content,
            transmission: self.transmission,
            sent_at: now,
            is_again: false,
            state: State::UnderWay,
        });
        self.transmission += 1;
        number
    }

    /// A packet leaves again; what it was. None if it has come meanwhile.
    pub(super) fn push_again(&mut self, now: Nanos, number: u64) -> Option<T> {
        let place = usize::try_from(number.checked_sub(self.una)?).ok()?;
        let record = self.records.get_mut(place)?;
        match record.state {
            State::Come => return None,
            State::Gone => self.gone -= 1,
            State::UnderWay | State::Lost => {}
        }
        record.state = State::UnderWay;
        record.is_again = true;
        record.transmission = self.transmission;
        record.sent_at = now;
        let content = record.content;
        self.transmission += 1;
        self.lost.remove(&number);
        self.edge_since = now;
        Some(content)
    }

    /// What the timer asks about: the left edge, and the last packet as well if it has been in vain before.
    pub(super) fn questions(&self, is_repeated: bool) -> [Option<u64>; 2] {
        let has_not_come = |place: &usize| self.records[*place].state != State::Come;
        let first = (0..self.records.len()).find(has_not_come);
        let last = (0..self.records.len()).rev().find(has_not_come).filter(|last| Some(*last) != first);
        let number = |place: usize| self.una + place as u64;
        [first.map(number), last.filter(|_| is_repeated).map(number)]
    }

    /// An acknowledgment has come: what it acknowledges for good is given to `release`, in order. None if it
    /// acknowledges what has never left.
    pub(super) fn handle(
        &mut self,
        now: Nanos,
        report: &Report<'_>,
        min_rtt: Option<Nanos>,
        epoch: u64,
        mut release: impl FnMut(&T),
    ) -> Option<Progress> {
        if report.ack > self.next() {
            return None;
        }
        let mut progress = Progress::default();
        if report.ack < self.una {
            return Some(progress);
        }
        let highest = match report.sack.iter().rposition(|word| *word != 0) {
            None => report.ack.wrapping_sub(1),
            Some(last) => report.ack + 64 * (last as u64 + 1) - u64::from(report.sack[last].leading_zeros()),
        };
        let mut news = News { now, min_rtt, epoch, highest, progress: &mut progress, come: self.come };
        let is_moving = report.ack > self.una;
        while self.una < report.ack {
            let Some(record) = self.records.pop_front() else { break };
            match record.state {
                State::Come => {
                    self.sacked -= 1;
                    self.came.clear(self.una);
                }
                State::UnderWay => news.add(self.una, &record),
                State::Gone => {
                    self.gone -= 1;
                    news.add(self.una, &record);
                }
                State::Lost => {
                    self.lost.remove(&self.una);
                    news.add(self.una, &record);
                }
            }
            release(&record.content);
            self.una += 1;
        }
        // The number that an acknowledgment names is missing, whatever an earlier one said of it, or nobody would ask for it again.
        if let Some(edge) = self.records.front_mut().filter(|edge| edge.state == State::Come) {
            edge.state = State::UnderWay;
            self.sacked -= 1;
            self.came.clear(self.una);
        }
        for (first, word) in (self.una + 1..).step_by(u64::BITS as usize).zip(report.sack) {
            // Those that earlier acknowledgments have named are no news.
            let mut word = word & !self.came.word(first);
            while word != 0 {
                let number = first + u64::from(word.trailing_zeros());
                word &= word - 1;
                let Some(record) = self.records.get_mut((number - self.una) as usize) else { break };
                match record.state {
                    State::Lost => drop(self.lost.remove(&number)),
                    State::Gone => self.gone -= 1,
                    State::UnderWay | State::Come => {}
                }
                news.add(number, record);
                record.state = State::Come;
                self.sacked += 1;
                self.came.set(number);
            }
        }
        self.come = news.come;
        if is_moving || progress.count > 0 {
            self.edge_since = now;
        }
        self.unreported = report.unreported;
        self.is_edge_missing = report.is_missing;
        Some(progress)
    }

    /// Finds what is lost by now: the latest transmission that counts as lost, if any does (5.5).
    pub(super) fn detect(&mut self, now: Nanos, packet_threshold: u64, time_threshold: Nanos) -> Option<u64> {
        self.loss_at = None;
        let front = self.records.front_mut()?;
        // It left again, and an answer to that would have come: what left behind it may be more than can be reported.
        if std::mem::take(&mut self.is_edge_missing)
            && front.is_again
            && front.state == State::UnderWay
            && front.sent_at.saturating_add(time_threshold) <= now
        {
            front.state = State::Lost;
            self.lost.insert(self.una);
            return Some(front.transmission);
        }
        // All behind it left later, and nothing of that has come.
        if self.sacked == 0 && !front.is_again && front.transmission > self.come {
            return None;
        }
        let reach = usize::try_from(self.unreported.saturating_sub(self.una)).unwrap_or(usize::MAX);
        let mut latest = None;
        for (place, record) in self.records.iter_mut().enumerate() {
            if place >= reach && record.transmission > self.come && !record.is_again {
                // What is behind it left later, but for what left again.
                break;
            }
            let is_open = matches!(record.state, State::UnderWay | State::Gone);
            if !is_open || record.transmission >= self.come {
                continue;
            }
            let due = record.sent_at.saturating_add(time_threshold);
            let is_overtaken = record.transmission + packet_threshold <= self.come || due <= now;
            if place >= reach {
                if is_overtaken && record.state == State::UnderWay {
                    record.state = State::Gone;
                    self.gone += 1;
                }
            } else if is_overtaken {
                self.gone -= usize::from(record.state == State::Gone);
                record.state = State::Lost;
                self.lost.insert(self.una + place as u64);
                latest = latest.max(Some(record.transmission));
            } else {
                self.loss_at = earlier(self.loss_at, Some(due));
            }
        }
        latest
    }

    pub(super) fn check(&self) {
        let count = |state: State| self.records.iter().filter(|record| record.state == state).count();
        let counts = [State::Come, State::Gone, State::Lost].map(count);
        assert_eq!(counts, [self.sacked, self.gone, self.lost.len()]);
        assert_eq!(self.came.count(), self.sacked);
        for number in &self.lost {
            let place = (number - self.una) as usize;
            assert_eq!(self.records[place].state, State::Lost, "{number}");
        }
        let transmissions = self.records.iter().map(|record| record.transmission);
        assert!(transmissions.max().is_none_or(|latest| latest < self.transmission));
        assert!(self.come < self.transmission);
        assert!(
            self.records.front().is_none_or(|edge| edge.state != State::Come),
            "nobody asks for the left edge"
        );
    }
}

/// Collects what an acknowledgment is the first news of.
struct News<'a> {
    now: Nanos,
    min_rtt: Option<Nanos>,
    epoch: u64,
    /// The latest number that it names.
    highest: u64,
    progress: &'a mut Progress,
    come: u64,
}

impl News<'_> {
    #[inline]
    fn add<T>(&mut self, number: u64, record: &Record<T>) {
        let elapsed = self.now.saturating_sub(record.sent_at);
        self.progress.count += 1;
        self.progress.since_epoch += u32::from(record.transmission >= self.epoch);
        if !record.is_again || self.min_rtt.is_none_or(|min| elapsed >= min) {
            self.come = self.come.max(record.transmission);
        }
        if number == self.highest && !record.is_again {
            self.progress.sample = Some(elapsed);
        }
    }
}
