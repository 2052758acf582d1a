//! The control protocol between a rank and its monitor: fixed packets over a packet socket, with descriptors.
//!
//! ```text
//! rank -> monitor   Hello     rank          descriptors: its segment, a socket for the reply
//! monitor -> rank   World                   descriptors: the description of the world, this rank's
//!                                           listening socket; if there are connections to make, when all
//!                                           ranks have sent Hello
//!                   Welcome   ranks         descriptors: the common page, the status page; if these ranks
//!                                           share memory, when all have sent Hello
//!                   Segments  first, count  descriptors: the segments of these ranks
//!                   Refused   why           nothing follows
//! rank -> monitor   Cancel    rank          the rank stops waiting. The reply is Cancelled, or World,
//!                                           Welcome or Refused if the monitor has sent that or all ranks
//!                                           have joined
//! monitor -> rank   Cancelled               the rank is not in the job, and may send Hello again
//! ```
//!
//! A process that has finished may send Hello again, with another segment. When all ranks have done so, they
//! form a new job.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use bytes::{Buf, BufMut};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The variable with the number of the control socket.
pub const CONTROL: &str = "MPJDEV_CONTROL";
/// The variable with the rank.
pub const RANK: &str = "MPJDEV_RANK";
/// The variable with the number of ranks.
pub const SIZE: &str = "MPJDEV_SIZE";

/// Descriptors in one packet at most; the system's limit is 253.
pub const FDS_MAX: usize = 128;
/// Octets of a packet.
const LEN: usize = 32;
/// "mpjctl" and a version.
const MAGIC: u64 = u64::from_be_bytes(*b"mpjctl\x00\x02");

/// One packet of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A process asks to be a rank.
    Hello {
        /// The rank.
        rank: u32,
    },
    /// All ranks have joined. The rank shares memory with them.
    Welcome {
        /// Number of ranks.
        ranks: u32,
    },
    /// Segments, in the descriptors of the packet.
    Segments {
        /// Rank of the first.
        first: u32,
        /// Number of segments.
        count: u32,
    },
    /// All ranks have joined. The rank connects to some of them.
    World,
    /// The process is refused.
    Refused(Refusal),
    /// A process that has sent Hello stops waiting.
    Cancel {
        /// The rank.
        rank: u32,
    },
    /// The process is not in the job.
    Cancelled,
}

/// The reason why a process is refused as a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another process is that rank.
    #[error(
        "another process is this rank already; a program that a rank starts is no rank: without the \
         variables {}, {} and {} it runs alone, as rank 0 of 1",
        CONTROL,
        RANK,
        SIZE
    )]
    Taken,
    /// A rank has ended before this step.
    #[error("rank {0} has ended without Comm.init")]
    Ended(u32),
    /// A rank has failed before all ranks reached this step.
    #[error("rank {0} has failed before all had called Comm.init")]
    Failed(u32),
    /// The job of several sites does not form, or has ended. The launcher has printed the reason.
    #[error("the sites did not join the job; see mpjrun's message")]
    NoJob,
    /// The launcher's ranks are one site of a job that has formed already.
    #[error("a site joins its job once: Comm.init cannot be called again after Comm.finish here")]
    Once,
    /// The launcher has no descriptors or memory for the job.
    #[error("it has no descriptor or memory left for another process")]
    NoRoom,
}

impl Packet {
    fn words(self) -> [u64; 4] {
        let (kind, a, b) = match self {
            Packet::Hello { rank } => (1, rank, 0),
            Packet::Welcome { ranks } => (2, ranks, 0),
            Packet::Segments { first, count } => (3, first, count),
            Packet::Refused(Refusal::Taken) => (4, 0, 0),
            Packet::Refused(Refusal::Ended(rank)) => (5, rank, 0),
            Packet::Refused(Refusal::Failed(rank)) => (6, rank, 0),
            Packet::Refused(Refusal::NoRoom) => (7, 0, 0),
            Packet::World => (8, 0, 0),
            Packet::Refused(Refusal::NoJob) => (9, 0, 0),
            Packet::Refused(Refusal::Once) => (10, 0, 0),
            Packet::Cancel { rank } => (11, rank, 0),
            Packet::Cancelled => (12, 0, 0),
        };
        [MAGIC, kind, a.into(), b.into()]
    }

