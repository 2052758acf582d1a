//! Ranks behind TCP connections, for tests all of a job in one process.

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
use crate::transport::tcp::{self, Member, Terms};
use crate::transport::{Inbox, Wire};

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
    let member = |rank: usize| Member {
        proc: Proc { host_id: Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), pid: rank as i64 + 1 },
        host: rank as u32,
        is_ours: true,
    };
    let members: Vec<Member> = (0..ranks).map(member).collect();
    let ranks = all_pairs(ranks)?.into_iter().zip(0..).map(|(sockets, rank)| {
        tcp_rank(tcp::Job { rank, members: members.clone(), terms, sockets }, config.clone(), source)
    });
    ranks.collect()
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
    tcp::pump::start(&endpoint, &wire)?;
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
