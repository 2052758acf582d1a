//! Broadcast of a vector from one rank to all.

use crate::blocks::Blocks;
use crate::choice::{Bcast, Case, Choices};
use crate::group::Group;
use crate::hierarchy::Level;
use crate::ring::ring;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;

/// Sends `count` elements of the root, each of `element_len` octets, to all other ranks.
pub fn bcast(group: Group, root: u32, count: usize, element_len: usize, choices: &Choices<'_>) -> Schedule {
    let node = Node::new(group, root);
    let vector = Run { start: 0, len: count };
    let (input, output) = if group.rank == root { (vec![vector], vec![]) } else { (vec![], vec![vector]) };
    let mut schedule = Schedule::new(count, input, output);
    match choices.bcast(&Case::new(group, count * element_len)) {
        Bcast::Hierarchical => {
            let sites = choices.sites();
            Level::new(group, sites, root).pass_down(&mut schedule, vector);
        }
        Bcast::Linear => linear(&mut schedule, group, root, vector),
        Bcast::Binomial => node.pass_down(&mut schedule, true, |_| vector),
        Bcast::ScatterRing => scatter_ring(&mut schedule, &node, &Blocks::divide(count, 1, group.size)),
    }
    schedule
}

fn linear(schedule: &mut Schedule, group: Group, root: u32, vector: Run) {
    if group.rank != root {
        return schedule.store(root, vector);
    }
    schedule.send_to_ranks(0..group.size, vector);
}

/// Scatters the blocks down the tree, and collects them around the ring. A rank got the blocks of its subtree
/// from the tree.
fn scatter_ring(schedule: &mut Schedule, node: &Node, blocks: &Blocks) {
    node.pass_down(schedule, false, |numbers| blocks.runs(numbers));
    ring(schedule, node, blocks, 0, |number, block| node.subtree(number).contains(&block));
}
