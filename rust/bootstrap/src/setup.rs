//! The setup of ranks before the first datagram. Each pair exchanges its parameters over a connection on
//! which both have authenticated: the TCP exchange of 1997 (U-Net, and section "Setup" of `PROTOCOL.md`).

pub mod echo;
mod error;
mod hello;
mod port_relay;
mod socket;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use bytes::Buf;
use mpjdev_proto::datagram::reliable::settings::{DATAGRAM_LEN_MIN, Path};
use mpjdev_sys::datagram::options;
use mpjdev_transport::udp::ids::numbers;
use mpjdev_transport::udp::path_mtu::{LEN_SAFE, UDP_HEADER_LEN, len_within};
use mpjdev_transport::udp::probe::{self, Early};
use mpjdev_transport::udp::{INTER_NODE_WINDOW_MAX, Job, LOOPBACK, Member, Terms, datagram_len, prepare};
use mpjdev_transport::wait::WaitControl;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, getpeername, getsockname, recv, send};
use tracing::{debug, info};

use self::echo::{Echo, Turn};
pub use self::error::SetupError;
use self::hello::{Hello, LEN, check_version};
pub use self::port_relay::PortRelay;

/// The interval at which the wait control is asked.
const SLICE: Duration = Duration::from_millis(20);

/// The arguments of the setup.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// This rank's number in the world.
    pub rank: u32,
    /// Connections to the others by rank, on which no octet of the setup was sent; they do not block.
    pub sockets: &'a [Option<OwnedFd>],
    /// The address of this rank's socket, unless the port is taken.
    pub address: SocketAddr,
    /// The ports to select from then; 0 to 0 for any port.
    pub ports: &'a RangeInclusive<u16>,
    /// The terms that this rank proposes, with the longest datagrams that it takes.
    pub terms: Terms,
    /// The path to ranks that are not on this machine.
    pub path: Path,
    /// The relay that all datagrams pass through, if there is one.
    pub relay: Option<&'a dyn PortRelay>,
    /// The time at which the setup must be complete.
    pub deadline: Instant,
}

/// One of the other ranks, during the setup.
struct Other<'a> {
    /// This rank.
    own: u32,
    rank: u32,
    socket: &'a OwnedFd,
    /// This rank's address as the other rank sees it, and the other rank's address.
    here: IpAddr,
    address: IpAddr,
    path: Path,
    echo: Echo,
    /// The start of the setup.
    begun: Instant,
    hello: Hello,
    octets: [u8; LEN],
    len: usize,
}

/// Opens this rank's socket, and agrees with all others on the parameters of datagrams. Blocks until all have
/// done so. The job has no liveness connections yet: the connections of the setup may become those.
///
/// # Errors
/// A rank does not answer in time, or sends a wrong value; interrupted; the system refuses.
pub fn run(setup: &Setup<'_>, wait_control: &mut dyn WaitControl) -> Result<Job, SetupError> {
    let (ranks, begun) = (setup.sockets.len(), Instant::now());
    let here = setup.addresses().map_err(system("a connection"))?;
    let socket = socket::open(setup.address, setup.ports, &here).map_err(system("a socket for datagrams"))?;
    let port = socket.local_addr().map_err(system("a socket for datagrams"))?.port();
    let peers = setup.sockets.iter().flatten().count();
    let terms = setup.fitting(&socket, peers)?;
    let receive_window = prepare(socket.as_fd(), peers, &terms).map_err(system("a socket for datagrams"))?;
    let relay_ports = setup.relay.map(|relay| relay.ports(setup.rank, ranks, port, setup.deadline));
    let relay_ports = relay_ports.transpose().map_err(system("the relay of datagrams"))?;
    let mut others = Vec::with_capacity(peers);
    for (rank, connection) in (0..).zip(setup.sockets) {
        let Some(connection) = connection else { continue };
        let port = relay_ports.as_ref().map_or(port, |ports| ports[rank as usize]);
        let ours = OwnParameters { port, window: receive_window, begun };
        let mut other = send_hello(&Setup { terms, ..*setup }, ours, rank, connection)?;
        other.address =
            socket::address_for(&socket, other.address).map_err(system("a socket for datagrams"))?;
        others.push(other);
    }
    if others.iter().any(|other| other.path != LOOPBACK) {
        options::never_fragment(socket.as_fd()).map_err(system("a socket for datagrams"))?;
    }
    socket.set_nonblocking(true).map_err(system("a socket for datagrams"))?;
    let (found, early) = exchange(&mut others, &socket, setup.deadline, wait_control)?;
    let mut members = vec![None; ranks];
    for (other, member) in others.iter().zip(found) {
        members[other.rank as usize] = Some(member);
    }
    Ok(Job {
        rank: setup.rank,
        members,
        site_of: Vec::new(),
        terms,
        socket,
        receive_window,
        early,
        liveness: Vec::new(),
        networks: Vec::new(),
    })
}

