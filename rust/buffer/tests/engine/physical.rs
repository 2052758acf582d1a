//! Messages as a transport delivers them: one or two physical messages.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::copy_in;
use mpjdev_buffer::{BufferError, Damage, Message, PlainSource, Slab, SlabMemory, SlabSource, Type};

use crate::naive::{self, octets_of};

fn slab(octets: &[u8]) -> Slab {
    let slab = PlainSource.take(octets.len() + 24).expect("memory");
    copy_in(slab.words(), 0, octets);
    slab
}

/// p = 24, s = 5.
fn message(big: bool) -> naive::Message {
    let mut message = naive::Message::new(big);
    message.section(&[1i32, 2, 3, 4]);
    message.secondary = b"abcde".to_vec();
    message
}

fn received(first: &[u8], second: Option<&[u8]>) -> Result<Message, BufferError> {
    Message::from_physical(slab(first), first.len(), second.map(|s| (slab(s), s.len())), 100)
}

/// Proves that both forms of a message are accepted and equal, for any capacity of the sender.
#[test]
fn one_or_two_physical_messages_give_the_same_logical_message() {
    for big in [true, false] {
        let octets = message(big).octets();
        let one = received(&octets, None).expect("sound");
        let two = received(&octets[..40], Some(b"abcde")).expect("sound");
        assert!(!one.is_split() && two.is_split());
        for m in [&one, &two] {
            assert_eq!(octets_of(m), octets);
            assert_eq!((m.primary_len(), m.secondary_len(), m.capacity()), (24, 5, 100));
        }
        let mut part = [0; 3];
        assert_eq!(one.copy_secondary(3, &mut part), 2);
        assert_eq!(part, *b"de\0");
        assert_eq!(two.copy_secondary(5, &mut part), 0);
        assert_eq!(two.copy_secondary(99, &mut part), 0);
    }
}

/// Proves that the pairing number of the secondary header is never part of the logical message.
#[test]
fn pairing_number_is_absent_from_the_logical_octets() {
    for big in [true, false] {
        let octets = message(big).octets();
        let mut first = octets[..40].to_vec();
        first[32..36].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(octets_of(&received(&first, Some(b"abcde")).expect("sound")), octets);
    }
}

/// Proves that a forwarded message has no pairing number unless one was set.
#[test]
fn loaded_message_has_no_pairing_number() {
    let mut octets = message(true).octets();
    octets[32..36].copy_from_slice(&[1, 2, 3, 4]);
    let loaded = Message::from_logical(&PlainSource, 100, &octets).expect("sound");
    let mut first = vec![0; loaded.first_len()];
    mpjdev_buffer::octets::copy_out(loaded.first_words(), 0, &mut first);
    assert_eq!(first[32..36], [0; 4]);
}

/// Proves that every length that contradicts the headers is refused with the numbers.
#[test]
fn contradicting_lengths_are_refused_with_numbers() {
    for big in [true, false] {
        let octets = message(big).octets();
        for first in 0..octets.len() {
            for second in [None, Some(0), Some(4), Some(5), Some(6), Some(45)] {
                let sound = first == 40 && second == Some(5);
                let data = [7; 64];
                let result = received(&octets[..first], second.map(|n| &data[..n]));
                if sound {
                    assert!(result.is_ok());
                    continue;
                }
                let error = result.expect_err("they contradict each other");
                let BufferError::Damaged {
                    damage: Damage::Short { have, need } | Damage::Long { have, need },
                    ..
                } = error
                else {
                    panic!("{error}");
                };
                assert_ne!(have, need, "first {first} second {second:?}: {error}");
            }
        }
        let mut longer = octets.clone();
        longer.push(0);
        assert!(received(&longer, None).is_err());
        assert!(received(&octets, Some(b"abcde")).is_err(), "inline and apart at once");
    }
}

/// Proves that a secondary payload behind a message that has none is refused.
#[test]
fn second_message_is_refused_unless_the_first_states_it() {
    let octets = naive::Message::new(true).octets();
    assert!(received(&octets, None).is_ok());
    assert!(received(&octets, Some(b"x")).is_err());
}

/// Proves that a message can be read when its first headers are present, and that its end is checked when it
/// arrives.
#[test]
fn message_is_begun_with_the_headers_of_its_first_section() {
    for big in [true, false] {
        let octets = message(big).octets();
        let slab = slab(&octets);
        let begun = |len, capacity| Message::from_begun(slab.clone(), len, capacity);
        let whole = begun(40, 24).expect("its headers are there");
        assert_eq!((whole.primary_len(), whole.secondary_len(), whole.capacity()), (24, 0, 24));
        assert_eq!(whole.sole_section(Type::Int, 4).expect("one section").0, 4);
        let objects = BufferError::NotSole { wanted: Type::Int, sections: 1, secondary: 5 };
        assert_eq!(whole.check_sole_end(Type::Int), Err(objects));
        assert!(begun(45, 24).is_none(), "objects behind the sections");
        assert!(begun(40, 23).is_none(), "more than the capacity");
        assert!(begun(1 << 20, 24).is_none(), "more than the memory");
        assert!(Message::from_begun(self::slab(&[0; 16]), 16, 24).is_none(), "no section");
    }
}

#[test]
fn message_is_not_begun_before_the_headers_of_its_first_section() {
    #[derive(Debug)]
    struct Counted(Vec<AtomicU64>, AtomicU64);
    impl SlabMemory for Counted {
        fn words(&self) -> &[AtomicU64] {
            &self.0
        }
        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
        fn packed(&self) -> Option<&AtomicU64> {
            Some(&self.1)
        }
    }
    let octets = message(false).octets();
    let slab = Slab::new(Counted((0..8).map(|_| AtomicU64::default()).collect(), AtomicU64::default()));
    copy_in(slab.words(), 0, &octets);
    for (there, is_begun) in [(8, false), (15, false), (16, true), (40, true)] {
        let (marked, packer) = slab.begin_packing(there).expect("it counts");
        assert_eq!(Message::from_begun(marked.clone(), 40, 24).is_some(), is_begun, "{there} octets");
        drop(packer);
        assert!(Message::from_begun(marked, 40, 24).is_none(), "it will never be packed");
    }
}
