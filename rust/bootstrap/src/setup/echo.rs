//! The echo of a pair of ranks. Before the first packet, both determine whether datagrams arrive in both
//! directions (5.10), and how long they may be (5.2): some paths drop long datagrams silently.
//!
//! Each rank sends probes of several lengths. It stops when the other rank reports that the longest has
//! arrived, or when several rounds have failed. A report is one octet on their TCP connection. A probe
//! contains the connection id, so an unauthenticated client cannot forge one.
//!
//! A rank that has completed the echo with all others sends each of them the word "r". It waits for that word
//! from all of them, and sends its first packet then. So no rank waits for acks of a rank that still proves
//! another path.
//!
//! ```text
//! on the connection    "0" ... "9"  a probe of the reader has arrived, at least as long as its n-th length
//!                      "d"          answers "e", unless "0" was sent: no more of these reports follow
//!                      "e"          no more probes are sent
//!                      "r"          the setup with all ranks is complete; the last word
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use mpjdev_transport::udp::path_mtu::LEN_SAFE;
use mpjdev_transport::udp::probe::{self, Early};

/// The time during which probes are sent without a report.
pub const ECHO_TIME: Duration = Duration::from_secs(3);
/// The least number of rounds of probes, also for a rank without a processor for that time.
const ROUNDS_MIN: u32 = 16;
/// The time during which a probe may arrive after the word that no more are sent.
const GRACE: Duration = Duration::from_secs(1);
/// The time between the first two rounds. It doubles up to the second value.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(160)];
/// The number of rounds of longer probes after a shorter one has arrived. The pause between them starts again
/// at its minimum and doubles up to the second value, so that a queue that is full of other traffic, or of
/// the probes of many pairs, drains before a length counts as lost.
const LONGER_ROUNDS: u32 = 8;
const LONGER_PAUSE_MAX: Duration = Duration::from_millis(640);
/// Octets of datagrams for paths that do not carry the longest: Ethernet with jumbo frames, Ethernet, tunnels
/// over Ethernet, and the length that every path carries.
const LENS_SHORTER: [usize; 4] = [8968, 1472, 1368, LEN_SAFE];
/// The limit on datagrams that are kept from ranks that have completed the setup; others are retransmitted.
const EARLY_MAX: usize = 1024;
/// Word: a probe of the reader with its longest length has arrived.
pub(super) const LONGEST: u8 = b'0';
/// Word: no more reports about the reader's probes follow.
pub(super) const DONE: u8 = b'd';
/// Word: no more probes are sent.
pub(super) const ENDED: u8 = b'e';
/// Word: the setup with all ranks is complete.
pub(super) const READY: u8 = b'r';

/// Lengths of probes, the longest first, for wanted datagrams of `len` octets. Both ranks of a pair have the
/// same. Without a length to prove, it is the shortest one.
pub(super) fn lens(len: Option<usize>) -> Vec<usize> {
    let longer = len.into_iter().filter(|len| *len > probe::LEN);
    let shorter = LENS_SHORTER.into_iter().filter(|shorter| len.is_some_and(|len| *shorter < len));
    longer.chain(shorter).chain([probe::LEN]).collect()
}

/// The due actions of a rank.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// The lengths of the probes to send.
    pub(super) probes: Vec<usize>,
    /// The words to send on the connection.
    pub(super) words: Vec<u8>,
}

/// The target of probes.
#[derive(Debug)]
struct Target {
    address: SocketAddr,
    /// The connection id in them.
    theirs: u64,
    /// Their lengths in octets, the longest first.
    lens: Vec<usize>,
}

/// The state of one pair. It reads no clock and has no socket.
#[derive(Debug)]
pub(super) struct Echo {
    /// The connection id in arriving probes.
    ours: u64,
    /// `None` before the Hello of the peer has arrived.
    target: Option<Target>,
    /// The time of the first probe.
    begun: Option<Instant>,
    next_at: Option<Instant>,
    pause: Duration,
    rounds: u32,
    /// Bit k: a probe of the k-th length was sent; the system has refused one.
    sent: u16,
    refused: u16,
    /// The lengths that were sent for the first time in this round.
    fresh: u16,
    /// The source of the first probe of the peer, and the octets of the longest one.
    received: Option<(SocketAddr, usize)>,
    /// The length that was reported as arrived; whether no other one will be.
    reported: Option<usize>,
    has_sent_done: bool,
    has_sent_ended: bool,
    /// The longest of this rank's probes that has arrived by the peer's report; the round of the first
    /// report.
    reached: Option<usize>,
    reached_since: Option<u32>,
    is_peer_done: bool,
    peer_ended_at: Option<Instant>,
    is_peer_ready: bool,
}