impl Setup<'_> {
    /// This rank's addresses as the others see them.
    fn addresses(&self) -> io::Result<Vec<IpAddr>> {
        self.sockets.iter().flatten().map(|connection| Ok(ends(connection)?.0)).collect()
    }

    /// The terms, with datagrams so long that the socket has room for enough of them. With ranks on other
    /// machines they are no longer than the path there carries, since windows count datagrams of any length.
    fn fitting(&self, socket: &UdpSocket, peers: usize) -> Result<Terms, SetupError> {
        let mut terms = self.terms;
        let mut longest_there = 0;
        for connection in self.sockets.iter().flatten() {
            let (here, there) = ends(connection).map_err(system("a connection"))?;
            if !is_same_machine(here, there) {
                let longest = longest(connection.as_fd()).map_err(system("a connection"))?;
                longest_there = longest_there.max(longest);
            }
        }
        if longest_there > 0 {
            terms.datagram_len_max = terms.datagram_len_max.min(longest_there);
            terms.window_max = INTER_NODE_WINDOW_MAX;
        }
        terms.datagram_len_max =
            datagram_len(socket.as_fd(), peers, &terms).map_err(system("a socket for datagrams"))?;
        Ok(terms)
    }
}

/// Whether both ends of a connection are on this machine.
fn is_same_machine(here: IpAddr, there: IpAddr) -> bool {
    here == there || there.is_loopback()
}

/// This rank's values for one peer.
#[derive(Clone, Copy)]
struct OwnParameters {
    /// The UDP port at which the peer reaches this rank.
    port: u16,
    window: u16,
    /// The start of the setup.
    begun: Instant,
}

/// Sends the Hello to one of the others.
fn send_hello<'a>(
    setup: &Setup<'_>,
    ours: OwnParameters,
    rank: u32,
    socket: &'a OwnedFd,
) -> Result<Other<'a>, SetupError> {
    let (here, address) = ends(socket).map_err(system("a connection"))?;
    let is_inter_node =
        !is_same_machine(here, address) || setup.relay.is_some_and(|relay| relay.is_inter_node());
    let path = if is_inter_node { setup.path } else { LOOPBACK };
    let longest = if is_inter_node {
        longest(socket.as_fd()).map_err(system("a connection"))?.min(setup.terms.datagram_len_max)
    } else {
        setup.terms.datagram_len_max
    };
    let (connection, first) = numbers().map_err(system("random numbers"))?;
    let hello = Hello {
        port: ours.port,
        connection,
        first,
        datagram_len_max: longest,
        window: ours.window,
        max_ack_delay: path.max_ack_delay,
        wants_checksums: setup.terms.is_checked,
        wants_proof: is_inter_node,
    };
    // Nothing was sent on it yet, so there is room.
    match send(socket, &hello.emit(), SendFlags::NOSIGNAL) {
        Ok(LEN) => {
            let echo = Echo::new(connection);
            let (begun, octets, own) = (ours.begun, [0; LEN], setup.rank);
            Ok(Other { own, rank, socket, here, address, path, echo, begun, hello, octets, len: 0 })
        }
        Ok(len) => Err(SetupError::Closed { peer: rank, error: short(len) }),
        Err(error) => Err(SetupError::Closed { peer: rank, error: error.into() }),
    }
}

