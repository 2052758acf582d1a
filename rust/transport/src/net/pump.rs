//! A thread that goes on for a rank whose program computes: it answers, acknowledges and writes what waits.
//!
//! While the program calls in it only looks now and then whether that is still so. When it is not, the thread sleeps until a
//! channel has something, like a waiting thread would. A send or a receive that leaves something to be done calls it, and
//! until that is done it looks every millisecond.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use mpjdev_sys::bell::Bell;
use mpjdev_sys::call::Call;

use super::poller::Poller;
use super::sentry::Sentry;
use crate::{Progress, goes_on};

/// How long the program may not have called in before the thread goes on for it: at first, and while something is left to be done.
const TICK_MIN: Duration = Duration::from_millis(1);

/// How long the thread sleeps at most when nobody calls it.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// While the program calls in all the time. An ack over UDP may be owed for 25 ms.
    max: Duration,
    /// While a thread of the program sleeps on the channels itself.
    asleep: Duration,
    /// While it waits for the channels: it notices that its rank is gone.
    idle: Duration,
    /// What a tick is multiplied with while the program calls in.
    growth: u32,
}

impl Ticks {
    const USUAL: Ticks = Ticks {
        max: Duration::from_millis(8),
        asleep: Duration::from_millis(64),
        idle: Duration::from_secs(1),
        growth: 2,
    };

    /// Without a call the thread does not wake at all. For tests.
    #[doc(hidden)]
    pub const NEVER: Ticks = {
        let never = Duration::from_secs(1 << 20);
        Ticks { max: never, asleep: never, idle: never, growth: 1 << 31 }
    };
}

/// A wire that the thread goes on for.
pub trait Pumped: Send + Sync + 'static {
    /// What the wire shares with the thread.
    fn watch(&self) -> &Arc<Watch>;

    /// Whether there is nothing to do, and the watch's poller tells when there is.
    fn begin_watch(&self) -> bool;

    /// The watch's poller need not tell any more.
    fn end_watch(&self) {}

    /// The program calls in, and the thread only looks up: what nobody waits for is looked at.
    fn tick(&self) {}

    /// How long there is nothing to do if nothing comes.
    fn idle(&self) -> Duration {
        Duration::MAX
    }

    /// Whether something of what was sent has not left, or a timer runs.
    fn has_open(&self) -> bool;

    /// Goes on by `help` for whoever sleeps elsewhere, as far as the channels have something.
    fn go_on_for_sleeper(&self, help: &dyn Fn()) {
        let _ = help;
    }
}

/// What the thread and the rank share.
#[derive(Debug)]
pub struct Watch {
    pub(in super::super) poller: Poller,
    bell: Bell,
    call: Call,
    /// Something was left to be done, and may not be done yet.
    is_open: AtomicBool,
    /// The thread sleeps for longer than a tick at least has.
    is_far: AtomicBool,
    /// The thread waits for the channels.
    is_polling: AtomicBool,
    /// A thread of the program sleeps on the channels, or elsewhere until they have something.
    pub(in super::super) is_asleep: AtomicBool,
    /// Where the thread waits when the program's threads sleep elsewhere.
    pub(in super::super) sentry: OnceLock<Sentry>,
    /// How often the program has called in.
    pub(in super::super) calls: AtomicU64,
}

impl Watch {
    pub(in super::super) fn new(channels: usize) -> io::Result<Watch> {
        Ok(Watch {
            poller: Poller::new(channels)?,
            bell: Bell::new(),
            call: Call::default(),
            is_open: AtomicBool::new(false),
            is_far: AtomicBool::new(false),
            is_polling: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            sentry: OnceLock::new(),
            calls: AtomicU64::new(0),
        })
    }

    /// The program has called in. Only ever called under the rank's lock, so no read-modify-write is needed.
    pub(in super::super) fn show_life(&self) {
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
    }

    /// There is something to do, should the program go on computing.
    pub(in super::super) fn call(&self) {
        if self.call.make() {
            self.is_open.store(true, SeqCst);
            let (is_far, is_polling) = (self.is_far.load(SeqCst), self.is_polling.load(SeqCst));
            match self.sentry.get() {
                Some(sentry) if is_far || is_polling => sentry.ring(),
                Some(_) => {}
                None if is_far => self.bell.ring(),
                None if is_polling => self.poller.ring(),
                None => {}
            }
        }
    }

    fn take_call(&self) -> bool {
        self.call.take()
    }

    /// A thread of the program is about to sleep on the channels, or elsewhere until they have something.
    pub(in super::super) fn begin_sleep(&self) {
        self.is_asleep.store(true, SeqCst);
    }

    /// It is awake, and may compute from now on. `has_timers`: something is to be done though nothing comes.
    pub(in super::super) fn end_sleep(&self, has_timers: bool) {
        self.is_asleep.store(false, SeqCst);
        if has_timers || self.is_open.load(Relaxed) {
            self.call();
        }
    }

    /// Whether a thread of the program sleeps on the channels. For tests.
    #[doc(hidden)]
    pub fn is_asleep(&self) -> bool {
        self.is_asleep.load(SeqCst)
    }

    /// Whether the thread sleeps until somebody calls it, and nobody has. For tests.
    #[doc(hidden)]
    pub fn is_resting(&self) -> bool {
        self.is_far.load(SeqCst) && !self.call.is_made()
    }

