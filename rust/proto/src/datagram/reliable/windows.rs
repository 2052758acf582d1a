//! Send window, receive window, and the shares of peers in one socket (5.4).
//!
//! A right edge never moves back, on either side: a receiver that stops consuming lets its window run empty
//! and withdraws nothing. So acks that overtake each other do no harm (a choice of ours; the header does not
//! state their order).

use thiserror::Error;

use super::super::layout::WINDOW_MAX;
use super::time::{Nanos, SECOND};

/// The largest receive window that is advertised: with all that may be in flight it stays far below the 2^15
/// numbers (5.2).
pub const RECEIVE_WINDOW_MAX: u16 = 8192;

/// The octets of a socket's buffer that the kernel charges for one datagram with `len` octets of payload, as
/// measured on Linux 6.18 (5.4). They depend on kernel and driver.
#[must_use]
pub const fn charge(len: usize) -> usize {
    if len + DATAGRAM_OVERHEAD > LINEAR_MAX {
        return len + PAGED_CHARGE;
    }
    let linear = DESCRIPTOR_CHARGE + (len + DATAGRAM_OVERHEAD).next_power_of_two();
    if linear < CHARGE_MIN { CHARGE_MIN } else { linear }
}

/// Datagrams that a socket's buffer holds: `granted` octets, as the kernel reports them, at `charge` octets
/// each.
#[must_use]
pub fn capacity(granted: usize, charge: usize) -> usize {
    granted.checked_div(charge).unwrap_or(0)
}

/// Octets beside the payload in a linear buffer.
const DATAGRAM_OVERHEAD: usize = 320;
/// Octets for the descriptor.
const DESCRIPTOR_CHARGE: usize = 256;
/// The least charge: that of payloads of 16 and of 80 octets.
const CHARGE_MIN: usize = 832;
/// From here on the payload is in pages.
const LINEAR_MAX: usize = 32768;
/// Octets beside a payload in pages: 65507 octets were charged about 66600.
const PAGED_CHARGE: usize = 1536;

/// More peers than the socket has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{peers} peers share a socket that holds {capacity} datagrams")]
pub struct SharesError {
    /// The number of peers.
    pub peers: usize,
    /// Datagrams that the socket holds.
    pub capacity: usize,
}

/// The receive window of each of `peers` peers of a socket that holds `capacity` datagrams. All windows
/// together are at most half of what the socket holds (5.4), and each is at least one datagram, also where
/// half of the capacity is less; retransmissions may then find no room. The share lasts until the end of the
/// job, since a window is never withdrawn.
///
/// # Errors
/// The socket holds less than a datagram of each peer: use a larger buffer, or several sockets.
pub fn share(capacity: usize, peers: usize) -> Result<u16, SharesError> {
    if peers.max(1) > capacity {
        return Err(SharesError { peers, capacity });
    }
    let share = (capacity / 2 / peers.max(1)).max(1);
    Ok(u16::try_from(share).unwrap_or(u16::MAX).min(RECEIVE_WINDOW_MAX))
}

/// The receive window: what the peer may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    size: u16,
    /// The first number that the peer may not use.
    right: u64,
    is_held: bool,
    /// The right edge that was advertised last.
    advertised: u64,
}

impl ReceiveWindow {
    pub(super) const fn new(size: u16, next: u64) -> Self {
        let right = next + size as u64;
        // Both ends know the size from setup.
        Self { size, right, is_held: false, advertised: right }
    }

    pub(super) const fn size(&self) -> u16 {
        self.size
    }

    #[inline]
    pub(super) const fn right(&self) -> u64 {
        self.right
    }

    /// Stops or resumes the advance of the right edge.
    pub(super) const fn hold(&mut self, is_held: bool, next: u64) {
        self.is_held = is_held;
        self.advance(next);
    }

    pub(super) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// `next` is the left edge now.
    #[inline]
    pub(super) const fn advance(&mut self, next: u64) {
        let right = next + self.size as u64;
        if !self.is_held && right > self.right {
            self.right = right;
        }
    }

    /// The window to send with the left edge `next`.
    #[inline]
    pub(super) const fn advertise(&mut self, next: u64) -> u16 {
        self.advertised = self.right;
        (self.right - next) as u16
    }

    /// Whether the peer may still see a closed window although it is open.
    #[inline]
    pub(super) const fn is_update_due(&self, next: u64) -> bool {
        self.advertised <= next && self.right > next
    }

    pub(super) fn check(&self, next: u64) {
        assert!(next <= self.right && self.right <= next + u64::from(self.size), "{self:?}, next {next}");
        assert!(self.advertised <= self.right, "{self:?}");
    }
}

/// The send window: what this end may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow {
    right: u64,
    /// The time of the next window probe, and the probes sent so far.
    probe: Option<(Nanos, u32)>,
}

impl SendWindow {
    pub(super) const fn new(size: u16, next: u64) -> Self {
        Self { right: next + size as u64, probe: None }
    }

    /// The peer has received all below `ack` and has room for `window` more. A smaller right edge is ignored.
    #[inline]
    pub(super) const fn handle(&mut self, ack: u64, window: u16) {
        let right = ack + window as u64;
        if right > self.right {
            self.right = right;
            self.probe = None;
        }
    }

