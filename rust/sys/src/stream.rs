//! Octets of message memory through stream sockets, without an intermediate copy.
//!
//! Message memory is words that another thread may write at any time, so no slice of octets may refer to it.
//! The two system calls here get addresses and lengths. Octets that arrive or leave during a write are any
//! mixture, but break no rule of the language.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::datagram::options;

/// Most runs of octets in one call.
pub const PARTS_MAX: usize = 16;

/// A run of octets in words.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Part<'a> {
    vector: libc::iovec,
    words: PhantomData<&'a [AtomicU64]>,
}

impl<'a> Part<'a> {
    /// The `len` octets from `offset` on.
    ///
    /// # Panics
    /// When they reach past the words.
    #[inline]
    pub fn new(words: &'a [AtomicU64], offset: usize, len: usize) -> Self {
        let end = offset.checked_add(len).expect("a run of octets has an end");
        assert!(end <= words.len() * 8, "octets {offset}..{end} of {}", words.len() * 8);
        // The words are atomics, so writes through a shared reference are allowed.
        let start = words.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset);
        Part { vector: libc::iovec { iov_base: start.cast(), iov_len: len }, words: PhantomData }
    }

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

    /// The run as the system takes it.
    #[inline]
    pub(crate) fn vector(&self) -> libc::iovec {
        self.vector
    }
}

/// Makes a socket that is bound to an address choose its port only when it connects, so that one port serves
/// connections to several addresses.
///
/// # Errors
/// The system refuses.
pub fn bind_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    options::set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Sends as many octets as the socket takes now. Never blocks, and raises no signal.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when the socket has no room; the peer has closed it; the system refuses.
///
/// # Panics
/// With more than [`PARTS_MAX`] parts.
pub fn send(socket: BorrowedFd<'_>, parts: &[Part<'_>]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    if let [Part { vector, .. }] = parts {
        // As in `receive`, the raw call is no cancellation point.
        // SAFETY: the octets are borrowed for the length of the call and are only read.
        return done(unsafe {
            let nowhere = std::ptr::null::<libc::c_void>();
            let (fd, at, len) = (socket.as_raw_fd(), vector.iov_base, vector.iov_len);
            libc::syscall(libc::SYS_sendto, fd, at, len, flags, nowhere, 0) as libc::ssize_t
        });
    }
    let message = header(parts);
    // SAFETY: the header refers to the parts, whose octets are borrowed for the length of the call and are
    // only read.
    done(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) })
}

/// Receives as many octets as have arrived and fit; 0 at the end of the stream. Never blocks.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when none have arrived; the connection is broken; the system refuses.
///
/// # Panics
/// With more than [`PARTS_MAX`] parts, or without room.
pub fn receive(socket: BorrowedFd<'_>, parts: &[Part<'_>]) -> io::Result<usize> {
    assert!(
        parts.iter().any(|part| part.vector.iov_len > 0),
        "without room, the end of the stream cannot be distinguished"
    );
    if let [Part { vector, .. }] = parts {
        // An empty poll is much faster here than with a message header. The raw call is also no cancellation
        // point of the thread library, which costs as much as the rest of its part of the call.
        // SAFETY: the words are borrowed for the length of the call; they are atomics, which may be written
        // through a shared reference, and the system writes octets that any word may hold.
        return done(unsafe {
            let no_address = std::ptr::null_mut::<libc::c_void>();
            let (fd, at, len) = (socket.as_raw_fd(), vector.iov_base, vector.iov_len);
            libc::syscall(libc::SYS_recvfrom, fd, at, len, libc::MSG_DONTWAIT, no_address, no_address)
                as libc::ssize_t
        });
    }
    let mut message = header(parts);
    // SAFETY: the header refers to the parts, of which the same holds.
    done(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) })
}

