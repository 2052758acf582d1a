//! Every interleaving of small pieces of code that share a queue, a table or a futex.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-sys --release --test loom --target-dir target/loom
//! ```
//!
//! The longer models are bounded: the preemptions of one run are limited (loom's authors find
//! two or three enough for nearly all faults). The others run through all interleavings, and all values that
//! the memory model allows.
#![cfg(loom)]

#[path = "loom/explore.rs"]
mod explore;

use std::time::Duration;

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use loom::sync::{Arc, Mutex};
use loom::thread;

use mpjdev_sys::futex::Futex;
use mpjdev_sys::handle_table::{HandleError, HandleTable};
use mpjdev_sys::queue::{Consumer, Queue};
use mpjdev_sys::raw_lock::RawLock;
use mpjdev_sys::thread_cache::{ThreadCache, ThreadCaches};
use mpjdev_sys::wake_request::WakeRequest;

use explore::explore;

const NEVER: Duration = Duration::MAX;

// ---- The lock

/// Adds 1 under the lock. The value is written with loads and stores that the lock alone keeps apart.
fn add(lock: &RawLock, value: &AtomicU32) {
    lock.lock();
    value.store(value.load(Relaxed) + 1, Relaxed);
    lock.unlock();
}

/// A thread that goes to sleep while the owner releases the lock is woken: the model's sleeps never time out.
#[test]
fn lock_keeps_two_threads_apart_and_wakes_the_sleeper() {
    explore(3, || {
        let shared = Arc::new((RawLock::new(), AtomicU32::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || (0..2).for_each(|_| add(&shared.0, &shared.1)))
        };
        add(&shared.0, &shared.1);
        other.join().unwrap();
        assert_eq!(shared.1.load(Relaxed), 3);
        assert!(!shared.0.is_wanted() && shared.0.try_lock() && !shared.0.try_lock());
    });
}

#[test]
fn each_sleeper_of_a_lock_is_woken() {
    explore(2, || {
        let shared = Arc::new((RawLock::new(), AtomicU32::new(0)));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || add(&shared.0, &shared.1))
            })
            .collect();
        add(&shared.0, &shared.1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(shared.1.load(Relaxed), 3);
    });
}

// ---- The queue

/// Takes `count` values, yielding while there are none.
fn take(right: &mut Consumer<u32>, count: usize) -> Vec<u32> {
    let mut taken = Vec::new();
    while taken.len() < count {
        match right.pop(|v| *v) {
            Some(value) => taken.push(value),
            None => thread::yield_now(),
        }
    }
    taken
}

fn put(queue: &Queue<u32>, value: u32) {
    while !queue.push(|v| *v = value) {
        thread::yield_now();
    }
}

/// A value is whole when it is taken: the stamp orders the producer's write before the consumer's read. Three
/// values through two cells also make the producer wait for the consumer's stamp.
#[test]
fn values_of_a_producer_arrive_whole_and_in_order_over_several_laps() {
    explore(3, || {
        let (queue, mut right) = Queue::new(2);
        let producer = thread::spawn(move || (1..=3).for_each(|value| put(&queue, value)));
        assert_eq!(take(&mut right, 3), [1, 2, 3]);
        producer.join().unwrap();
        assert_eq!(right.pop(|v| *v), None);
    });
}

/// As above where the 32 bits of the stamps begin again.
#[test]
fn values_arrive_whole_and_in_order_where_the_stamps_wrap() {
    explore(3, || {
        let (queue, mut right) = Queue::starting_in_lap((1 << 31) - 1, 1);
        let producer = thread::spawn(move || (1..=3).for_each(|value| put(&queue, value)));
        assert_eq!(take(&mut right, 3), [1, 2, 3]);
        producer.join().unwrap();
        assert_eq!(right.pop(|v| *v), None);
    });
}

/// Two producers never get the same cell, and each one's values stay in order.
#[test]
fn values_of_two_producers_arrive_once_and_in_order_per_producer() {
    explore(2, || {
        let (queue, mut right) = Queue::new(4);
        let producers = [10, 20].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                put(&queue, first);
                put(&queue, first + 1);
            })
        });
        let taken = take(&mut right, 4);
        producers.into_iter().for_each(|p| p.join().unwrap());
        for first in [10, 20] {
            let own: Vec<u32> = taken.iter().copied().filter(|v| v / 10 == first / 10).collect();
            assert_eq!(own, [first, first + 1]);
        }
    });
}

