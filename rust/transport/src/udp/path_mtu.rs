//! Shortening of the path MTU: an interface, a route or a tunnel has changed, or a router on the path reports
//! a smaller one.
//!
//! Packets cut for the old length keep their sequence numbers, so the system fragments them at this
//! transmission and at each retransmission. Later packets are as short as the path requires, and leave whole
//! (5.2).

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sys::datagram::options;
use tracing::info;

use super::peer::{Peer, PeerSession};
use super::transport::UdpTransport;

/// Octets of the headers of UDP and IP.
const HEADERS_LEN: [usize; 2] = [28, 48];
/// Octets of the header of UDP alone.
pub const UDP_HEADER_LEN: usize = 8;
/// Octets of a datagram that any path carries (5.2; RFC 9000, 14).
pub const LEN_SAFE: usize = 1200;

/// The longest datagram that leaves whole on a path to an address with this MTU: a multiple of 8.
#[must_use]
pub fn len_within(mtu: usize, address: IpAddr) -> usize {
    let headers = HEADERS_LEN[usize::from(address.to_canonical().is_ipv6())];
    mtu.saturating_sub(headers) / 8 * 8
}

impl UdpTransport {
    /// Sends the pending datagrams of a peer that are too long for its path.
    #[cold]
    pub(super) fn send_in_fragments(&self, peer: &Peer, session: &mut PeerSession, now: Nanos) {
        let before = session.connection.settings().datagram_len_max;
        let path_len = self.path_len(peer);
        if let Some(len) = path_len.filter(|len| *len < before) {
            let (rank, peer) = (self.net.rank, peer.rank);
            info!(target: "mpjdev::udp", rank, peer, before, octets = len, "path is shortened");
            session.connection.shorten(len);
            session.outgoing.shorten(len);
        }
        // Meanwhile another thread's datagrams to other peers may leave in fragments, which is harmless.
        let _ = options::fragment_where_needed(self.socket());
        session.outgoing.flush_in_fragments(now, self.socket(), &session.store);
        let _ = options::never_fragment(self.socket());
        if session.outgoing.is_too_long() {
            session.outgoing.clear();
            let carries = path_len.map_or_else(String::new, |len| {
                format!(", which is {len} octets as far as the system knows")
            });
            let why = format!(
                "datagrams of {before} octets are longer than the path to {} carries{carries}; \
                 --datagram-len makes them shorter",
                peer.address.ip().to_canonical()
            );
            session.fault = Some(why);
        }
    }

    /// Octets of a datagram that the path to a peer carries whole, as far as the system knows.
    fn path_len(&self, peer: &Peer) -> Option<usize> {
        // The system reports it only to a socket with a single peer, and this rank's may have many.
        let from = self.socket.local_addr().ok()?;
        let socket = UdpSocket::bind((from.ip(), 0)).ok()?;
        socket.connect(peer.address).ok()?;
        let mtu = options::path_mtu(socket.as_fd()).ok()?;
        Some(len_within(mtu, peer.address.ip()))
    }
}
