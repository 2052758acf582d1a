//! A message larger than its receiver has room for is consumed, and nothing else is.

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, amount, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{World, in_every_world};

in_every_world![
    a_message_that_is_too_large_is_an_error_with_the_numbers_and_the_next_one_is_whole,
    truncation_begins_one_octet_past_the_capacity,
    both_halves_of_a_truncated_message_are_consumed,
    a_truncated_synchronous_message_counts_as_matched,
    truncated_messages_among_many_outstanding_receives_hurt_no_other,
];

fn truncated(letter: &Letter, capacity: usize, tag: i32) -> DeviceError {
    DeviceError::Truncated { needed: letter.needs(), capacity, source_rank: 0, tag }
}

fn a_message_that_is_too_large_is_an_error_with_the_numbers_and_the_next_one_is_whole(world: &World) {
    let letters =
        [Letter::plain(1, 64), Letter::plain(2, 9000), Letter::appended(3, 64, 99), Letter::split(4, 64, 99)];
    run(world, 2, |party| {
        for letter in letters {
            if party.rank() == 0 {
                party.send(&letter, 1, 7);
                party.send(&letter, 1, 7);
                party.send(&letter, 1, 7);
            } else {
                // Posted late, posted early or blocking: all alike.
                let error = party.comm.recv(ANY, 8, None, &mut Uninterruptible).unwrap_err();
                assert_eq!(error, truncated(&letter, 8, 7));
                let id = party.post(from(0, 7), 8);
                assert_eq!(
                    party.comm.wait(id, None, &mut Uninterruptible).unwrap_err(),
                    truncated(&letter, 8, 7)
                );
                party.expect(from(0, 7), &letter);
            }
        }
    });
}

/// Decided by the first physical message alone: the secondary payload of a split one needs no capacity.
fn truncation_begins_one_octet_past_the_capacity(world: &World) {
    let letters =
        [Letter::plain(1, 64), Letter::plain(2, 1016), Letter::appended(3, 8, 5), Letter::split(4, 8, 5)];
    run(world, 2, |party| {
        for letter in letters {
            let exact = letter.needs();
            for capacity in [exact - 1, exact, exact + 1] {
                if party.rank() == 0 {
                    party.send(&letter, 1, 7);
                } else {
                    match party.comm.recv(ANY, capacity, None, &mut Uninterruptible) {
                        Ok((_, message)) => {
                            letter.check(&message);
                            assert_eq!(message.capacity(), capacity, "the receiver's stays");
                            assert!(capacity >= exact);
                        }
                        Err(error) => assert_eq!(error, truncated(&letter, exact - 1, 7)),
                    }
                }
            }
        }
    });
}

/// A wildcard receive right behind gets the next message, not the second half; and no memory is left.
fn both_halves_of_a_truncated_message_are_consumed(world: &World) {
    let count = amount(50, 5000);
    run(world, 2, |party| {
        for i in 0..count {
            let large = Letter::split(i as u64, 800, 5000);
            let next = Letter::split(1000 + i as u64, 40, 3000);
            if party.rank() == 0 {
                party.send(&large, 1, 7);
                party.send(&next, 1, 7);
            } else {
                let first = party.post(ANY, 799);
                let second = party.post(ANY, 40);
                party.wait_letter(second, &next);
                assert_eq!(
                    party.comm.wait(first, None, &mut Uninterruptible).unwrap_err(),
                    truncated(&large, 799, 7)
                );
            }
        }
    });
}

fn a_truncated_synchronous_message_counts_as_matched(world: &World) {
    run(world, 2, |party| {
        for letter in [Letter::plain(1, 64), Letter::plain(2, 9000), Letter::split(3, 64, 99)] {
            if party.rank() == 0 {
                party.ssend(&letter, 1, 7);
            } else {
                assert!(party.comm.recv(ANY, 0, None, &mut Uninterruptible).is_err());
            }
        }
    });
}

fn truncated_messages_among_many_outstanding_receives_hurt_no_other(world: &World) {
    let count = amount(120, 5000);
    let letter = |i: usize| match i % 3 {
        0 => Letter::plain(i as u64, 400),
        1 => Letter::split(i as u64, 400, 1 + i),
        _ => Letter::plain(i as u64, 4000),
    };
    run(world, 2, |party| {
        if party.rank() == 0 {
            let sends: Vec<_> = (0..count).map(|i| party.isend(Mode::Standard, &letter(i), 1, 7)).collect();
            return party.wait_all(sends);
        }
        let capacity = |i: usize| if i % 4 == 1 { 392 } else { 4000 };
        let receives: Vec<_> = (0..count).map(|i| party.post(from(0, None), capacity(i))).collect();
        for (i, id) in receives.into_iter().enumerate() {
            match party.comm.wait(id, None, &mut Uninterruptible) {
                Ok(done) => letter(i).check(&done.message.expect("a message")),
                Err(error) => {
                    assert_eq!(error, truncated(&letter(i), 392, 7));
                    assert_eq!(i % 4, 1);
                }
            }
        }
    });
}
