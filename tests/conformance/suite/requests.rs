//! Requests: wait, wait for any, test, deadlines, interrupts, cancel, detach.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    a_test_tells_of_a_request_until_its_outcome_is_taken,
    waiting_for_any_finds_the_one_that_is_done,
    a_wait_that_timed_out_leaves_the_request_pending_and_it_completes_later,
    an_interrupted_wait_leaves_the_request_pending,
    an_interrupted_blocking_receive_is_withdrawn,
    an_unmatched_receive_is_cancelled_for_certain,
    a_receive_that_has_its_message_is_not_cancelled,
    a_cancel_that_races_with_the_arrival_loses_no_message,
    a_cancelled_send_never_arrives_and_one_that_is_not_does,
    a_detached_receive_takes_its_message_and_drops_it,
    a_detached_send_arrives,
    a_request_that_is_gone_is_named_as_such,
];

const SMALL: Letter = Letter { seed: 1, primary: 64, secondary: 0, room: 0 };

fn letters() -> [Letter; 3] {
    [SMALL, Letter::plain(2, 5000), Letter::split(3, 64, 3000)]
}

fn a_test_tells_of_a_request_until_its_outcome_is_taken(world: &World) {
    run(world, 2, |party| {
        for (i, letter) in letters().iter().enumerate() {
            if party.rank() == 0 {
                party.hear(&format!("pending {i}"));
                party.send(letter, 1, 7);
            } else {
                let id = party.post(from(0, 7), letter.needs());
                assert!(party.comm.test(id).expect("test").is_none());
                party.say(&format!("pending {i}"));
                party.until("the receive is done", || party.comm.is_done(id));
                assert!(party.comm.is_done(id), "it stays so");
                let done = party.comm.test(id).expect("test").expect("done");
                letter.check(&done.message.expect("a message"));
                assert_eq!(party.comm.test(id).unwrap_err(), DeviceError::NoSuchRequest);
            }
        }
    });
}

/// Each of several receives in turn, in an order that the sender chooses.
fn waiting_for_any_finds_the_one_that_is_done(world: &World) {
    run(world, 2, |party| {
        let order = [3, 0, 4, 1, 2];
        if party.rank() == 0 {
            for i in order {
                party.hear(&format!("waits for {i}"));
                party.send(&Letter::plain(i as u64, 128), 1, i);
            }
        } else {
            let mut ids: Vec<_> = (0..5).map(|tag| (tag, party.post(from(0, tag), 128))).collect();
            for i in order {
                party.say(&format!("waits for {i}"));
                let pending: Vec<_> = ids.iter().map(|(_, id)| *id).collect();
                let at = party.comm.wait_any(&pending, None, &mut Uninterruptible).expect("wait_any");
                let (tag, id) = ids.remove(at);
                assert_eq!(tag, i);
                assert_eq!(party.wait_letter(id, &Letter::plain(i as u64, 128)).tag, i);
            }
        }
    });
}

fn a_wait_that_timed_out_leaves_the_request_pending_and_it_completes_later(world: &World) {
    run(world, 2, |party| {
        for (i, letter) in letters().iter().enumerate() {
            if party.rank() == 0 {
                party.hear(&format!("timed out {i}"));
                party.send(letter, 1, 7);
            } else {
                let id = party.post(from(0, 7), letter.needs());
                for ms in [0, 1, 30] {
                    let begun = Instant::now();
                    let deadline = begun + Duration::from_millis(ms);
                    let error = party.comm.wait(id, Some(deadline), &mut Uninterruptible).unwrap_err();
                    assert!(matches!(error, DeviceError::TimedOut { .. }), "{error}");
                    assert!(Instant::now() >= deadline);
                    let any = party.comm.wait_any(&[id], Some(deadline), &mut Uninterruptible);
                    assert!(matches!(any, Err(DeviceError::TimedOut { .. })));
                }
                party.say(&format!("timed out {i}"));
                party.wait_letter(id, letter);
            }
        }
    });
}

/// A waiting thread asks its wait control before each sleep, and gives up as soon as that says so.
fn an_interrupted_wait_leaves_the_request_pending(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            party.hear("interrupted");
            party.send(&SMALL, 1, 7);
        } else {
            let id = party.post(ANY, SMALL.needs());
            let mut asked = 0;
            let mut patience = || {
                asked += 1;
                asked < 3
            };
            assert_eq!(party.comm.wait(id, None, &mut patience).unwrap_err(), DeviceError::Interrupted);
            assert_eq!(asked, 3);
            assert_eq!(party.comm.probe(ANY, &mut || false).unwrap_err(), DeviceError::Interrupted);
            party.say("interrupted");
            party.wait_letter(id, &SMALL);
        }
    });
}

/// The next receive gets the message.
fn an_interrupted_blocking_receive_is_withdrawn(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            party.hear("interrupted");
            party.send(&SMALL, 1, 7);
        } else {
            let error = party.comm.recv(ANY, SMALL.needs(), None, &mut || false).unwrap_err();
            assert_eq!(error, DeviceError::Interrupted);
            assert_eq!(party.comm.leftovers(), (0, 0));
            party.say("interrupted");
            party.expect(ANY, &SMALL);
        }
    });
}

