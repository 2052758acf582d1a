//! Writes to a buffer after its message was finished. The holders of the message see it unchanged.

use std::sync::Arc;

use mpjdev_buffer::{BufferError, Encoding, Message, PlainSource, ReadBuffer, Type, ViewedSlab, WriteBuffer};
use proptest::prelude::*;

use crate::ledger::Ledger;
use crate::naive::{self, mix, octets_of};

fn grow(buffer: &mut WriteBuffer, octets: &[u8]) {
    buffer.stage_secondary(octets.len()).expect("memory").put_octets(octets);
    buffer.grow_secondary(octets.len());
}

/// Buffers that append their secondary payload, and that send it separately.
fn buffers() -> [WriteBuffer; 2] {
    [1000, 48].map(|c| WriteBuffer::new(Ledger::new(), c, Encoding::Little).expect("a capacity"))
}

fn model() -> naive::Message {
    let mut model = naive::Message::new(false);
    model.section(&[1i32, 2]);
    model.secondary = b"0123456789012345678901234567890123456789".to_vec();
    model
}

fn fill(buffer: &mut WriteBuffer) -> Message {
    buffer.write(&[1i32, 2]).expect("it fits");
    grow(buffer, &model().secondary);
    buffer.finish().expect("memory").clone()
}

/// Proves copy-on-write for each next call of a writer, appended and split.
#[test]
fn finished_message_is_unchanged_by_later_writes() {
    type Next = (&'static str, fn(&mut WriteBuffer));
    let nexts: [Next; 9] = [
        ("write", |b| b.write(&[9i64]).expect("it fits")),
        ("stage", |b| b.stage(Type::Byte, 8).expect("it fits").put_octets(&[0xee; 8])),
        ("clear", |b| b.clear()),
        ("clear and write", |b| {
            b.clear();
            b.write(&[9i64, 9]).expect("it fits");
            grow(b, &[0xee; 50]);
        }),
        ("grow", |b| grow(b, &[0xee; 5000])),
        ("truncate", |b| b.truncate_secondary(3)),
        ("truncate and grow", |b| {
            b.truncate_secondary(3);
            grow(b, &[0xee; 20]);
        }),
        ("truncate all and grow", |b| {
            b.truncate_secondary(0);
            grow(b, &[0xee; 40]);
        }),
        ("capacity", |b| b.ensure_capacity(2000).expect("a capacity")),
    ];
    for (what, next) in nexts {
        for mut buffer in buffers() {
            let held = fill(&mut buffer);
            next(&mut buffer);
            assert_eq!(octets_of(&held), model().octets(), "{what}");
            let second = buffer.finish().expect("memory").clone();
            assert_eq!(octets_of(&held), model().octets(), "{what}, finished again");
            let snapshot = octets_of(&second);
            buffer.write(&[3i8]).expect("it fits");
            buffer.truncate_secondary(1);
            grow(&mut buffer, &[0xdd; 30]);
            buffer.finish().expect("memory");
            assert_eq!(octets_of(&second), snapshot, "{what}, the second message");
        }
    }
}

/// Proves that octets that were sent stay unchanged when the secondary payload grows, and that they are
/// copied once.
#[test]
fn write_after_a_send_continues_both_payloads() {
    for mut buffer in buffers() {
        let held = fill(&mut buffer);
        grow(&mut buffer, b"more");
        buffer.write(&[5i64]).expect("it fits");
        let mut wanted = model();
        wanted.section(&[5i64]);
        wanted.secondary.extend(b"more");
        assert_eq!(octets_of(buffer.finish().expect("memory")), wanted.octets());
        assert_eq!(octets_of(&held), model().octets());
    }
}

/// Proves that a second send of an unchanged message copies nothing, and neither does a write when no other
/// reference exists.
#[test]
fn memory_is_taken_only_while_a_message_is_held() {
    let ledger = Ledger::new();
    let mut buffer = WriteBuffer::new(ledger.clone(), 100, Encoding::Big).expect("a capacity");
    buffer.write(&[1i32]).expect("it fits");
    assert_eq!(ledger.taken(), 120);
    let first = buffer.finish().expect("memory").clone();
    let again = buffer.finish().expect("memory").clone();
    assert_eq!(ledger.taken(), 0, "finished twice");
    drop((first, again));
    buffer.write(&[2i32]).expect("it fits");
    buffer.finish().expect("memory");
    buffer.clear();
    buffer.write(&[2i32]).expect("it fits");
    assert_eq!(ledger.taken(), 0, "no reference is left");
    let _held = buffer.finish().expect("memory").clone();
    buffer.write(&[3i32]).expect("it fits");
    assert_eq!(ledger.taken(), 120, "one copy");
    buffer.write(&[4i32]).expect("it fits");
    assert_eq!(ledger.taken(), 0, "and only one");
}

/// Proves that a received message continues in its own byte order, and that no objects can be added to it.
#[test]
fn adopted_message_is_continued_in_its_own_byte_order() {
    for big in [true, false] {
        let mut wanted = naive::Message::new(big);
        wanted.section(&[1i32, 2, 3]);
        wanted.secondary = b"\xac\xed\x00\x05p".to_vec();
        let split = Message::from_logical(&PlainSource, 100, &wanted.octets()).expect("sound");
        for received in [split, inline(&wanted)] {
            for capacity in [64, 200] {
                let mut buffer =
                    WriteBuffer::new(Ledger::new(), capacity, Encoding::NATIVE).expect("a capacity");
                buffer.adopt(received.clone());
                assert_eq!(octets_of(buffer.finish().expect("memory")), wanted.octets(), "sent on as it is");
                assert!(!buffer.takes_objects());
                assert_eq!(buffer.stage_secondary(1).expect_err("foreign"), BufferError::ForeignStream);
                buffer.write(&[7i16]).expect("it fits");
                let mut continued = wanted.clone();
                continued.section(&[7i16]);
                assert_eq!(octets_of(buffer.finish().expect("memory")), continued.octets());
                assert_eq!(octets_of(&received), wanted.octets());
                buffer.clear();
                assert!(buffer.takes_objects());
                assert_eq!(buffer.encoding(), Encoding::NATIVE);
            }
        }
    }
}

fn inline(message: &naive::Message) -> Message {
    use mpjdev_buffer::SlabSource;
    let octets = message.octets();
    let slab = PlainSource.take(octets.len()).expect("memory");
    mpjdev_buffer::octets::copy_in(slab.words(), 0, &octets);
    Message::from_physical(slab, octets.len(), None, 100).expect("sound")
}

/// Proves that memory kept from an earlier message of the buffer is not used for the received one.
#[test]
fn adopted_message_keeps_its_secondary_payload_in_a_used_buffer() {
    let mut buffer = WriteBuffer::new(Ledger::new(), 100, Encoding::Big).expect("a capacity");
    grow(&mut buffer, &[0xee; 30]);
    buffer.finish().expect("memory");
    buffer.clear();
    let mut wanted = naive::Message::new(false);
    wanted.secondary = b"theirs".to_vec();
    buffer.adopt(inline(&wanted));
    buffer.write(&[7i16]).expect("it fits");
    wanted.section(&[7i16]);
    assert_eq!(octets_of(buffer.finish().expect("memory")), wanted.octets());
}

/// Proves that calls for a buffer's own objects neither cut nor change those of a received message.
#[test]
fn adopted_secondary_payload_cannot_be_cut() {
    let mut wanted = naive::Message::new(false);
    wanted.secondary = b"theirs".to_vec();
    for next in [|b: &mut WriteBuffer| b.truncate_secondary(2), |b: &mut WriteBuffer| b.grow_secondary(0)] {
        let mut buffer = WriteBuffer::new(Ledger::new(), 100, Encoding::Big).expect("a capacity");
        buffer.adopt(inline(&wanted));
        next(&mut buffer);
        assert_eq!(octets_of(buffer.finish().expect("memory")), wanted.octets());
    }
}

/// Proves that a message larger than its new buffer can be forwarded and can get objects. A write to it
/// fails.
#[test]
fn adopted_message_larger_than_the_buffer_is_kept_whole() {
    let mut wanted = naive::Message::new(true);
    wanted.section(&[1i64; 20]);
    let received = Message::from_logical(&PlainSource, 200, &wanted.octets()).expect("sound");
    let mut buffer = WriteBuffer::new(Ledger::new(), 40, Encoding::Big).expect("a capacity");
    buffer.adopt(received.clone());
    let refused = BufferError::Overflow { needed: 16, available: 0, capacity: 40 };
    assert_eq!(buffer.write(&[1i8]), Err(refused));
    assert_eq!(octets_of(buffer.finish().expect("memory")), wanted.octets());
    grow(&mut buffer, b"mine");
    wanted.secondary = b"mine".to_vec();
    assert_eq!(octets_of(buffer.finish().expect("memory")), wanted.octets());
    assert_eq!(received.secondary_len(), 0);
}

/// Proves that no octets of secondary payload can be staged first of all.
#[test]
fn staging_an_empty_secondary_payload_succeeds() {
    let mut buffer = WriteBuffer::new(Ledger::new(), 0, Encoding::Big).expect("a capacity");
    grow(&mut buffer, b"");
    assert_eq!(octets_of(buffer.finish().expect("memory")), [0; 16]);
}

/// Step of a writer in the random walk.
#[derive(Clone, Debug)]
enum Step {
    Write(Vec<i16>),
    View(Vec<i16>),
    DropViews,
    Abandon(usize),
    TooMuch,
    Grow(u8),
    Truncate(u8),
    Finish,
    Drop(usize),
    Clear,
    Ensure(u8),
    Restore,
    Adopt(bool, u8, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let values = || prop::collection::vec(any::<i16>(), 0..9);
    let step = prop_oneof![
        4 => values().prop_map(Step::Write),
        3 => values().prop_map(Step::View),
        1 => Just(Step::DropViews),
        1 => (0..9usize).prop_map(Step::Abandon),
        1 => Just(Step::TooMuch),
        4 => any::<u8>().prop_map(Step::Grow),
        2 => any::<u8>().prop_map(Step::Truncate),
        5 => Just(Step::Finish),
        2 => any::<usize>().prop_map(Step::Drop),
        1 => Just(Step::Clear),
        1 => any::<u8>().prop_map(Step::Ensure),
        1 => Just(Step::Restore),
        1 => (any::<bool>(), any::<u8>(), any::<bool>()).prop_map(|(b, n, i)| Step::Adopt(b, n, i)),
    ];
    prop::collection::vec(step, 0..40)
}

/// A buffer with its expected content, and all messages taken from it with theirs.
struct Walk {
    buffer: WriteBuffer,
    nominal: usize,
    model: naive::Message,
    foreign: bool,
    held: Vec<(Message, Vec<u8>)>,
    views: Vec<Arc<ViewedSlab>>,
}

impl Walk {
    fn new(capacity: usize, ledger: &Arc<Ledger>) -> Walk {
        Walk {
            buffer: WriteBuffer::new(ledger.clone(), capacity as i64, Encoding::Big).expect("a capacity"),
            nominal: capacity.next_multiple_of(8),
            model: naive::Message::new(true),
            foreign: false,
            held: Vec::new(),
            views: Vec::new(),
        }
    }

    fn emptied(&mut self) {
        self.model = naive::Message::new(true);
        self.foreign = false;
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Write(values) => {
                if self.buffer.write(values).is_ok() {
                    self.model.section(values);
                }
            }
            Step::Abandon(n) => {
                if let Ok(place) = self.buffer.stage(Type::Byte, *n) {
                    place.put_octets(&vec![0xee; *n]);
                }
                self.buffer.finish().expect("memory");
            }
            Step::TooMuch => {
                assert!(self.buffer.write(&[0i64; 500]).is_err());
                assert!(self.buffer.gather(&[0i64], 0, &[1]).is_err());
                assert!(self.buffer.stage_secondary(1 << 31).is_err());
            }
            Step::Grow(n) => self.grow(*n),
            Step::Truncate(n) => {
                if !self.foreign {
                    let len = self.model.secondary.len() * usize::from(*n) / 200;
                    self.buffer.truncate_secondary(len);
                    self.model.secondary.truncate(len);
                }
            }
            other => self.step_further(other),
        }
    }

    fn step_further(&mut self, step: &Step) {
        match step {
            Step::Finish => {
                let message = self.buffer.finish().expect("memory").clone();
                let (p, s) = (self.model.primary.len(), self.model.secondary.len());
                if !self.foreign {
                    let split = s > 0 && p + s >= self.buffer.capacity();
                    assert_eq!(message.is_split(), split);
                }
                self.held.push((message, self.model.octets()));
            }
            Step::Drop(which) => {
                if !self.held.is_empty() {
                    let which = which % self.held.len();
                    self.held.swap_remove(which);
                }
            }
            Step::Clear => {
                self.buffer.clear();
                self.emptied();
            }
            Step::Ensure(n) => {
                self.buffer.ensure_capacity(i64::from(*n)).expect("a capacity");
                self.emptied();
            }
            Step::Restore => {
                self.buffer.restore_capacity();
                assert_eq!(self.buffer.capacity(), self.nominal);
                self.emptied();
            }
            Step::Adopt(big, n, apart) => self.adopt(*big, *n, *apart),
            Step::View(values) => {
                if let Ok((slab, at)) = self.buffer.stage_view(Type::Short, values.len()) {
                    self.buffer.commit();
                    let place = slab.octets(at, 2 * values.len());
                    place.put(self.buffer.encoding(), values.iter().copied());
                    self.views.push(slab);
                    self.model.section(values);
                }
            }
            Step::DropViews => self.views.clear(),
            other => panic!("{other:?} is handled above"),
        }
    }

    fn grow(&mut self, n: u8) {
        let octets: Vec<u8> = (0..n).map(|k| mix(u64::from(n) << 8 | u64::from(k)) as u8).collect();
        match self.buffer.stage_secondary(octets.len()) {
            Ok(place) => {
                place.put_octets(&octets);
                self.buffer.grow_secondary(octets.len());
                self.model.secondary.extend(octets);
            }
            Err(e) => assert_eq!((e, self.foreign), (BufferError::ForeignStream, true)),
        }
    }

    fn adopt(&mut self, big: bool, n: u8, apart: bool) {
        let mut model = naive::Message::new(big);
        model.section(&vec![i16::from(n); usize::from(n % 13)]);
        model.secondary = vec![n; usize::from(n % 5)];
        let message = if apart {
            Message::from_logical(&PlainSource, 100, &model.octets()).expect("sound")
        } else {
            inline(&model)
        };
        if n.is_multiple_of(2) {
            self.held.push((message.clone(), model.octets()));
        }
        self.buffer.adopt(message);
        self.foreign = !model.secondary.is_empty();
        self.model = model;
    }

    fn check(&self) {
        for (message, octets) in &self.held {
            assert_eq!(octets_of(message), *octets, "a held message changed");
        }
        assert_eq!(self.buffer.primary_len(), self.model.primary.len());
        assert_eq!(self.buffer.secondary_len(), self.model.secondary.len());
    }
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    /// Proves all of the above together. After any sequence of calls every message that was taken is
    /// unchanged, and the next one is that of the naive encoder for the same calls.
    #[test]
    fn held_messages_survive_any_sequence_of_calls(capacity in 0..120usize, steps in steps()) {
        let mut walk = Walk::new(capacity, &Ledger::new());
        for step in &steps {
            walk.step(step);
            walk.check();
        }
        walk.step(&Step::Finish);
        walk.check();
        // Each of them can be loaded again and read to its end.
        for (_, octets) in &walk.held {
            let mut reader = ReadBuffer::new(Arc::new(PlainSource), 1000).unwrap();
            reader.load(octets).unwrap();
            reader.section_count().unwrap();
        }
    }
}
