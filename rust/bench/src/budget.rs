//! Budget of a message of 8 octets over shared memory: its steps in the order in which they happen, how often
//! each kind of costly instruction occurs, and what the kinds cost on this machine.
//!
//! The numbers of a step are counted in the code of `jni`, `engine` and `transport::shm`. A change there that
//! changes them changes them here.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use mpjdev_buffer::{Message, SectionHeader, SlabSource, Type, layout, sole_section};
use mpjdev_engine::config::Config;
use mpjdev_engine::handle_table::HandleTable;
use mpjdev_engine::lock_order::{LockRank, Mutex};
use mpjdev_engine::{Accept, Comm, Mode, PacketEngine, RecvFrom};
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm::{self, StatusPage};
use mpjdev_transport::{PacketSource, Transport};
use serde::Serialize;

use crate::BenchError;
use crate::cacheline;
use crate::report::aligned;

/// Repetitions of one slice, and slices of one measurement.
const TIMES: u32 = 2000;
const SLICES: usize = 500;
/// Measurements of the bare line.
const LINES: usize = 50;
/// Octets of the slabs of a rank.
const SLABS: usize = 1 << 20;

/// Numbers of the costly instructions of a step, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Calls from Java to native code.
    pub native_calls: u32,
    /// Handles that are taken and released: a compare-and-swap and a store each.
    pub handles: u32,
    /// Mutexes that are taken and released: a compare-and-swap and a swap each.
    pub mutexes: u32,
    /// Other atomic read-modify-writes.
    pub updates: u32,
    /// Full fences.
    pub fences: u32,
    /// Cache lines that the other processor has to give up or to send, on the way of the message.
    pub lines: u32,
}

/// A step of a message.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Step {
    /// Name of the step.
    pub what: &'static str,
    /// Its costly instructions.
    pub count: Count,
}

const NONE: Count = Count { native_calls: 0, handles: 0, mutexes: 0, updates: 0, fences: 0, lines: 0 };

/// Steps of a message from buffer to buffer: it is written already.
pub const BUFFERS: [Step; 6] = [
    Step { what: "send: communicator and buffer", count: Count { native_calls: 1, handles: 2, ..NONE } },
    Step { what: "send: credit", count: Count { updates: 1, ..NONE } },
    Step { what: "send: record in the queue", count: Count { mutexes: 1, lines: 1, ..NONE } },
    Step { what: "send: does the receiver sleep", count: Count { fences: 1, ..NONE } },
    Step { what: "recv: communicator and buffer", count: Count { native_calls: 1, handles: 2, ..NONE } },
    Step { what: "recv: poll, match, copy", count: Count { mutexes: 1, lines: 1, ..NONE } },
];

/// Steps of a message from array to array by the direct way.
pub const DIRECT: [Step; 6] = [
    Step { what: "send: communicator", count: Count { native_calls: 1, handles: 1, ..NONE } },
    Step { what: "send: pack, credit", count: Count { updates: 1, ..NONE } },
    Step { what: "send: record in the queue", count: Count { mutexes: 1, lines: 1, ..NONE } },
    Step { what: "send: does the receiver sleep", count: Count { fences: 1, ..NONE } },
    Step { what: "recv: communicator", count: Count { native_calls: 1, handles: 1, ..NONE } },
    Step { what: "recv: poll, match, copy, unpack", count: Count { mutexes: 1, lines: 1, ..NONE } },
];

/// Nanoseconds of the kinds of costly instructions on this machine, best of many slices.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Costs {
    /// A handle.
    pub handle: f64,
    /// A mutex.
    pub mutex: f64,
    /// Another atomic read-modify-write.
    pub update: f64,
    /// A store and a full fence.
    pub fence: f64,
    /// One way of the bare line, which a processor gives up and the other one takes; `None` with one
    /// processor.
    pub line: Option<f64>,
    /// A send and its receive by one thread for two ranks: all instructions, and no line crosses.
    pub both: f64,
}

/// The budget, as JSON has it.
#[derive(Debug, Serialize)]
pub struct Budget {
    /// Costs on this machine.
    pub costs: Costs,
    /// From buffer to buffer.
    pub buffers: Vec<Step>,
    /// From array to array.
    pub direct: Vec<Step>,
}

impl Budget {
    /// Measures the costs, which takes about a second.
    ///
    /// # Errors
    /// There is no memory for two ranks.
    pub fn measure() -> Result<Budget, BenchError> {
        Ok(Budget { costs: Costs::measure()?, buffers: BUFFERS.to_vec(), direct: DIRECT.to_vec() })
    }

