//! Split messages: halves of different messages never mix, with wildcards, outstanding receives and threads.

use std::collections::VecDeque;
use std::sync::Mutex;

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, amount, from, receive_in_reverse_order, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    split_messages_of_several_senders_are_received_by_wildcards,
    many_outstanding_wildcard_receives_each_get_both_halves_of_one_message,
    split_and_whole_messages_of_one_tag_do_not_overtake_each_other,
    threads_of_both_sides_exchange_split_messages_under_one_tag,
    more_split_messages_than_there_are_tags_keep_their_halves,
    split_messages_wait_unexpected_and_are_received_in_reverse_order,
    split_messages_past_the_pairing_numbers_are_refused_until_some_are_received,
];

/// Every message has its own lengths, so mixed halves are detected.
fn test_message(source: u32, i: usize) -> TestMessage {
    TestMessage::split(
        u64::from(source) << 32 | i as u64,
        8 * (i % 5) + 8,
        1 + i * 3 % 1999 + source as usize,
    )
}

fn split_messages_of_several_senders_are_received_by_wildcards(fixture: &TransportFixture) {
    let count = amount(150, 20_000);
    run(fixture, 4, |harness| {
        if harness.rank() > 0 {
            for i in 0..count {
                harness.send(&test_message(harness.rank(), i), 0, (i % 3) as i32);
            }
            return;
        }
        let mut next = [0; 4];
        for _ in 0..3 * count {
            let (status, message) = harness.recv(ANY, 100);
            let i = &mut next[status.source as usize];
            test_message(status.source, *i).check(&message);
            assert_eq!(status.tag, (*i % 3) as i32);
            *i += 1;
        }
    });
}

/// The orders of posts, completions and waits differ.
fn many_outstanding_wildcard_receives_each_get_both_halves_of_one_message(fixture: &TransportFixture) {
    let count = amount(100, 5000);
    run(fixture, 4, |harness| {
        if harness.rank() > 0 {
            harness.wait_for_note("posted");
            let sends: Vec<_> = (0..count)
                .map(|i| harness.isend(Mode::Standard, &test_message(harness.rank(), i), 0, i as i32))
                .collect();
            return harness.wait_all(sends);
        }
        let receives: Vec<_> = (0..3 * count).map(|_| harness.post(ANY, 100)).collect();
        harness.post_note("posted");
        let mut seen = vec![[false; 4]; count];
        for k in 0..3 * count {
            let done = harness.wait(receives[(k * 7 + 1) % (3 * count)]);
            let status = done.status.expect("a status");
            test_message(status.source, status.tag as usize).check(&done.message.expect("a message"));
            let first = !std::mem::replace(&mut seen[status.tag as usize][status.source as usize], true);
            assert!(first, "twice: {status:?}");
        }
    });
}

fn split_and_whole_messages_of_one_tag_do_not_overtake_each_other(fixture: &TransportFixture) {
    let count = amount(200, 20_000);
    run(fixture, 2, |harness| {
        for i in 0..count {
            let test_message = match i % 3 {
                0 => TestMessage::split(i as u64, 64, 2000),
                1 => TestMessage::plain(i as u64, 64),
                _ => TestMessage::appended(i as u64, 64, 3),
            };
            match harness.rank() {
                0 => harness.send(&test_message, 1, 7),
                _ => assert_eq!(harness.expect(ANY, &test_message).tag, 7),
            }
        }
    });
}

