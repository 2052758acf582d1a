//! The parsers of headers and whole messages.

use mpjdev_buffer::layout::{CAPACITY_MAX, MESSAGE_OVERHEAD};
use mpjdev_buffer::message::parse_logical;
use mpjdev_buffer::octets::copy_in;
use mpjdev_buffer::{
    BufferError, Encoding, Message, PlainSource, PrimaryHeader, SecondaryHeader, SectionHeader, Slab,
    SlabSource,
};

use crate::ledger::Ledger;

/// Takes octets as a logical message and as one or two physical ones.
///
/// Promises: no panic; no memory beyond the input; what is accepted has the lengths of its headers, comes out
/// as it went in but for octets of headers that are unused, and means the same in any physical form; errors
/// point inside the input or at its end.
pub fn message(input: &[u8]) {
    headers(input);
    let ledger = Ledger::new();
    let loaded = Message::from_logical(&*ledger, CAPACITY_MAX, input);
    ledger.check(input.len());
    assert_eq!(loaded.is_ok(), parse_logical(input).is_ok(), "both check the same");
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

/// Each header parser, and that what it accepts it emits again.
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

/// The input as one physical message, and cut in two where the headers say.
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
