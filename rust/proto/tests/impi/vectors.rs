//! Reads the golden vectors of IMPI: `impi-NAME.hex` and `impi-NAME.txt` as tests/golden/MANIFEST.md
//! describes them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::{Dialect, Proc};

/// A packet of a vector.
#[derive(Debug)]
pub(crate) struct Described {
    /// The host that sent it.
    pub(crate) from: u32,
    /// The octets of its header.
    pub(crate) octets: [u8; HEADER_LEN],
    /// The packet that the description states.
    pub(crate) packet: Packet,
}

/// One vector.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    /// Whether emitting the packets gives the octets again.
    pub(crate) canonical: bool,
    pub(crate) packets: Vec<Described>,
    /// The one header of a damaged vector, the name of the field that is wrong, and its value.
    pub(crate) error: Option<([u8; HEADER_LEN], String, i64)>,
}

/// All of them, in the order of their names.
pub(crate) fn all() -> Vec<Vector> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .expect("the folder of golden vectors")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("impi-") && name.ends_with(".hex"))
        .map(|name| name.trim_end_matches(".hex").to_owned())
        .collect();
    names.sort();
    names.iter().map(|name| read(name)).collect()
}

/// One of them.
pub(crate) fn read(name: &str) -> Vector {
    let text = |ending: &str| {
        let path = folder().join(format!("{name}.{ending}"));
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"))
    };
    let octets = hex(&text("hex"));
    let mut vector = Vector {
        name: name.to_owned(),
        dialect: Dialect::Final,
        canonical: true,
        packets: Vec::new(),
        error: None,
    };
    let mut at = 0;
    let mut header = |data: usize| -> [u8; HEADER_LEN] {
        let header = octets[at..at + HEADER_LEN].try_into().expect("128 octets");
        at += HEADER_LEN + data;
        header
    };
    for line in text("txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["dialect", "final"] => vector.dialect = Dialect::Final,
            ["dialect", "draft"] => vector.dialect = Dialect::Draft,
            ["noncanonical"] => vector.canonical = false,
            ["packet", from, kind, data, ref fields @ ..] => vector.packets.push(Described {
                from: number(from),
                octets: header(number(data)),
                packet: packet(kind, fields),
            }),
            ["error", field, value] => vector.error = Some((header(0), field.to_owned(), number(value))),
            ref other => panic!("{name}: unknown line {other:?}"),
        }
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

fn packet(kind: &str, fields: &[&str]) -> Packet {
    let fields: HashMap<&str, &str> =
        fields.iter().map(|field| field.split_once('=').expect("NAME=VALUE")).collect();
    assert_eq!(fields.len(), 12, "{fields:?}");
    let kind = match kind {
        "Data" => PacketType::Data,
        "DataSync" => PacketType::DataSync,
        "ProtoAck" => PacketType::ProtoAck,
        "SyncAck" => PacketType::SyncAck,
        "Cancel" => PacketType::Cancel,
        "CancelYes" => PacketType::CancelYes,
        "CancelNo" => PacketType::CancelNo,
        "Fini" => PacketType::Fini,
        other => panic!("unknown type {other}"),
    };
    Packet {
        kind,
        len: number(fields["len"]),
        src: process(fields["src"]),
        dest: process(fields["dest"]),
        srqid: number(fields["srqid"]),
        drqid: number(fields["drqid"]),
        msglen: number(fields["msglen"]),
        lsrank: number(fields["lsrank"]),
        tag: number(fields["tag"]),
        cid: number(fields["cid"]),
        seqnum: number(fields["seqnum"]),
        count: number(fields["count"]),
        dtype: number(fields["dtype"]),
    }
}

fn process(word: &str) -> Proc {
    let (host_id, pid) = word.split_once('/').expect("HOSTID/PID");
    let octets: Vec<u8> = (0..host_id.len()).step_by(2).map(|at| octet(&host_id[at..at + 2])).collect();
    Proc { host_id: octets.try_into().expect("16 octets"), pid: number(pid) }
}
