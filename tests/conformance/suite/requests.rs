//! Requests: wait, wait for any, test, deadlines, interrupts, cancel, detach.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    test_reports_a_request_until_its_outcome_is_taken,
    waiting_for_any_finds_the_one_that_is_done,
    a_wait_that_timed_out_leaves_the_request_pending_and_it_completes_later,
    an_interrupted_wait_leaves_the_request_pending,
    an_interrupted_blocking_receive_is_withdrawn,
    unmatched_receive_is_cancelled,
    a_receive_that_has_its_message_is_not_cancelled,
    a_cancel_that_races_with_the_arrival_loses_no_message,
    cancelled_send_never_arrives_and_a_refused_cancel_does,
    a_detached_receive_takes_its_message_and_drops_it,
    a_detached_send_arrives,
    taken_request_is_reported_as_unknown,
];

const SMALL: TestMessage = TestMessage { seed: 1, primary: 64, secondary: 0, room: 0 };

fn test_messages() -> [TestMessage; 3] {
    [SMALL, TestMessage::plain(2, 5000), TestMessage::split(3, 64, 3000)]
}

fn test_reports_a_request_until_its_outcome_is_taken(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (i, test_message) in test_messages().iter().enumerate() {
            if harness.rank() == 0 {
                harness.wait_for_note(&format!("pending {i}"));
                harness.send(test_message, 1, 7);
            } else {
                let id = harness.post(from(0, 7), test_message.needs());
                assert!(harness.comm.test(id).expect("test").is_none());
                harness.post_note(&format!("pending {i}"));
                harness.until("the receive is done", || harness.comm.is_done(id));
                assert!(harness.comm.is_done(id), "it stays so");
                let done = harness.comm.test(id).expect("test").expect("done");
                test_message.check(&done.message.expect("a message"));
                assert_eq!(harness.comm.test(id).unwrap_err(), DeviceError::NoSuchRequest);
            }
        }
    });
}

/// Each of several receives in turn, in an order that the sender chooses.
fn waiting_for_any_finds_the_one_that_is_done(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let order = [3, 0, 4, 1, 2];
        if harness.rank() == 0 {
            for i in order {
                harness.wait_for_note(&format!("waits for {i}"));
                harness.send(&TestMessage::plain(i as u64, 128), 1, i);
            }
        } else {
            let mut ids: Vec<_> = (0..5).map(|tag| (tag, harness.post(from(0, tag), 128))).collect();
            for i in order {
                harness.post_note(&format!("waits for {i}"));
                let pending: Vec<_> = ids.iter().map(|(_, id)| *id).collect();
                let at = harness.comm.wait_any(&pending, None, &mut Uninterruptible).expect("wait_any");
                let (tag, id) = ids.remove(at);
                assert_eq!(tag, i);
                assert_eq!(harness.wait_message(id, &TestMessage::plain(i as u64, 128)).tag, i);
            }
        }
    });
}

fn a_wait_that_timed_out_leaves_the_request_pending_and_it_completes_later(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (i, test_message) in test_messages().iter().enumerate() {
            if harness.rank() == 0 {
                harness.wait_for_note(&format!("timed out {i}"));
                harness.send(test_message, 1, 7);
            } else {
                let id = harness.post(from(0, 7), test_message.needs());
                for ms in [0, 1, 30] {
                    let begun = Instant::now();
                    let deadline = begun + Duration::from_millis(ms);
                    let error = harness.comm.wait(id, Some(deadline), &mut Uninterruptible).unwrap_err();
                    assert!(matches!(error, DeviceError::TimedOut { .. }), "{error}");
                    assert!(Instant::now() >= deadline);
                    let any = harness.comm.wait_any(&[id], Some(deadline), &mut Uninterruptible);
                    assert!(matches!(any, Err(DeviceError::TimedOut { .. })));
                }
                harness.post_note(&format!("timed out {i}"));
                harness.wait_message(id, test_message);
            }
        }
    });
}

/// A waiting thread asks its wait control before each park, and ends the wait when the control says so.
fn an_interrupted_wait_leaves_the_request_pending(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            harness.wait_for_note("interrupted");
            harness.send(&SMALL, 1, 7);
        } else {
            let id = harness.post(ANY, SMALL.needs());
            let mut asked = 0;
            let mut patience = || {
                asked += 1;
                asked < 3
            };
            assert_eq!(harness.comm.wait(id, None, &mut patience).unwrap_err(), DeviceError::Interrupted);
            assert_eq!(asked, 3);
            assert_eq!(harness.comm.probe(ANY, &mut || false).unwrap_err(), DeviceError::Interrupted);
            harness.post_note("interrupted");
            harness.wait_message(id, &SMALL);
        }
    });
}

/// The next receive gets the message.
fn an_interrupted_blocking_receive_is_withdrawn(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            harness.wait_for_note("interrupted");
            harness.send(&SMALL, 1, 7);
        } else {
            let error = harness.comm.recv(ANY, SMALL.needs(), None, &mut || false).unwrap_err();
            assert_eq!(error, DeviceError::Interrupted);
            assert_eq!(harness.comm.leftovers(), (0, 0));
            harness.post_note("interrupted");
            harness.expect(ANY, &SMALL);
        }
    });
}

