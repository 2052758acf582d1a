//! Checks of the peer timeout on each connection: the time of octets that the peer's system has not acked.

use std::os::fd::AsFd;
use std::time::Instant;

use mpjdev_sys::stream;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_user_timeout;

use super::channel::Channel;
use super::transport::TcpTransport;

impl TcpTransport {
    /// Checks the connections if a check is due.
    pub(super) fn check_peer_timeouts(&self) {
        let now = Instant::now();
        if self.peer_timeout.is_due(now) {
            self.channels.iter().for_each(|channel| self.check_channel(channel, now));
        }
    }

    pub(super) fn check_channel(&self, channel: &Channel, now: Instant) {
        let socket = channel.socket.as_fd();
        let mut tx = channel.tx();
        if !tx.is_open() {
            return;
        }
        let is_outstanding = stream::untaken_len(socket).is_ok_and(|len| len > 0);
        match tx.outstanding_since {
            None if is_outstanding => {
                let _ = set_tcp_user_timeout(socket, 0);
                tx.outstanding_since = Some(now);
            }
            Some(_) if !is_outstanding => {
                let _ = set_tcp_user_timeout(socket, self.peer_timeout.most.as_millis() as u32);
                tx.outstanding_since = None;
            }
            Some(since) => {
                let since_ack = stream::since_ack(socket).unwrap_or_default();
                if self.peer_timeout.has_passed(now - since, since_ack) {
                    self.stop_sending(channel, &mut tx, &Errno::TIMEDOUT.into());
                }
            }
            None => {}
        }
    }
}
