//! No wake-up is lost, between ranks and between the threads of a rank.
//!
//! In a program a parked thread polls again after a slice, which turns a lost wake-up into a short delay.
//! Here a slice is an hour, threads park without spinning or yielding, and no rank drives another one's
//! progress. So a lost wake-up is a hang, which the deadline of the harness finds. `rust/bootstrap/tests`
//! runs the same engine under loom, with two threads of a rank and a few messages. These tests have more
//! threads and rounds.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, DeviceError, Mode, PacketEngine, Uninterruptible};
use mpjdev_transport::tcp::Terms;
use mpjdev_transport::{PacketSource, Transport, local};

use crate::rank_harness::{RankHarness, amount, from, run};
use crate::slots::sum_of_ranks;
use crate::test_message::TestMessage;
use crate::transport_fixtures::TransportFixture;
use crate::transport_fixtures::tiny_limits;

static SLEEPERS: TransportFixture = TransportFixture {
    name: "local, without slices",
    // No rank drives progress for one whose packets find no room, so the queues are large enough.
    config: || Config { queue_cells: 1 << 12, ..sleeping(Config::default()) },
    connect: connect_apart,
    lacks: &[],
};

static PHYSICAL_SLEEPERS: TransportFixture = TransportFixture {
    name: "local, physical messages, without slices",
    config: || Config { message_oriented: true, ..(SLEEPERS.config)() },
    connect: connect_apart,
    lacks: &[],
};

fn sleeping(config: Config) -> Config {
    Config { spins: 0, yields: 0, slice: Duration::from_secs(3600), ..config }
}

static SHM_SLEEPERS: TransportFixture = TransportFixture {
    name: "shared memory, without slices",
    config: || sleeping(Config::default()),
    connect: crate::transport_fixtures::shm,
    lacks: &[],
};

/// Packets often wait for room, and a rank that makes room has to wake its peer.
static TINY_SHM_SLEEPERS: TransportFixture = TransportFixture {
    name: "shared memory, tiny limits, without slices",
    config: || sleeping(tiny_limits()),
    connect: crate::transport_fixtures::shm,
    lacks: &[],
};

/// The progress thread of a computing rank reads as well.
static TCP_SLEEPERS: TransportFixture = TransportFixture {
    name: "TCP, without slices",
    config: || sleeping(Config::default()),
    connect: |ranks, config, pool| crate::transport_fixtures::tcp(ranks, config, Terms::default(), pool),
    lacks: &[],
};

/// Every packet waits until the one before it is acked.
static TINY_TCP_SLEEPERS: TransportFixture = TransportFixture {
    name: "TCP, tiny limits, without slices",
    config: || sleeping(tiny_limits()),
    connect: |ranks, config, pool| (crate::transport_fixtures::TCP_TINY.connect)(ranks, config, pool),
    lacks: &[],
};

/// A thread that waits for an inter-node rank parks on the futex that intra-node ranks wake.
static SITES_SLEEPERS: TransportFixture = TransportFixture {
    name: "sites, without slices",
    config: || sleeping(Config::default()),
    connect: |ranks, config, pool| (crate::transport_fixtures::SITES.connect)(ranks, config, pool),
    lacks: &[],
};

static TINY_SITES_SLEEPERS: TransportFixture = TransportFixture {
    name: "sites, tiny limits, without slices",
    config: || sleeping(tiny_limits()),
    connect: |ranks, config, pool| (crate::transport_fixtures::SITES_TINY.connect)(ranks, config, pool),
    lacks: &[],
};

/// Timers wake parked threads as well.
static UDP_SLEEPERS: TransportFixture = TransportFixture {
    name: "UDP, without slices",
    config: || sleeping(Config::default()),
    connect: |ranks, config, pool| (crate::transport_fixtures::UDP.connect)(ranks, config, pool),
    lacks: &[],
};

/// At most three packets are in flight.
static TINY_UDP_SLEEPERS: TransportFixture = TransportFixture {
    name: "UDP, tiny limits, without slices",
    config: || sleeping(tiny_limits()),
    connect: |ranks, config, pool| (crate::transport_fixtures::UDP_TINY.connect)(ranks, config, pool),
    lacks: &[],
};

static ALL: [&TransportFixture; 10] = [
    &SLEEPERS,
    &PHYSICAL_SLEEPERS,
    &SHM_SLEEPERS,
    &TINY_SHM_SLEEPERS,
    &TCP_SLEEPERS,
    &TINY_TCP_SLEEPERS,
    &SITES_SLEEPERS,
    &TINY_SITES_SLEEPERS,
    &UDP_SLEEPERS,
    &TINY_UDP_SLEEPERS,
];