/// Two producers and one cell: the one that finds it full is refused, and no value is lost or doubled.
#[test]
fn full_queue_refuses_and_keeps_its_values() {
    explore(3, || {
        let (queue, mut right) = Queue::new(1);
        let producers = [1, 2].map(|value| {
            let queue = queue.clone();
            thread::spawn(move || queue.push(|v| *v = value).then_some(value))
        });
        let early = right.pop(|v| *v);
        let mut pushed: Vec<u32> = producers.into_iter().filter_map(|p| p.join().unwrap()).collect();
        let mut taken: Vec<u32> = early.into_iter().chain(std::iter::from_fn(|| right.pop(|v| *v))).collect();
        assert!(!pushed.is_empty(), "a push into an empty queue was refused");
        assert!(pushed.len() == 1 || early.is_some(), "two values went into one cell");
        pushed.sort_unstable();
        taken.sort_unstable();
        assert_eq!(pushed, taken);
    });
}

/// The head that is read may be newer than the stamp that is: then nothing is known to be there, and waiting
/// for the newer stamp, which nothing has ordered, need not end.
#[test]
fn is_ready_returns_while_the_consumer_pops() {
    explore(3, || {
        let (queue, mut right) = Queue::<u32>::new(2);
        put(&queue, 1);
        put(&queue, 2);
        let other = queue.clone();
        let requester = thread::spawn(move || {
            other.is_ready();
        });
        assert_eq!(take(&mut right, 2), [1, 2]);
        requester.join().unwrap();
        assert!(!queue.is_ready());
    });
}

/// Another thread than the consumer may ask too: once everything is quiet, the answer is right.
#[test]
fn is_ready_sees_every_value_in_the_queue() {
    explore(None, || {
        let (queue, mut right) = Queue::<u32>::new(2);
        put(&queue, 1);
        let other = queue.clone();
        let producer = thread::spawn(move || put(&other, 2));
        assert!(queue.is_ready());
        assert_eq!(right.pop(|v| *v), Some(1));
        producer.join().unwrap();
        assert!(queue.is_ready());
        assert_eq!(right.pop(|v| *v), Some(2));
        assert!(!queue.is_ready());
    });
}

// ---- The table

/// Of two threads that use one value at once, one is refused and the other alone with it.
#[test]
fn value_is_used_by_one_thread_at_a_time() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let handle = table.insert(0).unwrap();
        let other = table.clone();
        let add = move |table: &HandleTable<i32>| match table.lock(handle) {
            Ok(mut guard) => {
                guard.with(|v| *v += 1);
                1
            }
            Err(refused) => {
                assert_eq!(refused, HandleError::Busy);
                0
            }
        };
        let thread = thread::spawn(move || add(&other));
        let uses = add(&table) + thread.join().unwrap();
        assert!(uses >= 1);
        assert_eq!(table.remove(handle), Ok(uses));
    });
}

/// A spinning lock waits for the other use and sees what it did.
#[test]
fn lock_spinning_waits_for_the_other_use() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let handle = table.insert(0).unwrap();
        let other = table.clone();
        let add = move |table: &HandleTable<i32>| table.lock_spinning(handle).unwrap().with(|v| *v += 1);
        let thread = thread::spawn(move || add(&other));
        add(&table);
        thread.join().unwrap();
        assert_eq!(table.remove(handle), Ok(2));
    });
}

/// A use and a removal: the use is either over before, or finds the handle stale.
#[test]
fn value_in_use_is_not_removed() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let handle = table.insert(0).unwrap();
        let other = table.clone();
        let user = thread::spawn(move || match other.lock_spinning(handle) {
            Ok(mut guard) => {
                guard.with(|v| *v += 1);
                1
            }
            Err(refused) => {
                assert_eq!(refused, HandleError::Stale);
                0
            }
        });
        let removed = table.remove(handle).unwrap();
        let used = user.join().unwrap();
        assert_eq!(removed, used);
        assert!(matches!(table.lock(handle), Err(HandleError::Stale)));
        assert!(table.is_empty());
    });
}

/// Only one of two removals gets the value.
#[test]
fn two_removals_return_the_value_once() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let handle = table.insert(7).unwrap();
        let other = table.clone();
        let thread = thread::spawn(move || other.remove(handle));
        let outcomes = [table.remove(handle), thread.join().unwrap()];
        assert!(outcomes.contains(&Ok(7)) && outcomes.contains(&Err(HandleError::Stale)), "{outcomes:?}");
    });
}

