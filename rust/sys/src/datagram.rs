//! Datagrams of message memory through UDP sockets, without a copy in between.
//!
//! As in [`stream`](crate::stream), message memory is words that another thread may write at any time, so the system gets
//! addresses and lengths. [`send()`] takes several datagrams, or trains of them, in one call; [`receive()`] fills several rooms.
//! Neither ever blocks. All functions may be called by several threads at once with one socket, connected or not; what they
//! need beside the arguments is on the stack.
//!
//! ```text
//! train    octets of many datagrams behind each other, all of one length but the last, which may be shorter:
//!          | segment_len | segment_len | segment_len | rest |
//! ```
//!
//! The kernel cuts a train that is sent (`UDP_SEGMENT`, "GSO") and joins what arrives (`UDP_GRO`) where the socket asks for it;
//! [`offload`] finds out whether it can. What keeps datagrams from moving for a moment, or what the network has said about
//! earlier ones, is an [`Obstacle`] with a name; only what nobody expects is an error of the system.

mod address;
pub mod offload;
pub mod options;
mod receive;
mod send;

use std::fmt;
use std::io;
use std::marker::PhantomData;

pub use address::Address;
pub use receive::{Arrived, receive, receive_one};
pub use send::{Train, send};

pub use crate::stream::Part;

/// Trains, or datagrams, in one call at most.
pub const BATCH_MAX: usize = 64;
/// Segments of a train at most. Newer kernels take 128, all that know trains take so many.
pub const SEGMENTS_MAX: usize = 64;
/// Runs of octets of one train at most: a header and a payload for each segment, and more.
pub const RUNS_MAX: usize = 512;
/// Octets of a datagram, or of a train, at most over IPv4: what the length of an IP packet leaves. IPv6 takes 20 more.
pub const LEN_MAX: usize = 65535 - 20 - 8;

/// A run of octets that is sent: of words, or of plain memory that nobody writes meanwhile.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Run<'a> {
    vector: libc::iovec,
    octets: PhantomData<&'a [u8]>,
}

impl Run<'_> {
    /// Octets of it.
    #[inline]
    pub fn len(&self) -> usize {
        self.vector.iov_len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [u8]> for Run<'a> {
    #[inline]
    fn from(octets: &'a [u8]) -> Self {
        // The system only reads it.
        let start = octets.as_ptr().cast_mut().cast();
        Run { vector: libc::iovec { iov_base: start, iov_len: octets.len() }, octets: PhantomData }
    }
}

impl<'a> From<Part<'a>> for Run<'a> {
    #[inline]
    fn from(part: Part<'a>) -> Self {
        Run { vector: part.vector(), octets: PhantomData }
    }
}

/// What keeps datagrams from moving.
#[derive(Debug)]
pub enum Obstacle {
    /// There is nothing to receive, or the socket's buffer has no room for what is to be sent. It passes by itself.
    Later,
    /// An earlier datagram of this connected socket came to a port where nobody is (ICMP). Told once; the call itself has
    /// done nothing and may be repeated.
    Refused,
    /// There is no way to the other side: no route, an interface that is down, a host that does not answer, or a filter of this
    /// machine that lets nothing out. It may pass.
    Unreachable,
    /// A datagram is longer than the way takes, where it must not be fragmented; what the way takes may be known now
    /// ([`options::path_mtu`]).
    TooLong,
    /// The system cuts no trains on this way. Its datagrams may be sent one by one.
    NotInTrains,
    /// The system refuses.
    System(io::Error),
}

impl Obstacle {
    /// What a failed call says.
    fn last(is_train: bool) -> Obstacle {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Without memory for it the system drops what is sent; a signal has come.
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => Obstacle::Later,
            Some(libc::ECONNREFUSED) => Obstacle::Refused,
            Some(
                libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::ENETDOWN
                | libc::ENONET
                | libc::ENOPROTOOPT
                | libc::EPERM,
            ) => Obstacle::Unreachable,
            Some(libc::EMSGSIZE) => Obstacle::TooLong,
            // Interfaces that sum no checksums; older kernels where a segment is longer than the way takes.
            Some(libc::EIO | libc::EINVAL) if is_train => Obstacle::NotInTrains,
            _ => Obstacle::System(error),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Later => f.write_str("nothing is there, or there is no room, now"),
            Obstacle::Refused => f.write_str("nobody is at the other side's port"),
            Obstacle::Unreachable => f.write_str("there is no way to the other side"),
            Obstacle::TooLong => f.write_str("a datagram is longer than the way takes"),
            Obstacle::NotInTrains => f.write_str("the system cuts no trains on this way"),
            Obstacle::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Obstacle {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Obstacle::System(error) => Some(error),
            _ => None,
        }
    }
}

/// Room for what the system says or is told beside the octets.
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

impl Control {
    const EMPTY: Control = Control([0; CONTROL_LEN]);
}

/// Two numbers with their headers, and the queue's drops where somebody has asked for them.
const CONTROL_LEN: usize = 72;