    /// Packets that may be sent now, with left edge `una` and right edge `next`.
    #[inline]
    pub(super) const fn room(&self, una: u64, next: u64) -> u64 {
        let bound = una + WINDOW_MAX as u64;
        let limit = if self.right < bound { self.right } else { bound };
        limit.saturating_sub(next)
    }

    /// The size of the window from `una` on.
    #[inline]
    pub(super) const fn size(&self, una: u64) -> u64 {
        self.right.saturating_sub(una)
    }

    /// A packet waits and none is in flight: schedules a window probe after a PTO, with backoff up to a
    /// second.
    pub(super) const fn schedule_probe(&mut self, now: Nanos, pto: Nanos) -> Nanos {
        match self.probe {
            Some((at, _)) => at,
            None => {
                let at = now.saturating_add(limited(pto));
                self.probe = Some((at, 0));
                at
            }
        }
    }

    /// Cancels the window probe.
    #[inline]
    pub(super) const fn cancel_probe(&mut self) {
        self.probe = None;
    }

    /// When a window probe is due, if one is.
    #[inline]
    pub(super) fn probe_deadline(&self) -> Option<Nanos> {
        self.probe.map(|(at, _)| at)
    }

    /// A window probe is sent.
    pub(super) fn probe_sent(&mut self, now: Nanos, pto: Nanos) {
        let asked = self.probe.map_or(0, |(_, asked)| asked).saturating_add(1);
        let factor = 1_u64.checked_shl(asked).unwrap_or(u64::MAX);
        self.probe = Some((now.saturating_add(limited(pto.saturating_mul(factor))), asked));
    }

    pub(super) fn check(&self, una: u64, next: u64) {
        assert!(una <= next && next <= self.right, "{una} {next} {self:?}");
        assert!(next - una <= u64::from(WINDOW_MAX), "{una} {next}");
    }
}

/// Probes are at most a second apart (5.4).
const fn limited(wait: Nanos) -> Nanos {
    if wait < SECOND { wait } else { SECOND }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the capacity is at most the measured count, and at least nine tenths of it.
    #[test]
    fn capacity_is_that_measured_for_each_length() {
        let measured = [
            (16, 256, 10082),
            (80, 256, 10082),
            (512, 166, 6553),
            (1472, 92, 3640),
            (8192, 12, 504),
            (65507, 3, 126),
        ];
        for (len, small, large) in measured {
            for (granted, count) in [(212_992, small), (8_388_608, large)] {
                let capacity = capacity(granted, charge(len));
                assert!(
                    capacity <= count && capacity * 10 >= count * 9,
                    "{len}: {capacity}, measured {count}"
                );
            }
        }
    }

    /// Proves that all peers together have half of the socket, as long as each has at least one datagram.
    #[test]
    fn windows_of_all_peers_share_half_of_the_socket() {
        for capacity in [2, 3, 4, 12, 92, 256, 10082, 1 << 20] {
            for peers in 1..300 {
                let Ok(share) = share(capacity, peers) else {
                    assert!(peers > capacity, "{peers} peers find no room among {capacity}");
                    continue;
                };
                let most = if capacity / 2 >= peers { capacity / 2 } else { capacity };
                let all = usize::from(share) * peers;
                assert!(share >= 1 && all <= most, "{capacity} datagrams, {peers} peers: {share}");
            }
        }
        assert_eq!(share(92, 1), Ok(46));
        assert_eq!(share(5, 6), Err(SharesError { peers: 6, capacity: 5 }));
    }

    /// Proves that a held window keeps its right edge, and that resuming advertises a new one.
    #[test]
    fn held_window_closes_and_reopens() {
        let mut window = ReceiveWindow::new(4, 10);
        window.hold(true, 10);
        for next in 10..=14 {
            window.advance(next);
            assert_eq!(u64::from(window.advertise(next)), 14 - next);
            assert!(!window.is_update_due(next));
            window.check(next);
        }
        window.hold(false, 14);
        assert!(window.is_update_due(14));
        assert_eq!(window.advertise(14), 4);
        assert!(!window.is_update_due(14));
    }

    /// Proves that a late ack does not shrink the window.
    #[test]
    fn send_window_never_shrinks() {
        let mut window = SendWindow::new(4, 0);
        window.handle(4, 4);
        window.handle(2, 1);
        assert_eq!((window.room(4, 4), window.size(4)), (4, 4));
        window.handle(8, u16::MAX);
        assert_eq!(window.room(8, 8), u64::from(WINDOW_MAX));
        assert_eq!(window.room(8, 8 + u64::from(WINDOW_MAX)), 0);
    }

    /// Proves that probes start after a PTO, double up to a second, and end when the window opens.
    #[test]
    fn probes_of_a_closed_window_back_off() {
        let mut window = SendWindow::new(0, 0);
        let pto = SECOND / 100;
        assert_eq!(window.schedule_probe(0, pto), pto);
        assert_eq!(window.schedule_probe(pto / 2, pto), pto);
        let (mut now, mut gaps) = (pto, Vec::new());
        for _ in 0..9 {
            window.probe_sent(now, pto);
            let next = window.schedule_probe(now, pto);
            gaps.push((next - now) / pto);
            now = next;
        }
        assert_eq!(gaps, [2, 4, 8, 16, 32, 64, 100, 100, 100]);
        window.handle(0, 1);
        assert_eq!(window.probe_deadline(), None);
    }
}
