//! Damaged messages, and octets that are not a message.

use mpjdev_buffer::{BufferError, Damage, ReadBuffer, Type};
use proptest::prelude::*;

use crate::ledger::Ledger;
use crate::naive::{Message, Naive};

/// Messages that together have every type, padding, no section, and a secondary payload or none.
fn messages() -> Vec<Message> {
    let mut all = Vec::new();
    for big in [true, false] {
        all.push(Message::new(big));
        let mut mixed = Message::new(big);
        mixed.section(&[1i32, 2, -1]);
        mixed.section(&[10i8, 11, 12, 13, 14]);
        mixed.header(8, 2);
        mixed.secondary = b"\xac\xed\x00\x05t\x00\x01at\x00\x01b".to_vec();
        all.push(mixed);
        let mut types = Message::new(big);
        types.section(&[true, false]);
        types.section(&[u16::MAX]);
        types.section(&[i16::MIN, 3, 4]);
        types.section::<i64>(&[]);
        types.section(&[f32::NAN]);
        types.section(&[f64::NEG_INFINITY]);
        all.push(types);
    }
    all
}

/// Offsets of all header words of a sound message.
fn headers(message: &Message) -> Vec<usize> {
    let mut reader = ReadBuffer::new(Ledger::new(), 1 << 20).expect("a capacity");
    reader.load(&message.octets()).expect("sound");
    let mut at = vec![0];
    let mut next = 8;
    while let Some(header) = reader.peek().expect("sound") {
        at.push(next);
        next += 8 + header.padded_len();
        reader.stage(header.element, header.count).expect("sound");
        reader.commit();
    }
    at.push(next);
    at
}

/// Loads and reads everything, section by section; type, count and octets of each, or the error.
fn explore(octets: &[u8]) -> Result<Vec<(Type, usize, Vec<u8>)>, BufferError> {
    let ledger = Ledger::new();
    let mut reader = ReadBuffer::new(ledger.clone(), 1 << 31 >> 2)?;
    let loaded = reader.load(octets);
    let taken = ledger.taken();
    assert!(taken <= octets.len(), "{taken} octets taken for {} received", octets.len());
    loaded?;
    let mut sections = Vec::new();
    loop {
        let counted = reader.section_count();
        let Some(header) = reader.peek()? else {
            assert_eq!(counted, Ok(sections.len()));
            return Ok(sections);
        };
        let place = reader.stage(header.element, header.count)?;
        let mut data = vec![0; place.len()];
        place.get_octets(&mut data);
        reader.commit();
        sections.push((header.element, header.count, data));
    }
}

/// Proves that the error of every truncation has the octets present and the octets needed.
#[test]
fn truncated_message_error_has_the_octets_present_and_needed() {
    for message in messages() {
        let whole = message.octets();
        for have in 0..whole.len() {
            let first_need = if have < 8 { 16 } else { 16 + message.primary.len() };
            let need = if have < first_need { first_need } else { whole.len() };
            let short = Damage::Short { have: have as u64, need: need as u64 }.at(have);
            assert_eq!(explore(&whole[..have]), Err(short), "{have} of {}", whole.len());
        }
        for more in 1..10 {
            let mut longer = whole.clone();
            longer.resize(whole.len() + more, 0);
            let (have, need) = (longer.len() as u64, whole.len() as u64);
            assert_eq!(explore(&longer), Err(Damage::Long { have, need }.at(whole.len())));
        }
    }
}

/// Proves that a flip in an ignored octet changes nothing, and that any other flip in a header is an error or
/// reads as another message, without a panic or memory beyond the input.
#[test]
fn flipped_header_bit_is_ignored_or_reported() {
    for message in messages() {
        let whole = message.octets();
        let sound = explore(&whole).expect("sound");
        let headers = headers(&message);
        for (&at, octet) in headers.iter().flat_map(|at| (0..8).map(move |o| (at, o))) {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at + octet] ^= 1 << bit;
                let found = explore(&flipped);
                let last = at == *headers.last().expect("three kinds");
                let other_order_of_nothing = whole.len() == 16 && (at, octet, bit) == (0, 0, 0);
                if (1..4).contains(&octet) || (last && octet == 0) || other_order_of_nothing {
                    assert_eq!(found.as_ref(), Ok(&sound), "an ignored octet, {at} + {octet}");
                } else if at == 0 || last {
                    let error = found.expect_err("lengths no longer agree");
                    assert!(matches!(error, BufferError::Damaged { .. }), "{error}");
                } else {
                    assert_ne!(found.as_ref(), Ok(&sound), "bit {bit} of {at} + {octet}");
                }
            }
        }
    }
}

