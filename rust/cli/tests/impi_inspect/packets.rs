//! Packets without marks, and what breaks the protocol between two processes.

use mpjdev_cli::inspect::impi::{Agreed, Question};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::packet::PacketType::{
    Cancel, CancelNo, CancelYes, Data, DataSync, Fini, ProtoAck, SyncAck,
};
use serde_json::{Value, json};

use crate::support::{P, Q, ask, complaints, down, items, json, octets, stream, text, up, with_data};

fn found(packets: &[Packet]) -> Vec<String> {
    complaints(&json(&stream(packets), ask(Dialect::Final)))
}

fn meanings(packets: &[Packet]) -> Vec<String> {
    let told = json(&stream(packets), ask(Dialect::Final));
    items(&told).iter().map(|item| item["meaning"].as_str().expect("a meaning").to_owned()).collect()
}

/// A long message of 30 octets: its first packet, its SyncAck, its rest.
fn long() -> [Packet; 4] {
    let ids = |packet: Packet| Packet { srqid: 7, drqid: 9, ..packet };
    [
        Packet { srqid: 7, ..with_data(down(DataSync), 10, 30) },
        ids(up(SyncAck)),
        ids(with_data(down(Data), 10, 30)),
        ids(with_data(down(Data), 10, 30)),
    ]
}

/// Proves what each packet means in a stream of both directions.
#[test]
fn packets_mean_what_the_machine_would_make_of_them() {
    assert_eq!(
        meanings(&long()),
        [
            "first packet of a long message of 30 octets",
            "matched: the message of packet 1; its rest is to name drqid 9",
            "octets 10 to 19 of the message of packet 1",
            "octets 20 to 29 of the message of packet 1, which is complete",
        ]
    );
    let collective = |tag, cid| Packet { tag, cid, ..with_data(down(Data), 0, 0) };
    assert_eq!(
        meanings(&[
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
            Packet { srqid: 6, ..with_data(down(DataSync), 8, 100) },
            down(Fini),
        ]),
        [
            "short message of 3 octets",
            "short synchronous message of 0 octets",
            "matched: the synchronous message of packet 2",
            "acknowledges ackmark packets",
            "barrier: empty message",
            "bcast: empty message",
            "collective: empty message",
            "perhaps reduce, which LAM sends on this cid: empty message",
            "empty message",
            "second half of an mpjdev message: empty message",
            "between ranks of mpjdev: empty message",
            "announces a message of 100 octets",
            "its host says nothing more",
        ]
    );
    let message = || Packet { srqid: 5, ..with_data(down(Data), 1, 1) };
    let (ask, yes, no) = (
        Packet { srqid: 5, ..down(Cancel) },
        Packet { srqid: 5, ..up(CancelYes) },
        Packet { srqid: 5, ..up(CancelNo) },
    );
    assert_eq!(
        meanings(&[message(), ask, yes])[1..],
        ["asks for the message of packet 1 back", "the message of packet 1 is given back"]
    );
    assert_eq!(meanings(&[message(), ask, no])[2], "the message of packet 1 is not given back");
    for sound in [&long()[..], &[message(), ask, yes], &[message(), ask, no]] {
        assert_eq!(found(sound), [""; 0]);
    }
}

