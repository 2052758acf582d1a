//! Looking at messages before receiving them.

use mpjdev_engine::{Mode, Status};

use crate::rank_harness::{ANY, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    a_probe_waits_for_a_message_and_the_next_receive_gets_it,
    a_look_finds_nothing_until_a_message_is_there,
    a_probe_tells_the_capacity_that_the_message_needs,
    a_probe_tells_of_the_message_that_a_receive_would_get,
    a_probe_does_not_make_a_synchronous_send_done,
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
            // It stays, and only a probe for it sees it.
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