    /// The octets of the packet.
    pub fn emit(self) -> [u8; LEN] {
        let mut octets = [0; LEN];
        let mut rest = &mut octets[..];
        self.words().into_iter().for_each(|word| rest.put_u64_ne(word));
        octets
    }

    /// The packet in these octets; `None` when they are malformed.
    pub fn parse(mut octets: &[u8]) -> Option<Packet> {
        if octets.len() != LEN || octets.get_u64_ne() != MAGIC {
            return None;
        }
        let kind = octets.get_u64_ne();
        let a = u32::try_from(octets.get_u64_ne()).ok()?;
        let b = u32::try_from(octets.get_u64_ne()).ok()?;
        Some(match kind {
            1 => Packet::Hello { rank: a },
            2 => Packet::Welcome { ranks: a },
            3 => Packet::Segments { first: a, count: b },
            4 => Packet::Refused(Refusal::Taken),
            5 => Packet::Refused(Refusal::Ended(a)),
            6 => Packet::Refused(Refusal::Failed(a)),
            7 => Packet::Refused(Refusal::NoRoom),
            8 => Packet::World,
            9 => Packet::Refused(Refusal::NoJob),
            10 => Packet::Refused(Refusal::Once),
            11 => Packet::Cancel { rank: a },
            12 => Packet::Cancelled,
            _ => return None,
        })
    }
}

/// A received packet with its descriptors.
#[derive(Debug)]
pub struct Received {
    /// The packet; `None` when it is malformed.
    pub packet: Option<Packet>,
    /// The descriptors of the packet.
    pub fds: Vec<OwnedFd>,
    /// Some descriptors were lost, since this process is at its limit.
    pub is_cut: bool,
    /// The process that sent it, if the socket has the option to report it.
    pub pid: Option<rustix::process::Pid>,
}

/// Both ends of a new packet socket.
///
/// # Errors
/// The system refuses.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a packet with descriptors. Never blocks.
///
/// # Errors
/// The other side has closed; the system refuses; a temporary error, for which [`is_temporary`] is true.
pub fn send(socket: BorrowedFd<'_>, packet: Packet, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(fds.len() <= FDS_MAX, "{} descriptors in one packet", fds.len());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(&packet.emit())], &mut ancillary, flags)?;
    Ok(())
}

/// Whether a failed send may succeed later: the socket is full, or too many descriptors of this user are in
/// flight.
pub fn is_temporary(error: &io::Error) -> bool {
    const TEMPORARY: [Errno; 5] =
        [Errno::AGAIN, Errno::INTR, Errno::TOOMANYREFS, Errno::NOBUFS, Errno::NOMEM];
    TEMPORARY.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Receives a packet; `None` when the other side has closed.
///
/// # Errors
/// No packet yet, on a socket that does not block; the system refuses.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    receive_by(socket, RecvFlags::CMSG_CLOEXEC)
}

/// Whether the next packet, which stays in the socket, has more descriptors than this process may open now.
/// There must be a packet.
pub fn would_be_cut(socket: BorrowedFd<'_>) -> bool {
    let found = receive_by(socket, RecvFlags::CMSG_CLOEXEC | RecvFlags::PEEK | RecvFlags::DONTWAIT);
    found.is_ok_and(|found| found.is_some_and(|found| found.is_cut))
}

