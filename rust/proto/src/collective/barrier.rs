//! Barrier by dissemination.

use std::ops::Range;

use byteorder::{BigEndian, ByteOrder};

use super::machine::{Action, Collective, ProtocolError};
use super::tag;
use crate::context::ContextError;

/// Octets of a rank in a message.
const RANK_LEN: usize = 4;

/// A barrier: no rank leaves before all have entered.
///
/// Dissemination (Hensgen, Finkel, Manber 1988): in round k = 0, 1, ... while 2^k < size, each rank sends an
/// empty message to the rank 2^k above it and waits for the one from the rank 2^k below it, modulo size.
/// After round k a rank knows that 2^(k+1) ranks have entered, itself included. It takes ceil(log2 size)
/// rounds and has no root.
///
/// A rank whose source has finished without entering continues, and names the source in its later messages.
/// The name reaches all ranks, as the entries do.
#[derive(Debug, Clone)]
pub struct Barrier {
    /// The first participating rank, their number, and this rank's index among them.
    first: u32,
    count: u32,
    index: u32,
    /// Ranks of the communicator.
    size: u32,
    round: u32,
    step: Step,
    ended: Option<u32>,
}

/// The state of the machine within its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Send,
    Receive,
    Wait,
    Done,
}

impl Barrier {
    /// Enters the barrier of a communicator of `size` ranks as `rank`.
    ///
    /// # Panics
    /// When `rank` is not below `size`.
    #[must_use]
    pub fn new(rank: u32, size: u32) -> Self {
        Self::among(0..size, rank, size)
    }

    /// Enters a barrier of a part of a communicator of `size` ranks, `members`, as `rank`.
    ///
    /// # Panics
    /// When `rank` is not one of the members, or one of them is not below `size`.
    #[must_use]
    pub fn among(members: Range<u32>, rank: u32, size: u32) -> Self {
        assert!(members.contains(&rank) && members.end <= size, "rank {rank} of {members:?}, {size} in all");
        let count = members.end - members.start;
        let step = if count == 1 { Step::Done } else { Step::Send };
        Self { first: members.start, count, index: rank - members.start, size, round: 0, step, ended: None }
    }

    /// Records a rank of the communicator that has ended. This rank still takes part, so that all ranks
    /// receive its name.
    pub fn note_ended(&mut self, rank: u32) {
        self.ended = self.ended.or(Some(rank));
    }

    /// A rank that has finished without entering. Then the barrier has failed, whatever its result.
    #[must_use]
    pub fn ended(&self) -> Option<u32> {
        self.ended
    }

    fn end_round(&mut self) {
        self.round += 1;
        self.step = if self.distance() < u64::from(self.count) { Step::Send } else { Step::Done };
    }

    /// 2^round, less than the number of members.
    fn distance(&self) -> u64 {
        1 << self.round
    }

    fn dest(&self) -> u32 {
        self.rank_at(u64::from(self.index) + self.distance())
    }

    fn source(&self) -> u32 {
        self.rank_at(u64::from(self.index) + u64::from(self.count) - self.distance())
    }

    /// The payload for the next rank: empty, or the rank that has ended.
    fn payload(&self) -> Vec<u8> {
        self.ended.map_or(Vec::new(), |rank| rank.to_be_bytes().to_vec())
    }

    /// The participant with the index `number`, modulo their number.
    fn rank_at(&self, number: u64) -> u32 {
        self.first + (number % u64::from(self.count)) as u32
    }

    fn tag(&self) -> i32 {
        tag::BARRIER + self.round.cast_signed()
    }
}

impl Collective for Barrier {
    type Outcome = ();

    fn poll_action(&mut self) -> Option<Action> {
        match self.step {
            Step::Send => {
                self.step = Step::Receive;
                Some(Action::Send { dest: self.dest(), tag: self.tag(), octets: self.payload() })
            }
            Step::Receive => {
                self.step = Step::Wait;
                Some(Action::Receive { source: self.source(), tag: self.tag() })
            }
            Step::Wait | Step::Done => None,
        }
    }

    fn handle_received(&mut self, source: u32, tag: i32, octets: &[u8]) -> Result<(), ProtocolError> {
        if self.step != Step::Wait || source != self.source() || tag != self.tag() {
            return Err(ProtocolError::NotAskedFor { source_rank: source, tag });
        }
        match octets.len() {
            0 => {}
            RANK_LEN => match BigEndian::read_u32(octets) {
                rank if rank < self.size => self.note_ended(rank),
                rank => {
                    let value = u64::from(rank);
                    return Err(ProtocolError::Field { source_rank: source, tag, field: "rank", value });
                }
            },
            actual => {
                return Err(ProtocolError::Length { source_rank: source, tag, actual, expected: 0 });
            }
        }
        self.end_round();
        Ok(())
    }

