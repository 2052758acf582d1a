//! Ranks on other machines, or on this one, behind TCP connections that carry IMPI packets (IMPI 6 to 9, 14).
//!
//! The machines of [`mpjdev_proto::impi`] say what packets there are; here their octets are moved. A channel is one connection.
//! Its way out is under a lock that senders take; its way in belongs to whoever looks, and to the rank's lock when packets are
//! handed over. Waiting means reading: a look at a channel is the read itself.

mod channel;
mod elsewhere;
mod handling;
pub mod in_process;
mod inbox;
mod looking;
mod reading;
mod sending;
mod silence;
#[cfg(test)]
mod tests;
mod wire;
mod writing;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::impi::{Dialect, Proc};

use crate::config::Config;
pub use inbox::TcpInbox;
pub use wire::TcpWire;

/// A rank of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its process, as announced at start-up.
    pub proc: Proc,
    /// Number of its host, which has a channel of its own.
    pub host: u32,
    /// Whether it is one of ours, and not of another implementation.
    pub is_ours: bool,
}

/// What all hosts have settled at start-up (IMPI 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Which text the job follows.
    pub dialect: Dialect,
    /// Most octets of user data in a packet.
    pub maxdatalen: u32,
    /// Packets that are acknowledged together.
    pub ackmark: u32,
    /// Most packets that are not.
    pub hiwater: u32,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { dialect: Dialect::Final, maxdatalen: 256 << 10, ackmark: 64, hiwater: 256 }
    }
}

/// What a rank has before the first packet.
#[derive(Debug)]
pub struct Job {
    /// Its number in the world.
    pub rank: u32,
    /// All ranks.
    pub members: Vec<Member>,
    /// What was settled.
    pub terms: Terms,
    /// Connections by host; none to this rank's own, and to those that are reached otherwise.
    pub sockets: Vec<Option<OwnedFd>>,
}

/// The wire and the inbox of a rank. What arrives takes memory from `source`.
///
/// # Errors
/// The terms contradict each other; the system refuses.
pub fn connect(
    job: Job,
    config: &Config,
    source: Arc<dyn SlabSource>,
) -> io::Result<(Arc<TcpWire>, TcpInbox)> {
    let wire = Arc::new(TcpWire::new(job, source)?);
    let inbox = TcpInbox::new(wire.clone(), config.inline_max);
    Ok((wire, inbox))
}
