//! Sockets of the mesh: how they are made, and the exchange on one.

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

/// Connections that may wait to be accepted; the system has a limit of its own.
const BACKLOG: i32 = 4096;
/// A silent connection is asked for life after this time at most, and so often. Where no time is set after which it is dead, it is
/// after so many questions (tcp(7)).
const KEEP_IDLE: Duration = Duration::from_secs(10);
const KEEP_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_COUNT: u32 = 3;
/// The congestion control of connections within a machine, which every process may choose.
pub(super) const WITHIN_MACHINE: &str = "reno";
/// The system counts in seconds.
const KEEP_MIN: Duration = Duration::from_secs(1);

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Listens at an address, at the first port of these that is free, or at any when the range is `0..=0`; and says where.
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
        // Connections of an earlier job that are still being forgotten do not keep the port.
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

/// A socket that is to connect from an address.
///
/// # Errors
/// The address is none of this machine's; the system refuses.
pub(super) fn bind_to(socket: BorrowedFd<'_>, from: IpAddr) -> Result<(), Errno> {
    // A port that is taken here is taken for all destinations, and for a minute after the connection has ended. A system that does
    // not know the option takes one.
    let _ = stream::bind_without_port(socket);
    bind(socket, &SocketAddr::new(from, 0))
}

/// Has a connection within this machine use a congestion control that only reacts to loss. BBR paces by round trips of microseconds
/// there. Other connections keep what the system has set.
pub(super) fn unpace_within_machine(socket: BorrowedFd<'_>) {
    let address = |name: Result<rustix::net::SocketAddrAny, Errno>| SocketAddr::try_from(name.ok()?).ok();
    let here = address(getsockname(socket));
    let there = address(getpeername(socket).and_then(|name| name.ok_or(Errno::NOTCONN)));
    let (Some(here), Some(there)) = (here, there) else { return };
    let there = there.ip().to_canonical();
    if there.is_loopback() || here.ip().to_canonical() == there {
        // It is only faster.
        let _ = set_tcp_congestion(socket, WITHIN_MACHINE);
    }
}

/// The next connection that was made to the listener, and where it comes from.
pub(super) fn accept(listener: BorrowedFd<'_>) -> Result<(OwnedFd, SocketAddr), Errno> {
    let (socket, from) = rustix::net::acceptfrom_with(listener, FLAGS)?;
    Ok((socket, from.ok_or(Errno::CONNABORTED)?.try_into()?))
}

/// What every connection of the mesh has: packets leave at once, and a dead peer is noticed.
pub(super) fn prepare(socket: BorrowedFd<'_>, silence_max: Duration) -> Result<(), Errno> {
    set_tcp_nodelay(socket, true)?;
    set_socket_keepalive(socket, true)?;
    set_tcp_keepcnt(socket, KEEP_COUNT)?;
    if silence_max.is_zero() {
        set_tcp_keepidle(socket, KEEP_IDLE)?;
        return set_tcp_keepintvl(socket, KEEP_INTERVAL);
    }
    set_tcp_keepidle(socket, (silence_max / 6).clamp(KEEP_MIN, KEEP_IDLE))?;
    set_tcp_keepintvl(socket, (silence_max / 12).clamp(KEEP_MIN, KEEP_INTERVAL))?;
    // The system counts in an int. It is also how long questions may go without an answer.
    let millis = silence_max.as_millis().clamp(1, i32::MAX as u128);
    set_tcp_user_timeout(socket, millis as u32)
}

/// Whether a socket is connected to itself. That is what comes of connecting to a port of one's own address where nobody
/// listens, when the system has chosen the same one to connect from.
pub(super) fn is_its_own_peer(socket: BorrowedFd<'_>) -> bool {
    let here = getsockname(socket).ok();
    here.is_some() && here == getpeername(socket).ok().flatten()
}

/// Why an exchange is over before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The other end closed the connection.
    Closed,
    /// The system says so.
    System(Errno),
    /// The other end is not who it should be.
    Fault(Fault),
}

/// A connection and the exchange on it.
#[derive(Debug)]
pub(super) struct Talk<'a> {
    pub(super) socket: OwnedFd,
    pub(super) exchange: Handshake<'a>,
}

impl Talk<'_> {
    /// What to wait for.
    pub(super) fn events(&self) -> PollFlags {
        if self.exchange.output().is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Goes on as far as it goes now: until it is complete, or waits, or a number is to be judged.
    ///
    /// # Errors
    /// It is over.
    pub(super) fn go_on(&mut self) -> Result<(), Ended> {
        loop {
            let went_on = if self.exchange.output().is_empty() { self.listen()? } else { self.speak()? };
            if !went_on {
                return Ok(());
            }
        }
    }

    /// Whether anything left.
    fn speak(&mut self) -> Result<bool, Ended> {
        match send(self.socket.as_fd(), self.exchange.output(), SendFlags::NOSIGNAL) {
            Ok(len) => {
                self.exchange.sent(len);
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(Ended::Closed),
            Err(error) => Err(Ended::System(error)),
        }
    }

    /// Whether anything came. What is behind the exchange is left to others.
    fn listen(&mut self) -> Result<bool, Ended> {
        let needed = self.exchange.needed();
        if needed == 0 {
            return Ok(false);
        }
        let mut octets = [0; PROOF_LEN];
        match recv(self.socket.as_fd(), &mut octets[..needed], RecvFlags::empty()) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Err(Ended::Closed),
            Ok((_, len)) => self.exchange.handle_octets(&octets[..len]).map(|()| true).map_err(|fault| {
                // The refusal, if there is one; who is not there to take it has no use for it.
                let _ = self.speak();
                Ended::Fault(fault)
            }),
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(Ended::System(error)),
        }
    }
}
