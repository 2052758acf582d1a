//! Messages arrive whole, in every size, form and mode.

use mpjdev_buffer::{BufferError, Element, Encoding, Message, ReadBuffer, Type, WriteBuffer};
use mpjdev_engine::Mode;

use crate::rank_harness::{ANY, RankHarness, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{Ability, TransportFixture, for_every_fixture};

for_every_fixture![
    messages_of_every_size_arrive_whole_in_both_modes,
    appended_and_split_payloads_arrive_whole_at_every_edge,
    a_message_of_64_mib_arrives_whole,
    every_section_type_arrives_with_its_checksum_in_both_byte_orders,
    non_blocking_operations_exchange_every_size_both_ways_at_once,
    a_rank_sends_to_itself,
    a_ring_passes_messages_on,
    every_rank_sends_to_every_other,
    one_message_goes_to_16_destinations_by_reference,
    a_received_message_can_be_sent_on,
];

/// Octets of primary payload around the limits: 0, one queue entry, one page, 16 KiB, 64 KiB.
const PRIMARY: [usize; 25] = [
    0,
    8,
    16,
    24,
    32,
    992,
    1000,
    1008,
    1016,
    1024,
    1064,
    1072,
    1080,
    4056,
    4064,
    4072,
    4080,
    4088,
    16_368,
    16_376,
    16_384,
    65_512,
    65_520,
    65_528,
    1 << 20,
];

fn edges(fixture: &TransportFixture) -> Vec<TestMessage> {
    let sizes = PRIMARY.iter().filter(|p| fixture.octets(**p) == **p);
    sizes.enumerate().map(|(i, p)| TestMessage::plain(i as u64 + 1, *p)).collect()
}

fn secondary_edges() -> Vec<TestMessage> {
    let mut test_messages = Vec::new();
    // Appended: 1088 octets fit a queue entry; one less and one more are not multiples of 8.
    for (p, s) in [(0, 1), (8, 1), (0, 1071), (0, 1072), (0, 1073), (512, 560), (512, 561), (4000, 70_001)] {
        test_messages.push(TestMessage::appended(test_messages.len() as u64, p, s));
    }
    // Split: by a capacity that is used up, and by one that p + s equal. Appended where rounding raises it.
    for (p, s) in [(0, 1), (0, 8), (8, 7), (48, 12), (1072, 1), (1008, 1024), (4072, 100_003), (65_528, 1)] {
        test_messages.push(TestMessage::split(test_messages.len() as u64, p, s));
        test_messages.push(TestMessage {
            seed: test_messages.len() as u64,
            primary: p,
            secondary: s,
            room: s,
        });
    }
    test_messages
}

/// Each message is checked word by word; the status has its size, source and tag.
fn exchange(harness: &RankHarness, test_messages: &[TestMessage]) {
    for mode in [Mode::Standard, Mode::Synchronous] {
        for (tag, test_message) in (0..).zip(test_messages) {
            if harness.rank() == 0 {
                harness.send_in(mode, test_message, 1, tag);
            } else {
                let status = harness.expect(from(0, tag), test_message);
                assert_eq!((status.source, status.tag), (0, tag));
            }
        }
    }
}

fn messages_of_every_size_arrive_whole_in_both_modes(fixture: &TransportFixture) {
    run(fixture, 2, |harness| exchange(harness, &edges(fixture)));
}

fn appended_and_split_payloads_arrive_whole_at_every_edge(fixture: &TransportFixture) {
    run(fixture, 2, |harness| exchange(harness, &secondary_edges()));
}

/// Both forms of a large message. All memory returns afterwards.
fn a_message_of_64_mib_arrives_whole(fixture: &TransportFixture) {
    let primary = fixture.octets(64 << 20);
    let secondary = fixture.octets(amount(1 << 20, 64 << 20));
    run(fixture, 2, |harness| {
        exchange_once(
            harness,
            &[TestMessage::plain(1, primary), TestMessage::split(2, fixture.octets(1 << 20), secondary)],
        )
    });
}

fn exchange_once(harness: &RankHarness, test_messages: &[TestMessage]) {
    for test_message in test_messages {
        match harness.rank() {
            0 => harness.send(test_message, 1, 1),
            _ => assert_eq!(harness.expect(from(0, 1), test_message).tag, 1),
        }
    }
}

/// One section of each primitive type, with values that use every octet. The reader converts the byte order.
fn every_section_type_arrives_with_its_checksum_in_both_byte_orders(fixture: &TransportFixture) {
    run(fixture, 2, |harness| {
        for (tag, encoding) in [(1, Encoding::Big), (2, Encoding::Little)] {
            for count in [0, 1, 7, 64, 1000] {
                if harness.rank() == 0 {
                    let message = all_types(harness, encoding, count).expect("room for all sections");
                    harness
                        .comm
                        .send(&message, 1, tag, Mode::Standard, &mut mpjdev_engine::Uninterruptible)
                        .expect("send");
                } else {
                    let (status, message) = harness.recv(from(0, tag), 80_000);
                    let first = status.first.expect("a section");
                    assert_eq!((first.element, first.count), (Type::Byte, count));
                    assert_eq!(message.encoding(), encoding);
                    check_types(harness, message, count).expect("the sections that were sent");
                }
            }
        }
    });
}

/// The k-th value of a type, by its octets.
fn value<T: Element>(k: usize) -> T {
    let octets = (k as u64 + 1).wrapping_mul(0x0123_4567_89ab_cdef).to_ne_bytes();
    T::from_octets(octets, Encoding::NATIVE)
}

fn values<T: Element>(count: usize) -> Vec<T> {
    (0..count).map(value).collect()
}

/// A checksum over the octets of the values, which compares NaNs too.
fn checksum<T: Element>(values: &[T]) -> u64 {
    let words = values.iter().map(|v| u64::from_le_bytes(v.to_octets(Encoding::Little)));
    words.fold(0xcbf2_9ce4_8422_2325, |sum, word| (sum ^ word).wrapping_mul(0x100_0000_01b3))
}

fn all_types(harness: &RankHarness, encoding: Encoding, count: usize) -> Result<Message, BufferError> {
    let mut buffer = WriteBuffer::new(harness.source().clone(), 80_000, encoding)?;
    buffer.write(&values::<i8>(count))?;
    buffer.write(&values::<u16>(count))?;
    buffer.write(&values::<i16>(count))?;
    buffer.write(&values::<bool>(count))?;
    buffer.write(&values::<i32>(count))?;
    buffer.write(&values::<i64>(count))?;
    buffer.write(&values::<f32>(count))?;
    buffer.write(&values::<f64>(count))?;
    buffer.stage(Type::Object, count)?;
    buffer.commit();
    let octets: Vec<u8> = values::<i8>(count).iter().map(|v| *v as u8).collect();
    buffer.stage_secondary(count)?.put_octets(&octets);
    buffer.grow_secondary(count);
    Ok(buffer.finish()?.clone())
}

fn check_types(harness: &RankHarness, message: Message, count: usize) -> Result<(), BufferError> {
    let mut secondary = vec![0; count + 1];
    assert_eq!(message.copy_secondary(0, &mut secondary), count);
    assert!(values::<i8>(count).iter().zip(&secondary).all(|(v, o)| *v as u8 == *o));
    let mut buffer = ReadBuffer::new(harness.source().clone(), 80_000)?;
    buffer.adopt(message);
    assert_eq!(buffer.section_count()?, 9);
    check_section::<i8>(&mut buffer, count)?;
    check_section::<u16>(&mut buffer, count)?;
    check_section::<i16>(&mut buffer, count)?;
    check_section::<bool>(&mut buffer, count)?;
    check_section::<i32>(&mut buffer, count)?;
    check_section::<i64>(&mut buffer, count)?;
    check_section::<f32>(&mut buffer, count)?;
    check_section::<f64>(&mut buffer, count)?;
    assert_eq!(buffer.peek()?.map(|s| (s.element, s.count)), Some((Type::Object, count)));
    Ok(())
}

fn check_section<T: Element>(buffer: &mut ReadBuffer, count: usize) -> Result<(), BufferError> {
    let mut read = vec![T::default(); count];
    buffer.read(&mut read)?;
    assert_eq!(checksum(&read), checksum(&values::<T>(count)), "{}", T::TYPE);
    Ok(())
}

/// Everything is posted and started before anything is waited for, in both directions at once.
fn non_blocking_operations_exchange_every_size_both_ways_at_once(fixture: &TransportFixture) {
    let test_messages: Vec<TestMessage> = edges(fixture).into_iter().chain(secondary_edges()).collect();
    run(fixture, 2, |harness| {
        let peer = 1 - harness.rank();
        let receives: Vec<_> =
            (0..).zip(&test_messages).map(|(tag, l)| harness.post(from(peer, tag), l.needs())).collect();
        let modes = [Mode::Standard, Mode::Synchronous].into_iter().cycle();
        let sends: Vec<_> = (0..)
            .zip(&test_messages)
            .zip(modes)
            .map(|((tag, l), mode)| harness.isend(mode, l, peer, tag))
            .collect();
        for (id, test_message) in receives.into_iter().zip(&test_messages) {
            harness.wait_message(id, test_message);
        }
        harness.wait_all(sends);
    });
}

/// In every form, with the receive posted before and after.
fn a_rank_sends_to_itself(fixture: &TransportFixture) {
    run(fixture, 1, |harness| {
        for test_message in edges(fixture).into_iter().chain(secondary_edges()) {
            for mode in [Mode::Standard, Mode::Synchronous] {
                let posted = harness.post(from(0, 5), test_message.needs());
                harness.send_in(mode, &test_message, 0, 5);
                harness.wait_message(posted, &test_message);
                let sent = harness.isend(mode, &test_message, 0, 5);
                harness.expect(ANY, &test_message);
                harness.wait_all([sent]);
            }
        }
    });
}

/// A message travels around the ring several times and returns whole.
fn a_ring_passes_messages_on(fixture: &TransportFixture) {
    let test_messages =
        [TestMessage::plain(1, 64), TestMessage::plain(2, 8000), TestMessage::split(3, 800, 3000)];
    run(fixture, 5, |harness| {
        let (next, before) = ((harness.rank() + 1) % 5, (harness.rank() + 4) % 5);
        for _round in 0..amount(20, 2000) {
            for test_message in &test_messages {
                if harness.rank() == 0 {
                    harness.send(test_message, next, 0);
                    harness.expect(from(before, 0), test_message);
                } else {
                    let (_, message) = harness.recv(from(before, 0), test_message.needs());
                    harness
                        .comm
                        .send(&message, next as i32, 0, Mode::Standard, &mut mpjdev_engine::Uninterruptible)
                        .expect("send");
                }
            }
        }
    });
}

/// Each pair has its own content, and each rank receives from the others in its own order.
fn every_rank_sends_to_every_other(fixture: &TransportFixture) {
    run(fixture, 6, |harness| {
        let (me, size) = (harness.rank(), harness.size());
        let test_message = |from: u32, to: u32, round: usize| {
            let seed = u64::from(from * 100 + to) + round as u64 * 10_000;
            match (from + to) as usize % 3 {
                0 => TestMessage::plain(seed, 8 * (from as usize * 7 + to as usize)),
                1 => TestMessage::plain(seed, 4000 + 8 * to as usize),
                _ => TestMessage::split(seed, 64, 1 + 100 * from as usize),
            }
        };
        for round in 0..amount(5, 500) {
            let sends: Vec<_> = (0..size)
                .map(|to| harness.isend(Mode::Standard, &test_message(me, to, round), to, 3))
                .collect();
            for i in 0..size {
                let source = (me + i) % size;
                harness.expect(from(source, 3), &test_message(source, me, round));
            }
            harness.wait_all(sends);
        }
    });
}

/// The receivers read the sender's slab itself, and its memory is counted once.
fn one_message_goes_to_16_destinations_by_reference(fixture: &TransportFixture) {
    if !fixture.can(Ability::SharesMemory, "one_message_goes_to_16_destinations_by_reference") {
        return;
    }
    let test_message = TestMessage::plain(9, 1 << 20);
    let address = |message: &Message| message.first_words().as_ptr() as usize;
    let expected = std::sync::atomic::AtomicUsize::new(0);
    run(fixture, 17, |harness| {
        if harness.rank() == 0 {
            let message = test_message.write(harness.source());
            expected.store(address(&message), std::sync::atomic::Ordering::SeqCst);
            let send = |dest| harness.comm.isend(&message, dest, 7, Mode::Standard).expect("sent");
            let pending: Vec<_> = (1..17).filter_map(send).collect();
            drop(message);
            for id in pending {
                harness.wait(id);
            }
        } else {
            let (_, message) = harness.recv(from(0, 7), test_message.needs());
            test_message.check(&message);
            assert_eq!(address(&message), expected.load(std::sync::atomic::Ordering::SeqCst));
            assert!(harness.used() < 2 << 20, "{} octets in use", harness.used());
        }
    });
}

/// It keeps its secondary payload, also when it was split.
fn a_received_message_can_be_sent_on(fixture: &TransportFixture) {
    let test_messages =
        [TestMessage::plain(1, 1000), TestMessage::appended(2, 40, 999), TestMessage::split(3, 40, 999)];
    run(fixture, 3, |harness| {
        for test_message in &test_messages {
            match harness.rank() {
                0 => harness.send(test_message, 1, 0),
                1 => {
                    let (_, message) = harness.recv(from(0, 0), 100_000);
                    test_message.check(&message);
                    harness
                        .comm
                        .send(&message, 2, 0, Mode::Synchronous, &mut mpjdev_engine::Uninterruptible)
                        .expect("send");
                }
                _ => {
                    let (_, message) = harness.recv(from(1, 0), 100_000);
                    test_message.check(&message);
                }
            }
        }
    });
}
