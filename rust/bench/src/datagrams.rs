//! Plain UDP sockets as a contestant: two processes with one pair of sockets over the loopback interface.
//!
//! This is a lower bound for datagrams on this machine, since both sides know all messages in advance. The
//! sockets are connected and never sleep to read. Each datagram has a header of 24 octets. A window keeps the
//! datagrams in flight so few that none is lost. A longer message is cut into datagrams of the length that is
//! fastest on this machine, with GSO and GRO.

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
use super::protocol::{Case, RunCommand};
use super::rank::RankError;

/// Limit of the octets of one trial of a datagram length.
const TRIAL_LEN: u64 = 2 << 20;
/// Limit of the repetitions of one trial.
const TRIAL_TIMES: u64 = 50;
/// Trials of each length. The fastest counts.
const TRIALS: usize = 3;

/// Runs rank 0 in this process and starts the other ranks as processes of this program. Ranks from 2 on are
/// idle.
///
/// # Errors
/// A system call failed, or a command cannot be executed.
pub fn serve(socket: &Path, ranks: u32) -> Result<(), RankError> {
    let (own, other) = pair()?;
    plain::serve(socket, ranks, UdpEndpoint::new(0, own)?, other.into(), Some("--udp"))
}

/// Runs another rank. The socket of rank 1 is its standard input.
///
/// # Errors
/// A command cannot be executed.
pub fn serve_other(socket: &Path, rank: u32) -> Result<(), RankError> {
    plain::serve_other(socket, rank, |input: OwnedFd| UdpEndpoint::new(rank, input.into()))
}

/// Two sockets that are connected to each other.
fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let any = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (own, other) = (any()?, any()?);
    own.connect(other.local_addr()?)?;
    other.connect(own.local_addr()?)?;
    // Datagrams of other programs, received before the sockets were connected, are discarded.
    for socket in [&own, &other] {
        socket.set_nonblocking(true)?;
        while socket.recv(&mut [0]).is_ok() {}
    }
    Ok((own, other))
}

/// One of the two ranks that exchange messages.
struct UdpEndpoint {
    rank: u32,
    link: Link,
    /// A message after room for a header.
    message: Vec<AtomicU64>,
    /// The shortest message after room for a header.
    answer: Vec<AtomicU64>,
    /// Fastest cut by kind (window or not) and octets of a message. The other rank has the same keys.
    best: BTreeMap<(bool, u64), usize>,
    /// Index of the current cut.
    cut: usize,
}

fn message(octets: usize) -> Vec<AtomicU64> {
    (0..HEADER_WORDS + octets / 8).map(|_| AtomicU64::new(1)).collect()
}

impl UdpEndpoint {
    fn new(rank: u32, socket: UdpSocket) -> Result<UdpEndpoint, RankError> {
        let link = Link::new(socket)?;
        Ok(UdpEndpoint { rank, link, message: Vec::new(), answer: message(8), best: BTreeMap::new(), cut: 0 })
    }

    /// Tries all cuts that differ for this length and returns the fastest. Both ranks try them in the same
    /// order.
    fn choose(&mut self, command: RunCommand) -> Result<usize, RankError> {
        let cuts = self.link.cuts(command.octets as usize);
        let times = match command.case {
            Case::Arrays | Case::Direct | Case::Mpi | Case::Buffers => {
                (TRIAL_LEN / command.octets.max(1)).clamp(1, TRIAL_TIMES)
            }
            _ => 1,
        };
        let mut best = (Duration::MAX, 0);
        for trial in 0..if cuts > 1 { TRIALS * cuts } else { 0 } {
            self.cut = trial % cuts;
            let begin = Instant::now();
            plain::run(self, command, times)?;
            best = best.min((begin.elapsed(), self.cut));
        }
        Ok(best.1)
    }
}

