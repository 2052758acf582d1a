//! Tests of packets without marks, and of violations within one packet.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::packet::PacketType::{
    Cancel, CancelNo, CancelYes, Data, DataSync, Fini, ProtoAck, SyncAck,
};
use serde_json::{Value, json};

use crate::support::{P, complaints, down, items, json, octets, speaking, stream, text, up, with_data};

fn found(packets: &[Packet]) -> Vec<String> {
    complaints(&json(&stream(packets), speaking(Dialect::Final)))
}

fn meanings(packets: &[Packet]) -> Vec<String> {
    let object = json(&stream(packets), speaking(Dialect::Final));
    items(&object).iter().map(|item| item["meaning"].as_str().expect("a meaning").to_owned()).collect()
}

/// A long message of 30 octets: its first packet, its SyncAck, its other packets.
fn long() -> [Packet; 4] {
    let ids = |packet: Packet| Packet { srqid: 7, drqid: 9, ..packet };
    [
        Packet { srqid: 7, ..with_data(down(DataSync), 10, 30) },
        ids(up(SyncAck)),
        ids(with_data(down(Data), 10, 30)),
        ids(with_data(down(Data), 10, 30)),
    ]
}

/// Proves the meaning of each kind of packet.
#[test]
fn packets_have_the_meaning_of_their_headers() {
    assert_eq!(
        meanings(&long()),
        [
            "first packet of a long message of 30 octets",
            "srqid 7 is matched; the rest of a long message names drqid 9",
            "10 octets of a long message of 30 octets",
            "10 octets of a long message of 30 octets",
        ]
    );
    let collective = |tag, cid| Packet { tag, cid, ..with_data(down(Data), 0, 0) };
    let packets = [
        with_data(down(Data), 3, 3),
        Packet { srqid: 4, ..with_data(down(DataSync), 0, 0) },
        Packet { srqid: 4, ..up(SyncAck) },
        up(ProtoAck),
        collective(110, 1),
        collective(120, 7),
        collective(999, 3),
        collective(190, 0),
        collective(110, 2),
        collective(3, 1 << 63),
        collective(2, 1 << 62),
        Packet { srqid: 6, ..with_data(down(DataSync), 16, 100) },
        Packet { srqid: 5, ..down(Cancel) },
        Packet { srqid: 5, ..up(CancelYes) },
        Packet { srqid: 5, ..up(CancelNo) },
        down(Fini),
    ];
    assert_eq!(
        meanings(&packets),
        [
            "short message of 3 octets",
            "short synchronous message of 0 octets",
            "srqid 4 is matched",
            "acknowledges ackmark packets",
            "barrier: empty message",
            "bcast: empty message",
            "collective: empty message",
            "perhaps reduce, which LAM sends on this cid: empty message",
            "empty message",
            "second half of an mpjdev message: empty message",
            "between ranks of mpjdev: empty message",
            "announces a message of 100 octets",
            "asks to cancel srqid 5",
            "srqid 5 is cancelled",
            "srqid 5 is not cancelled",
            "the host sends no more data",
        ]
    );
    for sound in [&long()[..], &packets] {
        assert_eq!(found(sound), [""; 0]);
    }
}

/// Proves each violation within one packet, with its text.
#[test]
fn packets_that_violate_the_protocol_are_warned_of() {
    for (packet, wanted) in [
        (with_data(down(Data), 2, 1), "len 2 is above msglen, 1"),
        (with_data(down(DataSync), 2, 1), "len 2 is above msglen, 1"),
        (Packet { tag: -1, ..with_data(down(Data), 1, 1) }, "tag -1 is negative"),
        (Packet { lsrank: -1, ..with_data(down(Data), 1, 1) }, "lsrank -1 is negative"),
        (with_data(down(Data), 0, 30), "len is 0 in the middle of a message"),
    ] {
        assert_eq!(found(&[packet]), [wanted], "{packet:?}");
    }
}

