//! What ranks tell each other before the first datagram, each pair over a connection on which both have proved who they are:
//! the TCP exchange of 1997 (U-Net, and section "Setup" of `PROTOCOL.md`).
//!
//! ```text
//! word 0   "mpjU"                 word 4   first sequence number of the sender's packets
//! word 1   version                word 5   octets of a datagram that it takes at most
//! word 2   its UDP port           word 6   packets that the reader may send ahead
//! word 3   connection number of   word 7   microseconds that its acknowledgments may wait
//!          packets to the sender      word 8   1 if all packets are to have a checksum, else 0
//! ```
//!
//! All are big-endian, 32 bits each.

pub mod relay;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpjdev_proto::datagram::modern::settings::{DATAGRAM_LEN_MIN, Path};
use mpjdev_proto::datagram::modern::time::Nanos;
use mpjdev_proto::datagram::modern::windows::RECEIVE_WINDOW_MAX;
use mpjdev_proto::datagram::sequence::Sequence;
use mpjdev_sys::datagram::options;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, getpeername, getsockname, recv, send};
use rustix::rand::{GetRandomFlags, getrandom};

use self::relay::Relay;
use super::{INDEX_BITS, Job, LOOPBACK, Member, Terms, datagram_len, prepare};
use crate::waiting::Patience;

/// What it begins with.
const MAGIC: u32 = u32::from_be_bytes(*b"mpjU");
/// The layout above, and that of the packets.
const VERSION: u32 = 1;
/// Octets.
pub(super) const LEN: usize = 36;
/// The largest of the numbers that go round.
const SEQUENCE_MAX: u32 = (1 << 15) - 1;
/// How often whoever waits is asked whether to go on.
const SLICE: Duration = Duration::from_millis(20);
/// Octets of the headers of UDP and IP.
const HEADERS_LEN: [usize; 2] = [28, 48];
/// An acknowledgment waits no longer than that, whoever says so.
const ACK_DELAY_MAX: Duration = Duration::from_secs(1);

/// Who meets.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// This rank's number in the world.
    pub rank: u32,
    /// Connections to the others by rank, on which nobody has said anything yet; they do not block.
    pub sockets: &'a [Option<OwnedFd>],
    /// Where this rank's socket is to be; at any port when that one is taken.
    pub address: SocketAddr,
    /// What this rank wants, with the longest datagrams that it takes.
    pub terms: Terms,
    /// The path to ranks that are not on this machine.
    pub path: Path,
    /// What all datagrams go through, if not straight to the others.
    pub relay: Option<Relay>,
    /// When all must have said what they have to.
    pub deadline: Instant,
}

/// Why ranks cannot send each other datagrams.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// More than the numbers of connections have room for.
    #[error("{ranks} ranks are more than can send each other datagrams, which are {}", 1 << INDEX_BITS)]
    Ranks {
        /// How many there are.
        ranks: usize,
    },
    /// It has not said anything in time.
    #[error(
        "rank {peer} at {address} has not said where its datagrams are to go; --connect-timeout gives it more time"
    )]
    Silent {
        /// The rank.
        peer: u32,
        /// Where it is.
        address: IpAddr,
    },
    /// It has gone.
    #[error(
        "rank {peer} has closed its connection before it has said where its datagrams are to go: {error}"
    )]
    Gone {
        /// The rank.
        peer: u32,
        /// How.
        error: io::Error,
    },
    /// Another program, or another version.
    #[error("rank {peer} is of another version, or says something else: it begins with {begin:08x?}")]
    Version {
        /// The rank.
        peer: u32,
        /// Its first two words.
        begin: [u32; 2],
    },
    /// A number is not within its limits.
    #[error("rank {peer} says that {field} is {value}")]
    Value {
        /// The rank.
        peer: u32,
        /// Which number.
        field: &'static str,
        /// What it is.
        value: u32,
    },
    /// The waiting thread was interrupted.
    #[error("interrupted while waiting for the other ranks")]
    Interrupted,
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
}

