//! Statistics of a rank's traffic, for users and programs that request them with [`VARIABLE`].
//!
//! The numbers are counted where the packets are handled, under locks that are held there anyway. This module
//! has them as pure data, and the report written at the end of a rank ([`report`]).

pub mod report;
mod udp;

pub use udp::Datagrams;

/// The variable that requests a report of each rank: `1` for lines of text, `json` for one line of JSON.
pub const VARIABLE: &str = "MPJDEV_STATS";

/// Statistics of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Its number in the world.
    pub rank: u32,
    /// The transport of its messages, by its name in `mpjrun`.
    pub transport: &'static str,
    /// Requests that completed, and messages that arrived before any receive asked for them.
    pub completions: u64,
    /// Statistics of messages that go by datagrams.
    pub datagrams: Option<UdpStats>,
}

/// Statistics of a rank whose messages go by datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpStats {
    /// Counters of its socket, which all its peers share: they cannot be attributed to a peer.
    pub socket: Datagrams,
    /// Counters of each peer, with its rank in the world.
    pub peers: Vec<(u32, Datagrams)>,
}

impl UdpStats {
    /// The total. The round trip is the longest, and the window the widest, of all peers.
    #[must_use]
    pub fn sum(&self) -> Datagrams {
        self.peers.iter().fold(self.socket, |sum, (_, peer)| sum.plus(peer))
    }
}
