//! Progress thread of a rank whose program computes: it answers, acknowledges and writes pending packets.
//!
//! While the program calls into the library, the thread only checks from time to time whether it still does.
//! When the program stops calling, the thread sleeps until a channel has an event, as a waiting thread of the
//! program would. A send or a receive that leaves work pending wakes the thread, and the thread checks every
//! millisecond until that work is done.
//!
//! The thread and its rank share three states. Each changes by itself, and every combination is legal.
//!
//! | state | values | written by |
//! |---|---|---|
//! | `ThreadState` | awake, resting, waiting | the progress thread |
//! | [`WakeRequest`] | none, set, taken | any thread sets it, the progress thread takes and completes it |
//! | `is_asleep` | a thread of the program sleeps on the channels, or none does | that thread |
//!
//! A wake-up follows a store and a load of each side: the setter sets the request and loads the thread's
//! state, the thread stores its state and loads the request.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use mpjdev_sys::futex::Futex;
use mpjdev_sys::wake_request::WakeRequest;

use super::atomic_state::{AtomicState, impl_state};
use super::epoll_waiter::EpollWaiter;
use super::poller::Poller;
use crate::Progress;
use crate::progress::{self, WeakRank};

/// Time without a call of the program after which the thread drives progress: the first value, and the value
/// while work is pending.
const TICK_MIN: Duration = Duration::from_millis(1);

/// Longest time between two calls of a program that drives progress itself.
const CALL_INTERVAL: Duration = Duration::from_micros(100);

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

/// A transport whose progress a thread drives.
pub trait ProgressTarget: Send + Sync + 'static {
    /// State shared by the transport and the thread.
    fn progress(&self) -> &Arc<ProgressShared>;

    /// Whether there is nothing to do. From then on the shared poller reports new work.
    fn prepare_wait(&self) -> bool;

    /// Ends the reports of the shared poller.
    fn end_wait(&self) {}

    /// Checks for failures that no thread waits for, while the program calls in.
    fn tick(&self) {}

    /// The time without work if no packet arrives.
    fn idle(&self) -> Duration {
        Duration::MAX
    }

    /// Whether sent data is still pending, or a timer runs.
    fn has_pending_work(&self) -> bool;

    /// Drives the rank by `drive` for a thread that sleeps elsewhere, as long as the channels have events.
    fn progress_for_sleeper(&self, drive: &dyn Fn()) {
        let _ = drive;
    }
}

/// State of the progress thread: the wake that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    /// It runs, or sleeps for less than a tick. It needs no wake.
    Awake,
    /// It sleeps on its futex, with more than a tick left.
    Resting,
    /// It waits for the channels.
    Waiting,
}

impl_state!(ThreadState { Awake, Resting, Waiting });

/// State shared by the thread and the rank.
#[derive(Debug)]
pub struct ProgressShared {
    pub(in super::super) poller: Poller,
    futex: Futex,
    /// Work that was left to the thread.
    wake_request: WakeRequest,
    thread: AtomicState<ThreadState>,
    /// A thread of the program sleeps on the channels, or elsewhere until they have events.
    pub(in super::super) is_asleep: AtomicBool,
    /// The thread waits here if the program's threads sleep elsewhere.
    pub(in super::super) epoll_waiter: OnceLock<EpollWaiter>,
    /// Number of calls of the program that drive progress.
    pub(in super::super) calls: AtomicU64,
    /// Number of sends that drive none.
    sends: AtomicU64,
}

impl ProgressShared {
    pub(in super::super) fn new(channels: usize) -> io::Result<ProgressShared> {
        Ok(ProgressShared {
            poller: Poller::new(channels)?,
            futex: Futex::new(),
            wake_request: WakeRequest::default(),
            thread: AtomicState::new(ThreadState::Awake),
            is_asleep: AtomicBool::new(false),
            epoll_waiter: OnceLock::new(),
            calls: AtomicU64::new(0),
            sends: AtomicU64::new(0),
        })
    }

