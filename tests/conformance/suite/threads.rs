//! Many threads of one rank (MPI_THREAD_MULTIPLE).

use std::time::{Duration, Instant};

use mpjdev_engine::{Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    eight_threads_of_each_rank_exchange_messages_under_their_own_tags,
    eight_threads_of_each_rank_use_synchronous_and_non_blocking_operations,
    a_thread_that_only_tests_wakes_those_that_wait,
    parked_receivers_wake_in_the_order_of_their_messages,
    threads_that_probe_and_threads_that_receive_share_a_rank,
    no_wake_up_is_lost_when_every_wait_sleeps_at_once,
    no_wake_up_is_lost_when_several_threads_of_a_rank_sleep_at_once,
    all_threads_that_wait_for_one_request_are_woken,
];

const THREADS: usize = 8;

fn test_message(tag: usize, i: usize) -> TestMessage {
    let seed = (tag << 32 | i) as u64;
    match (tag + i) % 4 {
        0 => TestMessage::plain(seed, 64),
        1 => TestMessage::plain(seed, 3000),
        2 => TestMessage::split(seed, 64, 300),
        _ => TestMessage::appended(seed, 64, 301),
    }
}

fn eight_threads_of_each_rank_exchange_messages_under_their_own_tags(fixture: &TransportFixture) {
    let count = amount(40, 5000);
    run(fixture, 3, |harness| {
        let (next, before) = ((harness.rank() + 1) % 3, (harness.rank() + 2) % 3);
        harness.threads(THREADS, |k| {
            for i in 0..count {
                let sent = harness.isend(Mode::Standard, &test_message(k, i), next, k as i32);
                harness.expect(from(before, k as i32), &test_message(k, i));
                harness.wait_all([sent]);
            }
        });
    });
}

fn eight_threads_of_each_rank_use_synchronous_and_non_blocking_operations(fixture: &TransportFixture) {
    let count = amount(40, 5000);
    run(fixture, 2, |harness| {
        let peer = 1 - harness.rank();
        harness.threads(THREADS, |k| {
            let tag = k as i32;
            for i in 0..count {
                let modes = [Mode::Standard, Mode::Synchronous];
                let sent = harness.isend(modes[i % 2], &test_message(k, i), peer, tag);
                match i % 3 {
                    0 => drop(harness.recv(from(peer, tag), 3000)),
                    1 => {
                        let id = harness.post(from(None, tag), test_message(k, i).needs());
                        harness.until("the receive is done", || harness.comm.is_done(id));
                        harness.wait_message(id, &test_message(k, i));
                    }
                    _ => {
                        harness.probe(from(peer, tag));
                        harness.expect(from(None, tag), &test_message(k, i));
                    }
                }
                harness.wait_all([sent]);
            }
        });
    });
}

/// A wait without its wake-up lasts a slice. With many waits even a few lost wake-ups exceed the deadline.
fn is_quick(begun: Instant, slice: Duration, what: &str) {
    let elapsed = begun.elapsed();
    assert!(elapsed < slice, "{what} took {elapsed:?}, a thread slept through a wake-up");
}

/// Far more than an exchange takes on a busy machine.
const SLICE: Duration = Duration::from_secs(20);

