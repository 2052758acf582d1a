//! How often a polling thread looks at the connections, where a look costs a call of the system, and one at the near queues next
//! to nothing.
//!
//! Who has just got something from a near rank mostly waits for more of it, which comes within some looks: for as long the
//! connections are left alone. Whatever comes from near, they are looked at now and then.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Looks in vain at the near queues, behind something that came from there, before each look is one at the connections too.
const QUIET: u32 = 16;
/// Looks at the near queues for one at the connections at least.
const TURN: u32 = 64;

/// Whose turn it is. Threads that look at the same time may lose counts, which does no harm.
#[derive(Debug)]
pub(super) struct Turns {
    /// Looks in vain since something came from near, up to [`QUIET`].
    vain: AtomicU32,
    /// Looks since the last one at the connections.
    skipped: AtomicU32,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { vain: AtomicU32::new(QUIET), skipped: AtomicU32::new(0) }
    }
}

impl Turns {
    /// Whether it is time to look at the connections.
    #[inline]
    pub(super) fn is_far_due(&self) -> bool {
        let (vain, skipped) = (self.vain.load(Relaxed), self.skipped.load(Relaxed));
        if vain >= QUIET || skipped >= TURN {
            self.skipped.store(0, Relaxed);
            return true;
        }
        self.vain.store(vain + 1, Relaxed);
        self.skipped.store(skipped + 1, Relaxed);
        false
    }

    /// Something came from near.
    #[inline]
    pub(super) fn note_near(&self) {
        self.vain.store(0, Relaxed);
    }

    /// Something came from far, or may have.
    #[inline]
    pub(super) fn note_far(&self) {
        self.vain.store(QUIET, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until the connections are looked at, this one included.
    fn looks(turns: &Turns) -> u32 {
        let looks = (1..1000).find(|_| turns.is_far_due());
        looks.expect("they are looked at")
    }

    #[test]
    fn the_connections_are_looked_at_each_time_unless_something_has_come_from_near() {
        let turns = Turns::default();
        assert_eq!([looks(&turns), looks(&turns)], [1, 1]);
        turns.note_near();
        assert_eq!([looks(&turns), looks(&turns)], [QUIET + 1, 1]);
        turns.note_near();
        turns.note_far();
        assert_eq!(looks(&turns), 1);
    }

    #[test]
    fn the_connections_are_looked_at_however_much_comes_from_near() {
        let turns = Turns::default();
        let mut looks = 0;
        for _ in 0..100 * TURN {
            turns.note_near();
            looks += u32::from(turns.is_far_due());
        }
        assert_eq!(looks, 100 * TURN / (TURN + 1));
    }
}
