//! Steps of a schedule, and the elements that they concern.

/// Consecutive elements of the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the first element.
    pub start: usize,
    /// Number of elements.
    pub len: usize,
}

impl Run {
    /// Whether the runs have an element in common.
    #[must_use]
    pub fn overlaps(self, other: Run) -> bool {
        self.start.max(other.start) < (self.start + self.len).min(other.start + other.len)
    }
}

/// A step of one rank.
///
/// An empty run is a message, too: the other rank waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Starts to send elements as they are now, and does not wait.
    Send {
        /// Another rank.
        dest: u32,
        /// The elements.
        from: Run,
    },
    /// Starts to send the same elements as they are now to each other rank of a range, and does not wait.
    SendToRanks {
        /// The first rank of the range.
        first: u32,
        /// The rank behind the last one.
        end: u32,
        /// The elements.
        from: Run,
    },
    /// Waits for the next message of a rank and stores it.
    Receive {
        /// Another rank.
        source: u32,
        /// Room for the message. Only the v-calls accept a shorter one, which goes to the beginning.
        into: Run,
    },
    /// As `Receive`, of elements that are only output: no later step reads or writes them.
    Store {
        /// Another rank.
        source: u32,
        /// Room for the message.
        into: Run,
    },
    /// Waits for the next message of a rank and combines it with as many elements.
    ReceiveCombine {
        /// Another rank.
        source: u32,
        /// The other operand, and the result.
        into: Run,
        /// Whether the message is the left operand.
        is_lower: bool,
    },
    /// Combines elements with as many others, which do not overlap them.
    Combine {
        /// The right operand.
        from: Run,
        /// The left operand, and the result.
        into: Run,
    },
    /// Copies elements to others, which do not overlap them.
    Copy {
        /// The elements.
        from: Run,
        /// Index of the first copy.
        into: usize,
    },
}

impl Step {
    /// Whether the step waits for a message.
    #[must_use]
    pub fn is_receive(&self) -> bool {
        matches!(self, Step::Receive { .. } | Step::Store { .. } | Step::ReceiveCombine { .. })
    }

    /// The elements that the step writes.
    fn written(&self) -> Option<Run> {
        match *self {
            Step::Send { .. } | Step::SendToRanks { .. } => None,
            Step::Receive { into, .. }
            | Step::Store { into, .. }
            | Step::ReceiveCombine { into, .. }
            | Step::Combine { into, .. } => Some(into),
            Step::Copy { from, into } => Some(Run { start: into, len: from.len }),
        }
    }

    /// Whether the step writes one of these elements.
    pub(crate) fn writes(&self, run: Run) -> bool {
        self.written().is_some_and(|written| written.overlaps(run))
    }
}
