//! Completion of sends: a synchronous one is done when it is matched, and so is a standard one past the
//! credit.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_engine::{Mode, RequestId};

use crate::rank_harness::{ANY, Job, RankHarness, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{Ability, TransportFixture, for_every_fixture};

for_every_fixture![
    a_synchronous_send_is_pending_until_its_receive_is_posted,
    synchronous_send_completes_with_a_receive_posted_before,
    a_blocking_synchronous_send_returns_only_after_its_match,
    a_standard_send_within_the_credit_needs_no_receive,
    standard_sends_past_the_credit_are_done_after_their_match,
    credit_comes_back_when_messages_are_received,
    messages_larger_than_the_credit_are_sent_when_no_other_is_in_flight,
    cancelled_send_returns_its_credit,
    rank_that_only_tests_gets_match_acks_from_a_computing_rank,
];

fn test_messages() -> [TestMessage; 4] {
    [
        TestMessage::plain(1, 0),
        TestMessage::plain(2, 64),
        TestMessage::plain(3, 5000),
        TestMessage::split(4, 64, 999),
    ]
}

fn is_pending(harness: &RankHarness, id: RequestId) -> bool {
    harness.comm.test(id).expect("test").is_none()
}

/// A probe has found the message, and the sender's request is still pending. The receive is posted after the
/// sender has tested it.
fn a_synchronous_send_is_pending_until_its_receive_is_posted(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (i, test_message) in test_messages().iter().enumerate() {
            let (arrived, looked) = (format!("arrived {i}"), format!("looked {i}"));
            if harness.rank() == 0 {
                let id = harness.isend(Mode::Synchronous, test_message, 1, 1).expect("pending");
                harness.until("the message is at its destination", || {
                    assert!(is_pending(harness, id));
                    harness.has_note(&arrived)
                });
                for _ in 0..100 {
                    assert!(is_pending(harness, id), "done without a posted receive");
                }
                harness.post_note(&looked);
                harness.wait(id);
            } else {
                harness.probe(ANY);
                harness.post_note(&arrived);
                harness.wait_for_note(&looked);
                harness.expect(ANY, test_message);
            }
        }
    });
}

/// The receive is posted first, so the send needs only progress.
fn synchronous_send_completes_with_a_receive_posted_before(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (i, test_message) in test_messages().iter().enumerate() {
            let posted = format!("posted {i}");
            if harness.rank() == 0 {
                harness.wait_for_note(&posted);
                harness.ssend(test_message, 1, 1);
            } else {
                let id = harness.post(ANY, test_message.needs());
                harness.post_note(&posted);
                harness.wait_message(id, test_message);
            }
        }
    });
}

/// The receiver posts a note before it receives; the note exists when the blocking send returns.
fn a_blocking_synchronous_send_returns_only_after_its_match(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (i, test_message) in test_messages().iter().enumerate() {
            let received = format!("about to receive {i}");
            if harness.rank() == 0 {
                harness.ssend(test_message, 1, 1);
                assert!(harness.has_note(&received));
            } else {
                harness.probe(ANY);
                harness.post_note(&received);
                harness.expect(ANY, test_message);
            }
        }
    });
}

/// Both ranks send before either receives.
fn a_standard_send_within_the_credit_needs_no_receive(fixture: &TransportFixture) {
    let job = Job::new(fixture, 2).tuned(|config| config.credit = 1 << 20);
    job.run(|harness| {
        let peer = 1 - harness.rank();
        let test_messages =
            [TestMessage::plain(1, 64), TestMessage::plain(2, 5000), TestMessage::split(3, 64, 900)];
        for test_message in &test_messages {
            harness.send(test_message, peer, 1);
        }
        for test_message in &test_messages {
            harness.expect(from(peer, 1), test_message);
        }
    });
}

/// All messages have arrived before the first receive. No more sends are done than the credit allows.
fn standard_sends_past_the_credit_are_done_after_their_match(fixture: &TransportFixture) {
    const CREDIT: usize = 8192;
    const COUNT: usize = 40;
    let job = Job::new(fixture, 2).tuned(|config| config.credit = config.credit.min(CREDIT as u64));
    job.run(|harness| {
        let test_message = |i: usize| TestMessage::plain(i as u64, 1000);
        if harness.rank() == 0 {
            let sends: Vec<_> =
                (0..COUNT).map(|i| harness.isend(Mode::Standard, &test_message(i), 1, i as i32)).collect();
            harness.until("all messages are at their destination", || {
                for id in sends.iter().flatten() {
                    harness.comm.is_done(*id);
                }
                harness.has_note("all there")
            });
            let is_done = |id: &Option<RequestId>| id.is_none_or(|id| harness.comm.is_done(id));
            let done = sends.iter().filter(|id| is_done(id)).count();
            assert!(done * 1016 <= CREDIT, "{done} sends are done past a credit of {CREDIT}");
            harness.post_note("looked");
            harness.wait_all(sends);
        } else {
            // Messages keep their order: when the last one has arrived, all have.
            harness.probe(from(0, COUNT as i32 - 1));
            harness.post_note("all there");
            harness.wait_for_note("looked");
            for i in 0..COUNT {
                harness.expect(from(0, i as i32), &test_message(i));
            }
        }
    });
}

