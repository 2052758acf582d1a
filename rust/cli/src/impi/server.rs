//! The driver of the startup server: sockets, clock and signals around the pure machine.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use mpjdev_proto::impi::startup::{Failure, Fault, Output, Server, ServerEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tracing::{debug, info, warn};

use super::penalty::Penalties;
use crate::signals;

/// The prefix of the server's lines.
pub const NAME: &str = "mpjdev impi-server";

/// Octets of one read.
const PIECE: usize = 64 << 10;
/// Time without accepting after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that are accepted before the others are read. Far fewer than may be open, so a connection that
/// sends at once is read before it becomes the oldest silent one.
const ACCEPTS_MAX: usize = 16;
/// Maximum number of refusals that the server reports.
const REPORTED_MAX: u32 = 1000;

/// The end of a server.
#[derive(Debug)]
pub enum Ending {
    /// All clients have finished.
    Finished,
    /// The job has failed.
    Failed(Failure),
    /// This signal has arrived.
    Signal(i32),
}

/// The driver of a startup server that listens.
#[derive(Debug)]
pub struct ServerDriver {
    listener: TcpListener,
    server: Server,
    peers: BTreeMap<u64, Peer>,
    /// Connections that were refused for a wrong key and close after a delay. Their octets are not read.
    penalties: Penalties<TcpStream>,
    /// The number of the next connection.
    next_conn: u64,
    begun: Instant,
    /// Streams that receive an octet for each signal.
    signals: Vec<(i32, UnixStream)>,
    /// The end of a pause in accepting.
    pause_until: Option<Instant>,
    refusals: u32,
    ending: Option<Ending>,
}

#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    address: SocketAddr,
    rank: Option<u32>,
    /// Octets to send. Connections with the same octets share them, which bounds the memory.
    queue: VecDeque<Bytes>,
}