/// Proves each thing that packets may break, with the words that say so.
#[test]
fn packets_that_break_the_protocol_are_warned_of() {
    let [first, acknowledgement, rest, last] = long();
    let sync = Packet { srqid: 4, ..with_data(down(DataSync), 1, 1) };
    let matched = Packet { srqid: 4, ..up(SyncAck) };
    let eager = Packet { srqid: 5, ..with_data(down(Data), 1, 1) };
    let request = |srqid| Packet { srqid, ..down(Cancel) };
    let yes = |srqid| Packet { srqid, ..up(CancelYes) };
    // Something that shows that the other direction is heard.
    let hello = with_data(up(Data), 0, 0);
    for (packets, wanted) in [
        (vec![with_data(down(Data), 2, 1)], "len 2 is above msglen, 1"),
        (vec![Packet { tag: -1, ..with_data(down(Data), 1, 1) }], "tag -1 is negative"),
        (vec![Packet { lsrank: -1, ..with_data(down(Data), 1, 1) }], "lsrank -1 is negative"),
        (vec![first, acknowledgement, Packet { drqid: 8, ..rest }], "drqid 8 names no message that goes on"),
        (vec![hello, first, rest], "drqid 9 names no message that goes on"),
        (vec![first, acknowledgement, rest, last, last], "drqid 9 names no message that goes on"),
        (
            vec![first, acknowledgement, Packet { msglen: 31, ..rest }],
            "msglen is 31, that of its message is 30",
        ),
        (vec![first, acknowledgement, Packet { len: 0, ..rest }], "len is 0 in the middle of a message"),
        (
            vec![first, acknowledgement, Packet { len: 21, ..rest }],
            "10 octets and len 21 are above the message's msglen, 30",
        ),
        (vec![first, acknowledgement, acknowledgement], "the message of packet 1 has its SyncAck already"),
        (vec![sync, matched, matched], "the message of packet 1 has its SyncAck already"),
        (vec![sync, Packet { srqid: 3, ..matched }], "no message with srqid 3 waits for a SyncAck"),
        (vec![eager, Packet { srqid: 5, ..up(SyncAck) }], "the message of packet 1 waits for no SyncAck"),
        (vec![hello, sync, sync], "srqid 4 is still that of packet 2"),
        (
            vec![
                first,
                acknowledgement,
                Packet { srqid: 8, ..first },
                Packet { srqid: 8, ..acknowledgement },
            ],
            "drqid 9 is still that of srqid 7",
        ),
        (vec![request(5)], "no message had the srqid 5"),
        (vec![eager, request(5), request(5)], "a second time"),
        (vec![eager, yes(5)], "no message with srqid 5 waits for a CancelYes"),
        (vec![eager, Packet { srqid: 5, ..up(CancelNo) }], "no message with srqid 5 waits for a CancelNo"),
        (vec![sync, request(4), matched, yes(4)], "it was matched before"),
        (vec![sync, request(4), yes(4), matched], "the message of packet 1 was taken back"),
        (
            vec![with_data(down(Data), 1, 1), up(ProtoAck), up(ProtoAck)],
            "ProtoAck for 1 packet, 0 not acknowledged",
        ),
    ] {
        assert_eq!(found(&packets), [wanted], "{packets:?}");
    }
}

/// Proves that of one direction alone nothing is held against it that only the other could explain.
#[test]
fn one_direction_alone_is_not_blamed_for_the_other() {
    let [first, acknowledgement, rest, last] = long();
    let eager = Packet { srqid: 5, ..with_data(down(Data), 1, 1) };
    let there = [first, rest, last, eager, Packet { srqid: 5, ..down(Cancel) }];
    assert_eq!(found(&there), [""; 0]);
    assert_eq!(meanings(&there)[1], "octets 10 to 19 of the message of packet 1");
    let back = [acknowledgement, up(ProtoAck), Packet { srqid: 5, ..up(CancelYes) }];
    assert_eq!(found(&back), [""; 0]);
    assert_eq!(meanings(&back), ["matched: srqid 7", "acknowledges ackmark packets", "given back: srqid 5"]);
    let agreed = Agreed { ackmark: Some(1), hiwater: Some(1), ..Agreed::default() };
    let many = stream(&[with_data(down(Data), 1, 1); 5]);
    assert_eq!(complaints(&json(&many, Question { agreed, ..ask(Dialect::Final) })), [""; 0]);
}

