//! Physical messages of foreign, damaged or malicious senders.

use super::*;
use crate::rank_harness::{ANY, from};

/// The second half has the context, tag and source of the first and follows it directly.
#[test]
fn a_foreign_senders_halves_are_joined_for_exact_and_wildcard_receives() {
    let bench = Bench::new(2, true);
    // Several unexpected messages.
    for seed in 1..4 {
        let (first, second) = halves(&test_message(seed));
        bench.put(0, 7, &first);
        bench.put(0, 7, &second);
    }
    for seed in 1..4 {
        let asked = if seed == 2 { ANY } else { from(1, 7) };
        test_message(seed).check(&bench.recv(asked, 40).expect("both halves"));
    }
    // Posted before, and other receives after it that must not get a half.
    let receives = [ANY, from(1, 7), from(None, 7)].map(|f| bench.comm.irecv(f, 40, None).expect("irecv"));
    for seed in 4..7 {
        let (first, second) = halves(&test_message(seed));
        bench.put(0, 7, &first);
        bench.put(0, 7, &second);
    }
    for (seed, id) in (4..7).zip(receives) {
        let done = bench.comm.wait(id, Some(soon()), &mut Uninterruptible).expect("both halves");
        test_message(seed).check(&done.message.expect("a message"));
    }
    bench.finish_clean();
}

/// Also with messages of that sender on other tags in between.
#[test]
fn a_foreign_second_half_is_not_taken_from_another_tag() {
    let bench = Bench::new(2, true);
    let (first, second) = halves(&test_message(1));
    let (whole, _) = halves(&TestMessage::plain(9, 40));
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    bench.put(0, 7, &first);
    bench.put(0, 8, &whole);
    assert!(bench.comm.test(id).expect("test").is_none());
    TestMessage::plain(9, 40).check(&bench.recv(ANY, 40).expect("the whole one"));
    bench.put(0, 7, &second);
    let done = bench.comm.wait(id, Some(soon()), &mut Uninterruptible).expect("both halves");
    test_message(1).check(&done.message.expect("a message"));
    bench.finish_clean();
}

/// The second halves arrive in any order, before or after their first halves.
#[test]
fn numbered_halves_find_each_other_in_any_order() {
    for order in [[0, 1, 2], [2, 0, 1], [2, 1, 0]] {
        for early in [false, true] {
            let bench = Bench::new(2, true);
            let all: Vec<_> = (1..4).map(|seed| numbered_halves(&test_message(seed), seed as u32)).collect();
            let put_seconds = || order.iter().for_each(|i| bench.put(shadow(0), *i as i32 + 1, &all[*i].1));
            let receives: Vec<_> = (0..3).map(|_| bench.comm.irecv(ANY, 40, None).expect("irecv")).collect();
            if early {
                put_seconds();
                assert_eq!(bench.comm.iprobe(ANY), Ok(None), "a second half is no message");
            }
            all.iter().for_each(|(first, _)| bench.put(0, 7, first));
            if !early {
                put_seconds();
            }
            for (seed, id) in (1..4).zip(receives) {
                let done = bench.comm.wait(id, Some(soon()), &mut Uninterruptible).expect("both halves");
                test_message(seed).check(&done.message.expect("a message"));
            }
            bench.finish_clean();
        }
    }
}

/// A transport may deliver a short second half inside its packet.
#[test]
fn inline_second_half_is_joined() {
    let bench = Bench::new(2, true);
    // Sixteen octets that could be an empty message, which the transport copies into its queue.
    let (first, _) = halves(&TestMessage::split(1, 40, 16));
    let inline = bench.message(&TestMessage::plain(0, 0));
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    bench.put(0, 7, &first);
    let header = Header { kind: Kind::Eager, context: 0, tag: 7, token: 0 };
    assert!(bench.transports[0].try_send(0, header, Outgoing::Message(&inline)));
    let message = bench.comm.wait(id, Some(soon()), &mut Uninterruptible).expect("both halves").message;
    let mut secondary = [0xff; 16];
    assert_eq!(message.expect("a message").copy_secondary(0, &mut secondary), 16);
    assert_eq!(
        secondary[..8],
        inline.first_words()[0].load(std::sync::atomic::Ordering::Relaxed).to_ne_bytes()
    );
    drop(inline);
    bench.finish_clean();
}

/// The error has both lengths. The next message is whole, with the half before or after the receive.
#[test]
fn a_second_half_of_another_length_is_an_error_with_the_numbers() {
    for posted in [false, true] {
        for wrong in [0, 1, 100, 102, 5000] {
            let bench = Bench::new(2, true);
            let (first, _) = numbered_halves(&test_message(1), 5);
            let posted = posted.then(|| bench.comm.irecv(ANY, 40, None).expect("irecv"));
            bench.put(0, 7, &first);
            bench.put(shadow(0), 5, &vec![0; wrong]);
            let (next, _) = halves(&TestMessage::plain(2, 40));
            bench.put(0, 7, &next);
            let error = match posted {
                Some(id) => bench.comm.wait(id, Some(soon()), &mut Uninterruptible).unwrap_err(),
                None => bench.recv(ANY, 40).unwrap_err(),
            };
            let lengths = LengthError::SecondLength { expected: 101, actual: wrong };
            assert_eq!(error, DeviceError::Lengths { error: lengths, source_rank: 1, tag: 7 });
            TestMessage::plain(2, 40).check(&bench.recv(ANY, 40).expect("the next message"));
            bench.finish_clean();
        }
    }
}

