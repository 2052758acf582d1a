//! Finish of a rank with unreceived messages: the wait, and the reports.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use super::finish::{SMALL, finish, gone};
use crate::rank_harness::{ANY, Job, from};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    finish_reports_unreceived_messages_after_the_peer_timeout,
    finish_waits_past_the_peer_timeout_while_heartbeats_arrive,
    ranks_that_finish_with_messages_for_each_other_both_end,
    finish_reports_messages_whose_receiver_has_finished,
    finish_warns_of_unreceived_messages,
    finish_warns_of_messages_that_a_freed_communicator_dropped,
    standard_sends_to_itself_do_not_delay_finish,
    standard_sends_to_a_rank_that_finishes_do_not_fail_finish,
    finish_keeps_the_peer_timeout_for_a_peer_that_others_drive,
];

/// The process of the peer is alive, but calls nothing.
fn finish_reports_unreceived_messages_after_the_peer_timeout(fixture: &TransportFixture) {
    let patience = Duration::from_millis(200);
    for test_message in
        [TestMessage::plain(1, 64), TestMessage::plain(2, 5000), TestMessage::split(3, 64, 700)]
    {
        let job = Job::new(fixture, 2).untidy().tuned(|config| config.finish_timeout = patience);
        job.run(|harness| {
            if harness.rank() == 0 {
                for tag in [31, 32, 33] {
                    let id = harness.isend(Mode::Synchronous, &test_message, 1, tag).expect("pending");
                    harness.comm.detach(id);
                }
                let begun = Instant::now();
                let len = test_message.primary + test_message.secondary + 16;
                let undelivered = DeviceError::Undelivered { count: 3, rank: 1, tag: 31, len };
                assert_eq!(finish(harness), Err(undelivered));
                assert!(begun.elapsed() >= patience, "after {:?}", begun.elapsed());
                harness.post_note("timed out");
            } else {
                harness.wait_for_note("timed out");
                // The rank has finished nevertheless.
                harness.until("the end is known", || harness.comm.iprobe(from(0, 99)) == Err(gone(0)));
            }
        });
    }
}

/// A busy machine may delay the peer past a short peer timeout, but not past a long one.
fn finish_waits_past_the_peer_timeout_while_heartbeats_arrive(fixture: &TransportFixture) {
    let patiences = [400, 2000, 5000].map(Duration::from_millis);
    let outlasts = patiences.into_iter().any(|patience| waits_longer_than_its_peer(fixture, patience));
    assert!(outlasts, "it timed out within {patiences:?}");
}

/// Whether a finish waits while the peer waits three times as long for another message and then receives.
fn waits_longer_than_its_peer(fixture: &TransportFixture, patience: Duration) -> bool {
    let outlasts = AtomicBool::new(true);
    Job::new(fixture, 2).untidy().tuned(|config| config.finish_timeout = patience).run(|harness| {
        let timed_out = "timed out";
        if harness.rank() == 0 {
            let id = harness.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            harness.post_note("finishes");
            let ended = finish(harness);
            if ended.is_ok() {
                assert!(harness.comm.test(id).expect("delivered").is_some());
            } else {
                assert!(
                    matches!(ended, Err(DeviceError::Undelivered { count: 1, rank: 1, .. })),
                    "{ended:?}"
                );
                harness.comm.detach(id);
                harness.post_note(timed_out);
            }
            harness.post_note("over");
        } else {
            harness.wait_for_note("finishes");
            let other = harness.post(from(1, 2), 16);
            let deadline = Instant::now() + 3 * patience;
            assert!(harness.comm.wait(other, Some(deadline), &mut Uninterruptible).is_err());
            assert_eq!(harness.comm.cancel(other), Ok(true));
            harness.comm.detach(other);
            let received = harness.comm.recv(from(0, 1), SMALL.needs(), None, &mut Uninterruptible);
            harness.wait_for_note("over");
            match received {
                Ok((_, message)) => SMALL.check(&message),
                Err(error) => assert!(harness.has_note(timed_out), "{error}"),
            }
        }
        if harness.has_note(timed_out) {
            outlasts.store(false, Relaxed);
        }
    });
    outlasts.into_inner()
}

