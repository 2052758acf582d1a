//! Ranks of a job as threads, under a deadline.
//!
//! A panic of a rank, or a deadline that passes, fails the job. Every blocked operation then ends with an
//! error, the threads end, and the test fails with the first reason.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, SlabSource};
use mpjdev_engine::collective::Outcome;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Done, Mode, RecvFrom, RequestId, Status, Uninterruptible};

use crate::side_channel::SideChannel;
use crate::test_message::TestMessage;
use crate::transport_fixtures::TransportFixture;
use crate::under_mpirun;

/// Deadline of a job. The longest job takes half a minute of processor time.
fn deadline() -> Duration {
    Duration::from_secs(if soaks() { 900 } else { 300 })
}

/// Deadline of a condition that only the speed of other threads delays.
const SOON: Duration = Duration::from_secs(20);
/// Time in which a rank posts a note. A long test may work before it, with more ranks than processors.
const NOTED: Duration = Duration::from_secs(150);
/// Octets of a job's pool.
const POOL: u64 = 4 << 30;

/// The variable that asks for the long tests.
pub(crate) const SOAK: &str = "MPJDEV_SOAK";

/// Whether the long tests are asked for.
pub(crate) fn soaks() -> bool {
    std::env::var_os(SOAK).is_some_and(|v| v == "1")
}

/// A number that is larger when the long tests are asked for.
pub(crate) fn amount(check: usize, soak: usize) -> usize {
    if soaks() { soak } else { check }
}

/// A job that has not been run.
#[derive(Debug)]
pub(crate) struct Job {
    config: Config,
    connect: fn(usize, Config, &Arc<HeapPool>) -> Vec<Comm>,
    name: &'static str,
    ranks: usize,
    clean: bool,
}

/// State that the threads of a job share.
#[derive(Debug)]
struct Shared {
    pool: Arc<HeapPool>,
    /// Sources of message memory other than the pool.
    sources: Vec<Arc<dyn SlabSource>>,
    side_channel: SideChannel,
    /// The first failure.
    failure: Mutex<Option<String>>,
}

/// One rank of a job in one communicator. An operation that fails fails the test.
#[derive(Clone, Debug)]
pub(crate) struct RankHarness {
    /// The communicator.
    pub(crate) comm: Comm,
    shared: Arc<Shared>,
}

/// Runs a job with `ranks` ranks, and checks that it leaves no message, request or memory.
pub(crate) fn run(fixture: &TransportFixture, ranks: usize, body: impl Fn(&RankHarness) + Sync) {
    Job::new(fixture, ranks).run(body);
}

impl Job {
    /// A job over this fixture.
    pub(crate) fn new(fixture: &TransportFixture, ranks: usize) -> Job {
        Job { config: (fixture.config)(), connect: fixture.connect, name: fixture.name, ranks, clean: true }
    }

    /// Changes the limits.
    pub(crate) fn tuned(mut self, tune: impl Fn(&mut Config)) -> Job {
        tune(&mut self.config);
        self
    }

    /// Number of tags that a message can have.
    pub(crate) fn tags(&self) -> usize {
        self.config.tag_ub as usize + 1
    }

    /// Allows messages and requests, but no memory, to be left at the end.
    pub(crate) fn untidy(mut self) -> Job {
        self.clean = false;
        self
    }

