//! Poll frequency of the network in a thread that spins on shared memory.
//!
//! A poll of the connections is a system call; a poll of the intra-node queues is a few loads. A packet from
//! an intra-node rank is usually followed by another one after a few polls, so the network is polled rarely
//! just after one. It is always polled from time to time.
//!
//! | empty intra-node polls since the last intra-node packet | the network is polled |
//! |---|---|
//! | fewer than [`QUIET`] | every 65th time |
//! | fewer than [`LONG`] | every 9th time |
//! | more, or after a network packet | every time |

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Empty intra-node polls after an intra-node packet in which the network is polled only once per [`TURN`].
const QUIET: u32 = 16;
/// Empty intra-node polls after which each poll includes the network. Until then one in [`NOW_AND_THEN`]
/// does.
const LONG: u32 = 256;
const NOW_AND_THEN: u32 = 8;
/// Intra-node polls between two polls of the network, just after an intra-node packet.
const TURN: u32 = 64;

/// Poll counters. Threads that poll at the same time may lose counts, which is harmless.
#[derive(Debug)]
pub(super) struct Turns {
    /// Empty polls since the last intra-node packet, up to [`LONG`].
    vain: AtomicU32,
    /// Polls since the last one of the network.
    skipped: AtomicU32,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { vain: AtomicU32::new(LONG), skipped: AtomicU32::new(0) }
    }
}

impl Turns {
    /// Whether a poll of the network is due.
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

    /// Records an intra-node packet.
    #[inline]
    pub(super) fn note_near(&self) {
        self.vain.store(0, Relaxed);
    }

    /// Records a packet from the network, or the chance of one.
    #[inline]
    pub(super) fn note_far(&self) {
        self.vain.store(LONG, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of polls until the network is polled, this one included.
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
