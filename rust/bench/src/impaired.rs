//! Impaired network between mpjdev ranks over UDP.

use std::fmt;
use std::num::NonZeroU32;

use mpjdev_sim::{Counts, Impairment};
use serde::Serialize;

use super::BenchError;
use super::contestant::RelayedPath;
use super::relay::Totals;
use super::relay_client::RelayClient;
use super::relay_ports::RelayPorts;

/// Limit of the ranks: the relay has two sockets for each pair.
pub const RANKS_MAX: u32 = 16;

/// Octets of a datagram on an inter-node path: 1500 of an Ethernet frame less the headers of IPv4 and UDP.
const DATAGRAM_LEN: u16 = 1472;

/// Impairment of a network.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Impairment each way.
    pub impairment: Impairment,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Declared rate of the link in kbit/s, if any.
    pub link_rate: Option<NonZeroU32>,
}

/// A relay with these conditions, for ranks that are started later.
#[derive(Debug)]
pub struct BadNetwork {
    conditions: Conditions,
    ports: RelayPorts,
}

/// Counts of all datagrams between the ranks, from start to end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatagramCounts {
    /// Impairment as given.
    pub impairment: String,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether the ranks treated the path as inter-node.
    pub is_inter_node: bool,
    /// Datagrams that the ranks sent.
    pub sent: u64,
    /// Datagrams delivered; a duplicated one counts twice.
    pub delivered: u64,
    /// Datagrams lost by chance.
    pub lost: u64,
    /// Datagrams dropped by a full queue.
    pub dropped: u64,
    /// Datagrams delivered twice.
    pub duplicated: u64,
    /// Datagrams overtaken by later ones.
    pub reordered: u64,
    /// Datagrams that the relay was too slow for, or that no peer received.
    pub by_relay: u64,
}

impl Conditions {
    /// Whether the ranks treat the path as inter-node: with datagrams of an Ethernet, and with congestion
    /// control or at the rate of the link. A path with a rate or a delay is inter-node.
    #[must_use]
    pub fn is_inter_node(&self) -> bool {
        let Impairment { rate, delay_ns, jitter_ns, .. } = self.impairment;
        rate.is_some() || delay_ns > 0 || jitter_ns > 0 || self.link_rate.is_some()
    }
}

impl BadNetwork {
    /// Starts the relay for a number of ranks.
    ///
    /// # Errors
    /// The system gives no sockets or no thread.
    pub fn new(conditions: Conditions, ranks: u32) -> Result<BadNetwork, BenchError> {
        let ports = RelayPorts::open(ranks, conditions.impairment, conditions.seed);
        Ok(BadNetwork { conditions, ports: ports.map_err(BenchError::system("a relay"))? })
    }

    /// Path of the ranks through the relay.
    #[must_use]
    pub fn relayed_path(&self) -> RelayedPath {
        let (is_inter_node, link_rate) = (self.conditions.is_inter_node(), self.conditions.link_rate);
        let datagram_len = is_inter_node.then_some(DATAGRAM_LEN);
        let relay = RelayClient { address: self.ports.address(), is_inter_node };
        RelayedPath { relay, link_rate, datagram_len }
    }

    /// Ends the relay after the ranks have ended.
    ///
    /// # Errors
    /// The relay has failed.
    pub fn end(self) -> Result<DatagramCounts, BenchError> {
        let totals = self.ports.end().map_err(BenchError::system("the relay"))?;
        let Totals { overrun, undelivered, .. } = totals;
        let Counts { sent, delivered, lost, dropped, duplicated, reordered } = totals.sum();
        Ok(DatagramCounts {
            impairment: self.conditions.impairment.to_string(),
            seed: self.conditions.seed,
            is_inter_node: self.conditions.is_inter_node(),
            sent,
            delivered,
            lost,
            dropped,
            duplicated,
            reordered,
            by_relay: overrun + undelivered,
        })
    }
}

/// Text of two lines.
impl fmt::Display for DatagramCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DatagramCounts {
            impairment,
            seed,
            is_inter_node,
            sent,
            delivered,
            lost,
            dropped,
            duplicated,
            reordered,
            by_relay,
        } = self;
        let impairment = if impairment.is_empty() { "nothing" } else { impairment };
        let path = if *is_inter_node { "as between machines" } else { "as within a machine" };
        writeln!(
            f,
            "Through a relay with {impairment} each way (seed {seed}), sent {path}; from start to end {sent} \
             datagrams:"
        )?;
        write!(
            f,
            "{delivered} delivered, {lost} lost, {duplicated} duplicated, {reordered} overtaken, {dropped} \
             dropped by its queue"
        )?;
        if *by_relay > 0 {
            write!(f, "; {by_relay} lost by the relay itself")?;
        }
        writeln!(f, ". All messages had the content they were sent with.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_with_a_rate_or_a_delay_is_inter_node() {
        let far = |text: &str| {
            let impairment = text.parse().expect("an impairment");
            Conditions { impairment, seed: 1, link_rate: None }.is_inter_node()
        };
        assert_eq!(["", "loss=1%,dup=1%,reorder=16", "queue=9"].map(far), [false; 3]);
        assert_eq!(["delay=1ms", "jitter=10us", "loss=1%,rate=100mbit"].map(far), [true; 3]);
        let link_rate = NonZeroU32::new(1000);
        assert!(Conditions { impairment: Impairment::NONE, seed: 1, link_rate }.is_inter_node());
    }
}
