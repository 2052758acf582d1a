//! Transport over TCP connections that carry IMPI packets (IMPI 6 to 9, 14). The peers run on other machines
//! or on this one.
//!
//! The state machines of [`mpjdev_proto::impi`] decide which packets there are. This module moves their
//! octets. A channel is one connection. Senders take the lock of its sending direction. The receiving
//! direction belongs to the thread that polls, and to the rank's lock while packets are passed on. Waiting
//! means reading: a poll of a channel is the read itself.

mod body_action;
mod channel;
mod channel_state;
mod dispatch;
mod external_wait;
pub mod in_process;
mod packet_source;
mod peer_timeout;
mod poll;
mod rx_stream;
mod send;
#[cfg(test)]
mod tests;
mod timeout_checks;
mod transport;
mod tx_stream;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::impi::{Dialect, Proc};

use crate::config::Config;
pub use packet_source::TcpSource;
use transport::EAGER_MAX;
pub use transport::TcpTransport;

/// A rank of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its process, as announced at start-up.
    pub proc: Proc,
    /// Number of its host, which has a channel of its own.
    pub host: u32,
    /// Whether it is a rank of this implementation.
    pub is_ours: bool,
}

/// The terms that all hosts have settled at start-up (IMPI 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The text that the job follows.
    pub dialect: Dialect,
    /// Most octets of user data in a packet.
    pub maxdatalen: u32,
    /// Packets that are acknowledged together.
    pub ackmark: u32,
    /// Most unacknowledged packets.
    pub hiwater: u32,
}

impl Terms {
    /// The terms of a job of one site, whose ranks all are of this implementation. Its packets have room for
    /// an eager message.
    #[must_use]
    pub fn of_one_site(dialect: Dialect) -> Terms {
        Terms { dialect, maxdatalen: EAGER_MAX as u32, ..Terms::default() }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms { dialect: Dialect::Final, maxdatalen: 256 << 10, ackmark: 64, hiwater: 256 }
    }
}

/// Resources of a rank before the first packet.
#[derive(Debug)]
pub struct Job {
    /// Its number in the world.
    pub rank: u32,
    /// All ranks.
    pub members: Vec<Member>,
    /// The site of each rank; empty if there is one.
    pub site_of: Vec<u32>,
    /// The settled terms.
    pub terms: Terms,
    /// Connections by host; none to this rank's own host, and to those that are reached otherwise.
    pub sockets: Vec<Option<OwnedFd>>,
}

/// The transport and the packet source of a rank. Arriving messages take memory from `source`.
///
/// # Errors
/// The terms contradict each other; the system refuses.
pub fn connect(
    job: Job,
    config: &Config,
    source: Arc<dyn SlabSource>,
) -> io::Result<(Arc<TcpTransport>, TcpSource)> {
    let transport = Arc::new(TcpTransport::new(job, source)?);
    let packet_source = TcpSource::new(transport.clone(), config.inline_max);
    Ok((transport, packet_source))
}
