//! A communicator is freed: what no receive has taken is dropped, with its memory and its credit, and nobody
//! waits for it.

use mpjdev_engine::collective::Outcome;
use mpjdev_engine::{Comm, DeviceError, Mode, RequestId, Uninterruptible};

use crate::rank_harness::{ANY, Job, Party, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    messages_that_are_here_are_dropped_when_their_communicator_is_freed,
    messages_that_arrive_after_the_free_are_dropped,
    a_freed_communicator_keeps_no_credit,
    a_dropped_communicator_is_freed,
    receives_that_were_posted_before_the_free_get_their_messages,
    messages_of_a_communicator_that_is_being_made_are_kept,
    messages_of_a_freed_communicator_do_not_reach_a_new_one,
    receives_and_probes_of_a_freed_communicator_fail,
    the_world_is_freed_by_nobody,
];

const SMALL: Letter = Letter { seed: 1, primary: 16, secondary: 0, room: 0 };
/// Tag of the message that ends a test.
const END: i32 = 99;

/// Inline, by reference or in packets, longer than any eager limit, and in two halves of each kind.
fn letters(world: &World) -> Vec<Letter> {
    let long = world.octets(600_000) / 8 * 8;
    vec![
        SMALL,
        Letter::plain(2, 5000),
        Letter::plain(3, long),
        Letter::split(4, 16, 700),
        Letter::split(5, 64, long),
        Letter::split(6, long, 300),
    ]
}

fn dup(party: &Party) -> Comm {
    match party.comm.start_dup().finish(&mut Uninterruptible) {
        Ok(Outcome::Created(Some(comm))) => comm,
        other => panic!("dup gives {other:?}"),
    }
}

/// Sends each letter in both modes, the last one with the tag 77.
fn send_all(party: &Party, letters: &[Letter]) -> Vec<Option<RequestId>> {
    let modes = [Mode::Standard, Mode::Synchronous];
    let all = letters.iter().flat_map(|letter| modes.map(|mode| (letter, mode)));
    let mut sends: Vec<_> =
        (1..).zip(all).map(|(tag, (letter, mode))| party.isend(mode, letter, 1, tag)).collect();
    sends.push(party.isend(Mode::Standard, &SMALL, 1, 77));
    sends
}

fn messages_that_are_here_are_dropped_when_their_communicator_is_freed(world: &World) {
    let letters = letters(world);
    run(world, 2, |party| {
        let made = party.on(dup(party));
        if party.rank() == 0 {
            let sends = send_all(&made, &letters);
            made.wait_all(sends);
            party.send(&SMALL, 1, END);
        } else {
            made.see(from(0, 77));
            made.comm.free();
            party.expect(from(0, END), &SMALL);
        }
        made.comm.free();
    });
}

fn messages_that_arrive_after_the_free_are_dropped(world: &World) {
    let letters = letters(world);
    run(world, 2, |party| {
        let made = party.on(dup(party));
        if party.rank() == 0 {
            party.hear("freed");
            let sends = send_all(&made, &letters);
            made.wait_all(sends);
            party.send(&SMALL, 1, END);
        } else {
            made.comm.free();
            party.say("freed");
            party.expect(from(0, END), &SMALL);
        }
    });
}

/// Many times the credit is sent and never received; a standard send within the credit is still done at once.
fn a_freed_communicator_keeps_no_credit(world: &World) {
    const CREDIT: u64 = 16 << 10;
    let job = Job::new(world, 2).tuned(|config| config.credit = config.credit.min(CREDIT));
    let rounds = amount(20, 1000);
    job.run(|party| {
        for round in 0..rounds {
            let made = party.on(dup(party));
            if party.rank() == 0 {
                let sends: Vec<_> =
                    (0..4).map(|tag| made.isend(Mode::Standard, &Letter::plain(7, 3000), 1, tag)).collect();
                made.wait_all(sends);
                party.send(&SMALL, 1, round as i32);
            } else {
                made.comm.free();
                party.expect(from(0, round as i32), &SMALL);
            }
            made.comm.free();
        }
    });
}

