//! Context ids, which separate the messages of communicators.
//!
//! ```text
//!  63      62       61            32 31                    1     0
//! +-------+--------+----------------+-----------------------+-----+
//! |shadow |control |   world rank   |    counter            | coll|
//! +-------+--------+----------------+-----------------------+-----+
//!   1 bit   1 bit       30 bits            31 bits           1 bit
//! ```
//!
//! A choice of ours. The communicator's own context is even; its collective context is the next, odd one. The
//! rank that allocates an id writes its own world rank into it, so two ranks allocating at the same time
//! cannot collide. The C MPI has contexts of its own and uses none of this.

use thiserror::Error;

/// The context of the initial communicator.
pub const WORLD: u64 = 0;

/// Set in a context that carries second messages, see [`shadow`].
pub const SHADOW_BIT: u64 = 1 << 63;

/// Set in a context that carries control messages of the library, see [`control`].
pub const CONTROL_BIT: u64 = 1 << 62;

/// The largest world rank that can allocate contexts: it has 30 bits.
pub const WORLD_RANK_MAX: u32 = (1 << 30) - 1;

/// The context of a communicator's collective operations: its own plus one.
#[inline]
#[must_use]
pub const fn collective(context: u64) -> u64 {
    context | COLLECTIVE_BIT
}

/// The context of the second messages of split messages in `context`.
#[inline]
#[must_use]
pub const fn shadow(context: u64) -> u64 {
    context | SHADOW_BIT
}

/// The context of control messages that belongs to `context`.
#[inline]
#[must_use]
pub const fn control(context: u64) -> u64 {
    context | CONTROL_BIT
}

/// The base context of the communicator that a context belongs to.
#[inline]
#[must_use]
pub const fn communicator(context: u64) -> u64 {
    context & !(COLLECTIVE_BIT | SHADOW_BIT | CONTROL_BIT)
}

/// All contexts of a communicator, given its base context.
#[must_use]
pub fn kinds(context: u64) -> [u64; 8] {
    let bit = |kind: usize, place: usize, bit: u64| if kind & 1 << place != 0 { bit } else { 0 };
    std::array::from_fn(|kind| {
        context | bit(kind, 0, COLLECTIVE_BIT) | bit(kind, 1, SHADOW_BIT) | bit(kind, 2, CONTROL_BIT)
    })
}

/// Whether this is a context of second messages, see [`shadow`].
#[inline]
#[must_use]
pub const fn is_shadow(context: u64) -> bool {
    context & SHADOW_BIT != 0
}

/// Whether this is a context of collective operations or control messages, not of a program's messages.
#[inline]
#[must_use]
pub const fn is_internal(context: u64) -> bool {
    context & (COLLECTIVE_BIT | CONTROL_BIT) != 0
}

/// Whether this can be a communicator's base context: neither collective, shadow nor control.
#[inline]
#[must_use]
pub const fn is_communicator(context: u64) -> bool {
    context & (COLLECTIVE_BIT | SHADOW_BIT | CONTROL_BIT) == 0
}

/// Whether messages in this context belong to the library: collective operations or control messages.
#[inline]
#[must_use]
pub const fn is_collective(context: u64) -> bool {
    context & (COLLECTIVE_BIT | CONTROL_BIT) != 0
}

/// Allocates context ids that are unique in the job.
///
/// Ids are `world rank << 32 | counter`, with an even counter from 2 on that is never reused: a rank can
/// allocate 2^31 - 1 ids. [`WORLD`] is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextAllocator {
    world_rank: u32,
    /// Even; above `u32::MAX` when all are used.
    next_counter: u64,
}

/// Why a context id cannot be allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ContextError {
    /// The world rank does not fit its field.
    #[error("world rank {world_rank} is above {max}, the largest that can allocate contexts", max = WORLD_RANK_MAX)]
    WorldRankTooLarge {
        /// The rank given.
        world_rank: u32,
    },
    /// This rank has fewer ids left than requested.
    #[error("rank {world_rank} has {left} context ids left, {needed} are needed")]
    Exhausted {
        /// The allocating rank.
        world_rank: u32,
        /// Ids requested.
        needed: u64,
        /// Ids left.
        left: u64,
    },
}

impl ContextAllocator {
    /// The allocator of this world rank.
    ///
    /// # Errors
    /// [`ContextError::WorldRankTooLarge`] above [`WORLD_RANK_MAX`].
    pub fn new(world_rank: u32) -> Result<Self, ContextError> {
        if world_rank > WORLD_RANK_MAX {
            return Err(ContextError::WorldRankTooLarge { world_rank });
        }
        Ok(Self { world_rank, next_counter: FIRST_COUNTER })
    }

