//! Sending of datagrams.

use std::mem::{MaybeUninit, size_of, zeroed};
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Address, BATCH_MAX, Control, Obstacle, RUNS_MAX, Run, SEGMENTS_MAX};

/// A datagram, or several of one length in sequence, to one address.
#[derive(Clone, Copy, Debug)]
pub struct GsoBatch<'a> {
    /// The destination; `None` is the peer of a connected socket.
    pub to: Option<&'a Address>,
    /// Its octets, in order. The receiver does not see the boundaries of runs.
    pub runs: &'a [Run<'a>],
    /// Octets of each datagram but the last, which may be shorter; `None` makes one datagram of all octets.
    /// At most [`SEGMENTS_MAX`] datagrams.
    pub segment_len: Option<NonZeroU16>,
}

impl<'a> GsoBatch<'a> {
    /// One datagram through a connected socket.
    pub fn single(runs: &'a [Run<'a>]) -> GsoBatch<'a> {
        GsoBatch { to: None, runs, segment_len: None }
    }
}

/// Sends GSO batches in one system call. Returns the number that the system has taken, the first ones, at
/// least 1. Each is taken as a whole or not at all. Never blocks, and raises no signal.
///
/// # Errors
/// The reason why the first was not taken.
///
/// # Panics
/// With more than [`BATCH_MAX`] GSO batches or none, or more than [`RUNS_MAX`] runs or [`SEGMENTS_MAX`]
/// datagrams in one.
pub fn send(socket: BorrowedFd<'_>, batches: &[GsoBatch<'_>]) -> Result<usize, Obstacle> {
    assert!((1..=BATCH_MAX).contains(&batches.len()), "{} GSO batches", batches.len());
    if let [GsoBatch { to, runs: [run], segment_len: None }] = batches {
        let (to, to_len) = to.map_or((std::ptr::null(), 0), Address::raw);
        // SAFETY: the octets and the address are borrowed for the length of the call and are only read.
        let sent = unsafe {
            let (fd, at) = (socket.as_raw_fd(), run.vector.iov_base);
            libc::syscall(libc::SYS_sendto, fd, at, run.len(), FLAGS, to, to_len)
        };
        return if sent < 0 { Err(Obstacle::last(false)) } else { Ok(1) };
    }
    if let [batch] = batches {
        let mut control = MaybeUninit::uninit();
        let header = header(batch, &mut control);
        // SAFETY: the header refers to the address, the runs and the control octets, which live until the
        // call returns and are only read.
        let sent = unsafe { libc::syscall(libc::SYS_sendmsg, socket.as_raw_fd(), &raw const header, FLAGS) };
        return if sent < 0 { Err(Obstacle::last(batch.segment_len.is_some())) } else { Ok(1) };
    }
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH_MAX];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
    for ((batch, control), place) in batches.iter().zip(&mut controls).zip(&mut headers) {
        place.write(libc::mmsghdr { msg_hdr: header(batch, control), msg_len: 0 });
    }
    // SAFETY: as many headers as there are GSO batches have been written; the same holds for each of them as
    // for a single one. The system writes the lengths.
    let sent = unsafe {
        let (fd, count) = (socket.as_raw_fd(), batches.len() as libc::c_uint);
        libc::syscall(libc::SYS_sendmmsg, fd, headers.as_mut_ptr(), count, FLAGS)
    };
    usize::try_from(sent).map_err(|_| Obstacle::last(batches[0].segment_len.is_some()))
}

const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// A header that refers to a GSO batch, and to control octets if it is to be cut.
fn header(batch: &GsoBatch<'_>, control: &mut MaybeUninit<Control>) -> libc::msghdr {
    assert!(batch.runs.len() <= RUNS_MAX, "{} runs", batch.runs.len());
    // SAFETY: a message header is numbers and pointers, all of which may be zero.
    let mut header: libc::msghdr = unsafe { zeroed() };
    if let Some((at, len)) = batch.to.map(Address::raw) {
        header.msg_name = at.cast_mut();
        header.msg_namelen = len;
    }
    // A run has the layout of its vector.
    header.msg_iov = batch.runs.as_ptr().cast::<libc::iovec>().cast_mut();
    header.msg_iovlen = batch.runs.len() as _;
    if let Some(len) = batch.segment_len {
        let total: usize = batch.runs.iter().map(Run::len).sum();
        let count = total.div_ceil(len.get().into());
        assert!(count <= SEGMENTS_MAX, "{count} datagrams in a GSO batch");
        const VALUE_LEN: libc::c_uint = size_of::<u16>() as libc::c_uint;
        let control = control.write(Control::EMPTY);
        header.msg_control = (&raw mut *control).cast();
        // SAFETY: it computes with numbers alone.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(VALUE_LEN) } as _;
        // SAFETY: the control octets are aligned, zero, and long enough for one control message with such a
        // value, so that the first one and its value are inside.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_UDP;
            (*first).cmsg_type = libc::UDP_SEGMENT;
            (*first).cmsg_len = libc::CMSG_LEN(VALUE_LEN) as _;
            libc::CMSG_DATA(first).cast::<u16>().write_unaligned(len.get());
        }
    }
    header
}