    fn handle_ended(&mut self, source: u32, tag: i32) -> bool {
        let awaited = self.step == Step::Wait && source == self.source() && tag == self.tag();
        if awaited {
            self.note_ended(source);
            self.end_round();
        }
        awaited
    }

    /// A barrier requests no contexts.
    fn handle_contexts(&mut self, _contexts: Result<Vec<u64>, ContextError>) {}

    fn result(&self) -> Option<()> {
        (self.step == Step::Done).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that rank 1 of 6 uses the distances 1, 2, 4, and receives round by round.
    #[test]
    fn barrier_sends_to_doubling_distances() {
        let mut barrier = Barrier::new(1, 6);
        for (tag, dest, source) in [(0, 2, 0), (1, 3, 5), (2, 5, 3)] {
            assert_eq!(barrier.result(), None);
            assert_eq!(barrier.poll_action(), Some(Action::Send { dest, tag, octets: vec![] }));
            assert_eq!(barrier.poll_action(), Some(Action::Receive { source, tag }));
            assert_eq!(barrier.poll_action(), None);
            assert_eq!(barrier.handle_received(source, tag, &[]), Ok(()));
        }
        assert_eq!(barrier.poll_action(), None);
        assert_eq!(barrier.result(), Some(()));
    }

    /// Proves that index 1 of the ranks 4 to 6 of 9 sends to these only, and accepts any of the 9 as ended.
    #[test]
    fn barrier_of_some_ranks_sends_to_no_other() {
        let mut barrier = Barrier::among(4..7, 5, 9);
        barrier.note_ended(8);
        for (tag, dest, source) in [(0, 6, 4), (1, 4, 6)] {
            assert_eq!(barrier.poll_action(), Some(Action::Send { dest, tag, octets: vec![0, 0, 0, 8] }));
            assert_eq!(barrier.poll_action(), Some(Action::Receive { source, tag }));
            let refused = barrier.handle_received(source, tag, &9u32.to_be_bytes());
            assert!(matches!(refused, Err(ProtocolError::Field { value: 9, .. })), "{refused:?}");
            assert_eq!(barrier.handle_received(source, tag, &2u32.to_be_bytes()), Ok(()));
        }
        assert_eq!((barrier.result(), barrier.ended()), (Some(()), Some(8)), "the first one that is named");
    }

    /// Proves that a barrier of one rank completes at once.
    #[test]
    fn barrier_of_one_rank_is_done_at_once() {
        let mut barrier = Barrier::new(0, 1);
        assert_eq!(barrier.poll_action(), None);
        assert_eq!(barrier.result(), Some(()));
    }

    /// Proves that the largest size takes 32 rounds without overflow.
    #[test]
    fn barrier_of_the_largest_size_takes_32_rounds() {
        let mut barrier = Barrier::new(u32::MAX - 1, u32::MAX);
        for _ in 0..32 {
            assert!(matches!(barrier.poll_action(), Some(Action::Send { .. })));
            let Some(Action::Receive { source, tag }) = barrier.poll_action() else {
                panic!("a receive was due");
            };
            assert_eq!(barrier.handle_received(source, tag, &[]), Ok(()));
        }
        assert_eq!(barrier.result(), Some(()));
    }

    /// Proves that a wrong sender, a wrong round, unexpected octets and a message after the end are errors
    /// without effect.
    #[test]
    fn barrier_refuses_an_unexpected_message() {
        let mut barrier = Barrier::new(0, 2);
        let not_asked_for = |source_rank, tag| Err(ProtocolError::NotAskedFor { source_rank, tag });
        assert_eq!(barrier.handle_received(1, 0, &[]), not_asked_for(1, 0));
        while barrier.poll_action().is_some() {}
        assert_eq!(barrier.handle_received(0, 0, &[]), not_asked_for(0, 0));
        assert_eq!(barrier.handle_received(1, 1, &[]), not_asked_for(1, 1));
        assert_eq!(
            barrier.handle_received(1, 0, &[7; 3]),
            Err(ProtocolError::Length { source_rank: 1, tag: 0, actual: 3, expected: 0 })
        );
        assert_eq!(barrier.result(), None);
        assert_eq!(barrier.handle_received(1, 0, &[]), Ok(()));
        assert_eq!(barrier.handle_received(1, 0, &[]), not_asked_for(1, 0));
    }
}
