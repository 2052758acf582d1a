//! Options and facts of a datagram socket.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Octets that the system has granted to a socket's queues, by its own count: it charges the octets of
/// datagrams and its overhead for each of them ([`super::offload::charge`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// For datagrams to be received.
    pub receive_len: usize,
    /// For sent datagrams that have not left.
    pub send_len: usize,
}

/// Contents of a socket's queues, by the system's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Octets of datagrams to be received, and for some time of received ones.
    pub receive_len: usize,
    /// Octets of sent datagrams that have not left.
    pub send_len: usize,
    /// Datagrams dropped since the socket was made, because its queue was full or a checksum was wrong. It
    /// wraps after 2^32 - 1.
    pub drops: u32,
}

/// Requests queues of these lengths. Returns the grant by the system's count: twice the request, unless the
/// machine's limits (`net.core.rmem_max`, `net.core.wmem_max`) are below that.
///
/// # Errors
/// The system refuses, or a length is more than an int.
pub fn set_buffers(socket: BorrowedFd<'_>, receive_len: usize, send_len: usize) -> io::Result<Buffers> {
    let number = |len| libc::c_int::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, number(receive_len)?)?;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, number(send_len)?)?;
    buffers(socket)
}

/// The octets that a socket's queues may hold.
///
/// # Errors
/// The system refuses.
pub fn buffers(socket: BorrowedFd<'_>) -> io::Result<Buffers> {
    let number = |name| get(socket, libc::SOL_SOCKET, name).map(|len| usize::try_from(len).unwrap_or(0));
    Ok(Buffers { receive_len: number(libc::SO_RCVBUF)?, send_len: number(libc::SO_SNDBUF)? })
}

/// Makes the socket's datagrams leave whole or not at all: a router that does not take one drops it and
/// reports it ([`super::Obstacle::TooLong`]).
///
/// # Errors
/// The system refuses.
pub fn never_fragment(socket: BorrowedFd<'_>) -> io::Result<()> {
    discover(socket, libc::IP_PMTUDISC_DO, libc::IPV6_PMTUDISC_DO)
}

/// Makes the system fragment datagrams that are longer than the known path MTU; others leave whole or not at
/// all.
///
/// # Errors
/// The system refuses.
pub fn fragment_where_needed(socket: BorrowedFd<'_>) -> io::Result<()> {
    discover(socket, libc::IP_PMTUDISC_WANT, libc::IPV6_PMTUDISC_WANT)
}

/// Sets the handling of path MTUs (ip(7)).
fn discover(socket: BorrowedFd<'_>, how: libc::c_int, how_v6: libc::c_int) -> io::Result<()> {
    if get(socket, libc::SOL_SOCKET, libc::SO_DOMAIN)? == libc::AF_INET6 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, how_v6)?;
        // For IPv4 addresses within IPv6. A socket without them may refuse.
        let _ = set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how);
        return Ok(());
    }
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
}

/// Path MTU of a connected socket in octets of an IP packet, as far as the system knows.
///
/// # Errors
/// The socket is not connected, or the system refuses.
pub fn path_mtu(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mtu = match get(socket, libc::SOL_SOCKET, libc::SO_DOMAIN)? {
        libc::AF_INET6 => get(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU),
        _ => get(socket, libc::IPPROTO_IP, libc::IP_MTU),
    };
    Ok(usize::try_from(mtu?).unwrap_or(0))
}

/// Octets of the TCP headers, options and data of the longest segments of a connection. If a router has
/// lowered the segment size of both ends ("MSS clamping"), that is less than [`path_mtu`] leaves for them.
///
/// # Errors
/// It is no TCP socket, or the system refuses.
pub fn segment_len(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut words = [0_u32; TCP_INFO_WORDS];
    let mut len = size_of::<[u32; TCP_INFO_WORDS]>() as libc::socklen_t;
    // SAFETY: the system writes to these words no more octets than the given length.
    let result = unsafe {
        let (fd, at) = (socket.as_raw_fd(), words.as_mut_ptr().cast());
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut len)
    };
    done(result)?;
    if (len as usize) < size_of::<[u32; TCP_INFO_WORDS]>() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let [_, second, _, _, snd_mss] = words;
    // tcpi_options is the sixth octet.
    let has_timestamps = second.to_ne_bytes()[1] & TCPI_OPT_TIMESTAMPS != 0;
    let options_len = if has_timestamps { TIMESTAMPS_LEN } else { 0 };
    Ok(TCP_HEADER_LEN + options_len + snd_mss as usize)
}

/// Words of `tcp_info` up to `tcpi_snd_mss`.
const TCP_INFO_WORDS: usize = 5;
/// Of `tcpi_options` (linux/tcp.h).
const TCPI_OPT_TIMESTAMPS: u8 = 1;
/// Octets of timestamps in each segment.
const TIMESTAMPS_LEN: usize = 12;
const TCP_HEADER_LEN: usize = 20;

/// Makes the socket receive datagrams of one sender and one length as GSO batches, or one by one.
///
/// # Errors
/// The kernel does not support it.
pub fn set_gro(socket: BorrowedFd<'_>, are_wanted: bool) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, are_wanted.into())
}

/// Contents of a socket's queues, and its drops. A system call that touches no queue, for occasional use.
///
/// # Errors
/// The system refuses.
pub fn memory(socket: BorrowedFd<'_>) -> io::Result<Memory> {
    let mut numbers = [0_u32; NUMBERS];
    let mut len = size_of::<[u32; NUMBERS]>() as libc::socklen_t;
    // SAFETY: the system writes to these numbers no more octets than the given length.
    let result = unsafe {
        let (fd, at) = (socket.as_raw_fd(), numbers.as_mut_ptr().cast());
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, at, &raw mut len)
    };
    done(result)?;
    if (len as usize) < size_of::<[u32; NUMBERS]>() {
        // Before Linux 4.6 it does not report drops.
        return Err(io::ErrorKind::Unsupported.into());
    }
    let number = |name: libc::c_int| numbers[name as usize];
    Ok(Memory {
        receive_len: number(libc::SK_MEMINFO_RMEM_ALLOC) as usize,
        send_len: number(libc::SK_MEMINFO_WMEM_ALLOC) as usize,
        drops: number(libc::SK_MEMINFO_DROPS),
    })
}

/// Numbers of the kernel's table up to the drops.
const NUMBERS: usize = libc::SK_MEMINFO_DROPS as usize + 1;

pub(crate) fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the system reads one int, to which the pointer leads.
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len) })
}

fn get(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let (mut value, mut len): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the system writes one int at most, to which the pointer leads, and its length.
    done(unsafe {
        let (fd, at) = (socket.as_raw_fd(), (&raw mut value).cast());
        libc::getsockopt(fd, level, name, at, &raw mut len)
    })?;
    Ok(value)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
