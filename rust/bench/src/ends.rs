//! The two ends of a measurement over datagrams, in two processes: their orders, their reports, and the
//! messages between them.
//!
//! Each end announces its receive window, receives that of the other end, reports that it is ready, and
//! begins on order. A packet that arrives before its receiver knows the connection would be refused or lost.

use std::io::{self, BufRead, Lines, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mpjdev_proto::datagram::reliable::settings::Path;
use serde::{Deserialize, Serialize};

use super::rank::RankError;
use super::stream::Goodput;
use super::{messages, unet};

/// Octets of a datagram: what an interface of 1500 octets takes.
pub const DATAGRAM_LEN: usize = 1472;
/// Tags of the messages of a stream, and of what is behind its end.
pub(super) const TAG: i32 = 1;
pub(super) const END: i32 = 2;

/// Tasks of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// End 0 sends for so long.
    Stream(Duration),
    /// A message there and back, so often.
    PingPong(u64),
}

/// By which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Ranks of ours, with what is known of the way.
    Reliable(Path),
    /// As it was in 1997, or with an acknowledgment for each message.
    Unet {
        /// Whether each message is acknowledged at once.
        eager_acks: bool,
    },
}

/// Order to an end.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Its number, 0 or 1.
    pub rank: u32,
    /// Its address.
    pub at: SocketAddr,
    /// The other end's.
    pub peer: SocketAddr,
    /// Number from which both derive the numbers of their connection.
    pub number: u32,
    /// By which machine.
    pub protocol: Protocol,
    /// Octets of a message's elements.
    pub octets: u64,
    /// Task.
    pub task: Task,
}

/// Report of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Octets of messages that have come behind the first one, messages that went there and back, or that
    /// were sent.
    pub done: u64,
    /// In how many nanoseconds.
    pub nanos: u64,
    /// Packets with a sequence number that left for the first time.
    pub sent: u64,
    /// Those that left again.
    pub retransmitted: u64,
    /// Of those, how many the other end had already, as far as is known.
    pub spurious: u64,
    /// Timers that expired spuriously.
    pub timeouts: u64,
    /// Acknowledgments without a message that left.
    pub pure_acks: u64,
    /// Cuts of the congestion window.
    pub cuts: u64,
    /// Of them, those that were taken back.
    pub undone_cuts: u64,
    /// Datagrams that the system had no room for.
    pub dropped: u64,
    /// Microseconds of the smoothed round trip, if it is known.
    pub rtt_us: u64,
    /// Packets that the other end may send ahead.
    pub window: u64,
}

impl Told {
    /// Goodput of a stream.
    pub fn goodput(&self) -> Goodput {
        Goodput { octets: self.done, nanos: self.nanos }
    }
}

/// Is one end: hears from `input`, tells to `output`.
///
/// # Errors
/// The system refuses, messages do not arrive, or the starting process has ended.
pub fn serve(order: &Order, input: impl BufRead, output: impl Write) -> Result<(), RankError> {
    let mut line = Line { lines: input.lines(), output };
    let told = match order.protocol {
        Protocol::Reliable(path) => messages::run(order, path, &mut line)?,
        Protocol::Unet { eager_acks } => unet::run(order, eager_acks, &mut line)?,
    };
    line.tell(&serde_json::to_string(&told).map_err(io::Error::from)?)
}

/// Line to the process that has started an end.
pub(super) struct Line<I, O> {
    lines: Lines<I>,
    output: O,
}

impl<I: BufRead, O: Write> Line<I, O> {
    fn next(&mut self) -> Result<String, RankError> {
        let gone = || RankError::Order("the process that has started this end has ended".into());
        Ok(self.lines.next().ok_or_else(gone)??)
    }

    fn tell(&mut self, text: &str) -> Result<(), RankError> {
        writeln!(self.output, "{text}")?;
        Ok(self.output.flush()?)
    }

