//! Capacity limits: sections that fit exactly, and sections that are one unit too long.

use mpjdev_buffer::capacity::section_capacity;
use mpjdev_buffer::layout::{CAPACITY_MAX, COUNT_MAX};
use mpjdev_buffer::{BufferError, Encoding, PlainSource, ReadBuffer, SlabError, Type, WriteBuffer};

use crate::ledger::Ledger;
use crate::naive::octets_of;

fn room(ledger: &std::sync::Arc<Ledger>, capacity: i64) -> WriteBuffer {
    WriteBuffer::new(ledger.clone(), capacity, Encoding::Big).expect("a capacity")
}

/// Proves the formula Σ(8 + 8·⌈n·z/8⌉) against the writer, for each type: a capacity of the
/// formula suffices, and 8 octets less do not.
#[test]
fn section_fits_its_capacity_and_not_one_unit_less() {
    let ledger = Ledger::new();
    for element in Type::ALL {
        for count in 0..20usize {
            let need = section_capacity(element, count as u32);
            assert_eq!(need, 8 + (count * element.size()).div_ceil(8) as u64 * 8);
            let mut exact = room(&ledger, need as i64);
            exact.stage(element, count).expect("it fits");
            exact.commit();
            assert_eq!(exact.primary_len() as u64, need);
            let mut less = room(&ledger, need as i64 - 8);
            assert_eq!(
                less.stage(element, count).expect_err("one unit short"),
                BufferError::Overflow { needed: need, available: need - 8, capacity: need - 8 }
            );
            assert_eq!(octets_of(less.finish().expect("memory")).len(), 16);
        }
    }
}

/// Proves that a capacity is rounded up to a multiple of 8 wherever one is given, and that its last octets
/// can be used.
#[test]
fn capacity_is_rounded_up_to_a_multiple_of_eight() {
    let ledger = Ledger::new();
    for asked in 0..40i64 {
        let rounded = (asked as usize).div_ceil(8) * 8;
        let mut writer = room(&ledger, asked);
        let mut reader = ReadBuffer::new(ledger.clone(), asked).expect("a capacity");
        assert_eq!((writer.capacity(), reader.capacity()), (rounded, rounded), "{asked}");
        if rounded > 0 {
            writer.write(&vec![7i8; rounded - 8]).expect("it fits");
            reader.load(&octets_of(writer.finish().expect("memory"))).expect("it fits");
        }
        let more = asked + 64;
        writer.ensure_capacity(more).expect("a capacity");
        reader.ensure_capacity(more).expect("a capacity");
        assert_eq!((writer.capacity(), reader.capacity()), (rounded + 64, rounded + 64), "{more}");
        writer.restore_capacity();
        reader.restore_capacity();
        assert_eq!((writer.capacity(), reader.capacity()), (rounded, rounded), "{asked}");
    }
    let nearly = CAPACITY_MAX as i64 - 7;
    assert_eq!(room(&ledger, nearly).capacity(), CAPACITY_MAX, "the largest one is reached, not passed");
}

/// Proves that the choice between one and two messages is made with the rounded capacity, of the sender.
#[test]
fn secondary_payload_is_appended_below_the_rounded_capacity() {
    for (asked, s, split) in [(17, 7, false), (17, 8, true), (23, 7, false), (24, 7, false), (24, 8, true)] {
        let mut writer = room(&Ledger::new(), asked);
        writer.write(&[1i64]).expect("it fits");
        writer.stage_secondary(s).expect("memory").put_octets(&vec![0xac; s]);
        writer.grow_secondary(s);
        let message = writer.finish().expect("memory");
        assert_eq!(message.is_split(), split, "capacity {asked}, p + s = {}", 16 + s);
    }
}

/// Proves that the rule is a sum: the second section can use exactly the rest of the first one.
#[test]
fn overflow_error_has_the_capacity_left_by_earlier_sections() {
    let ledger = Ledger::new();
    for (capacity, fits) in [(40, true), (32, false), (24, false), (16, false)] {
        let mut buffer = room(&ledger, capacity);
        let first = buffer.write(&[1i8, 2, 3]);
        assert_eq!(first.is_ok(), capacity >= 16);
        let second = buffer.write(&[1i32, 2, 3]);
        assert_eq!(second.is_ok(), fits, "capacity {capacity}");
        if let Err(e) = second {
            let (available, capacity) = (capacity as u64 - 16, capacity as u64);
            assert_eq!(e, BufferError::Overflow { needed: 24, available, capacity });
        }
    }
}

/// Proves that capacity 0 is legal: the empty message fits, and no section does.
#[test]
fn capacity_zero_takes_the_empty_message_only() {
    let ledger = Ledger::new();
    let mut buffer = room(&ledger, 0);
    for element in Type::ALL {
        let refused = BufferError::Overflow { needed: 8, available: 0, capacity: 0 };
        assert_eq!(buffer.stage(element, 0).expect_err("no room for a header"), refused);
    }
    assert_eq!(octets_of(buffer.finish().expect("memory")), [0; 16]);
    let mut reader = ReadBuffer::new(ledger, 0).expect("a capacity");
    assert_eq!(reader.load(&[0; 16]), Ok(()));
    assert_eq!(reader.section_count(), Ok(0));
}