    /// Counts a call of the program. Every caller holds the rank's lock, so no read-modify-write is needed.
    pub(in super::super) fn heartbeat(&self) {
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a send of the program that takes no lock of the rank.
    pub(in super::super) fn note_send(&self) {
        self.sends.fetch_add(1, Relaxed);
    }

    /// A number that changes with each call of the program.
    fn calls_and_sends(&self) -> u64 {
        self.calls.load(Relaxed).wrapping_add(self.sends.load(Relaxed))
    }

    /// Wakes the thread for pending work, in case the program computes from now on.
    pub(in super::super) fn kick(&self) {
        if self.wake_request.set() {
            match (self.thread.load(SeqCst), self.epoll_waiter.get()) {
                (ThreadState::Awake, _) => {}
                (_, Some(epoll_waiter)) => epoll_waiter.wake(),
                (ThreadState::Resting, None) => self.futex.wake(),
                (ThreadState::Waiting, None) => self.poller.wake(),
            }
        }
    }

    fn take_kick(&self) -> bool {
        self.wake_request.take()
    }

    /// Records that a thread of the program is about to sleep on the channels, or elsewhere until they have
    /// events.
    pub(in super::super) fn begin_sleep(&self) {
        self.is_asleep.store(true, SeqCst);
        // The checks before the sleep must not be taken before the mark.
        fence(SeqCst);
    }

    /// Records that the thread is awake and may compute from now on. `has_timers`: work becomes due even if
    /// no packet arrives.
    pub(in super::super) fn end_sleep(&self, has_timers: bool) {
        self.is_asleep.store(false, SeqCst);
        if has_timers || self.wake_request.is_pending() {
            self.kick();
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
        self.thread.load(SeqCst) == ThreadState::Resting && !self.wake_request.is_set()
    }

    /// Whether the progress thread waits for the channels. For tests.
    #[doc(hidden)]
    pub fn is_waiting(&self) -> bool {
        self.thread.load(SeqCst) == ThreadState::Waiting
    }

    /// Sleeps for `most`. A wake, also an earlier one, shortens the sleep to a short tick: delayed data may
    /// leave with later data.
    fn sleep(&self, most: Duration, for_sleeper: &dyn Fn()) {
        if most > TICK_MIN {
            self.thread.store(ThreadState::Resting, SeqCst);
            match self.epoll_waiter.get() {
                Some(epoll_waiter) => self.sleep_on_epoll(epoll_waiter, most - TICK_MIN, true, for_sleeper),
                None => self.futex.sleep(most - TICK_MIN, || self.wake_request.is_set()),
            }
            self.thread.store(ThreadState::Awake, SeqCst);
        }
        match self.epoll_waiter.get() {
            Some(epoll_waiter) => self.sleep_on_epoll(epoll_waiter, TICK_MIN, false, for_sleeper),
            None => self.futex.sleep(TICK_MIN, || false),
        }
    }

    /// Sleeps for `most`, or until a wake if `until_kicked`. Meanwhile drives progress for threads that sleep
    /// elsewhere.
    fn sleep_on_epoll(
        &self,
        epoll_waiter: &EpollWaiter,
        most: Duration,
        until_kicked: bool,
        for_sleeper: &dyn Fn(),
    ) {
        let begun = Instant::now();
        while !(until_kicked && self.wake_request.is_set())
            && let Some(left) = most.checked_sub(begun.elapsed())
        {
            if epoll_waiter.wait(left) {
                for_sleeper();
            }
        }
    }

    /// Waits until a channel has an event, a thread wakes this one, or `most` has passed.
    fn wait(&self, most: Duration, for_sleeper: &dyn Fn()) {
        let mut is_for_sleeper = false;
        self.thread.store(ThreadState::Waiting, SeqCst);
        if !self.wake_request.is_set() {
            match self.epoll_waiter.get() {
                Some(epoll_waiter) => {
                    epoll_waiter.arm_for_itself(&self.poller);
                    is_for_sleeper = epoll_waiter.wait(most);
                }
                None => self.poller.wait(most, &mut |_| ()),
            }
        }
        self.thread.store(ThreadState::Awake, SeqCst);
        if is_for_sleeper {
            for_sleeper();
        }
    }
}

/// Starts the thread of a rank, named after the transport. The thread ends with the rank.
///
/// # Errors
/// The system has no thread left.
pub fn start(name: &str, rank: &Arc<impl Progress>, transport: &Arc<impl ProgressTarget>) -> io::Result<()> {
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
    transport: &Arc<impl ProgressTarget>,
) -> io::Result<()> {
    let progress = transport.progress().clone();
    let kicked = progress.clone();
    let seen = progress.calls_and_sends();
    let mut driver = Driver { ticks, tick: TICK_MIN, seen, transport: Arc::downgrade(transport), progress };
    progress::start(name, rank, move |rank| driver.turn(rank), move || kicked.kick())
}

/// State of the thread between its turns.
struct Driver<T> {
    ticks: Ticks,
    /// The next sleep while the program calls in.
    tick: Duration,
    /// Number of calls of the program at the last turn.
    seen: u64,
    transport: Weak<T>,
    progress: Arc<ProgressShared>,
}

impl<T: ProgressTarget> Driver<T> {
    /// Sleeps for a tick, and drives the rank if its program computes or has left work.
    fn turn(&mut self, rank: &WeakRank) {
        let progress = &*self.progress;
        let most = if progress.is_asleep.load(Acquire) { self.ticks.asleep } else { self.tick };
        progress.sleep(most, &|| self.drive_for_sleeper(rank));
        let was_kicked = progress.take_kick();
        let is_busy = progress.is_asleep.load(Acquire) || progress.calls_and_sends() != self.seen;
        self.seen = progress.calls_and_sends();
        if is_busy && let Some(transport) = self.transport.upgrade() {
            transport.tick();
        }
        match (is_busy, was_kicked) {
            (true, false) => {}
            (true, true) if self.is_program_calling() => {}
            (true, true) => {
                rank.drive();
                // The program left the work after its last call. It computes now unless it calls again.
                self.drive_while_program_computes(rank);
            }
            (false, _) => self.drive_while_program_computes(rank),
        }
        let is_idle = is_busy && !was_kicked && !self.is_work_pending(rank);
        self.tick = match is_idle {
            true => self.tick.saturating_mul(self.ticks.growth).min(self.ticks.max),
            false => TICK_MIN,
        };
    }

    /// Whether the program calls in within [`CALL_INTERVAL`]. It then drives progress itself, and a drive
    /// from here would only take its locks.
    fn is_program_calling(&mut self) -> bool {
        self.progress.futex.sleep(CALL_INTERVAL, || false);
        let calls = self.progress.calls_and_sends();
        calls != std::mem::replace(&mut self.seen, calls)
    }

    /// Whether work is still pending. If not, completes the request for it.
    fn is_work_pending(&self, rank: &WeakRank) -> bool {
        if !self.progress.wake_request.is_pending() {
            return false;
        }
        let Some(transport) = self.transport.upgrade() else { return false };
        let has_work = transport.has_pending_work() || rank.has_pending();
        if !has_work {
            self.progress.wake_request.complete();
        }
        has_work
    }

    fn drive_for_sleeper(&self, rank: &WeakRank) {
        if let Some(transport) = self.transport.upgrade() {
            transport.progress_for_sleeper(&|| rank.drive());
        }
    }

    /// Drives the rank until its program calls again.
    fn drive_while_program_computes(&self, rank: &WeakRank) {
        let progress = &*self.progress;
        while progress.calls_and_sends() == self.seen && !progress.is_asleep.load(Acquire) {
            progress.take_kick();
            // This check follows the take: a thread that ends the rank records the end first and wakes this
            // one afterwards.
            if !rank.is_running() {
                return;
            }
            rank.drive();
            // The kernel does not report data that was read but not taken, neither to this thread nor to a
            // thread of the program that sleeps by now.
            let idle = match self.transport.upgrade() {
                Some(transport) if transport.prepare_wait() => transport.idle(),
                Some(_) => {
                    rank.drive();
                    continue;
                }
                None => return,
            };
            progress.wait(idle.min(self.ticks.idle), &|| self.drive_for_sleeper(rank));
            if let Some(transport) = self.transport.upgrade() {
                transport.end_wait();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{read_link, read_to_string};
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::thread::{scope, yield_now};

    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(60);

    fn until(is_over: impl Fn() -> bool, what: &str) {
        let begun = Instant::now();
        while !is_over() {
            assert!(begun.elapsed() < LONG, "{what}");
            yield_now();
        }
    }

    /// When a thread that is about to sleep gets a kick.
    #[derive(Clone, Copy, PartialEq)]
    enum Moment {
        BeforeTheStep,
        StateEntered,
        Asleep,
    }

    /// Whether the kernel has put a thread to sleep, whose folder in /proc this is.
    fn sleeps(folder: &OnceLock<PathBuf>) -> bool {
        let stat = folder.get().map(|folder| read_to_string(folder.join("stat")).expect("it runs"));
        // The name of the thread is in brackets before its state.
        stat.is_some_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
    }

    /// A thread in `step` enters `state`, a kick ends the step, and the thread is awake.
    fn is_ended_by_a_kick(state: ThreadState, step: fn(&ProgressShared)) {
        for moment in [Moment::BeforeTheStep, Moment::StateEntered, Moment::Asleep] {
            let progress = ProgressShared::new(0).expect("an epoll");
            let has_ended = AtomicBool::new(false);
            let folder = OnceLock::new();
            scope(|threads| {
                if moment == Moment::BeforeTheStep {
                    progress.kick();
                }
                threads.spawn(|| {
                    let own = Path::new("/proc").join(read_link("/proc/thread-self").expect("Linux"));
                    folder.set(own).expect("set once");
                    step(&progress);
                    has_ended.store(true, SeqCst);
                });
                if moment != Moment::BeforeTheStep {
                    let is_there = || moment == Moment::StateEntered || sleeps(&folder);
                    until(|| progress.thread.load(SeqCst) == state && is_there(), "the state is not entered");
                    assert_eq!(progress.is_resting(), state == ThreadState::Resting);
                    progress.kick();
                }
                until(|| has_ended.load(SeqCst), "the kick is lost");
            });
            assert_eq!(progress.thread.load(SeqCst), ThreadState::Awake);
            assert!(!progress.is_resting() && progress.take_kick());
        }
    }

    #[test]
    fn kick_ends_a_rest() {
        is_ended_by_a_kick(ThreadState::Resting, |progress| progress.sleep(2 * LONG, &|| ()));
    }

    #[test]
    fn kick_ends_a_wait_for_the_channels() {
        is_ended_by_a_kick(ThreadState::Waiting, |progress| progress.wait(2 * LONG, &|| ()));
    }

    #[test]
    fn end_of_a_sleep_kicks_only_while_work_is_pending() {
        let progress = ProgressShared::new(0).expect("an epoll");
        let sleep = |has_timers| {
            progress.begin_sleep();
            assert!(progress.is_asleep());
            progress.end_sleep(has_timers);
            assert!(!progress.is_asleep());
            progress.take_kick()
        };
        assert!(!sleep(false), "no work was left");
        assert!(sleep(true), "a timer runs");
        assert!(sleep(false), "the work is taken and not completed");
        progress.wake_request.complete();
        assert!(!sleep(false), "the work is done");
    }

    /// A rank that counts its drives, and runs its progress thread in the thread that starts it.
    #[derive(Default)]
    struct CountingRank {
        drives: AtomicU64,
        has_ended: AtomicBool,
    }

    impl Progress for CountingRank {
        fn rank(&self) -> u32 {
            0
        }

        fn drive_progress(&self) {
            self.drives.fetch_add(1, SeqCst);
        }

        fn has_pending(&self) -> bool {
            false
        }

        fn has_ended(&self) -> bool {
            self.has_ended.load(SeqCst)
        }

        fn spawn_progress_thread(
            &self,
            _: String,
            run: Box<dyn FnOnce() + Send>,
            _: Box<dyn Fn() + Send>,
        ) -> io::Result<()> {
            run();
            Ok(())
        }
    }

    /// A transport whose data are never acked.
    struct PendingTarget(Arc<ProgressShared>);

    impl ProgressTarget for PendingTarget {
        fn progress(&self) -> &Arc<ProgressShared> {
            &self.0
        }

        fn prepare_wait(&self) -> bool {
            true
        }

        fn has_pending_work(&self) -> bool {
            true
        }
    }

    /// The sender may lose its processor between two sends, so one turn without a drive is enough.
    #[test]
    fn program_that_only_sends_is_not_driven() {
        let progress = Arc::new(ProgressShared::new(0).expect("an epoll"));
        let transport = Arc::new(PendingTarget(progress.clone()));
        let rank = Arc::new(CountingRank::default());
        let mut driver = Driver {
            ticks: Ticks::USUAL,
            tick: TICK_MIN,
            seen: 0,
            transport: Arc::downgrade(&transport),
            progress: progress.clone(),
        };
        scope(|threads| {
            threads.spawn(|| {
                while !rank.has_ended() {
                    progress.note_send();
                    progress.kick();
                }
            });
            let (begun, counted, kicked) = (Instant::now(), rank.clone(), progress.clone());
            let turn = move |weak: &WeakRank| {
                let before = counted.drives.load(SeqCst);
                kicked.note_send();
                kicked.kick();
                driver.turn(weak);
                let is_undriven = counted.drives.load(SeqCst) == before;
                counted.has_ended.store(is_undriven || begun.elapsed() > LONG, SeqCst);
            };
            progress::start("test", &rank, turn, || {}).expect("it runs here");
            assert!(begun.elapsed() < LONG, "every turn drives the rank");
        });
    }
}
