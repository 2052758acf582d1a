//! Relay between real sockets with a given impairment.
//!
//! A relay connects pairs of ports. A port is a UDP socket that is connected to one peer, or the far end of a
//! network interface. The relay forwards each packet to the other port of its pair, delays it or drops it, as
//! the model ([`Network`]) decides. The same seed and order of packets give the same decisions.
//!
//! ```text
//! A --> front of B | port 0 --> Network --> port 1 | front of A --> B
//! A <-- front of B | port 0 <-- Network <-- port 1 | front of A <-- B
//! ```
//!
//! A peer sees its port as the other peer, under the address [`Relay::fronts`].

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpjdev_sim::{Counts, Impairment, Network};
use mpjdev_sys::datagram::options;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Length limit of a packet in octets.
const PACKET_LEN: usize = 1 << 16;
/// Packets read from one port before the next port.
const BATCH: usize = 64;
/// Requested octets of a socket's queue.
const QUEUE_LEN: usize = 4 << 20;
/// Octets of the headers of UDP and IPv4, which use a share of the rate.
const HEADERS_LEN: usize = 28;
/// Octets of the headers of UDP and IPv6.
const HEADERS_LEN_V6: usize = 48;

/// Source and destination of packets.
#[derive(Debug)]
pub enum Port {
    /// A socket that is connected to a peer.
    Socket(UdpSocket),
    /// The other end of an interface ([`mpjdev_sys::tunnel`]).
    Interface(File),
}

/// Counts of packets.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Counts of the model for the packets of each port.
    pub counts: Vec<Counts>,
    /// Packets dropped by a full socket queue of the relay. The relay was too slow, and the model did not
    /// count them.
    pub overrun: u64,
    /// Packets that a peer did not receive, since it has ended or its queue is full.
    pub undelivered: u64,
}

/// A running relay, which is a thread.
#[derive(Debug)]
pub struct Relay {
    fronts: Vec<SocketAddr>,
    /// The thread ends when this end is closed.
    stop: UnixStream,
    thread: JoinHandle<io::Result<Totals>>,
}

impl Relay {
    /// Starts a relay between the peers of each pair.
    ///
    /// # Errors
    /// The system gives no sockets, or has no route to a peer.
    pub fn between(
        pairs: &[(SocketAddr, SocketAddr)],
        impairment: Impairment,
        seed: u64,
    ) -> io::Result<Relay> {
        let peers = pairs.iter().flat_map(|pair| [pair.0, pair.1]);
        let sockets = peers.map(front).collect::<io::Result<Vec<UdpSocket>>>()?;
        let fronts = sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>()?;
        Relay::start(sockets.into_iter().map(Port::Socket).collect(), fronts, impairment, seed)
    }

    /// Starts a relay between two interfaces.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn of_interfaces(one: File, other: File, impairment: Impairment, seed: u64) -> io::Result<Relay> {
        Relay::start(vec![Port::Interface(one), Port::Interface(other)], Vec::new(), impairment, seed)
    }

    /// Starts a relay between neighbouring sockets. The caller connects each to its peer.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn of_sockets(sockets: Vec<UdpSocket>, impairment: Impairment, seed: u64) -> io::Result<Relay> {
        Relay::start(sockets.into_iter().map(Port::Socket).collect(), Vec::new(), impairment, seed)
    }

    fn start(
        ports: Vec<Port>,
        fronts: Vec<SocketAddr>,
        impairment: Impairment,
        seed: u64,
    ) -> io::Result<Relay> {
        let (stop, stopped) = UnixStream::pair()?;
        let networks = (0..ports.len() as u64).map(|at| Network::new(impairment, seed.wrapping_add(at)));
        let mut relay_thread =
            RelayThread { networks: networks.collect(), ports, begin: Instant::now(), undelivered: 0 };
        let thread = std::thread::Builder::new().name("mpjdev-relay".into());
        let thread = thread.spawn(move || relay_thread.run(&stopped))?;
        Ok(Relay { fronts, stop, thread })
    }

    /// For each pair the address at which the first peer reaches the second, and the reverse.
    pub fn fronts(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        self.fronts.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    /// Ends the relay. Packets in flight are lost.
    ///
    /// # Errors
    /// The relay has failed.
    pub fn end(self) -> io::Result<Totals> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the relay panicked")))
    }
}

/// A socket that is connected to this peer.
fn front(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any = match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    socket.set_nonblocking(true)?;
    options::set_buffers(socket.as_fd(), QUEUE_LEN, QUEUE_LEN)?;
    Ok(socket)
}

/// A socket for a peer that is not known yet, on the loopback interface.
pub(super) fn front_of_nobody() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    options::set_buffers(socket.as_fd(), QUEUE_LEN, QUEUE_LEN)?;
    Ok(socket)
}

/// State of the relay's thread.
struct RelayThread {
    ports: Vec<Port>,
    /// Model of the packets that each port receives.
    networks: Vec<Network<Arc<[u8]>>>,
    begin: Instant,
    undelivered: u64,
}

