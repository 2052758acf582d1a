//! A rank finishes with messages that nobody has received: how long it waits, and who names them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use super::finish::{SMALL, finish, gone};
use crate::rank_harness::{ANY, Job, from};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    finish_names_what_nobody_receives_within_its_patience,
    finish_outlasts_its_patience_while_the_peer_shows_life,
    ranks_that_finish_with_messages_for_each_other_both_end,
    finish_names_what_its_receiver_finished_without,
    finish_warns_of_messages_that_no_receive_took,
    finish_warns_of_what_a_freed_communicator_has_dropped,
    standard_sends_to_itself_do_not_delay_finish,
    standard_sends_to_a_rank_that_finishes_do_not_fail_finish,
    finish_does_not_outlast_its_patience_for_a_peer_that_others_drive,
];

/// The peer is alive as the system sees it, but does not call in.
fn finish_names_what_nobody_receives_within_its_patience(world: &World) {
    let patience = Duration::from_millis(200);
    for letter in [Letter::plain(1, 64), Letter::plain(2, 5000), Letter::split(3, 64, 700)] {
        let job = Job::new(world, 2).untidy().tuned(|config| config.finish_patience = patience);
        job.run(|party| {
            if party.rank() == 0 {
                for tag in [31, 32, 33] {
                    let id = party.isend(Mode::Synchronous, &letter, 1, tag).expect("pending");
                    party.comm.detach(id);
                }
                let begun = Instant::now();
                let len = letter.primary + letter.secondary + 16;
                let undelivered = DeviceError::Undelivered { count: 3, rank: 1, tag: 31, len };
                assert_eq!(finish(party), Err(undelivered));
                assert!(begun.elapsed() >= patience, "after {:?}", begun.elapsed());
                party.say("gave up");
            } else {
                party.hear("gave up");
                // All the same it has finished.
                party.until("the end is known", || party.comm.iprobe(from(0, 99)) == Err(gone(0)));
            }
        });
    }
}

/// A machine that holds the peer up for a short patience does not for a long one.
fn finish_outlasts_its_patience_while_the_peer_shows_life(world: &World) {
    let patiences = [400, 2000, 5000].map(Duration::from_millis);
    let outlasts = patiences.into_iter().any(|patience| outlasts_a_wait_of_its_peer(world, patience));
    assert!(outlasts, "it gave up within {patiences:?}");
}

/// Whether a finish does that while the peer waits for something else, three times as long, and then
/// receives.
fn outlasts_a_wait_of_its_peer(world: &World, patience: Duration) -> bool {
    let outlasts = AtomicBool::new(true);
    Job::new(world, 2).untidy().tuned(|config| config.finish_patience = patience).run(|party| {
        let gave_up = "gave up";
        if party.rank() == 0 {
            let id = party.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            party.say("finishes");
            let ended = finish(party);
            if ended.is_ok() {
                assert!(party.comm.test(id).expect("delivered").is_some());
            } else {
                assert!(
                    matches!(ended, Err(DeviceError::Undelivered { count: 1, rank: 1, .. })),
                    "{ended:?}"
                );
                party.comm.detach(id);
                party.say(gave_up);
            }
            party.say("over");
        } else {
            party.hear("finishes");
            let other = party.post(from(1, 2), 16);
            let deadline = Instant::now() + 3 * patience;
            assert!(party.comm.wait(other, Some(deadline), &mut Uninterruptible).is_err());
            assert_eq!(party.comm.cancel(other), Ok(true));
            party.comm.detach(other);
            let received = party.comm.recv(from(0, 1), SMALL.needs(), None, &mut Uninterruptible);
            party.hear("over");
            match received {
                Ok((_, message)) => SMALL.check(&message),
                Err(error) => assert!(party.was_said(gave_up), "{error}"),
            }
        }
        if party.was_said(gave_up) {
            outlasts.store(false, Relaxed);
        }
    });
    outlasts.into_inner()
}

/// Neither will receive any more, so neither must wait because the other still runs.
fn ranks_that_finish_with_messages_for_each_other_both_end(world: &World) {
    let job = Job::new(world, 2).untidy().tuned(|config| config.finish_patience = Duration::from_millis(200));
    job.run(|party| {
        let peer = 1 - party.rank();
        // To itself too: nobody else can receive that.
        for dest in [peer, party.rank()] {
            let id = party.isend(Mode::Synchronous, &SMALL, dest, 1).expect("pending");
            party.comm.detach(id);
        }
        party.say(&format!("{} has sent", party.rank()));
        party.hear(&format!("{peer} has sent"));
        let error = finish(party).expect_err("undelivered");
        assert!(matches!(error, DeviceError::Undelivered { count: 1 | 2, .. }), "{error}");
    });
}

/// Also when nobody waits for the send, and when somebody could have.
fn finish_names_what_its_receiver_finished_without(world: &World) {
    Job::new(world, 2).untidy().run(|party| {
        if party.rank() == 0 {
            let forgotten = party.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            party.comm.detach(forgotten);
            let kept = party.isend(Mode::Synchronous, &Letter::split(2, 16, 90), 1, 2).expect("pending");
            party.say("sent");
            let undelivered = DeviceError::Undelivered { count: 2, rank: 1, tag: 1, len: 32 };
            assert_eq!(finish(party), Err(undelivered));
            assert_eq!(party.comm.test(kept).unwrap_err(), gone(1));
        } else {
            party.hear("sent");
            assert_eq!(finish(party), Ok(()));
        }
    });
}

