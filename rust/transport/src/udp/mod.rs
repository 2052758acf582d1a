//! Transport to ranks behind UDP sockets, with reliable messages over datagrams
//! (`mpjdev_proto::datagram::reliable`).
//!
//! A rank has one socket for all its peers. The state machines of `mpjdev-proto` decide which packets there
//! are. This module moves their octets and reads their clock. A peer is one state machine under one lock. A
//! sender takes the lock, and so does the handler of each arriving datagram. A poll of the socket fills a
//! staging buffer, so waiting means reading, as over TCP. Timers are handled, and events of the state
//! machines are passed on, where packets are passed on.
//!
//! ```text
//! send ----> peer: state machine, octets kept until acked ----> GSO batches ----> socket
//!                 ^                                                                  |
//!                 | datagram by datagram                                             v
//! rank <---- source: in order <---- kept until their turn <---- staging buffer <---- poll
//! ```

mod counters;
mod dispatch;
mod gso;
pub mod ids;
pub mod in_process;
mod liveness;
mod packet_source;
pub mod path_mtu;
mod peer;
mod placement;
mod poll;
mod prefix;
pub mod probe;
mod retransmit_buffer;
mod send;
mod session_state;
mod staging_buffer;
mod test_hooks;
mod timers;
mod transport;

use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::datagram::extension::Sack;
use mpjdev_proto::datagram::layout::{CONTEXT_LEN, FIXED_LEN, FRAGMENT_LEN, TRAILER_LEN};
use mpjdev_proto::datagram::reliable::rtt::Timing;
use mpjdev_proto::datagram::reliable::settings::{self, DEAD_AFTER, Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MILLISECOND, Nanos};
use mpjdev_proto::datagram::reliable::windows::{capacity, charge, share};
use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_sys::datagram::{LEN_MAX, options};

use crate::config::{Config, UNMATCHED_MAX};
pub use packet_source::UdpSource;
use probe::Early;
pub use transport::UdpTransport;

/// Terms that all ranks have agreed on, and the limits of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Longest datagram in octets, of any sender. The first value of a job may exceed the agreed one: see
    /// [`datagram_len`].
    pub datagram_len_max: usize,
    /// Octets of receive buffer that the system is asked for.
    pub receive_buffer_len: usize,
    /// Most packets that one peer may have in flight, whatever the size of the socket's buffer.
    pub window_max: u16,
    /// Octets of a message that leave before it is matched.
    pub eager_max: u32,
    /// Messages to a peer with octets that have not arrived, before later messages wait.
    pub sends_max: usize,
    /// Properties of the path, if they are the same for all peers.
    pub path: Path,
    /// Peer timeout: nanoseconds without a packet, while an ack or a window is due.
    pub dead_after: Nanos,
    /// Longest time that a finishing rank waits until its last packets are acked.
    pub linger: Duration,
    /// Whether every datagram has a checksum of its own.
    pub is_checked: bool,
}

/// Path within this machine. Nothing is paced, because the windows alone keep the sockets from overflowing.
/// An estimated round trip is as long as some thread waited for a processor, so pacing by it would lengthen
/// every wait. Nothing is retransmitted early either: where windows keep sockets from overflowing, no packet
/// is lost. An answer, which carries the ack, may be delayed until its thread gets a processor again.
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
        }
    }
}

/// A peer's address, ids and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Address of its socket.
    pub address: SocketAddr,
    /// The connection id of the packets that it receives from this rank.
    pub theirs: u64,
    /// The connection id of the packets that this rank receives from it. All its bits are random, so that an
    /// attacker cannot guess it.
    pub ours: u64,
    /// The number of its first packet.
    pub first_theirs: FullSequence,
    /// The number of this rank's first packet to it.
    pub first_ours: FullSequence,
    /// Packets that this rank may have in flight to it.
    pub send_window: u16,
    /// Longest datagram in octets, in both directions.
    pub datagram_len_max: usize,
    /// Whether datagrams have a checksum of their own, in both directions.
    pub is_checked: bool,
    /// Longest delay of its acks, in nanoseconds.
    pub max_ack_delay: Nanos,
    /// Properties of the path to it.
    pub path: Path,
}

/// Resources of a rank before the first packet.
#[derive(Debug)]
pub struct Job {
    /// Its number in the world.
    pub rank: u32,
    /// All ranks; `None` for the rank itself and for those that are reached otherwise.
    pub members: Vec<Option<Member>>,
    /// The site of each rank; empty if there is one.
    pub site_of: Vec<u32>,
    /// The agreed terms.
    pub terms: Terms,
    /// Its socket.
    pub socket: UdpSocket,
    /// Packets that each peer may have in flight.
    pub receive_window: u16,
    /// Datagrams that arrived before the rank was ready.
    pub early: Vec<Early>,
    /// Liveness connections to the other ranks, by rank. They carry no data, and the end of one is the end of
    /// the rank there. Without a connection, only the peer timeout detects a dead rank.
    pub liveness: Vec<Option<OwnedFd>>,
    /// For tests: networks between the socket and the other ranks, by rank.
    pub networks: Vec<Option<Box<dyn SimulatedNetwork>>>,
}