impl MeetingError {
    /// Who is to blame, if it is another rank.
    #[must_use]
    pub fn peer(&self) -> Option<u32> {
        match self {
            MeetingError::Silent { peer, .. }
            | MeetingError::Gone { peer, .. }
            | MeetingError::Version { peer, .. }
            | MeetingError::Value { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}

/// What one rank says to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Introduction {
    pub(super) port: u16,
    pub(super) connection: u32,
    pub(super) first: Sequence,
    pub(super) datagram_len_max: usize,
    pub(super) window: u16,
    pub(super) max_ack_delay: Nanos,
    pub(super) wants_checksums: bool,
}

impl Introduction {
    pub(super) fn emit(&self) -> [u8; LEN] {
        let numbers = [
            MAGIC,
            VERSION,
            self.port.into(),
            self.connection,
            self.first.bits().into(),
            u32::try_from(self.datagram_len_max).unwrap_or(u32::MAX),
            self.window.into(),
            u32::try_from(self.max_ack_delay / 1000).unwrap_or(u32::MAX),
            self.wants_checksums.into(),
        ];
        let mut octets = [0; LEN];
        for (place, number) in octets.as_chunks_mut().0.iter_mut().zip(numbers) {
            *place = number.to_be_bytes();
        }
        octets
    }

    /// What `peer` says to `rank`.
    pub(super) fn parse(octets: &[u8; LEN], rank: u32, peer: u32) -> Result<Introduction, MeetingError> {
        let mut numbers = [0; LEN / 4];
        for (number, octets) in numbers.iter_mut().zip(octets.as_chunks().0) {
            *number = u32::from_be_bytes(*octets);
        }
        let [magic, version, port, connection, first, len, window, delay, checksums] = numbers;
        if (magic, version) != (MAGIC, VERSION) {
            return Err(MeetingError::Version { peer, begin: [magic, version] });
        }
        let within = |field, value: u32, min: u32, max: u32| {
            let is_within = (min..=max).contains(&value);
            if is_within { Ok(value) } else { Err(MeetingError::Value { peer, field, value }) }
        };
        within("its port", port, 1, u16::MAX.into())?;
        // Whoever gets packets finds the sender by these bits.
        if connection % (1 << INDEX_BITS) != rank {
            return Err(MeetingError::Value { peer, field: "its connection's number", value: connection });
        }
        within("the first sequence number", first, 0, SEQUENCE_MAX)?;
        within("the longest datagram", len, DATAGRAM_LEN_MIN as u32, u32::MAX)?;
        within("the window", window, 1, RECEIVE_WINDOW_MAX.into())?;
        within("the longest wait of an acknowledgment", delay, 0, ACK_DELAY_MAX.as_micros() as u32)?;
        within("whether packets have checksums", checksums, 0, 1)?;
        Ok(Introduction {
            port: port as u16,
            connection,
            first: Sequence::of(first.into()),
            datagram_len_max: len as usize,
            window: window as u16,
            max_ack_delay: Nanos::from(delay) * 1000,
            wants_checksums: checksums == 1,
        })
    }
}

/// One of the others, before it has said anything.
struct Other<'a> {
    rank: u32,
    socket: &'a OwnedFd,
    address: IpAddr,
    path: Path,
    said: Introduction,
    octets: [u8; LEN],
    len: usize,
}

/// Opens this rank's socket, and settles with all others what the first datagrams need. Blocks until all have said it. The job has
/// no lines: the connections may become those.
///
/// # Errors
/// Somebody does not say it in time, or says what cannot be; interrupted; the system refuses.
pub fn meet(meeting: &Meeting<'_>, patience: &mut dyn Patience) -> Result<Job, MeetingError> {
    let ranks = meeting.sockets.len();
    if ranks > 1 << INDEX_BITS {
        return Err(MeetingError::Ranks { ranks });
    }
    let socket = bind(meeting.address).map_err(system("a socket for datagrams"))?;
    let port = socket.local_addr().map_err(system("a socket for datagrams"))?.port();
    let peers = meeting.sockets.iter().flatten().count();
    let terms = meeting.fitting(&socket, peers)?;
    let receive_window = prepare(socket.as_fd(), peers, &terms).map_err(system("a socket for datagrams"))?;
    let asked = meeting.relay.map(|relay| relay.ports(meeting.rank, ranks, port, meeting.deadline));
    let relayed = asked.transpose().map_err(system("the relay of datagrams"))?;
    let mut others = Vec::with_capacity(peers);
    for (rank, connection) in (0..).zip(meeting.sockets) {
        let Some(connection) = connection else { continue };
        let port = relayed.as_ref().map_or(port, |ports| ports[rank as usize]);
        let own = Own { port, window: receive_window };
        others.push(introduce(&Meeting { terms, ..*meeting }, own, rank, connection)?);
    }
    if others.iter().any(|other| other.path != LOOPBACK) {
        options::never_fragment(socket.as_fd()).map_err(system("a socket for datagrams"))?;
    }
    listen(&mut others, meeting.deadline, patience)?;
    let mut members = vec![None; ranks];
    for other in others {
        members[other.rank as usize] = Some(other.member(meeting.rank)?);
    }
    Ok(Job { rank: meeting.rank, members, terms, socket, receive_window, lines: Vec::new() })
}

impl Meeting<'_> {
    /// The terms with datagrams as long as the socket has room for enough of them. Where there are ranks on other machines they are no
    /// longer than the way there takes: windows count datagrams, however long they are.
    fn fitting(&self, socket: &UdpSocket, peers: usize) -> Result<Terms, MeetingError> {
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

/// A socket there, or at another port when that one is taken: a peer is told which one it is.
fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind(address).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => UdpSocket::bind((address.ip(), 0)),
        _ => Err(error),
    })
}

