//! Progress thread of a rank whose program computes: it answers, acknowledges and writes pending packets.
//!
//! While the program calls into the library, the thread only checks from time to time whether it still does.
//! When the program stops calling, the thread sleeps until a channel has an event, as a waiting thread of the
//! program would. A send or a receive that leaves work pending wakes the thread, and the thread checks every
//! millisecond until that work is done.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use mpjdev_sys::futex::Futex;
use mpjdev_sys::wake_request::WakeRequest;

use super::epoll_waiter::Sentry;
use super::poller::Poller;
use crate::{Progress, goes_on};

/// Time without a call of the program after which the thread drives progress: the first value, and the value
/// while work is pending.
const TICK_MIN: Duration = Duration::from_millis(1);

/// Longest sleeps of the thread without a wake.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// While the program calls often. An ack over UDP may be delayed by 25 ms.
    max: Duration,
    /// While a thread of the program sleeps on the channels itself.
    asleep: Duration,
    /// While the thread waits for the channels. It then notices that its rank no longer exists.
    idle: Duration,
    /// Growth factor of a tick while the program calls in.
    growth: u32,
}

impl Ticks {
    const USUAL: Ticks = Ticks {
        max: Duration::from_millis(8),
        asleep: Duration::from_millis(64),
        idle: Duration::from_secs(1),
        growth: 2,
    };

    /// Ticks without which only a wake runs the thread. For tests.
    #[doc(hidden)]
    pub const NEVER: Ticks = {
        let never = Duration::from_secs(1 << 20);
        Ticks { max: never, asleep: never, idle: never, growth: 1 << 31 }
    };
}

/// A wire whose progress a thread drives.
pub trait Pumped: Send + Sync + 'static {
    /// State shared by the wire and the thread.
    fn watch(&self) -> &Arc<Watch>;

    /// Whether there is nothing to do. From then on the watch's poller reports new work.
    fn begin_watch(&self) -> bool;

    /// Ends the reports of the watch's poller.
    fn end_watch(&self) {}

    /// Checks for failures that no thread waits for, while the program calls in.
    fn tick(&self) {}

    /// The time without work if no packet arrives.
    fn idle(&self) -> Duration {
        Duration::MAX
    }

    /// Whether sent data is still pending, or a timer runs.
    fn has_open(&self) -> bool;

    /// Drives progress by `help` for a thread that sleeps elsewhere, as long as the channels have events.
    fn go_on_for_sleeper(&self, help: &dyn Fn()) {
        let _ = help;
    }
}

/// State shared by the thread and the rank.
#[derive(Debug)]
pub struct Watch {
    pub(in super::super) poller: Poller,
    futex: Futex,
    wake_request: WakeRequest,
    /// Work was left pending, and may still be.
    is_open: AtomicBool,
    /// The thread sleeps with more than a tick left.
    is_far: AtomicBool,
    /// The thread waits for the channels.
    is_polling: AtomicBool,
    /// A thread of the program sleeps on the channels, or elsewhere until they have events.
    pub(in super::super) is_asleep: AtomicBool,
    /// The thread waits here if the program's threads sleep elsewhere.
    pub(in super::super) sentry: OnceLock<Sentry>,
    /// Number of calls of the program into the library.
    pub(in super::super) calls: AtomicU64,
}

impl Watch {
    pub(in super::super) fn new(channels: usize) -> io::Result<Watch> {
        Ok(Watch {
            poller: Poller::new(channels)?,
            futex: Futex::new(),
            wake_request: WakeRequest::default(),
            is_open: AtomicBool::new(false),
            is_far: AtomicBool::new(false),
            is_polling: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            sentry: OnceLock::new(),
            calls: AtomicU64::new(0),
        })
    }

    /// Counts a call of the program. Every caller holds the rank's lock, so no read-modify-write is needed.
    pub(in super::super) fn heartbeat(&self) {
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
    }

    /// Wakes the thread for pending work, in case the program computes from now on.
    pub(in super::super) fn call(&self) {
        if self.wake_request.set() {
            self.is_open.store(true, SeqCst);
            let (is_far, is_polling) = (self.is_far.load(SeqCst), self.is_polling.load(SeqCst));
            match self.sentry.get() {
                Some(sentry) if is_far || is_polling => sentry.ring(),
                Some(_) => {}
                None if is_far => self.futex.wake(),
                None if is_polling => self.poller.ring(),
                None => {}
            }
        }
    }

    fn take_call(&self) -> bool {
        self.wake_request.take()
    }

    /// Records that a thread of the program is about to sleep on the channels, or elsewhere until they have
    /// events.
    pub(in super::super) fn begin_sleep(&self) {
        self.is_asleep.store(true, SeqCst);
    }

    /// Records that the thread is awake and may compute from now on. `has_timers`: work becomes due even if
    /// no packet arrives.
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

    /// Whether the progress thread sleeps until it is woken, and no wake is pending. For tests.
    #[doc(hidden)]
    pub fn is_resting(&self) -> bool {
        self.is_far.load(SeqCst) && !self.wake_request.is_set()
    }