/// Every truncation of a message, and octets past its end, give an error or, for a first half, an open
/// receive. There is no panic, and the next message is whole.
#[test]
fn physical_lengths_that_contradict_the_headers_are_errors() {
    for split in [false, true] {
        let whole = if split { TestMessage::split(1, 40, 24) } else { TestMessage::appended(1, 40, 24) };
        let (first, second) = halves(&whole);
        let right = first.len();
        let first: Vec<u8> = first.into_iter().chain(second).chain([0; 9]).collect();
        for len in (0..first.len()).filter(|len| *len != right && *len != 56 && *len != 80) {
            let bench = Bench::new(2, true);
            bench.put(0, 7, &first[..len]);
            let (next, _) = halves(&TestMessage::plain(2, 40));
            bench.put(0, 7, &next);
            let error = bench.recv(ANY, 1000).unwrap_err();
            assert!(
                matches!(error, DeviceError::Damaged { .. } | DeviceError::Lengths { .. }),
                "{len} octets: {error}"
            );
            assert!(error.to_string().contains("rank 1") && error.to_string().contains("tag 7"), "{error}");
            TestMessage::plain(2, 40).check(&bench.recv(ANY, 40).expect("the next message"));
            bench.finish_clean();
        }
    }
}

/// Every flipped bit of both headers gives the message, an error, or a receive that waits for a second half.
/// No forged length causes an allocation.
#[test]
fn header_with_any_flipped_bit_is_refused_or_harmless() {
    let (good, _) = halves(&TestMessage::appended(1, 40, 24));
    let header_bits = (0..64).chain(48 * 8..56 * 8);
    for bit in header_bits {
        let bench = Bench::new(2, true);
        let mut octets = good.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        let before = bench.pool.used();
        bench.put(0, 7, &octets);
        let id = bench.comm.irecv(ANY, 1000, None).expect("irecv");
        match bench.comm.test(id) {
            Ok(_) | Err(DeviceError::Damaged { .. } | DeviceError::Lengths { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
        assert!(bench.pool.used() <= before + 4096, "bit {bit}: {} octets in use", bench.pool.used());
        // A receive that still waits for a second half ends with its sender.
        let id = bench.comm.irecv(ANY, 1000, None).expect("irecv");
        bench.transports[0].finish();
        assert!(bench.comm.wait(id, Some(soon()), &mut Uninterruptible).is_err());
    }
}

/// The receive fails with the rank that did not send the second half.
#[test]
fn receive_without_its_second_half_fails_when_the_sender_ends() {
    let bench = Bench::new(3, true);
    let (first, _) = numbered_halves(&test_message(1), 5);
    bench.put(0, 7, &first);
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    assert!(bench.comm.test(id).expect("test").is_none());
    assert_eq!(bench.comm.cancel(id), Ok(false), "it is matched");
    bench.transports[0].finish();
    let error = bench.comm.wait(id, Some(soon()), &mut Uninterruptible).unwrap_err();
    assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
    bench.finish_clean();
}

/// After an interrupt between the halves the message is still received if its second half arrives soon.
#[test]
fn an_interrupt_between_the_halves_loses_no_message() {
    let bench = Bench::new(2, true);
    let (first, second) = numbered_halves(&test_message(1), 5);
    bench.put(0, 7, &first);
    let (asked, interrupted) = std::sync::mpsc::channel();
    let comm = bench.comm.clone();
    let thread = std::thread::spawn(move || {
        let mut patience = || {
            let _ = asked.send(());
            false
        };
        comm.recv(ANY, 40, None, &mut patience)
    });
    interrupted.recv_timeout(Duration::from_secs(20)).expect("it waits for the second half");
    bench.put(shadow(0), 5, &second);
    let (_, message) = thread.join().expect("no panic").expect("the message");
    test_message(1).check(&message);
    drop(message);
    bench.finish_clean();
}

/// The second half may never arrive although its sender lives. An interrupt still ends the wait.
#[test]
fn a_receive_that_has_only_its_first_half_can_be_interrupted() {
    let bench = Bench::new(2, true);
    let (first, second) = numbered_halves(&test_message(1), 5);
    bench.put(0, 7, &first);
    let (done, over) = std::sync::mpsc::channel();
    let comm = bench.comm.clone();
    let thread = std::thread::spawn(move || {
        let ended = comm.recv(ANY, 40, None, &mut || false).map(drop);
        let _ = done.send(());
        ended
    });
    let in_time = over.recv_timeout(Duration::from_secs(20)).is_ok();
    bench.put(shadow(0), 5, &second);
    let ended = thread.join().expect("no panic");
    assert!(in_time, "it continued until the second half was there: {ended:?}");
    assert_eq!(ended, Err(DeviceError::Interrupted));
    bench.finish_clean();
}

/// The half of a finished rank, with other live ranks that could send to a wildcard receive.
#[test]
fn half_of_a_finished_rank_fails_the_receive_at_once() {
    let bench = Bench::new(3, true);
    let (first, _) = numbered_halves(&test_message(1), 5);
    bench.put(0, 7, &first);
    bench.transports[0].finish();
    // Rank 0 notices both before any receive is posted.
    assert!(bench.comm.iprobe(ANY).expect("iprobe").is_some());
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    let deadline = Some(Instant::now() + Duration::from_secs(20));
    let ended = bench.comm.wait(id, deadline, &mut Uninterruptible).map(drop);
    assert_eq!(ended, Err(DeviceError::PeerFinished { rank: 1 }));
    bench.finish_clean();
}
