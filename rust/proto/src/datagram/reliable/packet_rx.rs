//! Received packets: duplicates removed, sequence order restored (5.5).
//!
//! ```text
//!          next                                   right
//!    -------+--------------------------------------+------
//!  received | missing or buffered                   | beyond
//! ```

use std::collections::VecDeque;

use super::super::extension::Sack;
use super::super::layout::SACK_WORDS_MAX;
use super::bitmap::Bitmap;
use super::loss::PACKET_THRESHOLD_MIN;
use super::time::{MICROSECOND, Nanos};
use super::windows::ReceiveWindow;

/// The left edge, and the packets buffered beyond it, with a `T` for each.
#[derive(Debug)]
pub(super) struct PacketRx<T> {
    next: u64,
    window: ReceiveWindow,
    /// Packets from `next` on; the first is present only until it is polled.
    ring: VecDeque<Option<T>>,
    buffered: usize,
    /// The numbers of the ring that are received.
    received: Bitmap,
    /// Consecutive packets buffered since the latest that opened or filled a gap.
    run: u32,
    /// When the largest number was received.
    largest_received_at: Nanos,
    /// Whether a duplicate was received since the last report of one.
    duplicate: bool,
}

/// Packets behind an old gap after which an ack is urgent.
const RUN_MAX: u32 = 8;

/// The position of a packet relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Next in order.
    Next,
    /// Earlier ones are missing.
    Ahead,
    /// Received before.
    Duplicate,
    /// Beyond the window.
    Beyond,
}

impl<T> PacketRx<T> {
    /// Nothing received, with a window of `size` packets.
    pub(super) const fn new(first: u64, size: u16) -> Self {
        let window = ReceiveWindow::new(size, first);
        let received = Bitmap::new(size as usize);
        Self {
            next: first,
            window,
            ring: VecDeque::new(),
            buffered: 0,
            received,
            run: 0,
            largest_received_at: 0,
            duplicate: false,
        }
    }

    /// The left edge.
    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn window(&mut self) -> &mut ReceiveWindow {
        &mut self.window
    }

    /// Whether a packet is missing and a later one is received.
    #[inline]
    pub(super) const fn has_gap(&self) -> bool {
        self.buffered > 0
    }

    /// The slot for the octets of a packet; no two buffered packets share one.
    #[inline]
    pub(super) fn slot(&self, number: u64) -> u16 {
        (number % u64::from(self.window.size().max(1))) as u16
    }

    #[inline]
    pub(super) fn position(&self, number: u64) -> Position {
        if number < self.next {
            return Position::Duplicate;
        }
        if number >= self.window.right() {
            return Position::Beyond;
        }
        match self.ring.get((number - self.next) as usize) {
            Some(Some(_)) => Position::Duplicate,
            _ if number == self.next => Position::Next,
            _ => Position::Ahead,
        }
    }

    /// The next packet in order was received.
    #[inline]
    pub(super) fn accept_next(&mut self, now: Nanos) {
        if self.ring.is_empty() {
            self.largest_received_at = now;
        } else {
            self.ring.pop_front();
        }
        self.advance();
    }

    /// Buffers a packet at the position [`Ahead`](Position::Ahead); returns whether its ack is urgent.
    ///
    /// It is urgent when the packet opens or fills a gap, or is the third behind one. Of later packets every
    /// eighth ack is urgent.
    pub(super) fn buffer(&mut self, now: Nanos, number: u64, content: T) -> bool {
        let place = (number - self.next) as usize;
        let is_behind_latest = self.buffered > 0 && place == self.ring.len();
        self.run = if is_behind_latest { self.run.wrapping_add(1) } else { 0 };
        if self.ring.len() <= place {
            self.ring.resize_with(place + 1, || None);
            self.largest_received_at = now;
        }
        self.ring[place] = Some(content);
        self.buffered += 1;
        self.received.set(number);
        u64::from(self.run) < PACKET_THRESHOLD_MIN || self.run.is_multiple_of(RUN_MAX)
    }

    /// The buffered packet that is next in order, with its number.
    #[inline]
    pub(super) fn poll_buffered(&mut self) -> Option<(u64, T)> {
        if !matches!(self.ring.front(), Some(Some(_))) {
            return None;
        }
        let content = self.ring.pop_front().flatten()?;
        let number = self.next;
        self.buffered -= 1;
        self.received.clear(number);
        self.advance();
        Some((number, content))
    }

    #[inline]
    fn advance(&mut self) {
        self.next += 1;
        self.window.advance(self.next);
    }

    /// A duplicate was received; the next packet reports it.
    #[inline]
    pub(super) const fn note_duplicate(&mut self) {
        self.duplicate = true;
    }

    /// Whether a duplicate was received since [`clear_duplicate`](Self::clear_duplicate).
    #[inline]
    pub(super) const fn has_duplicate(&self) -> bool {
        self.duplicate
    }

    /// The duplicate was reported.
    #[inline]
    pub(super) const fn clear_duplicate(&mut self) {
        self.duplicate = false;
    }

    /// Packets behind the left edge, up to the largest received.
    pub(super) fn reach(&self) -> u64 {
        (self.ring.len() as u64).saturating_sub(1)
    }

    /// The selective ack, in at most `words_max` words.
    pub(super) fn sack(&self, words_max: usize) -> Sack {
        let count =
            (self.reach().div_ceil(u64::BITS.into()) as usize).clamp(1, words_max.min(SACK_WORDS_MAX));
        let mut words = [0; SACK_WORDS_MAX];
        for (first, word) in (self.next + 1..).step_by(u64::BITS as usize).zip(&mut words[..count]) {
            *word = self.received.word(first);
        }
        Sack::new(&words[..count])
    }

    /// The ack delay of the largest number in microseconds. `None` if a packet cannot express it, or if the
    /// ack, which reports on `reach` packets, does not include that number.
    #[inline]
    pub(super) fn delay_us(&self, now: Nanos, reach: u64) -> Option<u16> {
        if self.reach() > reach {
            return None;
        }
        let delay = now.saturating_sub(self.largest_received_at) / MICROSECOND;
        u16::try_from(delay).ok().filter(|delay| *delay < u16::MAX)
    }

    pub(super) fn check(&self) {
        self.window.check(self.next);
        assert!(self.ring.len() as u64 <= self.window.right() - self.next, "{}", self.ring.len());
        assert_eq!(self.ring.iter().flatten().count(), self.buffered);
        assert_eq!(self.received.count(), self.buffered);
        assert!(self.ring.back().is_none_or(Option::is_some), "the largest number is received");
    }
}