fn a_dropped_communicator_is_freed(world: &World) {
    run(world, 2, |party| {
        let made = party.on(dup(party));
        if party.rank() == 0 {
            let sends = send_all(&made, &[SMALL]);
            made.wait_all(sends);
            party.send(&SMALL, 1, END);
        } else {
            let other = made.clone();
            made.see(from(0, 77));
            drop(made);
            other.see(from(0, 77));
            drop(other);
            party.expect(from(0, END), &SMALL);
        }
    });
}

/// Before the free or behind it: a pending receive continues.
fn receives_that_were_posted_before_the_free_get_their_messages(world: &World) {
    let letters = letters(world);
    run(world, 2, |party| {
        let made = party.on(dup(party));
        if party.rank() == 0 {
            party.hear("freed");
            let sends: Vec<_> = (0..2)
                .flat_map(|_| (1..).zip(&letters))
                .map(|(tag, letter)| made.isend(Mode::Standard, letter, 1, tag))
                .collect();
            made.wait_all(sends);
            party.send(&SMALL, 1, END);
        } else {
            let receives: Vec<_> =
                (1..).zip(&letters).map(|(tag, letter)| made.post(from(0, tag), letter.needs())).collect();
            made.comm.free();
            party.say("freed");
            for (id, letter) in receives.into_iter().zip(&letters) {
                made.wait_letter(id, letter);
            }
            party.expect(from(0, END), &SMALL);
        }
    });
}

/// Rank 0 has the new communicator, and sends in it, while rank 1 has done no more than its part of the dup.
/// Other communicators were freed before.
fn messages_of_a_communicator_that_is_being_made_are_kept(world: &World) {
    run(world, 2, |party| {
        (0..3).for_each(|_| dup(party).free());
        if party.rank() == 0 {
            let made = party.on(dup(party));
            let sent = made.isend(Mode::Standard, &SMALL, 1, 5);
            party.send(&SMALL, 1, END);
            made.wait_all([sent]);
        } else {
            let mut dup = party.comm.start_dup();
            let mut made = None;
            while party.comm.iprobe(from(0, END)).expect("iprobe").is_none() {
                made = made.or_else(|| dup.advance().expect("advance"));
            }
            party.expect(from(0, END), &SMALL);
            let Outcome::Created(Some(made)) =
                made.unwrap_or_else(|| dup.finish(&mut Uninterruptible).expect("dup"))
            else {
                panic!("all are in it")
            };
            party.on(made).expect(ANY, &SMALL);
        }
    });
}

/// Messages leave when their receiver has freed the communicator, before their sender frees it.
fn messages_of_a_freed_communicator_do_not_reach_a_new_one(world: &World) {
    let letters = [SMALL, Letter::plain(2, 20_000), Letter::split(4, 16, 700)];
    run(world, 2, |party| {
        for round in 0..amount(10, 200) {
            let old = party.on(dup(party));
            if party.rank() == 0 {
                old.comm.free();
                party.send(&SMALL, 1, END);
            } else {
                party.expect(from(0, END), &SMALL);
                let sends: Vec<_> =
                    letters.iter().map(|letter| old.isend(Mode::Standard, letter, 0, 7)).collect();
                old.comm.free();
                old.wait_all(sends);
            }
            drop(old);
            for _ in 0..3 {
                let new = party.on(dup(party));
                if party.rank() == 0 {
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

fn receives_and_probes_of_a_freed_communicator_fail(world: &World) {
    run(world, 2, |party| {
        let made = dup(party);
        made.free();
        made.free();
        assert_eq!(made.irecv(ANY, 16, None), Err(DeviceError::Freed));
        assert_eq!(made.recv(ANY, 16, None, &mut Uninterruptible).unwrap_err(), DeviceError::Freed);
        assert_eq!(made.iprobe(ANY), Err(DeviceError::Freed));
        assert_eq!(made.probe(ANY, &mut Uninterruptible), Err(DeviceError::Freed));
    });
}

fn the_world_is_freed_by_nobody(world: &World) {
    run(world, 2, |party| {
        party.comm.free();
        party.barrier();
        let peer = 1 - party.rank();
        let sent = party.isend(Mode::Standard, &SMALL, peer, 1);
        party.expect(from(peer, 1), &SMALL);
        party.wait_all([sent]);
    });
}
