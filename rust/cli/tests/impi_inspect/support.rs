//! Recordings by name, and the output for them.

use std::fs;
use std::path::PathBuf;

use mpjdev_cli::inspect::impi::{Options, Stop, Style, Totals, dissect};
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

/// The octets that client 0 sends and receives in a vector of tests/golden/impi-startup.
pub(crate) fn of_client_0(name: &str) -> [Vec<u8>; 2] {
    let all = octets(&format!("impi-startup/{name}.hex"));
    let mut at = 0;
    let mut streams = [Vec::new(), Vec::new()];
    for line in read(&format!("impi-startup/{name}.txt")).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if !["send", "reply", "relayed"].contains(&words[0]) {
            continue;
        }
        let len: usize = words[2].parse().expect("octets");
        if words[1] == "0" {
            streams[usize::from(words[0] != "send")].extend(&all[at..at + len]);
        }
        at += len;
    }
    streams
}

pub(crate) fn speaking(dialect: Dialect) -> Options {
    Options { dialect, ..Options::default() }
}

/// The output for a recording, and the totals or the error.
pub(crate) fn shown(input: &[u8], options: Options, style: Style) -> (String, Result<Totals, String>) {
    shown_as(Kind::Auto, input, options, style)
}

pub(crate) fn shown_as(
    kind: Kind,
    input: &[u8],
    options: Options,
    style: Style,
) -> (String, Result<Totals, String>) {
    let mut out = Vec::new();
    let result = dissect(input.to_vec(), kind, options, style, &mut out);
    let result = result.map_err(|stop| match stop {
        Stop::Input(error) => error.to_string(),
        Stop::Output(error) => panic!("a vector takes it: {error}"),
    });
    (String::from_utf8(out).expect("UTF-8"), result)
}

pub(crate) fn text(input: &[u8], options: Options) -> String {
    shown(input, options, TEXT).0
}

pub(crate) fn json(input: &[u8], options: Options) -> Value {
    json_as(Kind::Auto, input, options)
}

pub(crate) fn json_as(kind: Kind, input: &[u8], options: Options) -> Value {
    let (out, result) = shown_as(kind, input, options, Style::Json);
    let json: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    if let Ok(totals) = result {
        assert_eq!(json["warnings"].as_u64(), Some(totals.warnings));
        assert_eq!(json["damages"].as_u64(), Some(totals.damages));
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

/// All warnings and all damage.
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

/// Data, or DataSync, with some of the octets of a message.
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
