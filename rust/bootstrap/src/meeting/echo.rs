//! The echo of a pair of ranks: before the first packet, each of both finds out that datagrams arrive in both directions (5.10), and how
//! long they may be (5.2): some paths drop long datagrams without a word.
//!
//! Each rank sends probes of several lengths until the other one says on their connection that the longest has come, or until that has
//! failed several times. An answer is one octet, and only on the connection. A stranger cannot make a probe: it names the connection.
//! Nothing is left on the connection afterwards, and no probe leaves any more.
//!
//! ```text
//! on the connection    "0" ... "9"  a probe of the reader has come that is at least as long as the first, second ... of its lengths
//!                      "d"          answers "e", unless "0" was said: no more of these
//!                      "e"          no more probes leave
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use mpjdev_transport::udp::probe::{self, Early};
use mpjdev_transport::udp::shortening::LEN_SAFE;

/// How long probes leave that nobody hears.
pub const ECHO_TIME: Duration = Duration::from_secs(3);
/// Rounds of probes that leave at least, also of a rank that gets no processor for that long.
const ROUNDS_MIN: u32 = 16;
/// How long a probe may arrive after the word that it was the last one.
const GRACE: Duration = Duration::from_secs(1);
/// Time between the first two rounds. It doubles up to the second one.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(160)];
/// How long, and how many times, longer probes leave behind the word that a shorter one has come.
const LONGER_TIME: Duration = Duration::from_secs(1);
const LONGER_ROUNDS: u32 = 8;
/// Octets of datagrams that paths take which do not take the longest: Ethernet with long frames, Ethernet, and tunnels in it.
const LENS_SHORTER: [usize; 4] = [8968, 1472, 1368, LEN_SAFE];
/// Datagrams of ranks that have left the meeting, kept for later at most; others leave again.
const EARLY_MAX: usize = 1024;
/// On the connection: a probe of the reader has come, as long as its longest ones.
pub(super) const LONGEST: u8 = b'0';
/// No more is said of the reader's probes.
pub(super) const DONE: u8 = b'd';
/// No more probes leave.
pub(super) const ENDED: u8 = b'e';

/// Lengths of probes, the longest first, where datagrams of `len` octets are wanted. Both ranks of a pair have the same. Where nothing
/// is to be proved of lengths, it is the shortest one.
pub(super) fn lens(len: Option<usize>) -> Vec<usize> {
    let longer = len.into_iter().filter(|len| *len > probe::LEN);
    let shorter = LENS_SHORTER.into_iter().filter(|shorter| len.is_some_and(|len| *shorter < len));
    longer.chain(shorter).chain([probe::LEN]).collect()
}

/// What a rank is to do now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// Octets of the probes that leave.
    pub(super) probes: Vec<usize>,
    /// What is said on the connection.
    pub(super) words: Vec<u8>,
}

/// Where probes go, and what they are.
#[derive(Debug)]
struct Target {
    address: SocketAddr,
    /// The connection that they name.
    theirs: u64,
    /// Their octets, the longest first.
    lens: Vec<usize>,
}

/// What is known of one pair. It reads no clock and has no socket.
#[derive(Debug)]
pub(super) struct Echo {
    /// In probes that come.
    ours: u64,
    /// None before the peer has said it.
    target: Option<Target>,
    /// When the first probe left.
    begun: Option<Instant>,
    next_at: Option<Instant>,
    pause: Duration,
    rounds: u32,
    /// Bit k: a probe of the k-th length has left, and the system has refused one.
    sent: u16,
    refused: u16,
    /// Those that left for the first time in this round.
    fresh: u16,
    /// Where the first probe of the peer came from, and the octets of the longest one.
    heard: Option<(SocketAddr, usize)>,
    /// Which length was said to have come, and that no other one is said.
    said: Option<usize>,
    has_said_done: bool,
    has_said_ended: bool,
    /// The longest of this rank's probes that has come, as the peer says; when it first said so, and in which round.
    reached: Option<usize>,
    reached_since: Option<(Instant, u32)>,
    is_peer_done: bool,
    peer_ended_at: Option<Instant>,
}