/// One thread removes and inserts again into the same slot, another one uses the old handle all the while: it
/// sees the old value or nothing.
#[test]
fn stale_handle_never_finds_another_value() {
    explore(3, || {
        let table = Arc::new(HandleTable::new());
        let old = table.insert(1).unwrap();
        let other = table.clone();
        let user = thread::spawn(move || {
            for _ in 0..2 {
                match other.lock(old) {
                    Ok(mut guard) => assert_eq!(guard.with(|v| *v), 1),
                    Err(refused) => assert!(matches!(refused, HandleError::Stale | HandleError::Busy)),
                }
            }
        });
        assert_eq!(table.remove(old), Ok(1));
        let new = table.insert(2).unwrap();
        assert_eq!(old as u32, new as u32, "the slot is used again");
        assert_ne!(old, new);
        assert_eq!(table.lock(new).unwrap().with(|v| *v), 2);
        user.join().unwrap();
        assert_eq!(table.remove(new), Ok(2));
    });
}

/// A slot that one thread gives back is written by the other one, which has it from the free list
/// alone.
#[test]
fn removed_handle_stays_stale_while_another_thread_reuses_its_slot() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let first = table.insert(1).unwrap();
        let other = table.clone();
        let inserter = thread::spawn(move || {
            let handle = other.insert(2).unwrap();
            assert_eq!(other.lock(handle).unwrap().with(|v| *v), 2);
            handle
        });
        assert_eq!(table.remove(first), Ok(1));
        let second = inserter.join().unwrap();
        assert_ne!(first, second);
        assert!(matches!(table.lock(first), Err(HandleError::Stale)));
        assert_eq!(table.remove(second), Ok(2));
    });
}

/// A handle that got to another thread unordered, or was guessed, shows the whole value or nothing.
#[test]
fn handle_of_an_unseen_insertion_finds_its_value_or_is_stale() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let earlier = table.insert(6).unwrap();
        table.remove(earlier).unwrap();
        // The slot's next generation.
        let next = earlier + (2 << 32);
        let other = table.clone();
        let guesser = thread::spawn(move || match other.lock(next) {
            Ok(mut guard) => assert_eq!(guard.with(|v| *v), 7),
            Err(refused) => assert_eq!(refused, HandleError::Stale),
        });
        assert_eq!(table.insert(7), Ok(next));
        guesser.join().unwrap();
        assert_eq!(table.remove(next), Ok(7));
    });
}

/// The table is full with two values here, and refuses the third one unharmed.
#[test]
fn concurrent_insertions_get_different_slots() {
    explore(None, || {
        let table = Arc::new(HandleTable::new());
        let other = table.clone();
        let thread = thread::spawn(move || other.insert(1).unwrap());
        let handles = [table.insert(2).unwrap(), thread.join().unwrap()];
        assert_ne!(handles[0] as u32, handles[1] as u32);
        assert_eq!(table.insert(3), Err((3, HandleError::Full)));
        assert_eq!(handles.map(|h| table.remove(h)), [Ok(2), Ok(1)]);
    });
}

// ---- The futex

/// Sleeps until the flag is set. loom reports a deadlock when a wake is lost, since time never ends this
/// sleep.
fn sleep_until(futex: &Futex, flag: &AtomicBool) {
    while !flag.load(Relaxed) {
        futex.sleep(NEVER, || flag.load(Relaxed));
    }
}

/// The flag is as weak as can be: the futex's own fences must make up for it.
#[test]
fn wake_before_or_during_a_sleep_ends_it() {
    explore(None, || {
        let shared = Arc::new((Futex::new(), AtomicBool::new(false)));
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || sleep_until(&shared.0, &shared.1))
        };
        shared.1.store(true, Relaxed);
        shared.0.wake();
        sleeper.join().unwrap();
    });
}

#[test]
fn one_wake_ends_both_sleeps() {
    explore(3, || {
        let shared = Arc::new((Futex::new(), AtomicBool::new(false)));
        let sleepers = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || sleep_until(&shared.0, &shared.1))
        });
        shared.1.store(true, Relaxed);
        shared.0.wake();
        sleepers.into_iter().for_each(|s| s.join().unwrap());
    });
}