/// Ranks that do not drive each other's progress, with the given limits.
fn connect_apart(ranks: usize, config: Config, pool: &Arc<HeapPool>) -> Vec<Comm> {
    let source: Arc<dyn SlabSource> = pool.clone();
    let ends = local::connect(ranks, &config);
    let endpoint =
        |(rank, (transport, packet_source)): (usize, (local::LocalTransport, local::LocalSource))| {
            let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) =
                (Arc::new(transport), Box::new(packet_source));
            Comm::world(Arc::new(PacketEngine::new(
                rank as u32,
                ranks as u32,
                config.clone(),
                ends,
                source.clone(),
            )))
        };
    ends.into_iter().enumerate().map(endpoint).collect()
}

fn test_message(k: usize, i: usize) -> TestMessage {
    let seed = (k << 32 | i) as u64;
    if i.is_multiple_of(3) { TestMessage::split(seed, 16, 40) } else { TestMessage::plain(seed, 64) }
}

/// One exchange of a thread with its counterpart, by one of several kinds of waits.
fn exchange(harness: &RankHarness, k: usize, i: usize) {
    let (peer, tag) = (1 - harness.rank(), k as i32);
    let (theirs, test_message) = (from(peer, tag), test_message(k, i));
    let mode = if (k + i).is_multiple_of(2) { Mode::Standard } else { Mode::Synchronous };
    let sent = harness.isend(mode, &test_message, peer, tag);
    match (k + i) % 4 {
        0 => {
            harness.expect(theirs, &test_message);
        }
        1 => {
            let id = harness.post(theirs, test_message.needs());
            harness.comm.wait_any(&[id], None, &mut Uninterruptible).expect("wait_any");
            harness.wait_message(id, &test_message);
        }
        2 => {
            harness.probe(theirs);
            harness.expect(theirs, &test_message);
        }
        _ => {
            let ids: Vec<_> = sent.into_iter().chain([harness.post(theirs, test_message.needs())]).collect();
            let receive = ids[ids.len() - 1];
            harness.comm.wait_any(&ids, None, &mut Uninterruptible).expect("wait_any");
            harness.wait_message(receive, &test_message);
        }
    }
    harness.wait_all([sent]);
}

fn threads_exchange(fixture: &TransportFixture, threads: usize, rounds: usize) {
    run(fixture, 2, |harness| {
        harness.threads(threads, |k| (0..rounds).for_each(|i| exchange(harness, k, i)));
    });
}

/// One thread per rank: it always parks on the transport.
#[test]
fn a_single_thread_of_a_rank_is_woken_by_the_transport() {
    ALL.iter().for_each(|fixture| threads_exchange(fixture, 1, amount(1000, 60_000)));
}

/// Two threads per rank: one is the driver, the other is parked, and they swap roles often.
#[test]
fn two_threads_of_a_rank_hand_over_the_driver() {
    ALL.iter().for_each(|fixture| threads_exchange(fixture, 2, amount(500, 60_000)));
}

#[test]
fn twelve_threads_of_a_rank_hand_over_the_driver() {
    ALL.iter().for_each(|fixture| threads_exchange(fixture, 12, amount(100, 15_000)));
}

/// Each thread of a rank waits for vectors in slots of another communicator, and one of them drives.
#[test]
fn threads_of_a_rank_are_woken_by_vectors_in_slots() {
    const THREADS: usize = 4;
    run(&SHM_SLEEPERS, 3, |harness| {
        let comms: Vec<_> = (0..THREADS).map(|_| harness.dup()).collect();
        harness.threads(THREADS, |k| {
            for i in 0..amount(300, 5000) {
                if (i + k).is_multiple_of(3) {
                    comms[k].barrier();
                } else {
                    sum_of_ranks(&comms[k]);
                }
            }
        });
    });
}

/// The thread that drives waits for a rank that waits for the other thread.
#[test]
fn thread_is_woken_by_a_vector_while_another_one_drives() {
    run(&SHM_SLEEPERS, 2, |harness| {
        let comms = [harness.dup(), harness.dup()];
        let rounds = amount(300, 5000);
        if harness.rank() == 0 {
            harness.threads(2, |k| {
                for i in 0..rounds {
                    comms[k].barrier();
                    harness.post_note(&format!("thread {k} has passed barrier {i}"));
                }
            });
            return;
        }
        for i in 0..rounds {
            let first = i % 2;
            comms[first].barrier();
            harness.wait_for_note(&format!("thread {first} has passed barrier {i}"));
            comms[1 - first].barrier();
        }
    });
}

