//! Datagrams of message memory through UDP sockets, without an intermediate copy.
//!
//! As in [`stream`](crate::stream), message memory is words that another thread may write at any time, so the
//! system gets addresses and lengths. [`send()`] takes several datagrams, or GSO batches of them, in one
//! call; [`receive()`] fills several rooms. Neither ever blocks. Several threads may call all functions at
//! once with one socket, connected or not; beside the arguments they use only the stack.
//!
//! ```text
//! GSO batch    octets of many datagrams in sequence, all of one length but the last, which may be shorter:
//!              | segment_len | segment_len | segment_len | rest |
//! ```
//!
//! The kernel cuts a GSO batch that is sent (`UDP_SEGMENT`) and joins arriving datagrams (`UDP_GRO`) if the
//! socket asks for it; [`offload`] finds out whether it can. A temporary refusal, or an error of earlier
//! datagrams that the network reports, is an [`Obstacle`] with a name. Only an unexpected failure is an error
//! of the system.

mod address;
pub mod offload;
pub mod options;
mod receive;
mod send;

use std::io;
use std::marker::PhantomData;

use thiserror::Error;

pub use address::Address;
pub use receive::{Arrived, receive, receive_from, receive_one};
pub use send::{GsoBatch, send};

pub use crate::stream::Part;

/// Most GSO batches, or datagrams, in one call.
pub const BATCH_MAX: usize = 64;
/// Most segments of a GSO batch. Newer kernels take 128; all kernels with GSO take this many.
pub const SEGMENTS_MAX: usize = 64;
/// Most runs of octets of one GSO batch: a header and a payload for each segment, and more.
pub const RUNS_MAX: usize = 512;
/// Longest datagram, or GSO batch, over IPv4: what the length of an IP packet leaves. IPv6 takes 20 octets
/// more.
pub const LEN_MAX: usize = 65535 - 20 - 8;

/// A run of octets to send: of words, or of plain memory that no thread writes meanwhile.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Run<'a> {
    vector: libc::iovec,
    octets: PhantomData<&'a [u8]>,
}

impl Run<'_> {
    /// Number of octets.
    #[inline]
    pub fn len(&self) -> usize {
        self.vector.iov_len
    }

    /// Whether the run has no octets.
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

/// Reason why datagrams were not sent or received.
#[derive(Debug, Error)]
pub enum Obstacle {
    /// There is nothing to receive, or the socket's buffer has no room to send. This passes by itself.
    #[error("there is nothing to receive, or no room to send, now")]
    Later,
    /// An earlier datagram of this connected socket reached a port without a socket (ICMP). Reported once;
    /// the call itself has done nothing and may be repeated.
    #[error("no socket has the peer's port")]
    Refused,
    /// The other side is unreachable: no route, an interface that is down, a host that does not answer, or a
    /// filter of this machine that lets nothing out. This may pass.
    #[error("the peer is unreachable")]
    Unreachable,
    /// A datagram is longer than the path carries and must not be fragmented; the path MTU may be known now
    /// ([`options::path_mtu`]).
    #[error("a datagram is longer than the path carries")]
    TooLong,
    /// The system cuts no GSO batches on this path. Their datagrams may be sent one by one.
    #[error("the system cuts no GSO batches on this path")]
    NoGso,
    /// The system refuses.
    #[error(transparent)]
    System(io::Error),
}

impl Obstacle {
    /// The reason for a failed call.
    fn last(is_batch: bool) -> Obstacle {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // The system drops a datagram that it has no memory for; a signal has interrupted the call.
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
            // Interfaces that compute no checksums; older kernels if a segment is longer than the path MTU.
            Some(libc::EIO | libc::EINVAL) if is_batch => Obstacle::NoGso,
            _ => Obstacle::System(error),
        }
    }
}

/// Space for the control messages of a call.
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

impl Control {
    const EMPTY: Control = Control([0; CONTROL_LEN]);
}

/// Two numbers with their headers, and the queue's drops if they are requested.
const CONTROL_LEN: usize = 72;
