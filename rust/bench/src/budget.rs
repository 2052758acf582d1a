//! Budget of a message of 8 octets over shared memory: its steps in order, the number of costly instructions
//! of each kind, and the cost of each kind on this machine. The baseline has a budget too.
//!
//! The numbers are counted in the code of `jni`, `engine` and `transport::shm`, and in `rust/bench/baseline`.
//! A change of that code that changes a number must change it here.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Instant;

use mpjdev_buffer::{Message, SectionHeader, SlabSource, Type, layout, sole_section};
use mpjdev_engine::config::Config;
use mpjdev_engine::handle_table::HandleTable;
use mpjdev_engine::lock_order::{LockRank, Mutex};
use mpjdev_engine::thread_cache::{ThreadCache, ThreadCaches};
use mpjdev_engine::{Accept, Comm, Mode, PacketEngine, RecvFrom};
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm::{self, StatusPage};
use mpjdev_transport::{PacketSource, Transport};
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::cacheline;
use crate::contestant::{JAVA_PROGRAM, NATIVE_ACCESS};
use crate::environment::Environment;
use crate::report::aligned;

/// Repetitions of a slice, and slices of a measurement.
const TIMES: u32 = 2000;
const SLICES: usize = 500;
/// Measurements of the bare line.
const LINES: usize = 50;
/// Octets of the slabs of a rank.
const SLABS: usize = 1 << 20;

/// Heads of the columns of a budget.
pub const COLUMNS: [&str; 8] =
    ["native calls", "handles", "mutexes", "spin locks", "updates", "fences", "lines", "ns"];

/// Numbers of the costly instructions of a step, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Calls from Java to native code.
    pub native_calls: u32,
    /// Handles that are locked and released: a compare-and-swap and a store each.
    pub handles: u32,
    /// Mutexes that are locked and released: a compare-and-swap and a store each.
    pub mutexes: u32,
    /// Spin locks that are locked and released: a compare-and-swap and a store each.
    pub spin_locks: u32,
    /// Other atomic read-modify-writes.
    pub updates: u32,
    /// Full fences.
    pub fences: u32,
    /// Transfers of a cache line between both processors on the path of the message.
    pub lines: u32,
}

/// A step of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Name of the step.
    pub what: Cow<'static, str>,
    /// Its costly instructions.
    pub count: Count,
}

const NONE: Count =
    Count { native_calls: 0, handles: 0, mutexes: 0, spin_locks: 0, updates: 0, fences: 0, lines: 0 };

const fn step(what: &'static str, count: Count) -> Step {
    Step { what: Cow::Borrowed(what), count }
}

/// Steps of a written message from buffer to buffer.
pub const BUFFERS: [Step; 6] = [
    step("send: communicator and buffer", Count { native_calls: 1, handles: 1, ..NONE }),
    step("send: credit", Count { updates: 1, ..NONE }),
    step("send: record in the queue", Count { mutexes: 1, lines: 1, ..NONE }),
    step("send: does the receiver sleep", Count { fences: 1, ..NONE }),
    step("recv: communicator and buffer", Count { native_calls: 1, handles: 1, ..NONE }),
    step("recv: lock, poll, match, copy", Count { mutexes: 1, lines: 1, ..NONE }),
];

/// Steps of a message from array to array without a buffer.
pub const DIRECT: [Step; 6] = [
    step("send: communicator", Count { native_calls: 1, ..NONE }),
    step("send: pack, credit", Count { updates: 1, ..NONE }),
    step("send: record in the queue", Count { mutexes: 1, lines: 1, ..NONE }),
    step("send: does the receiver sleep", Count { fences: 1, ..NONE }),
    step("recv: communicator", Count { native_calls: 1, ..NONE }),
    step("recv: lock, poll, match, copy, unpack", Count { mutexes: 1, lines: 1, ..NONE }),
];

/// Steps of a written message from buffer to buffer over the baseline.
pub const BASELINE_BUFFERS: [Step; 4] = [
    step("send: buffer", Count { native_calls: 1, handles: 1, ..NONE }),
    step("send: record in the ring", Count { spin_locks: 1, lines: 1, ..NONE }),
    step("recv: buffer", Count { native_calls: 1, handles: 1, ..NONE }),
    step("recv: poll, match, copy", Count { spin_locks: 1, lines: 1, ..NONE }),
];

