//! Jobs of ranks over TCP connections, alone or in sites. For tests, all of a job in one process.

use std::io;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::Clients;
use mpjdev_engine::Comm;
use mpjdev_engine::PacketEngine;
use mpjdev_transport::config::Config;
use mpjdev_transport::net::progress_thread;
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm::{self, SegmentPool};
use mpjdev_transport::tcp::{self, Terms};
use mpjdev_transport::{PacketSource, Transport, hybrid};

/// [`local`](super::local()) over TCP connections of this machine, as if each rank were a process of its own.
///
/// # Errors
/// The system refuses.
///
/// # Panics
/// There is no rank, or more than 2³⁰.
pub fn tcp(
    ranks: usize,
    config: Config,
    terms: Terms,
    source: &Arc<dyn SlabSource>,
) -> io::Result<Vec<Comm>> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let ranks =
        tcp::in_process::jobs(ranks, terms)?.into_iter().map(|job| tcp_rank(job, config.clone(), source));
    ranks.collect()
}

/// [`shm`](super::shm()) within sites of a number of ranks each, the last of which may be smaller, and
/// [`tcp`](fn@tcp) between them.
///
/// # Errors
/// The system refuses.
///
/// # Panics
/// There is no rank, in all or in a site, or more than 2³⁰.
pub fn sites(
    ranks: usize,
    ranks_per_site: usize,
    config: Config,
    terms: Terms,
    segment_len: usize,
    private: &Arc<HeapPool>,
) -> io::Result<Vec<Comm>> {
    assert!(ranks > 0 && ranks_per_site > 0, "a job has at least one rank, and a site too");
    let config = config.for_ranks(ranks).bounded();
    let jobs = hybrid::in_process::jobs(ranks, ranks_per_site, &config, terms, segment_len, private)?;
    jobs.into_iter().map(|(job, pool)| sites_rank(job, None, config.clone(), &pool)).collect()
}

/// The world communicator of one rank of a site, and both of its progress threads.
pub(super) fn sites_rank(
    job: hybrid::Job,
    clients: Option<Clients>,
    config: Config,
    pool: &Arc<SegmentPool>,
) -> io::Result<Comm> {
    let (rank, size) = (job.inter.rank, job.inter.members.len() as u32);
    let (transport, packet_source, inter) = hybrid::connect(job, &config, pool.clone())?;
    let futex = transport.progress_futex();
    let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport, Box::new(packet_source));
    let endpoint = Arc::new(PacketEngine::new(rank, size, config, ends, pool.clone()));
    shm::progress_thread::start(&endpoint, futex)?;
    progress_thread::start("tcp", &endpoint, &inter)?;
    Ok(Comm::world_with_foreign(endpoint, clients))
}

/// The world communicator of one rank with these connections, and its progress thread.
///
/// # Errors
/// The system refuses.
pub fn tcp_rank(job: tcp::Job, config: Config, source: &Arc<dyn SlabSource>) -> io::Result<Comm> {
    tcp_rank_of(job, None, config, source)
}

/// [`tcp_rank`] in a job with foreign ranks. If `clients` are given, foreign ranks have a barrier with the
/// ranks of this project.
///
/// # Errors
/// The system refuses.
pub fn tcp_rank_of(
    job: tcp::Job,
    clients: Option<Clients>,
    config: Config,
    source: &Arc<dyn SlabSource>,
) -> io::Result<Comm> {
    let (rank, size) = (job.rank, job.members.len() as u32);
    let (transport, packet_source) = tcp::connect(job, &config, source.clone())?;
    let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport.clone(), Box::new(packet_source));
    let endpoint = Arc::new(PacketEngine::new(rank, size, config, ends, source.clone()));
    progress_thread::start("tcp", &endpoint, &transport)?;
    Ok(Comm::world_with_foreign(endpoint, clients))
}
