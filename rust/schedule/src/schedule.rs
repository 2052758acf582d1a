//! The schedule of one rank in one collective operation.

use std::ops::Range;

use crate::step::{Run, Step};

/// Steps on an area, strictly in order, between its input and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The steps.
    pub steps: Vec<Step>,
    /// Elements of the area. Those outside the input have no value before a step writes them.
    pub len: usize,
    /// Elements of each block that the rank contributes, packed before the first step.
    pub input: Vec<Run>,
    /// Elements of each block that the rank gets, unpacked after the last step.
    pub output: Vec<Run>,
    /// Whether each rank sends one vector to all others, and waits for that of each other one.
    pub is_exchange: bool,
    /// The part that a receive takes of each message; `None` if it takes all elements.
    pub taken: Option<TakenPart>,
}

/// Elements of a message that its receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenPart {
    /// Elements before the taken ones. A step takes as many as it has room for.
    pub skip: usize,
    /// Elements of the message.
    pub of: usize,
}

impl Schedule {
    /// A schedule without steps.
    pub(crate) fn new(len: usize, input: Vec<Run>, output: Vec<Run>) -> Schedule {
        Schedule { steps: Vec::new(), len, input, output, is_exchange: false, taken: None }
    }

    /// Whether the rank waits for a message.
    pub fn receives(&self) -> bool {
        self.steps.iter().any(Step::is_receive)
    }

    /// Elements of the longest vector that the rank sends to all others.
    #[must_use]
    pub fn published_len(&self) -> usize {
        let sent = self.steps.iter().map(|step| match step {
            Step::SendToRanks { from, .. } => from.len,
            _ => 0,
        });
        sent.max().unwrap_or(0)
    }

    /// Whether a step writes one of these elements.
    #[must_use]
    pub fn writes(&self, run: Run) -> bool {
        self.steps.iter().any(|step| step.writes(run))
    }

    pub(crate) fn send(&mut self, dest: u32, from: Run) {
        self.steps.push(Step::Send { dest, from });
    }

    pub(crate) fn send_to_ranks(&mut self, ranks: Range<u32>, from: Run) {
        self.steps.push(Step::SendToRanks { first: ranks.start, end: ranks.end, from });
    }

    pub(crate) fn receive(&mut self, source: u32, into: Run) {
        self.steps.push(Step::Receive { source, into });
    }

    pub(crate) fn store(&mut self, source: u32, into: Run) {
        self.steps.push(Step::Store { source, into });
    }

    /// Receives the left operand if `is_lower`, otherwise the right one.
    pub(crate) fn receive_combine(&mut self, source: u32, into: Run, is_lower: bool) {
        self.steps.push(Step::ReceiveCombine { source, into, is_lower });
    }

    /// Combines the elements of `into` with those of `from`, the right operand.
    pub(crate) fn combine(&mut self, from: Run, into: Run) {
        self.steps.push(Step::Combine { from, into });
    }

    /// Renames the other rank in each step from one on.
    ///
    /// # Panics
    /// A step is for a range of ranks.
    pub(crate) fn rename(&mut self, first: usize, name: impl Fn(u32) -> u32) {
        for step in &mut self.steps[first..] {
            match step {
                Step::Send { dest: rank, .. }
                | Step::Receive { source: rank, .. }
                | Step::Store { source: rank, .. }
                | Step::ReceiveCombine { source: rank, .. } => *rank = name(*rank),
                Step::SendToRanks { .. } => panic!("{step:?} is renamed"),
                Step::Combine { .. } | Step::Copy { .. } => {}
            }
        }
    }

    pub(crate) fn copy(&mut self, from: Run, into: usize) {
        self.steps.push(Step::Copy { from, into });
    }
}
