//! Tests of the explanations of every vector of tests/golden.

#[path = "../../buffer/tests/vectors/mod.rs"]
mod vectors;

use mpjdev_buffer::{Damage, Type};
use mpjdev_cli::inspect::explain::{Explanation, explain};
use mpjdev_cli::inspect::input::{Kind, decode};
use mpjdev_cli::inspect::text::Limits;
use mpjdev_cli::inspect::{hex, json, text};
use serde_json::{Value, json};
use vectors::{Section, Vector};

fn as_json(explanation: &Explanation<'_>) -> Value {
    let mut out = Vec::new();
    json::write(&mut out, explanation).expect("a vector takes it");
    serde_json::from_slice(&out).expect("valid JSON")
}

fn as_text(explanation: &Explanation<'_>, limits: Limits) -> String {
    let mut out = Vec::new();
    text::write(&mut out, explanation, limits).expect("a vector takes it");
    String::from_utf8(out).expect("UTF-8")
}

fn as_hex(explanation: &Explanation<'_>) -> String {
    let mut out = Vec::new();
    hex::write(&mut out, explanation).expect("a vector takes it");
    String::from_utf8(out).expect("UTF-8")
}

/// The JSON that a described section must give.
fn expected(section: &Section) -> Value {
    let finite = |value: f64, json: Value| match value {
        v if v.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json,
    };
    let bits = |word: &str| u64::from_str_radix(&word[2..], 16).expect("a bit pattern");
    let value = |word: &String| match section.element {
        Type::Boolean => json!(word == "1"),
        Type::Float => {
            let value = f32::from_bits(bits(word) as u32);
            // Through decimal digits, as JSON does, so that 0.1f stays 0.1; with serde_json's own parser,
            // which may miss the last bit of a double.
            let digits = serde_json::from_str(&format!("{value:?}")).unwrap_or(Value::Null);
            finite(f64::from(value), digits)
        }
        Type::Double => finite(f64::from_bits(bits(word)), json!(f64::from_bits(bits(word)))),
        _ => json!(word.parse::<i64>().expect("a number")),
    };
    let values: Vec<Value> = match section.element {
        Type::Object => Vec::new(),
        _ => section.values.iter().map(value).collect(),
    };
    json!({"type": section.element.name(), "count": section.values.len(), "values": values})
}

fn kind(damage: Damage) -> &'static str {
    match damage {
        Damage::Encoding { .. } => "encoding",
        Damage::PrimaryLen { .. } => "primary-len",
        Damage::SecondaryLen { .. } => "secondary-len",
        Damage::TypeCode { .. } => "type-code",
        Damage::Count { .. } => "count",
        Damage::SectionLen { .. } => "section-len",
        Damage::Short { .. } => "short",
        Damage::Long { .. } => "long",
    }
}

/// Proves that the JSON of every vector matches its description: keys, types, counts and values; for a
/// damaged one the part before the damage, and its offset.
#[test]
fn json_of_every_vector_matches_its_description() {
    let all: Vec<Vector> = vectors::all();
    assert!(all.len() >= 80, "only {} vectors found", all.len());
    for vector in &all {
        let explanation = explain(&vector.octets);
        let mut wanted = serde_json::Map::new();
        if let Some(encoding) = vector.encoding {
            wanted.insert("encoding".into(), json!(encoding.name()));
        }
        if let Some(p) = vector.primary_len {
            wanted.insert("primary_len".into(), json!(p));
        }
        wanted.insert("sections".into(), vector.sections.iter().map(expected).collect());
        if let Some(s) = vector.secondary_len {
            wanted.insert("secondary_len".into(), json!(s));
        }
        let found = explanation.error().map(|fault| (fault.offset, kind(fault.damage).to_owned()));
        let error = vector.error.as_ref().map(|error| (error.offset, error.kind.clone()));
        assert_eq!(found, error, "{}", vector.name);
        if let Some(fault) = explanation.error() {
            let error = json!({"offset": fault.offset, "message": fault.damage.to_string()});
            wanted.insert("error".into(), error);
        }
        assert_eq!(as_json(&explanation), Value::Object(wanted), "{}", vector.name);
    }
}

