//! UDP ranks of one process, for tests.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use super::{Job, Member, Terms, datagram_len, ids, prepare};

/// The jobs of the ranks, before the first packet.
///
/// # Errors
/// The system refuses; a socket holds less than a datagram of each peer.
///
/// # Panics
/// There is no rank.
pub fn jobs(ranks: usize, mut terms: Terms) -> io::Result<Vec<Job>> {
    assert!(ranks > 0, "a job has at least one rank");
    let sockets: Vec<UdpSocket> =
        (0..ranks).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<io::Result<_>>()?;
    for socket in &sockets {
        terms.datagram_len_max = datagram_len(socket.as_fd(), ranks - 1, &terms)?;
    }
    let windows: Vec<u16> =
        sockets.iter().map(|socket| prepare(socket.as_fd(), ranks - 1, &terms)).collect::<io::Result<_>>()?;
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
        Job {
            rank: rank as u32,
            members,
            site_of: Vec::new(),
            terms,
            socket,
            receive_window: windows[rank],
            early: Vec::new(),
            liveness: Vec::new(),
            networks: Vec::new(),
        }
    });
    Ok(ranks.collect())
}
