//! More messages than a receiver receives: memory is bounded, and all messages arrive.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mpjdev_engine::Mode;

use crate::rank_harness::{ANY, Job, amount, from};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{Ability, LOCAL, SHM, TransportFixture, for_every_fixture};

for_every_fixture![
    many_senders_and_a_slow_receiver_use_bounded_memory,
    small_messages_of_a_large_buffer_use_bounded_memory,
    a_flood_of_small_messages_arrives_in_order,
    many_outstanding_sends_to_one_rank_arrive_in_order,
    ranks_that_flood_each_other_do_not_block_each_other,
    sends_leave_a_full_queue_without_a_parked_thread,
    unexpected_split_messages_use_bounded_memory,
    messages_to_oneself_count_alike_whatever_their_buffers,
];

/// The receiver receives a message only when no sender continues.
fn many_senders_and_a_slow_receiver_use_bounded_memory(fixture: &TransportFixture) {
    const SENDERS: u32 = 4;
    const CREDIT: u64 = 256 << 10;
    let count = amount(200, 20_000);
    let job =
        Job::new(fixture, SENDERS as usize + 1).tuned(|config| config.credit = config.credit.min(CREDIT));
    let sent = AtomicU64::new(0);
    let most = AtomicU64::new(0);
    job.run(|harness| {
        let test_message =
            |source: u32, i: usize| TestMessage::plain(u64::from(source) << 32 | i as u64, 8 * (i % 1000));
        if harness.rank() > 0 {
            for i in 0..count {
                harness.send(&test_message(harness.rank(), i), 0, 1);
                sent.fetch_add(1, Relaxed);
            }
            return;
        }
        let mut next = [0; SENDERS as usize + 1];
        let mut before = u64::MAX;
        for received in 0..SENDERS as usize * count {
            // Polls drive progress without a receive, until no sender continues.
            while received % 50 == 0 && before != sent.load(Relaxed) {
                before = sent.load(Relaxed);
                for _ in 0..20 {
                    let _ = harness.comm.iprobe(from(None, 2)).expect("iprobe");
                    std::thread::yield_now();
                }
            }
            most.fetch_max(harness.used(), Relaxed);
            let (status, message) = harness.recv(ANY, 8000);
            let i = &mut next[status.source as usize];
            test_message(status.source, *i).check(&message);
            *i += 1;
        }
    });
    // A sender's credit in slabs that may be a quarter larger, and the message that waits beyond it.
    let mut bound = u64::from(SENDERS) * (CREDIT * 5 / 4 + 2 * 10_000) + 20_000;
    if fixture.lack(Ability::LetsGo).is_some() {
        // Of a window of 64 datagrams a quarter that is not acknowledged, and another one whose
        // acknowledgment is in flight.
        bound += u64::from(SENDERS) * 32 * 10_000;
    }
    assert!(most.load(Relaxed) <= bound, "{} octets were in use, the bound is {bound}", most.load(Relaxed));
}

/// A message counts with the memory of its buffer.
fn small_messages_of_a_large_buffer_use_bounded_memory(fixture: &TransportFixture) {
    const CREDIT: u64 = 1 << 20;
    const ROOM: usize = 256 << 10;
    const COUNT: usize = 300;
    let job = Job::new(fixture, 2).tuned(|config| config.credit = config.credit.min(CREDIT));
    let sent = AtomicU64::new(0);
    job.run(|harness| {
        let test_message = |i: usize| TestMessage { room: ROOM, ..TestMessage::plain(i as u64, 2048) };
        if harness.rank() == 0 {
            for i in 0..COUNT {
                harness.send(&test_message(i), 1, 1);
                sent.fetch_add(1, Relaxed);
            }
            return;
        }
        let mut before = u64::MAX;
        for i in 0..COUNT {
            while i % 20 == 0 && before != sent.load(Relaxed) {
                before = sent.load(Relaxed);
                for _ in 0..20 {
                    let _ = harness.comm.iprobe(from(None, 2)).expect("iprobe");
                    std::thread::yield_now();
                }
            }
            // The credit, the message that waits beyond it and the one that is being written.
            let bound = CREDIT + 4 * ROOM as u64;
            assert!(harness.used() <= bound, "{} octets in use after {i} messages", harness.used());
            harness.expect(from(0, 1), &test_message(i));
        }
    });
}

/// With no credit and two queue entries, and with much of both.
fn a_flood_of_small_messages_arrives_in_order(fixture: &TransportFixture) {
    let count = amount(3000, 300_000);
    Job::new(fixture, 2).run(|harness| {
        for i in 0..count {
            let test_message = TestMessage::plain(i as u64, 16);
            match harness.rank() {
                0 => harness.send(&test_message, 1, 1),
                _ => assert_eq!(harness.expect(from(0, 1), &test_message).source, 0),
            }
        }
    });
}

/// All sends are started before the receiver takes the first message.
fn many_outstanding_sends_to_one_rank_arrive_in_order(fixture: &TransportFixture) {
    let count = amount(2000, 100_000);
    Job::new(fixture, 3).run(|harness| {
        let test_message = |source: u32, i: usize| TestMessage::plain(u64::from(source) << 32 | i as u64, 24);
        if harness.rank() > 0 {
            let sends: Vec<_> = (0..count)
                .map(|i| harness.isend(Mode::Standard, &test_message(harness.rank(), i), 0, (i % 10) as i32))
                .collect();
            harness.post_note(&format!("started by {}", harness.rank()));
            harness.wait_all(sends);
        } else {
            harness.wait_for_note("started by 1");
            harness.wait_for_note("started by 2");
            for i in 0..count {
                for source in [1, 2] {
                    harness.expect(from(source, None), &test_message(source, i));
                }
            }
        }
    });
}