/// Each waits for its own word; the wake of one must not use up the other's.
#[test]
fn wakes_of_two_threads_reach_one_sleeper() {
    explore(3, || {
        let shared = Arc::new((Futex::new(), [AtomicBool::new(false), AtomicBool::new(false)]));
        let wakers = [0, 1].map(|i| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1[i].store(true, Relaxed);
                shared.0.wake();
            })
        });
        sleep_until(&shared.0, &shared.1[0]);
        sleep_until(&shared.0, &shared.1[1]);
        wakers.into_iter().for_each(|r| r.join().unwrap());
    });
}

// ---- The wake request

/// Work is left while an earlier request is still set: the request is set again, or the answering thread
/// finds the work. The store of the work is relaxed, so the fences of the request must order it.
#[test]
fn work_before_a_request_is_found_though_an_earlier_request_is_set() {
    explore(None, || {
        let shared = Arc::new((WakeRequest::default(), Futex::new(), AtomicBool::new(false)));
        assert!(shared.0.set());
        let answerer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (request, futex, has_ended) = &*shared;
                loop {
                    request.take();
                    if has_ended.load(Relaxed) {
                        break;
                    }
                    futex.sleep(NEVER, || request.is_set());
                }
            })
        };
        let (request, futex, has_ended) = &*shared;
        has_ended.store(true, Relaxed);
        if request.set() {
            futex.wake();
        }
        answerer.join().unwrap();
    });
}

/// The end of a request never hides work: a request that was set after the last take stays pending.
#[test]
fn completed_request_keeps_one_that_is_set_meanwhile() {
    explore(None, || {
        let request = Arc::new(WakeRequest::default());
        assert!(request.set() && request.take());
        let setter = {
            let request = request.clone();
            thread::spawn(move || assert!(request.set()))
        };
        request.complete();
        setter.join().unwrap();
        assert!(request.is_set() && request.is_pending());
    });
}

// ---- Queue and futex together, as the local transport uses them

/// The consumer sleeps on the futex while the queue is empty.
#[test]
fn push_wakes_a_sleeping_consumer() {
    explore(3, || {
        let futex = Arc::new(Futex::new());
        let (queue, mut right) = Queue::<u32>::new(2);
        let producer = {
            let (queue, futex) = (queue.clone(), futex.clone());
            thread::spawn(move || {
                for value in [1, 2] {
                    put(&queue, value);
                    futex.wake();
                }
            })
        };
        for value in [1, 2] {
            let taken = loop {
                match right.pop(|v| *v) {
                    Some(taken) => break taken,
                    None => futex.sleep(NEVER, || queue.is_ready()),
                }
            };
            assert_eq!(taken, value);
        }
        producer.join().unwrap();
    });
}

/// One thread sleeps, another one takes the first value, a third one puts the second: the sleeper must see
/// that one, though its own idea of the queue's head may be old.
#[test]
fn sleeper_sees_the_values_that_another_consumer_left() {
    explore(3, || {
        let futex = Arc::new(Futex::new());
        let (queue, right) = Queue::<u32>::new(4);
        put(&queue, 1);
        let right = Arc::new(Mutex::new(right));
        let taker = {
            let right = right.clone();
            thread::spawn(move || right.lock().unwrap().pop(|v| *v))
        };
        let producer = {
            let (queue, futex) = (queue.clone(), futex.clone());
            thread::spawn(move || {
                put(&queue, 2);
                futex.wake();
            })
        };
        // Deadlocks if it sleeps although the second value is there: no further wake-up follows.
        futex.sleep(NEVER, || queue.is_ready());
        assert_eq!(taker.join().unwrap(), Some(1));
        producer.join().unwrap();
        assert!(queue.is_ready());
        assert_eq!(right.lock().unwrap().pop(|v| *v), Some(2));
    });
}

// ---- Values cached by threads

/// A value is never taken while its thread uses it, and one of both threads drops it.
#[test]
fn cached_value_is_used_or_taken_and_then_dropped_once() {
    explore(3, || {
        let all = Arc::new(ThreadCaches::new());
        let value = Arc::new(());
        let (theirs, original) = (all.clone(), value.clone());
        let owner = thread::spawn(move || {
            let own = ThreadCache::new(&theirs);
            own.store(1, original);
            for _ in 0..2 {
                let _ = own.with_key(1).map(|value| Arc::strong_count(&value));
            }
        });
        all.take(|key| key == 1);
        owner.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}
