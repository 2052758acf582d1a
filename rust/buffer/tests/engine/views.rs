//! Sections that are filled in place, through an address that cannot be revoked.

use std::sync::Arc;

use mpjdev_buffer::{BufferError, Encoding, Message, Type, ViewedSlab, WriteBuffer};

use crate::ledger::Ledger;
use crate::naive::{self, octets_of};

fn buffer(ledger: &Arc<Ledger>) -> WriteBuffer {
    WriteBuffer::new(ledger.clone(), 64, Encoding::Little).expect("a capacity")
}

/// Writes one section of three ints through a view. Returns the hold of the view, and the message.
fn write(buffer: &mut WriteBuffer, first: i32) -> (Arc<ViewedSlab>, Message) {
    let (slab, at) = buffer.stage_view(Type::Int, 3).expect("it fits");
    buffer.commit();
    slab.octets(at, 12).put(Encoding::Little, [first, 1, 2]);
    (slab, buffer.finish().expect("memory").clone())
}

fn expected(first: i32) -> Vec<u8> {
    let mut model = naive::Message::new(false);
    model.section(&[first, 1, 2]);
    model.octets()
}

/// Proves that a view refers to the memory of the message, that its padding is zero, and that the section
/// exists only after the commit.
#[test]
fn values_put_through_a_view_are_in_the_message() {
    let ledger = Ledger::new();
    let mut buffer = buffer(&ledger);
    buffer.stage_view(Type::Long, 2).expect("it fits");
    assert_eq!(buffer.primary_len(), 0);
    let (_, message) = write(&mut buffer, 7);
    assert_eq!(octets_of(&message), expected(7));
    let used = buffer.primary_len();
    assert!(matches!(buffer.stage_view(Type::Byte, 64), Err(BufferError::Overflow { .. })));
    assert_eq!(buffer.primary_len(), used);
}

/// Proves that a buffer uses its memory with views again when no message refers to it, whether the views are
/// held or not.
#[test]
fn buffer_reuses_memory_with_views() {
    let ledger = Ledger::new();
    let mut buffer = buffer(&ledger);
    let mut held = Vec::new();
    for round in 0..10 {
        buffer.clear();
        let (view, message) = write(&mut buffer, round);
        assert_eq!(octets_of(&message), expected(round));
        held.push(view);
        // Writes continue in the same memory once the message is dropped.
        drop(message);
        buffer.write(&[1i8]).expect("it fits");
    }
    assert_eq!(ledger.taken(), 64 + 16, "one slab");
    assert!(held.iter().all(|view| Arc::ptr_eq(view, &held[0])));
}

/// Proves that messages with other references stay unchanged, that the buffer uses their memory again
/// afterwards, and that the memory that it keeps is bounded.
#[test]
fn released_message_returns_its_memory_to_its_buffer() {
    let ledger = Ledger::new();
    let mut buffer = buffer(&ledger);
    let mut messages: Vec<Message> = Vec::new();
    for round in 0..3 {
        buffer.clear();
        messages.push(write(&mut buffer, round).1);
    }
    assert_eq!(ledger.taken(), 3 * 80);
    for (round, message) in messages.iter().enumerate() {
        assert_eq!(octets_of(message), expected(round as i32));
    }
    let second = messages.remove(1);
    let address = second.first_words().as_ptr();
    drop(second);
    buffer.clear();
    let (_, again) = write(&mut buffer, 9);
    assert_eq!(again.first_words().as_ptr(), address);
    assert_eq!(ledger.taken(), 0);
    messages.push(again);
    for round in 3..20 {
        buffer.clear();
        messages.push(write(&mut buffer, round).1);
    }
    messages.clear();
    ledger.taken();
    for round in 0..8 {
        buffer.clear();
        messages.push(write(&mut buffer, round).1);
    }
    assert_eq!(ledger.taken(), 4 * 80, "four slabs were kept of twenty");
}

/// Proves that a write after a send uses other memory than the sent message.
#[test]
fn write_after_a_finish_leaves_a_held_message_unchanged() {
    let ledger = Ledger::new();
    let mut buffer = buffer(&ledger);
    let (view, message) = write(&mut buffer, 5);
    let (next, _) = write(&mut buffer, 6);
    assert!(!Arc::ptr_eq(&view, &next));
    assert_eq!(octets_of(&message), expected(5));
    let mut model = naive::Message::new(false);
    model.section(&[5i32, 1, 2]);
    model.section(&[6i32, 1, 2]);
    assert_eq!(octets_of(buffer.finish().expect("memory")), model.octets());
}

/// Proves that a receiver never gets memory with a view, also when the buffer is dropped.
#[test]
fn slab_with_a_view_is_not_reused() {
    let ledger = Ledger::new();
    let mut buffer = buffer(&ledger);
    let (view, message) = write(&mut buffer, 5);
    drop(message);
    assert!(buffer.take_spare().is_none());
    write(&mut buffer, 6);
    let message = buffer.finish().expect("memory").clone();
    drop(buffer);
    assert!(!message.first_slab().is_exclusive());
    drop(view);
    assert!(message.first_slab().is_exclusive(), "the last view is freed");
}