fn short(len: usize) -> io::Error {
    io::Error::other(format!("it took {len} octets of {LEN}"))
}

/// Addresses of both ends of a connection.
fn ends(socket: &OwnedFd) -> io::Result<(IpAddr, IpAddr)> {
    let here = SocketAddr::try_from(getsockname(socket)?)?;
    let there = getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?;
    let there = SocketAddr::try_from(there)?;
    Ok((here.ip().to_canonical(), there.ip().to_canonical()))
}

/// The longest datagram in octets that the path of a connection carries unfragmented. It is a multiple of 8,
/// so that the octets of messages stay aligned in a GSO batch.
fn longest(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mtu = options::path_mtu(socket)?;
    let there = SocketAddr::try_from(getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?)?.ip();
    // A system that does not report a segment length has lowered nothing.
    let segment_len = options::segment_len(socket).unwrap_or(usize::MAX);
    Ok(len_within(mtu, there).min(len_beside(segment_len)))
}

/// The longest datagram within the segment length of a TCP connection on the same path. A router before a
/// narrow link, whose ICMP messages do not arrive, often lowers the segment length. The result is at least
/// the length that any path carries (5.2).
fn len_beside(segment_len: usize) -> usize {
    (segment_len.saturating_sub(UDP_HEADER_LEN) / 8 * 8).max(LEN_SAFE)
}

