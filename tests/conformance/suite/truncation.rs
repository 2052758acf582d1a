//! Truncation: a message longer than its receive allows is consumed, and no other one is.

use mpjdev_engine::{DeviceError, Mode, Uninterruptible};

use crate::rank_harness::{ANY, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    a_message_that_is_too_large_is_an_error_with_the_numbers_and_the_next_one_is_whole,
    truncation_begins_one_octet_past_the_capacity,
    both_halves_of_a_truncated_message_are_consumed,
    a_truncated_synchronous_message_counts_as_matched,
    truncated_messages_leave_other_outstanding_receives_whole,
];

fn truncated(test_message: &TestMessage, capacity: usize, tag: i32) -> DeviceError {
    DeviceError::Truncated { needed: test_message.needs(), capacity, source_rank: 0, tag }
}

fn a_message_that_is_too_large_is_an_error_with_the_numbers_and_the_next_one_is_whole(
    fixture: &TransportFixture,
) {
    let test_messages = [
        TestMessage::plain(1, 64),
        TestMessage::plain(2, 9000),
        TestMessage::appended(3, 64, 99),
        TestMessage::split(4, 64, 99),
    ];
    run(fixture, 2, |harness| {
        for test_message in test_messages {
            if harness.rank() == 0 {
                harness.send(&test_message, 1, 7);
                harness.send(&test_message, 1, 7);
                harness.send(&test_message, 1, 7);
            } else {
                // Posted late, posted early, or blocking.
                let error = harness.comm.recv(ANY, 8, None, &mut Uninterruptible).unwrap_err();
                assert_eq!(error, truncated(&test_message, 8, 7));
                let id = harness.post(from(0, 7), 8);
                assert_eq!(
                    harness.comm.wait(id, None, &mut Uninterruptible).unwrap_err(),
                    truncated(&test_message, 8, 7)
                );
                harness.expect(from(0, 7), &test_message);
            }
        }
    });
}

/// Decided by the first physical message alone: the secondary payload of a split one needs no capacity.
fn truncation_begins_one_octet_past_the_capacity(fixture: &TransportFixture) {
    let test_messages = [
        TestMessage::plain(1, 64),
        TestMessage::plain(2, 1016),
        TestMessage::appended(3, 8, 5),
        TestMessage::split(4, 8, 5),
    ];
    run(fixture, 2, |harness| {
        for test_message in test_messages {
            let exact = test_message.needs();
            for capacity in [exact - 1, exact, exact + 1] {
                if harness.rank() == 0 {
                    harness.send(&test_message, 1, 7);
                } else {
                    match harness.comm.recv(ANY, capacity, None, &mut Uninterruptible) {
                        Ok((_, message)) => {
                            test_message.check(&message);
                            assert_eq!(message.capacity(), capacity, "the receiver's stays");
                            assert!(capacity >= exact);
                        }
                        Err(error) => assert_eq!(error, truncated(&test_message, exact - 1, 7)),
                    }
                }
            }
        }
    });
}

/// The next wildcard receive gets the next message, not the second half, and no memory is left.
fn both_halves_of_a_truncated_message_are_consumed(fixture: &TransportFixture) {
    let count = amount(50, 5000);
    run(fixture, 2, |harness| {
        for i in 0..count {
            let large = TestMessage::split(i as u64, 800, 5000);
            let next = TestMessage::split(1000 + i as u64, 40, 3000);
            if harness.rank() == 0 {
                harness.send(&large, 1, 7);
                harness.send(&next, 1, 7);
            } else {
                let first = harness.post(ANY, 799);
                let second = harness.post(ANY, 40);
                harness.wait_message(second, &next);
                assert_eq!(
                    harness.comm.wait(first, None, &mut Uninterruptible).unwrap_err(),
                    truncated(&large, 799, 7)
                );
            }
        }
    });
}

fn a_truncated_synchronous_message_counts_as_matched(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for test_message in
            [TestMessage::plain(1, 64), TestMessage::plain(2, 9000), TestMessage::split(3, 64, 99)]
        {
            if harness.rank() == 0 {
                harness.ssend(&test_message, 1, 7);
            } else {
                assert!(harness.comm.recv(ANY, 0, None, &mut Uninterruptible).is_err());
            }
        }
    });
}

fn truncated_messages_leave_other_outstanding_receives_whole(fixture: &TransportFixture) {
    let count = amount(120, 5000);
    let test_message = |i: usize| match i % 3 {
        0 => TestMessage::plain(i as u64, 400),
        1 => TestMessage::split(i as u64, 400, 1 + i),
        _ => TestMessage::plain(i as u64, 4000),
    };
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            let sends: Vec<_> =
                (0..count).map(|i| harness.isend(Mode::Standard, &test_message(i), 1, 7)).collect();
            return harness.wait_all(sends);
        }
        let capacity = |i: usize| if i % 4 == 1 { 392 } else { 4000 };
        let receives: Vec<_> = (0..count).map(|i| harness.post(from(0, None), capacity(i))).collect();
        for (i, id) in receives.into_iter().enumerate() {
            match harness.comm.wait(id, None, &mut Uninterruptible) {
                Ok(done) => test_message(i).check(&done.message.expect("a message")),
                Err(error) => {
                    assert_eq!(error, truncated(&test_message(i), 392, 7));
                    assert_eq!(i % 4, 1);
                }
            }
        }
    });
}
