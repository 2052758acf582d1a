//! Free of a communicator: its unreceived messages are dropped, with their memory and credit, and no rank
//! waits for them.

use mpjdev_engine::collective::Outcome;
use mpjdev_engine::{Comm, DeviceError, Mode, RequestId, Uninterruptible};

use crate::rank_harness::{ANY, Job, RankHarness, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    arrived_messages_are_dropped_when_their_communicator_is_freed,
    messages_that_arrive_after_the_free_are_dropped,
    a_freed_communicator_keeps_no_credit,
    a_dropped_communicator_is_freed,
    receives_that_were_posted_before_the_free_get_their_messages,
    messages_of_a_communicator_under_creation_are_kept,
    messages_of_a_freed_communicator_do_not_reach_a_new_one,
    receives_and_probes_of_a_freed_communicator_fail,
    freeing_the_world_is_refused,
];

const SMALL: TestMessage = TestMessage { seed: 1, primary: 16, secondary: 0, room: 0 };
/// Tag of the message that ends a test.
const END: i32 = 99;

/// Inline, by reference or in packets, longer than any eager limit, and in two halves of each kind.
fn test_messages(fixture: &TransportFixture) -> Vec<TestMessage> {
    let long = fixture.octets(600_000) / 8 * 8;
    vec![
        SMALL,
        TestMessage::plain(2, 5000),
        TestMessage::plain(3, long),
        TestMessage::split(4, 16, 700),
        TestMessage::split(5, 64, long),
        TestMessage::split(6, long, 300),
    ]
}

fn dup(harness: &RankHarness) -> Comm {
    match harness.comm.start_dup().finish(&mut Uninterruptible) {
        Ok(Outcome::Created(Some(comm))) => comm,
        other => panic!("dup gives {other:?}"),
    }
}

/// Sends each test message in both modes, the last one with the tag 77.
fn send_all(harness: &RankHarness, test_messages: &[TestMessage]) -> Vec<Option<RequestId>> {
    let modes = [Mode::Standard, Mode::Synchronous];
    let all = test_messages.iter().flat_map(|test_message| modes.map(|mode| (test_message, mode)));
    let mut sends: Vec<_> =
        (1..).zip(all).map(|(tag, (test_message, mode))| harness.isend(mode, test_message, 1, tag)).collect();
    sends.push(harness.isend(Mode::Standard, &SMALL, 1, 77));
    sends
}

fn arrived_messages_are_dropped_when_their_communicator_is_freed(fixture: &TransportFixture) {
    let test_messages = test_messages(fixture);
    run(fixture, 2, |harness| {
        let made = harness.on(dup(harness));
        if harness.rank() == 0 {
            let sends = send_all(&made, &test_messages);
            made.wait_all(sends);
            harness.send(&SMALL, 1, END);
        } else {
            made.probe(from(0, 77));
            made.comm.free();
            harness.expect(from(0, END), &SMALL);
        }
        made.comm.free();
    });
}

fn messages_that_arrive_after_the_free_are_dropped(fixture: &TransportFixture) {
    let test_messages = test_messages(fixture);
    run(fixture, 2, |harness| {
        let made = harness.on(dup(harness));
        if harness.rank() == 0 {
            harness.wait_for_note("freed");
            let sends = send_all(&made, &test_messages);
            made.wait_all(sends);
            harness.send(&SMALL, 1, END);
        } else {
            made.comm.free();
            harness.post_note("freed");
            harness.expect(from(0, END), &SMALL);
        }
    });
}

/// Messages of many times the credit are sent and never received. A standard send within the credit is still
/// done at once.
fn a_freed_communicator_keeps_no_credit(fixture: &TransportFixture) {
    const CREDIT: u64 = 16 << 10;
    let job = Job::new(fixture, 2).tuned(|config| config.credit = config.credit.min(CREDIT));
    let rounds = amount(20, 1000);
    job.run(|harness| {
        for round in 0..rounds {
            let made = harness.on(dup(harness));
            if harness.rank() == 0 {
                let sends: Vec<_> = (0..4)
                    .map(|tag| made.isend(Mode::Standard, &TestMessage::plain(7, 3000), 1, tag))
                    .collect();
                made.wait_all(sends);
                harness.send(&SMALL, 1, round as i32);
            } else {
                made.comm.free();
                harness.expect(from(0, round as i32), &SMALL);
            }
            made.comm.free();
        }
    });
}

