//! Jobs of ranks over UDP sockets in one process, for tests.

use std::io;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_engine::PacketEngine;
use mpjdev_transport::config::Config;
use mpjdev_transport::net::progress_thread;
use mpjdev_transport::udp::{self, Terms, UdpTransport};
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
    let jobs = udp::in_process::jobs(ranks, terms)?.into_iter();
    jobs.map(|job| udp_rank(job, config.clone(), source)).collect()
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