    /// Says how many packets this end takes ahead; how many the other one does.
    pub(super) fn exchange(&mut self, window: u16) -> Result<u16, RankError> {
        self.tell(&window.to_string())?;
        let line = self.next()?;
        line.parse().map_err(|_| RankError::Order(format!("no window: {line}")))
    }

    /// Says that this end is ready, and waits until it may begin.
    pub(super) fn ready(&mut self) -> Result<(), RankError> {
        self.tell("ready")?;
        self.next().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, PipeReader, PipeWriter, pipe};
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    /// Two ends that hear of each other; what they tell.
    fn run(protocol: Protocol, task: Task, octets: u64) -> [Told; 2] {
        // Nobody else takes ports of this address meanwhile.
        let any = || UdpSocket::bind((Ipv4Addr::new(127, 6, 5, 3), 0)).expect("a socket");
        let sockets = [any(), any()];
        let addresses = sockets.map(|socket| socket.local_addr().expect("an address"));
        let pipes: [_; 4] = std::array::from_fn(|_| pipe().expect("a pipe"));
        let [(in0, to0), (in1, to1), (from0, out0), (from1, out1)] = pipes;
        let order = |rank: u32| Order {
            rank,
            at: addresses[rank as usize],
            peer: addresses[1 - rank as usize],
            number: 77,
            protocol,
            octets,
            task,
        };
        let serve = |rank, input: PipeReader, output: PipeWriter| {
            serve(&order(rank), BufReader::new(input), output).expect("it is done");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| serve(0, in0, out0));
            scope.spawn(|| serve(1, in1, out1));
            let mut from = [from0, from1].map(|from| BufReader::new(from).lines());
            let mut next = |rank: usize| from[rank].next().expect("a line").expect("a line");
            let mut to = [to0, to1];
            let windows = [next(0), next(1)];
            for (to, window) in to.iter_mut().zip(windows.iter().rev()) {
                writeln!(to, "{window}").expect("told");
            }
            assert_eq!([next(0), next(1)], ["ready", "ready"]);
            for to in to.iter_mut().rev() {
                writeln!(to, "go").expect("told");
            }
            [0, 1].map(|rank| serde_json::from_str(&next(rank)).expect("what it tells"))
        })
    }

    const ALL: [Protocol; 3] = [
        Protocol::Reliable(Path::PRIVATE),
        Protocol::Unet { eager_acks: false },
        Protocol::Unet { eager_acks: true },
    ];

    #[test]
    fn stream_reports_the_octets_it_carried() {
        for protocol in ALL {
            let octets = if matches!(protocol, Protocol::Reliable(_)) { 65_536 } else { 1400 };
            let [giver, taker] = run(protocol, Task::Stream(Duration::from_millis(100)), octets);
            assert!(giver.done > 1 && taker.done > 0, "{giver:?}, {taker:?}");
            assert!(
                taker.done < giver.done * (octets + 8),
                "the first one and those behind the end do not count"
            );
            assert!(giver.sent * DATAGRAM_LEN as u64 > taker.done && giver.dropped == 0, "{giver:?}");
        }
    }

    #[test]
    fn ping_pong_reports_its_round_trips() {
        for protocol in ALL {
            let told = run(protocol, Task::PingPong(20), 8);
            let is_all = |told: &Told| told.done == 20 && told.nanos > 0 && told.sent >= 20;
            assert!(told.iter().all(is_all), "{told:?}");
        }
    }

    /// A message that fits no datagram of 1997 is refused before anything leaves.
    #[test]
    fn unet_messages_fit_a_datagram() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let protocol = Protocol::Unet { eager_acks: false };
        let order =
            Order { rank: 0, at, peer: at, number: 1, protocol, octets: 1500, task: Task::PingPong(1) };
        assert!(matches!(serve(&order, &b"1\ngo\n"[..], Vec::new()), Err(RankError::Order(_))));
    }
}
