//! Target of the parsers of headers and messages.

use mpjdev_buffer::layout::{CAPACITY_MAX, MESSAGE_OVERHEAD};
use mpjdev_buffer::message::parse_logical;
use mpjdev_buffer::octets::copy_in;
use mpjdev_buffer::{
    BufferError, Encoding, Message, PlainSource, PrimaryHeader, SecondaryHeader, SectionHeader, Slab,
    SlabSource,
};

use crate::counting_source::CountingSource;

/// Parses octets as a logical message and as one or two physical ones.
///
/// Invariants: memory is limited by the input. An accepted message has the lengths of its headers, is the
/// same in every physical form, and emitting it gives the same octets, except for unused ones of headers. The
/// offset of an error is at most the length of the input.
pub fn message(input: &[u8]) {
    headers(input);
    let source = CountingSource::new();
    let loaded = Message::from_logical(&*source, CAPACITY_MAX, input);
    source.check(input.len());
    assert_eq!(loaded.is_ok(), parse_logical(input).is_ok(), "both parsers have the same checks");
    match &loaded {
        Ok(message) => {
            let octets = logical(message);
            assert_eq!(octets.len(), input.len());
            let again = Message::from_logical(&PlainSource, CAPACITY_MAX, &octets).expect("it was a message");
            assert_eq!(logical(&again), octets);
            let p = MESSAGE_OVERHEAD + message.primary_len();
            assert_eq!(input[p..], octets[p..], "the secondary payload");
            assert_eq!(input[8..p - 8], octets[8..p - 8], "the primary payload");
        }
        Err(e) => inside(e, input.len()),
    }
    physical(input, &loaded);
}

/// Checks that each header parser emits the headers that it accepts.
fn headers(input: &[u8]) {
    for word in input.chunks_exact(8).take(16) {
        let word: [u8; 8] = word.try_into().expect("eight");
        if let Ok(header) = PrimaryHeader::parse(word) {
            assert_eq!(PrimaryHeader::parse(header.emit()), Ok(header));
        }
        for encoding in [Encoding::Big, Encoding::Little] {
            if let Ok(header) = SectionHeader::parse(word, encoding) {
                assert_eq!(SectionHeader::parse(header.emit(encoding), encoding), Ok(header));
                assert!(header.padded_len() - header.data_len() < 8);
            }
            if let Ok(header) = SecondaryHeader::parse(word, encoding) {
                assert_eq!(header.emit(encoding), word, "all octets of a secondary header count");
            }
        }
    }
}

/// The input as one physical message, and as two if the headers have a boundary.
fn physical(input: &[u8], loaded: &Result<Message, BufferError>) {
    let one = Message::from_physical(slab(input), input.len(), None, CAPACITY_MAX);
    assert_eq!(one.is_ok(), loaded.is_ok());
    let cut = match loaded {
        Ok(message) => MESSAGE_OVERHEAD + message.primary_len(),
        Err(_) => input.len() / 2,
    };
    let (first, second) = input.split_at(cut);
    let two = Message::from_physical(slab(first), cut, Some((slab(second), second.len())), CAPACITY_MAX);
    if let Ok(message) = loaded {
        let octets = logical(message);
        assert_eq!(logical(&one.expect("checked")), octets);
        assert_eq!(logical(&two.expect("cut where it belongs")), octets);
    } else if let Err(e) = two {
        inside(&e, input.len());
    }
}

fn slab(octets: &[u8]) -> Slab {
    let slab = PlainSource.take(octets.len()).expect("memory");
    copy_in(slab.words(), 0, octets);
    slab
}

fn logical(message: &Message) -> Vec<u8> {
    let mut octets = vec![0xcc; message.logical_len()];
    assert_eq!(message.copy_logical(0, &mut octets), octets.len());
    octets
}

fn inside(error: &BufferError, len: usize) {
    let BufferError::Damaged { offset, .. } = error else { panic!("not damage: {error}") };
    assert!(*offset <= len as u64, "{error}, but there are {len} octets");
}
