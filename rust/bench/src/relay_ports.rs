//! Ports of a relay between all ranks of a job over UDP. A rank requests its ports over TCP
//! ([`relay_client`](super::relay_client)).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use mpjdev_sim::Impairment;
use rustix::event::{PollFd, PollFlags, poll};

use super::relay::{Relay, Totals, front_of_nobody};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Length limit of a request in octets.
const REQUEST_MAX: u64 = 64;

/// A relay between each pair of ranks.
#[derive(Debug)]
pub struct RelayPorts {
    address: SocketAddr,
    relay: Relay,
    /// The thread ends when this end is closed.
    stop: UnixStream,
    thread: JoinHandle<()>,
}

impl RelayPorts {
    /// Opens the ports of a number of ranks on the loopback interface.
    ///
    /// # Errors
    /// The system gives no sockets or no thread.
    pub fn open(ranks: u32, impairment: Impairment, seed: u64) -> io::Result<RelayPorts> {
        let mut fronts =
            Fronts { ranks: ranks as usize, sockets: Vec::new(), has_asked: vec![false; ranks as usize] };
        let count = fronts.ranks * fronts.ranks.saturating_sub(1);
        let sockets = (0..count).map(|_| front_of_nobody()).collect::<io::Result<Vec<_>>>()?;
        fronts.sockets = sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<_>>()?;
        let relay = Relay::of_sockets(sockets, impairment, seed)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().name("mpjdev-relay-ports".into());
        let thread = thread.spawn(move || fronts.serve(&listener, &stopped))?;
        Ok(RelayPorts { address, relay, stop, thread })
    }

    /// The TCP address at which ranks request their ports.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the relay and returns its counts.
    ///
    /// # Errors
    /// The relay has failed.
    pub fn end(self) -> io::Result<Totals> {
        drop(self.stop);
        let _ = self.thread.join();
        self.relay.end()
    }
}

/// Sockets that represent the peers of each rank. Those of one pair are neighbours: first the socket that the
/// lower rank sees, then that of the higher rank.
#[derive(Debug)]
struct Fronts {
    ranks: usize,
    sockets: Vec<UdpSocket>,
    /// Ranks that have requested their ports.
    has_asked: Vec<bool>,
}

impl Fronts {
    /// Index of the socket that `rank` sees as `peer`.
    fn index(&self, rank: usize, peer: usize) -> usize {
        let (low, high) = (rank.min(peer), rank.max(peer));
        // Pairs of lower ranks come first: n-1 with rank 0, n-2 with rank 1, and so on.
        let before = low * (2 * self.ranks - low - 1) / 2;
        2 * (before + high - low - 1) + usize::from(rank > peer)
    }

    fn serve(&mut self, listener: &TcpListener, stopped: &UnixStream) {
        loop {
            let mut ready =
                [listener.as_fd(), stopped.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let _ = poll(&mut ready, None);
            if !ready[1].revents().is_empty() {
                return;
            }
            if let Ok((stream, _)) = listener.accept() {
                // A rank whose request is invalid gets no answer and reports that.
                let _ = self.answer(&stream);
            }
        }
    }

    /// Answers a rank with the ports at which its peers reach it.
    fn answer(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut line = String::new();
        BufReader::new(stream.take(REQUEST_MAX)).read_line(&mut line)?;
        let ports = self.ports(&line)?;
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        writeln!(stream, "{}", ports.join(" "))
    }

    fn ports(&mut self, request: &str) -> io::Result<Vec<u16>> {
        let numbers: Option<Vec<usize>> = request.split_whitespace().map(|word| word.parse().ok()).collect();
        let nonsense = || io::Error::other(format!("{request:?}"));
        let Some(&[rank, ranks, port]) = numbers.as_deref() else { return Err(nonsense()) };
        if rank >= self.ranks || ranks != self.ranks || std::mem::replace(&mut self.has_asked[rank], true) {
            return Err(nonsense());
        }
        let port = u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(nonsense)?;
        let one = |peer: usize| {
            if peer == rank {
                return Ok(0);
            }
            // The socket now sends to the rank and receives from the rank only.
            self.sockets[self.index(rank, peer)].connect((Ipv4Addr::LOCALHOST, port))?;
            Ok(self.sockets[self.index(peer, rank)].local_addr()?.port())
        };
        (0..self.ranks).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(ports: &RelayPorts, rank: u32, ranks: u32, socket: &UdpSocket) -> Vec<u16> {
        let mut stream = TcpStream::connect(ports.address).expect("a relay");
        let port = socket.local_addr().expect("bound").port();
        writeln!(stream, "{rank} {ranks} {port}").expect("sent");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        line.split_whitespace().map(|word| word.parse().expect("a port")).collect()
    }

    /// Proves that each rank reaches each peer at a port of its own, in both directions.
    #[test]
    fn relay_ports_differ_for_each_pair() {
        const RANKS: u32 = 4;
        let ports = RelayPorts::open(RANKS, Impairment::NONE, 1).expect("a relay");
        let socket = |_| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
            socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            socket
        };
        let sockets: Vec<UdpSocket> = (0..RANKS).map(socket).collect();
        let ports_of: Vec<_> =
            (0..).zip(&sockets).map(|(rank, socket)| ask(&ports, rank, RANKS, socket)).collect();
        for (rank, one) in sockets.iter().enumerate() {
            assert_eq!(ports_of[rank][rank], 0);
            for (peer, other) in sockets.iter().enumerate().filter(|(peer, _)| *peer != rank) {
                // A rank sends the ports to its peers.
                let octets = [rank as u8, peer as u8];
                one.send_to(&octets, (Ipv4Addr::LOCALHOST, ports_of[peer][rank])).expect("sent");
                let mut got = [0; 3];
                let (len, from) = other.recv_from(&mut got).expect("a datagram");
                assert_eq!((len, got[..2].to_vec(), from.port()), (2, octets.to_vec(), ports_of[rank][peer]));
            }
        }
        assert_eq!(ask(&ports, 0, RANKS, &sockets[0]), Vec::<u16>::new(), "a rank asks once");
        assert_eq!(ask(&ports, 4, RANKS, &sockets[0]), Vec::<u16>::new(), "there is no such rank");
        let totals = ports.end().expect("totals");
        assert_eq!(totals.counts.iter().map(|counts| counts.delivered).sum::<u64>(), 12);
    }
}
