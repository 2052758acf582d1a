//! Test hooks: access of tests of the layers above to a rank's transport.

use std::net::UdpSocket;
use std::sync::atomic::Ordering::SeqCst;

use mpjdev_proto::datagram::reliable::settings::Settings;

use super::transport::UdpTransport;

#[doc(hidden)]
impl UdpTransport {
    /// Settings of the connection to a peer; `None` for this rank itself.
    pub fn settings(&self, rank: u32) -> Option<Settings> {
        Some(*self.peer_of(rank)?.session().connection.settings())
    }

    /// Packets to a peer that it has not acked; `None` for this rank itself.
    pub fn unacknowledged(&self, rank: u32) -> Option<u64> {
        Some(self.peer_of(rank)?.session().connection.unacknowledged())
    }

    /// The socket of the rank.
    pub fn udp_socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Whether a thread of the program sleeps until the socket has something.
    pub fn is_asleep(&self) -> bool {
        self.net.progress.is_asleep.load(SeqCst)
    }

    /// Closes a peer, as after its failure.
    pub fn close_peer(&self, rank: u32, why: &str) {
        if let Some(peer) = self.peer_of(rank) {
            self.close(peer, why, false);
        }
    }
}
