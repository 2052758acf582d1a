//! Octets that are cut, flipped, or come in pieces.

use std::io::{self, Read};

use mpjdev_cli::inspect::impi::{Question, Style, explain};
use mpjdev_cli::inspect::input::Kind;
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::packet::PacketType::{Data, DataSync};

use crate::support::{TEXT, ask, down, json, json_as, octets, read, stream, tell, tell_as, with_data};

const VECTORS: [(&str, Dialect); 6] = [
    ("impi-startup/flow.hex", Dialect::Final),
    ("impi-startup/key.hex", Dialect::Final),
    ("impi-startup/draft.hex", Dialect::Draft),
    ("impi-collective.hex", Dialect::Final),
    ("impi-cancel.hex", Dialect::Final),
    ("impi-draft.hex", Dialect::Draft),
];

/// Explains octets in both styles, which must agree; gives the JSON.
fn explored(octets: &[u8], question: Question) -> serde_json::Value {
    let (shown, sums) = tell_as(Kind::Raw, octets, question, TEXT);
    let json = json_as(Kind::Raw, octets, question);
    let sums = sums.expect("octets are read");
    assert_eq!(shown.matches("\ndamaged ").count() as u64, sums.damages, "{shown}");
    assert_eq!(shown.matches("            ! ").count() as u64, sums.warnings, "{shown}");
    for item in json["items"].as_array().expect("a list") {
        assert!(item["offset"].as_u64().expect("an offset") <= octets.len() as u64, "{item}");
    }
    json
}

/// Proves that every truncation of every vector is explained up to where it makes sense, and that what is missing is said
/// unless it is cut between two messages.
#[test]
fn every_truncation_is_explained_up_to_its_end() {
    for (name, dialect) in VECTORS {
        let whole = octets(name);
        let all = json(&whole, ask(dialect));
        let begins: Vec<u64> = all["items"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|item| item["offset"].as_u64())
            .collect();
        // A recording that is cut within its first words may be taken for something else.
        for have in 12..whole.len() {
            let cut = explored(&whole[..have], ask(dialect));
            let is_between = begins.contains(&(have as u64));
            assert_eq!(cut["damages"] == 0, is_between, "{name} cut to {have}: {cut}");
            let told =
                cut["items"].as_array().expect("a list").iter().filter(|item| item.get("error").is_none());
            let whole_items = begins.iter().filter(|begin| **begin < have as u64).count();
            let count = told.count();
            assert!(
                count == whole_items || (!is_between && count + 1 == whole_items),
                "{name} cut to {have}: {cut}"
            );
        }
        for have in 0..12 {
            explored(&whole[..have], ask(dialect));
        }
    }
}

/// Proves that no flipped bit confuses anything.
#[test]
fn every_flipped_bit_is_explained() {
    for (name, dialect) in VECTORS {
        let whole = octets(name);
        for at in (0..whole.len()).step_by(1 + whole.len() / 100) {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                explored(&flipped, ask(dialect));
            }
        }
    }
}

/// Proves that hex text with marks and captures are explained, cut anywhere.
#[test]
fn every_truncation_of_a_text_is_explained_or_refused() {
    for name in ["impi-captures/long.txt", "impi-ssend.hex", "impi-long.hex"] {
        let text = read(name);
        for have in (0..text.len()).step_by(7) {
            let (shown, result) = tell(&text.as_bytes()[..have], ask(Dialect::Final), TEXT);
            match result {
                Ok(sums) => assert_eq!(shown.matches("\ndamaged ").count() as u64, sums.damages, "{shown}"),
                Err(error) => assert!(error.starts_with("line "), "{name} cut to {have}: {error}"),
            }
        }
    }
}

/// A reader that gives so many octets at a time.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(self.0.len()).min(buffer.len());
        let (now, later) = self.0.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.0 = later;
        Ok(len)
    }
}

/// Proves that the same comes out however the input comes in.
#[test]
fn an_explanation_does_not_depend_on_the_pieces_of_its_input() {
    let long = stream(&[with_data(down(DataSync), 70_000, 70_000), with_data(down(Data), 3, 3)]);
    let inputs = [
        octets("impi-startup/key.hex"),
        octets("impi-collective.hex"),
        read("impi-captures/flow.txt").into_bytes(),
        read("impi-startup/key.hex").into_bytes(),
        long,
    ];
    for input in inputs {
        let whole = tell(&input, ask(Dialect::Final), Style::Json).0;
        for piece_len in [1, 3, 100, 65_535, 65_537] {
            let mut out = Vec::new();
            let slowly = Slowly(&input, piece_len);
            let sums = explain(slowly, Kind::Auto, ask(Dialect::Final), Style::Json, &mut out);
            sums.expect("it is read");
            assert_eq!(String::from_utf8(out).expect("UTF-8"), whole, "pieces of {piece_len}");
        }
    }
}

/// Proves that hex text without line ends, and lines longer than what is in memory, are read.
#[test]
fn lines_of_any_length_are_read() {
    let octets = stream(&[with_data(down(DataSync), 70_000, 70_000), with_data(down(Data), 3, 3)]);
    let wanted = json(&octets, ask(Dialect::Final));
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let spaced: String = octets.iter().map(|octet| format!("{octet:02x} ")).collect();
    for text in [digits, spaced] {
        let told = json(text.as_bytes(), ask(Dialect::Final));
        assert_eq!(told["packets"], wanted["packets"]);
        assert_eq!(told["items"][1]["offset"], wanted["items"][1]["offset"]);
        assert_eq!(told["items"][0]["data"], wanted["items"][0]["data"]);
    }
    let capture = format!("client0 -> server 1 {}00\n", " ".repeat(70_000));
    let (_, result) = tell(capture.as_bytes(), ask(Dialect::Final), TEXT);
    assert!(result.is_err(), "too long for a line of a capture");
}

/// Proves that a reader that fails is an error with what came before told.
#[test]
fn a_reader_that_fails_is_an_error() {
    struct Fails(usize);
    impl Read for Fails {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("no more"));
            }
            let len = self.0.min(buffer.len());
            self.0 -= len;
            buffer[..len].fill(0);
            Ok(len)
        }
    }
    let mut out = Vec::new();
    let result = explain(Fails(200_000), Kind::Auto, ask(Dialect::Final), Style::Json, &mut out);
    assert_eq!(result.expect_err("it fails").to_string(), "no more");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("whole JSON");
    assert_eq!(json["error"], "no more");
    assert!(json["packets"].as_u64().is_some_and(|packets| packets > 500), "{}", json["packets"]);
}
