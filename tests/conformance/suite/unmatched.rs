//! More messages than anybody has asked for: nothing stands still behind them, and no search gets longer with
//! them.

use mpjdev_engine::collective::Outcome;
use mpjdev_engine::config::ENVELOPE_LEN;
use mpjdev_engine::{DeviceError, Mode, RequestId, Uninterruptible};

use crate::rank_harness::{ANY, Job, Party, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{Ability, World, in_every_world};

in_every_world![
    unmatched_messages_stop_neither_barriers_nor_other_communicators,
    unmatched_messages_are_received_and_probed_in_reverse_order_of_tags,
    sends_past_the_bound_on_envelopes_fail_and_collectives_pass,
];

/// Octets of the messages.
const LEN: usize = 8;

fn letter(number: usize) -> Letter {
    Letter::plain(number as u64, LEN)
}

fn started(party: &Party, mode: Mode, count: usize, tag: impl Fn(usize) -> i32) -> Vec<Option<RequestId>> {
    (0..count).map(|i| party.isend(mode, &letter(i), 1, tag(i))).collect()
}

fn dup(party: &Party) -> Party {
    match party.comm.start_dup().finish(&mut Uninterruptible).expect("dup") {
        Outcome::Created(Some(comm)) => party.on(comm),
        _ => panic!("every rank is in a dup"),
    }
}

/// Number of messages; fewer if each of them waits for its turn.
fn many(world: &World, count: usize) -> usize {
    let is_slow = world.lack(Ability::Bulk).is_some() || (world.config)().queue_cells < 8;
    amount(if is_slow { 500 } else { count }, if is_slow { 20_000 } else { 300_000 })
}

/// Messages of other tags, then a barrier and a message in another communicator, and only then the receives.
fn unmatched_messages_stop_neither_barriers_nor_other_communicators(world: &World) {
    let count = many(world, 20_000);
    run(world, 2, |party| {
        let other = dup(party);
        for mode in [Mode::Standard, Mode::Synchronous] {
            if party.rank() == 0 {
                let mut sends = started(party, mode, count, |i| i32::from(i + 1 == count));
                sends.push(other.isend(mode, &letter(7), 1, 3));
                party.barrier();
                party.wait_all(sends);
            } else {
                party.barrier();
                other.expect(ANY, &letter(7));
                party.expect(from(0, 1), &letter(count - 1));
                (0..count - 1).for_each(|i| assert_eq!(party.expect(from(0, 0), &letter(i)).tag, 0));
            }
        }
    });
}

/// As many tags as messages. Quadratic time would not fit the deadline in the long form.
fn unmatched_messages_are_received_and_probed_in_reverse_order_of_tags(world: &World) {
    let count = many(world, 5000);
    run(world, 2, |party| {
        for mode in [Mode::Standard, Mode::Synchronous] {
            if party.rank() == 0 {
                let sends = started(party, mode, count, |i| i as i32 % 32_768);
                party.barrier();
                party.wait_all(sends);
            } else {
                party.barrier();
                // Of equal tags the earliest comes first, whatever is behind it.
                let (laps, tags) = (count.div_ceil(32_768), count.min(32_768));
                for tag in (0..tags).rev() {
                    assert_eq!(party.see(from(0, tag as i32)).tag, tag as i32);
                    for i in (0..laps).map(|lap| lap * 32_768 + tag).filter(|i| *i < count) {
                        party.expect(from(0, tag as i32), &letter(i));
                    }
                }
            }
        }
    });
}

/// The numbers are those of the bound; the messages before it arrive, and those after some were received.
fn sends_past_the_bound_on_envelopes_fail_and_collectives_pass(world: &World) {
    const BOUND: u32 = 100;
    let job = Job::new(world, 2).tuned(|config| config.envelopes = u64::from(BOUND) * ENVELOPE_LEN);
    job.run(|party| {
        let other = dup(party);
        if party.rank() == 0 {
            // What makes communicators counts as well until it is answered.
            party.until("nothing is in flight", || party.comm.leftovers().1 == 0);
            let sends = started(party, Mode::Synchronous, BOUND as usize, |i| i as i32);
            for past in [Letter::plain(1, LEN), Letter::split(1, LEN, 100)] {
                let message = past.write(party.source());
                for comm in [&party.comm, &other.comm] {
                    let error = comm.isend(&message, 1, 1, Mode::Synchronous).expect_err("past the bound");
                    let octets = u64::from(BOUND) * ENVELOPE_LEN;
                    assert_eq!(
                        error,
                        DeviceError::Unmatched { rank: 1, count: BOUND, octets, limit: octets }
                    );
                }
            }
            party.barrier();
            other.barrier();
            party.wait_all(sends);
            (0..3).for_each(|i| party.ssend(&Letter::split(i, LEN, 50), 1, 5));
        } else {
            party.barrier();
            other.barrier();
            (0..BOUND as i32)
                .rev()
                .for_each(|tag| assert_eq!(party.expect(from(0, tag), &letter(tag as usize)).tag, tag));
            (0..3).for_each(|i| assert_eq!(party.expect(ANY, &Letter::split(i, LEN, 50)).tag, 5));
        }
    });
}