/// Reads the Hellos of all others, tests whether datagrams arrive, and waits until all others have done so
/// too: a rank that still proves a path acknowledges no packets, and would count as failed after a short peer
/// timeout. Returns the entry of each in the job, and the packets received meanwhile: some ranks complete the
/// setup before others.
fn exchange(
    others: &mut [Other<'_>],
    socket: &UdpSocket,
    deadline: Instant,
    wait_control: &mut dyn WaitControl,
) -> Result<(Vec<Member>, Vec<Early>), SetupError> {
    let port = socket.local_addr().map_err(system("a socket for datagrams"))?.port();
    let (mut room, mut early) = (vec![0; usize::from(u16::MAX)], Vec::new());
    let mut asked = Instant::now();
    let mut members: Option<Vec<Member>> = None;
    loop {
        let now = Instant::now();
        let is_all = echo::drain(socket, &mut room, |from, octets| match probe::connection_of(octets) {
            Some(id) => {
                let probed = others.iter_mut().filter(|other| other.echo.ours() == id);
                probed.for_each(|other| other.echo.handle_probe(from, octets.len()));
            }
            None if others.iter().any(|other| other.echo.source() == Some(from)) => {
                echo::keep(&mut early, from, octets);
            }
            None => {}
        });
        for other in others.iter_mut().filter(|other| !other.echo.is_done()) {
            if is_all && other.echo.has_received_nothing(now) {
                return Err(other.no_datagrams(port, false, false));
            }
            other.advance(socket, port, now, is_all)?;
        }
        if members.is_none() && others.iter().all(|other| other.echo.is_done()) {
            members = Some(others.iter().map(|other| other.member(port)).collect::<Result<_, _>>()?);
            others.iter().try_for_each(|other| other.send_word(port, echo::READY))?;
        }
        if others.iter().all(Other::is_complete)
            && let Some(members) = members.take()
        {
            return Ok((members, early));
        }
        let mut waiting: Vec<&mut Other<'_>> =
            others.iter_mut().filter(|other| !other.is_complete()).collect();
        let left = deadline.saturating_duration_since(now);
        let next = waiting.iter().filter_map(|other| other.echo.next_time()).min();
        let next = next.map_or(SLICE, |at| at.saturating_duration_since(now));
        let slice = Timespec::try_from(left.min(SLICE).min(next)).unwrap_or_default();
        let connections = waiting.iter().map(|other| PollFd::new(other.socket, PollFlags::IN));
        let mut fds: Vec<_> = connections.chain([PollFd::new(socket, PollFlags::IN)]).collect();
        let is_idle = match poll(&mut fds, Some(&slice)) {
            Ok(ready) => ready == 0,
            Err(Errno::INTR) => true,
            Err(error) => return Err(system("connections")(error.into())),
        };
        // At intervals, since unauthenticated clients may keep this socket ready all the time.
        if is_idle || asked.elapsed() >= SLICE {
            asked = Instant::now();
            if !wait_control.keep_waiting() {
                return Err(SetupError::Interrupted);
            }
        }
        let has_some: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        // Octets that arrived before the deadline count, however late this rank reads them.
        if left.is_zero() && !has_some[..waiting.len()].contains(&true) {
            let first = waiting.iter().position(|other| !other.echo.is_done()).unwrap_or(0);
            return Err(waiting[first].deadline_error(port));
        }
        for (other, _) in waiting.iter_mut().zip(has_some).filter(|(_, has_some)| *has_some) {
            other.read(port)?;
        }
    }
}

impl Other<'_> {
    /// Sends the probes and words that are due. `is_all`: all datagrams that had arrived by `now` were
    /// handled.
    fn advance(
        &mut self,
        socket: &UdpSocket,
        port: u16,
        now: Instant,
        is_all: bool,
    ) -> Result<(), SetupError> {
        if self.len == LEN && !self.echo.has_begun() {
            let theirs = Hello::parse(&self.octets, self.rank)?;
            let len = theirs.datagram_len_max.min(self.hello.datagram_len_max);
            let is_proved = theirs.wants_proof || self.hello.wants_proof;
            let to = self.echo.source().unwrap_or(SocketAddr::new(self.address, theirs.port));
            debug!(
                target: "mpjdev::udp", rank = self.own, peer = self.rank, %to, octets = len, is_proved,
                "peer is introduced"
            );
            self.echo.begin(to, theirs.connection, echo::lens(is_proved.then_some(len)));
        }
        let Turn { probes, words } = self.echo.poll(now, is_all);
        for len in probes {
            let Some((to, theirs)) = self.echo.to() else { break };
            // A probe that the system refuses counts as lost on the network, except one that is too long:
            // that is never sent.
            let sent = socket.send_to(&probe::emit(theirs, len), to);
            if sent.is_err_and(|error| error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())) {
                self.echo.refuse(len);
            }
        }
        words.into_iter().try_for_each(|word| self.send_word(port, word))
    }

    fn send_word(&self, port: u16, word: u8) -> Result<(), SetupError> {
        match send(self.socket, &[word], SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.closed(port, error.into())),
        }
    }

    /// Whether both ranks have completed the setup, the other one with all ranks.
    fn is_complete(&self) -> bool {
        self.echo.is_done() && self.echo.is_peer_ready()
    }

    /// The addresses of this rank and of the other one.
    fn addresses(&self, port: u16) -> [SocketAddr; 2] {
        let there = self.echo.to().map_or(SocketAddr::new(self.address, 0), |(to, _)| to);
        [SocketAddr::new(self.here, port), SocketAddr::new(there.ip().to_canonical(), there.port())]
    }

    /// The error when datagrams of this rank, or of the other one, do not arrive; `is_deadline`: within the
    /// time of the whole setup, and not only within that of the probes.
    fn no_datagrams(&self, port: u16, are_ours: bool, is_deadline: bool) -> SetupError {
        let [here, there] = self.addresses(port);
        let (from, to) = if are_ours { (here, there) } else { (there, here) };
        SetupError::NoDatagrams { peer: self.rank, from, to, after: self.begun.elapsed(), is_deadline }
    }

    /// The error when the other rank has closed. If its reports are missing, datagrams do not arrive there.
    fn closed(&self, port: u16, error: io::Error) -> SetupError {
        if self.echo.is_unanswered() && self.echo.has_ended() {
            return self.no_datagrams(port, true, false);
        }
        SetupError::Closed { peer: self.rank, error }
    }

    /// The error at the deadline.
    fn deadline_error(&self, port: u16) -> SetupError {
        let (peer, address, after) = (self.rank, self.address.to_canonical(), self.begun.elapsed());
        match self.len {
            LEN if self.echo.is_unanswered() => self.no_datagrams(port, true, true),
            LEN if self.echo.source().is_none() => self.no_datagrams(port, false, true),
            LEN => SetupError::Unfinished { peer, address, after },
            _ => SetupError::NoHello { peer, address, after },
        }
    }

    /// Reads one word about datagrams.
    fn read_word(&mut self, port: u16) -> Result<(), SetupError> {
        let mut word = [0];
        match recv(self.socket, &mut word, RecvFlags::empty()) {
            Ok((0, _)) => Err(self.closed(port, io::ErrorKind::UnexpectedEof.into())),
            Ok(_) if self.echo.handle_word(word[0], Instant::now()) => Ok(()),
            Ok(_) => Err(SetupError::Word { peer: self.rank, word: word[0] }),
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(self.closed(port, error.into())),
        }
    }

    fn read(&mut self, port: u16) -> Result<(), SetupError> {
        if self.len == LEN {
            return self.read_word(port);
        }
        let gone = |error| SetupError::Closed { peer: self.rank, error };
        match recv(self.socket, &mut self.octets[self.len..], RecvFlags::empty()) {
            Ok((0, _)) => Err(gone(io::ErrorKind::UnexpectedEof.into())),
            Ok((len, _)) => {
                self.len += len;
                // The Hello of another version may be shorter.
                let mut received = &self.octets[..self.len];
                match (received.try_get_u32(), received.try_get_u32()) {
                    (Ok(magic), Ok(version)) => check_version([magic, version], self.rank),
                    _ => Ok(()),
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(gone(error.into())),
        }
    }

    /// Octets of the longest datagram that arrives in both directions. `len` of them are wanted, and the
    /// length was probed.
    fn proved_len(&self, port: u16, len: usize) -> Result<usize, SetupError> {
        let [ours, theirs] = self.echo.proved().unwrap_or([len; 2]);
        let [here, there] = self.addresses(port);
        for (proved, from, to) in [(ours, here, there), (theirs, there, here)] {
            if proved < DATAGRAM_LEN_MIN {
                let len = len.min(LEN_SAFE);
                return Err(SetupError::Length { peer: self.rank, from, to, len });
            }
        }
        let octets = len.min(ours).min(theirs);
        info!(
            target: "mpjdev::udp", rank = self.own, peer = self.rank, octets, wanted = len,
            "path carries datagrams"
        );
        Ok(octets)
    }

    /// The other rank's entry in the job, once the setup is complete.
    fn member(&self, port: u16) -> Result<Member, SetupError> {
        let theirs = Hello::parse(&self.octets, self.rank)?;
        let wanted = theirs.datagram_len_max.min(self.hello.datagram_len_max);
        let is_proved = theirs.wants_proof || self.hello.wants_proof;
        Ok(Member {
            address: self.echo.source().unwrap_or(SocketAddr::new(self.address, theirs.port)),
            theirs: theirs.connection,
            ours: self.hello.connection,
            first_theirs: theirs.first,
            first_ours: self.hello.first,
            send_window: theirs.window,
            datagram_len_max: if is_proved { self.proved_len(port, wanted)? } else { wanted },
            // A rank that wants checksums has reasons that hold for both directions.
            is_checked: theirs.wants_checksums || self.hello.wants_checksums,
            max_ack_delay: theirs.max_ack_delay,
            path: self.path,
        })
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> SetupError {
    move |error| SetupError::System { what, error }
}

#[cfg(test)]
mod tests;
