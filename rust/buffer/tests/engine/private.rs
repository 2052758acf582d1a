//! Memory of one process alone, and its release by a buffer.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use mpjdev_buffer::{Encoding, ReadBuffer, Slab, SlabError, SlabMemory, SlabSource, WriteBuffer};

#[derive(Debug)]
struct Memory(Vec<AtomicU64>);

impl SlabMemory for Memory {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A source of private memory until shared memory exists.
#[derive(Debug, Default)]
struct Source {
    has_shared: AtomicBool,
    takes: AtomicUsize,
}

impl SlabSource for Source {
    fn take(&self, octets: usize) -> Result<Slab, SlabError> {
        self.takes.fetch_add(1, SeqCst);
        let memory = Memory((0..octets.div_ceil(8)).map(|_| AtomicU64::default()).collect());
        Ok(if self.has_shared.load(SeqCst) { Slab::new(memory) } else { Slab::private(memory) })
    }
}

/// Writes 8 octets and, with objects, 100 of secondary payload, which do not fit beside them. Returns
/// whether all memory of the message is private.
fn write(buffer: &mut WriteBuffer, with_objects: bool) -> bool {
    buffer.write(&[7i64]).expect("it fits");
    if with_objects {
        buffer.stage_secondary(100).expect("memory").put_octets(&[3; 100]);
        buffer.grow_secondary(100);
    }
    let message = buffer.finish().expect("memory");
    let second = message.second_slab().map(Slab::is_private);
    assert!(second.is_none_or(|second| second == message.first_slab().is_private()));
    message.first_slab().is_private()
}

/// Proves that a buffer from before shared memory moves both payloads there when it is cleared.
#[test]
fn cleared_buffer_changes_from_private_to_shared_memory() {
    for with_objects in [false, true] {
        let source = Arc::new(Source::default());
        let mut buffer = WriteBuffer::new(source.clone(), 64, Encoding::NATIVE).expect("a capacity");
        assert!(write(&mut buffer, with_objects));
        source.has_shared.store(true, SeqCst);
        buffer.clear();
        assert!(write(&mut buffer, with_objects), "a plain clear keeps its memory");
        buffer.clear_keeping(true, 0);
        assert!(!write(&mut buffer, with_objects));
        let takes = source.takes.load(SeqCst);
        buffer.clear_keeping(true, 0);
        assert!(!write(&mut buffer, with_objects));
        assert_eq!(source.takes.load(SeqCst), takes, "shared memory is kept");
    }
}

/// Proves that a message that was captured before keeps its memory.
#[test]
fn captured_message_is_unchanged_when_its_buffer_changes_memory() {
    let source = Arc::new(Source::default());
    let mut buffer = WriteBuffer::new(source.clone(), 64, Encoding::Little).expect("a capacity");
    write(&mut buffer, true);
    let message = buffer.finish().expect("memory").clone();
    let mut before = vec![0; message.logical_len()];
    message.copy_logical(0, &mut before);
    source.has_shared.store(true, SeqCst);
    buffer.clear_keeping(true, 0);
    buffer.write(&[1i8; 20]).expect("it fits");
    let mut after = vec![0; message.logical_len()];
    message.copy_logical(0, &mut after);
    assert_eq!(before, after);
    assert!(message.first_slab().is_private());
}

/// Proves that a buffer keeps no memory of an earlier session, neither for writes nor for receives.
#[test]
fn buffer_takes_new_memory_in_a_new_session() {
    for with_objects in [false, true] {
        let source = Arc::new(Source::default());
        let mut buffer = WriteBuffer::new(source.clone(), 64, Encoding::NATIVE).expect("a capacity");
        for (session, takes) in [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3)] {
            buffer.clear_keeping(false, session);
            write(&mut buffer, with_objects);
            assert_eq!(source.takes.load(SeqCst), takes << usize::from(with_objects), "in session {session}");
        }
    }
    let source = Arc::new(Source::default());
    let mut reader = ReadBuffer::new(source.clone(), 64).expect("a capacity");
    for (session, keeps) in [(0, true), (1, false), (1, true), (2, false)] {
        let mut buffer = WriteBuffer::new(source.clone(), 64, Encoding::NATIVE).expect("a capacity");
        reader.adopt(buffer.finish().expect("memory").clone());
        drop(buffer);
        assert_eq!(reader.take_spare_of(session).is_some(), keeps, "in session {session}");
    }
}
