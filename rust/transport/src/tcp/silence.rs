//! Peer timeout: a peer is dead when its system is silent, not when its program does not read.
//!
//! The kernel's limit for unacknowledged octets (`TCP_USER_TIMEOUT`) also counts the time in which the peer's
//! window is zero, although its system answers every probe. A foreign rank that computes or is stopped has
//! such a window. Therefore the limit is off while octets are outstanding, and the progress thread checks the
//! time of the last ack of the peer's system.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mpjdev_sys::stream;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_user_timeout, tcp_user_timeout};

use super::channel::Channel;
use super::transport::TcpTransport;

/// Checks within one peer timeout.
const CHECKS: u32 = 8;

/// Peer timeout of all connections of a rank.
#[derive(Debug)]
pub(super) struct Silence {
    /// The timeout; 0 where the system decides.
    most: Duration,
    start: Instant,
    /// Time of the next check, in milliseconds.
    next: AtomicU64,
}

impl Silence {
    /// The timeout that the connections are configured with.
    pub(super) fn of<'a>(mut sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Silence {
        // A socket without such a limit needs none.
        let millis = sockets.find_map(|socket| tcp_user_timeout(socket).ok()).unwrap_or(0);
        let most = Duration::from_millis(millis.into());
        Silence { most, start: Instant::now(), next: AtomicU64::new(0) }
    }

    /// Whether a check is due.
    fn is_due(&self, now: Instant) -> bool {
        let millis = |time: Duration| time.as_millis() as u64;
        let at = millis(now - self.start);
        let is_due = !self.most.is_zero() && at >= self.next.load(Relaxed);
        if is_due {
            self.next.store(at + millis(self.most / CHECKS), Relaxed);
        }
        is_due
    }

    fn is_over(&self, outstanding: Duration, since_ack: Duration) -> bool {
        // The last ack may be older than the oldest unacknowledged octet.
        outstanding.min(since_ack) > self.most
    }
}

impl TcpTransport {
    /// Checks the connections if a check is due.
    pub(super) fn check_silence(&self) {
        let now = Instant::now();
        if self.silence.is_due(now) {
            self.channels.iter().for_each(|channel| self.check_channel(channel, now));
        }
    }

    pub(super) fn check_channel(&self, channel: &Channel, now: Instant) {
        let socket = channel.socket.as_fd();
        let mut tx = channel.tx();
        if tx.is_closed || tx.is_broken {
            return;
        }
        let is_outstanding = stream::untaken_len(socket).is_ok_and(|len| len > 0);
        match tx.outstanding_since {
            None if is_outstanding => {
                let _ = set_tcp_user_timeout(socket, 0);
                tx.outstanding_since = Some(now);
            }
            Some(_) if !is_outstanding => {
                let _ = set_tcp_user_timeout(socket, self.silence.most.as_millis() as u32);
                tx.outstanding_since = None;
            }
            Some(since) => {
                let since_ack = stream::since_ack(socket).unwrap_or_default();
                if self.silence.is_over(now - since, since_ack) {
                    self.stop_sending(channel, &mut tx, &Errno::TIMEDOUT.into());
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_is_dead_when_neither_octets_nor_questions_are_acknowledged() {
        let seconds = Duration::from_secs;
        let silence = Silence { most: seconds(60), start: Instant::now(), next: AtomicU64::new(0) };
        assert!(silence.is_over(seconds(61), seconds(61)));
        assert!(!silence.is_over(seconds(600), seconds(5)), "its system answers");
        assert!(!silence.is_over(seconds(5), seconds(600)), "nothing was outstanding for long");
    }
}