fn an_unmatched_receive_is_cancelled_for_certain(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            party.hear("cancelled");
            party.send(&SMALL, 1, 7);
        } else {
            let ids: Vec<_> = [from(0, 7), ANY, from(None, 7)].map(|f| party.post(f, SMALL.needs())).into();
            for id in ids {
                assert_eq!(party.comm.cancel(id), Ok(true));
                assert_eq!(party.comm.cancel(id), Ok(false), "it is done");
                assert_eq!(
                    party.comm.wait(id, None, &mut Uninterruptible).unwrap_err(),
                    DeviceError::Cancelled
                );
            }
            party.say("cancelled");
            party.expect(ANY, &SMALL);
        }
    });
}

fn a_receive_that_has_its_message_is_not_cancelled(world: &World) {
    run(world, 2, |party| {
        for letter in letters() {
            if party.rank() == 0 {
                party.send(&letter, 1, 7);
            } else {
                party.see(from(0, 7));
                let id = party.post(from(0, 7), letter.needs());
                assert_eq!(party.comm.cancel(id), Ok(false));
                party.wait_letter(id, &letter);
            }
        }
    });
}

/// The message is received exactly once, for both answers of the cancel.
fn a_cancel_that_races_with_the_arrival_loses_no_message(world: &World) {
    let rounds = world.amount(300, 100_000);
    let at = AtomicUsize::new(0);
    run(world, 2, |party| {
        for round in 0..rounds {
            let letter = Letter { seed: round as u64, ..letters()[round % 3] };
            if party.rank() == 0 {
                party.until("the receiver is ready", || at.load(SeqCst) > round);
                party.send(&letter, 1, 7);
            } else {
                let id = party.post(from(0, 7), letter.needs());
                at.store(round + 1, SeqCst);
                // Sooner or later after the message was let go.
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                if party.comm.cancel(id).expect("cancel") {
                    assert_eq!(party.comm.test(id).unwrap_err(), DeviceError::Cancelled);
                    party.expect(from(0, 7), &letter);
                } else {
                    party.wait_letter(id, &letter);
                }
            }
        }
    });
}

/// A send may answer either way, and keeps its word.
fn a_cancelled_send_never_arrives_and_one_that_is_not_does(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            let mut arrive = 0u64;
            for i in 0..100 {
                let letter = Letter { seed: arrive, ..letters()[i % 3] };
                let mode = if i % 2 == 0 { Mode::Standard } else { Mode::Synchronous };
                let Some(id) = party.isend(mode, &letter, 1, i as i32 % 3) else {
                    arrive += 1;
                    continue;
                };
                if party.comm.cancel(id).expect("cancel") {
                    assert_eq!(party.comm.test(id).unwrap_err(), DeviceError::Cancelled);
                } else {
                    arrive += 1;
                    party.comm.detach(id);
                }
            }
            party.send(&Letter::plain(arrive, 0), 1, 9);
        } else {
            let mut arrived = 0;
            loop {
                let (status, message) = party.recv(ANY, 5000);
                if status.tag == 9 {
                    break;
                }
                Letter { seed: arrived, ..letters()[status.tag as usize] }.check(&message);
                arrived += 1;
            }
            party.say(&format!("{arrived} arrived"));
        }
        party.barrier();
    });
}

/// The message after it goes to the next receive.
fn a_detached_receive_takes_its_message_and_drops_it(world: &World) {
    run(world, 2, |party| {
        for (i, letter) in letters().iter().enumerate() {
            if party.rank() == 0 {
                party.hear(&format!("detached {i}"));
                party.ssend(letter, 1, 7);
                party.send(&SMALL, 1, 7);
            } else {
                let id = party.post(from(0, 7), letter.needs());
                party.comm.detach(id);
                party.say(&format!("detached {i}"));
                party.expect(from(0, 7), &SMALL);
            }
        }
    });
}

fn a_detached_send_arrives(world: &World) {
    run(world, 2, |party| {
        for letter in letters() {
            if party.rank() == 0 {
                let id = party.isend(Mode::Synchronous, &letter, 1, 7).expect("pending");
                party.comm.detach(id);
            } else {
                party.expect(from(0, 7), &letter);
            }
        }
        party.barrier();
    });
}

/// Also when its place in the table is in use again.
fn a_request_that_is_gone_is_named_as_such(world: &World) {
    run(world, 1, |party| {
        let first = party.post(ANY, 0);
        party.comm.cancel(first).expect("cancel");
        assert_eq!(party.comm.test(first).unwrap_err(), DeviceError::Cancelled);
        let second = party.post(ANY, 0);
        assert_eq!(party.comm.test(first).unwrap_err(), DeviceError::NoSuchRequest);
        assert_eq!(party.comm.cancel(first), Err(DeviceError::NoSuchRequest));
        assert_eq!(
            party.comm.wait(first, None, &mut Uninterruptible).unwrap_err(),
            DeviceError::NoSuchRequest
        );
        party.comm.detach(first);
        assert!(party.comm.test(second).expect("test").is_none());
        assert_eq!(party.comm.cancel(second), Ok(true));
        party.comm.detach(second);
    });
}