/// What is the same for all others.
#[derive(Clone, Copy)]
struct Own {
    port: u16,
    window: u16,
}

/// Says to one of the others what it needs.
fn introduce<'a>(
    meeting: &Meeting<'_>,
    own: Own,
    rank: u32,
    socket: &'a OwnedFd,
) -> Result<Other<'a>, MeetingError> {
    let (here, address) = ends(socket).map_err(system("a connection"))?;
    let is_far = meeting.relay.is_some_and(|relay| relay.is_far);
    let is_here = is_same_machine(here, address) && !is_far;
    let path = if is_here { LOOPBACK } else { meeting.path };
    let longest = if is_here {
        meeting.terms.datagram_len_max
    } else {
        longest(socket.as_fd()).map_err(system("a connection"))?.min(meeting.terms.datagram_len_max)
    };
    let (connection, first) = numbers(rank).map_err(system("random numbers"))?;
    let said = Introduction {
        port: own.port,
        connection,
        first,
        datagram_len_max: longest,
        window: own.window,
        max_ack_delay: path.max_ack_delay,
        wants_checksums: meeting.terms.is_checked,
    };
    // Nothing has been sent on it yet, so there is room.
    match send(socket, &said.emit(), SendFlags::NOSIGNAL) {
        Ok(LEN) => Ok(Other { rank, socket, address, path, said, octets: [0; LEN], len: 0 }),
        Ok(len) => Err(MeetingError::Gone { peer: rank, error: short(len) }),
        Err(error) => Err(MeetingError::Gone { peer: rank, error: error.into() }),
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

/// Octets of a datagram that the way of a connection takes whole, a multiple of 8: the octets of messages stay aligned behind
/// each other in a train.
fn longest(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mtu = options::path_mtu(socket)?;
    let there = SocketAddr::try_from(getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?)?;
    Ok(len_within(mtu, there.ip()))
}

/// The same of a way to an address that takes packets of `mtu` octets.
pub(super) fn len_within(mtu: usize, address: IpAddr) -> usize {
    let headers = HEADERS_LEN[usize::from(address.to_canonical().is_ipv6())];
    mtu.saturating_sub(headers) / 8 * 8
}

/// A number that nobody can guess for what comes from a peer, with its rank in it, and the number of the first packet to it.
pub(crate) fn numbers(peer: u32) -> io::Result<(u32, Sequence)> {
    let mut octets = [0; 8];
    let mut len = 0;
    while len < octets.len() {
        len += rustix::io::retry_on_intr(|| getrandom(&mut octets[len..], GetRandomFlags::empty()))?;
    }
    let number = u64::from_ne_bytes(octets);
    Ok(((number as u32) << INDEX_BITS | peer, Sequence::of(number >> 32)))
}

/// Reads what all others say.
fn listen(
    others: &mut [Other<'_>],
    deadline: Instant,
    patience: &mut dyn Patience,
) -> Result<(), MeetingError> {
    loop {
        let mut waiting: Vec<&mut Other<'_>> = others.iter_mut().filter(|other| other.len < LEN).collect();
        let Some(first) = waiting.first() else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(MeetingError::Silent { peer: first.rank, address: first.address });
        }
        let slice = Timespec::try_from(left.min(SLICE)).unwrap_or_default();
        let mut fds: Vec<_> = waiting.iter().map(|other| PollFd::new(other.socket, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&slice)) {
            Ok(0) | Err(Errno::INTR) if !patience.goes_on() => return Err(MeetingError::Interrupted),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(system("connections")(error.into())),
        }
        let has_some: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (other, _) in waiting.iter_mut().zip(has_some).filter(|(_, has_some)| *has_some) {
            other.read()?;
        }
    }
}

impl Other<'_> {
    fn read(&mut self) -> Result<(), MeetingError> {
        let gone = |error| MeetingError::Gone { peer: self.rank, error };
        match recv(self.socket, &mut self.octets[self.len..], RecvFlags::empty()) {
            Ok((0, _)) => Err(gone(io::ErrorKind::UnexpectedEof.into())),
            Ok((len, _)) => {
                self.len += len;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(gone(error.into())),
        }
    }

    /// What it is to `rank`, now that both have said everything.
    fn member(&self, rank: u32) -> Result<Member, MeetingError> {
        let told = Introduction::parse(&self.octets, rank, self.rank)?;
        Ok(Member {
            address: SocketAddr::new(self.address, told.port),
            theirs: told.connection,
            ours: self.said.connection,
            first_theirs: told.first,
            first_ours: self.said.first,
            send_window: told.window,
            datagram_len_max: told.datagram_len_max.min(self.said.datagram_len_max),
            // Who wants them has reasons that hold for both ways.
            is_checked: told.wants_checksums || self.said.wants_checksums,
            max_ack_delay: told.max_ack_delay,
            path: self.path,
        })
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> MeetingError {
    move |error| MeetingError::System { what, error }
}

#[cfg(test)]
mod tests;