/// Proves that every float and double of the vectors is recovered from the digits in the JSON, to the last
/// bit.
#[test]
fn floats_in_json_survive_a_round_trip() {
    for name in ["float-be", "float-le", "double-be", "double-le"] {
        let vector = vectors::all().into_iter().find(|v| v.name == name).expect("the vector");
        let mut out = Vec::new();
        json::write(&mut out, &explain(&vector.octets)).expect("a vector takes it");
        let out = String::from_utf8(out).expect("UTF-8");
        let (_, values) = out.split_once("\"values\":[").expect("values");
        let (values, _) = values.split_once(']').expect("an end");
        for (shown, bits) in values.split(',').zip(&vector.sections[0].values) {
            let wide = u64::from_str_radix(&bits[2..], 16).expect("a bit pattern");
            let shown = shown.trim_matches('"').replace("Infinity", "inf");
            if name.starts_with("float") {
                let (found, wanted): (f32, _) =
                    (shown.parse().expect("a number"), f32::from_bits(wide as u32));
                assert!(found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan()), "{bits}");
            } else {
                let (found, wanted): (f64, _) = (shown.parse().expect("a number"), f64::from_bits(wide));
                assert!(found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan()), "{bits}");
            }
        }
    }
}

/// Proves that remarks name each deviation from our own encoding, and nothing else.
#[test]
fn remarks_come_exactly_with_noncanonical_vectors() {
    for vector in vectors::all().iter().filter(|v| v.error.is_none()) {
        let explanation = explain(&vector.octets);
        let shown = as_text(&explanation, Limits::NONE);
        assert_eq!(shown.contains('!'), !vector.canonical, "{}:\n{shown}", vector.name);
        let remarked = as_hex(&explanation).contains("not zero");
        let wide = vector.name.starts_with("boolean-wide");
        assert_eq!(remarked, !vector.canonical && !wide, "{}:\n{}", vector.name, as_hex(&explanation));
        let secondary = explanation.secondary().expect("sound");
        assert_eq!(secondary.payload, vector.stream, "{}", vector.name);
        assert_eq!(secondary.is_stream(), !vector.stream.is_empty(), "{}", vector.name);
    }
}

/// Proves that text and dump of a damaged vector name its offset, and of a sound one no damage.
#[test]
fn text_and_hex_name_the_damage() {
    for vector in &vectors::all() {
        let explanation = explain(&vector.octets);
        for shown in [as_text(&explanation, Limits::FEW), as_hex(&explanation)] {
            match &vector.error {
                Some(e) => {
                    let words = format!("at offset {}: ", e.offset);
                    assert!(shown.contains("damaged") && shown.contains(&words), "{}:\n{shown}", vector.name);
                }
                None => assert!(!shown.contains("damaged"), "{}:\n{shown}", vector.name),
            }
        }
    }
}

/// Every format of an explanation, which must not panic; gives the error.
fn explored(octets: &[u8]) -> Option<u64> {
    let explanation = explain(octets);
    let shown = [as_text(&explanation, Limits::NONE), as_hex(&explanation)];
    let error = explanation.error().map(|fault| fault.offset);
    for shown in shown {
        assert_eq!(shown.contains("damaged"), error.is_some(), "{octets:02x?}:\n{shown}");
    }
    assert_eq!(as_json(&explanation)["error"]["offset"].as_u64(), error);
    error
}

/// Proves that every truncation of every vector is explained as damage, at an offset that is there.
#[test]
fn every_truncation_is_explained_as_damage() {
    for vector in vectors::all().iter().filter(|v| v.error.is_none() && v.octets.len() <= MOST) {
        for have in 0..vector.octets.len() {
            let offset = explored(&vector.octets[..have]);
            assert!(offset.is_some_and(|o| o <= have as u64), "{} cut to {have}: {offset:?}", vector.name);
        }
    }
}

/// The longest vector whose bits are all flipped: it has all kinds of section, and few values.
const MOST: usize = 200;

