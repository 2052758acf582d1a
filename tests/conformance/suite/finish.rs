//! Finish of a rank: sent messages arrive, and operations that need the finished rank fail.

use std::time::Duration;

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, RankHarness, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    messages_sent_before_a_finish_arrive_and_then_receives_fail,
    a_receive_posted_before_the_finish_fails_too,
    any_source_fails_when_all_others_have_finished,
    any_source_fails_when_all_members_have_finished,
    a_send_to_a_finished_rank_fails,
    a_synchronous_send_that_a_finish_overtakes_fails,
    synchronous_sends_that_were_received_succeed_after_the_receivers_finish,
    finish_waits_until_what_was_sent_is_matched,
    a_second_finish_does_nothing,
    operations_fail_after_a_finish,
    ranks_finish_in_any_order_after_a_barrier,
    a_message_and_a_finish_right_behind_it_lose_nothing,
    a_large_message_that_is_matched_arrives_before_its_senders_finish,
    a_finish_ends_the_receives_that_other_threads_wait_for,
    nothing_is_sent_while_a_finish_waits,
    any_source_takes_a_message_of_its_own_rank_when_all_others_have_finished,
];

pub(super) const SMALL: TestMessage = TestMessage { seed: 1, primary: 16, secondary: 0, room: 0 };

pub(super) fn finish(harness: &RankHarness) -> Result<(), DeviceError> {
    harness.comm.finish(&mut Uninterruptible)
}

pub(super) fn gone(rank: u32) -> DeviceError {
    DeviceError::PeerFinished { rank }
}

fn messages_sent_before_a_finish_arrive_and_then_receives_fail(fixture: &TransportFixture) {
    let test_messages =
        [TestMessage::plain(1, 16), TestMessage::plain(2, 5000), TestMessage::split(3, 16, 700)];
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            for test_message in test_messages {
                let id = harness.isend(Mode::Standard, &test_message, 1, 1);
                id.into_iter().for_each(|id| harness.comm.detach(id));
            }
            assert_eq!(finish(harness), Ok(()));
        } else {
            for test_message in test_messages {
                harness.expect(from(0, 1), &test_message);
            }
            for _ in 0..3 {
                assert_eq!(
                    harness.comm.recv(from(0, 1), 16, None, &mut Uninterruptible).unwrap_err(),
                    gone(0)
                );
            }
            assert_eq!(harness.comm.probe(from(0, 1), &mut Uninterruptible), Err(gone(0)));
            assert_eq!(harness.comm.iprobe(from(0, 1)), Err(gone(0)));
            let id = harness.post(from(0, 1), 16);
            assert_eq!(harness.comm.wait(id, None, &mut Uninterruptible).unwrap_err(), gone(0));
        }
    });
}

fn a_receive_posted_before_the_finish_fails_too(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            harness.wait_for_note("posted");
            assert_eq!(finish(harness), Ok(()));
        } else {
            let ids = [harness.post(from(0, 1), 16), harness.post(from(0, None), 16)];
            harness.post_note("posted");
            for id in ids {
                assert_eq!(harness.comm.wait(id, None, &mut Uninterruptible).unwrap_err(), gone(0));
            }
        }
    });
}

fn any_source_fails_when_all_others_have_finished(fixture: &TransportFixture) {
    run(fixture, 4, |harness| {
        if harness.rank() > 0 {
            harness.wait_for_note("waiting");
            harness.send(&SMALL, 0, 1);
            assert_eq!(finish(harness), Ok(()));
        } else {
            harness.post_note("waiting");
            for _ in 0..3 {
                harness.expect(ANY, &SMALL);
            }
            assert_eq!(
                harness.comm.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(),
                DeviceError::NoSourceLeft
            );
            assert_eq!(harness.comm.probe(ANY, &mut Uninterruptible), Err(DeviceError::NoSourceLeft));
        }
    });
}

/// Other ranks are alive, but not members of that communicator.
fn any_source_fails_when_all_members_have_finished(fixture: &TransportFixture) {
    use mpjdev_engine::collective::Outcome;
    run(fixture, 3, |harness| {
        let operation = harness.comm.start_split((harness.rank() / 2) as i32, 0);
        let Ok(Outcome::Created(Some(comm))) = operation.finish(&mut Uninterruptible) else {
            panic!("split")
        };
        match harness.rank() {
            0 => {
                assert_eq!(
                    comm.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(),
                    DeviceError::NoSourceLeft
                );
                harness.send(&SMALL, 2, 1);
            }
            1 => assert_eq!(finish(harness), Ok(())),
            _ => assert_eq!(harness.expect(ANY, &SMALL).source, 0),
        }
    });
}