/// Proves the limits of a capacity, and that a buffer costs nothing before its first write.
#[test]
fn largest_capacity_is_accepted_without_memory_and_one_more_is_refused() {
    let ledger = Ledger::new();
    let max = CAPACITY_MAX as u64;
    let mut buffer = room(&ledger, CAPACITY_MAX as i64);
    assert_eq!(buffer.capacity(), CAPACITY_MAX);
    assert!(buffer.stage(Type::Byte, CAPACITY_MAX - 7).is_err(), "refused without asking for memory");
    assert!(ReadBuffer::new(ledger.clone(), CAPACITY_MAX as i64).is_ok());
    for asked in [CAPACITY_MAX as i64 + 1, i64::MAX, -1, i64::MIN] {
        let refused = BufferError::Capacity { asked, max };
        let new = WriteBuffer::new(ledger.clone(), asked, Encoding::Big);
        assert_eq!(new.expect_err("outside"), refused);
        assert_eq!(ReadBuffer::new(ledger.clone(), asked).expect_err("outside"), refused);
        assert_eq!(buffer.ensure_capacity(asked).expect_err("outside"), refused);
    }
    assert_eq!(ledger.taken(), 0);
}

/// Proves that the lengths of the largest sections are computed without overflow.
#[test]
fn huge_counts_are_refused_with_numbers() {
    let ledger = Ledger::new();
    assert_eq!(section_capacity(Type::Double, u32::MAX), 8 + 8 * u64::from(u32::MAX));
    assert_eq!(section_capacity(Type::Byte, u32::MAX), 8 + (1 << 32));
    let mut buffer = room(&ledger, CAPACITY_MAX as i64);
    for count in [COUNT_MAX, COUNT_MAX + 1, 1 << 61, usize::MAX] {
        for element in [Type::Byte, Type::Int, Type::Double] {
            let e = buffer.stage(element, count).expect_err("too many");
            assert!(matches!(e, BufferError::Overflow { .. }), "{e}");
        }
    }
    let mut small = room(&ledger, 64);
    for element in [Type::Byte, Type::Int, Type::Double, Type::Object] {
        for count in [COUNT_MAX + 1, 1 << 61, usize::MAX] {
            let e = small.stage(element, count).expect_err("too many");
            assert!(matches!(e, BufferError::Overflow { .. }), "{e}");
        }
        let e = small.stage_secondary(usize::MAX).expect_err("too many");
        assert!(matches!(e, BufferError::SecondaryOverflow { .. }), "{e}");
    }
}

/// Proves that a growth lasts until it is restored, always discards the contents, and never shrinks.
#[test]
fn capacity_grows_and_is_restored() {
    let ledger = Ledger::new();
    let mut buffer = room(&ledger, 16);
    buffer.write(&[1i8]).expect("it fits");
    buffer.stage_secondary(3).expect("memory").put_octets(b"abc");
    buffer.grow_secondary(3);
    buffer.ensure_capacity(8).expect("a capacity");
    assert_eq!((buffer.capacity(), buffer.primary_len(), buffer.secondary_len()), (16, 0, 0));
    assert_eq!(buffer.section_count(), 0);
    buffer.ensure_capacity(104).expect("a capacity");
    buffer.write(&[7i8; 92]).expect("it fits now");
    assert_eq!(octets_of(buffer.finish().expect("memory")).len(), 16 + 104);
    assert_eq!(
        buffer.ensure_capacity(-5),
        Err(BufferError::Capacity { asked: -5, max: CAPACITY_MAX as u64 })
    );
    assert_eq!(buffer.primary_len(), 104, "a refused growth discards nothing");
    buffer.restore_capacity();
    assert_eq!((buffer.capacity(), buffer.primary_len()), (16, 0));
    assert!(buffer.write(&[7i8; 9]).is_err(), "back to 16");
    buffer.write(&[7i8; 8]).expect("16 fit");
    buffer.restore_capacity();
    assert_eq!(buffer.primary_len(), 0, "discarded even when nothing was grown");
}

/// Proves the same for the reader, and that a received message is compared with the present capacity.
#[test]
fn read_buffer_loads_up_to_its_current_capacity() {
    let ledger = Ledger::new();
    let mut writer = room(&ledger, 64);
    writer.write(&[1i64, 2]).expect("it fits");
    let octets = octets_of(writer.finish().expect("memory"));
    let mut reader = ReadBuffer::new(ledger, 15).expect("a capacity");
    assert_eq!(reader.load(&octets), Err(BufferError::TooLong { needed: 24, capacity: 16 }));
    reader.ensure_capacity(24).expect("a capacity");
    reader.load(&octets).expect("24 fit");
    reader.ensure_capacity(24).expect("a capacity");
    assert!(reader.message().is_none(), "contents are discarded");
    reader.load(&octets).expect("24 fit");
    reader.restore_capacity();
    assert!(reader.message().is_none(), "contents are discarded");
    assert_eq!(reader.load(&octets), Err(BufferError::TooLong { needed: 24, capacity: 16 }));
}

/// Proves that a system without memory is an error with the number, not an abort.
#[test]
fn memory_that_the_system_refuses_is_an_error() {
    use mpjdev_buffer::SlabSource;
    let asked = usize::MAX / 2;
    assert_eq!(PlainSource.take(asked).expect_err("too much"), SlabError::System { asked: asked as u64 });
}