fn a_dropped_communicator_is_freed(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let made = harness.on(dup(harness));
        if harness.rank() == 0 {
            let sends = send_all(&made, &[SMALL]);
            made.wait_all(sends);
            harness.send(&SMALL, 1, END);
        } else {
            let other = made.clone();
            made.probe(from(0, 77));
            drop(made);
            other.probe(from(0, 77));
            drop(other);
            harness.expect(from(0, END), &SMALL);
        }
    });
}

/// A pending receive continues, before and after the free.
fn receives_that_were_posted_before_the_free_get_their_messages(fixture: &TransportFixture) {
    let test_messages = test_messages(fixture);
    run(fixture, 2, |harness| {
        let made = harness.on(dup(harness));
        if harness.rank() == 0 {
            harness.wait_for_note("freed");
            let sends: Vec<_> = (0..2)
                .flat_map(|_| (1..).zip(&test_messages))
                .map(|(tag, test_message)| made.isend(Mode::Standard, test_message, 1, tag))
                .collect();
            made.wait_all(sends);
            harness.send(&SMALL, 1, END);
        } else {
            let receives: Vec<_> = (1..)
                .zip(&test_messages)
                .map(|(tag, test_message)| made.post(from(0, tag), test_message.needs()))
                .collect();
            made.comm.free();
            harness.post_note("freed");
            for (id, test_message) in receives.into_iter().zip(&test_messages) {
                made.wait_message(id, test_message);
            }
            harness.expect(from(0, END), &SMALL);
        }
    });
}

/// Rank 0 has the new communicator and sends in it, while rank 1 has only done its part of the dup.
/// Other communicators were freed before.
fn messages_of_a_communicator_under_creation_are_kept(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        (0..3).for_each(|_| dup(harness).free());
        if harness.rank() == 0 {
            let made = harness.on(dup(harness));
            let sent = made.isend(Mode::Standard, &SMALL, 1, 5);
            harness.send(&SMALL, 1, END);
            made.wait_all([sent]);
        } else {
            let mut dup = harness.comm.start_dup();
            let mut made = None;
            while harness.comm.iprobe(from(0, END)).expect("iprobe").is_none() {
                made = made.or_else(|| dup.advance().expect("advance"));
            }
            harness.expect(from(0, END), &SMALL);
            let Outcome::Created(Some(made)) =
                made.unwrap_or_else(|| dup.finish(&mut Uninterruptible).expect("dup"))
            else {
                panic!("all are in it")
            };
            harness.on(made).expect(ANY, &SMALL);
        }
    });
}

/// Messages leave when their receiver has freed the communicator, before their sender frees it.
fn messages_of_a_freed_communicator_do_not_reach_a_new_one(fixture: &TransportFixture) {
    let test_messages = [SMALL, TestMessage::plain(2, 20_000), TestMessage::split(4, 16, 700)];
    run(fixture, 2, |harness| {
        for round in 0..amount(10, 200) {
            let old = harness.on(dup(harness));
            if harness.rank() == 0 {
                old.comm.free();
                harness.send(&SMALL, 1, END);
            } else {
                harness.expect(from(0, END), &SMALL);
                let sends: Vec<_> = test_messages
                    .iter()
                    .map(|test_message| old.isend(Mode::Standard, test_message, 0, 7))
                    .collect();
                old.comm.free();
                old.wait_all(sends);
            }
            drop(old);
            for _ in 0..3 {
                let new = harness.on(dup(harness));
                if harness.rank() == 0 {
                    new.expect(from(1, 8), &SMALL);
                    assert_eq!(new.comm.iprobe(ANY), Ok(None), "round {round}");
                } else {
                    let sent = new.isend(Mode::Standard, &SMALL, 0, 8);
                    new.wait_all([sent]);
                }
                new.comm.free();
            }
        }
    });
}

fn receives_and_probes_of_a_freed_communicator_fail(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let made = dup(harness);
        made.free();
        made.free();
        assert_eq!(made.irecv(ANY, 16, None), Err(DeviceError::Freed));
        assert_eq!(made.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(), DeviceError::Freed);
        assert_eq!(made.iprobe(ANY), Err(DeviceError::Freed));
        assert_eq!(made.probe(ANY, &mut Uninterruptible), Err(DeviceError::Freed));
    });
}

fn freeing_the_world_is_refused(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        harness.comm.free();
        harness.barrier();
        let peer = 1 - harness.rank();
        let sent = harness.isend(Mode::Standard, &SMALL, peer, 1);
        harness.expect(from(peer, 1), &SMALL);
        harness.wait_all([sent]);
    });
}