/// The thread that receives the message is not the one that waits for it.
fn a_thread_that_only_tests_wakes_those_that_wait(fixture: &TransportFixture) {
    let job =
        Job::new(fixture, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    let slow = std::sync::atomic::AtomicUsize::new(0);
    let rounds = amount(200, 20_000);
    job.run(|harness| {
        if harness.rank() == 0 {
            for i in 0..rounds {
                harness.wait_for_note(&format!("waits {i}"));
                harness.send(&TestMessage::plain(i as u64, 64), 1, 7);
                // The answer arrives when the waiting thread has woken.
                let begun = Instant::now();
                harness.expect(from(1, 8), &TestMessage::plain(0, 0));
                if begun.elapsed() > SLICE / 2 {
                    slow.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
            harness.post_note("over");
        } else {
            harness.threads(2, |k| {
                if k == 0 {
                    for i in 0..rounds {
                        let id = harness.post(from(0, 7), 64);
                        harness.post_note(&format!("waits {i}"));
                        harness.wait_message(id, &TestMessage::plain(i as u64, 64));
                        harness.send(&TestMessage::plain(0, 0), 0, 8);
                    }
                } else {
                    while !harness.has_note("over") {
                        assert_eq!(harness.comm.iprobe(from(0, 9)), Ok(None));
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let slow = slow.into_inner();
    assert!(slow <= rounds / 100, "{slow} of {rounds} waits slept through their wake-up");
}

/// All threads but one are parked. Each message wakes its own thread, which is rarely the driver.
fn parked_receivers_wake_in_the_order_of_their_messages(fixture: &TransportFixture) {
    let job =
        Job::new(fixture, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    job.run(|harness| {
        for round in 0..amount(5, 500) {
            if harness.rank() == 0 {
                harness.wait_for_note(&format!("posted {round}"));
                let begun = Instant::now();
                for i in 0..THREADS {
                    let k = (i * 5 + round) % THREADS;
                    harness.send(&TestMessage::plain(k as u64, 64), 1, k as i32);
                    harness.expect(from(1, k as i32), &TestMessage::plain(k as u64, 0));
                }
                is_quick(begun, SLICE / 2, "waking every thread");
            } else {
                let ids: Vec<_> = (0..THREADS).map(|k| harness.post(from(0, k as i32), 64)).collect();
                harness.post_note(&format!("posted {round}"));
                harness.threads(THREADS, |k| {
                    harness.wait_message(ids[k], &TestMessage::plain(k as u64, 64));
                    harness.send(&TestMessage::plain(k as u64, 0), 0, k as i32);
                });
            }
        }
    });
}

/// Probing threads wait for messages without a posted receive.
fn threads_that_probe_and_threads_that_receive_share_a_rank(fixture: &TransportFixture) {
    let count = amount(50, 5000);
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            for i in 0..count {
                for k in 0..4 {
                    harness.send(&test_message(k, i), 1, k as i32);
                }
            }
        } else {
            harness.threads(4, |k| {
                for i in 0..count {
                    if k % 2 == 0 {
                        assert_eq!(harness.probe(from(0, k as i32)).size, test_message(k, i).needs());
                    }
                    harness.expect(from(0, k as i32), &test_message(k, i));
                }
            });
        }
    });
}

/// Threads park without spinning or yielding, and a lost wake-up costs a slice of 20 s.
fn no_wake_up_is_lost_when_every_wait_sleeps_at_once(fixture: &TransportFixture) {
    let job =
        Job::new(fixture, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    let rounds = fixture.amount(1000, 100_000);
    job.run(|harness| {
        let peer = 1 - harness.rank();
        let mut slow = 0;
        for i in 0..rounds {
            let begun = Instant::now();
            if harness.rank() == 0 {
                harness.send(&test_message(0, i), peer, 1);
            }
            harness.expect(from(peer, 1), &test_message(0, i));
            if harness.rank() == 1 {
                harness.send(&test_message(0, i), peer, 1);
            }
            slow += usize::from(begun.elapsed() > SLICE / 2);
        }
        assert!(slow <= 2, "{slow} of {rounds} round trips slept through a wake-up");
    });
}

/// As above, with threads that hand over the driver.
fn no_wake_up_is_lost_when_several_threads_of_a_rank_sleep_at_once(fixture: &TransportFixture) {
    let job =
        Job::new(fixture, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    let rounds = amount(100, 20_000);
    job.run(|harness| {
        let peer = 1 - harness.rank();
        harness.threads(THREADS, |k| {
            let tag = k as i32;
            let mut slow = 0;
            for i in 0..rounds {
                let begun = Instant::now();
                let test_message = test_message(k, i);
                let id = harness.post(from(peer, tag), test_message.needs());
                harness.send(&test_message, peer, tag);
                if i % 3 == 0 {
                    harness.comm.wait_any(&[id], None, &mut Uninterruptible).expect("wait_any");
                }
                harness.wait_message(id, &test_message);
                slow += usize::from(begun.elapsed() > SLICE / 2);
            }
            assert!(slow <= 2, "{slow} of {rounds} exchanges slept through a wake-up");
        });
    });
    run(fixture, 1, |harness| assert_eq!(harness.comm.iprobe(ANY), Ok(None)));
}

/// Also while another thread of the rank is parked on the transport.
fn all_threads_that_wait_for_one_request_are_woken(fixture: &TransportFixture) {
    let job = Job::new(fixture, 2).tuned(|config| {
        (config.spins, config.yields, config.slice) = (0, 0, SLICE);
    });
    job.run(|harness| {
        if harness.rank() == 0 {
            (1..4).for_each(|k| harness.wait_for_note(&format!("thread {k} waits")));
            harness.send(&test_message(0, 0), 1, 0);
            harness.wait_for_note("woken");
            return harness.send(&test_message(0, 0), 1, 1);
        }
        let ids = [0, 1].map(|tag| harness.post(from(0, tag), test_message(0, 0).needs()));
        // WaitControl is asked right before each sleep.
        let saying = |thread: usize| {
            let mut said = false;
            move || {
                if !std::mem::replace(&mut said, true) {
                    harness.post_note(&format!("thread {thread} waits"));
                }
                true
            }
        };
        let woken = std::sync::atomic::AtomicUsize::new(0);
        harness.threads(4, |k| {
            if k == 0 {
                let done = harness.comm.wait(ids[1], None, &mut saying(0)).expect("wait");
                return test_message(0, 0).check(&done.message.expect("a receive gives a message"));
            }
            harness.wait_for_note("thread 0 waits");
            let begun = Instant::now();
            assert_eq!(harness.comm.wait_any(&ids[..1], None, &mut saying(k)), Ok(0));
            let took = begun.elapsed();
            if woken.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 2 {
                harness.post_note("woken");
            }
            assert!(took < SLICE / 2, "thread {k} was woken after {took:?}");
        });
        harness.wait_message(ids[0], &test_message(0, 0));
    });
}
