//! Looking at messages before receiving them.

use mpjdev_engine::{Mode, Patient, Status};

use crate::harness::{ANY, amount, from, run};
use crate::letter::Letter;
use crate::worlds::{World, in_every_world};

in_every_world![
    a_probe_waits_for_a_message_and_the_next_receive_gets_it,
    a_look_finds_nothing_until_a_message_is_there,
    a_probe_tells_the_capacity_that_the_message_needs,
    a_probe_tells_of_the_message_that_a_receive_would_get,
    a_message_taken_out_of_matching_is_nobody_elses,
    messages_of_unknown_size_are_received_by_matched_probe,
    a_synchronous_message_is_done_when_it_is_taken_out_of_matching,
    a_probe_does_not_make_a_synchronous_send_done,
    a_message_taken_out_of_matching_and_dropped_is_consumed,
];

fn letters() -> [Letter; 5] {
    [
        Letter::plain(1, 0),
        Letter::plain(2, 1008),
        Letter::plain(3, 100_000),
        Letter::appended(4, 40, 77),
        Letter::split(5, 40, 7777),
    ]
}

fn a_probe_waits_for_a_message_and_the_next_receive_gets_it(world: &World) {
    run(world, 2, |party| {
        for (tag, letter) in (1..).zip(letters()) {
            if party.rank() == 0 {
                party.hear(&format!("about to probe {tag}"));
                party.send(&letter, 1, tag);
            } else {
                party.say(&format!("about to probe {tag}"));
                let seen = party.see(ANY);
                let received = party.expect(from(seen.source, seen.tag), &letter);
                assert_eq!(seen, Status { first: None, ..received });
            }
        }
    });
}

fn a_look_finds_nothing_until_a_message_is_there(world: &World) {
    run(world, 2, |party| {
        if party.rank() == 0 {
            party.hear("nothing there");
            party.send(&letters()[1], 1, 7);
        } else {
            for _ in 0..100 {
                assert_eq!(party.comm.iprobe(ANY), Ok(None));
            }
            party.say("nothing there");
            party.until("the message is there", || party.comm.iprobe(ANY).expect("iprobe").is_some());
            // It stays, and only whoever asks for it sees it.
            assert!(party.comm.iprobe(from(0, 7)).expect("iprobe").is_some());
            assert_eq!(party.comm.iprobe(from(0, 8)), Ok(None));
            assert_eq!(party.comm.iprobe(from(1, 7)), Ok(None));
            party.expect(ANY, &letters()[1]);
            assert_eq!(party.comm.iprobe(ANY), Ok(None));
        }
    });
}

/// The octets of the first physical message without the headers, the same on every transport.
fn a_probe_tells_the_capacity_that_the_message_needs(world: &World) {
    run(world, 2, |party| {
        for (tag, letter) in (1..).zip(letters()) {
            if party.rank() == 0 {
                party.send(&letter, 1, tag);
            } else {
                assert_eq!(party.see(from(0, tag)).size, letter.needs(), "{letter:?}");
                party.expect(from(0, tag), &letter);
            }
        }
    });
}

/// With several there, a wildcard probe and a wildcard receive mean the same one.
fn a_probe_tells_of_the_message_that_a_receive_would_get(world: &World) {
    let count = amount(50, 5000);
    run(world, 4, |party| {
        let letter = |source: u32, i: usize| Letter::plain(u64::from(source) << 32 | i as u64, 8 * (i % 7));
        if party.rank() > 0 {
            for i in 0..count {
                party.send(&letter(party.rank(), i), 0, (i % 3) as i32);
            }
            return;
        }
        for k in 0..3 * count {
            let asked = if k % 2 == 0 { ANY } else { from(party.see(ANY).source, None) };
            let seen = party.see(asked);
            let (status, _) = party.recv(asked, 1000);
            assert_eq!((seen.source, seen.tag, seen.size), (status.source, status.tag, status.size));
        }
    });
}