/// Proves that a stream is recognised with and without its handshake, even if the number could be a type.
#[test]
fn handshakes_are_recognised_without_marks() {
    for name in ["impi-hello.hex", "impi-ssend.hex", "impi-collective.hex", "impi-flow.hex"] {
        let packets = octets(name);
        let plain = json(&packets, speaking(Dialect::Final));
        assert_eq!(complaints(&plain), [""; 0], "{name}");
        assert_eq!(plain["items"][0]["offset"], 0);
        assert!(plain["items"][0]["type"] != "handshake", "{name}: {plain}");
        for number in [1u32, 2, 7, 8, 300, 65535] {
            let opened = json(&[&number.to_be_bytes()[..], &packets].concat(), speaking(Dialect::Final));
            assert_eq!(complaints(&opened), [""; 0], "{name}");
            let handshake = &opened["items"][0];
            assert_eq!(
                (&handshake["type"], &handshake["fields"]),
                (&json!("handshake"), &json!({"number": number}))
            );
            let essence = |item: &Value| [item["type"].clone(), item["fields"].clone()];
            let all = |object: &Value| items(object).into_iter().map(essence).collect::<Vec<_>>();
            assert_eq!(all(&opened), all(&plain), "{name} behind {number}");
        }
    }
    let long = stream(&long());
    assert_eq!(json(&long, speaking(Dialect::Final))["items"][0]["type"], "DataSync");
    let opened = json(&[&[0, 0, 0, 1], &long[..]].concat(), speaking(Dialect::Final));
    assert_eq!(opened["items"][0]["type"], "handshake");
    assert_eq!(opened["packets"], 4);
}

/// Proves that the number of a host that connects is compared with the marks of the recording.
#[test]
fn handshakes_that_contradict_their_marks_are_warned_of() {
    let digits = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let hex = |parts: &[(&str, Vec<u8>)]| -> String {
        parts.iter().map(|(mark, octets)| format!("# {mark}\n{}\n", digits(octets))).collect()
    };
    let found =
        |parts: &[(&str, Vec<u8>)]| complaints(&json(hex(parts).as_bytes(), speaking(Dialect::Final)));
    let packet = |packet: Packet| stream(&[packet]);
    let data = || packet(with_data(down(Data), 1, 1));
    assert_eq!(
        found(&[("host 1 to host 0: handshake", vec![0, 0, 0, 1]), ("host 1 to host 0", data())]),
        [""; 0]
    );
    assert_eq!(found(&[("host 9 to host 0", vec![0, 0, 0, 9]), ("host 9 to host 0", data())]), [""; 0]);
    assert_eq!(found(&[("host 1 to host 0: handshake", vec![0, 0, 0, 2])]), ["host 1 calls itself 2"]);
    assert_eq!(
        found(&[("host 0 to host 1: handshake", vec![0, 0, 0, 0])]),
        ["the host with the higher number connects"]
    );
    assert_eq!(
        found(&[("host 1 to host 0: handshake", vec![0, 0, 1])]),
        ["3 octets of a handshake, 4 needed"]
    );
}

/// A packet with these data: a whole message, or the beginning of one.
fn carrying(data: &[u8], msglen: usize) -> Vec<u8> {
    let kind = if data.len() < msglen { DataSync } else { Data };
    let packet = Packet { srqid: 1, ..with_data(down(kind), data.len() as u32, msglen as u64) };
    [&stream(&[packet])[..128], data].concat()
}

/// Proves that an mpjdev message is recognised in the data if it is whole, split or cut, and that other
/// octets are not.
#[test]
fn mpjdev_messages_are_recognised_in_data() {
    let message = octets("example-le.hex");
    assert_eq!(message.len(), 76);
    let shown = |octets: &[u8]| text(octets, speaking(Dialect::Final));
    let line = "              mpjdev message: little-endian, 48 octets of primary payload: int[3], byte[5], object[2], 12 octets \
                of secondary payload\n";
    assert!(shown(&carrying(&message, 76)).contains(line), "{}", shown(&carrying(&message, 76)));
    let split = shown(&carrying(&message[..64], 64));
    assert!(split.contains(", 12 octets of secondary payload in a message of its own\n"), "{split}");
    let stream = shown(&carrying(&message[64..], 12));
    assert!(stream.contains("a Java serialization stream (ac ed 00 05)\n"), "{stream}");
    let begun = shown(&carrying(&message[..40], 76));
    assert!(begun.contains("48 octets of primary payload: int[3], byte[5], ...\n"), "{begun}");
    let object = json(&carrying(&message, 76), speaking(Dialect::Final));
    assert_eq!(
        items(&object)[0]["data"]["message"],
        json!({
            "encoding": "little",
            "primary_len": 48,
            "sections": [
                {"type": "int", "count": 3},
                {"type": "byte", "count": 5},
                {"type": "object", "count": 2},
            ],
            "more_sections": false,
            "secondary_len": 12,
            "split": false,
        })
    );
    for (data, msglen) in [
        (&message[..75], 75),
        (&message[1..], 75),
        (&[&message[..], &[0]].concat()[..], 77),
        (&message[..40], 63),
        (&[0; 100], 100),
        (b"hello-impi", 10),
    ] {
        assert!(!shown(&carrying(data, msglen)).contains("mpjdev message"), "{data:02x?}");
    }
    let other = octets("damaged-type-9-be.hex");
    assert!(!shown(&carrying(&other, other.len())).contains("mpjdev message"));
}