/// Proves that a stream is recognised with and without the number that opens it, also when that could be a type.
#[test]
fn the_handshake_is_recognised_by_what_makes_sense() {
    for name in ["impi-hello.hex", "impi-ssend.hex", "impi-collective.hex", "impi-flow.hex"] {
        let packets = octets(name);
        let plain = json(&packets, ask(Dialect::Final));
        assert_eq!(complaints(&plain), [""; 0], "{name}");
        assert_eq!(plain["items"][0]["offset"], 0);
        assert!(plain["items"][0]["type"] != "handshake", "{name}: {plain}");
        for number in [1u32, 2, 7, 8, 300, 65535] {
            let opened = json(&[&number.to_be_bytes()[..], &packets].concat(), ask(Dialect::Final));
            assert_eq!(complaints(&opened), [""; 0], "{name}");
            let handshake = &opened["items"][0];
            assert_eq!(
                (&handshake["type"], &handshake["fields"]),
                (&json!("handshake"), &json!({"number": number}))
            );
            let essence = |item: &Value| [item["type"].clone(), item["fields"].clone()];
            let all = |told: &Value| items(told).into_iter().map(essence).collect::<Vec<_>>();
            assert_eq!(all(&opened), all(&plain), "{name} behind {number}");
        }
    }
    let long = stream(&long());
    assert_eq!(json(&long, ask(Dialect::Final))["items"][0]["type"], "DataSync");
    let opened = json(&[&[0, 0, 0, 1], &long[..]].concat(), ask(Dialect::Final));
    assert_eq!(opened["items"][0]["type"], "handshake");
    assert_eq!(opened["packets"], 4);
}

/// Proves that hosts are held to what they say of themselves where a recording says who speaks.
#[test]
fn marked_hosts_are_held_to_their_numbers_and_processes() {
    let digits = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let hex = |parts: &[(&str, Vec<u8>)]| -> String {
        parts.iter().map(|(mark, octets)| format!("# {mark}\n{}\n", digits(octets))).collect()
    };
    let found = |parts: &[(&str, Vec<u8>)]| complaints(&json(hex(parts).as_bytes(), ask(Dialect::Final)));
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
    let again = [("host 1 to host 0", data()), ("host 1 to host 0: handshake", vec![0, 0, 0, 1])];
    assert_eq!(found(&again), ["not the first that comes from there"]);
    let both = [("host 1 to host 0", data()), ("host 0 to host 1", data())];
    let (p, q) = (name(P), name(Q));
    assert_eq!(
        found(&both),
        [
            format!("{p} is a process of host 1, not of host 0"),
            format!("{q} is a process of host 0, not of host 1"),
        ]
    );
    let late = [("host 1 to host 0", packet(down(Fini))), ("host 1 to host 0", data())];
    assert_eq!(found(&late), ["Data after Fini"]);
    let twice = [("host 1 to host 0", packet(down(Fini))), ("host 1 to host 0", packet(down(Fini)))];
    assert_eq!(found(&twice), ["Fini after Fini"]);
}

fn name(proc: mpjdev_proto::impi::Proc) -> String {
    format!("{}/{}", std::net::Ipv6Addr::from(proc.host_id), proc.pid)
}

/// A packet with these data, which are its whole message, or its beginning.
fn carrying(data: &[u8], msglen: usize) -> Vec<u8> {
    let kind = if data.len() < msglen { DataSync } else { Data };
    let packet = Packet { srqid: 1, ..with_data(down(kind), data.len() as u32, msglen as u64) };
    [&stream(&[packet])[..128], data].concat()
}

