//! The echo of a pair of ranks: before the first packet, each of both finds out that datagrams arrive in both directions (5.10).
//!
//! Each rank sends probes until the other one says on their connection that one has come. A stranger cannot make a probe: it names
//! the connection. Both say both words once, so nothing is left on the connection, and no probe leaves behind them.
//!
//! ```text
//! probe, 12 octets     "mpjE", connection id 8: shorter than any packet
//! on the connection    "h"  a probe of the reader has come
//!                      "e"  no more probes leave
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::transport::udp::probe::{self, Early};

/// How long probes leave that nobody hears.
pub const ECHO_TIME: Duration = Duration::from_secs(3);
/// Probes that leave at least, also of a rank that gets no processor for that long.
const PROBES_MIN: u32 = 16;
/// How long a probe may arrive after the word that it was the last one.
const GRACE: Duration = Duration::from_secs(1);
/// Time between the first two probes. It doubles up to the second one.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(160)];
/// Datagrams of ranks that have left the meeting, kept for later at most; others leave again.
const EARLY_MAX: usize = 1024;
/// On the connection: a probe of the reader has come.
pub(super) const HEARD: u8 = b'h';
/// No more probes leave.
pub(super) const ENDED: u8 = b'e';

/// What is known of one pair.
#[derive(Debug)]
pub(super) struct Echo {
    /// In probes that come.
    ours: u64,
    /// Where probes go, and in which connection's name; none before the peer has said it.
    to: Option<(SocketAddr, u64)>,
    /// When the first probe left.
    begun: Option<Instant>,
    next_at: Option<Instant>,
    pause: Duration,
    probes: u32,
    /// Where a probe of the peer has come from.
    heard: Option<SocketAddr>,
    has_said_heard: bool,
    has_said_ended: bool,
    is_heard: bool,
    peer_ended_at: Option<Instant>,
}

impl Echo {
    /// Of a peer that puts this connection id into what it sends.
    pub(super) fn new(ours: u64) -> Echo {
        Echo {
            ours,
            to: None,
            begun: None,
            next_at: None,
            pause: PAUSES[0],
            probes: 0,
            heard: None,
            has_said_heard: false,
            has_said_ended: false,
            is_heard: false,
            peer_ended_at: None,
        }
    }

    /// The peer has said where its datagrams are to go.
    pub(super) fn begin(&mut self, to: SocketAddr, theirs: u64) {
        self.to = Some((to, theirs));
    }

    pub(super) fn has_begun(&self) -> bool {
        self.to.is_some()
    }

    /// Where probes go.
    pub(super) fn to(&self) -> Option<SocketAddr> {
        self.to.map(|(to, _)| to)
    }

    /// Whether no more probes leave.
    pub(super) fn has_ended(&self) -> bool {
        self.has_said_ended
    }

    /// In probes of the peer.
    pub(super) fn ours(&self) -> u64 {
        self.ours
    }

    /// A probe of the peer has come.
    pub(super) fn hear(&mut self, from: SocketAddr) {
        self.heard.get_or_insert(from);
    }

    /// Where packets of the peer come from: behind a router that changes ports, or a socket of many addresses, that may be another
    /// address than the one it has said.
    pub(super) fn source(&self) -> Option<SocketAddr> {
        self.heard
    }

    /// Whether both have said everything.
    pub(super) fn is_done(&self) -> bool {
        self.has_said_heard && self.has_said_ended && self.is_heard && self.peer_ended_at.is_some()
    }

    /// Whether this rank's datagrams do not arrive, for all that it knows.
    pub(super) fn is_unheard(&self) -> bool {
        self.probes > 0 && !self.is_heard
    }

    /// Whether the peer's datagrams do not arrive. All that had come by `now` was taken.
    pub(super) fn is_deaf(&self, now: Instant) -> bool {
        self.heard.is_none()
            && self.peer_ended_at.is_some_and(|at| now.saturating_duration_since(at) >= GRACE)
    }

