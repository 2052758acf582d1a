//! Peer lookup of a rank by the connection ids of packets.

use std::io;

use mpjdev_proto::datagram::sequence::FullSequence;
use rustix::rand::{GetRandomFlags, getrandom};

/// A random connection id, which an attacker cannot guess, for packets from a peer, and the number of the
/// first packet to it.
///
/// # Errors
/// The system has no random numbers.
pub fn numbers() -> io::Result<(u64, FullSequence)> {
    let mut octets = [0; 16];
    let mut len = 0;
    while len < octets.len() {
        len += rustix::io::retry_on_intr(|| getrandom(&mut octets[len..], GetRandomFlags::empty()))?;
    }
    let [id, first] = octets.as_chunks().0 else { unreachable!("two numbers of 8 octets") };
    Ok((u64::from_ne_bytes(*id), FullSequence::of(u64::from_ne_bytes(*first))))
}

/// Hash table from ids to ranks. Each id is in the first free slot from the one of its low bits on. All bits
/// of an id are random, so no hash would spread ids better, and an attacker knows no id.
#[derive(Debug)]
pub(super) struct Ids {
    /// At least half of the slots are free.
    places: Vec<Option<(u64, u32)>>,
}

impl Ids {
    /// The table of these ids and ranks.
    pub(super) fn new(ids: &[(u64, u32)]) -> Ids {
        let mut this = Ids { places: vec![None; (2 * ids.len()).next_power_of_two()] };
        for (id, rank) in ids {
            let mut at = this.first(*id);
            while this.places[at].is_some() {
                at = this.behind(at);
            }
            this.places[at] = Some((*id, *rank));
        }
        this
    }

    /// The rank whose packets have this id.
    #[inline]
    pub(super) fn rank(&self, id: u64) -> Option<u32> {
        let mut at = self.first(id);
        while let Some((found, rank)) = self.places[at] {
            if found == id {
                return Some(rank);
            }
            at = self.behind(at);
        }
        None
    }

    const fn first(&self, id: u64) -> usize {
        id as usize & (self.places.len() - 1)
    }

    const fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_a_peer_finds_its_rank_and_any_other_id_none() {
        assert_eq!(Ids::new(&[]).rank(7), None);
        for count in [1, 2, 3, 100, 1000] {
            // Many begin at the same slot, which is the last one.
            let id = |rank: u32| u64::from(rank) << 40 ^ u64::from(rank % 7).wrapping_sub(4);
            let ids: Vec<(u64, u32)> = (0..count).map(|rank| (id(rank), rank)).collect();
            let table = Ids::new(&ids);
            for (id, rank) in &ids {
                assert_eq!(table.rank(*id), Some(*rank), "{count}");
                assert_eq!(table.rank(id ^ 1 << 63), None, "{count}");
            }
        }
    }
}
