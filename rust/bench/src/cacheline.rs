//! Bare cache line: the least time of one way between two processors, at this moment.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Round trips of one measurement, which takes a fraction of a millisecond.
const TRIPS: u64 = 1000;
/// Spins before a thread yields, since the other thread may be on the same processor.
const SPINS: u32 = 20_000;

/// Nanoseconds in which a cache line moves from one processor to another. Two threads, each bound to a
/// processor, increment one word in turn. `None` with one processor.
pub fn one_way() -> Option<f64> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let (first, second) = (processors.next()?, processors.next()?);
    let word = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            bind(second);
            (0..TRIPS).for_each(|i| step(&word, 2 * i + 1));
        });
        let asking = scope.spawn(|| {
            bind(first);
            // The first trip waits until the other thread runs.
            step(&word, 0);
            wait(&word, 2);
            let begin = Instant::now();
            (1..TRIPS).for_each(|i| step(&word, 2 * i));
            wait(&word, 2 * TRIPS);
            begin.elapsed().as_nanos() as f64 / (2 * (TRIPS - 1)) as f64
        });
        let nanos = asking.join().ok();
        answering.join().ok().and(nanos)
    })
}

/// Binds this thread to a processor, if the system allows it.
fn bind(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

fn step(word: &AtomicU64, from: u64) {
    wait(word, from);
    word.store(from + 1, Ordering::Release);
}

fn wait(word: &AtomicU64, value: u64) {
    let mut spins = 0;
    while word.load(Ordering::Acquire) != value {
        spins += 1;
        if spins % SPINS == 0 {
            std::thread::yield_now();
        }
        spin_loop();
    }
}