    /// Sleeps for `most`. A wake, also an earlier one, shortens the sleep to a short tick: delayed data may
    /// leave with later data.
    fn sleep(&self, most: Duration, for_sleeper: &dyn Fn()) {
        if most > TICK_MIN {
            self.is_far.store(true, SeqCst);
            match self.sentry.get() {
                Some(sentry) => self.watch_until(sentry, most - TICK_MIN, true, for_sleeper),
                None => self.futex.sleep(most - TICK_MIN, || self.wake_request.is_set()),
            }
            self.is_far.store(false, SeqCst);
        }
        match self.sentry.get() {
            Some(sentry) => self.watch_until(sentry, TICK_MIN, false, for_sleeper),
            None => self.futex.sleep(TICK_MIN, || false),
        }
    }

    /// Sleeps for `most`, or until a wake if `hears`. Meanwhile drives progress for threads that sleep
    /// elsewhere.
    fn watch_until(&self, sentry: &Sentry, most: Duration, hears: bool, for_sleeper: &dyn Fn()) {
        let begun = Instant::now();
        while !(hears && self.wake_request.is_set())
            && let Some(left) = most.checked_sub(begun.elapsed())
        {
            if sentry.wait(left) {
                for_sleeper();
            }
        }
    }

    /// Waits until a channel has an event, a thread wakes this one, or `most` has passed.
    fn wait(&self, most: Duration, for_sleeper: &dyn Fn()) {
        let mut is_for_sleeper = false;
        self.is_polling.store(true, SeqCst);
        if !self.wake_request.is_set() {
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

/// Starts the thread of a rank, named after the transport. The thread ends with the rank.
///
/// # Errors
/// The system has no thread left.
pub fn start(name: &str, rank: &Arc<impl Progress>, transport: &Arc<impl Pumped>) -> io::Result<()> {
    start_with(Ticks::USUAL, name, rank, transport)
}

/// As [`start`], with other ticks than the usual ones.
///
/// # Errors
/// As [`start`].
pub fn start_with(
    ticks: Ticks,
    name: &str,
    rank: &Arc<impl Progress>,
    transport: &Arc<impl Pumped>,
) -> io::Result<()> {
    let name = format!("mpjdev-{name}-{}", rank.rank());
    let weak: Weak<dyn Progress> = Arc::downgrade(rank) as _;
    let (transport, watch) = (Arc::downgrade(transport), transport.watch().clone());
    let called = watch.clone();
    let run = move || run(ticks, &weak, &transport, &watch);
    rank.start_beside(name, Box::new(run), Box::new(move || called.call()))
}

fn run(ticks: Ticks, rank: &Weak<dyn Progress>, transport: &Weak<impl Pumped>, watch: &Watch) {
    let mut tick = TICK_MIN;
    let mut seen = watch.calls.load(Relaxed);
    let for_sleeper = || {
        if let Some(transport) = transport.upgrade() {
            transport.go_on_for_sleeper(&|| help(rank));
        }
    };
    while goes_on(rank) {
        let most = if watch.is_asleep.load(Acquire) { ticks.asleep } else { tick };
        watch.sleep(most, &for_sleeper);
        let is_called = watch.take_call();
        let is_busy = watch.is_asleep.load(Acquire) || watch.calls.load(Relaxed) != seen;
        seen = watch.calls.load(Relaxed);
        if is_busy && let Some(transport) = transport.upgrade() {
            transport.tick();
        }
        match (is_busy, is_called) {
            (true, false) => {}
            (true, true) => {
                help(rank);
                // The program's last call came before the work was left. It computes now unless it calls
                // again.
                go_on(ticks, rank, transport, watch, seen, &for_sleeper);
            }
            (false, _) => go_on(ticks, rank, transport, watch, seen, &for_sleeper),
        }
        let is_idle = is_busy && !is_called && !is_still_open(rank, transport, watch);
        tick = if is_idle { tick.saturating_mul(ticks.growth).min(ticks.max) } else { TICK_MIN };
    }
}

/// Whether work is still pending. A thread that leaves work from now on wakes this one.
fn is_still_open(rank: &Weak<dyn Progress>, transport: &Weak<impl Pumped>, watch: &Watch) -> bool {
    if !watch.is_open.load(Relaxed) {
        return false;
    }
    let (Some(rank), Some(transport)) = (rank.upgrade(), transport.upgrade()) else { return false };
    let is_open = transport.has_open() || rank.has_pending();
    watch.is_open.store(is_open, SeqCst);
    is_open
}

fn help(rank: &Weak<dyn Progress>) {
    if let Some(rank) = rank.upgrade() {
        rank.help();
    }
}

/// Drives progress for the rank until its program calls again.
fn go_on(
    ticks: Ticks,
    rank: &Weak<dyn Progress>,
    transport: &Weak<impl Pumped>,
    watch: &Watch,
    seen: u64,
    for_sleeper: &dyn Fn(),
) {
    while watch.calls.load(Relaxed) == seen && !watch.is_asleep.load(Acquire) {
        watch.take_call();
        // This check follows the take: a thread that ends the rank records the end first and wakes this one
        // afterwards.
        if !goes_on(rank) {
            return;
        }
        help(rank);
        // The kernel does not report data that was read but not taken, neither to this thread nor to a thread
        // of the program that sleeps by now.
        let idle = match transport.upgrade() {
            Some(transport) if transport.begin_watch() => transport.idle(),
            Some(_) => {
                help(rank);
                continue;
            }
            None => return,
        };
        watch.wait(idle.min(ticks.idle), for_sleeper);
        if let Some(transport) = transport.upgrade() {
            transport.end_watch();
        }
    }
}