/// Steps of a message from array to array over the baseline, which has no call without a buffer.
pub const BASELINE_ARRAYS: [Step; 6] = [
    step("write: buffer, copy", Count { native_calls: 1, handles: 1, ..NONE }),
    step("send: buffer", Count { native_calls: 1, handles: 1, ..NONE }),
    step("send: record in the ring", Count { spin_locks: 1, lines: 1, ..NONE }),
    step("recv: buffer", Count { native_calls: 1, handles: 1, ..NONE }),
    step("recv: poll, match, copy", Count { spin_locks: 1, lines: 1, ..NONE }),
    step("read: buffer, copy", Count { native_calls: 1, handles: 1, ..NONE }),
];

/// Nanoseconds of the kinds of costly instructions on this machine, best of many slices.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// A call from Java of a native method that does nothing but check its arguments, with the boundary that
    /// turns panics into exceptions. `None` without the Java benchmarks: it then counts as 0.
    pub native_call: Option<f64>,
    /// A handle.
    pub handle: f64,
    /// A mutex.
    pub mutex: f64,
    /// A spin lock.
    pub spin_lock: f64,
    /// Another atomic read-modify-write.
    pub update: f64,
    /// A store and a full fence.
    pub fence: f64,
    /// One way of the bare line, with two transfers: a request of one processor and the answer of the other.
    /// `None` with one processor.
    pub line: Option<f64>,
    /// A send and its receive by one thread for two ranks: all instructions without transfers of lines.
    pub exchange: f64,
}

/// The budget, as its JSON has it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Budget {
    /// Environment of the measurement.
    pub environment: Environment,
    /// Costs on this machine.
    pub costs: Costs,
    /// Steps from buffer to buffer.
    pub buffers: Vec<Step>,
    /// Steps from array to array without a buffer.
    pub direct: Vec<Step>,
    /// Steps of the baseline from buffer to buffer.
    pub baseline_buffers: Vec<Step>,
    /// Steps of the baseline from array to array.
    pub baseline_arrays: Vec<Step>,
}

impl Budget {
    /// Measures the costs, which takes about two seconds. The native call is measured by the `java` command
    /// with the class path of the Java benchmarks, if there is one.
    ///
    /// # Errors
    /// There is no memory for two ranks.
    pub fn measure(environment: Environment, java: Option<(&OsStr, &OsStr)>) -> Result<Budget, BenchError> {
        let native_call = java.and_then(|(java, class_path)| native_call(java, class_path));
        Ok(Budget::of(environment, Costs::measure(native_call)?))
    }

    fn of(environment: Environment, costs: Costs) -> Budget {
        Budget {
            environment,
            costs,
            buffers: BUFFERS.to_vec(),
            direct: DIRECT.to_vec(),
            baseline_buffers: BASELINE_BUFFERS.to_vec(),
            baseline_arrays: BASELINE_ARRAYS.to_vec(),
        }
    }

    /// Paths of a message with their titles.
    pub fn paths(&self) -> [(&'static str, &[Step]); 4] {
        [
            ("buffer to buffer", &self.buffers),
            ("array to array, direct", &self.direct),
            ("baseline, buffer to buffer", &self.baseline_buffers),
            ("baseline, array to array", &self.baseline_arrays),
        ]
    }

    /// All paths as tables, and the costs.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (title, steps) in self.paths() {
            let mut lines = vec![[title].iter().chain(&COLUMNS).map(ToString::to_string).collect::<Vec<_>>()];
            lines.extend(self.rows(steps));
            text += &aligned(&lines);
            text.push('\n');
        }
        for (name, cost) in self.costs.names() {
            let cost = cost.map_or("not measured".to_owned(), |nanos| format!("{nanos:.1} ns"));
            text += &format!("{name}: {cost}\n");
        }
        text
    }

    /// Cells of all steps of a path and of their sum.
    pub fn rows(&self, steps: &[Step]) -> Vec<Vec<String>> {
        let row = |step: &Step| self.row(&step.what, step.count);
        steps.iter().map(row).chain([self.row("sum", sum(steps))]).collect()
    }

    fn row(&self, what: &str, count: Count) -> Vec<String> {
        let Count { native_calls, handles, mutexes, spin_locks, updates, fences, lines } = count;
        let counts = [native_calls, handles, mutexes, spin_locks, updates, fences, lines];
        let cell = |count: u32| if count == 0 { String::new() } else { count.to_string() };
        let mut row = vec![what.to_owned()];
        row.extend(counts.map(cell));
        row.push(format!("{:.0}", self.costs.of(count)));
        row
    }
}

