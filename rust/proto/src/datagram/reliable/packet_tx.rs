//! Packets that are sent and not acked: the state of each, loss, retransmission (5.3, 5.5).
//!
//! ```text
//!         una                                       next
//!    ------+-----------------------------------------+------
//!    acked | in flight, sacked, unreported, or lost  | free
//! ```
//!
//! A packet keeps its sequence number when it is retransmitted. So each transmission has a number as well,
//! which stays local and orders transmissions in time. An ack of a retransmitted packet counts for the
//! retransmission, unless it arrives sooner than the shortest round trip.

use std::collections::{BTreeSet, VecDeque};

use super::super::layout::WINDOW_MAX;
use super::bitmap::Bitmap;
use super::time::{Nanos, earlier};

/// The packets between the left and the right edge, with a `T` for each.
#[derive(Debug)]
pub(super) struct PacketTx<T> {
    una: u64,
    packets: VecDeque<SentPacket<T>>,
    /// Numbers that count as lost and are not retransmitted yet.
    lost: BTreeSet<u64>,
    /// Packets acked out of order, and their count.
    sacked: Bitmap,
    sacked_count: usize,
    /// Packets in the state [`State::Unreported`].
    unreported_count: usize,
    /// The number of the next transmission.
    next_tx: u64,
    /// The largest transmission that is acked.
    largest_acked_tx: u64,
    /// The first number that the latest ack does not report on.
    reported_end: u64,
    /// Whether the latest ack reports the left edge as missing.
    is_edge_missing: bool,
    /// When the left edge moved or was retransmitted: the PTO timer counts from there.
    edge_since: Nanos,
    /// When the next packet counts as lost unless it is acked before.
    loss_time: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket<T> {
    content: T,
    transmission: u64,
    sent_at: Nanos,
    is_retransmission: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Acked,
    Lost,
    /// Acked or lost: a later transmission is acked, and acks do not report this far.
    Unreported,
}

/// An ack, with numbers of 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ack<'a> {
    /// All numbers before it are received.
    pub(super) ack: u64,
    /// Bit k of word w: ack + 1 + 64 w + k is received.
    pub(super) sack: &'a [u64],
    /// The first number that it does not report on.
    pub(super) reported_end: u64,
    /// Whether `ack` itself is missing although a later one is received.
    pub(super) is_missing: bool,
}

impl Ack<'_> {
    /// The largest number that it reports as received.
    fn highest(&self) -> u64 {
        match self.sack.iter().rposition(|word| *word != 0) {
            None => self.ack.wrapping_sub(1),
            Some(last) => self.ack + 64 * (last as u64 + 1) - u64::from(self.sack[last].leading_zeros()),
        }
    }
}

/// The effect of an ack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Packets newly acked.
    pub(super) count: u32,
    /// Of them, those whose latest transmission was `epoch` or later.
    pub(super) since_epoch: u32,
    /// The round trip of the largest number, if it is newly acked and was sent once.
    pub(super) sample: Option<Nanos>,
}

impl<T: Copy> PacketTx<T> {
    pub(super) fn new(first: u64) -> Self {
        Self {
            una: first,
            packets: VecDeque::new(),
            lost: BTreeSet::new(),
            sacked: Bitmap::new(WINDOW_MAX as usize),
            sacked_count: 0,
            unreported_count: 0,
            next_tx: 1,
            largest_acked_tx: 0,
            reported_end: first,
            is_edge_missing: false,
            edge_since: 0,
            loss_time: None,
        }
    }

