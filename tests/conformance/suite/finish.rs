//! A rank finishes: what it has sent arrives, and what cannot come any more fails.

use std::time::Duration;

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, Party, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    messages_sent_before_a_finish_arrive_and_then_receives_fail,
    a_receive_posted_before_the_finish_fails_too,
    any_source_fails_when_nobody_is_left,
    any_source_of_a_part_fails_when_its_members_are_gone,
    a_send_to_a_finished_rank_fails,
    a_synchronous_send_that_a_finish_overtakes_fails,
    synchronous_sends_that_were_received_succeed_after_the_receivers_finish,
    finish_waits_until_what_was_sent_is_matched,
    a_second_finish_does_nothing,
    nothing_goes_on_after_a_finish,
    ranks_finish_in_any_order_after_a_barrier,
    a_message_and_a_finish_right_behind_it_lose_nothing,
    a_large_message_that_is_matched_arrives_before_its_senders_finish,
    a_finish_ends_the_receives_that_other_threads_wait_for,
    nothing_is_sent_while_a_finish_waits,
    any_source_takes_a_message_of_its_own_rank_when_all_others_have_finished,
];

pub(super) const SMALL: Letter = Letter { seed: 1, primary: 16, secondary: 0, room: 0 };

pub(super) fn finish(party: &Party) -> Result<(), DeviceError> {
    party.comm.finish(&mut Uninterruptible)
}

pub(super) fn gone(rank: u32) -> DeviceError {
    DeviceError::PeerFinished { rank }
}

fn messages_sent_before_a_finish_arrive_and_then_receives_fail(world: &World) {
    let letters = [Letter::plain(1, 16), Letter::plain(2, 5000), Letter::split(3, 16, 700)];
    run(world, 2, |party| {
        if party.rank() == 0 {
            for letter in letters {
                let id = party.isend(Mode::Standard, &letter, 1, 1);
                id.into_iter().for_each(|id| party.comm.detach(id));
            }
            assert_eq!(finish(party), Ok(()));
        } else {
            for letter in letters {
                party.expect(from(0, 1), &letter);
            }
            for _ in 0..3 {
                assert_eq!(party.comm.recv(from(0, 1), 16, None, &mut Uninterruptible).unwrap_err(), gone(0));
            }
            assert_eq!(party.comm.probe(from(0, 1), &mut Uninterruptible), Err(gone(0)));
            assert_eq!(party.comm.iprobe(from(0, 1)), Err(gone(0)));
            let id = party.post(from(0, 1), 16);
            assert_eq!(party.comm.wait(id, None, &mut Uninterruptible).unwrap_err(), gone(0));
        }
    });
}

fn a_receive_posted_before_the_finish_fails_too(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            party.hear("posted");
            assert_eq!(finish(party), Ok(()));
        } else {
            let ids = [party.post(from(0, 1), 16), party.post(from(0, None), 16)];
            party.say("posted");
            for id in ids {
                assert_eq!(party.comm.wait(id, None, &mut Uninterruptible).unwrap_err(), gone(0));
            }
        }
    });
}

fn any_source_fails_when_nobody_is_left(world: &World) {
    run(world, 4, |party| {
        if party.rank() > 0 {
            party.hear("waiting");
            party.send(&SMALL, 0, 1);
            assert_eq!(finish(party), Ok(()));
        } else {
            party.say("waiting");
            for _ in 0..3 {
                party.expect(ANY, &SMALL);
            }
            assert_eq!(
                party.comm.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(),
                DeviceError::NobodyLeft
            );
            assert_eq!(party.comm.probe(ANY, &mut Uninterruptible), Err(DeviceError::NobodyLeft));
        }
    });
}

/// Others are alive, but not in that communicator.
fn any_source_of_a_part_fails_when_its_members_are_gone(world: &World) {
    use mpjdev_engine::collective::Outcome;
    run(world, 3, |party| {
        let operation = party.comm.start_split((party.rank() / 2) as i32, 0);
        let Ok(Outcome::Created(Some(comm))) = operation.finish(&mut Uninterruptible) else {
            panic!("split")
        };
        match party.rank() {
            0 => {
                assert_eq!(
                    comm.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(),
                    DeviceError::NobodyLeft
                );
                party.send(&SMALL, 2, 1);
            }
            1 => assert_eq!(finish(party), Ok(())),
            _ => assert_eq!(party.expect(ANY, &SMALL).source, 0),
        }
    });
}

