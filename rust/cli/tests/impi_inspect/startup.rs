//! Tests of start-up commands in every form of recording, and of violations within one command.

use mpjdev_cli::inspect::impi::{Options, Part};
use mpjdev_proto::impi::Dialect;
use serde_json::{Value, json};

use crate::support::{complaints, items, json, octets, of_client_0, read, speaking, text};

const ALL: [(&str, Dialect); 4] =
    [("hello", Dialect::Final), ("flow", Dialect::Final), ("key", Dialect::Final), ("draft", Dialect::Draft)];

fn kinds(found: &Value) -> String {
    let end = |item: &Value| item["from"].as_str().and_then(|from| from.chars().next()).expect("an end");
    items(found)
        .into_iter()
        .map(|item| format!("{}:{} ", end(item), item["type"].as_str().expect("a type")))
        .collect()
}

/// Proves that raw octets of one direction are recognised as the client's or the server's.
#[test]
fn direction_without_marks_is_recognised() {
    for (name, dialect) in ALL {
        let [client, server] = of_client_0(name);
        let key = if name == "key" { "c:key " } else { "" };
        let found = json(&client, speaking(dialect));
        let labels = "c:COLL ".repeat(14);
        assert_eq!(kinds(&found), format!("c:AUTH {key}c:IMPI {labels}c:DONE c:FINI "), "{name}");
        assert_eq!(complaints(&found), [""; 0], "{name}");
        let method = if dialect == Dialect::Final { "s:method " } else { "" };
        let found = json(&server, speaking(dialect));
        let replies = "s:COLL ".repeat(14);
        assert_eq!(kinds(&found), format!("{method}s:IMPI {replies}s:DONE "), "{name}");
        assert_eq!(complaints(&found), [""; 0], "{name}");
    }
}

/// Proves that a key of any octets is a key, even if it resembles the server's answer or a command.
#[test]
fn keys_that_resemble_commands_are_keys() {
    let [client, _] = of_client_0("key");
    for key in [*b"IMPIIMPI", 0u64.to_be_bytes(), 0x1_0000_0008u64.to_be_bytes()] {
        let found = json(&[&client[..12], &key, &client[20..]].concat(), speaking(Dialect::Final));
        assert!(kinds(&found).starts_with("c:AUTH c:key c:IMPI c:COLL "), "{key:02x?}: {}", kinds(&found));
        assert_eq!(complaints(&found), [""; 0]);
    }
}

/// The octets of a command.
fn command(name: &[u8; 4], payload: &[u32]) -> Vec<u8> {
    let len = 4 * payload.len() as u32;
    let words = payload.iter().flat_map(|word| word.to_be_bytes());
    name.iter().copied().chain(len.to_be_bytes()).chain(words).collect()
}

/// Hex text of these octets, each part after its mark.
fn marked(parts: &[(&str, Vec<u8>)]) -> String {
    let line = |(direction, octets): &(&str, Vec<u8>)| {
        let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("# {direction}\n{digits}\n")
    };
    parts.iter().map(line).collect()
}

const UP: &str = "client 0 to server";
const DOWN: &str = "server to client 0";

/// Proves each violation within one command, with its text.
#[test]
fn commands_that_violate_the_protocol_are_warned_of() {
    let method = || (DOWN, vec![0; 8]);
    for (part, wanted) in [
        ((UP, command(b"AUTH", &[])), "AUTH with 0 octets"),
        ((UP, command(b"IMPI", &[])), "IMPI with 0 octets"),
        ((UP, command(b"IMPI", &[32])), "rank 32, clients have 0 to 31"),
        ((UP, command(b"IMPI", &[u32::MAX])), "rank -1, clients have 0 to 31"),
        ((UP, command(b"COLL", &[])), "COLL with 0 octets"),
        ((UP, command(b"COLL", &[0x1000, 0, 0, 0])), "C_VERSION with 12 octets of data"),
        ((UP, command(b"DONE", &[5])), "DONE with 4 octets"),
        ((UP, command(b"FINI", &[5])), "FINI with 4 octets"),
        ((UP, [*b"NONE", [0; 4]].concat()), "\"NONE\" is no command"),
        ((UP, [*b"DONE", [255; 4]].concat()), "DONE has the length -1"),
        ((DOWN, command(b"IMPI", &[33])), "size 33, a job has 1 to 32 clients"),
        ((DOWN, command(b"IMPI", &[0])), "size 0, a job has 1 to 32 clients"),
        ((DOWN, command(b"FINI", &[])), "a server never sends FINI"),
        ((DOWN, command(b"AUTH", &[1])), "a server never sends AUTH"),
        ((DOWN, command(b"DONE", &[5])), "DONE with 4 octets"),
        ((DOWN, command(b"COLL", &[0x1000])), "COLL with 4 octets"),
        ((DOWN, command(b"COLL", &[0x1000, 1, 0])), "C_VERSION with 4 octets of data"),
        ((DOWN, command(b"COLL", &[0x1100, 7, 1, 1])), "C_NHOSTS with 2 values of 3 clients"),
        ((DOWN, command(b"COLL", &[0x1300, 3, 1, 0])), "C_DATALEN is 0"),
        ((DOWN, command(b"COLL", &[0x2300, 1, 0])), "H_ACKMARK is 0"),
        ((DOWN, command(b"COLL", &[0x1600, 3, 9, 4])), "C_COLL_MAXLINEAR must be the same everywhere"),
    ] {
        let found = json(marked(&[method(), part.clone()]).as_bytes(), speaking(Dialect::Final));
        assert_eq!(complaints(&found), [wanted], "{part:02x?}");
    }
    for sound in [&[0x1600, 3, u32::MAX, 4][..], &[0x1600, 3, u32::MAX, u32::MAX], &[0x1600, 3, 4, 4]] {
        let found =
            json(marked(&[method(), (DOWN, command(b"COLL", sound))]).as_bytes(), speaking(Dialect::Final));
        assert_eq!(complaints(&found), [""; 0], "{sound:?}");
    }
}

