//! Reduction of one vector of each rank to one at all ranks.

use crate::blocks::Blocks;
use crate::choice::{Allreduce, Case, Choices};
use crate::direct::{combine_blocks, gather_at_all, put};
use crate::fold::Fold;
use crate::group::{Group, powers_below};
use crate::hierarchy::Level;
use crate::operation::Operation;
use crate::rabenseifner::{collect_at_all, halve};
use crate::ring::ring;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;
use crate::tree_order::combine_all;

/// Combines vectors of `count` elements, each of `element_len` octets, with the same bits at all ranks.
///
/// Ranks that combine the same operands agree on the left one. A part of the vector that one rank has
/// combined is copied to the others.
pub fn allreduce(
    group: Group,
    count: usize,
    operation: Operation,
    element_len: usize,
    choices: &Choices<'_>,
) -> Schedule {
    let node = Node::new(group, 0);
    let vector = Run { start: 0, len: count };
    let mut schedule = Schedule::new(count, vec![vector], vec![vector]);
    let case = Case::of_reduction(group, count, operation, element_len);
    match choices.allreduce(&case) {
        Allreduce::Hierarchical => {
            let level = Level::new(group, choices.sites(), 0);
            let result = level.combine_site(&mut schedule, vector);
            if level.is_leader() {
                level.between_sites(&mut schedule, |schedule, sites| {
                    folded(schedule, Node::new(sites, 0), result, recursive_doubling);
                });
                put(&mut schedule, result, vector);
            }
            level.pass_to_site(&mut schedule, vector);
        }
        Allreduce::ReduceBcast => {
            node.combine_up(&mut schedule, vector);
            node.pass_down(&mut schedule, false, |_| vector);
        }
        Allreduce::Direct => {
            schedule.is_exchange = true;
            schedule.send_to_ranks(0..group.size, vector);
            let result = combine_all(&mut schedule, group, vector);
            put(&mut schedule, result, vector);
        }
        Allreduce::DirectBlocks => {
            let blocks = Blocks::divide(count, operation.unit, group.size);
            let own = blocks.run(group.rank);
            let result = combine_blocks(&mut schedule, group, &blocks);
            gather_at_all(&mut schedule, group, result, &blocks);
            put(&mut schedule, result, own);
        }
        Allreduce::RecursiveDoubling => folded(&mut schedule, node, vector, recursive_doubling),
        Allreduce::Rabenseifner => folded(&mut schedule, node, vector, |schedule, fold, number, vector| {
            let exchanges = halve(schedule, fold, number, vector, operation.unit);
            collect_at_all(schedule, fold, &exchanges);
        }),
        Allreduce::Ring => {
            let blocks = Blocks::divide(count, operation.unit, group.size);
            reduce_around_ring(&mut schedule, group, &blocks);
            ring(&mut schedule, &node, &blocks, 1, |_, _| false);
        }
    }
    schedule
}

/// An algorithm for a power of two, by the number of this rank, on any number of ranks.
fn folded(
    schedule: &mut Schedule,
    node: Node,
    vector: Run,
    algorithm: impl FnOnce(&mut Schedule, &Fold, u32, Run),
) {
    let fold = Fold::new(node);
    fold.fold(schedule, vector);
    if let Some(number) = fold.number() {
        algorithm(schedule, &fold, number, vector);
    }
    fold.unfold(schedule, |_| vector);
}

/// Exchanges the whole vector with a rank at twice the distance in each step. Both combine the same operands.
fn recursive_doubling(schedule: &mut Schedule, fold: &Fold, number: u32, vector: Run) {
    for partner in powers_below(fold.size).map(|distance| number ^ distance) {
        schedule.send(fold.rank(partner), vector);
        schedule.receive_combine(fold.rank(partner), vector, partner < number);
    }
}

/// Passes each block once around the ring, and combines it at each rank with the block there. Rank `r` has
/// the result of block `r + 1` in the end.
fn reduce_around_ring(schedule: &mut Schedule, group: Group, blocks: &Blocks) {
    let [next, previous] = [group.after(1), group.before(1)];
    for step in 0..group.size - 1 {
        schedule.send(next, blocks.run(group.before(step)));
        schedule.receive_combine(previous, blocks.run(group.before(step + 1)), previous < group.rank);
    }
}
