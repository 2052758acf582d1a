//! A contestant without a library: two processes with one pair of UDP sockets through the loopback interface.
//!
//! It is what datagrams take at least on this machine, as somebody writes it who knows all messages before:
//! the sockets are connected and never sleep to read, each datagram has a header of 24 octets, and so
//! few are in flight that none is lost. A message of more than one datagram is cut in the way that turns out
//! best on this machine; long runs are left to the kernel to cut and to join.

mod link;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use self::link::{HEADER_WORDS, Link};
use super::plain;
use super::protocol::{Case, Order};
use super::rank::RankError;

/// Octets that go there and back at most while ways to cut are tried.
const TRIAL_LEN: u64 = 2 << 20;
/// Times of an order while ways to cut are tried, at most.
const TRIAL_TIMES: u64 = 50;
/// Trials of each. The best counts.
const TRIALS: usize = 3;

/// Starts the other ranks, which are processes of this command, and is rank 0 of them. Only the first two are
/// connected, the others look on.
///
/// # Errors
/// The system refuses, or the orders cannot be followed.
pub fn serve(socket: &Path, ranks: u32) -> Result<(), RankError> {
    let (own, other) = pair()?;
    plain::serve(socket, ranks, Party::new(0, own)?, other.into(), Some("--udp"))
}

/// One of the other ranks; standard input is rank 1's socket.
///
/// # Errors
/// The orders cannot be followed.
pub fn serve_other(socket: &Path, rank: u32) -> Result<(), RankError> {
    plain::serve_other(socket, rank, |input: OwnedFd| Party::new(rank, input.into()))
}

/// Two sockets that hear nobody but each other.
fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let any = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (own, other) = (any()?, any()?);
    own.connect(other.local_addr()?)?;
    other.connect(own.local_addr()?)?;
    // What somebody else has sent in between.
    for socket in [&own, &other] {
        socket.set_nonblocking(true)?;
        while socket.recv(&mut [0]).is_ok() {}
    }
    Ok((own, other))
}

/// One of the two ranks that exchange messages.
struct Party {
    rank: u32,
    link: Link,
    /// A message, behind room for a header.
    message: Vec<AtomicU64>,
    /// As short as a message may be, behind room for a header.
    answer: Vec<AtomicU64>,
    /// Best cut, in windows or not, by the octets of a message. The other rank has the same keys.
    best: BTreeMap<(bool, u64), usize>,
    /// The way that is taken now.
    cut: usize,
}

fn message(octets: usize) -> Vec<AtomicU64> {
    (0..HEADER_WORDS + octets / 8).map(|_| AtomicU64::new(1)).collect()
}

impl Party {
    fn new(rank: u32, socket: UdpSocket) -> Result<Party, RankError> {
        let link = Link::new(socket)?;
        Ok(Party { rank, link, message: Vec::new(), answer: message(8), best: BTreeMap::new(), cut: 0 })
    }

    /// Tries all ways to cut that make a difference, and takes the best from now on. Both ranks try them in
    /// the same order.
    fn choose(&mut self, order: Order) -> Result<usize, RankError> {
        let ways = self.link.ways(order.octets as usize);
        let times = match order.case {
            Case::Arrays | Case::Direct | Case::Buffers => {
                (TRIAL_LEN / order.octets.max(1)).clamp(1, TRIAL_TIMES)
            }
            _ => 1,
        };
        let mut best = (Duration::MAX, 0);
        for trial in 0..if ways > 1 { TRIALS * ways } else { 0 } {
            self.cut = trial % ways;
            let begin = Instant::now();
            plain::run(self, order, times)?;
            best = best.min((begin.elapsed(), self.cut));
        }
        Ok(best.1)
    }
}

impl plain::Party for Party {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn prepare(&mut self, order: Order) -> Result<(), RankError> {
        let octets = usize::try_from(order.octets).unwrap_or(usize::MAX);
        if self.message.len() != HEADER_WORDS + octets / 8 {
            self.message = message(octets);
        }
        let is_window = matches!(order.case, Case::RateArrays | Case::RateDirect | Case::RateBuffers);
        self.link.want_gso_batches(is_window || self.link.ways(octets) > 1)?;
        let key = (is_window, order.octets);
        self.cut = match self.best.get(&key) {
            Some(cut) => *cut,
            None => self.choose(order)?,
        };
        self.best.insert(key, self.cut);
        Ok(())
    }

