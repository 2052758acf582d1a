//! Every vector of tests/golden, decoded and encoded.

#[path = "vectors/values.rs"]
mod values;
mod vectors;

use std::sync::Arc;

use mpjdev_buffer::{BufferError, Damage, PlainSource, ReadBuffer, WriteBuffer};
use values::{read, write};
use vectors::{Expected, Vector};

/// Proves that every type, edge value, byte order, padding and secondary payload reads as described.
#[test]
fn every_sound_vector_reads_as_described() {
    let sound: Vec<Vector> = vectors::all().into_iter().filter(|v| v.error.is_none()).collect();
    assert!(sound.len() >= 40, "only {} sound vectors found", sound.len());
    for vector in &sound {
        let mut buffer = loaded(vector).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        let message = buffer.message().expect("just loaded");
        assert_eq!(Some(message.encoding()), vector.encoding, "{}", vector.name);
        assert_eq!(Some(message.primary_len()), vector.primary_len, "{}", vector.name);
        assert_eq!(Some(message.secondary_len()), vector.secondary_len, "{}", vector.name);
        let mut stream = vec![0; vector.stream.len() + 1];
        assert_eq!(message.copy_secondary(0, &mut stream), vector.stream.len(), "{}", vector.name);
        assert_eq!(stream[..vector.stream.len()], vector.stream, "{}", vector.name);
        assert_eq!(buffer.section_count(), Ok(vector.sections.len()), "{}", vector.name);
        for (k, section) in vector.sections.iter().enumerate() {
            assert_eq!(read(&mut buffer, section), Ok(()), "{} section {k}", vector.name);
        }
        assert_eq!(buffer.peek(), Ok(None), "{}", vector.name);
    }
}

/// Proves that the writer writes exactly the octets of the specification, with unused ones, padding and
/// headers.
#[test]
fn writer_reproduces_every_canonical_vector() {
    let canonical: Vec<Vector> = vectors::all().into_iter().filter(|v| v.canonical).collect();
    assert!(canonical.len() >= 36, "only {} canonical vectors found", canonical.len());
    for vector in &canonical {
        for spare in [0, 1, vector.stream.len() as i64 + 1] {
            let capacity = vector.primary_len.expect("described") as i64 + spare;
            let order = vector.encoding.expect("described");
            let mut buffer = WriteBuffer::new(Arc::new(PlainSource), capacity, order).expect("a capacity");
            for section in &vector.sections {
                write(&mut buffer, section);
            }
            if !vector.stream.is_empty() {
                buffer.stage_secondary(vector.stream.len()).expect("memory").put_octets(&vector.stream);
                buffer.grow_secondary(vector.stream.len());
            }
            let message = buffer.finish().expect("memory");
            let mut octets = vec![0xcc; message.logical_len() + 1];
            let n = message.copy_logical(0, &mut octets);
            assert_eq!(octets[..n], vector.octets, "{} with {spare} to spare", vector.name);
        }
    }
}

/// Proves that each damage is found at its offset, by its own check, and not earlier.
#[test]
fn every_damaged_vector_fails_at_its_offset() {
    let damaged: Vec<Vector> = vectors::all().into_iter().filter(|v| v.error.is_some()).collect();
    assert!(damaged.len() >= 40, "only {} damaged vectors found", damaged.len());
    for vector in &damaged {
        let error = vector.error.as_ref().expect("filtered");
        match (loaded(vector), error.section) {
            (Err(e), None) => assert_eq!(expected(&e, None), *error, "{}: {e}", vector.name),
            (Ok(mut buffer), Some(k)) => {
                for section in &vector.sections[..k] {
                    assert_eq!(read(&mut buffer, section), Ok(()), "{}", vector.name);
                }
                let e = buffer.peek().expect_err(&vector.name);
                assert_eq!(expected(&e, Some(k)), *error, "{}: {e}", vector.name);
                assert_eq!(buffer.section_count().expect_err(&vector.name), e);
            }
            (other, _) => panic!("{}: {other:?}", vector.name),
        }
    }
}

fn loaded(vector: &Vector) -> Result<ReadBuffer, BufferError> {
    let capacity = vector.octets.len().next_multiple_of(8) as i64;
    let mut buffer = ReadBuffer::new(Arc::new(PlainSource), capacity)?;
    buffer.load(&vector.octets)?;
    Ok(buffer)
}

fn expected(error: &BufferError, section: Option<usize>) -> Expected {
    let BufferError::Damaged { offset, damage } = error else { panic!("not damage: {error}") };
    let kind = match damage {
        Damage::Encoding { .. } => "encoding",
        Damage::PrimaryLen { .. } => "primary-len",
        Damage::SecondaryLen { .. } => "secondary-len",
        Damage::TypeCode { .. } => "type-code",
        Damage::Count { .. } => "count",
        Damage::SectionLen { .. } => "section-len",
        Damage::Short { .. } => "short",
        Damage::Long { .. } => "long",
    };
    Expected { section, offset: *offset, kind: kind.to_owned() }
}