/// Sum of the steps.
pub fn sum(steps: &[Step]) -> Count {
    steps.iter().fold(NONE, |sum, Step { count, .. }| Count {
        native_calls: sum.native_calls + count.native_calls,
        handles: sum.handles + count.handles,
        mutexes: sum.mutexes + count.mutexes,
        spin_locks: sum.spin_locks + count.spin_locks,
        updates: sum.updates + count.updates,
        fences: sum.fences + count.fences,
        lines: sum.lines + count.lines,
    })
}

impl Costs {
    fn measure(native_call: Option<f64>) -> Result<Costs, BenchError> {
        // As in a process of Java: its first message makes the release of a mutex cheap.
        let caches = ThreadCaches::new();
        ThreadCache::new(&caches).store(1, ());
        let lock = AtomicU32::new(0);
        let word = AtomicU64::new(0);
        let mutex = Mutex::new(LockRank::Leaf, 0_u64);
        let table = HandleTable::new();
        let handle = table.insert(0_u64).map_or(0, |handle| handle);
        let mut ranks = Ranks::new()?;
        let mut lines: Vec<f64> = (0..LINES).filter_map(|_| cacheline::one_way()).collect();
        lines.sort_by(f64::total_cmp);
        Ok(Costs {
            native_call,
            handle: best(|| {
                let _ = black_box(table.lock(handle).is_ok());
            }),
            mutex: best(|| *mutex.lock() += 1),
            spin_lock: best(|| {
                let _ = black_box(lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed));
                lock.store(0, Ordering::Release);
            }),
            update: best(|| {
                black_box(word.fetch_add(1, Ordering::Relaxed));
            }),
            fence: best(|| {
                word.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
            }),
            line: lines.get(lines.len() / 2).copied(),
            exchange: best(|| ranks.exchange()),
        })
    }

    /// Each cost with its name in reports.
    pub fn names(&self) -> [(&'static str, Option<f64>); 8] {
        [
            ("native call from Java", self.native_call),
            ("handle", Some(self.handle)),
            ("mutex", Some(self.mutex)),
            ("spin lock of the baseline", Some(self.spin_lock)),
            ("update", Some(self.update)),
            ("store and fence", Some(self.fence)),
            ("bare line, one way with two transfers", self.line),
            ("send and receive by one thread, all instructions", Some(self.exchange)),
        ]
    }

    /// Nanoseconds of the counted instructions. One way of a bare line has two transfers.
    fn of(&self, count: Count) -> f64 {
        let each = [
            (count.native_calls, self.native_call.unwrap_or(0.0)),
            (count.handles, self.handle),
            (count.mutexes, self.mutex),
            (count.spin_locks, self.spin_lock),
            (count.updates, self.update),
            (count.fences, self.fence),
            (count.lines, self.line.unwrap_or(0.0) / 2.0),
        ];
        each.into_iter().map(|(n, nanos)| f64::from(n) * nanos).sum()
    }
}

/// Nanoseconds of a native call, as the Java benchmarks measure it. `None` if they cannot be run.
fn native_call(java: &OsStr, class_path: &OsStr) -> Option<f64> {
    let mut command = Command::new(java);
    command.arg(NATIVE_ACCESS).arg("-cp").arg(class_path).args([JAVA_PROGRAM, "native-call"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())?;
    text.trim().parse().ok()
}

/// Nanoseconds of one call, best of the slices.
fn best(mut call: impl FnMut()) -> f64 {
    let slice = |call: &mut dyn FnMut()| {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| call());
        begun.elapsed().as_nanos() as f64 / f64::from(TIMES)
    };
    (0..SLICES).map(|_| slice(&mut call)).fold(f64::INFINITY, f64::min)
}

/// Two ranks that share memory, in one thread.
struct Ranks {
    sender: Comm,
    receiver: Comm,
    message: Message,
    received: Option<Message>,
}

