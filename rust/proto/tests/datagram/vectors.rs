//! Reads the golden vectors of datagrams: `datagram-NAME.hex` and `datagram-NAME.txt` as
//! tests/golden/MANIFEST.md describes them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use mpjdev_proto::datagram::extension::{Extension, Fragment, Grant, Request, Sack};
use mpjdev_proto::datagram::header::{Header, Mode, Numbers};
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::sequence::FullSequence;

/// One datagram of a vector.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) octets: Vec<u8>,
    /// The packet that the description states, or the words of the error.
    pub(crate) what: Result<Packet, String>,
}

/// One vector.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) is_reliable: bool,
    /// Whether emitting the packets gives the octets again.
    pub(crate) canonical: bool,
    pub(crate) datagrams: Vec<Described>,
}

/// All of them, in the order of their names.
pub(crate) fn all() -> Vec<Vector> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .expect("the folder of golden vectors")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("datagram-") && name.ends_with(".hex"))
        .map(|name| name.trim_end_matches(".hex").to_owned())
        .collect();
    names.sort();
    names.iter().map(|name| read(name)).collect()
}

fn read(name: &str) -> Vector {
    let text = |ending: &str| {
        let path = folder().join(format!("{name}.{ending}"));
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"))
    };
    let octets = hex(&text("hex"));
    let mut vector =
        Vector { name: name.to_owned(), is_reliable: false, canonical: true, datagrams: Vec::new() };
    let mut at = 0;
    for line in text("txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (len, what) = match words[..] {
            ["unet"] => continue,
            ["reliable"] => {
                vector.is_reliable = true;
                continue;
            }
            ["noncanonical"] => {
                vector.canonical = false;
                continue;
            }
            ["packet", len, ref fields @ ..] => (len, Ok(packet(fields))),
            ["error", len, ref words @ ..] => (len, Err(words.join(" "))),
            ref other => panic!("{name}: unknown line {other:?}"),
        };
        let end = at + number::<usize>(len);
        vector.datagrams.push(Described { octets: octets[at..end].to_vec(), what });
        at = end;
    }
    assert_eq!(at, octets.len(), "{name}: octets that no line describes");
    vector
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn hex(text: &str) -> Vec<u8> {
    let words = text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
    words.filter(|word| !word.ends_with(':')).map(octet).collect()
}

fn octet(word: &str) -> u8 {
    assert_eq!(word.len(), 2, "one octet, two digits: {word}");
    u8::from_str_radix(word, 16).expect("hexadecimal digits")
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number for its field"))
}

fn sequence(word: &str) -> Option<FullSequence> {
    (word != "-").then(|| FullSequence::of(number(word)))
}

fn mode(word: &str) -> Mode {
    match word {
        "SHORT" => Mode::Short,
        "LONG" => Mode::Long,
        "REQUEST_SEND" => Mode::RequestSend,
        "DO_GET" => Mode::DoGet,
        "OK_TO_SEND" => Mode::OkToSend,
        "ANTI_SEND" => Mode::AntiSend,
        "ANTI_SEND_OK" => Mode::AntiSendOk,
        "DONE_GET" => Mode::DoneGet,
        "CONT_GET" => Mode::ContGet,
        "FLOW" => Mode::Flow,
        "PROTO_ACK" => Mode::ProtoAck,
        "ACK_PROTO" => Mode::AckProto,
        "DONE_SEND" => Mode::DoneSend,
        other => panic!("unknown mode {other}"),
    }
}

fn packet(fields: &[&str]) -> Packet {
    let fields: HashMap<&str, &str> =
        fields.iter().map(|field| field.split_once('=').expect("NAME=VALUE")).collect();
    let header = Header {
        numbers: Numbers::default(),
        mode: mode(fields["mode"]),
        context_id: number(fields["context_id"]),
        lrank: number(fields["lrank"]),
        tag: number(fields["tag"]),
        len: number(fields["len"]),
    };
    let extension = if fields.contains_key("connection") { extension(&fields) } else { Extension::default() };
    let mut packet = Packet { header, extension };
    packet.number(sequence(fields["seq"]), sequence(fields["ack"]));
    packet
}

fn extension(fields: &HashMap<&str, &str>) -> Extension {
    let flags: Vec<&str> = fields.get("flags").map(|flags| flags.split(',').collect()).unwrap_or_default();
    let has = |flag: &str| flags.contains(&flag);
    let numbers = |name: &str| -> Option<Vec<u64>> {
        fields.get(name).map(|words| words.split(',').map(number).collect())
    };
    let extension = Extension {
        connection: number(fields["connection"]),
        // Set with the numbers.
        seq_high: 0,
        ack_high: 0,
        window: number(fields["window"]),
        ack_req: has("ACK_REQ"),
        nak: has("NAK"),
        fin: has("FIN"),
        rst: has("RST"),
        ecn_echo: has("ECN_ECHO"),
        duplicate: has("DUPLICATE"),
        sync: has("SYNC"),
        checked: has("CHECKED"),
        sack: numbers("sack").map(|words| Sack::new(&words)),
        context: fields.get("context").map(|word| number(word)),
        request: numbers("request").map(|n| Request { message_id: n[0] as u32, total: n[1] }),
        grant: numbers("grant").map(|n| Grant {
            message_id: n[0] as u32,
            destination_id: n[1] as u32,
            granted: n[2],
        }),
        fragment: numbers("fragment").map(|n| Fragment {
            message_id: n[0] as u32,
            destination_id: n[1] as u32,
            total: n[2],
            offset: n[3],
        }),
        delay_us: fields.get("delay").map(|word| number(word)),
    };
    let blocks = ["sack", "context", "request", "grant", "fragment", "delay"];
    let blocks = blocks.iter().filter(|block| fields.contains_key(*block)).count();
    assert_eq!(
        flags.len() + blocks,
        extension.flags().count_ones() as usize,
        "a flag is unknown: {fields:?}"
    );
    extension
}
