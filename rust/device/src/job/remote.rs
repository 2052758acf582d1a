//! Ranks behind TCP connections, alone or in sites; for tests all of a job in one process.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::impi::Proc;

use crate::clients::Clients;
use crate::comm::Comm;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::pool::HeapPool;
use crate::transport::remote::pump;
use crate::transport::shm::{self, Board, SegmentPool};
use crate::transport::tcp::{self, Member, Terms};
use crate::transport::{Inbox, Wire, sites};

/// As [`local`](super::local()), over TCP connections of this machine as if each rank were a process of its own.
///
/// # Errors
/// The system refuses.
///
/// # Panics
/// With no rank, or more than 2³⁰.
pub fn tcp(
    ranks: usize,
    config: Config,
    terms: Terms,
    source: &Arc<dyn SlabSource>,
) -> io::Result<Vec<Comm>> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let ranks = tcp_jobs(ranks, terms)?.into_iter().map(|job| tcp_rank(job, config.clone(), source));
    ranks.collect()
}

/// What each rank of such a job has before the first packet.
pub(crate) fn tcp_jobs(ranks: usize, terms: Terms) -> io::Result<Vec<tcp::Job>> {
    let members = members(ranks);
    let pairs = all_pairs(ranks)?.into_iter().zip(0..);
    Ok(pairs.map(|(sockets, rank)| tcp::Job { rank, members: members.clone(), terms, sockets }).collect())
}

/// As [`shm`](super::shm()) within sites of so many ranks, the last of which may be smaller, and as [`tcp`](fn@tcp) between
/// them.
///
/// # Errors
/// The system refuses.
///
/// # Panics
/// With no rank, in all or in a site, or more than 2³⁰.
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
    let jobs = site_jobs(ranks, ranks_per_site, &config, terms, segment_len, private)?;
    jobs.into_iter().map(|(job, pool)| sites_rank(job, None, config.clone(), &pool)).collect()
}

/// What each rank of such a job has before the first packet, and its memory.
pub(crate) fn site_jobs(
    ranks: usize,
    ranks_per_site: usize,
    config: &Config,
    terms: Terms,
    segment_len: usize,
    private: &Arc<HeapPool>,
) -> io::Result<Vec<(sites::Job, Arc<SegmentPool>)>> {
    let members = members(ranks);
    let mut sockets = all_pairs(ranks)?.into_iter();
    let mut jobs = Vec::new();
    for base in (0..ranks).step_by(ranks_per_site) {
        let site = base..ranks.min(base + ranks_per_site);
        let pools = (0..site.len() as u32)
            .map(|rank| shm::create(rank, site.len(), segment_len, config, private.clone()))
            .collect::<io::Result<Vec<_>>>()?;
        let board = Board::create(site.len())?;
        for (rank, mut sockets) in site.clone().zip(&mut sockets) {
            sockets[site.clone()].fill_with(|| None);
            let files = pools.iter().map(|pool| pool.share()).collect::<io::Result<_>>()?;
            let near = shm::Job::open(board.files(), files)?;
            let far = tcp::Job { rank: rank as u32, members: members.clone(), terms, sockets };
            jobs.push((sites::Job { near, base: base as u32, far }, pools[rank - base].clone()));
        }
    }
    Ok(jobs)
}

/// The world communicator of one rank of a site, and both threads that go on for it.
pub(super) fn sites_rank(
    job: sites::Job,
    clients: Option<Clients>,
    config: Config,
    pool: &Arc<SegmentPool>,
) -> io::Result<Comm> {
    let (rank, size) = (job.far.rank, job.far.members.len() as u32);
    let (wire, inbox, far) = sites::connect(job, &config, pool.clone())?;
    let bell = wire.helper_bell();
    let ends: (Arc<dyn Wire>, Box<dyn Inbox>) = (wire, Box::new(inbox));
    let endpoint = Arc::new(Endpoint::new(rank, size, config, ends, pool.clone()));
    clients.into_iter().for_each(|clients| endpoint.set_clients(clients));
    shm::helper::start(&endpoint, bell)?;
    pump::start("tcp", &endpoint, &far)?;
    Ok(Comm::world(endpoint))
}

/// Ranks of ours, each of them a host.
fn members(ranks: usize) -> Vec<Member> {
    let member = |rank: usize| Member {
        proc: Proc { host_id: Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), pid: rank as i64 + 1 },
        host: rank as u32,
        is_ours: true,
    };
    (0..ranks).map(member).collect()
}

/// The world communicator of one rank whose connections are there, and the thread that goes on for it.
///
/// # Errors
/// The system refuses.
pub fn tcp_rank(job: tcp::Job, config: Config, source: &Arc<dyn SlabSource>) -> io::Result<Comm> {
    tcp_rank_of(job, None, config, source)
}

/// The same, of a job with foreign ranks: they and ours have a barrier where the clients are given.
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
    let (wire, inbox) = tcp::connect(job, &config, source.clone())?;
    let ends: (Arc<dyn Wire>, Box<dyn Inbox>) = (wire.clone(), Box::new(inbox));
    let endpoint = Arc::new(Endpoint::new(rank, size, config, ends, source.clone()));
    clients.into_iter().for_each(|clients| endpoint.set_clients(clients));
    pump::start("tcp", &endpoint, &wire)?;
    Ok(Comm::world(endpoint))
}

/// A connection between any two ranks, by rank and other rank.
fn all_pairs(ranks: usize) -> io::Result<Vec<Vec<Option<OwnedFd>>>> {
    let mut sockets: Vec<Vec<Option<OwnedFd>>> =
        (0..ranks).map(|_| (0..ranks).map(|_| None).collect()).collect();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let pairs = (0..ranks).flat_map(|higher| (0..higher).map(move |lower| (higher, lower)));
    for (higher, lower) in pairs {
        let connected = TcpStream::connect(listener.local_addr()?)?;
        let (accepted, _) = listener.accept()?;
        connected.set_nodelay(true)?;
        accepted.set_nodelay(true)?;
        sockets[higher][lower] = Some(connected.into());
        sockets[lower][higher] = Some(accepted.into());
    }
    Ok(sockets)
}
