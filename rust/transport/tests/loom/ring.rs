//! The ring of a pair of ranks: the production code, with the words of the model.

use std::sync::Arc;

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;

use crate::explore::explore;
use shm_ring::{Consumer, Head, LINE, Producer};
use words::AtomicU64;

/// The words of the model.
mod words {
    pub(super) use loom::sync::atomic::AtomicU64;

    /// The model has no caches.
    pub(super) fn prefetch(_: &AtomicU64) {}
}

/// The faults that the ring reports.
mod segment_fault {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Damage {
        Position,
        Stamp,
        Skip,
        RecordLen,
    }
}

#[allow(dead_code)]
#[path = "../../src/shm/ring.rs"]
mod shm_ring;

/// Lines of the smallest ring.
const LINES: usize = 64;

/// A producer and a consumer that pass `count` records of `len` octets, after `before` records that one
/// thread passes alone.
fn pass_records(before: u64, count: u64, len: usize) {
    let ring: Arc<Vec<AtomicU64>> = Arc::new((0..LINES * LINE).map(|_| AtomicU64::new(0)).collect());
    let position = Arc::new(AtomicU64::new(0));
    let (mut producer, mut consumer) = (Producer::new(LINES), Consumer::default());
    let head = move |number: u64| Head { form: 1, tag: number as i32, context: number, len };
    let fill = |number| move |words: &[AtomicU64]| words.iter().for_each(|word| word.store(number, Relaxed));
    for number in 0..before {
        let is_pushed = producer.push(&ring, head(number), || position.load(Acquire), fill(number));
        assert_eq!(is_pushed, Ok(true));
        let (head, _) = consumer.peek(&ring).expect("no damage").expect("a record");
        consumer.pass(&head);
        position.store(consumer.position(), Release);
    }
    let (theirs, their_position) = (ring.clone(), position.clone());
    let sender = thread::spawn(move || {
        for number in before..before + count {
            let consumed = || their_position.load(Acquire);
            while producer.push(&theirs, head(number), consumed, fill(number)) != Ok(true) {
                thread::yield_now();
            }
        }
    });
    for number in before..before + count {
        let (head, words) = loop {
            match consumer.peek(&ring).expect("no damage") {
                Some(record) => break record,
                None => thread::yield_now(),
            }
        };
        assert_eq!((head.tag, head.context, head.len), (number as i32, number, len));
        assert!(words.iter().all(|word| word.load(Relaxed) == number), "record {number}");
        consumer.pass(&head);
        position.store(consumer.position(), Release);
    }
    sender.join().expect("no panic");
}

#[test]
fn record_is_seen_whole() {
    explore(3, || pass_records(0, 2, 16));
}

/// Records of nine lines: the ring begins again, and the sender waits for the receiver.
#[test]
fn record_overwrites_no_line_that_is_not_passed() {
    explore(0, || pass_records(5, 7, 9 * 64 - 24));
}
