//! Probes: messages found before they are received.

use mpjdev_engine::Mode;

use crate::rank_harness::{ANY, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![
    a_probe_waits_for_a_message_and_the_next_receive_gets_it,
    iprobe_is_empty_until_a_message_has_arrived,
    probe_returns_the_capacity_that_the_message_needs,
    probe_returns_the_message_that_a_receive_would_get,
    probe_does_not_complete_a_synchronous_send,
];

fn test_messages() -> [TestMessage; 5] {
    [
        TestMessage::plain(1, 0),
        TestMessage::plain(2, 1008),
        TestMessage::plain(3, 100_000),
        TestMessage::appended(4, 40, 77),
        TestMessage::split(5, 40, 7777),
    ]
}

fn a_probe_waits_for_a_message_and_the_next_receive_gets_it(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (tag, test_message) in (1..).zip(test_messages()) {
            if harness.rank() == 0 {
                harness.wait_for_note(&format!("about to probe {tag}"));
                harness.send(&test_message, 1, tag);
            } else {
                harness.post_note(&format!("about to probe {tag}"));
                let seen = harness.probe(ANY);
                let received = harness.expect(from(seen.source, seen.tag), &test_message);
                assert_eq!(seen, received);
            }
        }
    });
}

fn iprobe_is_empty_until_a_message_has_arrived(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        if harness.rank() == 0 {
            harness.wait_for_note("no message yet");
            harness.send(&test_messages()[1], 1, 7);
        } else {
            for _ in 0..100 {
                assert_eq!(harness.comm.iprobe(ANY), Ok(None));
            }
            harness.post_note("no message yet");
            harness.until("the message is there", || harness.comm.iprobe(ANY).expect("iprobe").is_some());
            // The message stays, and only a matching probe finds it.
            assert!(harness.comm.iprobe(from(0, 7)).expect("iprobe").is_some());
            assert_eq!(harness.comm.iprobe(from(0, 8)), Ok(None));
            assert_eq!(harness.comm.iprobe(from(1, 7)), Ok(None));
            harness.expect(ANY, &test_messages()[1]);
            assert_eq!(harness.comm.iprobe(ANY), Ok(None));
        }
    });
}

/// The octets of the first physical message without the headers, the same on every transport.
fn probe_returns_the_capacity_that_the_message_needs(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (tag, test_message) in (1..).zip(test_messages()) {
            if harness.rank() == 0 {
                harness.send(&test_message, 1, tag);
            } else {
                assert_eq!(harness.probe(from(0, tag)).size, test_message.needs(), "{test_message:?}");
                harness.expect(from(0, tag), &test_message);
            }
        }
    });
}

/// With several messages, a wildcard probe and a wildcard receive find the same one.
fn probe_returns_the_message_that_a_receive_would_get(fixture: &TransportFixture) {
    let count = amount(50, 5000);
    run(fixture, 4, |harness| {
        let test_message =
            |source: u32, i: usize| TestMessage::plain(u64::from(source) << 32 | i as u64, 8 * (i % 7));
        if harness.rank() > 0 {
            for i in 0..count {
                harness.send(&test_message(harness.rank(), i), 0, (i % 3) as i32);
            }
            return;
        }
        for k in 0..3 * count {
            let asked = if k % 2 == 0 { ANY } else { from(harness.probe(ANY).source, None) };
            let seen = harness.probe(asked);
            let (status, _) = harness.recv(asked, 1000);
            assert_eq!((seen.source, seen.tag, seen.size), (status.source, status.tag, status.size));
        }
    });
}

fn probe_does_not_complete_a_synchronous_send(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        let test_message = TestMessage::plain(1, 64);
        if harness.rank() == 0 {
            let id = harness.isend(Mode::Synchronous, &test_message, 1, 7).expect("pending");
            harness.until("the message was seen often", || {
                assert!(harness.comm.test(id).expect("test").is_none());
                harness.has_note("seen")
            });
            harness.post_note("still pending");
            harness.wait(id);
        } else {
            for _ in 0..100 {
                harness.probe(ANY);
            }
            harness.post_note("seen");
            harness.wait_for_note("still pending");
            harness.expect(ANY, &test_message);
        }
    });
}
