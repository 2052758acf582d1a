//! A call that fails leaves buffer, position and destination as they were.

use std::sync::Arc;

use mpjdev_buffer::{BufferError, Damage, Encoding, Patch, ReadBuffer, Type, WriteBuffer};

use crate::ledger::Ledger;
use crate::naive::{Message, octets_of};

/// A buffer with one section and three octets of secondary payload; 24 octets are left.
fn written(ledger: &Arc<Ledger>) -> WriteBuffer {
    let mut buffer = WriteBuffer::new(ledger.clone(), 40, Encoding::Big).expect("a capacity");
    buffer.write(&[1i32, 2]).expect("it fits");
    buffer.stage_secondary(3).expect("memory").put_octets(b"abc");
    buffer.grow_secondary(3);
    buffer
}

fn written_octets() -> Vec<u8> {
    let mut message = Message::new(true);
    message.section(&[1i32, 2]);
    message.secondary = b"abc".to_vec();
    message.octets()
}

/// Proves that a write that fails, for each reason, changes neither message nor length, and that the next
/// write succeeds.
#[test]
fn failed_writes_leave_the_buffer_as_it_was() {
    let array = [1i64, 2, 3];
    let patch = Patch::check(0, &[3], &[1], 3).expect("inside");
    type Attempt<'a> = (&'a str, &'a dyn Fn(&mut WriteBuffer) -> Result<(), BufferError>);
    let attempts: [Attempt; 8] = [
        ("write", &|b| b.write(&array)),
        ("gather", &|b| b.gather(&array, 0, &[0, 1, 2])),
        ("str_gather", &|b| b.str_gather(&array, &patch)),
        ("index past the end", &|b| b.gather(&array, 0, &[0, 3])),
        ("negative index", &|b| b.gather(&array, -1, &[1, 0])),
        ("index of an empty array", &|b| b.gather::<i8>(&[], 0, &[0])),
        ("stage", &|b| b.stage(Type::Byte, 17).map(|_| ())),
        ("secondary payload", &|b| b.stage_secondary(1 << 31).map(|_| ())),
    ];
    for (what, attempt) in attempts {
        for finished in [false, true] {
            let mut buffer = written(&Ledger::new());
            if finished {
                buffer.finish().expect("memory");
            }
            let error = attempt(&mut buffer).expect_err(what);
            assert!(error.to_string().contains(|c: char| c.is_ascii_digit()), "{error}");
            buffer.commit();
            assert_eq!((buffer.primary_len(), buffer.secondary_len()), (16, 3), "{what}");
            assert_eq!(buffer.section_count(), 1, "{what}");
            assert_eq!(octets_of(buffer.finish().expect("memory")), written_octets(), "{what}");
            buffer.write(&[1i64, 2]).expect("24 octets are still left");
        }
    }
}

/// Proves that the numbers in the errors are those that a user needs.
#[test]
fn errors_of_writes_carry_the_numbers() {
    let mut buffer = written(&Ledger::new());
    assert_eq!(
        buffer.write(&[1i64, 2, 3]),
        Err(BufferError::Overflow { needed: 32, available: 24, capacity: 40 })
    );
    assert_eq!(
        buffer.gather(&[1i8, 2], 5, &[-5, -3]),
        Err(BufferError::Index { index: 2, position: 1, length: 2 })
    );
    buffer.write(&[1i32, 2, 3, 4]).expect("to the last octet");
    assert_eq!(buffer.primary_len(), 40);
}

/// Proves that an abandoned section leaves no trace, even after its octets were written.
#[test]
fn abandoned_staged_section_leaves_the_message_unchanged() {
    for finished in [false, true] {
        let mut buffer = written(&Ledger::new());
        if finished {
            buffer.finish().expect("memory");
        }
        buffer.stage(Type::Byte, 16).expect("room").put_octets(&[0xee; 16]);
        assert_eq!(octets_of(buffer.finish().expect("memory")), written_octets());
        buffer.commit();
        assert_eq!(octets_of(buffer.finish().expect("memory")), written_octets());
    }
}

/// Proves that a lack of memory at any step loses nothing: the same call succeeds when memory is available.
#[test]
fn write_without_memory_fails_and_keeps_the_message() {
    let ledger = Ledger::new();
    let mut fresh = WriteBuffer::new(ledger.clone(), 40, Encoding::Big).expect("a capacity");
    let mut shared = written(&ledger);
    let held = shared.finish().expect("memory").clone();
    let mut inline = WriteBuffer::new(ledger.clone(), 99, Encoding::Big).expect("a capacity");
    inline.adopt(one_message());
    ledger.refuse(true);
    for buffer in [&mut fresh, &mut shared, &mut inline] {
        assert!(matches!(buffer.write(&[5i8]), Err(BufferError::Slab(_))));
        assert!(matches!(buffer.stage(Type::Int, 0), Err(BufferError::Slab(_))));
    }
    assert!(matches!(fresh.finish(), Err(BufferError::Slab(_))));
    assert!(matches!(shared.stage_secondary(1 << 20), Err(BufferError::Slab(_))));
    assert_eq!(octets_of(shared.finish().expect("it was finished")), written_octets());
    assert_eq!(octets_of(inline.finish().expect("it was finished")), written_octets());
    ledger.refuse(false);
    assert_eq!(octets_of(&held), written_octets());
    for (buffer, sections) in [(&mut fresh, 0), (&mut shared, 1), (&mut inline, 1)] {
        buffer.write(&[5i8]).expect("memory");
        let mut message = Message::new(true);
        if sections == 1 {
            message.section(&[1i32, 2]);
            message.secondary = b"abc".to_vec();
        }
        message.section(&[5i8]);
        assert_eq!(octets_of(buffer.finish().expect("memory")), message.octets());
    }
}

