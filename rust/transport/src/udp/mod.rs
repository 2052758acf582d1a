//! Ranks behind UDP sockets, with reliable messages over datagrams (`mpjdev_proto::datagram::modern`).
//!
//! A rank has one socket for all its peers. The machines of `mpjdev-proto` say what packets there are; here their octets are
//! moved and their clock is read. A peer is one machine under one lock: whoever sends takes it, and so does whoever handles what has
//! come, a datagram at a time. The way in is a stage that a look at the socket fills: waiting is reading, as over TCP.
//! Everything that time does, and everything that a machine tells its rank, is done where packets are handed over.
//!
//! ```text
//! send ----> peer: machine, octets kept until they have come ----> trains of datagrams ----> socket
//!                 ^                                                                            |
//!                 | datagram by datagram                                                       v
//! rank <---- inbox: handed over in order <---- kept until it is their turn <---- stage <---- look
//! ```

mod counted;
mod expected;
mod exposed;
mod handling;
pub mod ids;
mod inbox;
mod lines;
mod looking;
mod outgoing;
mod peer;
pub mod probe;
mod sending;
pub mod shortening;
mod stage;
mod store;
mod timers;
mod wire;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::datagram::extension::Sack;
use mpjdev_proto::datagram::layout::{CONTEXT_LEN, FIXED_LEN, FRAGMENT_LEN, TRAILER_LEN};
use mpjdev_proto::datagram::modern::rtt::Timing;
use mpjdev_proto::datagram::modern::settings::{self, DEAD_AFTER, Path, Settings};
use mpjdev_proto::datagram::modern::time::{MILLISECOND, Nanos};
use mpjdev_proto::datagram::modern::windows::{Shares, capacity, charge};
use mpjdev_proto::datagram::network::Impairment;
use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_sys::datagram::{LEN_MAX, options};

use crate::config::{Config, UNMATCHED_MAX};
pub use inbox::UdpInbox;
use probe::Early;
pub use wire::UdpWire;

/// What all ranks have agreed on, and the limits of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Octets of a datagram at most, whoever sends it. What a job starts with may be more than it takes: see [`datagram_len`].
    pub datagram_len_max: usize,
    /// Octets that the system is asked for, for what waits to be received.
    pub receive_buffer_len: usize,
    /// Packets that one peer may send ahead at most, whatever the socket holds.
    pub window_max: u16,
    /// Octets of a message that leave before it is matched.
    pub eager_max: u32,
    /// Messages to a peer whose octets have not come, before the next ones have to wait.
    pub sends_max: usize,
    /// What is known of the way, where that is the same for all.
    pub path: Path,
    /// How long nothing may come from a rank that is asked for something, in nanoseconds, before it is dead.
    pub dead_after: Nanos,
    /// How long a rank that finishes waits until the others have acked its last packets.
    pub linger: Duration,
    /// Whether all datagrams are to have a checksum of their own.
    pub is_checked: bool,
    /// For tests: what becomes of datagrams before they reach the socket, and the seed of it.
    pub impairment: Option<(Impairment, u64)>,
}

/// Within this machine nothing is to be spread over time: the windows alone keep the sockets from being full. An estimate of the
/// round trip is as long as somebody has waited for a processor, and a pace by it would make everybody wait for longer.
/// For the same reason nothing is sent again soon: where windows keep sockets from being full, nothing is lost. And an answer, which
/// takes the acknowledgment along, may be as late as a thread gets a processor again.
pub const LOOPBACK: Path = Path {
    rate: Some(1_000_000_000_000),
    timing: Timing::NO_PROGRESS,
    max_ack_delay: 25 * MILLISECOND,
    ..Path::PRIVATE
};

impl Default for Terms {
    fn default() -> Self {
        Terms {
            datagram_len_max: LENS[0],
            receive_buffer_len: 4 << 20,
            window_max: 1024,
            eager_max: 256 << 10,
            sends_max: 4096,
            path: LOOPBACK,
            dead_after: DEAD_AFTER,
            linger: Duration::from_secs(5),
            is_checked: false,
            impairment: None,
        }
    }
}