/// A receive that was posted between taking and receiving gets the next message.
fn a_message_taken_out_of_matching_is_nobody_elses(world: &World) {
    let next = Letter::plain(99, 24);
    run(world, 2, |party| {
        for letter in letters() {
            if party.rank() == 0 {
                party.send(&letter, 1, 7);
                party.send(&next, 1, 7);
                continue;
            }
            party.see(from(0, 7));
            let (status, message) = party.comm.improbe(from(0, 7)).expect("improbe").expect("it was seen");
            assert_eq!((status.source, status.tag, status.size), (0, 7, letter.needs()));
            let posted = party.post(ANY, next.needs());
            let id = party.comm.imrecv(message, letter.needs());
            party.wait_letter(posted, &next);
            party.wait_letter(id, &letter);
        }
    });
}

/// Several threads take from the same tag: each message once.
fn messages_of_unknown_size_are_received_by_matched_probe(world: &World) {
    let count = amount(100, 5000);
    let letter = |i: usize| match i % 3 {
        0 => Letter::plain(i as u64, 8 * (i * 13 % 900)),
        1 => Letter::appended(i as u64, 8 * (i % 50), 1 + i),
        _ => Letter::split(i as u64, 8 * (i % 50), 1 + 3 * i),
    };
    run(world, 2, |party| {
        if party.rank() == 0 {
            let sends: Vec<_> =
                (0..count).map(|i| party.isend(Mode::Standard, &letter(i), 1, i as i32)).collect();
            return party.wait_all(sends);
        }
        let taken = std::sync::Mutex::new(Vec::new());
        party.threads(3, |_| {
            while taken.lock().expect("no panic").len() < count {
                let Some((status, message)) = party.comm.improbe(ANY).expect("improbe") else {
                    std::thread::yield_now();
                    continue;
                };
                taken.lock().expect("no panic").push(status.tag);
                let id = party.comm.imrecv(message, status.size);
                party.wait_letter(id, &letter(status.tag as usize));
            }
        });
        let mut tags = taken.into_inner().expect("no panic");
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..count as i32));
    });
}

/// From then on it has its receiver; the request is not there before the receive that follows.
fn a_synchronous_message_is_done_when_it_is_taken_out_of_matching(world: &World) {
    run(world, 2, |party| {
        for letter in letters() {
            if party.rank() == 0 {
                party.ssend(&letter, 1, 7);
            } else {
                party.see(ANY);
                let (status, message) = party.comm.improbe(ANY).expect("improbe").expect("a message");
                let id = party.comm.imrecv(message, status.size);
                party.wait_letter(id, &letter);
            }
        }
    });
}

fn a_probe_does_not_make_a_synchronous_send_done(world: &World) {
    run(world, 2, |party| {
        let letter = Letter::plain(1, 64);
        if party.rank() == 0 {
            let id = party.isend(Mode::Synchronous, &letter, 1, 7).expect("pending");
            party.until("the message was seen often", || {
                assert!(party.comm.test(id).expect("test").is_none());
                party.was_said("seen")
            });
            party.say("still pending");
            party.wait(id);
        } else {
            for _ in 0..100 {
                party.see(ANY);
            }
            party.say("seen");
            party.hear("still pending");
            party.expect(ANY, &letter);
        }
    });
}

/// A message that was taken out of matching and is given up counts as received: its sender goes on, and nothing of it
/// stays, neither credit nor its second half.
fn a_message_taken_out_of_matching_and_dropped_is_consumed(world: &World) {
    for letter in letters() {
        run(world, 2, |party| {
            if party.rank() == 0 {
                let id = party.isend(Mode::Synchronous, &letter, 1, 7).expect("pending");
                let deadline = mpjdev_engine::deadline_after(std::time::Duration::from_secs(20));
                let ended = party.comm.wait(id, deadline, &mut Patient).map(drop);
                party.say("over");
                assert_eq!(ended, Ok(()), "{letter:?}");
            } else {
                party.see(ANY);
                drop(party.comm.improbe(ANY).expect("improbe").expect("a message"));
                party.until("its sender goes on", || {
                    let _ = party.comm.iprobe(ANY);
                    party.was_said("over")
                });
            }
        });
    }
}