impl RelayThread {
    fn run(&mut self, stopped: &UnixStream) -> io::Result<Totals> {
        let mut buffer = vec![0; PACKET_LEN];
        loop {
            let wait = self.deliver();
            let ready = self.wait(stopped.as_fd(), wait)?;
            let Some(ready) = ready else { return self.totals() };
            for at in (0..ready.len()).filter(|at| ready[*at]) {
                self.take(at, &mut buffer)?;
            }
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Delivers the packets that are due. Returns the time until the next one.
    fn deliver(&mut self) -> Option<Duration> {
        let now_ns = self.now_ns();
        let mut next: Option<u64> = None;
        for at in 0..self.ports.len() {
            while let Some(packet) = self.networks[at].poll_deliver(now_ns) {
                // The other one of the pair.
                if self.ports[at ^ 1].write(&packet).is_err() {
                    self.undelivered += 1;
                }
            }
            next = next.into_iter().chain(self.networks[at].next_time_ns()).min();
        }
        next.map(|next_ns| Duration::from_nanos(next_ns.saturating_sub(now_ns)))
    }

    /// Waits until a port is readable or the time has passed. Returns for each port whether it is readable,
    /// or `None` when the relay must end.
    fn wait(&self, stopped: BorrowedFd<'_>, wait: Option<Duration>) -> io::Result<Option<Vec<bool>>> {
        let sources = self.ports.iter().map(Port::as_fd).chain([stopped]);
        let mut ready: Vec<_> = sources.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let wait = wait.map(|wait| Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        });
        match poll(&mut ready, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready: Vec<bool> = ready.iter().map(|entry| !entry.revents().is_empty()).collect();
        Ok((ready.pop() != Some(true)).then_some(ready))
    }

    /// Reads the packets of a port.
    fn take(&mut self, at: usize, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.ports[at].read(buffer) {
                Ok(len) => {
                    let now_ns = self.now_ns();
                    let whole_len = len + self.ports[at].headers_len();
                    self.networks[at].send(now_ns, whole_len, Arc::from(&buffer[..len]));
                }
                Err(error) if is_of_network(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn totals(&self) -> io::Result<Totals> {
        let mut overrun = 0;
        for port in &self.ports {
            if let Port::Socket(socket) = port {
                overrun += u64::from(options::memory(socket.as_fd())?.drops);
            }
        }
        let counts = self.networks.iter().map(Network::counts).collect();
        Ok(Totals { counts, overrun, undelivered: self.undelivered })
    }
}

impl Port {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Port::Socket(socket) => socket.recv(buffer),
            Port::Interface(file) => file.read(buffer),
        }
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<usize> {
        match self {
            Port::Socket(socket) => match socket.send(packet) {
                // The error is that of an earlier datagram, so this one was not sent.
                Err(error) if is_of_network(&error) => socket.send(packet),
                sent => sent,
            },
            Port::Interface(file) => file.write(packet),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Socket(socket) => socket.as_fd(),
            Port::Interface(file) => file.as_fd(),
        }
    }

    /// Octets of the headers that the kernel removes.
    fn headers_len(&self) -> usize {
        match self {
            Port::Socket(socket) if socket.local_addr().is_ok_and(|own| own.is_ipv6()) => HEADERS_LEN_V6,
            Port::Socket(_) => HEADERS_LEN,
            Port::Interface(_) => 0,
        }
    }
}

/// True for an error of an earlier datagram, such as one to a port that is not open yet, or no longer.
fn is_of_network(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

impl Totals {
    /// All ports together.
    pub fn sum(&self) -> Counts {
        self.counts.iter().fold(Counts::default(), |sum, one| Counts {
            sent: sum.sent + one.sent,
            delivered: sum.delivered + one.delivered,
            lost: sum.lost + one.lost,
            dropped: sum.dropped + one.dropped,
            duplicated: sum.duplicated + one.duplicated,
            reordered: sum.reordered + one.reordered,
        })
    }
}

/// Text with one line for each port.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, counts) in self.counts.iter().enumerate() {
            let (pair, direction) = (at / 2, if at % 2 == 0 { "there" } else { "back" });
            let Counts { sent, delivered, lost, dropped, duplicated, reordered } = counts;
            writeln!(
                f,
                "pair {pair}, {direction}: {sent} sent, {delivered} delivered, {lost} lost, {dropped} dropped by a \
                 full queue, {duplicated} duplicated, {reordered} reordered"
            )?;
        }
        write!(f, "the relay itself: {} overrun, {} undelivered", self.overrun, self.undelivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);
    const SEED: u64 = 7;

    /// Two peers that see each other through a relay.
    fn peers(impairment: &str) -> (UdpSocket, UdpSocket, Relay) {
        let any = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let (one, other) = (any(), any());
        let address = |socket: &UdpSocket| socket.local_addr().expect("an address");
        let impairment = impairment.parse().expect("an impairment");
        let relay = Relay::between(&[(address(&one), address(&other))], impairment, SEED).expect("a relay");
        let (of_other, of_one) = relay.fronts().next().expect("a pair");
        one.connect(of_other).expect("connected");
        other.connect(of_one).expect("connected");
        for socket in [&one, &other] {
            socket.set_read_timeout(Some(TIMEOUT)).expect("an option");
        }
        (one, other, relay)
    }

    fn send(socket: &UdpSocket, number: u32) {
        socket.send(&number.to_be_bytes()).expect("sent");
    }

    fn next(socket: &UdpSocket) -> u32 {
        let mut octets = [0; 8];
        assert_eq!(socket.recv(&mut octets).expect("a datagram"), 4);
        u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]])
    }

