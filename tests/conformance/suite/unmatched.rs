//! A large number of unmatched messages: other operations continue, and no search becomes longer.

use mpjdev_engine::collective::Outcome;
use mpjdev_engine::config::ENVELOPE_LEN;
use mpjdev_engine::{DeviceError, Mode, RequestId, Uninterruptible};

use crate::rank_harness::{ANY, Job, RankHarness, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{Ability, TransportFixture, for_every_fixture};

for_every_fixture![
    unmatched_messages_stop_neither_barriers_nor_other_communicators,
    unmatched_messages_are_received_and_probed_in_reverse_order_of_tags,
    sends_past_the_bound_on_envelopes_fail_and_collectives_pass,
];

/// Octets of the messages.
const LEN: usize = 8;

fn test_message(number: usize) -> TestMessage {
    TestMessage::plain(number as u64, LEN)
}

fn started(
    harness: &RankHarness,
    mode: Mode,
    count: usize,
    tag: impl Fn(usize) -> i32,
) -> Vec<Option<RequestId>> {
    (0..count).map(|i| harness.isend(mode, &test_message(i), 1, tag(i))).collect()
}

fn dup(harness: &RankHarness) -> RankHarness {
    match harness.comm.start_dup().finish(&mut Uninterruptible).expect("dup") {
        Outcome::Created(Some(comm)) => harness.on(comm),
        _ => panic!("every rank is in a dup"),
    }
}

/// Number of messages, less where each waits for the one before it.
fn many(fixture: &TransportFixture, count: usize) -> usize {
    let is_slow = fixture.lack(Ability::Bulk).is_some() || (fixture.config)().queue_cells < 8;
    amount(if is_slow { 500 } else { count }, if is_slow { 20_000 } else { 300_000 })
}

/// Messages of other tags, then a barrier and a message in another communicator, and only then the receives.
fn unmatched_messages_stop_neither_barriers_nor_other_communicators(fixture: &TransportFixture) {
    let count = many(fixture, 20_000);
    run(fixture, 2, |harness| {
        let other = dup(harness);
        for mode in [Mode::Standard, Mode::Synchronous] {
            if harness.rank() == 0 {
                let mut sends = started(harness, mode, count, |i| i32::from(i + 1 == count));
                sends.push(other.isend(mode, &test_message(7), 1, 3));
                harness.barrier();
                harness.wait_all(sends);
            } else {
                harness.barrier();
                other.expect(ANY, &test_message(7));
                harness.expect(from(0, 1), &test_message(count - 1));
                (0..count - 1).for_each(|i| assert_eq!(harness.expect(from(0, 0), &test_message(i)).tag, 0));
            }
        }
    });
}

/// As many tags as messages. Quadratic time would not fit the deadline in the long form.
fn unmatched_messages_are_received_and_probed_in_reverse_order_of_tags(fixture: &TransportFixture) {
    let count = many(fixture, 5000);
    run(fixture, 2, |harness| {
        for mode in [Mode::Standard, Mode::Synchronous] {
            if harness.rank() == 0 {
                let sends = started(harness, mode, count, |i| i as i32 % 32_768);
                harness.barrier();
                harness.wait_all(sends);
            } else {
                harness.barrier();
                // Of equal tags the earliest message is received first.
                let (laps, tags) = (count.div_ceil(32_768), count.min(32_768));
                for tag in (0..tags).rev() {
                    assert_eq!(harness.probe(from(0, tag as i32)).tag, tag as i32);
                    for i in (0..laps).map(|lap| lap * 32_768 + tag).filter(|i| *i < count) {
                        harness.expect(from(0, tag as i32), &test_message(i));
                    }
                }
            }
        }
    });
}

/// The error has the numbers. Messages before the bound arrive, and so do later ones once some are received.
fn sends_past_the_bound_on_envelopes_fail_and_collectives_pass(fixture: &TransportFixture) {
    const BOUND: u32 = 100;
    let job = Job::new(fixture, 2).tuned(|config| config.envelopes = u64::from(BOUND) * ENVELOPE_LEN);
    job.run(|harness| {
        let other = dup(harness);
        if harness.rank() == 0 {
            // Messages that create communicators count as well until they are acked.
            harness.until("nothing is in flight", || harness.comm.leftovers().1 == 0);
            let sends = started(harness, Mode::Synchronous, BOUND as usize, |i| i as i32);
            for past in [TestMessage::plain(1, LEN), TestMessage::split(1, LEN, 100)] {
                let message = past.write(harness.source());
                for comm in [&harness.comm, &other.comm] {
                    let error = comm.isend(&message, 1, 1, Mode::Synchronous).expect_err("past the bound");
                    let octets = u64::from(BOUND) * ENVELOPE_LEN;
                    assert_eq!(
                        error,
                        DeviceError::Unmatched { rank: 1, count: BOUND, octets, limit: octets }
                    );
                }
            }
            harness.barrier();
            other.barrier();
            harness.wait_all(sends);
            (0..3).for_each(|i| harness.ssend(&TestMessage::split(i, LEN, 50), 1, 5));
        } else {
            harness.barrier();
            other.barrier();
            (0..BOUND as i32).rev().for_each(|tag| {
                assert_eq!(harness.expect(from(0, tag), &test_message(tag as usize)).tag, tag)
            });
            (0..3).for_each(|i| assert_eq!(harness.expect(ANY, &TestMessage::split(i, LEN, 50)).tag, 5));
        }
    });
}