/// Neither receives again, so neither waits for the other.
fn ranks_that_finish_with_messages_for_each_other_both_end(fixture: &TransportFixture) {
    let job =
        Job::new(fixture, 2).untidy().tuned(|config| config.finish_timeout = Duration::from_millis(200));
    job.run(|harness| {
        let peer = 1 - harness.rank();
        // To itself as well: no other rank can receive that.
        for dest in [peer, harness.rank()] {
            let id = harness.isend(Mode::Synchronous, &SMALL, dest, 1).expect("pending");
            harness.comm.detach(id);
        }
        harness.post_note(&format!("{} has sent", harness.rank()));
        harness.wait_for_note(&format!("{peer} has sent"));
        let error = finish(harness).expect_err("undelivered");
        assert!(matches!(error, DeviceError::Undelivered { count: 1 | 2, .. }), "{error}");
    });
}

/// Also when no thread waits for the send, and when one could have.
fn finish_reports_messages_whose_receiver_has_finished(fixture: &TransportFixture) {
    Job::new(fixture, 2).untidy().run(|harness| {
        if harness.rank() == 0 {
            let forgotten = harness.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            harness.comm.detach(forgotten);
            let kept =
                harness.isend(Mode::Synchronous, &TestMessage::split(2, 16, 90), 1, 2).expect("pending");
            harness.post_note("sent");
            let undelivered = DeviceError::Undelivered { count: 2, rank: 1, tag: 1, len: 32 };
            assert_eq!(finish(harness), Err(undelivered));
            assert_eq!(harness.comm.test(kept).unwrap_err(), gone(1));
        } else {
            harness.wait_for_note("sent");
            assert_eq!(finish(harness), Ok(()));
        }
    });
}

/// Short and long, from the other rank and from itself, in the world and in another communicator. The sender
/// has no error.
fn finish_warns_of_unreceived_messages(fixture: &TransportFixture) {
    use mpjdev_engine::collective::Outcome;
    let long = TestMessage::plain(2, fixture.octets(1 << 20) / 8 * 8);
    Job::new(fixture, 2).untidy().run(|harness| {
        let made = match harness.comm.start_dup().finish(&mut Uninterruptible) {
            Ok(Outcome::Created(Some(comm))) => harness.on(comm),
            other => panic!("dup gives {other:?}"),
        };
        if harness.rank() == 0 {
            for (test_message, tag) in [(SMALL, 7), (long, 9), (TestMessage::split(3, 16, 700), 11)] {
                let id = harness.isend(Mode::Standard, &test_message, 1, tag);
                id.into_iter().for_each(|id| harness.comm.detach(id));
            }
            let id = made.isend(Mode::Standard, &SMALL, 1, 13);
            id.into_iter().for_each(|id| harness.comm.detach(id));
            // A library may send messages only while it is called. The other rank may have finished by now.
            harness.until("all are seen", || {
                let _ = harness.comm.iprobe(ANY);
                harness.has_note("seen")
            });
            assert_eq!(finish(harness), Ok(()));
            assert_eq!(harness.comm.take_unreceived(), None);
        } else {
            let id = harness.isend(Mode::Standard, &SMALL, 1, 1);
            id.into_iter().for_each(|id| harness.comm.detach(id));
            for tag in [7, 9, 11] {
                harness.probe(from(0, tag));
            }
            made.probe(from(0, 13));
            harness.probe(from(1, 1));
            harness.post_note("seen");
            assert_eq!(finish(harness), Ok(()));
            let unreceived = harness.comm.take_unreceived().expect("five messages");
            assert_eq!(unreceived.count(), 5, "{unreceived}");
            let text = unreceived.to_string();
            let start = "rank 1 finishes with 5 messages that no receive took: 4 from rank 0 (";
            let parts = [
                "tag 7, 16 octets",
                "tag 9, ",
                "tag 13, 16 octets, in communicator ",
                "1 from itself (tag 1, 16",
            ];
            assert!(text.starts_with(start) && parts.iter().all(|part| text.contains(part)), "{text}");
            assert_eq!(harness.comm.take_unreceived(), None);
        }
    });
}