fn a_send_to_a_finished_rank_fails(fixture: &TransportFixture) {
    run(fixture, 3, |harness| {
        if harness.rank() == 0 {
            assert_eq!(finish(harness), Ok(()));
            harness.post_note("finished");
            return;
        }
        harness.wait_for_note("finished");
        harness.wait_for_end_of(0);
        let message = SMALL.write(harness.source());
        for mode in [Mode::Standard, Mode::Synchronous] {
            assert_eq!(harness.comm.isend(&message, 0, 1, mode), Err(gone(0)));
            assert_eq!(harness.comm.send(&message, 0, 1, mode, &mut Uninterruptible), Err(gone(0)));
        }
        // The others continue.
        let other = 3 - harness.rank();
        let sent = harness.isend(Mode::Standard, &SMALL, other, 1);
        harness.expect(from(other, 1), &SMALL);
        harness.wait_all([sent]);
    });
}

/// The message was in flight, or had arrived, when the destination finished.
fn a_synchronous_send_that_a_finish_overtakes_fails(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        if harness.rank() == 0 {
            let ids: Vec<_> =
                (0..10).map(|_| harness.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending")).collect();
            harness.post_note("sent");
            for id in ids {
                assert_eq!(harness.comm.wait(id, None, &mut Uninterruptible).unwrap_err(), gone(1));
            }
        } else {
            harness.wait_for_note("sent");
            assert_eq!(finish(harness), Ok(()));
        }
    });
}

/// The sender tests them only when it knows that the receiver has finished.
fn synchronous_sends_that_were_received_succeed_after_the_receivers_finish(fixture: &TransportFixture) {
    const COUNT: usize = 100;
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            let start = |_| harness.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            let ids: Vec<_> = (0..COUNT).map(start).collect();
            harness.wait_for_end_of(1);
            for id in ids {
                assert!(harness.comm.wait(id, None, &mut Uninterruptible).is_ok());
            }
        } else {
            (0..COUNT).for_each(|_| assert_eq!(harness.expect(from(0, 1), &SMALL).tag, 1));
            assert_eq!(finish(harness), Ok(()));
        }
    });
}

/// The receiver receives only after the sender has started to finish.
fn finish_waits_until_what_was_sent_is_matched(fixture: &TransportFixture) {
    let test_messages =
        [TestMessage::plain(1, 16), TestMessage::plain(2, 5000), TestMessage::split(3, 16, 700)];
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            let ids: Vec<_> = test_messages
                .iter()
                .map(|test_message| harness.isend(Mode::Synchronous, test_message, 1, 1).expect("pending"))
                .collect();
            harness.post_note("finishes");
            assert_eq!(finish(harness), Ok(()));
            assert!(harness.has_note("receives"));
            for id in ids {
                assert!(harness.comm.test(id).expect("delivered").is_some());
            }
        } else {
            harness.wait_for_note("finishes");
            harness.probe(ANY);
            harness.post_note("receives");
            for test_message in test_messages {
                harness.expect(from(0, 1), &test_message);
            }
        }
    });
}

fn a_second_finish_does_nothing(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for _ in 0..3 {
            assert_eq!(finish(harness), Ok(()));
        }
    });
}

/// Outcomes of operations that were done before can still be taken.
fn operations_fail_after_a_finish(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let peer = 1 - harness.rank();
        let received = harness.post(from(peer, 1), 16);
        let sent = harness.isend(Mode::Standard, &SMALL, peer, 1);
        harness.barrier();
        assert_eq!(finish(harness), Ok(()));
        let finished = DeviceError::Finished { rank: harness.rank() };
        let message = SMALL.write(harness.source());
        let comm = &harness.comm;
        assert_eq!(comm.isend(&message, 0, 1, Mode::Standard), Err(finished.clone()));
        assert_eq!(comm.isend(&message, 1, 1, Mode::Synchronous), Err(finished.clone()));
        assert_eq!(comm.irecv(ANY, 16, None), Err(finished.clone()));
        assert_eq!(comm.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(), finished);
        assert_eq!(comm.probe(ANY, &mut Uninterruptible), Err(finished.clone()));
        assert_eq!(comm.iprobe(ANY), Err(finished.clone()));
        assert_eq!(comm.barrier(&mut Uninterruptible), Err(finished.clone()));
        assert_eq!(comm.start_dup().finish(&mut Uninterruptible).map(drop), Err(finished));
        harness.wait_message(received, &SMALL);
        harness.wait_all([sent]);
    });
}