/// Proves that the first octets of data are shown as digits and as text without control characters.
#[test]
fn data_are_shown_in_part_and_without_control_characters() {
    let shown = text(&carrying(b"\x1b[2J evil \x7f\xff", 12), speaking(Dialect::Final));
    assert!(shown.contains("| 1b 5b 32 4a 20 65 76 69 6c 20 7f ff | .[2J evil ..\n"), "{shown:?}");
    let shown = text(&carrying(&[b'a'; 17], 17), speaking(Dialect::Final));
    let digits = "61 ".repeat(16);
    assert!(shown.contains(&format!("| {digits}... | {} ...\n", "a".repeat(16))), "{shown}");
}

/// The greeting and the proof that an mpjdev host sends before its packets.
fn opening(nonce: u8, proof: u8) -> [Vec<u8>; 2] {
    [[&b"mpjmesh\x01"[..], &[nonce; 16]].concat(), vec![proof; 32]]
}

/// Proves that greetings and proofs of mpjdev hosts are recognised in one direction and in both, that a
/// refusal has a warning, and that no nonce or proof is shown.
#[test]
fn mpjdev_hosts_open_with_greetings_and_proofs() {
    let [greeting, proof] = opening(0xab, 0xcd);
    let [other_greeting, other_proof] = opening(0x12, 0x34);
    let (down, up) = (stream(&[with_data(down(Data), 1, 1)]), stream(&[with_data(up(Data), 1, 1)]));
    let kinds = |octets: &[u8]| -> String {
        let object = json(octets, speaking(Dialect::Final));
        assert_eq!(
            (complaints(&object), &object["packets"]),
            (vec![], &json!(octets.len() / 129)),
            "{object}"
        );
        let all = object["items"].as_array().expect("a list").iter();
        all.map(|item| format!("{} ", item["type"].as_str().expect("a type"))).collect()
    };
    for number in [1u32, 7, 8, 300] {
        let number = number.to_be_bytes();
        let connector = [&number[..], &greeting, &proof, &down].concat();
        assert_eq!(kinds(&connector), "handshake greeting proof Data ");
        let both = [&number[..], &greeting, &other_greeting, &proof, &other_proof, &down, &up].concat();
        assert_eq!(kinds(&both), "handshake greeting greeting proof proof Data Data ");
        let shown = text(&both, speaking(Dialect::Final));
        assert!(!shown.contains("ab") && !shown.contains("cdcd") && !shown.contains("3434"), "{shown}");
    }
    assert_eq!(kinds(&[&other_greeting[..], &other_proof, &up].concat()), "greeting proof Data ");
    let refused = [&[0, 0, 0, 9][..], &greeting, &other_greeting, &proof, &[0; 32]].concat();
    let object = json(&refused, speaking(Dialect::Final));
    assert_eq!(complaints(&object), ["the hosts have different keys, or belong to different jobs"]);
    for (cut, why) in [(7, "7 octets of a greeting, 24 needed"), (24 + 5, "5 octets of a proof, 32 needed")] {
        let cut = &[&[0, 0, 0, 9][..], &greeting, &proof].concat()[..4 + cut];
        assert_eq!(complaints(&json(cut, speaking(Dialect::Final))), [why]);
    }
}

/// Proves that the marked process ids of mpjdev are shown without their mark.
#[test]
fn process_ids_of_mpjdev_are_shown_without_their_mark() {
    let ours = |pid| mpjdev_proto::impi::Proc { pid, ..P };
    let packet = Packet { src: ours(0x6d70_6a00_0000_1267), dest: ours(0xdac0_1267), ..down(ProtoAck) };
    let octets = stream(&[packet]);
    assert_eq!(text(&octets, speaking(Dialect::Final)).matches("/mpj:4711").count(), 2);
    let object = json(&octets, speaking(Dialect::Final));
    assert_eq!(items(&object)[0]["fields"]["src"]["pid"], 0x6d70_6a00_0000_1267_i64);
    let opened = json(&[&[0, 0, 0, 2], &octets[..]].concat(), speaking(Dialect::Final));
    assert_eq!(opened["items"][0]["type"], "handshake");
}
