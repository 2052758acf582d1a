//! Every interleaving of threads that share a slab.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p mpjdev-buffer --release --test loom --target-dir target/loom
//! ```
#![cfg(loom)]

#[path = "../../sys/tests/loom/explore.rs"]
mod explore;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Word, Ordering::Relaxed};

use loom::sync::atomic::AtomicU64;
use loom::thread;

use mpjdev_buffer::{Encoding, Message, PlainSource, Slab, SlabMemory, WriteBuffer};

use explore::explore;

/// Memory with one word beside it, which holders write with relaxed order.
#[derive(Debug)]
struct Marked(AtomicU64);

impl SlabMemory for Marked {
    fn words(&self) -> &[Word] {
        &[]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        assert_eq!(self.0.load(Relaxed), 1, "freed before the other holder was done");
    }
}

fn mark(slab: &Slab) -> &AtomicU64 {
    &slab.memory().as_any().downcast_ref::<Marked>().expect("ours").0
}

/// The accesses of a former holder happen before a slab is exclusive, and before its memory is freed.
#[test]
fn exclusive_slab_shows_the_writes_of_other_threads() {
    explore(None, || {
        let slab = Slab::new(Marked(AtomicU64::new(0)));
        let other = slab.clone();
        let thread = thread::spawn(move || mark(&other).store(1, Relaxed));
        if slab.is_exclusive() {
            assert_eq!(mark(&slab).load(Relaxed), 1);
        }
        drop(slab);
        thread.join().unwrap();
    });
}

/// A clone keeps the other holder from exclusive use, though the count is read without order.
#[test]
fn slab_cloned_by_another_thread_is_not_exclusive() {
    explore(None, || {
        let slab = Slab::new(Marked(AtomicU64::new(1)));
        let (first, second) = (slab.clone(), slab.clone());
        let thread = thread::spawn(move || {
            drop(first);
            let third = second.clone();
            drop(second);
            third
        });
        assert!(!slab.is_exclusive());
        let third = thread.join().unwrap();
        assert!(!slab.is_exclusive());
        drop(third);
        assert!(slab.is_exclusive());
    });
}

const BEFORE: [i64; 2] = [1, 2];
const AFTER: [i64; 2] = [3, 4];

fn octets(message: &Message) -> Vec<u8> {
    let mut octets = vec![0; message.logical_len()];
    assert_eq!(message.copy_logical(0, &mut octets), octets.len());
    octets
}

fn written(parts: &[&[i64]]) -> Vec<u8> {
    let mut buffer = WriteBuffer::new(Arc::new(PlainSource), 64, Encoding::NATIVE).expect("a capacity");
    parts.iter().for_each(|part| buffer.write(part).expect("room"));
    octets(buffer.finish().expect("memory"))
}

/// A writer continues while a receiver holds the message or has just released it. Neither sees the writes of
/// the other one.
#[test]
fn message_read_by_a_thread_is_unchanged_by_later_writes() {
    explore(None, || {
        let (begun, whole, afresh) = (written(&[&BEFORE]), written(&[&BEFORE, &AFTER]), written(&[&AFTER]));
        let mut buffer = WriteBuffer::new(Arc::new(PlainSource), 64, Encoding::NATIVE).expect("a capacity");
        buffer.write(&BEFORE).expect("room");
        let message = buffer.finish().expect("memory").clone();
        let reader = thread::spawn(move || {
            assert_eq!(octets(&message), begun);
            let another = message.clone();
            drop(message);
            assert_eq!(octets(&another), begun);
        });
        buffer.write(&AFTER).expect("room");
        assert_eq!(octets(buffer.finish().expect("memory")), whole);
        buffer.clear();
        buffer.write(&AFTER).expect("room");
        assert_eq!(octets(buffer.finish().expect("memory")), afresh);
        reader.join().unwrap();
    });
}
