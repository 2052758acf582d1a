//! Our ranks over datagrams through a network that is as bad as somebody wants to see it.

use std::fmt;
use std::num::NonZeroU32;

use mpjdev_proto::datagram::network::{Counts, Impairment};
use serde::Serialize;

use super::BenchError;
use super::contestant::Passage;
use super::relay::Totals;
use super::relay_client::RelayClient;
use super::relay_ports::RelayPorts;

/// Ranks that can be in it: each two of them have two sockets of the relay.
pub const RANKS_MAX: u32 = 16;

/// Octets of a datagram where the way counts as one between machines: what an Ethernet takes whole, less the
/// headers of IPv4 and UDP.
const DATAGRAM_LEN: u16 = 1472;

/// Impairment of a network.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Impairment each way.
    pub impairment: Impairment,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The rate at which datagrams leave, where it is known: thousands of bits in a second.
    pub link_rate: Option<NonZeroU32>,
}

/// Conditions that are there, between ranks that are still to be started.
#[derive(Debug)]
pub struct BadNetwork {
    conditions: Conditions,
    ports: RelayPorts,
}

/// Counts of all datagrams between ranks, from their start to their end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fate {
    /// Impairment as given.
    pub impairment: String,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether ranks took the way for one between machines.
    pub is_far: bool,
    /// Datagrams that ranks have sent.
    pub sent: u64,
    /// That were delivered, doubled ones twice.
    pub delivered: u64,
    /// That were lost.
    pub lost: u64,
    /// That found a full queue.
    pub dropped: u64,
    /// That were doubled.
    pub duplicated: u64,
    /// That were made to wait for later ones.
    pub reordered: u64,
    /// That the relay itself was too slow for, or that nobody took.
    pub by_relay: u64,
}

impl Conditions {
    /// Whether ranks take the way for one between machines, with an Ethernet's datagrams and with congestion
    /// control or at the rate of the link: where it has a rate or takes time. Else they send as within a
    /// machine, where nothing but what is lost keeps them.
    #[must_use]
    pub fn is_far(&self) -> bool {
        let Impairment { rate, delay_ns, jitter_ns, .. } = self.impairment;
        rate.is_some() || delay_ns > 0 || jitter_ns > 0 || self.link_rate.is_some()
    }
}

impl BadNetwork {
    /// Makes it for a number of ranks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(conditions: Conditions, ranks: u32) -> Result<BadNetwork, BenchError> {
        let ports = RelayPorts::open(ranks, conditions.impairment, conditions.seed);
        Ok(BadNetwork { conditions, ports: ports.map_err(BenchError::system("a relay"))? })
    }

    /// Path of the ranks' datagrams.
    #[must_use]
    pub fn passage(&self) -> Passage {
        let (is_far, link_rate) = (self.conditions.is_far(), self.conditions.link_rate);
        let datagram_len = is_far.then_some(DATAGRAM_LEN);
        let relay = RelayClient { address: self.ports.address(), is_inter_node: is_far };
        Passage { relay, link_rate, datagram_len }
    }

    /// Ends it when the ranks have ended.
    ///
    /// # Errors
    /// It has ended before.
    pub fn end(self) -> Result<Fate, BenchError> {
        let totals = self.ports.end().map_err(BenchError::system("the relay"))?;
        let Totals { overrun, undelivered, .. } = totals;
        let Counts { sent, delivered, lost, dropped, duplicated, reordered } = totals.sum();
        Ok(Fate {
            impairment: self.conditions.impairment.to_string(),
            seed: self.conditions.seed,
            is_far: self.conditions.is_far(),
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

/// As text: a line or two.
impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fate {
            impairment,
            seed,
            is_far,
            sent,
            delivered,
            lost,
            dropped,
            duplicated,
            reordered,
            by_relay,
        } = self;
        let impairment = if impairment.is_empty() { "nothing" } else { impairment };
        let way = if *is_far { "as between machines" } else { "as within a machine" };
        writeln!(
            f,
            "Through a relay with {impairment} each way (seed {seed}), sent {way}; from start to end {sent} \
             datagrams:"
        )?;
        write!(
            f,
            "{delivered} delivered, {lost} lost, {duplicated} doubled, {reordered} overtaken, {dropped} \
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
            Conditions { impairment, seed: 1, link_rate: None }.is_far()
        };
        assert_eq!(["", "loss=1%,dup=1%,reorder=16", "queue=9"].map(far), [false; 3]);
        assert_eq!(["delay=1ms", "jitter=10us", "loss=1%,rate=100mbit"].map(far), [true; 3]);
        let link_rate = NonZeroU32::new(1000);
        assert!(Conditions { impairment: Impairment::NONE, seed: 1, link_rate }.is_far());
    }
}
