//! Packets that come: each once, in the order of their numbers, whatever the network does (5.5).
//!
//! ```text
//!          next                                   right
//!    -------+--------------------------------------+------
//!      seen | missing, or kept until it is its turn | beyond
//! ```

use std::collections::VecDeque;

use super::sender::SACK_REACH;
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
    /// When the latest number of all that have come did so.
    latest_at: Nanos,
    /// Whether something came twice since that was said last.
    twice: bool,
}

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
        Self { next: first, window, ring: VecDeque::new(), kept: 0, latest_at: 0, twice: false }
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
    pub(super) fn keep(&mut self, now: Nanos, number: u64, content: T) {
        let place = (number - self.next) as usize;
        if self.ring.len() <= place {
            self.ring.resize_with(place + 1, || None);
            self.latest_at = now;
        }
        self.ring[place] = Some(content);
        self.kept += 1;
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

    /// Which of the 64 packets behind the left edge's have come.
    pub(super) fn sack(&self) -> u64 {
        let behind = self.ring.iter().skip(1).take(SACK_REACH as usize);
        behind.enumerate().filter(|(_, kept)| kept.is_some()).fold(0, |sack, (k, _)| sack | 1 << k)
    }

    /// Whether more has come than [`sack`](Self::sack) names.
    pub(super) fn is_beyond_sack(&self) -> bool {
        self.ring.len() as u64 > SACK_REACH + 1
    }

    /// How long the latest number has waited for its acknowledgment, in microseconds; none if that is more than a packet
    /// can say, or if the acknowledgment does not name that packet.
    #[inline]
    pub(super) fn delay_us(&self, now: Nanos) -> Option<u16> {
        if self.is_beyond_sack() {
            return None;
        }
        let delay = now.saturating_sub(self.latest_at) / MICROSECOND;
        u16::try_from(delay).ok().filter(|delay| *delay < u16::MAX)
    }

    pub(super) fn check(&self) {
        self.window.check(self.next);
        assert!(self.ring.len() as u64 <= self.window.right() - self.next, "{}", self.ring.len());
        assert_eq!(self.ring.iter().flatten().count(), self.kept);
        assert!(self.ring.back().is_none_or(Option::is_some), "the latest number has come");
    }
}