/// Short and long, from the other rank and from itself, in the world and in another communicator. The sender
/// has no error.
fn finish_warns_of_messages_that_no_receive_took(world: &World) {
    use mpjdev_engine::collective::Outcome;
    let long = Letter::plain(2, world.octets(1 << 20) / 8 * 8);
    Job::new(world, 2).untidy().run(|party| {
        let made = match party.comm.start_dup().finish(&mut Uninterruptible) {
            Ok(Outcome::Created(Some(comm))) => party.on(comm),
            other => panic!("dup gives {other:?}"),
        };
        if party.rank() == 0 {
            for (letter, tag) in [(SMALL, 7), (long, 9), (Letter::split(3, 16, 700), 11)] {
                let id = party.isend(Mode::Standard, &letter, 1, tag);
                id.into_iter().for_each(|id| party.comm.detach(id));
            }
            let id = made.isend(Mode::Standard, &SMALL, 1, 13);
            id.into_iter().for_each(|id| party.comm.detach(id));
            // A library may let messages leave only while it is called. The other rank may have finished by
            // now.
            party.until("all are seen", || {
                let _ = party.comm.iprobe(ANY);
                party.was_said("seen")
            });
            assert_eq!(finish(party), Ok(()));
            assert_eq!(party.comm.take_unreceived(), None);
        } else {
            let id = party.isend(Mode::Standard, &SMALL, 1, 1);
            id.into_iter().for_each(|id| party.comm.detach(id));
            for tag in [7, 9, 11] {
                party.see(from(0, tag));
            }
            made.see(from(0, 13));
            party.see(from(1, 1));
            party.say("seen");
            assert_eq!(finish(party), Ok(()));
            let unreceived = party.comm.take_unreceived().expect("five messages");
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
            assert_eq!(party.comm.take_unreceived(), None);
        }
    });
}

fn finish_warns_of_what_a_freed_communicator_has_dropped(world: &World) {
    use mpjdev_engine::collective::Outcome;
    Job::new(world, 2).untidy().run(|party| {
        let made = match party.comm.start_dup().finish(&mut Uninterruptible) {
            Ok(Outcome::Created(Some(comm))) => party.on(comm),
            other => panic!("dup gives {other:?}"),
        };
        if party.rank() == 0 {
            party.wait_all([made.isend(Mode::Standard, &SMALL, 1, 5)]);
            party.hear("seen");
            party.wait_all([made.isend(Mode::Standard, &SMALL, 1, 6)]);
            party.send(&SMALL, 1, 1);
        } else {
            made.see(from(0, 5));
            made.comm.free();
            party.say("seen");
            party.expect(from(0, 1), &SMALL);
            assert_eq!(finish(party), Ok(()));
            let unreceived = party.comm.take_unreceived().expect("two messages");
            assert_eq!(unreceived.count(), 2, "{unreceived}");
        }
    });
}

/// Nobody can receive them any more, whatever their size, so nothing is waited for.
fn standard_sends_to_itself_do_not_delay_finish(world: &World) {
    let letters = [SMALL, Letter::plain(2, world.octets(1 << 20) / 8 * 8), Letter::split(3, 16, 700)];
    let job = Job::new(world, 2).untidy().tuned(|config| config.finish_patience = Duration::from_secs(600));
    job.run(|party| {
        let own = party.rank();
        let ids: Vec<_> =
            letters.iter().filter_map(|letter| party.isend(Mode::Standard, letter, own, 1)).collect();
        ids.into_iter().for_each(|id| party.comm.detach(id));
        assert_eq!(finish(party), Ok(()));
        assert_eq!(party.comm.take_unreceived().map(|left| left.count()), Some(letters.len()));
    });
}

/// The receiver has it or has it announced, and names it; the request of a send that is pending fails.
fn standard_sends_to_a_rank_that_finishes_do_not_fail_finish(world: &World) {
    let letter = Letter::plain(2, world.octets(1 << 20) / 8 * 8);
    // The second one is past the credit, where there is one.
    let job = Job::new(world, 2).untidy().tuned(|config| config.credit = config.credit.min(2 << 20));
    job.run(|party| {
        if party.rank() == 0 {
            let ids: Vec<_> = (0..4).map(|tag| party.isend(Mode::Standard, &letter, 1, tag)).collect();
            party.say("sent");
            assert_eq!(finish(party), Ok(()));
            for id in ids.into_iter().flatten() {
                let outcome = party.comm.test(id).map(|done| done.is_some());
                assert!(
                    matches!(outcome, Ok(true) | Err(DeviceError::PeerFinished { rank: 1 })),
                    "{outcome:?}"
                );
            }
        } else {
            party.hear("sent");
            assert_eq!(finish(party), Ok(()));
        }
    });
}

/// Progress that other threads drive for a rank is no heartbeat of its own.
fn finish_does_not_outlast_its_patience_for_a_peer_that_others_drive(world: &World) {
    let job = Job::new(world, 3).untidy().tuned(|config| {
        config.finish_patience = Duration::from_millis(300);
        config.credit = 16 << 20;
    });
    job.run(|party| match party.rank() {
        0 => {
            let id = party.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            party.comm.detach(id);
            let ended = finish(party);
            party.say("over");
            assert!(matches!(ended, Err(DeviceError::Undelivered { count: 1, rank: 1, .. })), "{ended:?}");
        }
        // Never calls in.
        1 => party.hear("over"),
        // Continues until rank 0 has given up: without an end of its patience this fails at the deadline of
        // `hear`.
        _ => {
            while !party.was_said("over") {
                let id = party.isend(Mode::Standard, &SMALL, 1, 2);
                id.into_iter().for_each(|id| party.comm.detach(id));
                (0..128).for_each(|_| drop(party.comm.iprobe(ANY)));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
}