fn unmatched_receive_is_cancelled(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            harness.wait_for_note("cancelled");
            harness.send(&SMALL, 1, 7);
        } else {
            let ids: Vec<_> = [from(0, 7), ANY, from(None, 7)].map(|f| harness.post(f, SMALL.needs())).into();
            for id in ids {
                assert_eq!(harness.comm.cancel(id), Ok(true));
                assert_eq!(harness.comm.cancel(id), Ok(false), "it is done");
                assert_eq!(
                    harness.comm.wait(id, None, &mut Uninterruptible).unwrap_err(),
                    DeviceError::Cancelled
                );
            }
            harness.post_note("cancelled");
            harness.expect(ANY, &SMALL);
        }
    });
}

fn a_receive_that_has_its_message_is_not_cancelled(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for test_message in test_messages() {
            if harness.rank() == 0 {
                harness.send(&test_message, 1, 7);
            } else {
                harness.probe(from(0, 7));
                let id = harness.post(from(0, 7), test_message.needs());
                assert_eq!(harness.comm.cancel(id), Ok(false));
                harness.wait_message(id, &test_message);
            }
        }
    });
}

/// The message is received exactly once, for both answers of the cancel.
fn a_cancel_that_races_with_the_arrival_loses_no_message(fixture: &TransportFixture) {
    let rounds = fixture.amount(300, 100_000);
    let at = AtomicUsize::new(0);
    run(fixture, 2, |harness| {
        for round in 0..rounds {
            let test_message = TestMessage { seed: round as u64, ..test_messages()[round % 3] };
            if harness.rank() == 0 {
                harness.until("the receiver is ready", || at.load(SeqCst) > round);
                harness.send(&test_message, 1, 7);
            } else {
                let id = harness.post(from(0, 7), test_message.needs());
                at.store(round + 1, SeqCst);
                // At a varying time after the message was sent.
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                if harness.comm.cancel(id).expect("cancel") {
                    assert_eq!(harness.comm.test(id).unwrap_err(), DeviceError::Cancelled);
                    harness.expect(from(0, 7), &test_message);
                } else {
                    harness.wait_message(id, &test_message);
                }
            }
        }
    });
}

/// The cancel of a send may succeed or not; the receiver sees the same result.
fn cancelled_send_never_arrives_and_a_refused_cancel_does(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            let mut arrive = 0u64;
            for i in 0..100 {
                let test_message = TestMessage { seed: arrive, ..test_messages()[i % 3] };
                let mode = if i % 2 == 0 { Mode::Standard } else { Mode::Synchronous };
                let Some(id) = harness.isend(mode, &test_message, 1, i as i32 % 3) else {
                    arrive += 1;
                    continue;
                };
                if harness.comm.cancel(id).expect("cancel") {
                    assert_eq!(harness.comm.test(id).unwrap_err(), DeviceError::Cancelled);
                } else {
                    arrive += 1;
                    harness.comm.detach(id);
                }
            }
            harness.send(&TestMessage::plain(arrive, 0), 1, 9);
        } else {
            let mut arrived = 0;
            loop {
                let (status, message) = harness.recv(ANY, 5000);
                if status.tag == 9 {
                    break;
                }
                TestMessage { seed: arrived, ..test_messages()[status.tag as usize] }.check(&message);
                arrived += 1;
            }
            harness.post_note(&format!("{arrived} arrived"));
        }
        harness.barrier();
    });
}

/// The message after it goes to the next receive.
fn a_detached_receive_takes_its_message_and_drops_it(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (i, test_message) in test_messages().iter().enumerate() {
            if harness.rank() == 0 {
                harness.wait_for_note(&format!("detached {i}"));
                harness.ssend(test_message, 1, 7);
                harness.send(&SMALL, 1, 7);
            } else {
                let id = harness.post(from(0, 7), test_message.needs());
                harness.comm.detach(id);
                harness.post_note(&format!("detached {i}"));
                harness.expect(from(0, 7), &SMALL);
            }
        }
    });
}

fn a_detached_send_arrives(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for test_message in test_messages() {
            if harness.rank() == 0 {
                let id = harness.isend(Mode::Synchronous, &test_message, 1, 7).expect("pending");
                harness.comm.detach(id);
            } else {
                harness.expect(from(0, 7), &test_message);
            }
        }
        harness.barrier();
    });
}

/// Also when its table entry is in use again.
fn taken_request_is_reported_as_unknown(fixture: &TransportFixture) {
    run(fixture, 1, |harness| {
        let first = harness.post(ANY, 0);
        harness.comm.cancel(first).expect("cancel");
        assert_eq!(harness.comm.test(first).unwrap_err(), DeviceError::Cancelled);
        let second = harness.post(ANY, 0);
        assert_eq!(harness.comm.test(first).unwrap_err(), DeviceError::NoSuchRequest);
        assert_eq!(harness.comm.cancel(first), Err(DeviceError::NoSuchRequest));
        assert_eq!(
            harness.comm.wait(first, None, &mut Uninterruptible).unwrap_err(),
            DeviceError::NoSuchRequest
        );
        harness.comm.detach(first);
        assert!(harness.comm.test(second).expect("test").is_none());
        assert_eq!(harness.comm.cancel(second), Ok(true));
        harness.comm.detach(second);
    });
}
