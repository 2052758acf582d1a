//! The number of ranks on each host.

use std::ops::Range;

use clap::ValueEnum;
use thiserror::Error;

use super::host_list::Host;

/// The order in which hosts receive ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MapBy {
    /// Fill the slots of a host before the next one
    #[default]
    Slot,
    /// One rank to each host in turn; the ranks of a host have consecutive numbers
    Node,
}

/// A host with its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The name of the host.
    pub host: String,
    /// Its world ranks.
    pub ranks: Range<u32>,
}

/// More ranks than slots.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "-n {ranks} needs {ranks} slots, and the hosts have {slots}: add hosts, or slots as in a:4; hosts \
     without a number of slots take any number of ranks"
)]
pub struct SlotsError {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of slots.
    pub slots: u32,
}

/// Maps ranks to hosts. Without `ranks` each slot gets a rank, and a host without a number of slots gets one.
/// Hosts that get no rank are left out.
///
/// # Errors
/// All hosts have a number of slots, and these are fewer than the ranks.
pub fn map(hosts: &[Host], ranks: Option<u32>, by: MapBy) -> Result<Vec<Share>, SlotsError> {
    let slots: u32 = hosts.iter().map(|host| host.slots.unwrap_or(1)).fold(0, u32::saturating_add);
    let ranks = ranks.unwrap_or(slots);
    let is_bounded = hosts.iter().all(|host| host.slots.is_some());
    if is_bounded && ranks > slots {
        return Err(SlotsError { ranks, slots });
    }
    let mut counts = vec![0_u32; hosts.len()];
    let mut left = ranks;
    let has_slots = hosts.iter().any(|host| host.slots.is_some());
    if by == MapBy::Slot && has_slots {
        for (count, host) in counts.iter_mut().zip(hosts) {
            *count = host.slots.unwrap_or(1).min(left);
            left -= *count;
        }
    }
    // By node; or evenly, if no host has a number of slots; or what is left, to hosts without a number.
    while left > 0 {
        for (count, host) in counts.iter_mut().zip(hosts) {
            if left > 0 && host.slots.is_none_or(|slots| *count < slots) {
                *count += 1;
                left -= 1;
            }
        }
    }
    let mut first = 0;
    let shares = hosts.iter().zip(counts).filter(|(_, count)| *count > 0).map(|(host, count)| {
        let ranks = first..first + count;
        first = ranks.end;
        Share { host: host.name.clone(), ranks }
    });
    Ok(shares.collect())
}

#[cfg(test)]
mod tests {
    use super::super::host_list::parse_hosts;
    use super::*;

    fn counts(hosts: &str, ranks: Option<u32>, by: MapBy) -> Result<String, SlotsError> {
        let shares = map(&parse_hosts(hosts).expect("hosts"), ranks, by)?;
        let end = shares.iter().fold(0, |end, share| {
            assert_eq!(share.ranks.start, end, "ranks are consecutive");
            share.ranks.end
        });
        assert!(ranks.is_none_or(|ranks| ranks == end));
        let words = shares.iter().map(|share| format!("{}:{}", share.host, share.ranks.len()));
        Ok(words.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn by_slot_fills_hosts_in_order() {
        let by = MapBy::Slot;
        assert_eq!(counts("a:4,b:2", None, by), Ok("a:4,b:2".into()));
        assert_eq!(counts("a:4,b:2", Some(5), by), Ok("a:4,b:1".into()));
        assert_eq!(counts("a:4,b:2", Some(3), by), Ok("a:3".into()), "b is left out");
        assert_eq!(counts("a:2,b", Some(6), by), Ok("a:2,b:4".into()), "b has no number");
    }

    #[test]
    fn by_node_takes_hosts_in_turn() {
        let by = MapBy::Node;
        assert_eq!(counts("a:4,b:4,c:4", Some(5), by), Ok("a:2,b:2,c:1".into()));
        assert_eq!(counts("a:1,b:4", Some(4), by), Ok("a:1,b:3".into()));
        assert_eq!(counts("a:4,b:2", None, by), Ok("a:4,b:2".into()));
    }

    #[test]
    fn hosts_without_slots_get_even_shares() {
        for by in [MapBy::Slot, MapBy::Node] {
            assert_eq!(counts("a,b,c", Some(7), by), Ok("a:3,b:2,c:2".into()));
            assert_eq!(counts("a,b,c", None, by), Ok("a:1,b:1,c:1".into()));
            assert_eq!(counts("a,b,c", Some(2), by), Ok("a:1,b:1".into()));
        }
    }

    #[test]
    fn more_ranks_than_slots_are_refused() {
        let error = counts("a:4,b:2", Some(7), MapBy::Slot).expect_err("7 > 6");
        assert_eq!(error, SlotsError { ranks: 7, slots: 6 });
        assert!(error.to_string().starts_with("-n 7 needs 7 slots, and the hosts have 6: "));
    }
}