/// A rank that finishes right after the barrier loses none of the barrier's messages.
fn ranks_finish_in_any_order_after_a_barrier(fixture: &TransportFixture) {
    for _ in 0..amount(20, 1000) {
        run(fixture, 5, |harness| {
            harness.barrier();
            assert_eq!(finish(harness), Ok(()));
        });
    }
}

/// Again and again: the receiver learns of both in any order, and must have the message.
fn a_message_and_a_finish_right_behind_it_lose_nothing(fixture: &TransportFixture) {
    for round in 0..fixture.amount(100, 10_000) {
        run(fixture, 3, |harness| {
            if harness.rank() > 0 {
                let id = harness.isend(Mode::Standard, &SMALL, 0, 1);
                id.into_iter().for_each(|id| harness.comm.detach(id));
                assert_eq!(finish(harness), Ok(()));
            } else if round % 2 == 0 {
                harness.expect(from(2, 1), &SMALL);
                harness.expect(from(1, 1), &SMALL);
            } else {
                harness.probe(from(1, 1));
                harness.expect(ANY, &SMALL);
                harness.expect(ANY, &SMALL);
            }
        });
    }
}

/// Its send is done when it is matched, with most of it still to come where messages are copied.
fn a_large_message_that_is_matched_arrives_before_its_senders_finish(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let test_message = TestMessage::plain(1, fixture.octets(16 << 20));
        if harness.rank() == 0 {
            harness.send(&test_message, 1, 1);
            assert_eq!(finish(harness), Ok(()));
        } else {
            harness.expect(from(0, 1), &test_message);
            assert_eq!(harness.comm.recv(from(0, 1), 16, None, &mut Uninterruptible).unwrap_err(), gone(0));
        }
    });
}

/// No rank can send to the finished rank any more.
fn a_finish_ends_the_receives_that_other_threads_wait_for(fixture: &TransportFixture) {
    for source in [None, Some(0), Some(1)] {
        Job::new(fixture, 2).untidy().run(|harness| {
            if harness.rank() == 1 {
                return harness.wait_for_note("over");
            }
            harness.threads(2, |thread| {
                if thread == 0 {
                    let id = harness.post(from(source, 1), 16);
                    harness.post_note("posted");
                    let deadline = mpjdev_engine::deadline_after(Duration::from_secs(20));
                    let ended = harness.comm.wait(id, deadline, &mut Uninterruptible).map(drop);
                    assert_eq!(ended, Err(DeviceError::Finished { rank: 0 }), "from {source:?}");
                } else {
                    harness.wait_for_note("posted");
                    assert_eq!(finish(harness), Ok(()));
                }
            });
            harness.post_note("over");
        });
    }
}

/// From the first moment of the finish on, and not only once some rank is through with it.
fn nothing_is_sent_while_a_finish_waits(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        if harness.rank() == 1 {
            harness.wait_for_note("tried");
            harness.expect(from(0, 1), &SMALL);
            return;
        }
        let id = harness.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
        harness.comm.detach(id);
        harness.threads(2, |thread| {
            if thread == 0 {
                assert_eq!(finish(harness), Ok(()));
            } else {
                let refused = |e| e == Err(DeviceError::Finished { rank: 0 });
                harness.until("receives are refused", || refused(harness.comm.iprobe(ANY).map(drop)));
                let message = SMALL.write(harness.source());
                let sent = harness.comm.isend(&message, 1, 2, Mode::Standard).map(drop);
                harness.post_note("tried");
                assert_eq!(sent, Err(DeviceError::Finished { rank: 0 }));
            }
        });
    });
}

/// A receive that is only posted may still get what this rank sends to itself.
fn any_source_takes_a_message_of_its_own_rank_when_all_others_have_finished(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 1 {
            assert_eq!(finish(harness), Ok(()));
            return harness.post_note("finished");
        }
        harness.wait_for_note("finished");
        let id = harness.post(ANY, 16);
        let sent = harness.isend(Mode::Standard, &SMALL, 0, 1);
        harness.wait_message(id, &SMALL);
        harness.wait_all([sent]);
    });
}
