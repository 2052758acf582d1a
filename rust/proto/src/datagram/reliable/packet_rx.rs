//! Packets that come: each once, in the order of their numbers, whatever the network does (5.5).
//!
//! ```text
//!          next                                   right
//!    -------+--------------------------------------+------
//!      seen | missing, or kept until it is its turn | beyond
//! ```

use std::collections::VecDeque;

use super::super::extension::Sack;
use super::super::layout::SACK_WORDS_MAX;
use super::bitmap::Bitmap;
use super::loss::PACKET_THRESHOLD_MIN;
use super::time::{MICROSECOND, Nanos};
use super::windows::ReceiveWindow;

/// The left edge, and what has come beyond it, with some `T` for each number.
#[derive(Debug)]
pub(super) struct PacketRx<T> {
    next: u64,
    window: ReceiveWindow,
    /// From `next` on; the first is there only while it waits for its turn.
    ring: VecDeque<Option<T>>,
    buffered: usize,
    /// Those of the ring that have come.
    received: Bitmap,
    /// Packets kept one behind the other since the latest that opened or filled a gap.
    run: u32,
    /// When the latest number of all that have come did so.
    largest_received_at: Nanos,
    /// Whether something came twice since that was said last.
    duplicate: bool,
}

/// Packets behind an old gap after which there is an acknowledgment.
const RUN_MAX: u32 = 8;

/// What a packet is, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// It is its turn.
    Next,
    /// Earlier ones are missing.
    Ahead,
    /// It has come before.
    Duplicate,
    /// It was not permitted.
    Beyond,
}

impl<T> PacketRx<T> {
    /// Nothing has come; `size` packets may.
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

    /// Whether a packet is missing and a later one has come.
    #[inline]
    pub(super) const fn has_gap(&self) -> bool {
        self.buffered > 0
    }

    /// Where the octets of a packet are kept: unlike for all that are kept at the same time.
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

    /// The packet whose turn it is has come.
    #[inline]
    pub(super) fn accept_next(&mut self, now: Nanos) {
        if self.ring.is_empty() {
            self.largest_received_at = now;
        } else {
            self.ring.pop_front();
        }
        self.advance();
    }

    /// A packet is to be kept, of the place [`Ahead`](Position::Ahead).
    ///
    /// Whether its acknowledgment is urgent: it has opened or filled a gap, or it lets the sender count three packets behind
    /// one. Of those that follow each eighth is.
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

    /// The kept packet whose turn it is, with its number.
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

    /// A packet came twice, and the peer has to know.
    #[inline]
    pub(super) const fn note_duplicate(&mut self) {
        self.duplicate = true;
    }

    /// Whether one did, since [`clear_duplicate`](Self::clear_duplicate).
    #[inline]
    pub(super) const fn has_duplicate(&self) -> bool {
        self.duplicate
    }

    /// It was said.
    #[inline]
    pub(super) const fn clear_duplicate(&mut self) {
        self.duplicate = false;
    }

    /// How many packets behind the left edge's there are, up to the latest that has come.
    pub(super) fn reach(&self) -> u64 {
        (self.ring.len() as u64).saturating_sub(1)
    }

    /// Which of them have come, as far as so many words tell.
    pub(super) fn sack(&self, words_max: usize) -> Sack {
        let count =
            (self.reach().div_ceil(u64::BITS.into()) as usize).clamp(1, words_max.min(SACK_WORDS_MAX));
        let mut words = [0; SACK_WORDS_MAX];
        for (first, word) in (self.next + 1..).step_by(u64::BITS as usize).zip(&mut words[..count]) {
            *word = self.received.word(first);
        }
        Sack::new(&words[..count])
    }

    /// How long the latest number has waited for its acknowledgment, in microseconds; none if that is more than a packet
    /// can say, or if the acknowledgment, which tells of `reach` packets, does not name that one.
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
        assert!(self.ring.back().is_none_or(Option::is_some), "the latest number has come");
    }
}
