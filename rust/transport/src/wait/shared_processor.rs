//! Moves of a thread that takes turns with its peer on one processor.
//!
//! A thread that yields to its peer or is woken by it stays on the peer's processor while other threads keep
//! the other processors busy: both processors have the same load, and the system does not migrate a thread
//! that has just run. Each message then takes a switch of threads. A thread that moves away runs at the same
//! time as its peer.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counter of the waits whose message arrived while the peer ran on this rank's processor.
///
/// Times are in microseconds since any moment.
#[derive(Debug, Default)]
pub struct SharedProcessor {
    /// Such waits without another one between.
    turns: AtomicU32,
    /// The time of the last move.
    moved: AtomicU64,
    /// The time from the last move to the next one at least.
    rests: AtomicU64,
}

impl SharedProcessor {
    /// Turns before a move. A single one may be chance, and a move takes as long as some tens of switches.
    const TURNS: u32 = 8;
    const SHORTEST_REST: u64 = 1000;
    /// The rest when each move is undone soon: moves then take less than a thousandth of the time.
    const LONGEST_REST: u64 = 64_000;

    /// Records a wait that has yielded or slept. Returns whether the thread should leave its processor.
    pub fn note_wait(&self, is_shared: bool, now: impl FnOnce() -> u64) -> bool {
        if !is_shared {
            self.turns.store(0, Ordering::Relaxed);
            return false;
        }
        let turns = self.turns.load(Ordering::Relaxed) + 1;
        if turns < Self::TURNS {
            self.turns.store(turns, Ordering::Relaxed);
            return false;
        }
        let now = now();
        let (rests, since) =
            (self.rests.load(Ordering::Relaxed), now.saturating_sub(self.moved.load(Ordering::Relaxed)));
        if since < rests {
            return false;
        }
        // Soon after the last move, both share a processor again.
        let is_soon = rests > 0 && since < 2 * rests;
        let rests = if is_soon { (2 * rests).min(Self::LONGEST_REST) } else { Self::SHORTEST_REST };
        self.turns.store(0, Ordering::Relaxed);
        self.moved.store(now, Ordering::Relaxed);
        self.rests.store(rests, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(shared: &SharedProcessor, waits: u32, now: u64) -> u32 {
        (0..waits).filter(|_| shared.note_wait(true, || now)).count() as u32
    }

    #[test]
    fn thread_moves_after_some_turns_on_its_processor() {
        let shared = SharedProcessor::default();
        assert_eq!(notes(&shared, SharedProcessor::TURNS - 1, 5), 0);
        assert!(shared.note_wait(true, || 5));
        assert_eq!(notes(&shared, SharedProcessor::TURNS - 1, 5000), 0, "the count begins anew");
    }

    #[test]
    fn wait_for_a_peer_on_another_processor_begins_the_count_anew() {
        let shared = SharedProcessor::default();
        for _ in 0..100 {
            assert_eq!(notes(&shared, SharedProcessor::TURNS - 1, 5), 0);
            assert!(!shared.note_wait(false, || unreachable!("no time is needed")));
        }
    }

    #[test]
    fn moves_become_rare_where_none_lasts() {
        let shared = SharedProcessor::default();
        let mut moves = Vec::new();
        for now in (0..1_000_000).step_by(10) {
            if shared.note_wait(true, || now) {
                moves.push(now);
            }
        }
        let rests: Vec<u64> = moves.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
        assert_eq!(rests[..7], [1, 2, 4, 8, 16, 32, 64]);
        assert!(rests[7..].iter().all(|rest| *rest == 64), "{rests:?}");
        assert!(notes(&shared, SharedProcessor::TURNS, 10_000_000) == 1);
        assert!(notes(&shared, SharedProcessor::TURNS, 10_001_000) == 1, "a move long ago does not count");
    }
}