    /// The oldest number that is not acked: the left edge.
    #[inline]
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// The next number: the right edge.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.una + self.packets.len() as u64
    }

    /// Whether all packets are acked.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Packets in flight, as far as is known.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.packets.len() - self.sacked_count - self.unreported_count - self.lost.len()
    }

    /// The largest transmission that is acked.
    #[inline]
    pub(super) const fn largest_acked_tx(&self) -> u64 {
        self.largest_acked_tx
    }

    /// The number of the next transmission.
    #[inline]
    pub(super) const fn next_tx(&self) -> u64 {
        self.next_tx
    }

    /// When the left edge moved or was retransmitted, if there is one: the PTO timer counts from there.
    #[inline]
    pub(super) fn edge_since(&self) -> Option<Nanos> {
        (!self.packets.is_empty()).then_some(self.edge_since)
    }

    /// Restarts the PTO timer.
    pub(super) const fn restart_timer(&mut self, now: Nanos) {
        self.edge_since = now;
    }

    /// When [`detect`](Self::detect) can find another loss.
    #[inline]
    pub(super) const fn loss_time(&self) -> Option<Nanos> {
        self.loss_time
    }

    /// The first lost packet.
    #[inline]
    pub(super) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// Whether a packet with such contents may be retransmitted.
    pub(super) fn contains(&self, is_such: impl Fn(&T) -> bool) -> bool {
        self.packets.iter().any(|packet| is_such(&packet.content))
    }

    /// Sends a new packet; returns its number.
    #[inline]
    pub(super) fn push(&mut self, now: Nanos, content: T) -> u64 {
        if self.packets.is_empty() {
            self.edge_since = now;
        }
        let number = self.next();
        self.packets.push_back(SentPacket {
            content,
            transmission: self.next_tx,
            sent_at: now,
            is_retransmission: false,
            state: State::InFlight,
        });
        self.next_tx += 1;
        number
    }

    /// Retransmits a packet. Returns its contents; `None` if it was acked meanwhile.
    pub(super) fn retransmit(&mut self, now: Nanos, number: u64) -> Option<T> {
        let index = usize::try_from(number.checked_sub(self.una)?).ok()?;
        let packet = self.packets.get_mut(index)?;
        match packet.state {
            State::Acked => return None,
            State::Unreported => self.unreported_count -= 1,
            State::InFlight | State::Lost => {}
        }
        packet.state = State::InFlight;
        packet.is_retransmission = true;
        packet.transmission = self.next_tx;
        packet.sent_at = now;
        let content = packet.content;
        self.next_tx += 1;
        self.lost.remove(&number);
        self.edge_since = now;
        Some(content)
    }

    /// The PTO probes: the left edge, and also the last packet if an earlier probe was not acked.
    pub(super) fn probes(&self, is_repeated: bool) -> [Option<u64>; 2] {
        let is_unacked = |index: &usize| self.packets[*index].state != State::Acked;
        let first = (0..self.packets.len()).find(is_unacked);
        let last = (0..self.packets.len()).rev().find(is_unacked).filter(|last| Some(*last) != first);
        let number = |index: usize| self.una + index as u64;
        [first.map(number), last.filter(|_| is_repeated).map(number)]
    }

    /// An ack was received. The packets before the new left edge are given to `release`, in order. `None` if
    /// it acks a number that was never sent.
    pub(super) fn handle(
        &mut self,
        now: Nanos,
        ack: &Ack<'_>,
        min_rtt: Option<Nanos>,
        epoch: u64,
        release: impl FnMut(&T),
    ) -> Option<Progress> {
        if ack.ack > self.next() {
            return None;
        }
        if ack.ack < self.una {
            return Some(Progress::default());
        }
        let is_moving = ack.ack > self.una;
        let mut newly_acked = NewlyAcked {
            now,
            min_rtt,
            epoch,
            highest: ack.highest(),
            progress: Progress::default(),
            largest_acked_tx: self.largest_acked_tx,
        };
        self.release_before(ack.ack, &mut newly_acked, release);
        self.reopen_edge();
        self.mark_sacked(ack.sack, &mut newly_acked);
        let NewlyAcked { progress, largest_acked_tx, .. } = newly_acked;
        self.largest_acked_tx = largest_acked_tx;
        if is_moving || progress.count > 0 {
            self.edge_since = now;
        }
        self.reported_end = ack.reported_end;
        self.is_edge_missing = ack.is_missing;
        Some(progress)
    }

    /// Moves the left edge to `ack`.
    #[inline]
    fn release_before(&mut self, ack: u64, newly_acked: &mut NewlyAcked, mut release: impl FnMut(&T)) {
        while self.una < ack {
            let Some(packet) = self.packets.pop_front() else { break };
            match packet.state {
                State::Acked => {
                    self.sacked_count -= 1;
                    self.sacked.clear(self.una);
                }
                State::InFlight => newly_acked.add(self.una, &packet),
                State::Unreported => {
                    self.unreported_count -= 1;
                    newly_acked.add(self.una, &packet);
                }
                State::Lost => {
                    self.lost.remove(&self.una);
                    newly_acked.add(self.una, &packet);
                }
            }
            release(&packet.content);
            self.una += 1;
        }
    }

    /// Puts the left edge back in flight if an earlier ack reported it as received: the latest ack reports it
    /// as missing, and else it would never be retransmitted.
    #[inline]
    fn reopen_edge(&mut self) {
        if let Some(edge) = self.packets.front_mut().filter(|edge| edge.state == State::Acked) {
            edge.state = State::InFlight;
            self.sacked_count -= 1;
            self.sacked.clear(self.una);
        }
    }

    /// Marks the packets behind the left edge that a selective ack reports.
    #[inline]
    fn mark_sacked(&mut self, sack: &[u64], newly_acked: &mut NewlyAcked) {
        for (first, word) in (self.una + 1..).step_by(u64::BITS as usize).zip(sack) {
            // Earlier acks have reported the others.
            let mut word = word & !self.sacked.word(first);
            while word != 0 {
                let number = first + u64::from(word.trailing_zeros());
                word &= word - 1;
                let Some(packet) = self.packets.get_mut((number - self.una) as usize) else { break };
                match packet.state {
                    State::Lost => drop(self.lost.remove(&number)),
                    State::Unreported => self.unreported_count -= 1,
                    State::InFlight | State::Acked => {}
                }
                newly_acked.add(number, packet);
                packet.state = State::Acked;
                self.sacked_count += 1;
                self.sacked.set(number);
            }
        }
    }

    /// Declares packets lost; the latest transmission among them, if there are any (5.5).
    pub(super) fn detect(&mut self, now: Nanos, packet_threshold: u64, time_threshold: Nanos) -> Option<u64> {
        self.loss_time = None;
        let front = self.packets.front_mut()?;
        // It was retransmitted and a reply is overdue. The packets behind it may be more than an ack can
        // report.
        if std::mem::take(&mut self.is_edge_missing)
            && front.is_retransmission
            && front.state == State::InFlight
            && front.sent_at.saturating_add(time_threshold) <= now
        {
            front.state = State::Lost;
            self.lost.insert(self.una);
            return Some(front.transmission);
        }
        // All packets behind it were sent later, and none of them is acked.
        if self.sacked_count == 0 && !front.is_retransmission && front.transmission > self.largest_acked_tx {
            return None;
        }
        let reach = usize::try_from(self.reported_end.saturating_sub(self.una)).unwrap_or(usize::MAX);
        let mut latest = None;
        for (index, packet) in self.packets.iter_mut().enumerate() {
            if index >= reach && packet.transmission > self.largest_acked_tx && !packet.is_retransmission {
                // The packets behind it were sent later, except for retransmissions.
                break;
            }
            let is_open = matches!(packet.state, State::InFlight | State::Unreported);
            if !is_open || packet.transmission >= self.largest_acked_tx {
                continue;
            }
            let due = packet.sent_at.saturating_add(time_threshold);
            let is_overtaken = packet.transmission + packet_threshold <= self.largest_acked_tx || due <= now;
            if index >= reach {
                if is_overtaken && packet.state == State::InFlight {
                    packet.state = State::Unreported;
                    self.unreported_count += 1;
                }
            } else if is_overtaken {
                self.unreported_count -= usize::from(packet.state == State::Unreported);
                packet.state = State::Lost;
                self.lost.insert(self.una + index as u64);
                latest = latest.max(Some(packet.transmission));
            } else {
                self.loss_time = earlier(self.loss_time, Some(due));
            }
        }
        latest
    }

    pub(super) fn check(&self) {
        let count = |state: State| self.packets.iter().filter(|packet| packet.state == state).count();
        let counts = [State::Acked, State::Unreported, State::Lost].map(count);
        assert_eq!(counts, [self.sacked_count, self.unreported_count, self.lost.len()]);
        assert_eq!(self.sacked.count(), self.sacked_count);
        for number in &self.lost {
            let index = (number - self.una) as usize;
            assert_eq!(self.packets[index].state, State::Lost, "{number}");
        }
        let transmissions = self.packets.iter().map(|packet| packet.transmission);
        assert!(transmissions.max().is_none_or(|latest| latest < self.next_tx));
        assert!(self.largest_acked_tx < self.next_tx);
        assert!(
            self.packets.front().is_none_or(|edge| edge.state != State::Acked),
            "the left edge is acked and would never be retransmitted"
        );
    }
}

/// Collects the packets that an ack acks first.
struct NewlyAcked {
    now: Nanos,
    min_rtt: Option<Nanos>,
    epoch: u64,
    /// The largest number that the ack reports as received.
    highest: u64,
    progress: Progress,
    largest_acked_tx: u64,
}

impl NewlyAcked {
    #[inline]
    fn add<T>(&mut self, number: u64, packet: &SentPacket<T>) {
        let elapsed = self.now.saturating_sub(packet.sent_at);
        self.progress.count += 1;
        self.progress.since_epoch += u32::from(packet.transmission >= self.epoch);
        if !packet.is_retransmission || self.min_rtt.is_none_or(|min| elapsed >= min) {
            self.largest_acked_tx = self.largest_acked_tx.max(packet.transmission);
        }
        if number == self.highest && !packet.is_retransmission {
            self.progress.sample = Some(elapsed);
        }
    }
}
