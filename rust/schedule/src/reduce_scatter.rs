//! Reduction of one vector of each rank to one that is scattered.

use std::ops::Range;

use crate::blocks::Blocks;
use crate::choice::{Case, Choices, ReduceScatter};
use crate::direct::combine_blocks;
use crate::fold::Fold;
use crate::group::Group;
use crate::operation::Operation;
use crate::schedule::{Schedule, TakenPart};
use crate::step::Run;
use crate::tree::Node;
use crate::tree_order::combine_all;

/// Combines vectors whose elements, each of `element_len` octets, are `counts[k]` for each rank `k` in turn.
/// Each rank gets its part of the result.
pub fn reduce_scatter(
    group: Group,
    counts: &[usize],
    operation: Operation,
    element_len: usize,
    choices: &Choices<'_>,
) -> Schedule {
    let node = Node::new(group, 0);
    let blocks = Blocks::new(counts[..group.size as usize].iter().copied());
    let vector = Run { start: 0, len: blocks.len() };
    let mut schedule = Schedule::new(blocks.len(), vec![vector], vec![blocks.run(group.rank)]);
    match choices.reduce_scatter(&Case::of_reduction(group, blocks.len(), operation, element_len)) {
        ReduceScatter::WholeVectors => {
            let own = blocks.run(group.rank);
            schedule.is_exchange = true;
            schedule.taken = Some(TakenPart { skip: own.start, of: vector.len });
            schedule.send_to_ranks(0..group.size, vector);
            let result = combine_all(&mut schedule, group, own);
            schedule.output = vec![result];
        }
        ReduceScatter::Direct => {
            let result = combine_blocks(&mut schedule, group, &blocks);
            schedule.output = vec![result];
        }
        ReduceScatter::RecursiveHalving => recursive_halving(&mut schedule, node, &blocks),
        ReduceScatter::Pairwise => pairwise(&mut schedule, group, &blocks),
        ReduceScatter::ReduceScatterv => {
            node.combine_up(&mut schedule, vector);
            scatter(&mut schedule, group, &blocks);
        }
    }
    schedule
}

/// Halves the ranks that a part of the vector is for: each rank keeps the half that its own block is in, and
/// combines it with that of a rank in the same position of the other half.
fn recursive_halving(schedule: &mut Schedule, node: Node, blocks: &Blocks) {
    let fold = Fold::new(node);
    let runs = |numbers: Range<u32>| blocks.runs(fold.in_tree(numbers.start)..fold.in_tree(numbers.end));
    fold.fold(schedule, Run { start: 0, len: blocks.len() });
    if let Some(number) = fold.number() {
        let mut own = 0..fold.size;
        while own.len() > 1 {
            let half = own.len() as u32 / 2;
            let (lower, upper) = (own.start..own.start + half, own.start + half..own.end);
            let (kept, sent) = if lower.contains(&number) { (lower, upper) } else { (upper, lower) };
            let partner = number ^ half;
            schedule.send(fold.rank(partner), runs(sent));
            schedule.receive_combine(fold.rank(partner), runs(kept.clone()), partner < number);
            own = kept;
        }
    }
    fold.unfold(schedule, |folded| blocks.run(folded));
}

/// Sends to each rank its block, in the order of the distance, and combines the own block with those of the
/// others in the opposite order.
fn pairwise(schedule: &mut Schedule, group: Group, blocks: &Blocks) {
    for distance in 1..group.size {
        let [dest, source] = [group.after(distance), group.before(distance)];
        schedule.send(dest, blocks.run(dest));
        schedule.receive_combine(source, blocks.run(group.rank), source < group.rank);
    }
}

/// Sends to each rank its block of the result, which rank 0 has.
fn scatter(schedule: &mut Schedule, group: Group, blocks: &Blocks) {
    if group.rank != 0 {
        return schedule.receive(0, blocks.run(group.rank));
    }
    (1..group.size).for_each(|dest| schedule.send(dest, blocks.run(dest)));
}
