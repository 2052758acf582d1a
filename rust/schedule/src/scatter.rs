//! Scattering of one block for each rank from the root.

use crate::blocks::{Blocks, own_block};
use crate::choice::{Case, Choices, Rooted};
use crate::group::Group;
use crate::hierarchy::Level;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;

/// Scatters `count` elements to each rank, each of `element_len` octets.
pub fn scatter(group: Group, root: u32, count: usize, element_len: usize, choices: &Choices<'_>) -> Schedule {
    match choices.scatter(&Case::new(group, count * element_len)) {
        Rooted::Hierarchical => hierarchical(group, root, count, choices),
        Rooted::Binomial => binomial(group, root, count),
        Rooted::Linear => scatterv(group, root, count, &vec![count; group.size as usize]),
    }
}

/// Scatters as many elements to each rank as `counts` says at the root, and at most `own` to this one.
/// Elsewhere `counts` is not used.
pub fn scatterv(group: Group, root: u32, own: usize, counts: &[usize]) -> Schedule {
    assert!(group.rank < group.size && root < group.size, "root {root} of {group:?}");
    if group.rank != root {
        let output = Run { start: 0, len: own };
        let mut schedule = Schedule::new(own, vec![], vec![output]);
        schedule.store(root, output);
        return schedule;
    }
    let blocks = Blocks::new(counts[..group.size as usize].iter().copied());
    let (_, output) = own_block(blocks.run(root).start, blocks.run(root).len, own);
    let mut schedule = Schedule::new(blocks.len(), blocks.all(), vec![output]);
    for dest in (1..group.size).map(|distance| group.after(distance)) {
        schedule.send(dest, blocks.run(dest));
    }
    schedule
}

fn hierarchical(group: Group, root: u32, count: usize, choices: &Choices<'_>) -> Schedule {
    let blocks = Blocks::equal(count, group.size);
    let input = if group.rank == root { blocks.all() } else { vec![] };
    let mut schedule = Schedule::new(blocks.len(), input, vec![blocks.run(group.rank)]);
    Level::new(group, choices.sites(), root).scatter(&mut schedule, &blocks);
    schedule
}

/// Each rank has the blocks of its subtree in its area, its own block first.
fn binomial(group: Group, root: u32, count: usize) -> Schedule {
    let node = Node::new(group, root);
    let own = node.blocks(node.number..node.number + 1, count);
    let area = node.blocks(node.subtree(node.number), count);
    let mut schedule = Schedule::new(area.len, node.blocks_at_root(count), vec![own]);
    node.pass_down(&mut schedule, true, |numbers| node.blocks(numbers, count));
    schedule
}