impl plain::Endpoint for UdpEndpoint {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn prepare(&mut self, command: RunCommand) -> Result<(), RankError> {
        let octets = usize::try_from(command.octets).unwrap_or(usize::MAX);
        if self.message.len() != HEADER_WORDS + octets / 8 {
            self.message = message(octets);
        }
        let is_window = matches!(
            command.case,
            Case::RateArrays | Case::RateDirect | Case::RateBuffers | Case::RateRequests | Case::RateMpi
        );
        self.link.want_gso_batches(is_window || self.link.cuts(octets) > 1)?;
        let key = (is_window, command.octets);
        self.cut = match self.best.get(&key) {
            Some(cut) => *cut,
            None => self.choose(command)?,
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

    /// Runs commands on two ranks and returns the result of `ask` for rank 0.
    fn exchange<T>(commands: &[RunCommand], ask: impl FnOnce(&UdpEndpoint) -> T) -> T {
        let (one, other) = pair().expect("sockets");
        let run = |rank, socket| {
            let mut endpoint = UdpEndpoint::new(rank, socket).expect("an endpoint");
            for command in commands {
                plain::Endpoint::prepare(&mut endpoint, *command).expect("ready");
                plain::run(&mut endpoint, *command, command.times).expect("it runs");
            }
            assert_eq!(endpoint.link.drops().expect("a number"), 0, "datagrams were lost");
            endpoint
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1, other));
            let (endpoint, _other) = (run(0, one), other.join().expect("no panic"));
            ask(&endpoint)
        })
    }

    #[test]
    fn datagram_message_arrives_whole() {
        let mut commands = Vec::new();
        for octets in [8, 1440, 1448, 1456, 65_480, 65_488, 1 << 20] {
            commands.push(RunCommand { case: Case::Arrays, octets, times: 2 });
        }
        for octets in [8, 1456] {
            commands.push(RunCommand { case: Case::RateBuffers, octets, times: 2 });
        }
        exchange(&commands, |endpoint| {
            assert_eq!(endpoint.best.len(), commands.len());
            assert_eq!(endpoint.link.in_flight(), 0, "an answer acks all datagrams");
        });
    }

    #[test]
    fn both_ranks_cut_messages_alike() {
        let (one, other) = pair().expect("sockets");
        let command = RunCommand { case: Case::Arrays, octets: 20_000, times: 1 };
        let endpoint = |rank, socket| {
            let mut endpoint = UdpEndpoint::new(rank, socket).expect("an endpoint");
            plain::Endpoint::prepare(&mut endpoint, command).expect("ready");
            endpoint
        };
        let (mut one, mut other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| endpoint(1, other));
            (endpoint(0, one), other.join().expect("no panic"))
        });
        for (cut, datagrams) in [(0, 14), (1, 3), (2, 1)] {
            one.cut = cut;
            let (of_one, of_other) = (one.link.sent(), other.link.sent());
            std::thread::scope(|scope| {
                let other = scope.spawn(|| plain::run(&mut other, command, 1).expect("it runs"));
                plain::run(&mut one, command, 1).expect("it runs");
                other.join().expect("no panic");
            });
            assert_eq!((one.link.sent() - of_one, other.link.sent() - of_other), (datagrams, datagrams));
        }
    }

    #[test]
    fn short_message_is_one_send_and_one_answer() {
        let times = 100;
        let sent =
            exchange(&[RunCommand { case: Case::Arrays, octets: 8, times }], |endpoint| endpoint.link.sent());
        assert_eq!(sent, times);
    }

    #[test]
    fn unknown_command_is_refused_and_ended_peer_is_noticed() {
        let (one, other) = pair().expect("sockets");
        let mut endpoint = UdpEndpoint::new(0, one).expect("an endpoint");
        let command = |case| RunCommand { case, octets: 8, times: 1 };
        plain::Endpoint::prepare(&mut endpoint, command(Case::Arrays)).expect("ready");
        assert!(matches!(plain::run(&mut endpoint, command(Case::Ring), 1), Err(RankError::Command(_))));
        drop(other);
        let error = plain::run(&mut endpoint, command(Case::Arrays), 1).expect_err("the peer has ended");
        assert!(error.to_string().contains("no socket"), "{error}");
    }
}
