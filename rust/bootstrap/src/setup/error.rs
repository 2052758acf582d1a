//! Errors of the setup of ranks.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const MORE_TIME: &str = "a larger --connect-timeout gives it more time";

/// The reason why ranks cannot send each other datagrams.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The peer has sent no Hello in time.
    #[error(
        "rank {peer} at {address} has not sent the parameters of its datagrams within {:.1} s; {MORE_TIME}",
        .after.as_secs_f64()
    )]
    NoHello {
        /// The rank.
        peer: u32,
        /// Its address.
        address: IpAddr,
        /// The time that it had.
        after: Duration,
    },
    /// The peer has closed its connection.
    #[error("rank {peer} has closed its connection before the setup of datagrams was complete: {error}")]
    Closed {
        /// The rank.
        peer: u32,
        /// The error of the connection.
        error: io::Error,
    },
    /// The peer is another program, or another version.
    #[error(
        "rank {peer} begins with {begin:08x?}, this rank with {own:08x?}: all ranks need the same version of \
         mpjdev"
    )]
    Version {
        /// The rank.
        peer: u32,
        /// The first two words of its Hello.
        begin: [u32; 2],
        /// Those of this rank.
        own: [u32; 2],
    },
    /// A number is outside its limits.
    #[error("rank {peer} sends {value} as {field}, which is outside its limits")]
    Value {
        /// The rank.
        peer: u32,
        /// The name of the number.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// Datagrams do not arrive, though the ranks are connected.
    #[error(
        "rank {peer}: no datagram from {from} to {to} has arrived within {:.1} s, though the ranks are \
         connected over TCP: a firewall may drop UDP between these addresses and ports (--ports gives a \
         range to let through); --transport tcp needs no UDP{}",
        .after.as_secs_f64(),
        if *.is_deadline { "; a larger --connect-timeout gives the ranks more time" } else { "" }
    )]
    NoDatagrams {
        /// The rank.
        peer: u32,
        /// The source of the datagrams.
        from: SocketAddr,
        /// Their destination.
        to: SocketAddr,
        /// The time that they had.
        after: Duration,
        /// Whether that is the time of the whole setup, which an option sets.
        is_deadline: bool,
    },
    /// Short datagrams arrive, and long ones do not.
    #[error(
        "rank {peer}: datagrams of {len} octets from {from} to {to} do not arrive, and short ones do: the \
         path drops long ones without an ICMP message; a smaller --datagram-len makes them shorter"
    )]
    Length {
        /// The rank.
        peer: u32,
        /// The source of the datagrams.
        from: SocketAddr,
        /// Their destination.
        to: SocketAddr,
        /// Octets of the shortest length that was always lost.
        len: usize,
    },
    /// Datagrams arrive, and the peer has not completed its setup in time, with this rank or with another
    /// one.
    #[error(
        "rank {peer} at {address} has not completed the setup of datagrams within {:.1} s, though datagrams \
         arrive; {MORE_TIME}",
        .after.as_secs_f64()
    )]
    Unfinished {
        /// The rank.
        peer: u32,
        /// Its address.
        address: IpAddr,
        /// The time that it had.
        after: Duration,
    },
    /// The peer sends an undefined word, or one at the wrong time.
    #[error(
        "rank {peer} sends the octet {word:#04x} during the setup of datagrams, which is not allowed then"
    )]
    Word {
        /// The rank.
        peer: u32,
        /// The word.
        word: u8,
    },
    /// The waiting thread was interrupted.
    #[error("interrupted while waiting for the other ranks")]
    Interrupted,
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// The failed action.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
}

impl SetupError {
    /// The other rank that the error concerns, if any.
    #[must_use]
    pub fn peer(&self) -> Option<u32> {
        match self {
            SetupError::NoHello { peer, .. }
            | SetupError::Closed { peer, .. }
            | SetupError::Version { peer, .. }
            | SetupError::Value { peer, .. }
            | SetupError::NoDatagrams { peer, .. }
            | SetupError::Length { peer, .. }
            | SetupError::Unfinished { peer, .. }
            | SetupError::Word { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}