impl Echo {
    /// The state for a peer that puts this connection id into its packets.
    pub(super) fn new(ours: u64) -> Echo {
        Echo {
            ours,
            target: None,
            begun: None,
            next_at: None,
            pause: PAUSES[0],
            rounds: 0,
            sent: 0,
            fresh: 0,
            refused: 0,
            received: None,
            reported: None,
            has_sent_done: false,
            has_sent_ended: false,
            reached: None,
            reached_since: None,
            is_peer_done: false,
            peer_ended_at: None,
            is_peer_ready: false,
        }
    }

    /// Starts to send probes of these [`lens`], with the address and connection id of the peer's
    /// Hello.
    pub(super) fn begin(&mut self, address: SocketAddr, theirs: u64, lens: Vec<usize>) {
        self.target = Some(Target { address, theirs, lens });
    }

    pub(super) fn has_begun(&self) -> bool {
        self.target.is_some()
    }

    /// The address of the peer for probes, and the connection id in them.
    pub(super) fn to(&self) -> Option<(SocketAddr, u64)> {
        self.target.as_ref().map(|target| (target.address, target.theirs))
    }

    /// Whether no more probes are sent.
    pub(super) fn has_ended(&self) -> bool {
        self.has_sent_ended
    }

    /// The connection id in probes of the peer.
    pub(super) fn ours(&self) -> u64 {
        self.ours
    }

    /// Handles a probe of the peer with `len` octets.
    pub(super) fn handle_probe(&mut self, from: SocketAddr, len: usize) {
        let (_, longest) = self.received.get_or_insert((from, len));
        *longest = len.max(*longest);
    }

    /// Records that the system refuses a probe with `len` octets.
    pub(super) fn refuse(&mut self, len: usize) {
        let at = self.lens().iter().position(|other| *other == len);
        let bit = at.map_or(0, |at| 1 << at);
        // An earlier probe of that length may still be in flight, or its reply.
        self.sent &= !(bit & self.fresh);
        self.refused |= bit;
    }

    /// The source address of the peer's packets. Behind a router that changes ports, or a socket of many
    /// addresses, it may differ from the address in the Hello.
    pub(super) fn source(&self) -> Option<SocketAddr> {
        self.received.map(|(from, _)| from)
    }

    /// Whether both ranks have completed the echo.
    pub(super) fn is_done(&self) -> bool {
        let has_reported = self.reported == Some(0) || self.has_sent_done;
        has_reported && self.has_sent_ended && self.has_all_reports()
    }

    /// Whether the peer has completed the setup with all ranks.
    pub(super) fn is_peer_ready(&self) -> bool {
        self.is_peer_ready
    }

    /// Whether the peer sends no further words about probes.
    fn has_all_reports(&self) -> bool {
        (self.reached == Some(0) || self.is_peer_done) && self.peer_ended_at.is_some()
    }

    /// Octets of the longest probe of this rank that has arrived, and of the peer's.
    pub(super) fn proved(&self) -> Option<[usize; 2]> {
        let len = |at: Option<usize>| self.lens().get(at?).copied();
        Some([len(self.reached)?, len(self.reported)?])
    }

    /// Whether none of this rank's datagrams has arrived, as far as it knows.
    pub(super) fn is_unanswered(&self) -> bool {
        self.rounds > 0 && self.reached.is_none()
    }

    /// Whether the peer's datagrams do not arrive. All that had arrived by `now` were handled.
    pub(super) fn has_received_nothing(&self, now: Instant) -> bool {
        self.received.is_none()
            && self.peer_ended_at.is_some_and(|at| now.saturating_duration_since(at) >= GRACE)
    }

