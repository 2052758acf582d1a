//! Conversations in every form of recording, and what breaks their order.

use mpjdev_cli::inspect::impi::{Part, Question};
use mpjdev_proto::impi::Dialect;
use serde_json::{Value, json};

use crate::support::{ask, complaints, items, json, octets, read, text};

/// What client 0 says, what it is told, and both in their order; of a vector of tests/golden/impi-startup.
fn of_client_0(name: &str) -> [Vec<u8>; 3] {
    let all = octets(&format!("impi-startup/{name}.hex"));
    let mut at = 0;
    let mut streams = [Vec::new(), Vec::new(), Vec::new()];
    for line in read(&format!("impi-startup/{name}.txt")).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if !["send", "reply", "relayed"].contains(&words[0]) {
            continue;
        }
        let len: usize = words[2].parse().expect("octets");
        if words[1] == "0" {
            streams[usize::from(words[0] != "send")].extend(&all[at..at + len]);
            streams[2].extend(&all[at..at + len]);
        }
        at += len;
    }
    streams
}

const ALL: [(&str, Dialect); 4] =
    [("hello", Dialect::Final), ("flow", Dialect::Final), ("key", Dialect::Final), ("draft", Dialect::Draft)];

fn kinds(told: &Value) -> String {
    let end = |item: &Value| item["from"].as_str().and_then(|from| from.chars().next()).expect("an end");
    items(told)
        .into_iter()
        .map(|item| format!("{}:{} ", end(item), item["type"].as_str().expect("a type")))
        .collect()
}

/// Proves that raw octets without any mark are recognised: each direction alone, and both in the order of the conversation,
/// where every message is given to the side that said it.
#[test]
fn a_connection_without_marks_is_told_apart() {
    for (name, dialect) in ALL {
        let [client, server, both] = of_client_0(name);
        let key = name == "key";
        let labels = "c:COLL ".repeat(14);
        let raw = if key { "c:key " } else { "" };
        let told = json(&client, ask(dialect));
        assert_eq!(kinds(&told), format!("c:AUTH {raw}c:IMPI {labels}c:DONE c:FINI "), "{name}");
        assert_eq!(complaints(&told), [""; 0], "{name}");
        let method = if dialect == Dialect::Final { "s:method " } else { "" };
        let told = json(&server, ask(dialect));
        let replies = "s:COLL ".repeat(14);
        assert_eq!(kinds(&told), format!("{method}s:IMPI {replies}s:DONE "), "{name}");
        assert_eq!(complaints(&told), [""; 0], "{name}");
        assert!(items(&told).iter().any(|item| item.get("job").is_some()), "{name}: the tables");
        let told = json(&both, ask(dialect));
        let turns = "c:COLL s:COLL ".repeat(14);
        let wanted = format!("c:AUTH {method}{raw}c:IMPI s:IMPI {turns}c:DONE s:DONE c:FINI ");
        assert_eq!(kinds(&told), wanted, "{name}");
        assert_eq!(complaints(&told), [""; 0], "{name}");
        assert!(items(&told).iter().any(|item| item.get("job").is_some()), "{name}: the tables");
    }
}

/// Proves that several clients in one stream without marks are told apart from the server, if not from each other.
#[test]
fn several_clients_in_one_stream_are_told_apart_from_the_server() {
    for (name, dialect) in ALL {
        let marked = json(read(&format!("impi-startup/{name}.hex")).as_bytes(), ask(dialect));
        let mixed = json(&octets(&format!("impi-startup/{name}.hex")), ask(dialect));
        assert_eq!(kinds(&mixed), kinds(&marked), "{name}");
        assert_eq!(complaints(&mixed), [""; 0], "{name}");
        let job = |told: &Value| items(told).into_iter().find_map(|item| item.get("job").cloned());
        assert!(job(&mixed).is_some() && job(&mixed) == job(&marked), "{name}");
    }
}

/// Proves that keys that look like other things are keys: the server's answer, a command.
#[test]
fn keys_that_look_like_something_else_are_keys() {
    let [client, _, both] = of_client_0("key");
    for key in [*b"IMPIIMPI", 0u64.to_be_bytes(), 0x1_0000_0008u64.to_be_bytes()] {
        let with = |octets: &[u8], at: usize| [&octets[..at], &key, &octets[at + 8..]].concat();
        let told = json(&with(&both, 20), ask(Dialect::Final));
        assert!(
            kinds(&told).starts_with("c:AUTH s:method c:key c:IMPI s:IMPI "),
            "{key:02x?}: {}",
            kinds(&told)
        );
        assert_eq!(complaints(&told), [""; 0]);
        if key != *b"IMPIIMPI" {
            let told = json(&with(&client, 12), ask(Dialect::Final));
            assert!(kinds(&told).starts_with("c:AUTH c:key c:IMPI c:COLL "), "{key:02x?}: {}", kinds(&told));
        }
    }
}