    /// Both ways as tables, and the costs.
    pub fn text(&self) -> String {
        let Costs { handle, mutex, update, fence, line, both } = self.costs;
        let mut text = String::new();
        for (name, steps) in [("buffer to buffer", &self.buffers), ("array to array, direct", &self.direct)] {
            let heads = ["native calls", "handles", "mutexes", "updates", "fences", "lines", "ns"];
            let mut lines = vec![[name].iter().chain(&heads).map(ToString::to_string).collect::<Vec<_>>()];
            lines.extend(steps.iter().map(|step| self.row(step.what, step.count)));
            lines.push(self.row("sum", sum(steps)));
            text += &aligned(&lines);
            text.push('\n');
        }
        let line = line.map_or("-".to_owned(), |line| format!("{line:.0} ns"));
        text += &format!(
            "handle {handle:.1} ns, mutex {mutex:.1} ns, update {update:.1} ns, \
             store and fence {fence:.1} ns\n\
             bare line, given up and taken: {line}\n\
             send and receive by one thread, all instructions: {both:.1} ns\n"
        );
        text
    }

    fn row(&self, what: &str, count: Count) -> Vec<String> {
        let Count { native_calls, handles, mutexes, updates, fences, lines } = count;
        let counts = [native_calls, handles, mutexes, updates, fences, lines].map(|n| match n {
            0 => String::new(),
            n => n.to_string(),
        });
        let mut row = vec![what.to_owned()];
        row.extend(counts);
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
        updates: sum.updates + count.updates,
        fences: sum.fences + count.fences,
        lines: sum.lines + count.lines,
    })
}

impl Costs {
    fn measure() -> Result<Costs, BenchError> {
        let word = AtomicU64::new(0);
        let mutex = Mutex::new(LockRank::Leaf, 0_u64);
        let table = HandleTable::new();
        let handle = table.insert(0_u64).map_or(0, |handle| handle);
        let mut ranks = Ranks::new()?;
        let mut lines: Vec<f64> = (0..LINES).filter_map(|_| cacheline::one_way()).collect();
        lines.sort_by(f64::total_cmp);
        Ok(Costs {
            handle: best(|| {
                let _ = black_box(table.lock(handle).is_ok());
            }),
            mutex: best(|| *mutex.lock() += 1),
            update: best(|| {
                black_box(word.fetch_add(1, Ordering::Relaxed));
            }),
            fence: best(|| {
                word.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
            }),
            line: lines.get(lines.len() / 2).copied(),
            both: best(|| ranks.exchange()),
        })
    }

    /// Nanoseconds of what is counted. A bare line one way is given up once and taken once.
    fn of(&self, count: Count) -> f64 {
        let each = [
            (count.handles, self.handle),
            (count.mutexes, self.mutex),
            (count.updates, self.update),
            (count.fences, self.fence),
            (count.lines, self.line.unwrap_or(0.0) / 2.0),
        ];
        each.into_iter().map(|(n, nanos)| f64::from(n) * nanos).sum()
    }
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
    place: Option<Message>,
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
        let mut message = Message::around(pools[0].take(len).map_err(|e| no_room(&e))?);
        let _ = message.write_sole_section::<()>(section, |_| Ok(()));
        let (Some(receiver), Some(sender)) = (comms.pop(), comms.pop()) else { unreachable!("two ranks") };
        Ok(Ranks { sender, receiver, message, place: None })
    }

    /// Sends the message and receives it.
    fn exchange(&mut self) {
        let sent = self.sender.isend(&self.message, 1, 1, Mode::Standard);
        debug_assert!(matches!(sent, Ok(None)));
        let from = RecvFrom { source: Some(0), tag: Some(1) };
        let received = self.receiver.try_recv_spinning(from, 64, Accept::Packed, &mut self.place);
        debug_assert!(received.is_ok());
        let _ = black_box((sent, received));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_two_ranks_in_one_thread_is_received() {
        let mut ranks = Ranks::new().expect("memory");
        (0..3000).for_each(|_| ranks.exchange());
        let message = ranks.place.expect("received");
        assert_eq!(message.sole_section(Type::Double, 1).expect("one double").0, 1);
    }

    #[test]
    fn sum_has_all_steps_and_its_cost_is_that_of_the_kinds() {
        let total = sum(&BUFFERS);
        assert_eq!(total, Count { native_calls: 2, handles: 4, mutexes: 2, updates: 1, fences: 1, lines: 2 });
        let costs = Costs { handle: 1.0, mutex: 10.0, update: 100.0, fence: 1e3, line: Some(1e4), both: 0.0 };
        assert!((costs.of(total) - 11_124.0).abs() < 1e-6, "{}", costs.of(total));
    }

    #[test]
    fn text_names_each_step_once_and_its_sum() {
        let costs = Costs { handle: 1.0, mutex: 2.0, update: 3.0, fence: 4.0, line: None, both: 5.0 };
        let text = Budget { costs, buffers: BUFFERS.to_vec(), direct: DIRECT.to_vec() }.text();
        assert!(BUFFERS.iter().all(|step| text.contains(step.what)), "{text}");
        assert_eq!(text.matches("\nsum ").count(), 2, "{text}");
    }
}
