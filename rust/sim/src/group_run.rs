//! Ranks of a group that carry out their schedules over queues.

use std::collections::VecDeque;

use mpjdev_schedule::{Run, Schedule, Step, TakenPart};

use crate::Random;

/// An element that no step has written. No input may have it.
pub const UNSET: u64 = u64::MAX;

/// Blocks of elements of one rank.
pub type RankBlocks = Vec<Vec<u64>>;

/// Combines the first operand with the second one, which becomes the result; the first is the left one if the
/// flag is set.
pub type Combine<'a> = &'a dyn Fn(&[u64], &mut [u64], bool);

/// Runs the schedules of all ranks, in an order that depends on `random`. Returns the output of each rank.
///
/// Each message must have the length that its receiver expects.
///
/// # Panics
/// The schedules are wrong: they deadlock, leave a message behind, do not agree on a length, read an element
/// that was not written, or leave their area.
pub fn run_schedules(
    schedules: &[Schedule],
    inputs: &[RankBlocks],
    combine: Combine,
    random: &mut Random,
) -> Vec<RankBlocks> {
    let size = schedules.len();
    let ranks = schedules.iter().zip(inputs).map(|(schedule, input)| RankState::new(schedule, input));
    let mut run = GroupRun { ranks: ranks.collect(), queues: vec![VecDeque::new(); size * size] };
    let mut open: Vec<usize> = (0..size).filter(|rank| !run.ranks[*rank].is_complete()).collect();
    while !open.is_empty() {
        let first = random.up_to(open.len() as u64 - 1) as usize;
        let moved = (0..open.len()).map(|k| (first + k) % open.len()).find(|at| run.step(open[*at], combine));
        let at = moved.unwrap_or_else(|| panic!("deadlock of ranks {open:?}"));
        let burst = random.up_to(3);
        (0..burst).take_while(|_| run.step(open[at], combine)).for_each(drop);
        if run.ranks[open[at]].is_complete() {
            open.swap_remove(at);
        }
    }
    for (at, queue) in run.queues.iter().enumerate() {
        assert!(queue.is_empty(), "rank {} leaves a message of rank {}", at % size, at / size);
    }
    run.ranks.iter().map(RankState::output).collect()
}

struct GroupRun<'a> {
    ranks: Vec<RankState<'a>>,
    /// Messages from each rank to each rank.
    queues: Vec<VecDeque<Vec<u64>>>,
}

struct RankState<'a> {
    schedule: &'a Schedule,
    /// Steps that are complete.
    steps: usize,
    area: Vec<u64>,
    /// Elements that were stored as output only.
    stored: Vec<u64>,
}

impl<'a> RankState<'a> {
    fn new(schedule: &'a Schedule, input: &RankBlocks) -> RankState<'a> {
        let mut area = vec![UNSET; schedule.len];
        assert_eq!(schedule.input.len(), input.len(), "blocks of the input");
        for (run, block) in schedule.input.iter().zip(input) {
            area[run.start..run.start + run.len].copy_from_slice(block);
        }
        RankState { schedule, steps: 0, area, stored: vec![UNSET; schedule.len] }
    }

    fn is_complete(&self) -> bool {
        self.steps == self.schedule.steps.len()
    }

    fn elements(&self, run: Run) -> &[u64] {
        let elements = &self.area[run.start..run.start + run.len];
        assert!(!elements.contains(&UNSET), "{run:?} is read before it is written");
        elements
    }

    /// No step changes elements that were stored as output only.
    fn check_unstored(&self, run: Run) {
        let stored = &self.stored[run.start..run.start + run.len];
        assert!(stored.iter().all(|element| *element == UNSET), "{run:?} is output already");
    }

    fn output(&self) -> RankBlocks {
        let element = |at: usize| match self.stored[at] {
            UNSET => self.elements(Run { start: at, len: 1 })[0],
            stored => stored,
        };
        let outputs = self.schedule.output.iter();
        outputs.map(|run| (run.start..run.start + run.len).map(element).collect()).collect()
    }
}

impl GroupRun<'_> {
    /// Carries out the next step of a rank. `false`: it waits for a message, or has completed all steps.
    fn step(&mut self, rank: usize, combine: Combine) -> bool {
        let size = self.ranks.len();
        let state = &mut self.ranks[rank];
        let Some(step) = state.schedule.steps.get(state.steps) else { return false };
        match *step {
            Step::Send { dest, from } => {
                assert_ne!(dest as usize, rank, "a message to the own rank");
                let message = state.elements(from).to_vec();
                self.queues[rank * size + dest as usize].push_back(message);
            }
            Step::SendToRanks { first, end, from } => {
                let message = state.elements(from).to_vec();
                (first as usize..end as usize).filter(|dest| *dest != rank).for_each(|dest| {
                    self.queues[rank * size + dest].push_back(message.clone());
                });
            }
            Step::Receive { source, into }
            | Step::Store { source, into }
            | Step::ReceiveCombine { source, into, .. } => {
                let queue = &mut self.queues[source as usize * size + rank];
                let Some(mut message) = queue.pop_front() else { return false };
                if let Some(TakenPart { skip, of }) = state.schedule.taken {
                    assert_eq!(message.len(), of, "{step:?} of rank {rank}");
                    message = message[skip..][..into.len].to_vec();
                }
                assert_eq!(message.len(), into.len, "{step:?} of rank {rank}");
                state.check_unstored(into);
                if let Step::ReceiveCombine { is_lower, .. } = *step {
                    state.elements(into);
                    combine(&message, &mut state.area[into.start..into.start + into.len], is_lower);
                } else if let Step::Store { .. } = *step {
                    state.stored[into.start..into.start + into.len].copy_from_slice(&message);
                    state.area[into.start..into.start + into.len].fill(UNSET);
                } else {
                    state.area[into.start..into.start + into.len].copy_from_slice(&message);
                }
            }
            Step::Combine { from, into } => {
                state.check_unstored(into);
                let right = state.elements(from).to_vec();
                state.elements(into);
                combine(&right, &mut state.area[into.start..into.start + into.len], false);
            }
            Step::Copy { from, into } => {
                state.check_unstored(Run { start: into, len: from.len });
                let copied = state.elements(from).to_vec();
                state.area[into..into + copied.len()].copy_from_slice(&copied);
            }
        }
        state.steps += 1;
        true
    }
}
