//! Matching: the message that a receive gets.

use std::collections::VecDeque;

use mpjdev_engine::{Mode, RecvFrom};

use crate::rank_harness::{ANY, RankHarness, amount, from, receive_in_reverse_order, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    messages_of_one_source_keep_their_order_for_all_kinds_of_receives,
    the_earliest_posted_receive_wins,
    message_passes_receives_that_do_not_match,
    messages_of_many_tags_are_received_in_reverse_order,
    many_outstanding_receives_each_get_their_message,
    wildcard_receive_returns_the_actual_source_and_tag,
    the_largest_tag_and_tag_zero_are_ordinary_tags,
    bad_ranks_and_tags_are_refused_with_their_numbers,
];

/// In sizes that are sent inline, by reference, and split.
fn test_message(source: u32, i: usize) -> TestMessage {
    let seed = u64::from(source) << 32 | i as u64;
    match i % 4 {
        0 => TestMessage::plain(seed, 16),
        1 => TestMessage::plain(seed, 4000),
        2 => TestMessage::split(seed, 16, 40),
        _ => TestMessage::appended(seed, 16, 41),
    }
}

/// Three senders, receives that rotate through the four kinds: each gets the earliest remaining message of
/// its source that fits.
fn messages_of_one_source_keep_their_order_for_all_kinds_of_receives(fixture: &TransportFixture) {
    let count = amount(150, 20_000);
    let tag_of = |i: usize| (i * i % 5) as i32;
    run(fixture, 4, |harness| {
        if harness.rank() > 0 {
            let sends: Vec<_> = (0..count)
                .map(|i| harness.isend(Mode::Standard, &test_message(harness.rank(), i), 0, tag_of(i)))
                .collect();
            return harness.wait_all(sends);
        }
        let mut left: Vec<VecDeque<usize>> = vec![(0..count).collect(); 3];
        for step in 0..3 * count {
            // A source and tag that still has messages.
            let source = (0..3).map(|k| (step + k) % 3).find(|s| !left[*s].is_empty()).expect("messages");
            let tag = tag_of(left[source][left[source].len() / 2]);
            let asked = match step % 4 {
                0 => ANY,
                1 => from(source as u32 + 1, None),
                2 => from(None, tag),
                _ => from(source as u32 + 1, tag),
            };
            let (status, message) = harness.recv(asked, 4000);
            let remaining = &mut left[status.source as usize - 1];
            let fits = |i: &usize| asked.tag.is_none_or(|t| t == tag_of(*i));
            let first = remaining.iter().position(fits).expect("a message that fits");
            let i = remaining.remove(first).expect("just found");
            test_message(status.source, i).check(&message);
            assert_eq!(status.tag, tag_of(i));
        }
    });
}

/// Wildcards before exact receives and the other way round, in every rotation.
fn the_earliest_posted_receive_wins(fixture: &TransportFixture) {
    let kinds = [from(1, 7), ANY, from(1, None), from(None, 7)];
    run(fixture, 2, |harness| {
        for rotation in 0..4 {
            if harness.rank() == 0 {
                let receives: Vec<_> =
                    (0..4).map(|i| harness.post(kinds[(i + rotation) % 4], 4000)).collect();
                harness.post_note(&format!("posted {rotation}"));
                for (i, id) in receives.into_iter().enumerate() {
                    harness.wait_message(id, &test_message(1, i));
                }
            } else {
                harness.wait_for_note(&format!("posted {rotation}"));
                (0..4).for_each(|i| harness.send(&test_message(1, i), 0, 7));
            }
        }
    });
}