/// After a round of receives, messages of a full credit can be sent once more without a wait, less the part
/// whose match acks are late.
fn credit_comes_back_when_messages_are_received(fixture: &TransportFixture) {
    if !fixture.can(Ability::Prompt, "credit_comes_back_when_messages_are_received") {
        return;
    }
    let rounds = fixture.amount(20, 20);
    // Several rounds: the sender gets match acks up to a quarter of the credit late.
    let job = Job::new(fixture, 2).tuned(|config| (config.credit, config.queue_cells) = (64 << 10, 256));
    job.run(|harness| {
        let test_message = TestMessage::plain(1, 1000);
        let mut at_once = 0;
        for round in 0.. {
            let (received, next_round) = (format!("received {round}"), format!("round {round} is over"));
            if harness.rank() == 0 {
                let sends: Vec<_> =
                    (0..30).map(|_| harness.isend(Mode::Standard, &test_message, 1, 1)).collect();
                at_once += usize::from(sends.iter().all(Option::is_none));
                harness.wait_for_note(&received);
                harness.wait_all(sends);
                if at_once == rounds {
                    harness.post_note("enough");
                }
                harness.post_note(&next_round);
            } else {
                for _ in 0..30 {
                    harness.expect(from(0, 1), &test_message);
                }
                harness.post_note(&received);
                harness.wait_for_note(&next_round);
            }
            if harness.has_note("enough") {
                break;
            }
        }
    });
}

/// Otherwise every large message would cost a round trip. Where messages are copied, the first is sent and
/// the second waits until both are received. By reference, a few are sent.
fn messages_larger_than_the_credit_are_sent_when_no_other_is_in_flight(fixture: &TransportFixture) {
    if !fixture.can(Ability::Bulk, "messages_larger_than_the_credit_are_sent_when_no_other_is_in_flight") {
        return;
    }
    // One less than the parts of the credit: the sender gets one match ack late.
    let goes = match (fixture.config)().message_oriented {
        true => 1..=1,
        false => 6..=7,
    };
    let job = Job::new(fixture, 2).tuned(|config| (config.credit, config.queue_cells) = (64 << 10, 16));
    let went = AtomicU64::new(0);
    job.run(|harness| {
        let test_message = TestMessage::plain(1, 1 << 20);
        for round in 0..5 {
            let received = format!("received {round}");
            if harness.rank() == 0 {
                let mut at_once = 0u64;
                let waits = loop {
                    match harness.isend(Mode::Standard, &test_message, 1, 1) {
                        Some(waits) => break waits,
                        None => at_once += 1,
                    }
                };
                assert!(is_pending(harness, waits), "in round {round}");
                assert!(goes.contains(&at_once), "{at_once} went in round {round}");
                went.store(at_once, Relaxed);
                harness.post_note(&format!("sent {round}"));
                harness.wait_all(vec![Some(waits)]);
                harness.wait_for_note(&received);
            } else {
                harness.wait_for_note(&format!("sent {round}"));
                for _ in 0..=went.load(Relaxed) {
                    harness.expect(from(0, 1), &test_message);
                }
                harness.post_note(&received);
            }
        }
    });
}

/// A cancelled send has not left, so its credit must return.
fn cancelled_send_returns_its_credit(fixture: &TransportFixture) {
    let job = Job::new(fixture, 2).tuned(|config| (config.credit, config.queue_cells) = (64 << 10, 4));
    job.run(|harness| {
        let test_message = TestMessage::plain(1, 1000);
        if harness.rank() == 0 {
            // The receiver takes no packet out of the queue while it waits for a note.
            let sent: Vec<_> = (0..4).map(|_| harness.isend(Mode::Standard, &test_message, 1, 1)).collect();
            let mut left: Vec<_> = Vec::new();
            for _ in 0..200 {
                let Some(id) = harness.isend(Mode::Standard, &test_message, 1, 2) else {
                    left.push(None);
                    continue;
                };
                match harness.comm.cancel(id).expect("cancel") {
                    true => assert!(harness.comm.test(id).is_err()),
                    false => left.push(Some(id)),
                }
            }
            harness.post_note(&format!("{} left", left.len()));
            harness.post_note("cancelled");
            harness.wait_all(left);
            harness.wait_all(sent);
            harness.wait_for_note("received");
            assert_eq!(harness.isend(Mode::Standard, &test_message, 1, 3), None, "credit was lost");
        } else {
            harness.wait_for_note("cancelled");
            let left = (0..=200).find(|n| harness.has_note(&format!("{n} left"))).expect("a number");
            for _ in 0..4 {
                harness.expect(from(0, 1), &test_message);
            }
            for _ in 0..left {
                harness.expect(from(0, 2), &test_message);
            }
            harness.post_note("received");
            harness.expect(from(0, 3), &test_message);
        }
    });
}

/// The match ack did not fit the sender's queue, and its sender computes since then.
fn rank_that_only_tests_gets_match_acks_from_a_computing_rank(fixture: &TransportFixture) {
    Job::new(fixture, 2).tuned(|config| config.queue_cells = 2).run(|harness| {
        let test_message = TestMessage::plain(1, 16);
        if harness.rank() == 0 {
            let id = harness.isend(Mode::Synchronous, &test_message, 1, 1).expect("pending");
            harness.wait_for_note("received");
            harness.until("the answer is here", || !is_pending(harness, id));
            harness.post_note("answered");
            (0..2).for_each(|_| assert_eq!(harness.expect(ANY, &test_message).source, 1));
        } else {
            harness.until("the message is here", || harness.comm.iprobe(ANY).expect("iprobe").is_some());
            let fill: Vec<_> = (0..2).map(|_| harness.isend(Mode::Standard, &test_message, 0, 1)).collect();
            harness.expect(ANY, &test_message);
            harness.post_note("received");
            harness.wait_for_note("answered");
            harness.wait_all(fill);
        }
    });
}