impl Ranks {
    fn new() -> Result<Ranks, BenchError> {
        let config = Config::default();
        let memory = |error| BenchError::system("memory of two ranks")(error);
        let create = |rank| shm::create(rank, 2, SLABS, &config, HeapPool::new(1 << 30));
        let pools = [create(0).map_err(memory)?, create(1).map_err(memory)?];
        let status_page = StatusPage::create(2).map_err(memory)?;
        let mut comms = Vec::new();
        for (rank, pool) in (0..).zip(&pools) {
            let files = [pools[0].share().map_err(memory)?, pools[1].share().map_err(memory)?];
            let job = shm::Job::open(status_page.files(), files.into()).map_err(memory)?;
            let (transport, source) = shm::connect(rank, &config, pool.clone(), Arc::new(job));
            let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport, Box::new(source));
            let engine = PacketEngine::new(rank, 2, config.clone(), ends, pool.clone());
            comms.push(Comm::world(Arc::new(engine)));
        }
        let section = SectionHeader { element: Type::Double, count: 1 };
        let no_room =
            |error: &dyn std::fmt::Display| BenchError::Missing(format!("memory of a message: {error}"));
        let len = layout::MESSAGE_OVERHEAD + sole_section::primary_len(section).map_err(|e| no_room(&e))?;
        let mut message = Message::from_empty_slab(pools[0].take(len).map_err(|e| no_room(&e))?);
        let _ = message.write_sole_section::<()>(section, |_| Ok(()));
        let (Some(receiver), Some(sender)) = (comms.pop(), comms.pop()) else { unreachable!("two ranks") };
        Ok(Ranks { sender, receiver, message, received: None })
    }

    /// Sends the message and receives it.
    fn exchange(&mut self) {
        let sent = self.sender.isend(&self.message, 1, 1, Mode::Standard);
        debug_assert!(matches!(sent, Ok(None)));
        let from = RecvFrom { source: Some(0), tag: Some(1) };
        let spins = self.receiver.config().spins;
        let outcome = self.receiver.try_recv_polling(from, 64, Accept::Packed, &mut self.received, spins);
        debug_assert!(outcome.is_ok());
        let _ = black_box((sent, outcome));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const COSTS: Costs = Costs {
        native_call: None,
        handle: 1.0,
        mutex: 10.0,
        spin_lock: 1.0,
        update: 100.0,
        fence: 1e3,
        line: None,
        exchange: 0.0,
    };

    #[test]
    fn message_of_two_ranks_in_one_thread_is_received() {
        let mut ranks = Ranks::new().expect("memory");
        (0..3000).for_each(|_| ranks.exchange());
        let message = ranks.received.expect("received");
        assert_eq!(message.sole_section(Type::Double, 1).expect("one double").0, 1);
    }

    #[test]
    fn sum_has_all_steps_and_its_cost_is_that_of_the_kinds() {
        let total = sum(&BUFFERS);
        let expected =
            Count { native_calls: 2, handles: 2, mutexes: 2, updates: 1, fences: 1, lines: 2, ..NONE };
        assert_eq!(total, expected);
        let costs = Costs { native_call: Some(1e5), line: Some(1e4), ..COSTS };
        assert!((costs.of(total) - 211_122.0).abs() < 1e-6, "{}", costs.of(total));
        assert!((COSTS.of(total) - 1122.0).abs() < 1e-6, "unknown costs are 0");
    }

    #[test]
    fn baseline_has_one_handle_per_native_call_and_no_fence() {
        for steps in [&BASELINE_BUFFERS[..], &BASELINE_ARRAYS] {
            let total = sum(steps);
            assert_eq!((total.native_calls, total.spin_locks, total.lines), (total.handles, 2, 2));
            assert_eq!((total.mutexes, total.updates, total.fences), (0, 0, 0));
        }
    }

    #[test]
    fn text_names_each_step_once_and_its_sum() {
        let environment = Environment::now([], Path::new("/"), OsStr::new("java"));
        let text = Budget::of(environment, COSTS).text();
        assert!(BUFFERS.iter().all(|step| text.contains(&*step.what)), "{text}");
        assert_eq!(text.matches("\nsum ").count(), 4, "{text}");
        assert!(text.contains("native call from Java: not measured\n"), "{text}");
    }
}
