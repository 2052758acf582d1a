//! Peer timeout: a peer has failed when its system answers nothing, not when its program does not read.
//!
//! The kernel's limit for unacknowledged octets (`TCP_USER_TIMEOUT`) also counts the time in which the peer's
//! window is zero, although its system answers every probe. A foreign rank that computes or is stopped has
//! such a window. Therefore the limit is off while octets are outstanding, and the progress thread checks the
//! time of the last ack of the peer's system.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::net::sockopt::tcp_user_timeout;

/// Checks within one peer timeout.
const CHECKS: u32 = 8;

/// Peer timeout of all connections of a rank.
#[derive(Debug)]
pub(super) struct PeerTimeout {
    /// The timeout; 0 where the system decides.
    pub(super) most: Duration,
    start: Instant,
    /// Time of the next check, in milliseconds.
    next: AtomicU64,
}

impl PeerTimeout {
    /// The timeout that the connections are configured with.
    pub(super) fn of<'a>(mut sockets: impl Iterator<Item = BorrowedFd<'a>>) -> PeerTimeout {
        // A socket without such a limit needs none.
        let millis = sockets.find_map(|socket| tcp_user_timeout(socket).ok()).unwrap_or(0);
        let most = Duration::from_millis(millis.into());
        PeerTimeout { most, start: Instant::now(), next: AtomicU64::new(0) }
    }

    /// Whether a check is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let millis = |time: Duration| time.as_millis() as u64;
        let at = millis(now - self.start);
        let is_due = !self.most.is_zero() && at >= self.next.load(Relaxed);
        if is_due {
            self.next.store(at + millis(self.most / CHECKS), Relaxed);
        }
        is_due
    }

    pub(super) fn has_passed(&self, outstanding: Duration, since_ack: Duration) -> bool {
        // The last ack may be older than the oldest unacknowledged octet.
        outstanding.min(since_ack) > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_passes_when_neither_octets_nor_probes_are_acked() {
        let seconds = Duration::from_secs;
        let timeout = PeerTimeout { most: seconds(60), start: Instant::now(), next: AtomicU64::new(0) };
        assert!(timeout.has_passed(seconds(61), seconds(61)));
        assert!(!timeout.has_passed(seconds(600), seconds(5)), "its system answers");
        assert!(!timeout.has_passed(seconds(5), seconds(600)), "nothing was outstanding for long");
    }
}