    /// Runs every rank on a thread.
    ///
    /// # Panics
    /// When a rank panics, when the deadline passes, and when something is left.
    pub(crate) fn run(self, body: impl Fn(&RankHarness) + Sync) {
        let pool = HeapPool::new(POOL);
        let source: Arc<dyn SlabSource> = pool.clone();
        if !under_mpirun::has_room(self.ranks) {
            return;
        }
        let comms = (self.connect)(self.ranks, self.config.clone(), &pool);
        if comms.is_empty() {
            return;
        }
        let sources = comms.iter().map(|comm| comm.source().clone());
        let shared = Arc::new(Shared {
            pool: pool.clone(),
            sources: sources.filter(|own| !Arc::ptr_eq(own, &source)).collect(),
            side_channel: SideChannel::new(),
            failure: Mutex::default(),
        });
        let harnesses: Vec<RankHarness> =
            comms.into_iter().map(|comm| RankHarness { comm, shared: shared.clone() }).collect();
        let (done, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watchdog = scope.spawn(|| watch(self.name, ended, &harnesses));
            let ranks: Vec<_> =
                harnesses.iter().map(|harness| scope.spawn(|| harness.guarded(|| body(harness)))).collect();
            for rank in ranks {
                rank.join().expect("panics are caught inside");
            }
            drop(done);
            watchdog.join().expect("the watchdog does not panic");
        });
        if let Some(failure) = lock(&shared.failure).take() {
            panic!("in {}: {failure}", self.name);
        }
        if self.clean {
            settle(&harnesses);
        }
        if self.clean {
            // The other ranks hold no message, so they return all loans.
            until(|| shared.sources.is_empty() || shared.used() == 0, "all loans returned");
        }
        if under_mpirun::directory().is_some() {
            end_rank(&harnesses, self.clean);
            if !self.clean {
                // The library keeps the memory of messages that were not received.
                return;
            }
        }
        drop(harnesses);
        until(|| shared.used() == 0, "memory was given back");
        assert_eq!(shared.used(), 0, "octets are still in use after the job in {}", self.name);
    }
}

/// Rank 0 sends `count` messages with the tags from 0. Rank 1 waits for the last one and receives them in
/// reverse order.
pub(crate) fn receive_in_reverse_order(
    fixture: &TransportFixture,
    count: usize,
    message: impl Fn(usize) -> TestMessage + Sync,
) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            let send = |i| harness.isend(Mode::Standard, &message(i), 1, i as i32);
            let sends: Vec<_> = (0..count).map(send).collect();
            harness.wait_all(sends);
        } else {
            harness.probe(from(0, count as i32 - 1));
            for i in (0..count).rev() {
                harness.expect(from(0, i as i32), &message(i));
            }
        }
    });
}

/// Waits for a condition that other threads bring about.
fn until(holds: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {SOON:?}: {what}");
        std::thread::yield_now();
    }
}

/// Ends the rank of this process, unless the test has done so. The process can then join the next job.
fn end_rank(harnesses: &[RankHarness], is_clean: bool) {
    for harness in harnesses {
        let done = |rank: u32| format!("rank {rank} has done its part");
        harness.post_note(&done(harness.rank()));
        let deadline = Instant::now() + deadline();
        // No rank finishes while another one still communicates.
        while !(0..harness.size()).all(|rank| harness.has_note(&done(rank))) {
            assert!(Instant::now() < deadline, "another rank does not end");
            // A library sends a pending answer only while it is called.
            let _ = harness.comm.iprobe(ANY);
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended = harness.comm.finish(&mut Uninterruptible);
        assert!(ended.is_ok() || !is_clean, "finish: {ended:?}");
    }
}

/// Waits until nothing is left at any rank.
fn settle(harnesses: &[RankHarness]) {
    let left = || harnesses.iter().map(|p| p.comm.leftovers()).collect::<Vec<_>>();
    let deadline = Instant::now() + SOON;
    while left().iter().any(|l| *l != (0, 0)) {
        assert!(
            Instant::now() < deadline,
            "unreceived messages and unfinished requests by rank: {:?}",
            left()
        );
        std::thread::yield_now();
    }
}

/// Fails the job at its deadline, and aborts the process when the failure does not end it.
fn watch(name: &str, ended: mpsc::Receiver<()>, harnesses: &[RankHarness]) {
    let over = |within| !matches!(ended.recv_timeout(within), Err(mpsc::RecvTimeoutError::Timeout));
    if over(deadline()) {
        return;
    }
    harnesses[0].shared.fail(format!("not over after {:?}", deadline()));
    let comms: Vec<_> = harnesses.iter().map(|p| p.comm.clone()).collect();
    // On a thread of its own: it may block at a lock, and the job must fail nevertheless.
    let (printed_tx, printed) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        for comm in comms {
            eprintln!("rank {}: {:?} left; {comm:#?}", comm.world_rank(), comm.leftovers());
        }
        drop(printed_tx);
    });
    // The report shows the state before the job fails.
    let _ = printed.recv_timeout(SOON);
    harnesses[0].comm.fail("the test's deadline has passed");
    if !over(SOON) {
        eprintln!("in {name}: a rank does not end though the job has failed");
        std::process::abort();
    }
}

