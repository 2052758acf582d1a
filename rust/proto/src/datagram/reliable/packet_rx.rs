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
pub(super) struct Receiver<T> {
    next: u64,
    window: ReceiveWindow,
    /// From `next` on; the first is there only while it waits for its turn.
    ring: VecDeque<Option<T>>,
    kept: usize,
    /// Those of the ring that have come.
    came: Bitmap,
    /// Packets kept one behind the other since the latest that opened or filled a gap.
    run: u32,
    /// When the latest number of all that have come did so.
    latest_at: Nanos,
    /// Whether something came twice since that was said last.
    twice: bool,
}

/// Packets behind an old gap after which there is an acknowledgment.
const RUN_MAX: u32 = 8;

/// What a packet is, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is its turn.
    Next,
    /// Earlier ones are missing.
    Ahead,
    /// It has come before.
    Twice,
    /// It was not permitted.
    Beyond,
}

impl<T> Receiver<T> {
    /// Nothing has come; `size` packets may.
    pub(super) const fn new(first: u64, size: u16) -> Self {
        let window = ReceiveWindow::new(size, first);
        let came = Bitmap::new(size as usize);
        Self { next: first, window, ring: VecDeque::new(), kept: 0, came, run: 0, latest_at: 0, twice: false }
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
        self.kept > 0
    }

    /// Where the octets of a packet are kept: unlike for all that are kept at the same time.
    #[inline]
    pub(super) fn slot(&self, number: u64) -> u16 {
        (number % u64::from(self.window.size().max(1))) as u16
    }

    #[inline]
    pub(super) fn place(&self, number: u64) -> Place {
        if number < self.next {
            return Place::Twice;
        }
        if number >= self.window.right() {
            return Place::Beyond;
        }
        match self.ring.get((number - self.next) as usize) {
            Some(Some(_)) => Place::Twice,
            _ if number == self.next => Place::Next,
            _ => Place::Ahead,
        }
    }

    /// The packet whose turn it is has come.
    #[inline]
    pub(super) fn take_next(&mut self, now: Nanos) {
        if self.ring.is_empty() {
            self.latest_at = now;
        } else {
            self.ring.pop_front();
        }
        self.moved();
    }

    /// A packet is to be kept, of the place [`Ahead`](Place::Ahead).
    ///
    /// Whether its acknowledgment is urgent: it has opened or filled a gap, or it lets the sender count three packets behind
    /// one. Of those that follow each eighth is.
    pub(super) fn keep(&mut self, now: Nanos, number: u64, content: T) -> bool {
        let place = (number - self.next) as usize;
        let is_behind_latest = self.kept > 0 && place == self.ring.len();
        self.run = if is_behind_latest { self.run.wrapping_add(1) } else { 0 };
        if self.ring.len() <= place {
            self.ring.resize_with(place + 1, || None);
            self.latest_at = now;
        }
        self.ring[place] = Some(content);
        self.kept += 1;
        self.came.set(number);
        u64::from(self.run) < PACKET_THRESHOLD_MIN || self.run.is_multiple_of(RUN_MAX)
    }

    /// The kept packet whose turn it is, with its number.
    #[inline]
    pub(super) fn poll_kept(&mut self) -> Option<(u64, T)> {
        if !matches!(self.ring.front(), Some(Some(_))) {
            return None;
        }
        let content = self.ring.pop_front().flatten()?;
        let number = self.next;
        self.kept -= 1;
        self.came.clear(number);
        self.moved();
        Some((number, content))
    }

    #[inline]
    fn moved(&mut self) {
        self.next += 1;
        self.window.advance(self.next);
    }

    /// A packet came twice, and the peer has to know.
    #[inline]
    pub(super) const fn note_twice(&mut self) {
        self.twice = true;
    }

    /// Whether one did, since [`forget_twice`](Self::forget_twice).
    #[inline]
    pub(super) const fn has_twice(&self) -> bool {
        self.twice
    }

    /// It was said.
    #[inline]
    pub(super) const fn forget_twice(&mut self) {
        self.twice = false;
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
            *word = self.came.word(first);
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
        let delay = now.saturating_sub(self.latest_at) / MICROSECOND;
        u16::try_from(delay).ok().filter(|delay| *delay < u16::MAX)
    }

    pub(super) fn check(&self) {
        self.window.check(self.next);
        assert!(self.ring.len() as u64 <= self.window.right() - self.next, "{}", self.ring.len());
        assert_eq!(self.ring.iter().flatten().count(), self.kept);
        assert_eq!(self.came.count(), self.kept);
        assert!(self.ring.back().is_none_or(Option::is_some), "the latest number has come");
    }
}