/// Proves that a method that does not exist, or with a wrong length, is warned of, and that methods have
/// names.
#[test]
fn methods_that_do_not_fit_are_warned_of() {
    let found = |which: u32, len: u32| {
        let answer = [which.to_be_bytes(), len.to_be_bytes()].concat();
        complaints(&json(marked(&[(DOWN, answer)]).as_bytes(), speaking(Dialect::Final)))
    };
    assert_eq!(found(0, 0), [""; 0]);
    assert_eq!(found(1, 8), [""; 0]);
    assert_eq!(found(1, 0), ["len is 0, the method has 8 octets"]);
    assert_eq!(found(0, 8), ["len is 8, the method has 0 octets"]);
    assert_eq!(found(16, 0), ["there is no method 16"]);
    let auth = |mask: u32| text(&command(b"AUTH", &[mask]), speaking(Dialect::Final));
    assert!(auth(0x10003).contains("auth_mask={none, key, method 16}"), "{}", auth(0x10003));
    assert!(auth(0).contains("! no method at all\n"), "{}", auth(0));
}

/// Proves that AUTH of the other dialect is recognised as such.
#[test]
fn other_dialect_is_recognised() {
    let draft = json(read("impi-startup/draft.hex").as_bytes(), speaking(Dialect::Final));
    assert_eq!(complaints(&draft)[0], "the AUTH of the draft (--dialect draft)");
    let last = json(read("impi-startup/hello.hex").as_bytes(), speaking(Dialect::Draft));
    assert_eq!(complaints(&last)[0], "not the AUTH of the draft (--dialect final)");
}

/// Proves that an unknown label is shown with its octets and without a warning.
#[test]
fn unknown_labels_are_shown_with_their_octets() {
    let parts = [
        (UP, command(b"AUTH", &[1])),
        (UP, command(b"IMPI", &[0])),
        (UP, command(b"COLL", &[0x4000, 0x61626364, 0x65666768])),
    ];
    let found = json(marked(&parts).as_bytes(), speaking(Dialect::Final));
    assert_eq!(complaints(&found), [""; 0]);
    let item = items(&found)[2];
    assert_eq!(item["fields"], json!({"label": "0x4000"}));
    assert_eq!(item["data"], json!({"len": 8, "first": "6162636465666768", "text": "abcdefgh"}));
}

/// Proves that the values of a reply have their clients where the reply alone says so.
#[test]
fn values_of_a_reply_have_their_clients() {
    let reply = |payload: &[u32]| text(&command(b"COLL", payload), speaking(Dialect::Final));
    let shown = reply(&[0x1200, 0b1010, 2, 5]);
    assert!(
        shown.contains("C_NPROCS client_mask={1, 3} client 1: 2; client 3: 5  # 7 processes\n"),
        "{shown}"
    );
    let shown = reply(&[0x1000, 0b11, 0, 0, 0, 1, 0, 0]);
    assert!(shown.contains("client 0: 0.0, 0.1; client 1: 0.0  #"), "{shown}");
    let shown = reply(&[0x2100, 0b11, 1, 2, 3]);
    assert!(shown.contains("H_PORT client_mask={0, 1} 1, 2, 3  #"), "{shown}");
}

/// Proves that the option sets the part of a recording without marks.
#[test]
fn part_is_that_of_the_option() {
    let [client, _] = of_client_0("hello");
    let options = Options { part: Some(Part::Packets), ..speaking(Dialect::Final) };
    let found = json(&client, options);
    assert_eq!(complaints(&found), ["packet type 1096111176 is unknown in the Final dialect"]);
    let options = Options { part: Some(Part::Startup), ..speaking(Dialect::Final) };
    let found = json(&octets("impi-hello.hex"), options);
    assert_eq!(found["damages"], 1, "{found}");
}