/// Receives for other tags and sources were posted before, and stay.
fn message_passes_receives_that_do_not_match(fixture: &TransportFixture) {
    run(fixture, 3, |harness| {
        if harness.rank() == 0 {
            let other_tag = harness.post(from(1, 8), 4000);
            let other_source = harness.post(from(2, 7), 4000);
            let its = harness.post(from(1, 7), 4000);
            harness.post_note("posted");
            harness.wait_message(its, &test_message(1, 1));
            assert!(harness.comm.test(other_tag).expect("test").is_none());
            assert!(harness.comm.test(other_source).expect("test").is_none());
            harness.post_note("continue");
            harness.wait_message(other_source, &test_message(2, 2));
            harness.wait_message(other_tag, &test_message(1, 3));
        } else if harness.rank() == 1 {
            harness.wait_for_note("posted");
            harness.send(&test_message(1, 1), 0, 7);
            harness.wait_for_note("continue");
            harness.send(&test_message(1, 3), 0, 8);
        } else {
            harness.wait_for_note("continue");
            harness.send(&test_message(2, 2), 0, 7);
        }
    });
}

/// The unexpected queue grows to all of them first.
fn messages_of_many_tags_are_received_in_reverse_order(fixture: &TransportFixture) {
    let count = amount(500, 20_000);
    receive_in_reverse_order(fixture, count, |i| test_message(0, i));
}

/// The order of waits differs from the order of posts.
fn many_outstanding_receives_each_get_their_message(fixture: &TransportFixture) {
    let count = amount(500, 20_000);
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            harness.wait_for_note("posted");
            for i in (0..count).rev() {
                harness.send(&test_message(0, i), 1, i as i32);
            }
        } else {
            let receives: Vec<_> = (0..count).map(|i| harness.post(from(0, i as i32), 4000)).collect();
            harness.post_note("posted");
            for k in 0..count {
                let i = (k * 7 + 3) % count;
                harness.wait_message(receives[i], &test_message(0, i));
            }
        }
    });
}

fn wildcard_receive_returns_the_actual_source_and_tag(fixture: &TransportFixture) {
    run(fixture, 4, |harness| {
        if harness.rank() > 0 {
            return harness.send(&test_message(harness.rank(), 1), 0, 10 * harness.rank() as i32);
        }
        let mut seen = Vec::new();
        for _ in 0..3 {
            let (status, message) = harness.recv(ANY, 4000);
            test_message(status.source, 1).check(&message);
            assert_eq!(status.tag, 10 * status.source as i32);
            seen.push(status.source);
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    });
}

fn the_largest_tag_and_tag_zero_are_ordinary_tags(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let max = harness.comm.config().tag_ub;
        for tag in [0, 1, max - 1, max] {
            match harness.rank() {
                0 => harness.send(&test_message(0, 2), 1, tag),
                _ => assert_eq!(harness.expect(from(0, tag), &test_message(0, 2)).tag, tag),
            }
        }
    });
}

/// A refused call sends and posts nothing.
fn bad_ranks_and_tags_are_refused_with_their_numbers(fixture: &TransportFixture) {
    use mpjdev_engine::DeviceError::{BadRank, BadTag};
    run(fixture, 2, |harness| {
        let max = harness.comm.config().tag_ub;
        let message = test_message(0, 0).write(harness.source());
        let send = |dest, tag| harness.comm.isend(&message, dest, tag, Mode::Standard).map(drop);
        let post = |from| harness.comm.irecv(from, 0, None).map(drop);
        let look = |from| harness.comm.iprobe(from).map(drop);
        for rank in [-1, 2, i32::MIN, i32::MAX] {
            let refused = Err(BadRank { rank, size: 2 });
            let asked = RecvFrom { source: Some(rank), tag: None };
            assert_eq!(
                [send(rank, 0), post(asked), look(asked)],
                [refused.clone(), refused.clone(), refused]
            );
        }
        for tag in [-1, i32::MIN] {
            assert_eq!(send(1, tag), Err(BadTag { tag, max }));
            assert_eq!(post(from(None, tag)), Err(BadTag { tag, max }));
        }
        if let Some(tag) = max.checked_add(1) {
            assert_eq!(send(1, tag), Err(BadTag { tag, max }));
        }
        meet(harness);
    });
}

/// Keeps the end of one rank from being an error of another.
fn meet(harness: &RankHarness) {
    harness.barrier();
}
