//! Many threads of one rank (MPI_THREAD_MULTIPLE).

use std::time::{Duration, Instant};

use mpjdev_engine::{Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    eight_threads_of_each_rank_exchange_messages_under_their_own_tags,
    eight_threads_of_each_rank_use_synchronous_and_non_blocking_operations,
    a_thread_that_only_tests_wakes_those_that_wait,
    parked_receivers_wake_one_after_the_other_whatever_the_order,
    threads_that_probe_and_threads_that_receive_share_a_rank,
    no_wake_up_is_lost_when_every_wait_sleeps_at_once,
    no_wake_up_is_lost_when_several_threads_of_a_rank_sleep_at_once,
    all_threads_that_wait_for_one_request_are_woken,
];

const THREADS: usize = 8;

fn letter(tag: usize, i: usize) -> Letter {
    let seed = (tag << 32 | i) as u64;
    match (tag + i) % 4 {
        0 => Letter::plain(seed, 64),
        1 => Letter::plain(seed, 3000),
        2 => Letter::split(seed, 64, 300),
        _ => Letter::appended(seed, 64, 301),
    }
}

fn eight_threads_of_each_rank_exchange_messages_under_their_own_tags(world: &World) {
    let count = amount(40, 5000);
    run(world, 3, |party| {
        let (next, before) = ((party.rank() + 1) % 3, (party.rank() + 2) % 3);
        party.threads(THREADS, |k| {
            for i in 0..count {
                let sent = party.isend(Mode::Standard, &letter(k, i), next, k as i32);
                party.expect(from(before, k as i32), &letter(k, i));
                party.wait_all([sent]);
            }
        });
    });
}

fn eight_threads_of_each_rank_use_synchronous_and_non_blocking_operations(world: &World) {
    let count = amount(40, 5000);
    run(world, 2, |party| {
        let peer = 1 - party.rank();
        party.threads(THREADS, |k| {
            let tag = k as i32;
            for i in 0..count {
                let modes = [Mode::Standard, Mode::Synchronous];
                let sent = party.isend(modes[i % 2], &letter(k, i), peer, tag);
                match i % 3 {
                    0 => drop(party.recv(from(peer, tag), 3000)),
                    1 => {
                        let id = party.post(from(None, tag), letter(k, i).needs());
                        party.until("the receive is done", || party.comm.is_done(id));
                        party.wait_letter(id, &letter(k, i));
                    }
                    _ => {
                        party.see(from(peer, tag));
                        party.expect(from(None, tag), &letter(k, i));
                    }
                }
                party.wait_all([sent]);
            }
        });
    });
}

/// A wait that is not woken would last a slice; there are enough of them that even a few would show.
fn is_quick(begun: Instant, slice: Duration, what: &str) {
    let elapsed = begun.elapsed();
    assert!(elapsed < slice, "{what} took {elapsed:?}, a thread slept through a wake-up");
}

/// Far more than a busy machine holds up an exchange.
const SLICE: Duration = Duration::from_secs(20);

