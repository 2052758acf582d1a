//! Tests of truncated and flipped octets, and of texts of unusual form.

use mpjdev_cli::inspect::impi::Options;
use mpjdev_cli::inspect::input::Kind;
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::packet::PacketType::{Data, DataSync};

use crate::support::{
    TEXT, down, json, json_as, octets, of_client_0, read, shown, shown_as, speaking, stream, with_data,
};

/// Raw octets of each form: both directions of start-up, and packets.
fn vectors() -> Vec<(&'static str, Vec<u8>, Dialect)> {
    let startup = [("flow", Dialect::Final), ("key", Dialect::Final), ("draft", Dialect::Draft)];
    let startup = startup
        .into_iter()
        .flat_map(|(name, dialect)| of_client_0(name).map(|octets| (name, octets, dialect)));
    let packets = [
        ("impi-collective.hex", Dialect::Final),
        ("impi-cancel.hex", Dialect::Final),
        ("impi-draft.hex", Dialect::Draft),
    ];
    startup.chain(packets.map(|(name, dialect)| (name, octets(name), dialect))).collect()
}

/// Dissects octets in both styles, which must agree; gives the JSON.
fn dissected(octets: &[u8], options: Options) -> serde_json::Value {
    let (shown, totals) = shown_as(Kind::Raw, octets, options, TEXT);
    let json = json_as(Kind::Raw, octets, options);
    let totals = totals.expect("octets are read");
    assert_eq!(shown.matches("\ndamaged ").count() as u64, totals.damages, "{shown}");
    assert_eq!(shown.matches("            ! ").count() as u64, totals.warnings, "{shown}");
    for item in json["items"].as_array().expect("a list") {
        assert!(item["offset"].as_u64().expect("an offset") <= octets.len() as u64, "{item}");
    }
    json
}

/// Proves that every truncation of every vector is dissected up to its end, and that it is damaged unless it
/// is cut between two units.
#[test]
fn every_truncation_is_dissected_up_to_its_end() {
    for (name, whole, dialect) in vectors() {
        let all = json(&whole, speaking(dialect));
        let begins: Vec<u64> = all["items"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|item| item["offset"].as_u64())
            .collect();
        // A recording that is truncated within its first words may be recognised as the other protocol.
        for have in 12..whole.len() {
            let cut = dissected(&whole[..have], speaking(dialect));
            let is_between = begins.contains(&(have as u64));
            assert_eq!(cut["damages"] == 0, is_between, "{name} cut to {have}: {cut}");
            let object =
                cut["items"].as_array().expect("a list").iter().filter(|item| item.get("error").is_none());
            let whole_items = begins.iter().filter(|begin| **begin < have as u64).count();
            let count = object.count();
            assert!(
                count == whole_items || (!is_between && count + 1 == whole_items),
                "{name} cut to {have}: {cut}"
            );
        }
        for have in 0..12 {
            dissected(&whole[..have], speaking(dialect));
        }
    }
}

/// Proves that text and JSON agree whatever bit is flipped.
#[test]
fn every_flipped_bit_is_dissected() {
    for (_, whole, dialect) in vectors() {
        for at in (0..whole.len()).step_by(1 + whole.len() / 100) {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                dissected(&flipped, speaking(dialect));
            }
        }
    }
}

/// Proves that hex text with marks, and captures, are dissected or refused wherever they are cut.
#[test]
fn every_truncation_of_a_text_is_dissected_or_refused() {
    for name in ["impi-captures/long.txt", "impi-ssend.hex", "impi-long.hex"] {
        let text = read(name);
        for have in (0..text.len()).step_by(7) {
            let (shown, result) = shown(&text.as_bytes()[..have], speaking(Dialect::Final), TEXT);
            match result {
                Ok(totals) => {
                    assert_eq!(shown.matches("\ndamaged ").count() as u64, totals.damages, "{shown}")
                }
                Err(error) => assert!(error.starts_with("line "), "{name} cut to {have}: {error}"),
            }
        }
    }
}

/// Proves that hex text without line ends, and long lines, are read.
#[test]
fn lines_of_any_length_are_read() {
    let octets = stream(&[with_data(down(DataSync), 70_000, 70_000), with_data(down(Data), 3, 3)]);
    let wanted = json(&octets, speaking(Dialect::Final));
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let spaced: String = octets.iter().map(|octet| format!("{octet:02x} ")).collect();
    for text in [digits, spaced] {
        let object = json(text.as_bytes(), speaking(Dialect::Final));
        assert_eq!(object["packets"], wanted["packets"]);
        assert_eq!(object["items"][1]["offset"], wanted["items"][1]["offset"]);
        assert_eq!(object["items"][0]["data"], wanted["items"][0]["data"]);
    }
    let capture = format!("client0 -> server 4 {}41555448\n", " ".repeat(70_000));
    let (shown, result) = shown(capture.as_bytes(), speaking(Dialect::Final), TEXT);
    assert_eq!(result.expect("a line").damages, 1, "{shown}");
}

/// Proves that the number of directions is limited, and that the limit is reported once.
#[test]
fn directions_above_the_limit_are_reported_once() {
    let text: String = (1..6000).map(|number| format!("# host {number} to host 0\n00\n")).collect();
    let found = json(text.as_bytes(), speaking(Dialect::Final));
    let all = found["items"].as_array().expect("a list");
    let refused = all.iter().filter(|item| item["error"] == "more than 4096 directions").count();
    assert_eq!((refused, &found["damages"]), (1, &serde_json::json!(4097)));
}