/// A simulated network that datagrams to one peer pass before they reach the socket.
pub trait SimulatedNetwork: Debug + Send {
    /// Sends a datagram.
    fn send(&mut self, now: Nanos, octets: Vec<u8>);

    /// The next datagram that has arrived by now.
    fn poll_deliver(&mut self, now: Nanos) -> Option<Vec<u8>>;

    /// Arrival of the next datagram, unless more are sent before.
    fn next_time(&self) -> Option<Nanos>;
}

/// Octets of datagrams, the longest first: the maximum, the most that Ethernet with long frames takes, and
/// the most that any Ethernet takes. The cost of a datagram hardly depends on its length. Multiples of 8 keep
/// the octets of successive messages in a GSO batch aligned.
const LENS: [usize; 3] = [65504, 8968, 1472];
/// Packets that each peer should be able to have in flight. With fewer, short messages wait for acks.
const WINDOW_WANTED: u16 = 12;

/// The longest datagrams of which each peer may have enough in flight, whatever buffer the socket is granted.
/// They are no longer than in the terms. A job uses the least value of its ranks for all of them.
///
/// # Errors
/// The terms require datagrams that do not exist; the system refuses.
pub fn datagram_len(socket: BorrowedFd<'_>, peers: usize, terms: &Terms) -> io::Result<usize> {
    check_len(terms.datagram_len_max)?;
    let granted = options::set_buffers(socket, terms.receive_buffer_len, terms.receive_buffer_len)?;
    Ok(fitting(granted.receive_len, peers, terms.datagram_len_max))
}

/// As [`datagram_len`], with `granted` octets of buffer.
fn fitting(granted: usize, peers: usize, len_max: usize) -> usize {
    let is_enough =
        |len: &usize| share(capacity(granted, charge(*len)), peers).is_ok_and(|share| share >= WINDOW_WANTED);
    let lens = std::iter::once(len_max).chain(LENS.into_iter().filter(|len| *len < len_max));
    let shortest = LENS[LENS.len() - 1].min(len_max);
    lens.into_iter().find(is_enough).unwrap_or(shortest)
}

/// Prepares the socket of a rank. Returns the packets that each of its peers may have in flight, so that
/// together they never overflow it.
///
/// # Errors
/// The system refuses; the socket holds less than a datagram of each peer.
pub fn prepare(socket: BorrowedFd<'_>, peers: usize, terms: &Terms) -> io::Result<u16> {
    let granted = options::set_buffers(socket, terms.receive_buffer_len, terms.receive_buffer_len)?;
    let capacity = capacity(granted.receive_len, charge(terms.datagram_len_max));
    let share = share(capacity, peers).map_err(io::Error::other)?;
    Ok(share.min(terms.window_max).max(1))
}

/// The transport and the packet source of a rank. Arriving messages take memory from `source`.
///
/// # Errors
/// The terms contradict each other; the system refuses.
pub fn connect(
    job: Job,
    config: &Config,
    source: Arc<dyn SlabSource>,
) -> io::Result<(Arc<UdpTransport>, UdpSource)> {
    let lens = job.members.iter().flatten().map(|member| member.datagram_len_max);
    check_len(lens.fold(job.terms.datagram_len_max, usize::max))?;
    // Arriving datagrams are received as GSO batches where the kernel joins them, and else one by one.
    let _ = options::set_gro(job.socket.as_fd(), true);
    let transport = Arc::new(UdpTransport::new(job, source)?);
    let packet_source = UdpSource::new(transport.clone(), config.inline_max);
    Ok((transport, packet_source))
}

fn check_len(len: usize) -> io::Result<()> {
    if len <= LEN_MAX {
        return Ok(());
    }
    let text = format!("datagrams of {len} octets; the limit is {LEN_MAX}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl Terms {
    /// Settings of the state machine of a peer.
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

    /// Octets of a message that leave before it is matched: those that fit a datagram, or a quarter of the
    /// window.
    fn eager_len(&self, member: &Member) -> usize {
        let trailer_len = if member.is_checked { TRAILER_LEN } else { 0 };
        let room = member.datagram_len_max - FIXED_LEN - CONTEXT_LEN - trailer_len;
        let fragments = room.saturating_sub(FRAGMENT_LEN) * usize::from(member.send_window / 4);
        room.max(fragments.min(self.eager_max as usize))
    }
}

/// Most packets in flight of a peer on another machine: as many as one ack names. Within a machine the kernel
/// drops packets beyond 1000 in a processor's queue (`netdev_max_backlog`).
pub const INTER_NODE_WINDOW_MAX: u16 = Sack::REACH_MAX as u16;
/// Most messages in a state machine, each counted twice until its octets have arrived. The rank bounds them
/// first, with an error that names the receiver. The bound here would stop all later messages.
const SENDS_MAX: usize = 4 * UNMATCHED_MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    /// The result is the longest datagram of which each peer may send enough, or the shortest length if none
    /// is short enough. It never exceeds the requested length.
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
