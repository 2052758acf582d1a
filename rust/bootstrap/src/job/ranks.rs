//! World communicators of single ranks: transport, engine and progress threads.

use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::{Clients, Comm, PacketEngine};
use mpjdev_transport::config::Config;
use mpjdev_transport::net::progress_thread;
use mpjdev_transport::shm::{self, SegmentPool};
use mpjdev_transport::udp::{self, UdpTransport};
use mpjdev_transport::{PacketSource, StatusReporter, Transport, hybrid, tcp};

use super::error::{JoinError, system};

/// Both sides of a transport.
type Ends = (Arc<dyn Transport>, Box<dyn PacketSource>);

/// A rank over shared memory alone.
///
/// # Errors
/// The system refuses a thread.
pub fn shm_rank(
    rank: u32,
    config: &Config,
    pool: &Arc<SegmentPool>,
    job: shm::Job,
) -> Result<Comm, JoinError> {
    let ranks = job.ranks() as u32;
    let (transport, packet_source) = shm::connect(rank, config, pool.clone(), Arc::new(job));
    let futex = transport.progress_futex();
    let ends: Ends = (transport, Box::new(packet_source));
    let engine = Arc::new(PacketEngine::new(rank, ranks, config.clone(), ends, pool.clone()));
    shm::progress_thread::start(&engine, futex).map_err(system("a thread"))?;
    Ok(Comm::world(engine))
}

/// A rank of a site: over shared memory within the site, and over connections to the others. If `clients`
/// are given, foreign ranks have a barrier with the ranks of this project.
///
/// # Errors
/// The system refuses.
pub fn site_rank(
    job: hybrid::Job,
    clients: Option<Clients>,
    config: Config,
    pool: &Arc<SegmentPool>,
) -> Result<Comm, JoinError> {
    let (rank, size) = (job.inter.rank, job.inter.members.len() as u32);
    let (transport, packet_source, inter) =
        hybrid::connect(job, &config, pool.clone()).map_err(system("the connections"))?;
    let futex = transport.progress_futex();
    let ends: Ends = (transport, Box::new(packet_source));
    let engine = Arc::new(PacketEngine::new(rank, size, config, ends, pool.clone()));
    shm::progress_thread::start(&engine, futex).map_err(system("a thread"))?;
    progress_thread::start("tcp", &engine, &inter).map_err(system("a thread"))?;
    Ok(Comm::world_with_foreign(engine, clients))
}

/// A rank over connections alone. It reports the first failed peer to `reporter`. `clients` as for
/// [`site_rank`].
///
/// # Errors
/// The system refuses.
pub fn tcp_rank(
    job: tcp::Job,
    clients: Option<Clients>,
    config: Config,
    source: &Arc<dyn SlabSource>,
    reporter: Option<Arc<dyn StatusReporter>>,
) -> Result<Comm, JoinError> {
    let (rank, size) = (job.rank, job.members.len() as u32);
    let (transport, packet_source) =
        tcp::connect(job, &config, source.clone()).map_err(system("the connections"))?;
    reporter.into_iter().for_each(|reporter| transport.report_to(reporter));
    let ends: Ends = (transport.clone(), Box::new(packet_source));
    let engine = Arc::new(PacketEngine::new(rank, size, config, ends, source.clone()));
    progress_thread::start("tcp", &engine, &transport).map_err(system("a thread"))?;
    Ok(Comm::world_with_foreign(engine, clients))
}

/// A rank over datagrams, and its transport, which has the statistics. It reports the first failed peer to
/// `reporter`.
///
/// # Errors
/// The system refuses; the terms contradict each other.
pub fn udp_rank(
    job: udp::Job,
    config: Config,
    source: &Arc<dyn SlabSource>,
    reporter: Option<Arc<dyn StatusReporter>>,
) -> Result<(Comm, Arc<UdpTransport>), JoinError> {
    let (rank, size) = (job.rank, job.members.len() as u32);
    let (transport, packet_source) =
        udp::connect(job, &config, source.clone()).map_err(system("datagrams"))?;
    reporter.into_iter().for_each(|reporter| transport.report_to(reporter));
    let ends: Ends = (transport.clone(), Box::new(packet_source));
    let engine = Arc::new(PacketEngine::new(rank, size, config, ends, source.clone()));
    progress_thread::start("udp", &engine, &transport).map_err(system("a thread"))?;
    Ok((Comm::world(engine), transport))
}