/// A received message with its secondary payload inline, in memory too small to continue in.
fn one_message() -> mpjdev_buffer::Message {
    use mpjdev_buffer::SlabSource;
    let octets = written_octets();
    let slab = mpjdev_buffer::PlainSource.take(octets.len()).expect("memory");
    mpjdev_buffer::octets::copy_in(slab.words(), 0, &octets);
    mpjdev_buffer::Message::from_physical(slab, octets.len(), None, 40).expect("sound")
}

/// Proves that a read that fails, for each reason, changes neither position nor destination, and that the
/// right read succeeds afterwards.
#[test]
fn failed_reads_leave_position_and_destination_as_they_were() {
    let mut message = Message::new(false);
    message.section(&[7i8]);
    message.section(&[1i32, 2, 3]);
    let mut buffer = ReadBuffer::new(Ledger::new(), 100).expect("a capacity");
    buffer.load(&message.octets()).expect("sound");
    buffer.read(&mut [0i8]).expect("sound");
    let (wanted, found) = (Type::Float, Type::Int);
    let mismatch = BufferError::TypeMismatch { wanted, found, section: 1 };
    let size = |wanted| BufferError::SizeMismatch { wanted, found: 3, section: 1 };
    let mut dest = [9i32; 4];
    let long = Patch::check(0, &[4], &[1], 4).expect("inside");
    for _ in 0..2 {
        assert_eq!(buffer.read(&mut [0f32; 3]), Err(mismatch.clone()));
        assert_eq!(buffer.read(&mut dest), Err(size(4)));
        assert_eq!(buffer.read(&mut dest[..2]), Err(size(2)));
        assert_eq!(buffer.scatter(&mut dest, 0, &[0, 1]), Err(size(2)));
        let outside = BufferError::Index { index: 4, position: 2, length: 4 };
        assert_eq!(buffer.scatter(&mut dest, 1, &[0, 1, 3]), Err(outside));
        let negative = BufferError::Index { index: -1, position: 1, length: 4 };
        assert_eq!(buffer.scatter(&mut dest, 0, &[0, -1, 3]), Err(negative));
        assert_eq!(buffer.str_scatter(&mut dest, &long), Err(size(4)));
        buffer.commit();
        assert_eq!(buffer.sections_read(), 1);
        assert_eq!(dest, [9; 4]);
    }
    buffer.scatter(&mut dest, 0, &[3, 1, 0]).expect("the right one");
    assert_eq!(dest, [3, 2, 9, 1]);
    let end = BufferError::EndOfSections { wanted: Type::Int, sections: 2 };
    assert_eq!(buffer.read(&mut dest), Err(end.clone()));
    assert_eq!(buffer.read(&mut dest[..0]), Err(end));
    assert_eq!(dest, [3, 2, 9, 1]);
}

/// Proves that a staged and abandoned section cannot move the position past the message.
#[test]
fn abandoned_staged_read_keeps_the_position() {
    let mut message = Message::new(true);
    message.section(&[1i16]);
    message.section(&[2i16]);
    let mut buffer = ReadBuffer::new(Ledger::new(), 100).expect("a capacity");
    buffer.load(&message.octets()).expect("sound");
    buffer.read(&mut [0i16]).expect("sound");
    buffer.stage(Type::Short, 1).expect("sound");
    buffer.read(&mut [0i16]).expect("the same one");
    buffer.commit();
    assert_eq!((buffer.peek(), buffer.sections_read()), (Ok(None), 2));
}

/// Proves that a header is read once: octets that change after the check affect data only.
#[test]
fn section_changed_after_staging_keeps_its_checked_size() {
    let mut message = Message::new(true);
    message.section(&[1i32, 2]);
    let mut buffer = ReadBuffer::new(Ledger::new(), 100).expect("a capacity");
    buffer.load(&message.octets()).expect("sound");
    let words = buffer.message().expect("loaded").clone();
    let place = buffer.stage(Type::Int, 2).expect("sound");
    mpjdev_buffer::octets::store_word(words.first_words(), 8, [0xff; 8]);
    assert_eq!(place.len(), 8);
    let mut dest = Vec::new();
    place.get::<i32>(Encoding::Big, |v| dest.push(v));
    buffer.commit();
    assert_eq!(dest, [1, 2]);
    assert_eq!(buffer.peek(), Ok(None));
    buffer.reset();
    let damage = Damage::TypeCode { code: 255 }.at(8);
    assert_eq!(buffer.peek(), Err(damage));
}
