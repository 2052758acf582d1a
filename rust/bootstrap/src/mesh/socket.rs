//! Sockets of the mesh: their options, and the handshake on one connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_socket_reuseaddr, set_tcp_congestion, set_tcp_keepcnt, set_tcp_keepidle,
    set_tcp_keepintvl, set_tcp_nodelay, set_tcp_user_timeout,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getpeername, getsockname, recv, send,
    socket_with,
};

use mpjdev_sys::stream;

use super::handshake::{Fault, Handshake, PROOF_LEN};

/// Connections that may wait to be accepted, within the system's own limit.
const BACKLOG: i32 = 4096;
/// The longest time until the first keepalive probe on an idle connection, and between probes. Without a time
/// limit of its own, the connection is dead after a number of unanswered probes (tcp(7)).
const KEEP_IDLE: Duration = Duration::from_secs(10);
const KEEP_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_COUNT: u32 = 3;
/// The congestion control of connections within a machine, which every process may select.
pub(super) const WITHIN_MACHINE: &str = "reno";
/// The system's unit is the second.
const KEEP_MIN: Duration = Duration::from_secs(1);

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Listens at an address, at the first free port of the range, or at any when the range is `0..=0`. Returns
/// the address.
///
/// # Errors
/// The address is none of this machine's; no port is free; the system refuses.
pub fn listen(address: IpAddr, ports: RangeInclusive<u16>) -> io::Result<(OwnedFd, SocketAddr)> {
    let (first, last) = (*ports.start(), *ports.end());
    for port in ports {
        match listen_at(SocketAddr::new(address, port)) {
            Err(Errno::ADDRINUSE) => {}
            Err(error) => {
                let text = format!("cannot listen at {address}, port {port}: {}", io::Error::from(error));
                return Err(io::Error::new(io::Error::from(error).kind(), text));
            }
            Ok(listener) => {
                let at = SocketAddr::try_from(getsockname(&listener)?)?;
                return Ok((listener, at));
            }
        }
    }
    let text = format!("cannot listen at {address}: none of the ports {first} to {last} is free");
    Err(io::Error::new(io::ErrorKind::AddrInUse, text))
}

fn listen_at(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = open(&address)?;
    if address.port() != 0 {
        // Connections of an earlier job in the state TIME_WAIT do not reserve the port.
        set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A socket that does not block.
pub(super) fn open(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    socket_with(family, SocketType::STREAM, FLAGS, None)
}

/// Binds a socket to the address that it will connect from.
///
/// # Errors
/// The address is none of this machine's; the system refuses.
pub(super) fn bind_to(socket: BorrowedFd<'_>, from: IpAddr) -> Result<(), Errno> {
    // A port bound here is reserved for all destinations, and for a minute after the connection has ended. A
    // system without this option reserves one.
    let _ = stream::bind_without_port(socket);
    bind(socket, &SocketAddr::new(from, 0))
}

/// Selects a loss-based congestion control for a connection within this machine. BBR paces by round trips of
/// microseconds there. Other connections keep the system's default.
pub(super) fn unpace_within_machine(socket: BorrowedFd<'_>) {
    let address = |name: Result<rustix::net::SocketAddrAny, Errno>| SocketAddr::try_from(name.ok()?).ok();
    let here = address(getsockname(socket));
    let there = address(getpeername(socket).and_then(|name| name.ok_or(Errno::NOTCONN)));
    let (Some(here), Some(there)) = (here, there) else { return };
    let there = there.ip().to_canonical();
    if there.is_loopback() || here.ip().to_canonical() == there {
        // The option affects speed only.
        let _ = set_tcp_congestion(socket, WITHIN_MACHINE);
    }
}

/// Accepts the next connection of the listener; returns it with its source address.
pub(super) fn accept(listener: BorrowedFd<'_>) -> Result<(OwnedFd, SocketAddr), Errno> {
    let (socket, from) = rustix::net::acceptfrom_with(listener, FLAGS)?;
    Ok((socket, from.ok_or(Errno::CONNABORTED)?.try_into()?))
}

/// Sets the options of every connection of the mesh: no delay of packets, and detection of dead peers.
pub(super) fn prepare(socket: BorrowedFd<'_>, peer_timeout: Duration) -> Result<(), Errno> {
    set_tcp_nodelay(socket, true)?;
    set_socket_keepalive(socket, true)?;
    set_tcp_keepcnt(socket, KEEP_COUNT)?;
    if peer_timeout.is_zero() {
        set_tcp_keepidle(socket, KEEP_IDLE)?;
        return set_tcp_keepintvl(socket, KEEP_INTERVAL);
    }
    set_tcp_keepidle(socket, (peer_timeout / 6).clamp(KEEP_MIN, KEEP_IDLE))?;
    set_tcp_keepintvl(socket, (peer_timeout / 12).clamp(KEEP_MIN, KEEP_INTERVAL))?;
    // The system's unit is the millisecond, in an int. The same limit applies to unanswered keepalive probes.
    let millis = peer_timeout.as_millis().clamp(1, i32::MAX as u128);
    set_tcp_user_timeout(socket, millis as u32)
}

/// Whether a socket is connected to itself. The system can make such a connection to a port of an own address
/// without a listener, if it selects the same port as source.
pub(super) fn is_its_own_peer(socket: BorrowedFd<'_>) -> bool {
    let here = getsockname(socket).ok();
    here.is_some() && here == getpeername(socket).ok().flatten()
}

/// The reason why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeError {
    /// The other end closed the connection.
    Closed,
    /// The system refuses.
    System(Errno),
    /// The other end is another program or has another key.
    Fault(Fault),
}

/// A connection with its handshake.
#[derive(Debug)]
pub(super) struct HandshakeStream<'a> {
    pub(super) socket: OwnedFd,
    pub(super) handshake: Handshake<'a>,
}

impl HandshakeStream<'_> {
    /// The poll events.
    pub(super) fn events(&self) -> PollFlags {
        if self.handshake.output().is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Makes all progress that is possible now: until the handshake is complete, or waits for the other end,
    /// or a number needs a decision.
    ///
    /// # Errors
    /// The handshake has failed.
    pub(super) fn advance(&mut self) -> Result<(), HandshakeError> {
        loop {
            let has_advanced =
                if self.handshake.output().is_empty() { self.receive()? } else { self.send_output()? };
            if !has_advanced {
                return Ok(());
            }
        }
    }

    /// Sends output; true if anything was sent.
    fn send_output(&mut self) -> Result<bool, HandshakeError> {
        match send(self.socket.as_fd(), self.handshake.output(), SendFlags::NOSIGNAL) {
            Ok(len) => {
                self.handshake.sent(len);
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(HandshakeError::Closed),
            Err(error) => Err(HandshakeError::System(error)),
        }
    }

    /// Receives input; true if anything was received. Octets behind the handshake stay in the socket.
    fn receive(&mut self) -> Result<bool, HandshakeError> {
        let needed = self.handshake.needed();
        if needed == 0 {
            return Ok(false);
        }
        let mut octets = [0; PROOF_LEN];
        match recv(self.socket.as_fd(), &mut octets[..needed], RecvFlags::empty()) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Err(HandshakeError::Closed),
            Ok((_, len)) => self.handshake.handle_octets(&octets[..len]).map(|()| true).map_err(|fault| {
                // Sends the refusal, if there is one. An end that has closed needs none.
                let _ = self.send_output();
                HandshakeError::Fault(fault)
            }),
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(HandshakeError::System(error)),
        }
    }
}
