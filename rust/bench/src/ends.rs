//! The two ends of a measurement over datagrams, in two processes: configuration, report, and the lines that
//! each exchanges with its parent.
//!
//! Each end states its receive window, receives that of its peer, states that it is ready, and begins when
//! its parent says so. A packet that arrived before its receiver knew the connection would be refused or
//! lost.

use std::io::{self, BufRead, Lines, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mpjdev_proto::datagram::reliable::settings::Path;
use serde::{Deserialize, Serialize};

use super::rank::RankError;
use super::stream::Goodput;
use super::{messages, unet};

/// Octets of a datagram: 1500 of an Ethernet frame less the headers of IPv4 and UDP.
pub const DATAGRAM_LEN: usize = 1472;
/// Tags of the messages of a stream, and of those that end it.
pub(super) const TAG: i32 = 1;
pub(super) const END: i32 = 2;

/// Tasks of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// End 0 sends for this time.
    Stream(Duration),
    /// This number of round trips of one message.
    PingPong(u64),
}

/// Protocol of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol of the UDP transport, with its settings for the path.
    Reliable(Path),
    /// The U-Net protocol of 1997.
    Unet {
        /// Whether each message is acked at once.
        eager_acks: bool,
    },
}

/// Configuration of an end.
#[derive(Clone, Copy, Debug)]
pub struct EndConfig {
    /// Rank of this end, 0 or 1.
    pub rank: u32,
    /// Address of this end.
    pub at: SocketAddr,
    /// Address of the other end.
    pub peer: SocketAddr,
    /// Number from which both derive the numbers of their connection.
    pub number: u32,
    /// Protocol of the packets.
    pub protocol: Protocol,
    /// Octets of a message's elements.
    pub octets: u64,
    /// Task of both ends.
    pub task: Task,
}

/// Report of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReport {
    /// Octets received after the first message, round trips, or messages sent, by task and rank.
    pub done: u64,
    /// Time of that in nanoseconds.
    pub nanos: u64,
    /// Packets with a sequence number, without their retransmissions.
    pub sent: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Retransmissions that were spurious, as far as the sender knows.
    pub spurious: u64,
    /// Timeouts of the retransmission timer.
    pub timeouts: u64,
    /// Acks without a message.
    pub pure_acks: u64,
    /// Reductions of the congestion window.
    pub cuts: u64,
    /// Reductions that were undone.
    pub undone_cuts: u64,
    /// Datagrams that the socket's queue dropped.
    pub dropped: u64,
    /// Smoothed RTT in microseconds; 0 if unknown.
    pub rtt_us: u64,
    /// Receive window in packets.
    pub window: u64,
}

impl EndReport {
    /// Goodput of a stream.
    pub fn goodput(&self) -> Goodput {
        Goodput { octets: self.done, nanos: self.nanos }
    }
}

/// Runs one end, whose parent writes to `input` and reads from `output`.
///
/// # Errors
/// A system call failed, messages do not arrive, or the parent has ended.
pub fn serve(config: &EndConfig, input: impl BufRead, output: impl Write) -> Result<(), RankError> {
    let mut parent = ParentPipe { lines: input.lines(), output };
    let report = match config.protocol {
        Protocol::Reliable(path) => messages::run(config, path, &mut parent)?,
        Protocol::Unet { eager_acks } => unet::run(config, eager_acks, &mut parent)?,
    };
    parent.write_line(&serde_json::to_string(&report).map_err(io::Error::from)?)
}

/// Pipes to the parent of an end, with lines of text.
pub(super) struct ParentPipe<I, O> {
    lines: Lines<I>,
    output: O,
}

impl<I: BufRead, O: Write> ParentPipe<I, O> {
    fn next(&mut self) -> Result<String, RankError> {
        let ended = || RankError::Command("the parent of this end has ended".into());
        Ok(self.lines.next().ok_or_else(ended)??)
    }

    fn write_line(&mut self, text: &str) -> Result<(), RankError> {
        writeln!(self.output, "{text}")?;
        Ok(self.output.flush()?)
    }

    /// States the receive window of this end and returns that of the other end.
    pub(super) fn exchange(&mut self, window: u16) -> Result<u16, RankError> {
        self.write_line(&window.to_string())?;
        let line = self.next()?;
        line.parse().map_err(|_| RankError::Command(format!("not a window: {line}")))
    }

    /// States that this end is ready, and waits for the start.
    pub(super) fn ready(&mut self) -> Result<(), RankError> {
        self.write_line("ready")?;
        self.next().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, PipeReader, PipeWriter, pipe};
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    /// Runs two ends and returns their reports.
    fn run(protocol: Protocol, task: Task, octets: u64) -> [EndReport; 2] {
        // No other test uses ports of this address.
        let any = || UdpSocket::bind((Ipv4Addr::new(127, 6, 5, 3), 0)).expect("a socket");
        let sockets = [any(), any()];
        let addresses = sockets.map(|socket| socket.local_addr().expect("an address"));
        let pipes: [_; 4] = std::array::from_fn(|_| pipe().expect("a pipe"));
        let [(in0, to0), (in1, to1), (from0, out0), (from1, out1)] = pipes;
        let config = |rank: u32| EndConfig {
            rank,
            at: addresses[rank as usize],
            peer: addresses[1 - rank as usize],
            number: 77,
            protocol,
            octets,
            task,
        };
        let serve = |rank, input: PipeReader, output: PipeWriter| {
            serve(&config(rank), BufReader::new(input), output).expect("it is done");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| serve(0, in0, out0));
            scope.spawn(|| serve(1, in1, out1));
            let mut from = [from0, from1].map(|from| BufReader::new(from).lines());
            let mut next = |rank: usize| from[rank].next().expect("a line").expect("a line");
            let mut to = [to0, to1];
            let windows = [next(0), next(1)];
            for (to, window) in to.iter_mut().zip(windows.iter().rev()) {
                writeln!(to, "{window}").expect("written");
            }
            assert_eq!([next(0), next(1)], ["ready", "ready"]);
            for to in to.iter_mut().rev() {
                writeln!(to, "go").expect("written");
            }
            [0, 1].map(|rank| serde_json::from_str(&next(rank)).expect("a report"))
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
            let [sender, receiver] = run(protocol, Task::Stream(Duration::from_millis(100)), octets);
            assert!(sender.done > 1 && receiver.done > 0, "{sender:?}, {receiver:?}");
            assert!(
                receiver.done < sender.done * (octets + 8),
                "the first message and those of the end do not count"
            );
            assert!(sender.sent * DATAGRAM_LEN as u64 > receiver.done && sender.dropped == 0, "{sender:?}");
        }
    }

    #[test]
    fn ping_pong_reports_its_round_trips() {
        for protocol in ALL {
            let reports = run(protocol, Task::PingPong(20), 8);
            let is_all = |reports: &EndReport| reports.done == 20 && reports.nanos > 0 && reports.sent >= 20;
            assert!(reports.iter().all(is_all), "{reports:?}");
        }
    }

    /// A message that does not fit a datagram is refused before a packet is sent.
    #[test]
    fn unet_messages_fit_a_datagram() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let protocol = Protocol::Unet { eager_acks: false };
        let config =
            EndConfig { rank: 0, at, peer: at, number: 1, protocol, octets: 1500, task: Task::PingPong(1) };
        assert!(matches!(serve(&config, &b"1\ngo\n"[..], Vec::new()), Err(RankError::Command(_))));
    }
}