impl Shared {
    /// Octets in use.
    fn used(&self) -> u64 {
        self.pool.used() + self.sources.iter().map(|source| source.used()).sum::<u64>()
    }

    /// Records the first failure.
    fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
        self.side_channel.wake();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text_of(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&str>().map_or_else(|_| "a panic".into(), |text| (*text).into()),
    }
}

/// Selects a source and a tag. `None` is a wildcard.
pub(crate) fn from(source: impl Into<Option<u32>>, tag: impl Into<Option<i32>>) -> RecvFrom {
    RecvFrom { source: source.into().map(|s| s as i32), tag: tag.into() }
}

/// From any source with any tag.
pub(crate) const ANY: RecvFrom = RecvFrom { source: None, tag: None };

impl RankHarness {
    /// Runs a thread's part of the test. A panic fails the whole job.
    fn guarded(&self, part: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(part)) {
            let why = format!("rank {}: {}", self.comm.world_rank(), text_of(panic));
            self.shared.fail(why.clone());
            self.comm.fail(&why);
        }
    }

    /// Runs `count` threads of this rank and waits for them.
    pub(crate) fn threads(&self, count: usize, part: impl Fn(usize) + Sync) {
        std::thread::scope(|scope| {
            for k in 0..count {
                let part = &part;
                scope.spawn(move || self.guarded(|| part(k)));
            }
        });
    }

    /// This rank in another communicator.
    pub(crate) fn on(&self, comm: Comm) -> RankHarness {
        RankHarness { comm, shared: self.shared.clone() }
    }

    /// Number of this rank.
    pub(crate) fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Number of ranks.
    pub(crate) fn size(&self) -> u32 {
        self.comm.size() as u32
    }

    /// Octets in use in the job's pool.
    pub(crate) fn used(&self) -> u64 {
        self.shared.used()
    }

    /// Leaves no memory for further messages, in this process.
    pub(crate) fn use_up_memory(&self) {
        self.shared.pool.set_limit(0);
        self.shared.pool.trim();
    }

    /// Source of memory for the job's messages.
    pub(crate) fn source(&self) -> &Arc<dyn SlabSource> {
        self.comm.source()
    }

    /// Posts a note for the other ranks, without a message.
    pub(crate) fn post_note(&self, what: &str) {
        self.shared.side_channel.post(what);
    }

    /// Whether a rank has posted this note.
    pub(crate) fn has_note(&self, what: &str) -> bool {
        self.shared.side_channel.has(what)
    }

    /// Waits until another rank has posted a note. Does not drive the rank's progress.
    #[track_caller]
    pub(crate) fn wait_for_note(&self, what: &str) {
        let deadline = Instant::now() + NOTED;
        while !self.has_note(what) {
            assert!(lock(&self.shared.failure).is_none(), "another rank failed while waiting for: {what}");
            assert!(Instant::now() < deadline, "no note within {NOTED:?}: {what}");
            self.shared.side_channel.wait(what);
        }
    }

    /// Polls until the condition holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + SOON;
        while !holds() {
            assert!(Instant::now() < deadline, "not within {SOON:?}: {what}");
            std::thread::yield_now();
        }
    }

    /// Sends in standard mode.
    #[track_caller]
    pub(crate) fn send(&self, test_message: &TestMessage, dest: u32, tag: i32) {
        self.send_in(Mode::Standard, test_message, dest, tag);
    }

    /// Sends in synchronous mode.
    #[track_caller]
    pub(crate) fn ssend(&self, test_message: &TestMessage, dest: u32, tag: i32) {
        self.send_in(Mode::Synchronous, test_message, dest, tag);
    }

    /// Sends in this mode.
    #[track_caller]
    pub(crate) fn send_in(&self, mode: Mode, test_message: &TestMessage, dest: u32, tag: i32) {
        let message = test_message.write(self.source());
        self.comm.send(&message, dest as i32, tag, mode, &mut Uninterruptible).expect("send");
    }

    /// Starts a send. Returns `None` when it is complete.
    #[track_caller]
    pub(crate) fn isend(
        &self,
        mode: Mode,
        test_message: &TestMessage,
        dest: u32,
        tag: i32,
    ) -> Option<RequestId> {
        let message = test_message.write(self.source());
        self.comm.isend(&message, dest as i32, tag, mode).expect("isend")
    }

    /// Receives a message.
    #[track_caller]
    pub(crate) fn recv(&self, from: RecvFrom, capacity: usize) -> (Status, Message) {
        self.comm.recv(from, capacity, None, &mut Uninterruptible).expect("recv")
    }

    /// Receives a message and checks its content.
    #[track_caller]
    pub(crate) fn expect(&self, from: RecvFrom, test_message: &TestMessage) -> Status {
        let (status, message) = self.recv(from, test_message.needs());
        test_message.check(&message);
        assert_eq!(status.size, test_message.needs());
        status
    }

    /// Posts a receive.
    #[track_caller]
    pub(crate) fn post(&self, from: RecvFrom, capacity: usize) -> RequestId {
        self.comm.irecv(from, capacity, None).expect("irecv")
    }

    /// Waits for a request.
    #[track_caller]
    pub(crate) fn wait(&self, id: RequestId) -> Done {
        self.comm.wait(id, None, &mut Uninterruptible).expect("wait")
    }

    /// Waits for a receive and checks its content.
    #[track_caller]
    pub(crate) fn wait_message(&self, id: RequestId, test_message: &TestMessage) -> Status {
        let done = self.wait(id);
        test_message.check(&done.message.expect("a receive gives a message"));
        done.status.expect("a receive gives a status")
    }

    /// Waits for sends.
    #[track_caller]
    pub(crate) fn wait_all(&self, ids: impl IntoIterator<Item = Option<RequestId>>) {
        for id in ids.into_iter().flatten() {
            self.wait(id);
        }
    }

    /// Waits until a matching message has arrived, without receiving it.
    #[track_caller]
    pub(crate) fn probe(&self, from: RecvFrom) -> Status {
        self.comm.probe(from, &mut Uninterruptible).expect("probe")
    }

    /// Waits until this rank knows that another one has finished or failed.
    #[track_caller]
    pub(crate) fn wait_for_end_of(&self, peer: u32) {
        self.until("the end is known", || self.comm.iprobe(from(peer, 1)).is_err());
    }

    /// A communicator of the same members.
    #[track_caller]
    pub(crate) fn dup(&self) -> RankHarness {
        match self.comm.start_dup().finish(&mut Uninterruptible) {
            Ok(Outcome::Created(Some(comm))) => self.on(comm),
            other => panic!("dup: {other:?}"),
        }
    }

    /// A communicator of these members; `None` at a rank that is none of them.
    #[track_caller]
    pub(crate) fn create(&self, members: &[i32]) -> Option<RankHarness> {
        match self.comm.start_create(members).finish(&mut Uninterruptible) {
            Ok(Outcome::Created(comm)) => comm.map(|comm| self.on(comm)),
            other => panic!("create: {other:?}"),
        }
    }

    /// Barrier of all ranks.
    #[track_caller]
    pub(crate) fn barrier(&self) {
        self.comm.barrier(&mut Uninterruptible).expect("barrier");
    }
}