/// Proves that all formats handle each flipped bit of the vectors.
#[test]
fn every_flipped_bit_is_explained() {
    for vector in vectors::all().iter().filter(|v| v.octets.len() <= MOST) {
        for (at, bit) in (0..vector.octets.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = vector.octets.clone();
            flipped[at] ^= 1 << bit;
            let offset = explored(&flipped);
            if at == 0 && bit > 0 && vector.error.is_none() {
                assert_eq!(offset, Some(0), "{}: bit {bit} of the encoding", vector.name);
            }
        }
    }
}

/// Proves that the dump has every octet of every vector, damaged ones too, in a form that is read again.
#[test]
fn dump_of_every_vector_is_parsed_as_the_vector() {
    for vector in &vectors::all() {
        let dump = as_hex(&explain(&vector.octets));
        let octets = decode(dump.clone().into_bytes(), Kind::Hex).expect("hex text");
        assert_eq!(octets, vector.octets, "{}:\n{dump}", vector.name);
    }
}

/// Proves the whole layout of the text.
#[test]
fn worked_example_has_this_text() {
    let example = vectors::all().into_iter().find(|v| v.name == "unused-be").expect("the vector");
    let explanation = explain(&example.octets);
    assert_eq!(
        as_text(&explanation, Limits::FEW),
        "\
message     76 octets, big-endian
            ! unused octets at 1 not zero: ff ff ff
primary     48 octets at 8, 3 sections
  0   at 8      int[3]       1, 2, -1
            ! unused octets at 9 not zero: ff ff ff
            ! padding at 28 not zero: ff ff ff ff
  1   at 32     byte[5]      10, 11, 12, 13, 14
            ! unused octets at 33 not zero: ff ff ff
            ! padding at 45 not zero: ff ff ff
  2   at 48     object[2]    in the secondary payload
            ! unused octets at 49 not zero: ff ff ff
secondary   12 octets at 64, a Java serialization stream (ac ed 00 05)
            ! unused octets (or a pairing number) at 56 not zero: ff ff ff ff
"
    );
    assert_eq!(
        as_hex(&explanation),
        "\
00000000:  00 ff ff ff 00 00 00 30  # primary header: big-endian, 48 octets of primary payload, unused octets not zero
00000008:  04 ff ff ff 00 00 00 03  # section 0: int, 3 elements, unused octets not zero
00000010:  00 00 00 01 00 00 00 02  # 1 2
00000018:  ff ff ff ff ff ff ff ff  # -1, 4 octets of padding, not zero
00000020:  00 ff ff ff 00 00 00 05  # section 1: byte, 5 elements, unused octets not zero
00000028:  0a 0b 0c 0d 0e ff ff ff  # 10 11 12 13 14, 3 octets of padding, not zero
00000030:  08 ff ff ff 00 00 00 02  # section 2: object, 2 elements, unused octets not zero
00000038:  ff ff ff ff 00 00 00 0c  # secondary header: 12 octets of secondary payload, unused octets (or a pairing number) not zero
00000040:  ac ed 00 05 74 00 01 61  # ....t..a Java serialization stream
00000048:  74 00 01 62              # t..b
"
    );
}

/// Proves that long sections and many sections are shortened in text with a note, and complete on request.
#[test]
fn long_messages_are_cut_unless_all_is_requested() {
    let counts = vectors::all().into_iter().find(|v| v.name == "counts-be").expect("the vector");
    let few = as_text(&explain(&counts.octets), Limits::FEW);
    assert!(
        few.contains("-128, -127, -126, -125, -124, -123, -122, -121, -120, -119, ... 247 more\n"),
        "{few}"
    );
    let all = as_text(&explain(&counts.octets), Limits::NONE);
    assert!(all.contains("-3, -2, -1, 0, 1, 2, 3") && !all.contains("..."), "{all}");
    let mut many = vec![0; 4];
    many.extend(800u32.to_be_bytes());
    many.extend([0; 8 * 100]);
    many.extend([0; 8]);
    let few = as_text(&explain(&many), Limits::FEW);
    assert!(few.contains("100 sections\n") && few.contains("... 60 sections more (--all"), "{few}");
    assert_eq!(as_text(&explain(&many), Limits::NONE).lines().count(), 103);
}