fn receive_by(socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<Option<Received>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX), ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut octets = [0; LEN + 1];
    let found = recvmsg(socket, &mut [IoSliceMut::new(&mut octets)], &mut ancillary, flags)?;
    if found.bytes == 0 {
        return Ok(None);
    }
    let packet = Packet::parse(&octets[..found.bytes]);
    let is_cut = found.flags.contains(ReturnFlags::CTRUNC);
    let mut received = Received { packet, fds: Vec::new(), is_cut, pid: None };
    for message in ancillary.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(fds) => received.fds.extend(fds),
            RecvAncillaryMessage::ScmCredentials(sender) => received.pid = Some(sender.pid),
            _ => {}
        }
    }
    Ok(Some(received))
}

/// The packets to a rank when all have joined: the job's pages, then the segments of all ranks, with the most
/// descriptors per packet.
pub fn welcome<'a>(
    pages: [BorrowedFd<'a>; 2],
    segments: &[BorrowedFd<'a>],
) -> Vec<(Packet, Vec<BorrowedFd<'a>>)> {
    let mut packets = vec![(Packet::Welcome { ranks: segments.len() as u32 }, pages.to_vec())];
    packets.extend(segments.chunks(FDS_MAX).enumerate().map(|(i, part)| {
        let packet = Packet::Segments { first: (i * FDS_MAX) as u32, count: part.len() as u32 };
        (packet, part.to_vec())
    }));
    packets
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn packets_survive_the_round_trip_and_other_octets_are_refused() {
        let all = [
            Packet::Hello { rank: 7 },
            Packet::Welcome { ranks: u32::MAX },
            Packet::Segments { first: 128, count: 2 },
            Packet::Refused(Refusal::Taken),
            Packet::Refused(Refusal::Ended(3)),
            Packet::Refused(Refusal::Failed(4)),
            Packet::Refused(Refusal::NoRoom),
            Packet::World,
            Packet::Refused(Refusal::NoJob),
            Packet::Refused(Refusal::Once),
            Packet::Cancel { rank: 5 },
            Packet::Cancelled,
        ];
        for packet in all {
            let octets = packet.emit();
            assert_eq!(Packet::parse(&octets), Some(packet));
            assert_eq!(Packet::parse(&octets[1..]), None);
            for bit in 0..128 {
                let mut wrong = octets;
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Packet::parse(&wrong), Some(packet), "bit {bit}");
            }
        }
        assert_eq!(Packet::parse(&[0; LEN]), None);
    }

    #[test]
    fn descriptors_travel_beside_a_packet() {
        let (one, other) = socket_pair().expect("sockets");
        let files: Vec<OwnedFd> = (0..FDS_MAX + 3).map(|_| one.try_clone().expect("a descriptor")).collect();
        let segments: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        for (packet, fds) in welcome([one.as_fd(); 2], &segments) {
            send(one.as_fd(), packet, &fds).expect("sent");
        }
        let segments = |first, count| Packet::Segments { first: first as u32, count: count as u32 };
        let all = Packet::Welcome { ranks: FDS_MAX as u32 + 3 };
        for (packet, count) in [(all, 2), (segments(0, FDS_MAX), FDS_MAX), (segments(FDS_MAX, 3), 3)] {
            let received = receive(other.as_fd()).expect("no error").expect("a packet");
            assert_eq!((received.packet, received.is_cut), (Some(packet), false));
            assert_eq!(received.fds.len(), count);
        }
        rustix::io::write(&one, b"nonsense").expect("sent");
        assert_eq!(receive(other.as_fd()).expect("no error").expect("a packet").packet, None);
        drop((one, files));
        assert!(receive(other.as_fd()).expect("no error").is_none());
    }

    #[test]
    fn full_control_socket_is_a_temporary_error() {
        let (one, other) = socket_pair().expect("sockets");
        let error = loop {
            if let Err(error) = send(one.as_fd(), Packet::Welcome { ranks: 1 }, &[]) {
                break error;
            }
        };
        assert!(is_temporary(&error), "{error}");
        drop(other);
        let error =
            send(one.as_fd(), Packet::Welcome { ranks: 1 }, &[]).expect_err("the other end is closed");
        assert!(!is_temporary(&error), "{error}");
    }
}