/// A command as it stands on the wire.
fn command(name: &[u8; 4], payload: &[u32]) -> Vec<u8> {
    let len = 4 * payload.len() as u32;
    let words = payload.iter().flat_map(|word| word.to_be_bytes());
    name.iter().copied().chain(len.to_be_bytes()).chain(words).collect()
}

/// What a client says, and what the server says, marked as such, in this order; words of hex text.
fn marked(parts: &[(&str, Vec<u8>)]) -> String {
    let line = |(way, octets): &(&str, Vec<u8>)| {
        let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("# {way}\n{digits}\n")
    };
    parts.iter().map(line).collect()
}

const UP: &str = "client 0 to server";
const DOWN: &str = "server to client 0";

/// Proves each thing that a client may do wrong, with the words that say so; all of it of one conversation.
#[test]
fn clients_that_break_the_order_are_warned_of() {
    let auth = || (UP, command(b"AUTH", &[1]));
    let method = || (DOWN, vec![0; 8]);
    let joins = || [auth(), method(), (UP, command(b"IMPI", &[0])), (DOWN, command(b"IMPI", &[1]))];
    let found = |parts: &[(&str, Vec<u8>)]| complaints(&json(marked(parts).as_bytes(), ask(Dialect::Final)));
    assert_eq!(found(&joins()), [""; 0]);
    let behind = |more: &[(&'static str, Vec<u8>)]| found(&[&joins()[..], more].concat());
    let coll = |label: u32| (UP, command(b"COLL", &[label, 1]));
    for (parts, wanted) in [
        (vec![coll(0x1200), coll(0x1100)], "C_NHOSTS comes after C_NPROCS, labels ascend"),
        (vec![coll(0x1100), coll(0x1100)], "C_NHOSTS comes after C_NHOSTS, labels ascend"),
        (vec![coll(0)], "label 0x0000 comes after label 0x0000, labels ascend"),
        (vec![(UP, command(b"COLL", &[]))], "COLL with 0 octets"),
        (vec![(UP, command(b"COLL", &[0x1000, 0, 0, 0]))], "C_VERSION with 12 octets of data"),
        (vec![(UP, command(b"FINI", &[]))], "before the job runs"),
        (vec![(UP, command(b"FINI", &[5]))], "FINI with 4 octets"),
        (vec![(UP, command(b"IMPI", &[0]))], "a second time"),
        (vec![auth()], "a second time"),
        (vec![(DOWN, command(b"IMPI", &[1]))], "a second time"),
        (vec![(DOWN, command(b"FINI", &[]))], "a server never says FINI"),
        (vec![(DOWN, command(b"DONE", &[]))], "before the client has said it"),
        (vec![coll(0x1000), (DOWN, command(b"COLL", &[0x1100, 1, 1]))], "before this client has sent it"),
        (vec![(DOWN, command(b"COLL", &[0x1000]))], "COLL with 4 octets"),
    ] {
        let complaints = behind(&parts);
        assert!(complaints.iter().any(|complaint| complaint == wanted), "{wanted}: {complaints:?}");
    }
    let done = behind(&[coll(0x1100), (UP, command(b"DONE", &[])), coll(0x1200)]);
    assert!(done[0].starts_with("not sent: C_VERSION, C_NPROCS, C_DATALEN, "), "{done:?}");
    assert_eq!(done[1..], ["behind DONE"]);
    assert_eq!(found(&[(UP, command(b"IMPI", &[0]))]), ["a client begins with AUTH"]);
    assert_eq!(found(&[auth(), method(), coll(0x1100)]), ["before IMPI"]);
    let early = found(&[auth(), method(), (UP, command(b"IMPI", &[0])), coll(0x1100)]);
    assert_eq!(early, ["before all clients have joined"]);
    let rank = |rank, size| {
        found(&[auth(), method(), (UP, command(b"IMPI", &[rank])), (DOWN, command(b"IMPI", &[size]))])
    };
    assert_eq!(rank(2, 2), ["the client has rank 2"]);
    assert_eq!(rank(32, 33), ["rank 32, clients have 0 to 31", "size 33, a job has 1 to 32 clients"]);
    assert_eq!(rank(u32::MAX, 0), ["rank -1, clients have 0 to 31", "size 0, a job has 1 to 32 clients"]);
    let same = [
        joins().to_vec(),
        vec![("client 1 to server", command(b"AUTH", &[1])), ("client 1 to server", command(b"IMPI", &[0]))],
    ];
    assert_eq!(found(&same.concat()), ["client 0 has that rank too"]);
}

/// Proves what is said of authentication: methods that were not offered, that there are not, or whose length is wrong.
#[test]
fn methods_that_do_not_fit_are_warned_of() {
    let found = |mask: u32, which: u32, len: u32| {
        let answer = [which.to_be_bytes(), len.to_be_bytes()].concat();
        let parts = [(UP, command(b"AUTH", &[mask])), (DOWN, answer)];
        complaints(&json(marked(&parts).as_bytes(), ask(Dialect::Final)))
    };
    assert_eq!(found(1, 0, 0), [""; 0]);
    assert_eq!(found(2, 1, 8), [""; 0]);
    assert_eq!(found(1, 1, 8), ["the client has not offered it"]);
    assert_eq!(found(3, 1, 0), ["len is 0, the method has 8 octets"]);
    assert_eq!(found(3, 0, 8), ["len is 8, the method has 0 octets"]);
    assert_eq!(found(0, 0, 0), ["no method at all", "the client has not offered it"]);
    assert_eq!(found(1 << 16, 16, 0), ["there is no method 16"]);
    let told = text(&[&b"AUTH\0\0\0\x04"[..], &[0, 1, 0, 3]].concat(), ask(Dialect::Final));
    assert!(told.contains("auth_mask={none, key, method 16}"), "{told}");
}

/// Proves that a conversation of the other dialect is recognised as such.
#[test]
fn the_other_dialect_is_recognised() {
    let draft = json(read("impi-startup/draft.hex").as_bytes(), ask(Dialect::Final));
    assert_eq!(complaints(&draft)[0], "the AUTH of the draft (--dialect draft)");
    let last = json(read("impi-startup/hello.hex").as_bytes(), ask(Dialect::Draft));
    assert_eq!(complaints(&last)[0], "not the AUTH of the draft (--dialect final)");
}

/// Proves that what the machine of a client refuses is said, where it is said, and once.
#[test]
fn replies_that_contradict_each_other_are_warned_of() {
    let [_, server, _] = of_client_0("flow");
    let at = |label: u32| {
        let place = server.windows(4).position(|octets| octets == label.to_be_bytes());
        place.expect("the label")
    };
    let changed = |label: u32, offset: usize, value: u32| {
        let mut octets = server.clone();
        octets[at(label) + offset..][..4].copy_from_slice(&value.to_be_bytes());
        complaints(&json(&octets, ask(Dialect::Final)))
    };
    assert_eq!(changed(0x1100, 4, 7), ["C_NHOSTS: client_mask 0x7 names more than the 2 clients"]);
    assert_eq!(changed(0x1300, 8, 0), ["client 0: C_DATALEN is 0"]);
    assert_eq!(
        changed(0x1600, 8, 9),
        ["C_COLL_MAXLINEAR must be the same everywhere: client 0 has 9, client 1 has 4"]
    );
    assert_eq!(changed(0x1200, 0, 0x1100), ["the startup server answers C_NHOSTS after C_NHOSTS"]);
    // Where the conversation has been read to its end the tables may still contradict each other.
    assert_eq!(
        changed(0x2300, 8, 21),
        ["host 0 of the job: ackmark 21 and hiwater 20, which must not be less"]
    );
}

/// Proves that labels nobody knows are told with their octets, and are no reason to warn.
#[test]
fn unknown_labels_are_told_with_their_octets() {
    let parts = [
        (UP, command(b"AUTH", &[1])),
        (UP, command(b"IMPI", &[0])),
        (UP, command(b"COLL", &[0x4000, 0x61626364, 0x65666768])),
    ];
    let told = json(marked(&parts).as_bytes(), ask(Dialect::Final));
    assert_eq!(complaints(&told), [""; 0]);
    let item = items(&told)[2];
    assert_eq!(item["fields"], json!({"label": "0x4000"}));
    assert_eq!(item["data"], json!({"len": 8, "first": "6162636465666768", "text": "abcdefgh"}));
}

/// Proves that what a recording is can be forced.
#[test]
fn the_part_can_be_forced() {
    let [client, ..] = of_client_0("hello");
    let question = Question { part: Some(Part::Packets), ..ask(Dialect::Final) };
    let told = json(&client, question);
    assert_eq!(complaints(&told), ["packet type 1096111176 is unknown in the Final dialect"]);
    let question = Question { part: Some(Part::Startup), ..ask(Dialect::Final) };
    let told = json(&octets("impi-hello.hex"), question);
    assert_eq!(told["damages"], 1, "{told}");
}