/// The thread that takes the message in is not the one that waits for it.
fn a_thread_that_only_tests_wakes_those_that_wait(world: &World) {
    let job = Job::new(world, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    let slow = std::sync::atomic::AtomicUsize::new(0);
    let rounds = amount(200, 20_000);
    job.run(|party| {
        if party.rank() == 0 {
            for i in 0..rounds {
                party.hear(&format!("waits {i}"));
                party.send(&Letter::plain(i as u64, 64), 1, 7);
                // The answer comes when the waiting thread has woken.
                let begun = Instant::now();
                party.expect(from(1, 8), &Letter::plain(0, 0));
                if begun.elapsed() > SLICE / 2 {
                    slow.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
            party.say("over");
        } else {
            party.threads(2, |k| {
                if k == 0 {
                    for i in 0..rounds {
                        let id = party.post(from(0, 7), 64);
                        party.say(&format!("waits {i}"));
                        party.wait_letter(id, &Letter::plain(i as u64, 64));
                        party.send(&Letter::plain(0, 0), 0, 8);
                    }
                } else {
                    while !party.was_said("over") {
                        assert_eq!(party.comm.iprobe(from(0, 9)), Ok(None));
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let slow = slow.into_inner();
    assert!(slow <= rounds / 100, "{slow} of {rounds} waits slept through their wake-up");
}

/// All threads but one are parked; each message wakes its own, which is hardly ever the one that drives.
fn parked_receivers_wake_one_after_the_other_whatever_the_order(world: &World) {
    let job = Job::new(world, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    job.run(|party| {
        for round in 0..amount(5, 500) {
            if party.rank() == 0 {
                party.hear(&format!("posted {round}"));
                let begun = Instant::now();
                for i in 0..THREADS {
                    let k = (i * 5 + round) % THREADS;
                    party.send(&Letter::plain(k as u64, 64), 1, k as i32);
                    party.expect(from(1, k as i32), &Letter::plain(k as u64, 0));
                }
                is_quick(begun, SLICE / 2, "waking every thread");
            } else {
                let ids: Vec<_> = (0..THREADS).map(|k| party.post(from(0, k as i32), 64)).collect();
                party.say(&format!("posted {round}"));
                party.threads(THREADS, |k| {
                    party.wait_letter(ids[k], &Letter::plain(k as u64, 64));
                    party.send(&Letter::plain(k as u64, 0), 0, k as i32);
                });
            }
        }
    });
}

/// Probing threads wait for messages that nobody has posted a receive for.
fn threads_that_probe_and_threads_that_receive_share_a_rank(world: &World) {
    let count = amount(50, 5000);
    run(world, 2, |party| {
        if party.rank() == 0 {
            for i in 0..count {
                for k in 0..4 {
                    party.send(&letter(k, i), 1, k as i32);
                }
            }
        } else {
            party.threads(4, |k| {
                for i in 0..count {
                    if k % 2 == 0 {
                        assert_eq!(party.see(from(0, k as i32)).size, letter(k, i).needs());
                    }
                    party.expect(from(0, k as i32), &letter(k, i));
                }
            });
        }
    });
}

/// No spinning and no yielding, and a slice that makes every lost wake-up cost 20 s.
fn no_wake_up_is_lost_when_every_wait_sleeps_at_once(world: &World) {
    let job = Job::new(world, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    let rounds = world.amount(1000, 100_000);
    job.run(|party| {
        let peer = 1 - party.rank();
        let mut slow = 0;
        for i in 0..rounds {
            let begun = Instant::now();
            if party.rank() == 0 {
                party.send(&letter(0, i), peer, 1);
            }
            party.expect(from(peer, 1), &letter(0, i));
            if party.rank() == 1 {
                party.send(&letter(0, i), peer, 1);
            }
            slow += usize::from(begun.elapsed() > SLICE / 2);
        }
        assert!(slow <= 2, "{slow} of {rounds} round trips slept through a wake-up");
    });
}

/// As above, with threads that hand the driving on to each other.
fn no_wake_up_is_lost_when_several_threads_of_a_rank_sleep_at_once(world: &World) {
    let job = Job::new(world, 2).tuned(|config| (config.spins, config.yields, config.slice) = (0, 0, SLICE));
    let rounds = amount(100, 20_000);
    job.run(|party| {
        let peer = 1 - party.rank();
        party.threads(THREADS, |k| {
            let tag = k as i32;
            let mut slow = 0;
            for i in 0..rounds {
                let begun = Instant::now();
                let letter = letter(k, i);
                let id = party.post(from(peer, tag), letter.needs());
                party.send(&letter, peer, tag);
                if i % 3 == 0 {
                    party.comm.wait_any(&[id], None, &mut Uninterruptible).expect("wait_any");
                }
                party.wait_letter(id, &letter);
                slow += usize::from(begun.elapsed() > SLICE / 2);
            }
            assert!(slow <= 2, "{slow} of {rounds} exchanges slept through a wake-up");
        });
    });
    run(world, 1, |party| assert_eq!(party.comm.iprobe(ANY), Ok(None)));
}

/// Also while another thread of the rank sleeps on the transport for something else.
fn all_threads_that_wait_for_one_request_are_woken(world: &World) {
    let job = Job::new(world, 2).tuned(|config| {
        (config.spins, config.yields, config.slice) = (0, 0, SLICE);
    });
    job.run(|party| {
        if party.rank() == 0 {
            (1..4).for_each(|k| party.hear(&format!("thread {k} waits")));
            party.send(&letter(0, 0), 1, 0);
            party.hear("woken");
            return party.send(&letter(0, 0), 1, 1);
        }
        let ids = [0, 1].map(|tag| party.post(from(0, tag), letter(0, 0).needs()));
        // WaitControl is asked right before each sleep.
        let saying = |thread: usize| {
            let mut said = false;
            move || {
                if !std::mem::replace(&mut said, true) {
                    party.say(&format!("thread {thread} waits"));
                }
                true
            }
        };
        let woken = std::sync::atomic::AtomicUsize::new(0);
        party.threads(4, |k| {
            if k == 0 {
                let done = party.comm.wait(ids[1], None, &mut saying(0)).expect("wait");
                return letter(0, 0).check(&done.message.expect("a receive gives a message"));
            }
            party.hear("thread 0 waits");
            let begun = Instant::now();
            assert_eq!(party.comm.wait_any(&ids[..1], None, &mut saying(k)), Ok(0));
            let took = begun.elapsed();
            if woken.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 2 {
                party.say("woken");
            }
            assert!(took < SLICE / 2, "thread {k} was woken after {took:?}");
        });
        party.wait_letter(ids[0], &letter(0, 0));
    });
}
