//! Exchange of one block between each two ranks.

use crate::blocks::{Blocks, own_block};
use crate::choice::{Alltoall, Case, Choices};
use crate::group::Group;
use crate::schedule::{Schedule, TakenPart};
use crate::step::Run;

/// Sends `count` elements to each rank, each of `element_len` octets, and receives as many.
pub fn alltoall(group: Group, count: usize, element_len: usize, choices: &Choices<'_>) -> Schedule {
    let algorithm = choices.alltoall(&Case::new(group, count * element_len));
    let counts = vec![count; group.size as usize];
    match algorithm {
        Alltoall::Direct => direct(group, count),
        Alltoall::Bruck => bruck(group, count),
        Alltoall::Shifted => exchange(group, &counts, &counts, false),
        Alltoall::Pairwise => exchange(group, &counts, &counts, true),
    }
}

/// Sends `sent[k]` elements to each rank `k`, each of `element_len` octets, and receives at most
/// `received[k]` of it.
///
/// The order of the messages depends on what this rank sends. Every order matches every other one, because
/// two ranks exchange one message.
pub fn alltoallv(
    group: Group,
    sent: &[usize],
    received: &[usize],
    element_len: usize,
    choices: &Choices<'_>,
) -> Schedule {
    let [sent, received] = [sent, received].map(|counts| &counts[..group.size as usize]);
    let longest = sent.iter().max().copied().unwrap_or_default();
    let case = Case { is_uniform: false, ..Case::new(group, longest * element_len) };
    exchange(group, sent, received, choices.alltoall(&case) == Alltoall::Pairwise)
}

/// Sends all blocks to all ranks. Each takes its own one out of the blocks of each other rank.
fn direct(group: Group, count: usize) -> Schedule {
    let (rank, size) = (group.rank as usize, group.size as usize);
    let block = |at: usize| Run { start: at * count, len: count };
    // The blocks that this rank sends come first, then those of the others in rank order.
    let place = |source: usize| size + if source < rank { source } else { source - 1 };
    let output = (0..size).map(|source| block(if source == rank { rank } else { place(source) }));
    let mut schedule =
        Schedule::new((2 * size - 1) * count, (0..size).map(block).collect(), output.collect());
    schedule.is_exchange = true;
    schedule.taken = Some(TakenPart { skip: rank * count, of: size * count });
    schedule.send_to_ranks(0..group.size, Run { start: 0, len: size * count });
    group.others().for_each(|source| schedule.store(source, block(place(source as usize))));
    schedule
}

/// One message to and from each other rank, in the order of the distance: all sends and then all receives, or
/// a send and a receive for each distance in turn.
fn exchange(group: Group, sent: &[usize], received: &[usize], is_pairwise: bool) -> Schedule {
    assert!(group.rank < group.size, "{group:?}");
    let own = group.rank as usize;
    let (mut outgoing, mut incoming) = (sent.to_vec(), received.to_vec());
    (outgoing[own], incoming[own]) = (sent[own].max(received[own]), 0);
    let outgoing = Blocks::new(outgoing);
    let incoming = Blocks::new([outgoing.len()].into_iter().chain(incoming));
    let (mut input, mut output) = (outgoing.all(), incoming.all().split_off(1));
    (input[own], output[own]) = own_block(input[own].start, sent[own], received[own]);

    let mut schedule = Schedule::new(incoming.len(), input, output);
    let send = |schedule: &mut Schedule, distance| {
        let dest = group.after(distance);
        schedule.send(dest, schedule.input[dest as usize]);
    };
    if !is_pairwise {
        (1..group.size).for_each(|distance| send(&mut schedule, distance));
    }
    for distance in 1..group.size {
        if is_pairwise {
            send(&mut schedule, distance);
        }
        let source = group.before(distance);
        schedule.store(source, schedule.output[source as usize]);
    }
    schedule
}

/// Moves the block for the rank at distance `d` by each power of two in `d`, with all blocks that move as far
/// in one message. The area has the blocks by distance, and behind them room for one message.
fn bruck(group: Group, count: usize) -> Schedule {
    let Group { rank, size } = group;
    let run = |start: u32, blocks: u32| Run { start: start as usize * count, len: blocks as usize * count };
    let input = (0..size).map(|dest| run((dest + size - rank) % size, 1)).collect();
    let output = (0..size).map(|source| run((rank + size - source) % size, 1)).collect();
    let mut schedule = Schedule::new(run(0, size + size / 2).len, input, output);
    for distance in group.distances() {
        let starts = (distance..size).step_by(2 * distance as usize);
        let moved: Vec<Run> = starts.map(|start| run(start, distance.min(size - start))).collect();
        let mut message = Run { start: run(0, size).len, len: moved.iter().map(|run| run.len).sum() };
        let is_packed = moved.len() > 1;
        if is_packed {
            pack(&moved, message.start, |from, into| schedule.copy(from, into.start));
        } else {
            message = moved[0];
        }
        schedule.send(group.after(distance), message);
        schedule.receive(group.before(distance), message);
        if is_packed {
            pack(&moved, message.start, |into, from| schedule.copy(from, into.start));
        }
    }
    schedule
}

/// Calls `each` with each run and with as many elements behind each other from `start` on.
fn pack(runs: &[Run], start: usize, mut each: impl FnMut(Run, Run)) {
    let mut at = start;
    for run in runs {
        each(*run, Run { start: at, len: run.len });
        at += run.len;
    }
}
