//! Why a meeting of ranks fails.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::introduction::{MAGIC, VERSION};

/// Why ranks cannot send each other datagrams.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// It has not said anything in time.
    #[error(
        "rank {peer} at {address} has not said where its datagrams are to go; --connect-timeout gives it more time"
    )]
    Silent {
        /// The rank.
        peer: u32,
        /// Where it is.
        address: IpAddr,
    },
    /// It has gone.
    #[error(
        "rank {peer} has closed its connection before it has said where its datagrams are to go: {error}"
    )]
    Gone {
        /// The rank.
        peer: u32,
        /// How.
        error: io::Error,
    },
    /// Another program, or another version.
    #[error(
        "rank {peer} begins with {begin:08x?}, this rank with [{MAGIC:08x}, {VERSION:08x}]: all ranks need the same version of \
         mpjdev"
    )]
    Version {
        /// The rank.
        peer: u32,
        /// Its first two words.
        begin: [u32; 2],
    },
    /// A number is not within its limits.
    #[error("rank {peer} says that {field} is {value}")]
    Value {
        /// The rank.
        peer: u32,
        /// Which number.
        field: &'static str,
        /// What it is.
        value: u32,
    },
    /// Datagrams do not arrive, though the ranks are connected.
    #[error(
        "rank {peer}: no datagram from {from} to {to} has arrived, though the ranks are connected over TCP: a firewall may drop UDP \
         between these addresses and ports (--ports gives a range to let through); --transport tcp needs no UDP"
    )]
    Echo {
        /// The rank.
        peer: u32,
        /// Where the datagrams left.
        from: SocketAddr,
        /// Where they were to go.
        to: SocketAddr,
    },
    /// Short datagrams arrive, and long ones do not.
    #[error(
        "rank {peer}: datagrams of {len} octets from {from} to {to} do not arrive, and short ones do: something on the path drops long \
         ones without a word; --datagram-len makes them shorter"
    )]
    Length {
        /// The rank.
        peer: u32,
        /// Where the datagrams left.
        from: SocketAddr,
        /// Where they were to go.
        to: SocketAddr,
        /// Octets of the shortest one that was lost each time.
        len: usize,
    },
    /// Datagrams arrive, and it has not said in time that it has no more to send.
    #[error(
        "rank {peer} at {address} has not ended the trial of datagrams, which do arrive; --connect-timeout gives it more time"
    )]
    Unended {
        /// The rank.
        peer: u32,
        /// Where it is.
        address: IpAddr,
    },
    /// It says something else than that datagrams have come, or no more leave.
    #[error("rank {peer} says {word:#04x} when datagrams are tried")]
    Word {
        /// The rank.
        peer: u32,
        /// What it says.
        word: u8,
    },
    /// The waiting thread was interrupted.
    #[error("interrupted while waiting for the other ranks")]
    Interrupted,
    /// The system refuses.
    #[error("{what}: {error}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
}

impl MeetingError {
    /// Who is to blame, if it is another rank.
    #[must_use]
    pub fn peer(&self) -> Option<u32> {
        match self {
            MeetingError::Silent { peer, .. }
            | MeetingError::Gone { peer, .. }
            | MeetingError::Version { peer, .. }
            | MeetingError::Value { peer, .. }
            | MeetingError::Echo { peer, .. }
            | MeetingError::Length { peer, .. }
            | MeetingError::Unended { peer, .. }
            | MeetingError::Word { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}