fn finish_warns_of_messages_that_a_freed_communicator_dropped(fixture: &TransportFixture) {
    use mpjdev_engine::collective::Outcome;
    Job::new(fixture, 2).untidy().run(|harness| {
        let made = match harness.comm.start_dup().finish(&mut Uninterruptible) {
            Ok(Outcome::Created(Some(comm))) => harness.on(comm),
            other => panic!("dup gives {other:?}"),
        };
        if harness.rank() == 0 {
            harness.wait_all([made.isend(Mode::Standard, &SMALL, 1, 5)]);
            harness.wait_for_note("seen");
            harness.wait_all([made.isend(Mode::Standard, &SMALL, 1, 6)]);
            harness.send(&SMALL, 1, 1);
        } else {
            made.probe(from(0, 5));
            made.comm.free();
            harness.post_note("seen");
            harness.expect(from(0, 1), &SMALL);
            assert_eq!(finish(harness), Ok(()));
            let unreceived = harness.comm.take_unreceived().expect("two messages");
            assert_eq!(unreceived.count(), 2, "{unreceived}");
        }
    });
}

/// No rank can receive them any more, so there is no wait for any size.
fn standard_sends_to_itself_do_not_delay_finish(fixture: &TransportFixture) {
    let test_messages =
        [SMALL, TestMessage::plain(2, fixture.octets(1 << 20) / 8 * 8), TestMessage::split(3, 16, 700)];
    let job = Job::new(fixture, 2).untidy().tuned(|config| config.finish_timeout = Duration::from_secs(600));
    job.run(|harness| {
        let own = harness.rank();
        let ids: Vec<_> = test_messages
            .iter()
            .filter_map(|test_message| harness.isend(Mode::Standard, test_message, own, 1))
            .collect();
        ids.into_iter().for_each(|id| harness.comm.detach(id));
        assert_eq!(finish(harness), Ok(()));
        assert_eq!(harness.comm.take_unreceived().map(|left| left.count()), Some(test_messages.len()));
    });
}

/// The receiver has the message or its RTS, and reports it. A pending request of the sender fails.
fn standard_sends_to_a_rank_that_finishes_do_not_fail_finish(fixture: &TransportFixture) {
    let test_message = TestMessage::plain(2, fixture.octets(1 << 20) / 8 * 8);
    // The second message is past the credit, if there is one.
    let job = Job::new(fixture, 2).untidy().tuned(|config| config.credit = config.credit.min(2 << 20));
    job.run(|harness| {
        if harness.rank() == 0 {
            let ids: Vec<_> =
                (0..4).map(|tag| harness.isend(Mode::Standard, &test_message, 1, tag)).collect();
            harness.post_note("sent");
            assert_eq!(finish(harness), Ok(()));
            for id in ids.into_iter().flatten() {
                let outcome = harness.comm.test(id).map(|done| done.is_some());
                assert!(
                    matches!(outcome, Ok(true) | Err(DeviceError::PeerFinished { rank: 1 })),
                    "{outcome:?}"
                );
            }
        } else {
            harness.wait_for_note("sent");
            assert_eq!(finish(harness), Ok(()));
        }
    });
}

/// Progress that other threads drive for a rank is not a heartbeat of that rank.
fn finish_keeps_the_peer_timeout_for_a_peer_that_others_drive(fixture: &TransportFixture) {
    let job = Job::new(fixture, 3).untidy().tuned(|config| {
        config.finish_timeout = Duration::from_millis(300);
        config.credit = 16 << 20;
    });
    job.run(|harness| match harness.rank() {
        0 => {
            let id = harness.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            harness.comm.detach(id);
            let ended = finish(harness);
            harness.post_note("over");
            assert!(matches!(ended, Err(DeviceError::Undelivered { count: 1, rank: 1, .. })), "{ended:?}");
        }
        // Calls nothing.
        1 => harness.wait_for_note("over"),
        // Continues until rank 0 ends its wait. If that never ends, `wait_for_note` fails at its deadline.
        _ => {
            while !harness.has_note("over") {
                let id = harness.isend(Mode::Standard, &SMALL, 1, 2);
                id.into_iter().for_each(|id| harness.comm.detach(id));
                (0..128).for_each(|_| drop(harness.comm.iprobe(ANY)));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
}
