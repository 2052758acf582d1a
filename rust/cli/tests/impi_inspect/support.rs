//! Recordings by name, and what is told of them.

use std::fs;
use std::path::PathBuf;

use mpjdev_cli::inspect::impi::{Question, Stop, Style, Sums, explain};
use mpjdev_cli::inspect::input::{Kind, decode};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::{self};
use serde_json::Value;

pub(crate) const TEXT: Style = Style::Text { all: false };

/// A file of tests/golden.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

pub(crate) fn read(name: &str) -> String {
    let path = path(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The octets of a vector.
pub(crate) fn octets(name: &str) -> Vec<u8> {
    decode(read(name).into_bytes(), Kind::Hex).expect("hex text")
}

pub(crate) fn ask(dialect: Dialect) -> Question {
    Question { dialect, ..Question::default() }
}

/// What is told, and what comes of it.
pub(crate) fn tell(input: &[u8], question: Question, style: Style) -> (String, Result<Sums, String>) {
    tell_as(Kind::Auto, input, question, style)
}

pub(crate) fn tell_as(
    kind: Kind,
    input: &[u8],
    question: Question,
    style: Style,
) -> (String, Result<Sums, String>) {
    let mut out = Vec::new();
    let result = explain(input, kind, question, style, &mut out);
    let result = result.map_err(|stop| match stop {
        Stop::Input(error) => error.to_string(),
        Stop::Output(error) => panic!("a vector takes it: {error}"),
    });
    (String::from_utf8(out).expect("UTF-8"), result)
}

pub(crate) fn text(input: &[u8], question: Question) -> String {
    tell(input, question, TEXT).0
}

pub(crate) fn json(input: &[u8], question: Question) -> Value {
    json_as(Kind::Auto, input, question)
}

pub(crate) fn json_as(kind: Kind, input: &[u8], question: Question) -> Value {
    let (out, result) = tell_as(kind, input, question, Style::Json);
    let json: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    if let Ok(sums) = result {
        assert_eq!(json["warnings"].as_u64(), Some(sums.warnings));
        assert_eq!(json["damages"].as_u64(), Some(sums.damages));
    }
    json
}

/// The items that are commands or packets.
pub(crate) fn items(json: &Value) -> Vec<&Value> {
    let all = json["items"].as_array().expect("a list");
    all.iter()
        .filter(|item| {
            item["type"]
                .as_str()
                .is_some_and(|kind| !["handshake", "greeting", "proof", "end"].contains(&kind))
        })
        .collect()
}

/// All warnings, and what stops making sense.
pub(crate) fn complaints(json: &Value) -> Vec<String> {
    let all = json["items"].as_array().expect("a list");
    let words = |item: &Value| {
        let warnings = item["warnings"].as_array().into_iter().flatten().chain(item.get("error"));
        warnings.map(|text| text.as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    all.iter().flat_map(words).collect()
}

/// The processes of scripts.
pub(crate) const P: impi::Proc = impi::Proc { host_id: *b"the first host..", pid: 11 };
pub(crate) const Q: impi::Proc = impi::Proc { host_id: *b"the other host..", pid: -22 };

/// A packet of a script, from P to Q.
pub(crate) fn down(kind: PacketType) -> Packet {
    Packet::new(kind, P, Q)
}

/// One from Q to P.
pub(crate) fn up(kind: PacketType) -> Packet {
    Packet::new(kind, Q, P)
}

/// Data, or DataSync, with so many octets of a message of so many.
pub(crate) fn with_data(packet: Packet, len: u32, msglen: u64) -> Packet {
    Packet { len, msglen, tag: 5, lsrank: 1, ..packet }
}

/// A stream of both directions.
pub(crate) fn stream(packets: &[Packet]) -> Vec<u8> {
    let mut octets = Vec::new();
    for packet in packets {
        let mut header = [0; HEADER_LEN];
        packet.emit(Dialect::Final, &mut header);
        octets.extend(header);
        octets.extend(std::iter::repeat_n(b'x', packet.data_len() as usize));
    }
    octets
}