    /// The time at which the next probe is due, or the wait for the last one ends.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let grace = self.peer_ended_at.filter(|_| self.received.is_none()).map(|at| at + GRACE);
        [self.next_at, grace].into_iter().flatten().min()
    }

    /// Handles a word of the peer; false if it is undefined, repeated or impossible.
    pub(super) fn handle_word(&mut self, word: u8, now: Instant) -> bool {
        match word {
            b'0'..=b'9' => return self.reach(usize::from(word - LONGEST), now),
            DONE if self.has_sent_ended && !self.is_peer_done && self.reached.is_some_and(|at| at > 0) => {
                self.is_peer_done = true;
            }
            ENDED if self.peer_ended_at.is_none() => self.peer_ended_at = Some(now),
            READY if self.has_all_reports() && !self.is_peer_ready => self.is_peer_ready = true,
            _ => return false,
        }
        true
    }

    /// Records that a probe of this length has arrived; false if that is impossible.
    fn reach(&mut self, at: usize, now: Instant) -> bool {
        let is_longer = self.reached.is_none_or(|reached| at < reached);
        if !is_longer || self.is_peer_done || self.sent >> at & 1 == 0 {
            return false;
        }
        if self.reached.is_none() {
            self.reached_since = Some(self.rounds);
            self.pause = PAUSES[0];
            self.next_at = Some(now + self.pause);
        }
        self.reached = Some(at);
        true
    }

    /// The actions that are due. `is_all`: all datagrams that had arrived by `now` were handled.
    pub(super) fn poll(&mut self, now: Instant, is_all: bool) -> Turn {
        let mut turn = Turn::default();
        if self.target.is_none() {
            return turn;
        }
        self.answer(is_all, &mut turn.words);
        if self.has_sent_ended {
            return turn;
        }
        if self.has_tried(now) {
            self.has_sent_ended = true;
            self.next_at = None;
            turn.words.push(ENDED);
        } else if self.next_at.is_none_or(|at| at <= now) {
            turn.probes = self.round();
            self.next_at = Some(now + self.pause);
            let pause_max = if self.reached.is_none() { PAUSES[1] } else { LONGER_PAUSE_MAX };
            self.pause = (2 * self.pause).min(pause_max);
        }
        turn
    }

    /// Adds the reports about the peer's probes that are due.
    fn answer(&mut self, is_all: bool, words: &mut Vec<u8>) {
        if self.has_sent_done {
            return;
        }
        let longest = self.received.and_then(|(_, len)| self.lens().iter().position(|other| *other <= len));
        if let Some(at) = longest.filter(|at| self.reported.is_none_or(|reported| *at < reported)) {
            self.reported = Some(at);
            words.push(LONGEST + at as u8);
        }
        // A delayed rank first handles the probes in its socket, which arrived before the last word.
        if self.peer_ended_at.is_some() && is_all && self.reported.is_some_and(|reported| reported > 0) {
            self.has_sent_done = true;
            words.push(DONE);
        }
    }

    /// Whether all lengths are decided.
    fn has_tried(&mut self, now: Instant) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let Some(round) = self.reached_since else {
            return self.rounds >= ROUNDS_MIN && now.saturating_duration_since(begun) >= ECHO_TIME;
        };
        let has_failed = self.rounds - round >= LONGER_ROUNDS && self.next_at.is_none_or(|at| at <= now);
        has_failed || self.open().is_empty()
    }

    /// The lengths that may still turn out to arrive.
    fn open(&self) -> Vec<usize> {
        let end = self.reached.unwrap_or(self.lens().len());
        (0..end).filter(|at| self.refused >> at & 1 == 0).collect()
    }

    /// The lengths of the probes in this round: at first the longest one alone, which mostly arrives.
    fn round(&mut self) -> Vec<usize> {
        let mut open = self.open();
        if self.rounds == 0 {
            open.truncate(1);
        }
        self.rounds += 1;
        let leaving = open.iter().fold(0, |bits, at| bits | 1 << at);
        self.fresh = leaving & !self.sent;
        self.sent |= leaving;
        open.into_iter().map(|at| self.lens()[at]).collect()
    }

    fn lens(&self) -> &[usize] {
        self.target.as_ref().map_or(&[], |target| &target.lens)
    }
}

/// Handles the datagrams in the socket, up to a limit, since unauthenticated clients may send without end;
/// true if those were all.
pub(super) fn drain(socket: &UdpSocket, room: &mut [u8], mut take: impl FnMut(SocketAddr, &[u8])) -> bool {
    for _ in 0..EARLY_MAX {
        let Ok((len, from)) = socket.recv_from(room) else { return true };
        take(from, &room[..len]);
    }
    false
}

/// Keeps a datagram for later, up to a limit.
pub(super) fn keep(early: &mut Vec<Early>, from: SocketAddr, octets: &[u8]) {
    if early.len() < EARLY_MAX {
        early.push((from, octets.to_vec()));
    }
}

#[cfg(test)]
mod tests;
