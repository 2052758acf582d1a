//! How often a polling thread looks at the connections, where a look costs a call of the system, and one at the near queues next
//! to nothing.
//!
//! Who has just got something from a near rank mostly waits for more of it, which comes within some looks: for as long the
//! connections are left alone, and then looked at now and then, until it has waited for so long that it makes no difference.
//! Whatever comes from near, they are looked at sometimes.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Looks in vain at the near queues, behind something that came from there, before the first at the connections.
const QUIET: u32 = 16;
/// Looks in vain until each is one at the connections too, and of those between them one in so many.
const LONG: u32 = 256;
const NOW_AND_THEN: u32 = 8;
/// Looks at the near queues for one at the connections at least.
const TURN: u32 = 64;

/// Whose turn it is. Threads that look at the same time may lose counts, which does no harm.
#[derive(Debug)]
pub(super) struct Turns {
    /// Looks in vain since something came from near, up to [`LONG`].
    vain: AtomicU32,
    /// Looks since the last one at the connections.
    skipped: AtomicU32,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { vain: AtomicU32::new(LONG), skipped: AtomicU32::new(0) }
    }
}

impl Turns {
    /// Whether it is time to look at the connections.
    #[inline]
    pub(super) fn is_far_due(&self) -> bool {
        let vain = self.vain.load(Relaxed);
        if vain >= LONG {
            return true;
        }
        let skipped = self.skipped.load(Relaxed);
        let most = if vain < QUIET { TURN } else { NOW_AND_THEN };
        let is_due = skipped >= most;
        self.vain.store(vain + 1, Relaxed);
        self.skipped.store(if is_due { 0 } else { skipped + 1 }, Relaxed);
        is_due
    }

    /// Something came from near.
    #[inline]
    pub(super) fn note_near(&self) {
        self.vain.store(0, Relaxed);
    }

    /// Something came from far, or may have.
    #[inline]
    pub(super) fn note_far(&self) {
        self.vain.store(LONG, Relaxed);
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
        assert_eq!([looks(&turns), looks(&turns)], [QUIET + 1, NOW_AND_THEN + 1]);
        turns.note_near();
        let due = (0..LONG).filter(|_| turns.is_far_due()).count() as u32;
        assert!((1..=LONG / NOW_AND_THEN).contains(&due), "{due} of {LONG}");
        assert_eq!([looks(&turns), looks(&turns)], [1, 1]);
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
