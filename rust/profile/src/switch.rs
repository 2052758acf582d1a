//! The switch of the counts, and the number of single calls that are kept.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

static IS_ON: AtomicBool = AtomicBool::new(false);
/// Single calls that may still be kept.
static EVENTS_LEFT: AtomicU64 = AtomicU64::new(0);
static EVENTS_LOST: AtomicU64 = AtomicU64::new(0);

/// Whether calls are counted.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Lets calls be counted, and this number of single ones be kept.
pub(crate) fn turn_on(events: u64) {
    EVENTS_LEFT.store(events, Relaxed);
    IS_ON.store(true, Relaxed);
}

/// Pauses the counts, or resumes them.
pub(crate) fn pause(is_paused: bool) {
    IS_ON.store(!is_paused, Relaxed);
}

/// Whether there is room for another single call.
pub(crate) fn take_event() -> bool {
    let taken = EVENTS_LEFT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
    if taken.is_err() {
        EVENTS_LOST.fetch_add(1, Relaxed);
    }
    taken.is_ok()
}

/// Single calls without room.
pub(crate) fn events_lost() -> u64 {
    EVENTS_LOST.load(Relaxed)
}