/// Proves that absurd sizes are errors with the number that was found, at its field.
#[test]
fn huge_and_negative_sizes_are_errors_at_their_field() {
    let number = |big: bool, n: i32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    for message in messages() {
        let whole = message.octets();
        let headers = headers(&message);
        for value in [i32::MIN, i32::MIN + 1, -8, -1, i32::MAX - 7, i32::MAX, 0x4000_0000, 0x7fff_0000] {
            for (k, &at) in headers.iter().enumerate() {
                let mut damaged = whole.clone();
                damaged[at + 4..at + 8].copy_from_slice(&number(message.big, value));
                let last = k + 1 == headers.len();
                if k > 0 && !last && whole[at] == Type::Object.code() && value > 0 {
                    assert!(
                        explore(&damaged).is_ok(),
                        "objects take no room, so any number of them is sound"
                    );
                    continue;
                }
                let error = explore(&damaged).expect_err("absurd");
                let BufferError::Damaged { offset, damage } = error else { panic!("{error}") };
                let field = at as u64 + 4;
                match damage {
                    Damage::PrimaryLen { len } => assert_eq!((k, len, offset), (0, value, 4)),
                    Damage::SecondaryLen { len } => assert_eq!((last, len, offset), (true, value, field)),
                    Damage::Count { count } => assert_eq!((count, offset), (value, field)),
                    Damage::SectionLen { needed, available } => {
                        assert!(needed > available && value > 0);
                        assert_eq!(
                            (offset, available),
                            (at as u64, (headers[headers.len() - 1] - at) as u64)
                        );
                    }
                    Damage::Short { have, need } => {
                        assert!(k == 0 || last);
                        assert_eq!((have, offset), (whole.len() as u64, whole.len() as u64));
                        assert!(need > value as u64);
                    }
                    other => panic!("{other} for {value} at {at}"),
                }
            }
        }
    }
}

/// Proves that a damaged section does not hide the sound ones before it, and keeps the position.
#[test]
fn sections_before_the_damage_are_read_and_the_position_stays_at_it() {
    let mut message = Message::new(true);
    message.section(&[1i32, 2]);
    message.header(77, 1);
    let mut reader = ReadBuffer::new(Ledger::new(), 100).expect("a capacity");
    reader.load(&message.octets()).expect("its headers are sound");
    let mut two = [0i32; 2];
    reader.read(&mut two).expect("sound");
    assert_eq!(two, [1, 2]);
    let damage = Damage::TypeCode { code: 77 }.at(24);
    for _ in 0..2 {
        assert_eq!(reader.peek(), Err(damage.clone()));
        assert_eq!(reader.read(&mut two), Err(damage.clone()));
        assert_eq!(reader.section_count(), Err(damage.clone()));
        assert_eq!(reader.sections_read(), 1);
    }
    reader.reset();
    assert_eq!(reader.read(&mut two), Ok(()));
}

/// Proves that a message that is damaged or too long for the buffer leaves the present one unchanged.
#[test]
fn refused_load_leaves_the_message_and_the_position() {
    let mut message = Message::new(false);
    message.section(&[1i16]);
    message.section(&[2i16]);
    let mut longer = Message::new(false);
    longer.section(&[0i64; 9]);
    let ledger = Ledger::new();
    let mut reader = ReadBuffer::new(ledger.clone(), 40).expect("a capacity");
    reader.load(&message.octets()).expect("it fits");
    reader.read(&mut [0i16]).expect("sound");
    assert_eq!(reader.load(&longer.octets()), Err(BufferError::TooLong { needed: 80, capacity: 40 }));
    assert!(reader.load(&[9; 16]).is_err());
    assert!(reader.load(&[]).is_err());
    ledger.refuse(true);
    assert!(matches!(reader.load(&message.octets()), Err(BufferError::Slab(_))));
    assert_eq!(reader.sections_read(), 1);
    let mut second = [0i16];
    reader.read(&mut second).expect("still there");
    assert_eq!(second, [2]);
}

/// Proves that a load needs memory for the message, and not for the capacity of the buffer.
#[test]
fn loaded_message_takes_memory_of_its_own_size() {
    let ledger = Ledger::new();
    let mut reader = ReadBuffer::new(ledger.clone(), 1 << 30).expect("a capacity");
    reader.load(&Message::new(true).octets()).expect("sound");
    assert!(ledger.taken() <= 16);
}

/// Proves that boolean octets other than 0 and 1 read as true, in one read, in pieces and scattered.
#[test]
fn nonzero_boolean_octet_reads_as_true() {
    for octet in 0..=255u8 {
        let mut message = Message::new(true);
        message.section(&[0i8, octet as i8, 0]);
        message.primary[0] = bool::CODE;
        let mut reader = ReadBuffer::new(Ledger::new(), 100).expect("a capacity");
        reader.load(&message.octets()).expect("sound");
        let mut read = [true; 3];
        reader.read(&mut read).expect("sound");
        assert_eq!(read, [false, octet != 0, false]);
        reader.reset();
        let mut scattered = [true; 3];
        reader.scatter(&mut scattered, -1, &[2, 1, 3]).expect("sound");
        assert_eq!(scattered, [octet != 0, false, false]);
    }
}

proptest! {
    #![proptest_config(crate::cases(2000))]

    /// Proves that for no octets the reader panics or allocates more than their length.
    #[test]
    fn any_octets_are_read_or_refused(
        octets in prop::collection::vec(prop_oneof![3 => 0..10u8, 1 => any::<u8>()], 0..120)
    ) {
        let _ = explore(&octets);
    }

    /// Proves the same for messages of which a few octets were changed.
    #[test]
    fn any_changed_octets_are_read_or_refused(
        which in 0..6usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)
    ) {
        let mut octets = messages()[which].octets();
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        let _ = explore(&octets);
    }
}
