//! Exchanges in which each rank sends to each other one, and waits for no rank in between.
//!
//! Between ranks of one machine a message takes less time than the wait for a rank that has to run first, and
//! the receiver reads the memory of the sender.

use crate::blocks::Blocks;
use crate::group::Group;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree_order::combine_all;

/// Sends the own elements to all ranks, and stores those of each other rank in its block.
pub(crate) fn gather_at_all(schedule: &mut Schedule, group: Group, own: Run, blocks: &Blocks) {
    schedule.send_to_ranks(0..group.size, own);
    group.others().for_each(|source| schedule.store(source, blocks.run(source)));
}

/// Sends each block to its rank, and combines those of all for this rank. Returns the place of the result.
pub(crate) fn combine_blocks(schedule: &mut Schedule, group: Group, blocks: &Blocks) -> Run {
    group.others().for_each(|dest| schedule.send(dest, blocks.run(dest)));
    combine_all(schedule, group, blocks.run(group.rank))
}

/// Copies a result to its place, unless it is there.
pub(crate) fn put(schedule: &mut Schedule, result: Run, place: Run) {
    if result != place {
        schedule.copy(result, place.start);
    }
}
