//! Jobs whose ranks are threads of one test, over each transport: a rank behaves as a process of its own.
//! Machines that network namespaces simulate.
//!
//! No product code uses them. [`mpjdev_bootstrap::job::local`] makes the jobs of `runThreads`.
#![forbid(unsafe_code)]

pub mod cluster;
mod datagrams;
pub mod machines;

use std::sync::Arc;

use mpjdev_bootstrap::job::{JoinError, shm_rank, site_rank, tcp_rank};
use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_transport::config::Config;
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm::StatusPage;
use mpjdev_transport::tcp::Terms;
use mpjdev_transport::{hybrid, shm as transport_shm, tcp as transport_tcp};

pub use datagrams::{impair, udp};
pub use mpjdev_transport::udp::in_process::jobs as udp_jobs;

/// Ranks over shared memory. A rank's messages take memory from its segment of `segment_len` octets, and
/// further slabs from `private`.
///
/// # Panics
/// The system refuses; there is no rank, or more than 2³⁰.
pub fn shm(ranks: usize, config: Config, segment_len: usize, private: &Arc<HeapPool>) -> Vec<Comm> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let create = |rank| transport_shm::create(rank as u32, ranks, segment_len, &config, private.clone());
    let pools: Vec<_> = (0..ranks).map(|rank| create(rank).expect("a segment")).collect();
    let status_page = StatusPage::create(ranks).expect("a status page");
    let connected = pools.iter().zip(0..).map(|(pool, rank)| {
        let files = pools.iter().map(|pool| pool.share().expect("a descriptor")).collect();
        let job = transport_shm::Job::open(status_page.files(), files).expect("shared memory");
        shm_rank(rank, &config, pool, job).expect("a thread")
    });
    connected.collect()
}

/// Ranks over TCP connections of this machine.
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
) -> Result<Vec<Comm>, JoinError> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let jobs = transport_tcp::in_process::jobs(ranks, terms).expect("connections").into_iter();
    jobs.map(|job| tcp_rank(job, None, config.clone(), source, None)).collect()
}

/// Ranks in sites of `ranks_per_site`, the last of which may be smaller: shared memory within a site,
/// connections between sites.
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
) -> Result<Vec<Comm>, JoinError> {
    assert!(ranks > 0 && ranks_per_site > 0, "a job has at least one rank, and a site too");
    let config = config.for_ranks(ranks).bounded();
    let jobs = hybrid::in_process::jobs(ranks, ranks_per_site, &config, terms, segment_len, private);
    let jobs = jobs.expect("shared memory and connections").into_iter();
    jobs.map(|(job, pool)| site_rank(job, None, config.clone(), &pool)).collect()
}