/// Only the pairing numbers distinguish the halves of one sender's threads.
fn threads_of_both_sides_exchange_split_messages_under_one_tag(fixture: &TransportFixture) {
    const THREADS: usize = 6;
    let count = amount(60, 5000);
    run(fixture, 2, |harness| {
        let peer = 1 - harness.rank();
        let seen = Mutex::new(vec![false; THREADS * count]);
        harness.threads(2 * THREADS, |k| {
            for i in 0..count {
                if k < THREADS {
                    let number = k * count + i;
                    // The primary payload identifies the message; the rest must belong to it.
                    harness.send(&TestMessage::split(number as u64, 16, 1 + number), peer, 7);
                } else {
                    let (_, message) = harness.recv(if i % 2 == 0 { ANY } else { from(peer, 7) }, 16);
                    let number = message.secondary_len() - 1;
                    TestMessage::split(number as u64, 16, 1 + number).check(&message);
                    let first = !std::mem::replace(&mut seen.lock().expect("no panic")[number], true);
                    assert!(first, "message {number} arrived twice");
                }
            }
        });
        assert!(seen.lock().expect("no panic").iter().all(|s| *s));
    });
}

/// Pairing numbers wrap around at the largest tag while others are still in use.
fn more_split_messages_than_there_are_tags_keep_their_halves(fixture: &TransportFixture) {
    let bounded = Job::new(fixture, 2).tuned(|config| {
        config.credit = 64 << 10;
        fixture.limit_tags(config);
    });
    let tags = bounded.tags();
    let count = if tags < 40_000 { tags + tags / 4 } else { amount(500, 40_500) };
    bounded.run(|harness| {
        let test_message = |i: usize| TestMessage::split(i as u64, 16, 1 + i % 77);
        if harness.rank() == 0 {
            // One message stays open: its number must not be used again.
            let open = harness.isend(Mode::Standard, &TestMessage::split(9, 64, 4321), 1, 1);
            let mut pending = VecDeque::new();
            for i in 0..count {
                pending.extend(harness.isend(Mode::Standard, &test_message(i), 1, 0));
                if pending.len() > 100 {
                    harness.wait_all([pending.pop_front()]);
                }
            }
            harness.wait_all(pending.into_iter().map(Some));
            harness.wait_all([open]);
        } else {
            for i in 0..count {
                harness.expect(from(0, 0), &test_message(i));
            }
            harness.expect(from(0, 1), &TestMessage::split(9, 64, 4321));
        }
    });
}

fn split_messages_wait_unexpected_and_are_received_in_reverse_order(fixture: &TransportFixture) {
    let count = amount(200, 5000);
    receive_in_reverse_order(fixture, count, |i| test_message(0, i));
}

/// Pairing numbers are limited where halves are paired by number; elsewhere there is no such limit.
fn split_messages_past_the_pairing_numbers_are_refused_until_some_are_received(fixture: &TransportFixture) {
    let job = Job::new(fixture, 2).tuned(|config| fixture.limit_tags(config));
    let tags = job.tags();
    if tags > 40_000 {
        println!("SKIPPED in {}: it has more tags than there is memory for open messages", fixture.name);
        return;
    }
    job.run(|harness| {
        let test_message = TestMessage::split(1, 0, 1);
        if harness.rank() == 0 {
            let message = test_message.write(harness.source());
            let mut sent = 0;
            let refused = loop {
                match harness.comm.isend(&message, 1, 7, Mode::Standard) {
                    Ok(id) => {
                        id.into_iter().for_each(|id| harness.comm.detach(id));
                        sent += 1;
                    }
                    Err(error) => break Some(error),
                }
                if sent > tags {
                    break None;
                }
            };
            assert!(matches!(refused, None | Some(DeviceError::NoFreePair(_))), "{refused:?}");
            assert!(refused.is_none() || sent == tags, "refused after {sent}");
            harness.post_note(&format!("{sent} sent"));
            harness.post_note("sent");
            harness.until("a number is free again", || {
                let result = harness.comm.send(&message, 1, 8, Mode::Standard, &mut Uninterruptible);
                let _ = harness.comm.iprobe(ANY);
                result.is_ok()
            });
        } else {
            harness.wait_for_note("sent");
            let sent = (0..=tags + 1).find(|n| harness.has_note(&format!("{n} sent"))).expect("a number");
            for _ in 0..sent {
                harness.expect(from(0, 7), &test_message);
            }
            harness.expect(from(0, 8), &test_message);
        }
        harness.barrier();
    });
}
