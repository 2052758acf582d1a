//! Gathering of one block of each rank at all ranks.

use crate::blocks::Blocks;
use crate::choice::{Allgather, Case, Choices};
use crate::direct::gather_at_all;
use crate::group::Group;
use crate::hierarchy::Level;
use crate::ring::ring;
use crate::schedule::Schedule;
use crate::tree::Node;

/// Gathers `count` elements of each rank, each of `element_len` octets, at all ranks.
pub fn allgather(group: Group, count: usize, element_len: usize, choices: &Choices<'_>) -> Schedule {
    allgatherv(group, &vec![count; group.size as usize], element_len, choices)
}

/// Gathers `counts[k]` elements of each rank `k`, each of `element_len` octets, at all ranks.
pub fn allgatherv(group: Group, counts: &[usize], element_len: usize, choices: &Choices<'_>) -> Schedule {
    assert!(group.rank < group.size, "{group:?}");
    let counts = &counts[..group.size as usize];
    let octets = counts.iter().sum::<usize>() * element_len;
    match choices.allgather(&Case::new(group, octets)) {
        Allgather::RecursiveDoubling => recursive_doubling(group, counts),
        Allgather::Bruck => bruck(group, counts),
        Allgather::Hierarchical => {
            let (mut schedule, blocks) = in_rank_order(group, counts);
            Level::new(group, choices.sites(), 0).gather_at_all(&mut schedule, &blocks);
            schedule
        }
        Allgather::Direct => {
            let (mut schedule, blocks) = in_rank_order(group, counts);
            gather_at_all(&mut schedule, group, blocks.run(group.rank), &blocks);
            schedule.is_exchange = true;
            schedule
        }
        Allgather::Ring => {
            let (mut schedule, blocks) = in_rank_order(group, counts);
            ring(&mut schedule, &Node::new(group, 0), &blocks, 0, |_, _| false);
            schedule
        }
    }
}

/// A schedule without steps whose area has the blocks in rank order.
fn in_rank_order(group: Group, counts: &[usize]) -> (Schedule, Blocks) {
    let blocks = Blocks::new(counts.iter().copied());
    (Schedule::new(blocks.len(), vec![blocks.run(group.rank)], blocks.all()), blocks)
}

/// Exchanges with a rank at twice the distance in each step all blocks that both have. The number of ranks is
/// a power of two.
fn recursive_doubling(group: Group, counts: &[usize]) -> Schedule {
    let (mut schedule, blocks) = in_rank_order(group, counts);
    for distance in group.distances() {
        let partner = group.rank ^ distance;
        let of = |rank: u32| blocks.runs((rank & !(distance - 1))..(rank | (distance - 1)) + 1);
        schedule.send(partner, of(group.rank));
        schedule.receive(partner, of(partner));
    }
    schedule
}

/// Sends in each step the blocks collected so far to a rank at twice the distance. The area begins with the
/// own block; those of the following ranks are behind it.
fn bruck(group: Group, counts: &[usize]) -> Schedule {
    let Group { rank, size } = group;
    let blocks = Blocks::new((0..size).map(|distance| counts[group.after(distance) as usize]));
    let output = (0..size).map(|source| blocks.run((source + size - rank) % size)).collect();
    let mut schedule = Schedule::new(blocks.len(), vec![blocks.run(0)], output);
    for distance in group.distances() {
        let blocks_sent = distance.min(size - distance);
        schedule.send(group.before(distance), blocks.runs(0..blocks_sent));
        schedule.receive(group.after(distance), blocks.runs(distance..distance + blocks_sent));
    }
    schedule
}