/// Sent octets that the peer's system has not acked.
///
/// # Errors
/// The system refuses.
pub fn untaken_len(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut len: libc::c_int = 0;
    // SAFETY: this request writes one int, to which the pointer leads.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut len) } as libc::ssize_t)?;
    Ok(usize::try_from(len).unwrap_or(0))
}

/// Time since the peer's system last acked data, or answered a probe.
///
/// # Errors
/// The system refuses.
pub fn since_ack(socket: BorrowedFd<'_>) -> io::Result<Duration> {
    // SAFETY: all of its fields are numbers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the system writes no more octets than the given length.
    let result = unsafe {
        let at = (&raw mut info).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut len)
    };
    done(result as libc::ssize_t)?;
    Ok(unanswered(info.tcpi_probes.max(info.tcpi_retransmits), info.tcpi_last_ack_recv))
}

/// The time since the last ack, if the peer's system has not answered two probes since then. Between two
/// probes of a closed window, which may be 2 min apart, it has nothing to answer; a single probe may just be
/// in flight.
fn unanswered(asked: u8, since_ack_ms: u32) -> Duration {
    if asked >= 2 { Duration::from_millis(since_ack_ms.into()) } else { Duration::ZERO }
}

fn header(parts: &[Part<'_>]) -> libc::msghdr {
    assert!(parts.len() <= PARTS_MAX, "{} parts", parts.len());
    // SAFETY: a message header is numbers and pointers, all of which may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // A part has the layout of its vector.
    message.msg_iov = parts.as_ptr().cast::<libc::iovec>().cast_mut();
    message.msg_iovlen = parts.len() as _;
    message
}

fn done(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// Probes of a closed window are up to 2 min apart: the time between two of them is no silence.
    #[test]
    fn unanswered_time_counts_from_the_second_probe() {
        assert_eq!(unanswered(0, 100_000), Duration::ZERO);
        assert_eq!(unanswered(1, 100_000), Duration::ZERO, "it may just have left");
        assert_eq!(unanswered(2, 100_000), Duration::from_secs(100));
    }

    fn words(octets: &[u8]) -> Vec<AtomicU64> {
        let chunks = octets.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU64::new(u64::from_ne_bytes(word))
        });
        chunks.collect()
    }

    fn octets(words: &[AtomicU64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect()
    }

    #[test]
    fn parts_are_sent_and_received_as_one_stream() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let (first, second) = (words(b"0123456789abcdef"), words(b"ABCDEFGH"));
        let parts = [Part::new(&first, 3, 7), Part::new(&second, 0, 0), Part::new(&second, 1, 6)];
        assert_eq!(send(ours.as_fd(), &parts).expect("sent"), 13);
        let (left, right) = (words(&[b'.'; 8]), words(&[b'.'; 16]));
        let parts = [Part::new(&left, 2, 5), Part::new(&right, 1, 15)];
        assert_eq!(receive(theirs.as_fd(), &parts).expect("received"), 13);
        assert_eq!(octets(&left), b"..34567.");
        assert_eq!(octets(&right), b".89BCDEFG.......");
    }

    #[test]
    fn empty_full_and_ended_streams_differ() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let room = words(&[0; 8]);
        let none = receive(theirs.as_fd(), &[Part::new(&room, 0, 8)]).expect_err("nothing is there");
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        let much = words(&vec![7; 1 << 20]);
        while let Ok(sent) = send(ours.as_fd(), &[Part::new(&much, 0, 1 << 20)]) {
            assert!(sent > 0);
        }
        let full = send(ours.as_fd(), &[Part::new(&much, 0, 1)]).expect_err("full");
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        drop(ours);
        while receive(theirs.as_fd(), &[Part::new(&much, 0, 1 << 20)]).expect("what was sent") > 0 {}
        let gone = send(theirs.as_fd(), &[Part::new(&much, 0, 1)]).expect_err("the peer has closed");
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    #[should_panic(expected = "octets 9..17 of 16")]
    fn part_beyond_its_words_panics() {
        let _ = Part::new(&words(&[0; 16]), 9, 8);
    }
}
