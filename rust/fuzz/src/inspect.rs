//! Targets of `mpjdev inspect` for messages.

use mpjdev_buffer::ReadBuffer;
use mpjdev_cli::inspect::explain::{Explanation, explain};
use mpjdev_cli::inspect::input::{Kind, decode};
use mpjdev_cli::inspect::text::Limits;
use mpjdev_cli::inspect::{hex, json, text};

use crate::counting_source::CountingSource;

/// Explains octets in every format.
///
/// Invariants: the explanation has no error if and only if the reader reads the message to its end. The JSON
/// is valid and has the same number of sections. The dump decodes to the same octets.
pub fn inspect(input: &[u8]) {
    let explanation = explain(input);
    agrees_with_the_reader(input, &explanation);
    for limits in [Limits::FEW, Limits::NONE] {
        let mut out = Vec::new();
        text::write(&mut out, &explanation, limits).expect("a vector takes it");
        assert!(out.starts_with(b"message ") && out.ends_with(b"\n"));
    }
    let mut out = Vec::new();
    json::write(&mut out, &explanation).expect("a vector takes it");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("valid JSON");
    assert_eq!(json["sections"].as_array().expect("a list").len(), explanation.section_count());
    assert_eq!(json["error"]["offset"].as_u64(), explanation.error().map(|fault| fault.offset));
    let mut out = Vec::new();
    hex::write(&mut out, &explanation).expect("a vector takes it");
    assert_eq!(decode(out, Kind::Hex).expect("hex text"), input, "the dump is not the input");
}

fn agrees_with_the_reader(input: &[u8], explanation: &Explanation<'_>) {
    let mut reader = ReadBuffer::new(CountingSource::new(), 1 << 30).expect("a capacity");
    let sections = reader.load(input).and_then(|()| reader.section_count());
    match explanation.error() {
        None => {
            assert_eq!(sections, Ok(explanation.section_count()));
            for section in explanation.sections() {
                let header = reader.peek().expect("sound").expect("one more");
                assert_eq!(header, section.header);
                let place = reader.stage(header.element, header.count).expect("sound");
                let mut data = vec![0; place.len()];
                place.get_octets(&mut data);
                reader.commit();
                assert_eq!(data, section.data);
                assert_eq!(section.present(), header.count);
            }
        }
        Some(fault) => {
            sections.expect_err("explained as damaged");
            assert!(fault.offset <= input.len() as u64);
        }
    }
}

/// Decodes an input that is raw or hex text.
///
/// Invariants: the output is not longer than the input. Octets written as hex decode to the same octets. Raw
/// input is unchanged.
pub fn input(input: &[u8]) {
    for kind in [Kind::Auto, Kind::Hex] {
        if let Ok(octets) = decode(input.to_vec(), kind) {
            assert!(octets.len() <= input.len());
            let again: String = octets.iter().map(|octet| format!("{octet:02x} ")).collect();
            assert_eq!(decode(again.into_bytes(), Kind::Hex).expect("hex"), octets);
        }
    }
    assert_eq!(decode(input.to_vec(), Kind::Raw).expect("raw"), input);
    if matches!(input.first(), Some(0 | 1)) {
        assert_eq!(decode(input.to_vec(), Kind::Auto).expect("raw"), input, "a message is never text");
    }
}