/// Proves that octets missing inside a section leave the values before them, and that their number is
/// printed.
#[test]
fn truncated_section_shows_its_present_values() {
    let example = vectors::all().into_iter().find(|v| v.name == "example-be").expect("the vector");
    let explanation = explain(&example.octets[..22]);
    let shown = as_text(&explanation, Limits::FEW);
    assert!(shown.contains("int[3]       1; 2 missing\n"), "{shown}");
    assert!(shown.contains("damaged     at offset 22: 22 octets, 64 needed\n"), "{shown}");
    let json = as_json(&explanation);
    assert_eq!(json["sections"], json!([{"type": "int", "count": 3, "values": [1]}]));
    assert_eq!(json.get("secondary_len"), None);
}

/// Proves that objects without a stream, and a stream without objects, are remarked.
#[test]
fn objects_without_secondary_payload_and_the_reverse_are_remarked() {
    let objects = [0, 0, 0, 0, 0, 0, 0, 8, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    let shown = as_text(&explain(&objects), Limits::FEW);
    assert!(shown.contains("! there are sections of objects, but no secondary payload"), "{shown}");
    let payload = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2];
    let shown = as_text(&explain(&payload), Limits::FEW);
    assert!(shown.contains("2 octets at 16, not a Java serialization stream"), "{shown}");
    assert!(shown.contains("! there is a secondary payload, but no section of objects"), "{shown}");
}

/// Proves the remark on boolean octets above 1, with the offset of the first and their number.
#[test]
fn boolean_octets_that_are_neither_0_nor_1_are_remarked() {
    let wide = vectors::all().into_iter().find(|v| v.name == "boolean-wide-le").expect("the vector");
    let shown = as_text(&explain(&wide.octets), Limits::FEW);
    assert!(shown.contains("boolean[6]   false, true, true, true, true, true\n"), "{shown}");
    assert!(shown.contains("! boolean octet 0x02 at 18 reads as true, and 3 more like it\n"), "{shown}");
}

/// Proves how raw octets and hex text are distinguished, and which forms hex text may have.
#[test]
fn hex_text_and_raw_octets_are_distinguished() {
    let auto = |input: &[u8]| decode(input.to_vec(), Kind::Auto);
    let octets = [0x01, 0xab, 0x00];
    for text in [
        "01ab00",
        "01 AB 00\n",
        "01ab 00",
        "0x01, 0xab, 0x00",
        "# note\n01 ab # 77\n\n00",
        "0000:  01 ab 00 |...|",
        "\u{feff}01ab00\r\n",
        "00000000:  01 ab\n00000002:  00  # caf\u{e9}\n",
        "\t01ab\t00",
        "00000000  01 ab 00                                          |...|\n00000003\n",
        "00000000  01                                                |.|\n00000001  ab 00\n00000003\n",
    ] {
        assert_eq!(auto(text.as_bytes()).expect(text), octets, "{text:?}");
    }
    for raw in [&[][..], &[0], &[1, b'0'], b"00\x0011", &[0xff, b'0'], b"\xac\xed\x00\x05"] {
        assert_eq!(auto(raw).expect("raw"), raw);
    }
    assert_eq!(decode(b"00 11".to_vec(), Kind::Raw).expect("raw"), b"00 11");
    assert!(auto(b"# nothing\n").expect("text").is_empty());
}

/// Proves that text that is not hex is refused with the place, not explained as a damaged message.
#[test]
fn text_that_is_not_hex_is_refused_with_the_place() {
    let refused = |text: &str| decode(text.into(), Kind::Auto).expect_err(text).to_string();
    assert!(refused("00 01\n00 zz").starts_with("line 2, column 4: 'z' is not a hexadecimal digit"));
    assert!(refused("00 01 2").starts_with("line 1, column 7: half an octet"));
    assert!(refused("0\u{e9}").starts_with("line 1, column 2: '\u{e9}'"));
    assert!(refused("Hello").starts_with("line 1, column 1: 'H'"));
    // Lines that hexdump has left out.
    assert!(refused("00000000  00 00  |..|\n*\n00000010  00  |.|\n").starts_with("line 2, column 1: '*'"));
    assert!(decode(vec![0xff, 0xfe], Kind::Hex).is_err());
}
