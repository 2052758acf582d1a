//! Tests of slots: claims, vectors, readers that are parked, and owners that write invalid words.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::super::layout::slots_at;
use super::*;
use mpjdev_buffer::Octets;

use crate::slots::{Awaited, LONG_SLOT_MAX, SLOT_MAX, SlotPair, Slots};

const CONTEXT: u64 = 7;

fn vector(rank: &Rank, source: u32, pair: SlotPair, number: u64, len: usize) -> (u64, Vec<u8>) {
    assert!(rank.transport.is_published(source, pair, number), "vector {number}");
    let mut octets = vec![0; len];
    rank.transport.copy(source, pair, number, 0, &mut octets);
    (rank.transport.label(source, pair, number), octets)
}

#[test]
fn vectors_of_all_lengths_are_read_in_turn() {
    let ranks = ranks(2);
    let own = ranks[0].transport.claim(CONTEXT, &[0, 1]).expect("slots");
    let found = ranks[1].transport.find(0, CONTEXT).expect("the slots of rank 0");
    assert_eq!(found, own);
    for (number, len) in (1..).zip((0..80).chain([1000, 1023, SLOT_MAX])) {
        assert!(!ranks[1].transport.is_published(0, found, number));
        let octets: Vec<u8> = (0..len).map(|at| (at as u64 * number) as u8).collect();
        ranks[0].transport.publish(own, number, number << 32, &octets);
        assert_eq!(vector(&ranks[1], 0, found, number, len), (number << 32, octets));
        assert!(number == 1 || ranks[1].transport.is_published(0, found, number - 1), "the last one stays");
    }
}

#[test]
fn long_vectors_lie_in_parts_of_their_own_and_the_last_one_stays() {
    let ranks = ranks(2);
    let own = [1, 2].map(|context| ranks[0].transport.claim(context, &[0, 1]).expect("slots"));
    assert_eq!(ranks[1].transport.find(0, 2), Some(own[1]));
    let octets = |number: u64, len| -> Vec<u8> { (0..len).map(|at| (at as u64 * number) as u8).collect() };
    let check = |pair, number, len| {
        let words = ranks[1].transport.vector(0, pair, number, len).expect("it is published");
        let mut found = vec![0; len];
        Octets::new(words, 0, len).get_octets(&mut found);
        assert!(found == octets(number, len), "vector {number} of {len} octets");
        assert_eq!(ranks[1].transport.label(0, pair, number), len as u64);
    };
    let mut last = None;
    for (number, len) in (1..).zip([SLOT_MAX + 1, 5000, LONG_SLOT_MAX - 1, 3, LONG_SLOT_MAX, SLOT_MAX]) {
        for pair in own {
            assert!(ranks[1].transport.vector(0, pair, number, len).is_none(), "vector {number}");
            if len > SLOT_MAX {
                let words = ranks[0].transport.long_part(pair, number).expect("memory");
                Octets::new(words, 0, len).put_octets(&octets(number, len));
                ranks[0].transport.publish_long(pair, number, len as u64);
            } else {
                ranks[0].transport.publish(pair, number, len as u64, &octets(number, len));
            }
        }
        for pair in own {
            check(pair, number, len);
            last.inspect(|len| check(pair, number - 1, *len));
        }
        last = Some(len);
    }
}

#[test]
fn slots_are_claimed_again_when_each_other_member_has_closed_them() {
    let ranks = ranks(3);
    let claim = |context| ranks[0].transport.claim(context, &[0, 1, 2]);
    let pairs: Vec<SlotPair> = (1..).map_while(claim).collect();
    assert_eq!(pairs.len(), 16);
    let close = |rank: usize, pair| ranks[rank].transport.close(0, pair);
    for (round, pair) in pairs.iter().enumerate() {
        let context = 100 + round as u64;
        ranks[0].transport.publish(*pair, 1, 0, &[1]);
        close(1, *pair);
        assert_eq!(claim(context), None, "the pair is not retired");
        ranks[0].transport.retire(*pair);
        assert_eq!(claim(context), None, "rank 2 may have to read a vector");
        assert!(ranks[2].transport.find(0, round as u64 + 1).is_some());
        close(2, *pair);
        let again = claim(context).expect("all have closed it");
        assert_eq!(again.index, pair.index);
        assert!(ranks[2].transport.find(0, round as u64 + 1).is_none());
        let found = ranks[2].transport.find(0, context).expect("slots");
        assert!(!ranks[2].transport.is_published(0, found, 1), "a vector of the communicator before");
        ranks[0].transport.publish(again, 1, 5, &[2]);
        assert_eq!(vector(&ranks[2], 0, found, 1, 1), (5, vec![2]));
    }
}

#[test]
fn members_of_different_claims_are_counted_apart() {
    let ranks = ranks(3);
    let transports: Vec<_> = ranks.iter().map(|rank| &rank.transport).collect();
    for context in 1..100_000 {
        // More uses than the counts go up to.
        let other = 1 + context as u32 % 3 / 2;
        let pair = transports[0].claim(context, &[0, other]).expect("slots");
        assert_eq!(pair.index, 0, "use {context}");
        transports[other as usize].close(0, transports[other as usize].find(0, context).expect("slots"));
        transports[0].retire(pair);
    }
}

#[test]
fn parked_reader_is_woken_by_a_vector() {
    let ranks = ranks(2);
    let own = ranks[0].transport.claim(CONTEXT, &[0, 1]).expect("slots");
    let awaited = Awaited { source: 0, context: CONTEXT, number: 1 };
    let (most, limit) = (Duration::from_secs(60), Duration::from_secs(30));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let transport = &ranks[1].transport;
            assert!(transport.find(0, CONTEXT).is_some());
            transport.begin_wait(awaited);
            let begun = Instant::now();
            while !transport.is_ready() {
                transport.park(most, &mut || transport.is_ready());
            }
            transport.end_wait(awaited);
            assert!(!transport.is_ready());
            begun.elapsed()
        });
        // A writer that runs first leaves nothing to wake, and the reader does not park.
        ranks[0].transport.publish(own, 1, 0, &[]);
        ranks[0].transport.wake_readers(&[0, 1]);
        assert!(reader.join().expect("no panic") < limit);
    });
}

#[test]
fn invalid_words_of_an_owner_are_read_within_bounds() {
    let ranks = ranks(2);
    let own = ranks[0].transport.claim(CONTEXT, &[0, 1]).expect("slots");
    let words = &ranks[0].transport.words()[slots_at(2) / 8..];
    for value in [0, 1, 17, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
        words[..32].iter().for_each(|word| word.store(value, Relaxed));
        words[own.index as usize].store(CONTEXT, Relaxed);
        let found = ranks[1].transport.find(0, CONTEXT).expect("the context is there");
        for pair in [found, SlotPair { index: u32::MAX, base: value }] {
            for number in [0, 1, 2, u64::MAX] {
                ranks[1].transport.is_published(0, pair, number);
                ranks[1].transport.label(0, pair, number);
                ranks[1].transport.copy(0, pair, number, 0, &mut [0; SLOT_MAX]);
                ranks[1].transport.vector(0, pair, number, LONG_SLOT_MAX);
            }
        }
    }
}
