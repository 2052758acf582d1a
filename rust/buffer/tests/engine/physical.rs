//! Messages as a transport delivers them: one or two physical messages.

use mpjdev_buffer::octets::copy_in;
use mpjdev_buffer::{BufferError, Damage, Message, PlainSource, Slab, SlabSource};

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

/// Proves that both forms of a message are accepted, whatever the sender's capacity was, and mean the same.
#[test]
fn one_message_or_two_give_the_same_logical_message() {
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

/// Proves that a loaded message that is sent on carries no pairing number that nobody gave it.
#[test]
fn a_loaded_message_has_no_pairing_number() {
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

/// Proves that a message without secondary payload that is followed by one all the same is refused.
#[test]
fn second_message_is_refused_unless_the_first_states_it() {
    let octets = naive::Message::new(true).octets();
    assert!(received(&octets, None).is_ok());
    assert!(received(&octets, Some(b"x")).is_err());
}
