//! Receiving of datagrams.

use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::Source;
use super::{BATCH_MAX, Control, Obstacle, Part, RUNS_MAX};

/// Contents of one room: a datagram, or a GSO batch of them from one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Octets in the room, from its beginning.
    pub len: usize,
    /// Octets that were sent. Those beyond the room are lost.
    pub sent_len: usize,
    /// Octets of each datagram but the last, which may be shorter; [`sent_len`](Self::sent_len) of a single
    /// one.
    pub segment_len: usize,
    /// The sender.
    pub from: Option<SocketAddr>,
}

impl Arrived {
    /// Ranges of the complete datagrams in the room, in order. A datagram may be empty.
    pub fn datagrams(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Arrived { len, sent_len, .. } = *self;
        let segment_len = self.segment_len.max(1);
        let count = sent_len.div_ceil(segment_len).max(1);
        let datagrams = (0..count).map(move |at| at * segment_len..((at + 1) * segment_len).min(sent_len));
        datagrams.take_while(move |datagram| datagram.end <= len)
    }
}

/// Receives a datagram or a GSO batch into each room, in one system call. Returns the number of filled rooms,
/// the first ones, at least 1, and describes their contents in `arrived`. Never blocks.
///
/// A room is some parts, which are filled in order. A socket that asks for GSO batches
/// ([`super::options::set_gro`]) needs rooms of 64 KiB each, since octets beyond a room are lost.
///
/// # Errors
/// The reason why none was filled. With [`Obstacle::Refused`] and similar ones nothing was received, and
/// there may be datagrams.
///
/// # Panics
/// With more than [`BATCH_MAX`] rooms or none, fewer entries in `arrived`, or more than [`RUNS_MAX`] parts in
/// one room.
pub fn receive(
    socket: BorrowedFd<'_>,
    rooms: &[&[Part<'_>]],
    arrived: &mut [Arrived],
) -> Result<usize, Obstacle> {
    assert!((1..=BATCH_MAX).contains(&rooms.len()), "{} rooms", rooms.len());
    assert!(rooms.len() <= arrived.len(), "{} rooms, {} places", rooms.len(), arrived.len());
    if let [room] = rooms {
        let (mut source, mut control) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let mut header = header(room, &mut source, &mut control);
        // SAFETY: the header refers to the parts, for which the same holds as below, and to the two rooms
        // beside them, which live until their contents have been read.
        let len = unsafe { libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut header, FLAGS) };
        let sent_len = usize::try_from(len).map_err(|_| Obstacle::last(false))?;
        arrived[0] = arrived_of(&header, sent_len, room);
        return Ok(1);
    }
    let mut sources = [const { MaybeUninit::<Source>::uninit() }; BATCH_MAX];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH_MAX];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
    for (((room, source), control), place) in
        rooms.iter().zip(&mut sources).zip(&mut controls).zip(&mut headers)
    {
        place.write(libc::mmsghdr { msg_hdr: header(room, source, control), msg_len: 0 });
    }
    // SAFETY: as many headers as there are rooms have been written. The words of the parts are borrowed for
    // the length of the call; they are atomics, which may be written through a shared reference, and the
    // system writes octets that any word may hold.
    let count = unsafe {
        let (fd, rooms, nothing) =
            (socket.as_raw_fd(), rooms.len() as libc::c_uint, std::ptr::null_mut::<()>());
        libc::syscall(libc::SYS_recvmmsg, fd, headers.as_mut_ptr(), rooms, FLAGS, nothing)
    };
    let count = usize::try_from(count).map_err(|_| Obstacle::last(false))?;
    for ((header, room), arrived) in headers.iter().zip(rooms).zip(arrived).take(count) {
        // SAFETY: this many were written above, and then by the system.
        let header = unsafe { header.assume_init_ref() };
        *arrived = arrived_of(&header.msg_hdr, header.msg_len as usize, room);
    }
    Ok(count)
}