/// A rank as another one knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where its socket is.
    pub address: SocketAddr,
    /// What stands in the packets that it gets of this rank.
    pub theirs: u64,
    /// What stands in the packets that this rank gets of it, which nobody can guess: all of its bits are random.
    pub ours: u64,
    /// The number of its first packet.
    pub first_theirs: FullSequence,
    /// The number of this rank's first packet to it.
    pub first_ours: FullSequence,
    /// Packets that it lets this rank send ahead.
    pub send_window: u16,
    /// Octets of a datagram at most, there and back.
    pub datagram_len_max: usize,
    /// Whether datagrams have a checksum of their own, there and back.
    pub is_checked: bool,
    /// How long its acknowledgments may wait, in nanoseconds.
    pub max_ack_delay: Nanos,
    /// What is known of the way to it.
    pub path: Path,
}

/// What a rank has before the first packet.
#[derive(Debug)]
pub struct Job {
    /// Its number in the world.
    pub rank: u32,
    /// All ranks; at its own place, and at those that are reached otherwise, none.
    pub members: Vec<Option<Member>>,
    /// What was agreed.
    pub terms: Terms,
    /// Its socket.
    pub socket: UdpSocket,
    /// Packets that each peer may send ahead.
    pub receive_window: u16,
    /// Datagrams that came before it was ready.
    pub early: Vec<Early>,
    /// Connections to the others, by rank, on which nothing is said any more: the end of one is the end of the rank there. Where
    /// there is none, a rank that dies without a word is silent, and nothing else.
    pub lines: Vec<Option<OwnedFd>>,
}

/// Octets of datagrams, the longest first: as long as they may be, as an Ethernet with long frames takes them, and as any takes them.
/// What a datagram costs hardly depends on its length. Multiples of 8, so that the octets of messages stay aligned behind each other
/// in a train.
const LENS: [usize; 3] = [65504, 8968, 1472];
/// Packets that each peer is to be able to send ahead: with fewer, short messages wait for acknowledgments.
const WINDOW_WANTED: u16 = 12;

/// The longest datagrams of which each of the peers may send enough ahead, whatever the socket is granted; no longer than in the
/// terms. A job takes the least that a rank of it says, for all of them.
///
/// # Errors
/// The terms want datagrams that there are none of; the system refuses.
pub fn datagram_len(socket: BorrowedFd<'_>, peers: usize, terms: &Terms) -> io::Result<usize> {
    check_len(terms.datagram_len_max)?;
    let granted = options::set_buffers(socket, terms.receive_buffer_len, terms.receive_buffer_len)?;
    Ok(fitting(granted.receive_len, peers, terms.datagram_len_max))
}

/// As [`datagram_len`], where so many octets are granted.
fn fitting(granted: usize, peers: usize, len_max: usize) -> usize {
    let is_enough = |len: &usize| {
        let shares = Shares::new(capacity(granted, charge(*len)), peers);
        shares.is_ok_and(|shares| shares.part() >= WINDOW_WANTED)
    };
    let lens = std::iter::once(len_max).chain(LENS.into_iter().filter(|len| *len < len_max));
    let shortest = LENS[LENS.len() - 1].min(len_max);
    lens.into_iter().find(is_enough).unwrap_or(shortest)
}

/// Prepares a rank's socket, and gives the packets that each of its peers may send ahead, so that together they never fill it.
///
/// # Errors
/// The system refuses; the socket holds less than a datagram of each peer.
pub fn prepare(socket: BorrowedFd<'_>, peers: usize, terms: &Terms) -> io::Result<u16> {
    let granted = options::set_buffers(socket, terms.receive_buffer_len, terms.receive_buffer_len)?;
    let capacity = capacity(granted.receive_len, charge(terms.datagram_len_max));
    let shares = Shares::new(capacity, peers).map_err(io::Error::other)?;
    Ok(shares.part().min(terms.window_max).max(1))
}