    fn send(&mut self) -> Result<(), RankError> {
        // Rank 1 cuts as rank 0 does.
        let cut = if self.rank == 0 { self.cut } else { self.link.cut_seen() };
        self.link.send(&self.message, cut)
    }

    fn receive(&mut self, count: usize) -> Result<(), RankError> {
        self.link.receive((self.message.len() - HEADER_WORDS) * 8 * count)
    }

    fn send_answer(&mut self) -> Result<(), RankError> {
        self.link.send(&self.answer, 0)
    }

    fn receive_answer(&mut self) -> Result<(), RankError> {
        self.link.receive(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks follow orders; gives what is asked of rank 0 at the end.
    fn exchange<T>(orders: &[Order], ask: impl FnOnce(&Party) -> T) -> T {
        let (one, other) = pair().expect("sockets");
        let run = |rank, socket| {
            let mut party = Party::new(rank, socket).expect("a party");
            for order in orders {
                plain::Party::prepare(&mut party, *order).expect("ready");
                plain::run(&mut party, *order, order.times).expect("it runs");
            }
            assert_eq!(party.link.drops().expect("a number"), 0, "datagrams were lost");
            party
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1, other));
            let (party, _other) = (run(0, one), other.join().expect("no panic"));
            ask(&party)
        })
    }

    #[test]
    fn datagram_message_arrives_whole() {
        let mut orders = Vec::new();
        for octets in [8, 1440, 1448, 1456, 65_480, 65_488, 1 << 20] {
            orders.push(Order { case: Case::Arrays, octets, times: 2 });
        }
        for octets in [8, 1456] {
            orders.push(Order { case: Case::RateBuffers, octets, times: 2 });
        }
        exchange(&orders, |party| {
            assert_eq!(party.best.len(), orders.len());
            assert_eq!(party.link.under_way(), 0, "whatever was sent was answered, and so has come");
        });
    }

    #[test]
    fn both_ranks_cut_messages_alike() {
        let (one, other) = pair().expect("sockets");
        let order = Order { case: Case::Arrays, octets: 20_000, times: 1 };
        let party = |rank, socket| {
            let mut party = Party::new(rank, socket).expect("a party");
            plain::Party::prepare(&mut party, order).expect("ready");
            party
        };
        let (mut one, mut other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| party(1, other));
            (party(0, one), other.join().expect("no panic"))
        });
        for (cut, datagrams) in [(0, 14), (1, 3), (2, 1)] {
            one.cut = cut;
            let (of_one, of_other) = (one.link.sent(), other.link.sent());
            std::thread::scope(|scope| {
                let other = scope.spawn(|| plain::run(&mut other, order, 1).expect("it runs"));
                plain::run(&mut one, order, 1).expect("it runs");
                other.join().expect("no panic");
            });
            assert_eq!((one.link.sent() - of_one, other.link.sent() - of_other), (datagrams, datagrams));
        }
    }

    #[test]
    fn short_message_is_one_send_and_one_answer() {
        let times = 100;
        let sent = exchange(&[Order { case: Case::Arrays, octets: 8, times }], |party| party.link.sent());
        assert_eq!(sent, times);
    }

    #[test]
    fn unknown_order_is_refused_and_ended_peer_is_noticed() {
        let (one, other) = pair().expect("sockets");
        let mut party = Party::new(0, one).expect("a party");
        let order = |case| Order { case, octets: 8, times: 1 };
        plain::Party::prepare(&mut party, order(Case::Arrays)).expect("ready");
        assert!(matches!(plain::run(&mut party, order(Case::Ring), 1), Err(RankError::Order(_))));
        drop(other);
        let gone = plain::run(&mut party, order(Case::Arrays), 1).expect_err("nobody is there");
        assert!(gone.to_string().contains("nobody"), "{gone}");
    }
}
