//! Messages in two halves: they never mix, whatever wildcards, outstanding receives and threads there are.

use std::collections::VecDeque;
use std::sync::Mutex;

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, Job, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    split_messages_of_several_senders_are_received_by_wildcards,
    many_outstanding_wildcard_receives_each_get_both_halves_of_one_message,
    split_and_whole_messages_of_one_tag_do_not_overtake_each_other,
    threads_of_both_sides_exchange_split_messages_under_one_tag,
    more_split_messages_than_there_are_tags_keep_their_halves,
    split_messages_wait_unexpected_and_are_received_in_reverse_order,
    too_many_open_split_messages_are_refused_and_go_on_when_some_are_received,
];

/// Every message has its own lengths, so that halves which mix cannot pass.
fn letter(source: u32, i: usize) -> Letter {
    Letter::split(u64::from(source) << 32 | i as u64, 8 * (i % 5) + 8, 1 + i * 3 % 1999 + source as usize)
}

fn split_messages_of_several_senders_are_received_by_wildcards(world: &World) {
    let count = amount(150, 20_000);
    run(world, 4, |party| {
        if party.rank() > 0 {
            for i in 0..count {
                party.send(&letter(party.rank(), i), 0, (i % 3) as i32);
            }
            return;
        }
        let mut next = [0; 4];
        for _ in 0..3 * count {
            let (status, message) = party.recv(ANY, 100);
            let i = &mut next[status.source as usize];
            letter(status.source, *i).check(&message);
            assert_eq!(status.tag, (*i % 3) as i32);
            *i += 1;
        }
    });
}

/// They complete in another order than they were posted in, and are waited for in a third one.
fn many_outstanding_wildcard_receives_each_get_both_halves_of_one_message(world: &World) {
    let count = amount(100, 5000);
    run(world, 4, |party| {
        if party.rank() > 0 {
            party.hear("posted");
            let sends: Vec<_> = (0..count)
                .map(|i| party.isend(Mode::Standard, &letter(party.rank(), i), 0, i as i32))
                .collect();
            return party.wait_all(sends);
        }
        let receives: Vec<_> = (0..3 * count).map(|_| party.post(ANY, 100)).collect();
        party.say("posted");
        let mut seen = vec![[false; 4]; count];
        for k in 0..3 * count {
            let done = party.wait(receives[(k * 7 + 1) % (3 * count)]);
            let status = done.status.expect("a status");
            letter(status.source, status.tag as usize).check(&done.message.expect("a message"));
            let first = !std::mem::replace(&mut seen[status.tag as usize][status.source as usize], true);
            assert!(first, "twice: {status:?}");
        }
    });
}

fn split_and_whole_messages_of_one_tag_do_not_overtake_each_other(world: &World) {
    let count = amount(200, 20_000);
    run(world, 2, |party| {
        for i in 0..count {
            let letter = match i % 3 {
                0 => Letter::split(i as u64, 64, 2000),
                1 => Letter::plain(i as u64, 64),
                _ => Letter::appended(i as u64, 64, 3),
            };
            match party.rank() {
                0 => party.send(&letter, 1, 7),
                _ => assert_eq!(party.expect(ANY, &letter).tag, 7),
            }
        }
    });
}

/// Nothing but the pairing tells the halves of one sender's threads apart.
fn threads_of_both_sides_exchange_split_messages_under_one_tag(world: &World) {
    const THREADS: usize = 6;
    let count = amount(60, 5000);
    run(world, 2, |party| {
        let peer = 1 - party.rank();
        let seen = Mutex::new(vec![false; THREADS * count]);
        party.threads(2 * THREADS, |k| {
            for i in 0..count {
                if k < THREADS {
                    let number = k * count + i;
                    // The primary payload tells which message it is, the rest must belong to it.
                    party.send(&Letter::split(number as u64, 16, 1 + number), peer, 7);
                } else {
                    let (_, message) = party.recv(if i % 2 == 0 { ANY } else { from(peer, 7) }, 16);
                    let number = message.secondary_len() - 1;
                    Letter::split(number as u64, 16, 1 + number).check(&message);
                    let first = !std::mem::replace(&mut seen.lock().expect("no panic")[number], true);
                    assert!(first, "message {number} came twice");
                }
            }
        });
        assert!(seen.lock().expect("no panic").iter().all(|s| *s));
    });
}