    /// When the next probe leaves, or the last one may have come.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let grace = self.peer_ended_at.filter(|_| self.heard.is_none()).map(|at| at + GRACE);
        [self.next_at, grace].into_iter().flatten().min()
    }

    /// A word of the peer; false if there is no such word, or not again.
    pub(super) fn take_word(&mut self, word: u8, now: Instant) -> bool {
        match word {
            HEARD if !self.is_heard => self.is_heard = true,
            ENDED if self.peer_ended_at.is_none() => self.peer_ended_at = Some(now),
            _ => return false,
        }
        true
    }

    /// Sends a probe if it is time, and gives the words that are to be said now.
    pub(super) fn poll(&mut self, now: Instant, socket: &UdpSocket) -> Vec<u8> {
        let Some((to, theirs)) = self.to else { return Vec::new() };
        let begun = *self.begun.get_or_insert(now);
        let mut words = Vec::new();
        if self.heard.is_some() && !self.has_said_heard {
            self.has_said_heard = true;
            words.push(HEARD);
        }
        if self.has_said_ended {
            return words;
        }
        let has_tried = self.probes >= PROBES_MIN && now.saturating_duration_since(begun) >= ECHO_TIME;
        if has_tried || self.is_heard {
            self.has_said_ended = true;
            self.next_at = None;
            words.push(ENDED);
        } else if self.next_at.is_none_or(|at| at <= now) {
            // One that the system does not take is lost, as one that the network does not take.
            let _ = socket.send_to(&probe::emit(theirs), to);
            self.probes += 1;
            self.next_at = Some(now + self.pause);
            self.pause = (2 * self.pause).min(PAUSES[1]);
        }
        words
    }
}

/// Takes what the socket has, up to a limit: strangers may send without end. Whether that was all.
pub(super) fn drain(socket: &UdpSocket, room: &mut [u8], mut take: impl FnMut(SocketAddr, &[u8])) -> bool {
    for _ in 0..EARLY_MAX {
        let Ok((len, from)) = socket.recv_from(room) else { return true };
        take(from, &room[..len]);
    }
    false
}

/// Keeps a datagram for later, as long as there are not too many.
pub(super) fn keep(early: &mut Vec<Early>, from: SocketAddr, octets: &[u8]) {
    if early.len() < EARLY_MAX {
        early.push((from, octets.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn socket() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = socket.local_addr().expect("bound");
        (socket, address)
    }

    /// However slow this rank is, and whatever the clock says.
    #[test]
    fn probes_end_when_heard_or_after_time_and_count() {
        let (socket, to) = socket();
        let start = Instant::now();
        let mut echo = Echo::new(7);
        assert!(echo.poll(start, &socket).is_empty() && echo.next_time().is_none(), "nobody to send to");
        echo.begin(to, 8);
        let late = start + ECHO_TIME;
        assert!(echo.poll(start, &socket).is_empty());
        let mut now = late;
        for _ in 1..PROBES_MIN {
            assert!(echo.poll(now, &socket).is_empty() && echo.is_unheard());
            now = echo.next_time().expect("another one");
        }
        assert_eq!(echo.poll(now, &socket), [ENDED]);
        assert!(echo.poll(now + ECHO_TIME, &socket).is_empty() && echo.next_time().is_none());
        let mut heard = Echo::new(7);
        heard.begin(to, 8);
        assert!(heard.poll(start, &socket).is_empty());
        assert!(
            heard.take_word(HEARD, start) && !heard.take_word(HEARD, start) && !heard.take_word(b'x', start)
        );
        heard.hear(to);
        assert_eq!(heard.poll(start, &socket), [HEARD, ENDED]);
        assert!(!heard.is_done() && heard.take_word(ENDED, start) && heard.is_done());
    }

    /// What is left when the limit is reached may be the probe that is waited for.
    #[test]
    fn a_flood_is_taken_in_pieces() {
        let (socket, to) = socket();
        socket.set_nonblocking(true).expect("a socket");
        let mut room = [0; probe::LEN];
        assert!(drain(&socket, &mut room, |_, _| unreachable!("nothing has come")));
        let mut taken = 0;
        // Each datagram that is taken is followed by another one.
        socket.send_to(&[1], to).expect("room");
        let is_all = drain(&socket, &mut room, |from, _| {
            taken += 1;
            socket.send_to(&[1], from).expect("room");
        });
        assert!(!is_all && taken == EARLY_MAX);
    }

    /// A last probe may be slower than the word about it.
    #[test]
    fn pair_is_deaf_a_while_after_the_last_probe() {
        let start = Instant::now();
        let mut echo = Echo::new(7);
        assert!(!echo.is_deaf(start + 100 * ECHO_TIME) && echo.take_word(ENDED, start));
        assert!(!echo.is_deaf(start + GRACE / 2) && echo.is_deaf(start + GRACE));
        assert_eq!(echo.next_time(), Some(start + GRACE));
        echo.hear(socket().1);
        assert!(!echo.is_deaf(start + 100 * ECHO_TIME));
    }
}
