//! Reduction of one vector of each rank to one at the root.

use crate::blocks::Blocks;
use crate::choice::{Case, Choices, Reduce};
use crate::direct::{combine_blocks, put};
use crate::fold::Fold;
use crate::group::Group;
use crate::hierarchy::Level;
use crate::operation::Operation;
use crate::rabenseifner::{collect_at_first, halve};
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;
use crate::tree_order::combine_all;

/// Combines vectors of `count` elements, each of `element_len` octets.
///
/// Ranks combine in their order, for a commutative operation from the root on and around the end. Otherwise
/// rank 0 has the result first, and sends it to the root.
pub fn reduce(
    group: Group,
    root: u32,
    count: usize,
    operation: Operation,
    element_len: usize,
    choices: &Choices<'_>,
) -> Schedule {
    assert!(root < group.size, "root {root} of {group:?}");
    let vector = Run { start: 0, len: count };
    let top = if operation.is_commutative { root } else { 0 };
    let node = Node::new(group, top);
    let output = if group.rank == root { vec![vector] } else { vec![] };
    let mut schedule = Schedule::new(count, vec![vector], output);
    match choices.reduce(&Case::of_reduction(group, count, operation, element_len)) {
        Reduce::Hierarchical => {
            let level = Level::new(group, choices.sites(), top);
            let result = level.combine_site(&mut schedule, vector);
            if level.is_leader() {
                level.combine_sites(&mut schedule, result);
                put(&mut schedule, result, vector);
            }
        }
        Reduce::Direct if group.rank == top => {
            let result = combine_all(&mut schedule, group, vector);
            put(&mut schedule, result, vector);
        }
        Reduce::Direct => schedule.send(top, vector),
        Reduce::DirectBlocks => direct_blocks(&mut schedule, group, top, vector, operation.unit),
        Reduce::Binomial => node.combine_up(&mut schedule, vector),
        Reduce::Rabenseifner => rabenseifner(&mut schedule, node, vector, operation.unit),
    }
    if top != root && group.rank == top {
        schedule.send(root, vector);
    }
    if top != root && group.rank == root {
        schedule.receive(top, vector);
    }
    schedule
}

/// Combines one block of the vector at each rank, and collects them.
fn direct_blocks(schedule: &mut Schedule, group: Group, top: u32, vector: Run, unit: usize) {
    let blocks = Blocks::divide(vector.len, unit, group.size);
    let result = combine_blocks(schedule, group, &blocks);
    if group.rank != top {
        return schedule.send(top, result);
    }
    put(schedule, result, blocks.run(top));
    group.others().for_each(|source| schedule.receive(source, blocks.run(source)));
}

fn rabenseifner(schedule: &mut Schedule, node: Node, vector: Run, unit: usize) {
    let fold = Fold::new(node);
    fold.fold(schedule, vector);
    if let Some(number) = fold.number() {
        let exchanges = halve(schedule, &fold, number, vector, unit);
        collect_at_first(schedule, &fold, number, &exchanges);
    }
}