impl ServerDriver {
    /// Listens. The server's clock begins at 0 now.
    ///
    /// # Errors
    /// The address is not available.
    pub fn bind(address: SocketAddr, server: Server) -> io::Result<ServerDriver> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let ends = signals::caught().into_iter().filter(|signal| [SIGINT, SIGTERM, SIGHUP].contains(signal));
        let signals = ends.map(|signal| {
            let (ours, notify) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, notify)?;
            Ok((signal, ours))
        });
        Ok(ServerDriver {
            signals: signals.collect::<io::Result<_>>()?,
            listener,
            server,
            peers: BTreeMap::new(),
            penalties: Penalties::default(),
            next_conn: 0,
            begun: Instant::now(),
            pause_until: None,
            refusals: 0,
            ending: None,
        })
    }

    /// The address for the clients: the listening one, or the machine's if the server listens on all.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let mut address = self.listener.local_addr()?;
        if address.ip().is_unspecified() {
            address.set_ip(own_address(address.ip()));
        }
        Ok(address)
    }

    /// Serves the job to its end.
    ///
    /// # Errors
    /// Polling fails.
    pub fn run(mut self) -> io::Result<Ending> {
        if let Ok(address) = self.address() {
            info!(target: "mpjdev::server", %address, "server listens");
        }
        loop {
            self.carry_out();
            if let Some(ending) = self.ending.take() {
                return Ok(ending);
            }
            let (is_listener_ready, ready) = self.wait()?;
            self.listen_to_signals();
            // Open connections are read before new ones are accepted: those that have ended make room.
            ready.into_iter().for_each(|conn| self.read(conn));
            if is_listener_ready {
                let _ = (0..ACCEPTS_MAX).try_for_each(|at| self.accept(at == 0));
            }
            let now_ms = self.now_ms();
            self.server.handle_timeout(now_ms);
            self.penalties.release(now_ms).for_each(drop);
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sleeps until an event; returns whether a connection waits, and the connections with octets to read.
    fn wait(&mut self) -> io::Result<(bool, Vec<u64>)> {
        let now = Instant::now();
        self.pause_until = self.pause_until.filter(|until| now < *until);
        let deadlines = [self.server.next_deadline(), self.penalties.next_deadline()];
        let deadline = deadlines.into_iter().flatten().min().and_then(|ms| {
            // Never earlier than the deadline: the machines count whole milliseconds.
            self.begun.checked_add(Duration::from_millis(ms))
        });
        let most = deadline.into_iter().chain(self.pause_until).min();
        let most = most.map(|at| at.saturating_duration_since(now) + Duration::from_millis(1));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        let may_accept = self.pause_until.is_none() && !self.penalties.is_full();
        let accepts = if may_accept { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![PollFd::new(&self.listener, accepts)];
        fds.extend(self.signals.iter().map(|(_, stream)| PollFd::new(stream, PollFlags::IN)));
        let first_peer = fds.len();
        fds.extend(self.peers.values().map(|peer| {
            let waits = if peer.queue.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&peer.stream, PollFlags::IN | waits)
        }));
        match poll(&mut fds, most.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok((false, Vec::new())),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().intersects(!PollFlags::OUT);
        let conns = self.peers.keys().zip(&fds[first_peer..]);
        let ready = conns.filter(|(_, fd)| is_ready(fd)).map(|(conn, _)| *conn).collect();
        Ok((is_ready(&fds[0]), ready))
    }

    fn listen_to_signals(&mut self) {
        for (signal, stream) in &mut self.signals {
            if stream.read(&mut [0; 16]).is_ok_and(|n| n > 0) {
                self.ending = Some(Ending::Signal(*signal));
            }
        }
    }

    /// Accepts one connection; `None` if no more connections wait. `is_first` states that one waits for
    /// certain.
    fn accept(&mut self, is_first: bool) -> Option<()> {
        let (stream, address) = match self.listener.accept() {
            Ok(accepted) => accepted,
            // The system reports this even if no connection waits. The server closes one connection for each
            // that waits, after it has read the others.
            Err(error) if is_out_of_room(&error) && (!is_first || self.server.make_room()) => {
                self.carry_out();
                return None;
            }
            Err(error) => {
                let none = [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::ConnectionAborted];
                if !none.contains(&error.kind()) {
                    self.report_refusal(&format!("cannot accept a connection: {error}"));
                    self.pause_until = Some(Instant::now() + PAUSE);
                }
                return None;
            }
        };
        super::set_options(&stream);
        // A blocking socket would hold up all others.
        if stream.set_nonblocking(true).is_ok() {
            let conn = self.next_conn;
            self.next_conn += 1;
            let peer = Peer { stream, address, rank: None, queue: VecDeque::new() };
            self.peers.insert(conn, peer);
            let source = source_of(address.ip());
            debug!(target: "mpjdev::server", %address, "connection is accepted");
            self.server.handle_connected(self.now_ms(), conn, source);
        }
        self.carry_out();
        (!self.penalties.is_full()).then_some(())
    }

    fn read(&mut self, conn: u64) {
        let (now_ms, mut octets) = (self.now_ms(), vec![0; PIECE]);
        // Another connection's octets may have ended the job and closed this one.
        let Some(peer) = self.peers.get_mut(&conn) else { return };
        match peer.stream.read(&mut octets) {
            Ok(n) if n > 0 => self.server.handle_octets(now_ms, conn, &octets[..n]),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
            Ok(_) | Err(_) => self.server.handle_eof(now_ms, conn),
        }
        self.carry_out();
    }

    /// Carries out the machine's outputs, and sends what the sockets take.
    fn carry_out(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Send { conn, octets } => {
                    if let Some(peer) = self.peers.get_mut(&conn) {
                        peer.queue.push_back(octets);
                    }
                }
                Output::Close { conn, fault } => self.close(conn, fault),
                Output::Event(event) => self.handle_event(event),
            }
        }
        self.peers.values_mut().for_each(Peer::send);
    }

    fn handle_event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Joined { conn, rank } => {
                info!(target: "mpjdev::server", client = rank, "client has joined");
                if let Some(peer) = self.peers.get_mut(&conn) {
                    peer.rank = Some(rank);
                }
            }
            ServerEvent::Over(outcome) => {
                info!(target: "mpjdev::server", ?outcome, "job is over");
                self.ending = Some(outcome.map_or_else(Ending::Failed, |()| Ending::Finished));
            }
            ServerEvent::Formed => info!(target: "mpjdev::server", "all clients have joined"),
            ServerEvent::Running => info!(target: "mpjdev::server", "all clients have the tables"),
            // A lost connection is reported when it is closed.
            event @ (ServerEvent::Finished { .. } | ServerEvent::Lost { .. }) => {
                debug!(target: "mpjdev::server", ?event, "client has ended");
            }
        }
    }

    fn close(&mut self, conn: u64, fault: Option<Fault>) {
        let Some(peer) = self.peers.remove(&conn) else { return };
        if let Some(fault) = fault {
            let Peer { address, rank, stream, .. } = peer;
            warn!(target: "mpjdev::server", client = rank, %address, %fault, "connection is closed");
            match rank {
                Some(rank) => print_line(&format!("lost client {rank} at {address}: {fault}")),
                None => self.report_refusal(&format!("refused {address}: {fault}")),
            }
            // A fast refusal would make guessing fast.
            if fault == Fault::WrongKey {
                self.penalties.put(self.now_ms(), stream);
            }
        }
    }

    /// Prints an event that unauthenticated clients can cause without limit, up to a limit.
    fn report_refusal(&mut self, line: &str) {
        self.refusals = self.refusals.saturating_add(1);
        match self.refusals {
            0..REPORTED_MAX => print_line(line),
            REPORTED_MAX => print_line(&format!("{line}; further refusals are not printed")),
            _ => {}
        }
    }
}

