//! What a rank and the one that starts its job tell each other: fixed packets over a packet socket, descriptors beside them.
//!
//! ```text
//! rank -> monitor   Hello     rank            descriptors: its segment, a socket for the answer
//! monitor -> rank   Welcome   ranks           descriptors: the common page, the board; when all ranks have said hello
//!                   Segments  first, count    descriptors: the segments of these ranks
//!                   Refused   why             nothing follows
//! ```

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
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
const MAGIC: u64 = u64::from_be_bytes(*b"mpjctl\x00\x01");

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A process says which rank it is.
    Hello {
        /// The rank.
        rank: u32,
    },
    /// All ranks are there.
    Welcome {
        /// How many.
        ranks: u32,
    },
    /// Segments follow beside.
    Segments {
        /// Rank of the first.
        first: u32,
        /// How many.
        count: u32,
    },
    /// The process is not taken.
    Refused(Refusal),
}

/// Why a process is not taken as a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another process is that rank.
    #[error("another process is this rank already")]
    Taken,
    /// A rank has ended before it came that far.
    #[error("rank {0} has ended without Comm.init")]
    Ended(u32),
}

impl Packet {
    fn words(self) -> [u64; 4] {
        let (kind, a, b) = match self {
            Packet::Hello { rank } => (1, rank, 0),
            Packet::Welcome { ranks } => (2, ranks, 0),
            Packet::Segments { first, count } => (3, first, count),
            Packet::Refused(Refusal::Taken) => (4, 0, 0),
            Packet::Refused(Refusal::Ended(rank)) => (5, rank, 0),
        };
        [MAGIC, kind, a.into(), b.into()]
    }

    /// The octets.
    pub fn emit(self) -> [u8; LEN] {
        let mut octets = [0; LEN];
        for (to, word) in octets.chunks_exact_mut(8).zip(self.words()) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        octets
    }

    /// The packet in these octets; none when there is none.
    pub fn parse(octets: &[u8]) -> Option<Packet> {
        if octets.len() != LEN {
            return None;
        }
        let word = |i: usize| u64::from_ne_bytes(octets[8 * i..8 * i + 8].try_into().expect("eight octets"));
        let number = |i| u32::try_from(word(i)).ok();
        if word(0) != MAGIC {
            return None;
        }
        Some(match word(1) {
            1 => Packet::Hello { rank: number(2)? },
            2 => Packet::Welcome { ranks: number(2)? },
            3 => Packet::Segments { first: number(2)?, count: number(3)? },
            4 => Packet::Refused(Refusal::Taken),
            5 => Packet::Refused(Refusal::Ended(number(2)?)),
            _ => return None,
        })
    }
}

/// A packet that came: what is beside it too.
#[derive(Debug)]
pub struct Received {
    /// The packet; none when it is none of ours.
    pub packet: Option<Packet>,
    /// The descriptors beside it.
    pub fds: Vec<OwnedFd>,
    /// Process that has sent it, where the socket was told to say so.
    pub pid: Option<rustix::process::Pid>,
}

/// Both ends of a new packet socket.
///
/// # Errors
/// The system refuses.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a packet with descriptors beside it.
///
/// # Errors
/// The other side is gone; its socket is full; the system refuses.
pub fn send(socket: BorrowedFd<'_>, packet: Packet, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(fds.len() <= FDS_MAX, "{} descriptors in one packet", fds.len());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(socket, &[IoSlice::new(&packet.emit())], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a packet; none when the other side is gone.
///
/// # Errors
/// There is none yet, where the socket does not block; the system refuses.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX), ScmCredentials(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut octets = [0; LEN + 1];
    let found = recvmsg(socket, &mut [IoSliceMut::new(&mut octets)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if found.bytes == 0 {
        return Ok(None);
    }
    let mut received = Received { packet: Packet::parse(&octets[..found.bytes]), fds: Vec::new(), pid: None };
    for message in beside.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(fds) => received.fds.extend(fds),
            RecvAncillaryMessage::ScmCredentials(who) => received.pid = Some(who.pid),
            _ => {}
        }
    }
    Ok(Some(received))
}

/// Sends the segments of all ranks, as many in a packet as go.
///
/// # Errors
/// As for [`send`].
pub fn send_segments(socket: BorrowedFd<'_>, files: &[OwnedFd]) -> io::Result<()> {
    for (i, part) in files.chunks(FDS_MAX).enumerate() {
        let fds: Vec<_> = part.iter().map(AsFd::as_fd).collect();
        let packet = Packet::Segments { first: (i * FDS_MAX) as u32, count: part.len() as u32 };
        send(socket, packet, &fds)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_from_their_octets_and_nothing_else_does() {
        let all = [
            Packet::Hello { rank: 7 },
            Packet::Welcome { ranks: u32::MAX },
            Packet::Segments { first: 128, count: 2 },
            Packet::Refused(Refusal::Taken),
            Packet::Refused(Refusal::Ended(3)),
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
        send_segments(one.as_fd(), &files).expect("sent");
        for (first, count) in [(0, FDS_MAX), (FDS_MAX, 3)] {
            let received = receive(other.as_fd()).expect("no error").expect("a packet");
            assert_eq!(received.packet, Some(Packet::Segments { first: first as u32, count: count as u32 }));
            assert_eq!(received.fds.len(), count);
        }
        rustix::io::write(&one, b"nonsense").expect("sent");
        assert_eq!(receive(other.as_fd()).expect("no error").expect("a packet").packet, None);
        drop((one, files));
        assert!(receive(other.as_fd()).expect("no error").is_none());
    }
}