    #[test]
    fn relay_without_impairment_keeps_all_datagrams_in_order() {
        let (one, other, relay) = peers("");
        for number in 0..100 {
            send(&one, number);
            assert_eq!(next(&other), number);
            send(&other, number + 1000);
            assert_eq!(next(&one), number + 1000);
        }
        let totals = relay.end().expect("totals");
        assert!(totals.counts.iter().all(|counts| (counts.sent, counts.delivered) == (100, 100)), "{totals}");
        assert_eq!((totals.overrun, totals.undelivered), (0, 0));
    }

    #[test]
    fn relay_drops_and_duplicates_like_the_model() {
        const COUNT: u32 = 200;
        let bad = "loss=20%,dup=20%,reorder=4/20%,delay=1ms";
        let (one, other, relay) = peers(bad);
        // Losses and duplicates depend on the seed and the order of packets only.
        let mut model = Network::new(bad.parse().expect("an impairment"), SEED);
        (0..COUNT).for_each(|number| model.send(0, 32, number));
        let mut expected: Vec<u32> = std::iter::from_fn(|| model.poll_deliver(u64::MAX)).collect();
        expected.sort_unstable();
        (0..COUNT).for_each(|number| send(&one, number));
        let mut got: Vec<u32> = expected.iter().map(|_| next(&other)).collect();
        assert!(!got.is_sorted(), "no datagram was overtaken");
        got.sort_unstable();
        assert_eq!(got, expected);
        let totals = relay.end().expect("totals");
        assert_eq!((totals.counts[0], totals.overrun, totals.undelivered), (model.counts(), 0, 0));
        let counts = totals.counts[0];
        assert!(counts.lost > 0 && counts.duplicated > 0 && counts.reordered > 0, "{counts:?}");
        let text = totals.to_string();
        assert!(text.contains(&format!("pair 0, there: 200 sent, {} delivered", got.len())), "{text}");
    }

    #[test]
    fn datagram_is_delayed_by_at_least_the_delay() {
        let (one, other, relay) = peers("delay=30ms");
        let begin = Instant::now();
        send(&one, 5);
        assert_eq!(next(&other), 5);
        assert!(begin.elapsed() >= Duration::from_millis(30));
        relay.end().expect("totals");
    }

    #[test]
    fn relay_survives_the_end_of_a_peer() {
        // No other test uses ports of this address.
        let any = || UdpSocket::bind((Ipv4Addr::new(127, 6, 5, 4), 0)).expect("a socket");
        let (one, other) = (any(), any());
        let address = |socket: &UdpSocket| socket.local_addr().expect("an address");
        let (of_one, of_other) = (address(&one), address(&other));
        let relay = Relay::between(&[(of_one, of_other)], Impairment::NONE, SEED).expect("a relay");
        let front = relay.fronts().next().expect("a pair").0;
        drop(other);
        let sent = |number: u8| one.send_to(&[number], front).expect("sent");
        (0..10).for_each(|number| _ = sent(number));
        // Until the relay has received the ICMP errors it loses some datagrams.
        let other = UdpSocket::bind(of_other).expect("the port is free again");
        other.set_read_timeout(Some(Duration::from_millis(50))).expect("an option");
        let begin = Instant::now();
        let mut octets = [0; 8];
        loop {
            sent(77);
            if other.recv(&mut octets).is_ok() && octets[0] == 77 {
                break;
            }
            assert!(begin.elapsed() < TIMEOUT, "no datagram was received");
        }
        relay.end().expect("totals");
    }

    #[test]
    fn relay_forwards_over_ipv6() {
        let any = || UdpSocket::bind((Ipv6Addr::LOCALHOST, 0));
        let (Ok(one), Ok(other)) = (any(), any()) else {
            eprintln!("NOT TESTED: this machine has no ::1");
            return;
        };
        let address = |socket: &UdpSocket| socket.local_addr().expect("an address");
        let pairs = [(address(&one), address(&other))];
        let relay = Relay::between(&pairs, Impairment::NONE, 1).expect("a relay");
        let (of_other, of_one) = relay.fronts().next().expect("a pair");
        other.set_read_timeout(Some(TIMEOUT)).expect("an option");
        one.send_to(&[1, 2, 3, 4], of_other).expect("sent");
        let mut octets = [0; 8];
        assert_eq!(other.recv_from(&mut octets).expect("a datagram"), (4, of_one));
        relay.end().expect("totals");
    }
}