impl Peer {
    /// Sends what the system takes. Octets to a dead peer are dropped; the next read detects its end.
    fn send(&mut self) {
        while let Some(octets) = self.queue.front_mut() {
            match self.stream.write(octets) {
                Ok(n) => octets.advance(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.queue.clear(),
            }
            if octets.is_empty() {
                self.queue.pop_front();
            }
        }
    }
}

/// Writes one line to standard error. Errors of that stream are ignored.
pub fn print_line(line: &str) {
    let _ = writeln!(io::stderr(), "{NAME}: {line}");
}

/// Whether this process is at its limit of descriptors. Eviction does not help if the whole system is out of
/// them (accept(2)).
fn is_out_of_room(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MFILE)
}

/// A number that connections from one address share.
fn source_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// An address of this machine that others may reach: that of the default route, else the first address of an
/// interface that is up, else loopback. No packet is sent.
fn own_address(unspecified: IpAddr) -> IpAddr {
    // Addresses reserved for documentation (RFC 5737, RFC 3849).
    let (elsewhere, loopback) = match unspecified {
        IpAddr::V4(_) => ("192.0.2.1:9", IpAddr::V4(Ipv4Addr::LOCALHOST)),
        IpAddr::V6(_) => ("[2001:db8::1]:9", IpAddr::V6(Ipv6Addr::LOCALHOST)),
    };
    let socket = UdpSocket::bind((unspecified, 0)).and_then(|socket| {
        socket.connect(elsewhere)?;
        socket.local_addr()
    });
    socket.map_or_else(|_| interface_address(unspecified).unwrap_or(loopback), |address| address.ip())
}

/// The first address of this family that is neither loopback nor link-local, for machines without a default
/// route.
fn interface_address(family: IpAddr) -> Option<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().ok()?;
    let is_usable = |interface: &if_addrs::Interface| {
        interface.is_oper_up() && !interface.is_loopback() && !interface.is_link_local()
    };
    let addresses = interfaces.iter().filter(|interface| is_usable(interface)).map(if_addrs::Interface::ip);
    addresses.into_iter().find(|ip| ip.is_ipv4() == family.is_ipv4())
}
