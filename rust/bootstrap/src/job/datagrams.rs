//! Jobs of ranks over UDP sockets in one process, for tests.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_engine::PacketEngine;
use mpjdev_transport::config::Config;
use mpjdev_transport::net::progress_thread;
use mpjdev_transport::udp::{self, Member, Terms, UdpTransport, ids};
use mpjdev_transport::{PacketSource, Transport};

/// [`local`](super::local()) over UDP sockets of this machine, as if each rank were a process of its own.
///
/// # Errors
/// The system refuses; the terms contradict each other.
///
/// # Panics
/// There is no rank.
pub fn udp(
    ranks: usize,
    config: Config,
    terms: Terms,
    source: &Arc<dyn SlabSource>,
) -> io::Result<Vec<Comm>> {
    let config = config.for_ranks(ranks).bounded();
    let jobs = udp_jobs(ranks, terms)?.into_iter();
    jobs.map(|job| udp_rank(job, config.clone(), source)).collect()
}

/// The state of such ranks before the first packet.
///
/// # Errors
/// The system refuses; a socket holds less than a datagram of each peer.
///
/// # Panics
/// As [`udp()`].
pub fn udp_jobs(ranks: usize, mut terms: Terms) -> io::Result<Vec<udp::Job>> {
    assert!(ranks > 0, "a job has at least one rank");
    let sockets: Vec<UdpSocket> =
        (0..ranks).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<io::Result<_>>()?;
    for socket in &sockets {
        terms.datagram_len_max = udp::datagram_len(socket.as_fd(), ranks - 1, &terms)?;
    }
    let windows: Vec<u16> = sockets
        .iter()
        .map(|socket| udp::prepare(socket.as_fd(), ranks - 1, &terms))
        .collect::<io::Result<_>>()?;
    let addresses: Vec<_> = sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>()?;
    // The numbers in the packets that one rank gets from another.
    let mut numbers = Vec::new();
    for _ in 0..ranks {
        numbers.push((0..ranks).map(|_| ids::numbers()).collect::<io::Result<Vec<_>>>()?);
    }
    let member = |rank: usize, peer: usize| Member {
        address: addresses[peer],
        theirs: numbers[peer][rank].0,
        ours: numbers[rank][peer].0,
        first_theirs: numbers[rank][peer].1,
        first_ours: numbers[peer][rank].1,
        send_window: windows[peer],
        datagram_len_max: terms.datagram_len_max,
        is_checked: terms.is_checked,
        max_ack_delay: terms.path.max_ack_delay,
        path: terms.path,
    };
    let ranks = sockets.into_iter().enumerate().map(|(rank, socket)| {
        let members = (0..ranks).map(|peer| (peer != rank).then(|| member(rank, peer))).collect();
        udp::Job {
            rank: rank as u32,
            members,
            terms,
            socket,
            receive_window: windows[rank],
            early: Vec::new(),
            liveness: Vec::new(),
        }
    });
    Ok(ranks.collect())
}

/// The world communicator of one rank with this socket, and its progress thread.
///
/// # Errors
/// The system refuses; the terms contradict each other.
pub fn udp_rank(job: udp::Job, config: Config, source: &Arc<dyn SlabSource>) -> io::Result<Comm> {
    udp_rank_and_wire(job, config, source).map(|(world, _)| world)
}

/// [`udp_rank`] with its transport, which has the statistics.
///
/// # Errors
/// As [`udp_rank`].
pub fn udp_rank_and_wire(
    job: udp::Job,
    config: Config,
    source: &Arc<dyn SlabSource>,
) -> io::Result<(Comm, Arc<UdpTransport>)> {
    let (rank, size) = (job.rank, job.members.len() as u32);
    let (transport, packet_source) = udp::connect(job, &config, source.clone())?;
    let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport.clone(), Box::new(packet_source));
    let endpoint = Arc::new(PacketEngine::new(rank, size, config, ends, source.clone()));
    progress_thread::start("udp", &endpoint, &transport)?;
    Ok((Comm::world(endpoint), transport))
}
