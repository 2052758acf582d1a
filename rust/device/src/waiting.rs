//! How a thread waits: it polls with pauses, then yields, then sleeps, and any waiting thread drives the rank's progress.
//!
//! At most one thread of a rank sleeps on the transport itself; the others sleep each on a [`Waiter`] of their own, which is
//! rung when a request of theirs is done or when they have to take over.

use std::cell::RefCell;
use std::sync::Arc;
// What no thread waits for stays `std`'s, which spares the model checker its interleavings.
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mpjdev_sys::bell::Bell;
use mpjdev_sys::sync::{AtomicBool, thread_local};

use crate::config::Config;

/// A sleeping thread that somebody may wake.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    signalled: AtomicBool,
    bell: Bell,
}

impl Waiter {
    /// Wakes the thread, now or when it goes to sleep.
    pub(crate) fn signal(&self) {
        self.signalled.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    pub(crate) fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::SeqCst)
    }

    pub(crate) fn reset(&self) {
        self.signalled.store(false, Ordering::SeqCst);
    }

    /// Sleeps until signalled or the time is over.
    pub(crate) fn sleep(&self, most: Duration) {
        self.bell.sleep(most, || self.is_signalled());
    }

    /// The calling thread's own.
    pub(crate) fn mine() -> Arc<Waiter> {
        thread_local! {
            static MINE: RefCell<Arc<Waiter>> = RefCell::default();
        }
        MINE.with(|mine| mine.borrow().clone())
    }
}

/// A yield that takes longer has given the processor to a thread that used up its turn there.
const TURN: Duration = Duration::from_micros(200);

/// Whether others want the processors so much that waits had better not yield: a thread that does gets its next turn when all
/// others had theirs, milliseconds later, where a sleeper is woken within microseconds. It holds for some waits after a yield
/// that was so long, for more of them each time that happens again soon, and for fewer when it does not.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// Waits for which it still holds.
    left: AtomicU32,
    /// Waits for which it holds next time.
    next: AtomicU32,
}

impl Crowd {
    const FEWEST: u32 = 8;
    const MOST: u32 = 1024;

    pub(crate) fn is_here(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    /// A wait begins. Threads of a rank may count one twice or not at all, which does no harm.
    pub(crate) fn begin_wait(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// A yield has cost somebody else's whole turn.
    fn note_turn(&self) {
        let waits = self.next.load(Ordering::Relaxed).max(Self::FEWEST);
        self.left.store(waits, Ordering::Relaxed);
        self.next.store((waits * 4).min(Self::MOST), Ordering::Relaxed);
    }

    /// The yields of a wait were all short.
    fn note_short_yields(&self) {
        let next = self.next.load(Ordering::Relaxed);
        if next > 0 {
            self.next.store(next / 2, Ordering::Relaxed);
        }
    }
}

/// What to do before looking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Pause,
    Yield,
    Sleep,
}

/// Counts the steps of one wait.
#[derive(Debug)]
pub(crate) struct Backoff {
    pauses: u32,
    yields: u32,
    yield_max: Duration,
    /// It has yielded, and one of the yields was long.
    has_yielded: bool,
    had_turn: bool,
}

impl Backoff {
    pub(crate) fn new(config: &Config) -> Self {
        Backoff {
            pauses: config.spins,
            yields: config.yields,
            yield_max: config.yield_max,
            has_yielded: false,
            had_turn: false,
        }
    }

    /// For a wait that has polled in vain already.
    pub(crate) fn after_pauses(config: &Config) -> Self {
        Backoff { pauses: 0, ..Backoff::new(config) }
    }

    /// Lets other threads run. When one did, the processors are wanted: then waiting goes to sleep, from which a thread
    /// is woken at once, while one that yields gets its turn when all others had theirs.
    pub(crate) fn yield_now(&mut self, crowd: &Crowd) {
        let begun = Instant::now();
        std::thread::yield_now();
        let took = begun.elapsed();
        if took > self.yield_max {
            self.yields = 0;
        }
        self.has_yielded = true;
        if took > TURN {
            self.had_turn = true;
            crowd.note_turn();
        }
    }

    /// The wait is over.
    #[inline]
    pub(crate) fn end(&self, crowd: &Crowd) {
        if self.has_yielded && !self.had_turn {
            crowd.note_short_yields();
        }
    }

    /// Goes to sleep after a few pauses: the processors are wanted by others.
    pub(crate) fn hurry(&mut self) {
        self.pauses = self.pauses.min(60);
        self.yields = 0;
    }

    #[inline(always)]
    pub(crate) fn step(&mut self) -> Step {
        if self.pauses > 0 {
            self.pauses -= 1;
            Step::Pause
        } else if self.yields > 0 {
            self.yields -= 1;
            Step::Yield
        } else {
            Step::Sleep
        }
    }
}

/// Asked before each sleep whether to go on waiting; false gives up.
pub trait Patience {
    /// Whether to go on waiting.
    fn goes_on(&mut self) -> bool;
}

/// Waits until the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patient;

impl Patience for Patient {
    fn goes_on(&mut self) -> bool {
        true
    }
}

impl<F: FnMut() -> bool> Patience for F {
    fn goes_on(&mut self) -> bool {
        self()
    }
}

/// The end of a wait that may take so long from now on; none when that is further than clocks count.
pub fn deadline_after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}
