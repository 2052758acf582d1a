//! Passage of blocks around a ring of all ranks.

use crate::blocks::Blocks;
use crate::schedule::Schedule;
use crate::tree::Node;

/// Gives every rank all blocks. The rank with number `n` begins with block `n + shift`; in each step it
/// passes the block that it received last to the next rank. A block that a rank `has` already, by the number
/// of the rank and of the block, is not sent to it.
pub(crate) fn ring(
    schedule: &mut Schedule,
    node: &Node,
    blocks: &Blocks,
    shift: u32,
    has: impl Fn(u32, u32) -> bool,
) {
    let (own, size) = (node.number, node.size);
    let [next, previous] = [(own + 1) % size, (own + size - 1) % size];
    for step in 0..size - 1 {
        let [sent, received] = [own, previous].map(|number| (number + shift + size - step) % size);
        if !has(next, sent) {
            schedule.send(node.rank(next), blocks.run(sent));
        }
        if !has(own, received) {
            let (previous, received) = (node.rank(previous), blocks.run(received));
            match step + 2 == size {
                true => schedule.store(previous, received),
                false => schedule.receive(previous, received),
            }
        }
    }
}