/// Every rank sends many messages before it receives any.
fn ranks_that_flood_each_other_do_not_block_each_other(fixture: &TransportFixture) {
    let count = amount(200, 8000);
    Job::new(fixture, 4).run(|harness| {
        let test_message =
            |source: u32, i: usize| TestMessage::split(u64::from(source) << 32 | i as u64, 64, 1 + i % 99);
        let others: Vec<u32> = (0..4).filter(|r| *r != harness.rank()).collect();
        let mut sends = Vec::new();
        for i in 0..count {
            for other in &others {
                sends.push(harness.isend(Mode::Standard, &test_message(harness.rank(), i), *other, 1));
            }
        }
        for i in 0..count {
            for other in &others {
                harness.expect(from(*other, 1), &test_message(*other, i));
            }
        }
        harness.wait_all(sends);
    });
}

/// Threads yield without end and never park.
fn sends_leave_a_full_queue_without_a_parked_thread(fixture: &TransportFixture) {
    let job = Job::new(fixture, 2).tuned(|config| {
        (config.spins, config.yields, config.queue_cells) = (0, u32::MAX, 2);
    });
    job.run(|harness| {
        for i in 0..200 {
            let test_message = TestMessage::plain(i, 16);
            match harness.rank() {
                0 => harness.send(&test_message, 1, 1),
                _ => assert_eq!(harness.expect(from(0, 1), &test_message).source, 0),
            }
        }
    });
}

/// The memory of a second half counts like that of the first.
fn unexpected_split_messages_use_bounded_memory(fixture: &TransportFixture) {
    const CREDIT: u64 = 1 << 20;
    const SECOND: usize = 512 << 10;
    const COUNT: usize = 40;
    if !fixture.can(Ability::Bulk, "unexpected_split_messages_use_bounded_memory") {
        return;
    }
    let job = Job::new(fixture, 2).tuned(|config| config.credit = CREDIT);
    job.run(|harness| {
        let test_message = |i: usize| TestMessage::split(i as u64, 16, SECOND);
        if harness.rank() == 0 {
            let done_at_once = (0..COUNT).filter(|i| {
                let id = harness.isend(Mode::Standard, &test_message(*i), 1, 1);
                id.into_iter().for_each(|id| harness.comm.detach(id));
                id.is_none()
            });
            let done = done_at_once.count();
            harness.post_note("sent");
            // By reference, large messages count for an eighth of the credit at most.
            let most = if (fixture.config)().message_oriented { 4 } else { 8 };
            assert!(done <= most, "{done} messages of {SECOND} octets went within a credit of {CREDIT}");
        } else {
            harness.wait_for_note("sent");
            (0..COUNT).for_each(|i| assert_eq!(harness.expect(from(0, 1), &test_message(i)).source, 0));
        }
    });
}

/// Small messages of large buffers first, then as many more as the credit allows only if those counted as
/// small.
fn messages_to_oneself_count_alike_whatever_their_buffers(fixture: &TransportFixture) {
    const COUNT: usize = 2000;
    let job = Job::new(fixture, 1).tuned(|config| config.credit = config.credit.min(64 << 10));
    job.run(|harness| {
        let test_message = |i: usize| TestMessage { room: 4096, ..TestMessage::plain(i as u64, 16) };
        for i in 0..COUNT {
            harness.send(&test_message(i), 0, 1);
            harness.expect(from(0, 1), &test_message(i));
        }
        let mut sends = Vec::new();
        for i in 0..COUNT {
            sends.push(harness.isend(Mode::Standard, &test_message(i), 0, 1));
            let _ = harness.comm.iprobe(from(0, 2)).expect("iprobe");
        }
        for i in 0..COUNT {
            harness.expect(from(0, 1), &test_message(i));
        }
        harness.wait_all(sends);
    });
}

/// Both ranks have a large number of messages in flight, and then receive them.
fn ranks_with_very_many_unmatched_sends_answer_each_other(fixture: &TransportFixture) {
    const COUNT: usize = (1 << 18) + 100;
    Job::new(fixture, 2).run(|harness| {
        let (test_message, other) = (TestMessage::plain(1, 16), 1 - harness.rank());
        let message = test_message.write(harness.source());
        let sends: Vec<_> = (0..COUNT)
            .map(|_| harness.comm.isend(&message, other as i32, 1, Mode::Synchronous).expect("isend"))
            .collect();
        for _ in 0..COUNT {
            harness.expect(from(other, 1), &test_message);
        }
        harness.wait_all(sends);
    });
}

#[test]
fn ranks_with_very_many_unmatched_sends_answer_each_other_as_threads() {
    ranks_with_very_many_unmatched_sends_answer_each_other(&LOCAL);
}

#[test]
fn ranks_with_very_many_unmatched_sends_answer_each_other_over_shared_memory() {
    ranks_with_very_many_unmatched_sends_answer_each_other(&SHM);
}
