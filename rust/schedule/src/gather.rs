//! Gathering of one block of each rank at the root.

use crate::blocks::{Blocks, own_block};
use crate::choice::{Case, Choices, Rooted};
use crate::group::Group;
use crate::hierarchy::Level;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;

/// Gathers `count` elements of each rank, each of `element_len` octets.
pub fn gather(group: Group, root: u32, count: usize, element_len: usize, choices: &Choices<'_>) -> Schedule {
    match choices.gather(&Case::new(group, count * element_len)) {
        Rooted::Hierarchical => hierarchical(group, root, count, choices),
        Rooted::Binomial => binomial(group, root, count),
        Rooted::Linear => gatherv(group, root, count, &vec![count; group.size as usize]),
    }
}

/// Gathers `own` elements of this rank, and of each rank as many as `counts` says at the root. Elsewhere
/// `counts` is not used.
pub fn gatherv(group: Group, root: u32, own: usize, counts: &[usize]) -> Schedule {
    assert!(group.rank < group.size && root < group.size, "root {root} of {group:?}");
    let input = Run { start: 0, len: own };
    if group.rank != root {
        let mut schedule = Schedule::new(own, vec![input], vec![]);
        schedule.send(root, input);
        return schedule;
    }
    let mut lens = counts[..group.size as usize].to_vec();
    let room = lens[root as usize];
    lens[root as usize] = room.max(own);
    let blocks = Blocks::new(lens);
    let mut output = blocks.all();
    let (input, own_output) = own_block(output[root as usize].start, own, room);
    output[root as usize] = own_output;
    let mut schedule = Schedule::new(blocks.len(), vec![input], output);
    for source in (1..group.size).map(|distance| group.after(distance)) {
        schedule.store(source, blocks.run(source));
    }
    schedule
}

fn hierarchical(group: Group, root: u32, count: usize, choices: &Choices<'_>) -> Schedule {
    let blocks = Blocks::equal(count, group.size);
    let output = if group.rank == root { blocks.all() } else { vec![] };
    let mut schedule = Schedule::new(blocks.len(), vec![blocks.run(group.rank)], output);
    Level::new(group, choices.sites(), root).gather(&mut schedule, &blocks);
    schedule
}

/// Each rank has the blocks of its subtree in its area, its own block first.
fn binomial(group: Group, root: u32, count: usize) -> Schedule {
    let node = Node::new(group, root);
    let own = node.blocks(node.number..node.number + 1, count);
    let area = node.blocks(node.subtree(node.number), count);
    let mut schedule = Schedule::new(area.len, vec![own], node.blocks_at_root(count));
    node.pass_up(&mut schedule, |numbers| node.blocks(numbers, count));
    schedule
}