/// Two threads of a rank wait in a hybrid job, each for another transport.
#[test]
fn rank_is_woken_by_intra_node_and_inter_node_sends() {
    const RANKS: u32 = 4;
    for fixture in &ALL[2..] {
        run(fixture, RANKS as usize, |harness| {
            let other = |step: usize| (harness.rank() + 1 + (step % 3) as u32) % RANKS;
            harness.threads(2, |k| {
                for i in 0..amount(100, 6000) {
                    let (test_message, tag) = (test_message(k, i), k as i32);
                    let mode = if (k + i).is_multiple_of(2) { Mode::Standard } else { Mode::Synchronous };
                    let sent: Vec<_> =
                        (0..3).map(|step| harness.isend(mode, &test_message, other(step), tag)).collect();
                    // A different one first in each round.
                    for step in 0..3 {
                        harness.expect(from(other(i + step), tag), &test_message);
                    }
                    harness.wait_all(sent);
                }
            });
        });
    }
}

/// A thread that never parks receives the messages that others wait for.
#[test]
fn threads_that_sleep_are_woken_by_one_that_only_tests() {
    for fixture in ALL {
        run(fixture, 2, |harness| {
            let over = format!("rank {} is over", harness.rank());
            harness.threads(4, |k| {
                if k > 0 {
                    (0..amount(250, 15_000)).for_each(|i| exchange(harness, k, i));
                    harness.post_note(&format!("{over}: {k}"));
                } else {
                    while !(1..4).all(|k| harness.has_note(&format!("{over}: {k}"))) {
                        assert_eq!(harness.comm.iprobe(from(1 - harness.rank(), 99)), Ok(None));
                        std::thread::yield_now();
                    }
                }
            });
        });
    }
}

/// Each message is sent after the previous thread has answered. That thread has left, so a parked one must
/// have become the driver.
#[test]
fn thread_that_stops_waiting_hands_the_driver_to_a_parked_one() {
    const THREADS: usize = 4;
    let rounds = amount(1000, 30_000);
    let test_message = TestMessage::plain(1, 16);
    run(&SLEEPERS, 2, |harness| {
        if harness.rank() == 0 {
            for i in 0..rounds * THREADS {
                // In an order that changes from round to round.
                let tag = ((i % THREADS) * (1 + i / THREADS % 2 * 2) % THREADS) as i32;
                harness.send(&test_message, 1, tag);
                harness.expect(from(1, tag), &test_message);
            }
        } else {
            harness.threads(THREADS, |k| {
                for _ in 0..rounds {
                    harness.expect(from(0, k as i32), &test_message);
                    harness.send(&test_message, 0, k as i32);
                }
            });
        }
    });
}

/// The sender then computes. Only its send can wake the receiver, which is parked on the transport.
#[test]
fn thread_is_woken_by_a_send_of_its_own_rank() {
    let rounds = amount(300, 6000);
    for fixture in ALL {
        run(fixture, 2, |harness| {
            let (received, test_message) = (AtomicUsize::new(0), TestMessage::plain(1, 16));
            harness.threads(2, |k| {
                for i in 0..rounds {
                    if k == 0 {
                        harness.expect(from(harness.rank(), 1), &test_message);
                        received.store(i + 1, SeqCst);
                    } else {
                        harness.send(&test_message, harness.rank(), 1);
                        while received.load(SeqCst) <= i {
                            std::thread::yield_now();
                        }
                    }
                }
            });
        });
    }
}

/// No message arrives. Only the cancelling thread can wake the waiting one, parked or about to park.
#[test]
fn a_wait_for_a_request_that_another_thread_cancels_ends() {
    let rounds = amount(3000, 90_000);
    run(&SLEEPERS, 1, |harness| {
        let (request, about_to_sleep) = (Mutex::new(None), AtomicUsize::new(0));
        harness.threads(2, |k| {
            for i in 0..rounds {
                if k == 0 {
                    let id = harness.post(from(0, 1), 0);
                    *request.lock().expect("no panic") = Some(id);
                    let mut patience = || {
                        about_to_sleep.store(i + 1, SeqCst);
                        true
                    };
                    let error = harness.comm.wait(id, None, &mut patience).unwrap_err();
                    assert_eq!(error, DeviceError::Cancelled);
                } else {
                    while about_to_sleep.load(SeqCst) <= i {
                        std::thread::yield_now();
                    }
                    (0..i % 512).for_each(|_| std::hint::spin_loop());
                    let id = request.lock().expect("no panic").take().expect("posted");
                    assert_eq!(harness.comm.cancel(id), Ok(true));
                }
            }
        });
    });
}