/// Pairing numbers go past the largest tag and begin again, with others still open.
fn more_split_messages_than_there_are_tags_keep_their_halves(world: &World) {
    let bounded = Job::new(world, 2).tuned(|config| {
        config.credit = 64 << 10;
        world.limit_tags(config);
    });
    let tags = bounded.tags();
    let count = if tags < 40_000 { tags + tags / 4 } else { amount(500, 40_500) };
    bounded.run(|party| {
        let letter = |i: usize| Letter::split(i as u64, 16, 1 + i % 77);
        if party.rank() == 0 {
            // One stays open all the time: its number must not be given to another message.
            let open = party.isend(Mode::Standard, &Letter::split(9, 64, 4321), 1, 1);
            let mut pending = VecDeque::new();
            for i in 0..count {
                pending.extend(party.isend(Mode::Standard, &letter(i), 1, 0));
                if pending.len() > 100 {
                    party.wait_all([pending.pop_front()]);
                }
            }
            party.wait_all(pending.into_iter().map(Some));
            party.wait_all([open]);
        } else {
            for i in 0..count {
                party.expect(from(0, 0), &letter(i));
            }
            party.expect(from(0, 1), &Letter::split(9, 64, 4321));
        }
    });
}

fn split_messages_wait_unexpected_and_are_received_in_reverse_order(world: &World) {
    let count = amount(200, 5000);
    run(world, 2, |party| {
        if party.rank() == 0 {
            let sends: Vec<_> =
                (0..count).map(|i| party.isend(Mode::Standard, &letter(0, i), 1, i as i32)).collect();
            party.wait_all(sends);
        } else {
            party.see(from(0, count as i32 - 1));
            for i in (0..count).rev() {
                party.expect(from(0, i as i32), &letter(0, i));
            }
        }
    });
}

/// Pairing numbers are limited where halves are paired by number; elsewhere there is no such limit.
fn too_many_open_split_messages_are_refused_and_go_on_when_some_are_received(world: &World) {
    let job = Job::new(world, 2).tuned(|config| world.limit_tags(config));
    let tags = job.tags();
    if tags > 40_000 {
        println!("SKIPPED in {}: it has more tags than there is memory for open messages", world.name);
        return;
    }
    job.run(|party| {
        let letter = Letter::split(1, 0, 1);
        if party.rank() == 0 {
            let message = letter.write(party.source());
            let mut sent = 0;
            let refused = loop {
                match party.comm.isend(&message, 1, 7, Mode::Standard) {
                    Ok(id) => {
                        id.into_iter().for_each(|id| party.comm.detach(id));
                        sent += 1;
                    }
                    Err(error) => break Some(error),
                }
                if sent > tags {
                    break None;
                }
            };
            assert!(matches!(refused, None | Some(DeviceError::NoFreePair(_))), "{refused:?}");
            assert!(refused.is_none() || sent == tags, "refused after {sent}");
            party.say(&format!("{sent} sent"));
            party.say("sent");
            party.until("a number is free again", || {
                let result = party.comm.send(&message, 1, 8, Mode::Standard, &mut Uninterruptible);
                let _ = party.comm.iprobe(ANY);
                result.is_ok()
            });
        } else {
            party.hear("sent");
            let sent = (0..=tags + 1).find(|n| party.was_said(&format!("{n} sent"))).expect("a number");
            for _ in 0..sent {
                party.expect(from(0, 7), &letter);
            }
            party.expect(from(0, 8), &letter);
        }
        party.barrier();
    });
}