impl Echo {
    /// Of a peer that puts this connection id into what it sends.
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
            heard: None,
            said: None,
            has_said_done: false,
            has_said_ended: false,
            reached: None,
            reached_since: None,
            is_peer_done: false,
            peer_ended_at: None,
        }
    }

    /// The peer has said where its datagrams are to go; [`lens`] are tried.
    pub(super) fn begin(&mut self, address: SocketAddr, theirs: u64, lens: Vec<usize>) {
        self.target = Some(Target { address, theirs, lens });
    }

    pub(super) fn has_begun(&self) -> bool {
        self.target.is_some()
    }

    /// Where probes go, and which connection they name.
    pub(super) fn to(&self) -> Option<(SocketAddr, u64)> {
        self.target.as_ref().map(|target| (target.address, target.theirs))
    }

    /// Whether no more probes leave.
    pub(super) fn has_ended(&self) -> bool {
        self.has_said_ended
    }

    /// In probes of the peer.
    pub(super) fn ours(&self) -> u64 {
        self.ours
    }

    /// A probe of the peer has come, with so many octets.
    pub(super) fn hear(&mut self, from: SocketAddr, len: usize) {
        let (_, longest) = self.heard.get_or_insert((from, len));
        *longest = len.max(*longest);
    }

    /// The system does not let a probe with so many octets leave.
    pub(super) fn refuse(&mut self, len: usize) {
        let at = self.lens().iter().position(|other| *other == len);
        let bit = at.map_or(0, |at| 1 << at);
        // An earlier one of that length may be on its way still, and its answer.
        self.sent &= !(bit & self.fresh);
        self.refused |= bit;
    }

    /// Where packets of the peer come from: behind a router that changes ports, or a socket of many addresses, that may be another
    /// address than the one it has said.
    pub(super) fn source(&self) -> Option<SocketAddr> {
        self.heard.map(|(from, _)| from)
    }

    /// Whether both have said everything.
    pub(super) fn is_done(&self) -> bool {
        let is_told = self.said == Some(0) || self.has_said_done;
        let has_answer = self.reached == Some(0) || self.is_peer_done;
        is_told && has_answer && self.has_said_ended && self.peer_ended_at.is_some()
    }

    /// Octets of the longest probe of this rank that has come, and of the peer's.
    pub(super) fn proved(&self) -> Option<[usize; 2]> {
        let len = |at: Option<usize>| self.lens().get(at?).copied();
        Some([len(self.reached)?, len(self.said)?])
    }

    /// Whether this rank's datagrams do not arrive, for all that it knows.
    pub(super) fn is_unheard(&self) -> bool {
        self.rounds > 0 && self.reached.is_none()
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

    /// A word of the peer; false if there is no such word, or not again, or if it is not true.
    pub(super) fn take_word(&mut self, word: u8, now: Instant) -> bool {
        match word {
            b'0'..=b'9' => return self.reach(usize::from(word - LONGEST), now),
            DONE if self.has_said_ended && !self.is_peer_done && self.reached.is_some_and(|at| at > 0) => {
                self.is_peer_done = true;
            }
            ENDED if self.peer_ended_at.is_none() => self.peer_ended_at = Some(now),
            _ => return false,
        }
        true
    }

    /// A probe of this length has come; false if that cannot be.
    fn reach(&mut self, at: usize, now: Instant) -> bool {
        let is_longer = self.reached.is_none_or(|reached| at < reached);
        if !is_longer || self.is_peer_done || self.sent >> at & 1 == 0 {
            return false;
        }
        self.reached = Some(at);
        self.reached_since.get_or_insert((now, self.rounds));
        true
    }

    /// What is to be done now. `is_all`: what had come by `now` was taken.
    pub(super) fn poll(&mut self, now: Instant, is_all: bool) -> Turn {
        let mut turn = Turn::default();
        if self.target.is_none() {
            return turn;
        }
        self.answer(is_all, &mut turn.words);
        if self.has_said_ended {
            return turn;
        }
        if self.has_tried(now) {
            self.has_said_ended = true;
            self.next_at = None;
            turn.words.push(ENDED);
        } else if self.next_at.is_none_or(|at| at <= now) {
            turn.probes = self.round();
            self.next_at = Some(now + self.pause);
            self.pause = (2 * self.pause).min(PAUSES[1]);
        }
        turn
    }

    /// Says of the peer's probes what has not been said.
    fn answer(&mut self, is_all: bool, words: &mut Vec<u8>) {
        if self.has_said_done {
            return;
        }
        let longest = self.heard.and_then(|(_, len)| self.lens().iter().position(|other| *other <= len));
        if let Some(at) = longest.filter(|at| self.said.is_none_or(|said| *at < said)) {
            self.said = Some(at);
            words.push(LONGEST + at as u8);
        }
        // A rank that was held up finds probes in its socket that came before the last word.
        if self.peer_ended_at.is_some() && is_all && self.said.is_some_and(|said| said > 0) {
            self.has_said_done = true;
            words.push(DONE);
        }
    }

    /// Whether nothing is to be found out any more.
    fn has_tried(&mut self, now: Instant) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let Some((since, round)) = self.reached_since else {
            return self.rounds >= ROUNDS_MIN && now.saturating_duration_since(begun) >= ECHO_TIME;
        };
        let has_failed = self.rounds - round >= LONGER_ROUNDS
            && now.saturating_duration_since(since) >= LONGER_TIME
            && self.next_at.is_none_or(|at| at <= now);
        has_failed || self.open().is_empty()
    }

    /// Which lengths may be found to arrive still.
    fn open(&self) -> Vec<usize> {
        let end = self.reached.unwrap_or(self.lens().len());
        (0..end).filter(|at| self.refused >> at & 1 == 0).collect()
    }

    /// Lengths of the probes that leave now: at first the longest one alone, which mostly arrives.
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
mod tests;
