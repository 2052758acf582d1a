//! What a rank has counted of its traffic, for people and programs that ask by [`VARIABLE`].
//!
//! The numbers are kept where the packets are, under locks that are held there anyway; here they are only pure data, and what
//! is written of them when a rank ends ([`report`]).

mod counted;
pub mod report;

pub use counted::Datagrams;

/// The variable that asks for a report of each rank: `1` for lines of text, `json` for one line of JSON.
pub const VARIABLE: &str = "MPJDEV_STATS";

/// What one rank has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Its number in the world.
    pub rank: u32,
    /// What carries its messages, by the name that `mpjrun` has for it.
    pub transport: &'static str,
    /// Requests that were done, and messages that came before anybody had asked for them.
    pub completions: u64,
    /// What is counted where messages go by datagrams.
    pub datagrams: Option<OverDatagrams>,
}

/// What a rank counts whose messages go by datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverDatagrams {
    /// Of its socket, which all its peers share: what cannot be told apart by peer.
    pub socket: Datagrams,
    /// By peer, with its rank in the world.
    pub peers: Vec<(u32, Datagrams)>,
}

impl OverDatagrams {
    /// All of it together. The round trip is the longest, the window the widest of all peers.
    #[must_use]
    pub fn sum(&self) -> Datagrams {
        self.peers.iter().fold(self.socket, |sum, (_, peer)| sum.plus(peer))
    }
}
