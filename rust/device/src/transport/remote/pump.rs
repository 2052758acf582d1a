//! A thread that goes on for a rank whose program computes: it answers, acknowledges and writes what waits.
//!
//! While the program calls in it only looks now and then whether that is still so. When it is not, the thread sleeps until a
//! channel has something, like a waiting thread would.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use mpjdev_sys::bell::Bell;

use super::poller::Poller;
use super::sentry::Sentry;
use crate::endpoint::Endpoint;

/// How long the program may not have called in before the thread goes on for it: at first, and while it calls in all the time.
const TICK_MIN: Duration = Duration::from_millis(1);
const TICK_MAX: Duration = Duration::from_millis(16);
/// The same while a thread of the program sleeps on the channels itself.
const ASLEEP: Duration = Duration::from_millis(64);
/// How long it sleeps at most, so that it notices that its rank is gone.
const IDLE: Duration = Duration::from_secs(1);

/// A wire that the thread goes on for.
pub(crate) trait Pumped: Send + Sync + 'static {
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
        IDLE
    }

    /// Goes on by `help` for whoever sleeps elsewhere, as far as the channels have something.
    fn go_on_for_sleeper(&self, help: &dyn Fn()) {
        let _ = help;
    }
}

/// What the thread and the rank share.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(in super::super) poller: Poller,
    bell: Bell,
    is_called: AtomicBool,
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
            is_called: AtomicBool::new(false),
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
        if !self.is_called.load(Relaxed) && !self.is_called.swap(true, SeqCst) {
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
        self.is_called.swap(false, SeqCst)
    }

    /// Sleeps for so long, or, when somebody calls meanwhile or has called, for a short tick: what is held back may leave with
    /// more that comes.
    fn sleep(&self, most: Duration, for_sleeper: &dyn Fn()) {
        if most > TICK_MIN {
            self.is_far.store(true, SeqCst);
            match self.sentry.get() {
                Some(sentry) => self.watch_until(sentry, most - TICK_MIN, true, for_sleeper),
                None => self.bell.sleep(most - TICK_MIN, || self.is_called.load(SeqCst)),
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
        while !(hears && self.is_called.load(SeqCst))
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
        if !self.is_called.load(SeqCst) {
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

/// Starts the thread of a rank, named after the transport; it ends with the endpoint.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(name: &str, endpoint: &Arc<Endpoint>, wire: &Arc<impl Pumped>) -> io::Result<()> {
    let name = format!("mpjdev-{name}-{}", endpoint.rank());
    let (endpoint, wire, watch) = (Arc::downgrade(endpoint), Arc::downgrade(wire), wire.watch().clone());
    std::thread::Builder::new().name(name).spawn(move || run(&endpoint, &wire, &watch)).map(drop)
}

fn run(endpoint: &Weak<Endpoint>, wire: &Weak<impl Pumped>, watch: &Watch) {
    let mut tick = TICK_MIN;
    let mut seen = watch.calls.load(Relaxed);
    let for_sleeper = || {
        if let Some(wire) = wire.upgrade() {
            wire.go_on_for_sleeper(&|| help(endpoint));
        }
    };
    while endpoint.strong_count() > 0 {
        let most = if watch.is_asleep.load(Acquire) { ASLEEP } else { tick };
        watch.sleep(most, &for_sleeper);
        let is_called = watch.take_call();
        let is_busy = watch.is_asleep.load(Acquire) || watch.calls.load(Relaxed) != seen;
        seen = watch.calls.load(Relaxed);
        tick = if is_busy && !is_called { (tick * 2).min(TICK_MAX) } else { TICK_MIN };
        if is_busy && let Some(wire) = wire.upgrade() {
            wire.tick();
        }
        match (is_busy, is_called) {
            (true, false) => {}
            (true, true) => help(endpoint),
            (false, _) => go_on(endpoint, wire, watch, seen, &for_sleeper),
        }
    }
}

fn help(endpoint: &Weak<Endpoint>) {
    if let Some(endpoint) = endpoint.upgrade() {
        endpoint.help();
    }
}

/// Goes on for the rank until its program calls in again.
fn go_on(
    endpoint: &Weak<Endpoint>,
    wire: &Weak<impl Pumped>,
    watch: &Watch,
    seen: u64,
    for_sleeper: &dyn Fn(),
) {
    while watch.calls.load(Relaxed) == seen && !watch.is_asleep.load(Acquire) {
        watch.take_call();
        help(endpoint);
        // What somebody has read and not taken is nothing that the system tells of: neither this thread nor one of the program
        // that sleeps by now.
        let idle = match wire.upgrade() {
            Some(wire) if wire.begin_watch() => wire.idle(),
            Some(_) => {
                help(endpoint);
                continue;
            }
            None => return,
        };
        watch.wait(idle.min(IDLE), for_sleeper);
        if let Some(wire) = wire.upgrade() {
            wire.end_watch();
        }
    }
}