    /// Allocates one id.
    ///
    /// # Errors
    /// [`ContextError::Exhausted`], permanently.
    pub fn allocate(&mut self) -> Result<u64, ContextError> {
        if self.left() == 0 {
            return Err(self.exhausted(1));
        }
        let context = u64::from(self.world_rank) << 32 | self.next_counter;
        self.next_counter += COUNTER_STEP;
        Ok(context)
    }

    /// Allocates `count` ids, all or none.
    ///
    /// # Errors
    /// [`ContextError::Exhausted`] when fewer are left.
    pub fn allocate_many(&mut self, count: u32) -> Result<Vec<u64>, ContextError> {
        if self.left() < u64::from(count) {
            return Err(self.exhausted(u64::from(count)));
        }
        (0..count).map(|_| self.allocate()).collect()
    }

    fn left(&self) -> u64 {
        (COUNTER_END - self.next_counter) / COUNTER_STEP
    }

    fn exhausted(&self, needed: u64) -> ContextError {
        ContextError::Exhausted { world_rank: self.world_rank, needed, left: self.left() }
    }
}

/// Set in collective contexts.
const COLLECTIVE_BIT: u64 = 1;

/// The first counter: 0 would be [`WORLD`] on rank 0.
const FIRST_COUNTER: u64 = 2;

/// From a communicator's context to the next.
const COUNTER_STEP: u64 = 2;

/// One past the counter's 32 bits.
const COUNTER_END: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the contexts of one communicator differ from each other and from those of any other.
    #[test]
    fn kinds_of_contexts_are_disjoint() {
        let mut allocator = ContextAllocator::new(0).unwrap();
        let mut contexts = vec![WORLD];
        contexts.extend(allocator.allocate_many(3).unwrap());
        contexts.push(ContextAllocator::new(WORLD_RANK_MAX).unwrap().allocate().unwrap());
        let mut all = Vec::new();
        for context in &contexts {
            assert!(is_communicator(*context));
            for kind in [*context, collective(*context)] {
                all.extend([kind, shadow(kind), control(kind)]);
            }
        }
        let made = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), made);
        assert_eq!(all.iter().filter(|c| is_communicator(**c)).count(), 5);
    }

    #[test]
    fn communicator_has_eight_kinds_of_contexts() {
        let context = 7 << 32 | 2;
        let all = kinds(context);
        assert!(all.iter().all(|kind| communicator(*kind) == context));
        let others = [context, collective(context), shadow(collective(context)), control(shadow(context))];
        assert!(others.iter().all(|kind| all.contains(kind)));
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 8);
    }

    /// Proves that an id is world rank << 32 | even counter, and that the collective context is the next
    /// number.
    #[test]
    fn context_id_has_the_rank_and_an_even_counter() {
        let mut allocator = ContextAllocator::new(7).unwrap();
        assert_eq!(allocator.allocate(), Ok(7 << 32 | 2));
        assert_eq!(allocator.allocate_many(2), Ok(vec![7 << 32 | 4, 7 << 32 | 6]));
        assert_eq!(collective(7 << 32 | 2), (7 << 32 | 2) + 1);
        assert_eq!(collective(WORLD), 1);
    }

    /// Proves that the last id is allocated, that the next is an error with numbers, and that a block is all
    /// or nothing.
    #[test]
    fn exhausted_contexts_are_an_error_and_do_not_wrap() {
        let mut allocator = ContextAllocator { world_rank: 3, next_counter: COUNTER_END - 4 };
        let exhausted = |needed, left| ContextError::Exhausted { world_rank: 3, needed, left };
        assert_eq!(allocator.allocate_many(3), Err(exhausted(3, 2)));
        assert_eq!(allocator.allocate(), Ok(3 << 32 | 0xffff_fffc));
        assert_eq!(allocator.allocate(), Ok(3 << 32 | 0xffff_fffe));
        assert_eq!(allocator.allocate(), Err(exhausted(1, 0)));
        assert_eq!(allocator.allocate(), Err(exhausted(1, 0)));
        assert_eq!(allocator.allocate_many(0), Ok(Vec::new()));
    }

    /// Proves that a rank of more than 30 bits is refused.
    #[test]
    fn rank_within_the_reserved_bits_is_refused() {
        assert!(ContextAllocator::new(WORLD_RANK_MAX).is_ok());
        assert_eq!(
            ContextAllocator::new(1 << 30),
            Err(ContextError::WorldRankTooLarge { world_rank: 1 << 30 })
        );
    }
}