/// The wire and the inbox of a rank. What arrives takes memory from `source`.
///
/// # Errors
/// The terms contradict each other; the system refuses.
pub fn connect(
    job: Job,
    config: &Config,
    source: Arc<dyn SlabSource>,
) -> io::Result<(Arc<UdpWire>, UdpInbox)> {
    let lens = job.members.iter().flatten().map(|member| member.datagram_len_max);
    check_len(lens.fold(job.terms.datagram_len_max, usize::max))?;
    // Trains that arrive are taken as such where the kernel joins them, and else one by one.
    let _ = options::set_trains(job.socket.as_fd(), true);
    let wire = Arc::new(UdpWire::new(job, source)?);
    let inbox = UdpInbox::new(wire.clone(), config.inline_max);
    Ok((wire, inbox))
}

fn check_len(len: usize) -> io::Result<()> {
    if len <= LEN_MAX {
        return Ok(());
    }
    let text = format!("datagrams of {len} octets, {LEN_MAX} can be had");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl Terms {
    /// What the machine of a peer has to know.
    fn settings(&self, member: &Member, receive_window: u16) -> Settings {
        Settings {
            ours: member.ours,
            theirs: member.theirs,
            first_ours: member.first_ours,
            first_theirs: member.first_theirs,
            datagram_len_max: member.datagram_len_max,
            receive_window,
            peer_max_ack_delay: member.max_ack_delay,
            send_window: member.send_window,
            eager_max: self.eager_max,
            sends_max: SENDS_MAX,
            peer_sends_max: SENDS_MAX,
            arrivals_max: settings::ARRIVALS_MAX,
            dead_after: self.dead_after,
            checked: member.is_checked,
            ..Settings::new(member.path)
        }
    }

    /// Octets of a message that leave before it is matched: what fits a datagram does, and what fits a quarter of the window.
    fn eager_len(&self, member: &Member) -> usize {
        let trailer_len = if member.is_checked { TRAILER_LEN } else { 0 };
        let room = member.datagram_len_max - FIXED_LEN - CONTEXT_LEN - trailer_len;
        let fragments = room.saturating_sub(FRAGMENT_LEN) * usize::from(member.send_window / 4);
        room.max(fragments.min(self.eager_max as usize))
    }
}

/// Packets that a peer on another machine may send ahead at most: as many as one acknowledgment names. Within a machine the kernel
/// drops what is beyond 1000 packets in a processor's queue (`netdev_max_backlog`).
pub const FAR_WINDOW_MAX: u16 = Sack::REACH_MAX as u16;
/// Messages that a machine keeps at most, each counted twice until its octets have come. The rank bounds them before, by name: a
/// bound that is met here stops whatever is behind it.
const SENDS_MAX: usize = 4 * UNMATCHED_MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest of which each peer may send enough ahead; where no length is short enough for that, the shortest, and never more than
    /// was asked for.
    #[test]
    fn datagrams_are_as_long_as_enough_of_them_fit() {
        const MIB: usize = 1 << 20;
        let cases = [
            (8 * MIB, 1, 65504, 65504),
            (8 * MIB, 5, 65504, 65504),
            (8 * MIB, 6, 65504, 8968),
            (8 * MIB, 200, 65504, 1472),
            (425_984, 1, 65504, 8968),
            (212_992, 8, 65504, 1472),
            (8 * MIB, 1, 1200, 1200),
            (8 * MIB, 1, 9000, 9000),
            (8 * MIB, 30, 9000, 1472),
        ];
        for (granted, peers, len_max, expected) in cases {
            assert_eq!(
                fitting(granted, peers, len_max),
                expected,
                "{granted} octets, {peers} peers, {len_max}"
            );
        }
    }
}
