//! A way that takes no datagrams as long as it did: an interface, a route or a tunnel has changed, or a router on the way says so.
//!
//! What was cut for the old length has its numbers and keeps them, so the system is to cut it into fragments, once more and each time
//! that it leaves again. What is cut from now on is as short as the way wants it, and leaves whole (5.2).

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use mpjdev_proto::datagram::modern::time::Nanos;
use mpjdev_sys::datagram::options;

use super::peer::{Peer, Side};
use super::wire::UdpWire;

/// Octets of the headers of UDP and IP.
const HEADERS_LEN: [usize; 2] = [28, 48];
/// Octets of the header of UDP alone.
pub const UDP_HEADER_LEN: usize = 8;
/// Octets of a datagram that any way takes (5.2; RFC 9000, 14).
pub const LEN_SAFE: usize = 1200;

/// The longest datagram that leaves whole on a way to an address that takes packets of `mtu` octets: a multiple of 8.
#[must_use]
pub fn len_within(mtu: usize, address: IpAddr) -> usize {
    let headers = HEADERS_LEN[usize::from(address.to_canonical().is_ipv6())];
    mtu.saturating_sub(headers) / 8 * 8
}

impl UdpWire {
    /// Sends what waits and is too long for the way to a peer.
    #[cold]
    pub(super) fn send_in_fragments(&self, peer: &Peer, side: &mut Side, now: Nanos) {
        let before = side.connection.settings().datagram_len_max;
        let way_len = self.way_len(peer);
        if let Some(len) = way_len.filter(|len| *len < before) {
            side.connection.shorten(len);
            side.outgoing.shorten(len);
        }
        // Another thread's datagrams to other peers may leave in fragments meanwhile, and are none the worse for it.
        let _ = options::fragment_where_needed(self.socket());
        side.outgoing.flush_in_fragments(now, self.socket(), &side.store);
        let _ = options::never_fragment(self.socket());
        if side.outgoing.is_too_long() {
            side.outgoing.clear();
            let takes = way_len
                .map_or_else(String::new, |len| format!(", which are {len} octets as far as it knows"));
            let why = format!(
                "datagrams of {before} octets are longer than the system lets the way to {} take{takes}; \
                 --datagram-len makes them shorter",
                peer.address.ip().to_canonical()
            );
            side.fault = Some(why);
        }
    }

    /// Octets of a datagram that the way to a peer takes whole, as far as the system knows.
    fn way_len(&self, peer: &Peer) -> Option<usize> {
        // Only a socket with a single peer is told, and this rank's may have many.
        let from = self.socket.local_addr().ok()?;
        let socket = UdpSocket::bind((from.ip(), 0)).ok()?;
        socket.connect(peer.address).ok()?;
        let mtu = options::path_mtu(socket.as_fd()).ok()?;
        Some(len_within(mtu, peer.address.ip()))
    }
}