/// Receives one datagram from any sender into one part. Returns its octets; those beyond the part are lost.
/// The fastest path to poll a connected socket. It does not report where the datagrams of a GSO batch end, so
/// the socket must not ask for GSO batches. Never blocks.
///
/// # Errors
/// As of [`receive`].
pub fn receive_one(socket: BorrowedFd<'_>, room: Part<'_>) -> Result<usize, Obstacle> {
    let (vector, no_address) = (room.vector(), std::ptr::null_mut::<libc::c_void>());
    // SAFETY: the words are borrowed for the length of the call; they are atomics, which may be written
    // through a shared reference, and the system writes octets that any word may hold.
    let len = unsafe {
        let fd = socket.as_raw_fd();
        libc::syscall(libc::SYS_recvfrom, fd, vector.iov_base, vector.iov_len, FLAGS, no_address, no_address)
    };
    usize::try_from(len).map_err(|_| Obstacle::last(false))
}

/// As [`receive_one`], and describes the datagram with its sender.
///
/// # Errors
/// As of [`receive`].
pub fn receive_from(socket: BorrowedFd<'_>, room: Part<'_>) -> Result<Arrived, Obstacle> {
    let (vector, mut source) = (room.vector(), Source::EMPTY);
    let mut source_len = size_of::<Source>() as libc::socklen_t;
    // SAFETY: as in `receive_one`; the address and its length live until the call returns.
    let len = unsafe {
        let (fd, source, source_len) = (socket.as_raw_fd(), &raw mut source, &raw mut source_len);
        libc::syscall(libc::SYS_recvfrom, fd, vector.iov_base, vector.iov_len, FLAGS, source, source_len)
    };
    let sent_len = usize::try_from(len).map_err(|_| Obstacle::last(false))?;
    let from = source.address().filter(|_| source_len > 0);
    Ok(Arrived { len: sent_len.min(room.len()), sent_len, segment_len: sent_len, from })
}

/// The system returns the length that was sent, not the octets that fit the room.
const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_TRUNC;

/// A header that refers to a room, and to the space where the system may write the sender and the length of
/// the segments.
fn header(
    room: &[Part<'_>],
    source: &mut MaybeUninit<Source>,
    control: &mut MaybeUninit<Control>,
) -> libc::msghdr {
    assert!(room.len() <= RUNS_MAX, "{} parts", room.len());
    // SAFETY: a message header is numbers and pointers, all of which may be zero.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_name = (&raw mut *source.write(Source::EMPTY)).cast();
    header.msg_namelen = size_of::<Source>() as libc::socklen_t;
    // A part has the layout of its vector.
    header.msg_iov = room.as_ptr().cast::<libc::iovec>().cast_mut();
    header.msg_iovlen = room.len() as _;
    header.msg_control = (&raw mut *control.write(Control::EMPTY)).cast();
    header.msg_controllen = size_of::<Control>() as _;
    header
}

/// The contents that the system has described in a header, which [`header`] made and whose rooms still live.
fn arrived_of(header: &libc::msghdr, sent_len: usize, room: &[Part<'_>]) -> Arrived {
    let room_len = room.iter().map(Part::len).sum();
    // SAFETY: the name is where `header` has put it, and all of it was written there.
    let from = unsafe { (*header.msg_name.cast::<Source>()).address() };
    // A connected socket may report no sender.
    let from = from.filter(|_| header.msg_namelen > 0);
    let segment_len = segment_len(header).filter(|len| (1..sent_len).contains(len)).unwrap_or(sent_len);
    Arrived { len: sent_len.min(room_len), sent_len, segment_len, from }
}

/// The length of the segments of a GSO batch.
fn segment_len(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the control octets are where `header` has put them; the system has written control messages
    // there and their length to the header, and a control message with this name has an int.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = at.as_ref() {
            if (message.cmsg_level, message.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO) {
                let value = libc::CMSG_DATA(at).cast::<libc::c_int>().read_unaligned();
                return usize::try_from(value).ok();
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    None
}
