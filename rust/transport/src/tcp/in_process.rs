//! TCP ranks of one process, each a host of its own, for tests.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use mpjdev_proto::impi::Proc;

use super::{Job, Member, Terms};

/// The jobs of the ranks, before the first packet.
///
/// # Errors
/// The system refuses.
pub fn jobs(ranks: usize, terms: Terms) -> io::Result<Vec<Job>> {
    let members = members(ranks);
    let pairs = all_pairs(ranks)?.into_iter().zip(0..);
    Ok(pairs
        .map(|(sockets, rank)| Job { rank, members: members.clone(), site_of: Vec::new(), terms, sockets })
        .collect())
}

/// Ranks of this implementation, each of them a host.
pub(crate) fn members(ranks: usize) -> Vec<Member> {
    let member = |rank: usize| Member {
        proc: Proc { host_id: Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), pid: rank as i64 + 1 },
        host: rank as u32,
        is_ours: true,
    };
    (0..ranks).map(member).collect()
}

/// A connection between each pair of ranks, by rank and other rank.
pub(crate) fn all_pairs(ranks: usize) -> io::Result<Vec<Vec<Option<OwnedFd>>>> {
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