    /// Sleeps for so long, or, when somebody calls meanwhile or has called, for a short tick: what is held back may leave with
    /// more that comes.
    fn sleep(&self, most: Duration, for_sleeper: &dyn Fn()) {
        if most > TICK_MIN {
            self.is_far.store(true, SeqCst);
            match self.sentry.get() {
                Some(sentry) => self.watch_until(sentry, most - TICK_MIN, true, for_sleeper),
                None => self.bell.sleep(most - TICK_MIN, || self.call.is_made()),
            }
            self.is_far.store(false, SeqCst);
        }
        match self.sentry.get() {
            Some(sentry) => self.watch_until(sentry, TICK_MIN, false, for_sleeper),
            None => self.bell.sleep(TICK_MIN, || false),
        }
    }

    /// Sleeps for so long, or until somebody calls if that is to be heard; goes on meanwhile for whoever sleeps elsewhere.
    fn watch_until(&self, sentry: &Sentry, most: Duration, hears: bool, for_sleeper: &dyn Fn()) {
        let begun = Instant::now();
        while !(hears && self.call.is_made())
            && let Some(left) = most.checked_sub(begun.elapsed())
        {
            if sentry.wait(left) {
                for_sleeper();
            }
        }
    }

    /// Waits until a channel has something, somebody calls, or the time is over.
    fn wait(&self, most: Duration, for_sleeper: &dyn Fn()) {
        let mut is_for_sleeper = false;
        self.is_polling.store(true, SeqCst);
        if !self.call.is_made() {
            match self.sentry.get() {
                Some(sentry) => {
                    sentry.arm_for_itself(&self.poller);
                    is_for_sleeper = sentry.wait(most);
                }
                None => self.poller.wait(most, &mut |_| ()),
            }
        }
        self.is_polling.store(false, SeqCst);
        if is_for_sleeper {
            for_sleeper();
        }
    }
}

/// Starts the thread of a rank, named after the transport; it ends with the rank.
///
/// # Errors
/// The system has no thread left.
pub fn start(name: &str, rank: &Arc<impl Progress>, wire: &Arc<impl Pumped>) -> io::Result<()> {
    start_with(Ticks::USUAL, name, rank, wire)
}

/// As [`start`], with other ticks than the usual ones.
///
/// # Errors
/// As [`start`].
pub fn start_with(
    ticks: Ticks,
    name: &str,
    rank: &Arc<impl Progress>,
    wire: &Arc<impl Pumped>,
) -> io::Result<()> {
    let name = format!("mpjdev-{name}-{}", rank.rank());
    let weak: Weak<dyn Progress> = Arc::downgrade(rank) as _;
    let (wire, watch) = (Arc::downgrade(wire), wire.watch().clone());
    let called = watch.clone();
    let run = move || run(ticks, &weak, &wire, &watch);
    rank.start_beside(name, Box::new(run), Box::new(move || called.call()))
}

fn run(ticks: Ticks, rank: &Weak<dyn Progress>, wire: &Weak<impl Pumped>, watch: &Watch) {
    let mut tick = TICK_MIN;
    let mut seen = watch.calls.load(Relaxed);
    let for_sleeper = || {
        if let Some(wire) = wire.upgrade() {
            wire.go_on_for_sleeper(&|| help(rank));
        }
    };
    while goes_on(rank) {
        let most = if watch.is_asleep.load(Acquire) { ticks.asleep } else { tick };
        watch.sleep(most, &for_sleeper);
        let is_called = watch.take_call();
        let is_busy = watch.is_asleep.load(Acquire) || watch.calls.load(Relaxed) != seen;
        seen = watch.calls.load(Relaxed);
        if is_busy && let Some(wire) = wire.upgrade() {
            wire.tick();
        }
        match (is_busy, is_called) {
            (true, false) => {}
            (true, true) => {
                help(rank);
                // It had called in before it left something: it computes now unless it calls in again.
                go_on(ticks, rank, wire, watch, seen, &for_sleeper);
            }
            (false, _) => go_on(ticks, rank, wire, watch, seen, &for_sleeper),
        }
        let is_idle = is_busy && !is_called && !is_still_open(rank, wire, watch);
        tick = if is_idle { tick.saturating_mul(ticks.growth).min(ticks.max) } else { TICK_MIN };
    }
}

/// Whether what was left to be done is not done yet; whoever leaves something from now on calls.
fn is_still_open(rank: &Weak<dyn Progress>, wire: &Weak<impl Pumped>, watch: &Watch) -> bool {
    if !watch.is_open.load(Relaxed) {
        return false;
    }
    let (Some(rank), Some(wire)) = (rank.upgrade(), wire.upgrade()) else { return false };
    let is_open = wire.has_open() || rank.has_pending();
    watch.is_open.store(is_open, SeqCst);
    is_open
}

fn help(rank: &Weak<dyn Progress>) {
    if let Some(rank) = rank.upgrade() {
        rank.help();
    }
}

/// Goes on for the rank until its program calls in again.
fn go_on(
    ticks: Ticks,
    rank: &Weak<dyn Progress>,
    wire: &Weak<impl Pumped>,
    watch: &Watch,
    seen: u64,
    for_sleeper: &dyn Fn(),
) {
    while watch.calls.load(Relaxed) == seen && !watch.is_asleep.load(Acquire) {
        watch.take_call();
        // Behind that: whoever ends the rank says so, and then calls.
        if !goes_on(rank) {
            return;
        }
        help(rank);
        // What somebody has read and not taken is nothing that the system tells of: neither this thread nor one of the program
        // that sleeps by now.
        let idle = match wire.upgrade() {
            Some(wire) if wire.begin_watch() => wire.idle(),
            Some(_) => {
                help(rank);
                continue;
            }
            None => return,
        };
        watch.wait(idle.min(ticks.idle), for_sleeper);
        if let Some(wire) = wire.upgrade() {
            wire.end_watch();
        }
    }
}