/// Proves that an mpjdev message is recognised in the data, whole, split, and as much of it as there is; and that others
/// are not.
#[test]
fn mpjdev_messages_are_recognised_in_data() {
    let message = octets("example-le.hex");
    assert_eq!(message.len(), 76);
    let shown = |octets: &[u8]| text(octets, ask(Dialect::Final));
    let line = "              mpjdev message: little-endian, 48 octets of primary payload: int[3], byte[5], object[2], 12 octets \
                of secondary payload\n";
    assert!(shown(&carrying(&message, 76)).contains(line), "{}", shown(&carrying(&message, 76)));
    let split = shown(&carrying(&message[..64], 64));
    assert!(split.contains(", 12 octets of secondary payload in a message of its own\n"), "{split}");
    let stream = shown(&carrying(&message[64..], 12));
    assert!(stream.contains("a Java serialization stream (ac ed 00 05)\n"), "{stream}");
    let begun = shown(&carrying(&message[..40], 76));
    assert!(begun.contains("48 octets of primary payload: int[3], byte[5], ...\n"), "{begun}");
    let told = json(&carrying(&message, 76), ask(Dialect::Final));
    assert_eq!(
        items(&told)[0]["data"]["message"],
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

/// Proves that data are shown as digits and as text, not more of them than fit a line, and nothing a terminal would obey.
#[test]
fn data_are_shown_in_part_and_without_control_characters() {
    let shown = text(&carrying(b"\x1b[2J evil \x7f\xff", 12), ask(Dialect::Final));
    assert!(shown.contains("| 1b 5b 32 4a 20 65 76 69 6c 20 7f ff | .[2J evil ..\n"), "{shown:?}");
    let shown = text(&carrying(&[b'a'; 17], 17), ask(Dialect::Final));
    let digits = "61 ".repeat(16);
    assert!(shown.contains(&format!("| {digits}... | {} ...\n", "a".repeat(16))), "{shown}");
}

/// What hosts of ours say before their packets: a greeting with a nonce, and a proof, as the mesh draws them.
fn opening(nonce: u8, proof: u8) -> [Vec<u8>; 2] {
    [[&b"mpjmesh\x01"[..], &[nonce; 16]].concat(), vec![proof; 32]]
}

/// Proves that what hosts of ours say before their packets is told apart from these: of each side alone, of both in one stream, and
/// marked; that a refusal is told as such; and that no part of it is shown.
#[test]
fn connections_between_hosts_of_ours_open_with_greetings_and_proofs() {
    let [greeting, proof] = opening(0xab, 0xcd);
    let [other_greeting, other_proof] = opening(0x12, 0x34);
    let (down, up) = (stream(&[with_data(down(Data), 1, 1)]), stream(&[with_data(up(Data), 1, 1)]));
    let kinds = |octets: &[u8]| -> String {
        let told = json(octets, ask(Dialect::Final));
        assert_eq!((complaints(&told), &told["packets"]), (vec![], &json!(octets.len() / 129)), "{told}");
        let all = told["items"].as_array().expect("a list").iter();
        all.map(|item| format!("{} ", item["type"].as_str().expect("a type"))).collect()
    };
    for number in [1u32, 7, 8, 300] {
        let number = number.to_be_bytes();
        let connector = [&number[..], &greeting, &proof, &down].concat();
        assert_eq!(kinds(&connector), "handshake greeting proof Data ");
        let both = [&number[..], &greeting, &other_greeting, &proof, &other_proof, &down, &up].concat();
        assert_eq!(kinds(&both), "handshake greeting greeting proof proof Data Data ");
        let shown = text(&both, ask(Dialect::Final));
        assert!(!shown.contains("ab") && !shown.contains("cdcd") && !shown.contains("3434"), "{shown}");
    }
    assert_eq!(kinds(&[&other_greeting[..], &other_proof, &up].concat()), "greeting proof Data ");
    let refused = [&[0, 0, 0, 9][..], &greeting, &other_greeting, &proof, &[0; 32]].concat();
    let told = json(&refused, ask(Dialect::Final));
    assert_eq!(complaints(&told), ["the hosts have other keys, or belong to other jobs"]);
    for (cut, why) in [(7, "7 octets of a greeting, 24 needed"), (24 + 5, "5 octets of a proof, 32 needed")] {
        let cut = &[&[0, 0, 0, 9][..], &greeting, &proof].concat()[..4 + cut];
        assert_eq!(complaints(&json(cut, ask(Dialect::Final))), [why]);
    }
}

/// Proves that ids of processes of ours are shown as they are where these run, in packets and in start-up.
#[test]
fn ids_of_processes_of_ours_are_shown_as_they_are_where_these_run() {
    let ours = |pid| mpjdev_proto::impi::Proc { pid, ..P };
    let packet = Packet { src: ours(0x6d70_6a00_0000_1267), dest: ours(0xdac0_1267), ..down(ProtoAck) };
    let octets = stream(&[packet]);
    assert_eq!(text(&octets, ask(Dialect::Final)).matches("/mpj:4711").count(), 2);
    let told = json(&octets, ask(Dialect::Final));
    assert_eq!(items(&told)[0]["fields"]["src"]["pid"], 0x6d70_6a00_0000_1267_i64);
    let opened = json(&[&[0, 0, 0, 2], &octets[..]].concat(), ask(Dialect::Final));
    assert_eq!(opened["items"][0]["type"], "handshake");
}