fn a_send_to_a_finished_rank_fails(world: &World) {
    run(world, 3, |party| {
        if party.rank() == 0 {
            assert_eq!(finish(party), Ok(()));
            party.say("finished");
            return;
        }
        party.hear("finished");
        party.knows_of(0);
        let message = SMALL.write(party.source());
        for mode in [Mode::Standard, Mode::Synchronous] {
            assert_eq!(party.comm.isend(&message, 0, 1, mode), Err(gone(0)));
            assert_eq!(party.comm.send(&message, 0, 1, mode, &mut Uninterruptible), Err(gone(0)));
        }
        // The others continue.
        let other = 3 - party.rank();
        let sent = party.isend(Mode::Standard, &SMALL, other, 1);
        party.expect(from(other, 1), &SMALL);
        party.wait_all([sent]);
    });
}

/// It was on its way, or at its destination, when that finished.
fn a_synchronous_send_that_a_finish_overtakes_fails(world: &World) {
    Job::new(world, 2).untidy().run(|party| {
        if party.rank() == 0 {
            let ids: Vec<_> =
                (0..10).map(|_| party.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending")).collect();
            party.say("sent");
            for id in ids {
                assert_eq!(party.comm.wait(id, None, &mut Uninterruptible).unwrap_err(), gone(1));
            }
        } else {
            party.hear("sent");
            assert_eq!(finish(party), Ok(()));
        }
    });
}

/// The sender looks at them only when it knows that the receiver has finished.
fn synchronous_sends_that_were_received_succeed_after_the_receivers_finish(world: &World) {
    const COUNT: usize = 100;
    run(world, 2, |party| {
        if party.rank() == 0 {
            let start = |_| party.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
            let ids: Vec<_> = (0..COUNT).map(start).collect();
            party.knows_of(1);
            for id in ids {
                assert!(party.comm.wait(id, None, &mut Uninterruptible).is_ok());
            }
        } else {
            (0..COUNT).for_each(|_| assert_eq!(party.expect(from(0, 1), &SMALL).tag, 1));
            assert_eq!(finish(party), Ok(()));
        }
    });
}

/// The receiver receives only after it has seen that the sender is about to finish.
fn finish_waits_until_what_was_sent_is_matched(world: &World) {
    let letters = [Letter::plain(1, 16), Letter::plain(2, 5000), Letter::split(3, 16, 700)];
    run(world, 2, |party| {
        if party.rank() == 0 {
            let ids: Vec<_> = letters
                .iter()
                .map(|letter| party.isend(Mode::Synchronous, letter, 1, 1).expect("pending"))
                .collect();
            party.say("finishes");
            assert_eq!(finish(party), Ok(()));
            assert!(party.was_said("receives"));
            for id in ids {
                assert!(party.comm.test(id).expect("delivered").is_some());
            }
        } else {
            party.hear("finishes");
            party.see(ANY);
            party.say("receives");
            for letter in letters {
                party.expect(from(0, 1), &letter);
            }
        }
    });
}

fn a_second_finish_does_nothing(world: &World) {
    run(world, 2, |party| {
        for _ in 0..3 {
            assert_eq!(finish(party), Ok(()));
        }
    });
}

/// But the outcomes of what was done before can still be had.
fn nothing_goes_on_after_a_finish(world: &World) {
    run(world, 2, |party| {
        let peer = 1 - party.rank();
        let received = party.post(from(peer, 1), 16);
        let sent = party.isend(Mode::Standard, &SMALL, peer, 1);
        party.barrier();
        assert_eq!(finish(party), Ok(()));
        let finished = DeviceError::Finished { rank: party.rank() };
        let message = SMALL.write(party.source());
        let comm = &party.comm;
        assert_eq!(comm.isend(&message, 0, 1, Mode::Standard), Err(finished.clone()));
        assert_eq!(comm.isend(&message, 1, 1, Mode::Synchronous), Err(finished.clone()));
        assert_eq!(comm.irecv(ANY, 16, None), Err(finished.clone()));
        assert_eq!(comm.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(), finished);
        assert_eq!(comm.probe(ANY, &mut Uninterruptible), Err(finished.clone()));
        assert_eq!(comm.iprobe(ANY), Err(finished.clone()));
        assert_eq!(comm.barrier(&mut Uninterruptible), Err(finished.clone()));
        assert_eq!(comm.start_dup().finish(&mut Uninterruptible).map(drop), Err(finished));
        party.wait_letter(received, &SMALL);
        party.wait_all([sent]);
    });
}

/// The barrier's own messages are not lost by a rank that is in a hurry.
fn ranks_finish_in_any_order_after_a_barrier(world: &World) {
    for _ in 0..amount(20, 1000) {
        run(world, 5, |party| {
            party.barrier();
            assert_eq!(finish(party), Ok(()));
        });
    }
}

/// Again and again: the receiver learns of both in any order, and must have the message.
fn a_message_and_a_finish_right_behind_it_lose_nothing(world: &World) {
    for round in 0..world.amount(100, 10_000) {
        run(world, 3, |party| {
            if party.rank() > 0 {
                let id = party.isend(Mode::Standard, &SMALL, 0, 1);
                id.into_iter().for_each(|id| party.comm.detach(id));
                assert_eq!(finish(party), Ok(()));
            } else if round % 2 == 0 {
                party.expect(from(2, 1), &SMALL);
                party.expect(from(1, 1), &SMALL);
            } else {
                party.see(from(1, 1));
                party.expect(ANY, &SMALL);
                party.expect(ANY, &SMALL);
            }
        });
    }
}

/// Its send is done when it is matched, with most of it still to come where messages are copied.
fn a_large_message_that_is_matched_arrives_before_its_senders_finish(world: &World) {
    run(world, 2, |party| {
        let letter = Letter::plain(1, world.octets(16 << 20));
        if party.rank() == 0 {
            party.send(&letter, 1, 1);
            assert_eq!(finish(party), Ok(()));
        } else {
            party.expect(from(0, 1), &letter);
            assert_eq!(party.comm.recv(from(0, 1), 16, None, &mut Uninterruptible).unwrap_err(), gone(0));
        }
    });
}

/// Nobody can send to it any more, from no rank.
fn a_finish_ends_the_receives_that_other_threads_wait_for(world: &World) {
    for source in [None, Some(0), Some(1)] {
        Job::new(world, 2).untidy().run(|party| {
            if party.rank() == 1 {
                return party.hear("over");
            }
            party.threads(2, |thread| {
                if thread == 0 {
                    let id = party.post(from(source, 1), 16);
                    party.say("posted");
                    let deadline = mpjdev_engine::deadline_after(Duration::from_secs(20));
                    let ended = party.comm.wait(id, deadline, &mut Uninterruptible).map(drop);
                    assert_eq!(ended, Err(DeviceError::Finished { rank: 0 }), "from {source:?}");
                } else {
                    party.hear("posted");
                    assert_eq!(finish(party), Ok(()));
                }
            });
            party.say("over");
        });
    }
}

/// From the first moment of the finish on, and not only once some rank is through with it.
fn nothing_is_sent_while_a_finish_waits(world: &World) {
    Job::new(world, 2).untidy().run(|party| {
        if party.rank() == 1 {
            party.hear("tried");
            party.expect(from(0, 1), &SMALL);
            return;
        }
        let id = party.isend(Mode::Synchronous, &SMALL, 1, 1).expect("pending");
        party.comm.detach(id);
        party.threads(2, |thread| {
            if thread == 0 {
                assert_eq!(finish(party), Ok(()));
            } else {
                let refused = |e| e == Err(DeviceError::Finished { rank: 0 });
                party.until("receives are refused", || refused(party.comm.iprobe(ANY).map(drop)));
                let message = SMALL.write(party.source());
                let sent = party.comm.isend(&message, 1, 2, Mode::Standard).map(drop);
                party.say("tried");
                assert_eq!(sent, Err(DeviceError::Finished { rank: 0 }));
            }
        });
    });
}

/// A receive that is only posted may still get what this rank sends to itself.
fn any_source_takes_a_message_of_its_own_rank_when_all_others_have_finished(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 1 {
            assert_eq!(finish(party), Ok(()));
            return party.say("finished");
        }
        party.hear("finished");
        let id = party.post(ANY, 16);
        let sent = party.isend(Mode::Standard, &SMALL, 0, 1);
        party.wait_letter(id, &SMALL);
        party.wait_all([sent]);
    });
}
