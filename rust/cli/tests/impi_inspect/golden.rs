//! Tests of every vector of IMPI in tests/golden against its description.

use std::fs;

use mpjdev_proto::impi::Dialect;
use serde_json::{Value, json};

use crate::support::{complaints, items, json, path, read, speaking};

/// Names of the packet vectors, without their endings.
fn names() -> Vec<String> {
    let entries = fs::read_dir(path("")).expect("the folder of golden vectors");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter_map(|name| {
            name.strip_suffix(".hex").filter(|name| name.starts_with("impi-")).map(str::to_owned)
        })
        .collect();
    names.sort();
    assert!(names.len() >= 13, "{names:?}");
    names
}

fn dialect(description: &str) -> Dialect {
    if description.contains("dialect draft") { Dialect::Draft } else { Dialect::Final }
}

/// An address as it is shown: in the description it is 32 digits.
fn process(word: &str) -> Value {
    let (digits, pid) = word.split_once('/').expect("HOSTID/PID");
    let number = u128::from_str_radix(digits, 16).expect("a host id");
    let four = (number as u32).to_be_bytes().map(|octet| octet.to_string()).join(".");
    let address = match number >> 32 {
        0 if number != 0 => four,
        0xffff => format!("::ffff:{four}"),
        _ => std::net::Ipv6Addr::from(number).to_string(),
    };
    json!({"address": address, "pid": pid.parse::<i64>().expect("a pid")})
}

/// Proves that type, direction, place and every field of each packet are those of its description.
#[test]
fn packets_are_shown_as_they_are_described() {
    let mut count = 0;
    for name in names() {
        let description = read(&format!("{name}.txt"));
        let object = json(read(&format!("{name}.hex")).as_bytes(), speaking(dialect(&description)));
        let mut found = items(&object).into_iter();
        let mut offset = 0;
        for line in description.lines().filter(|line| line.starts_with("packet ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let item = found.next().unwrap_or_else(|| panic!("{name}: no item for {line}"));
            assert_eq!(item["type"], words[2], "{name}: {item}");
            assert_eq!(item["from"], format!("host {}", words[1]), "{name}: {item}");
            assert_eq!(item["offset"], offset, "{name}: {item}");
            offset += 128 + words[3].parse::<u64>().expect("octets of data");
            for word in &words[4..] {
                let (field, value) = word.split_once('=').expect("NAME=VALUE");
                let shown = item["fields"].get(field).unwrap_or(&item["ignored"][field]);
                let wanted = match field {
                    "src" | "dest" => process(value),
                    _ => serde_json::from_str(value).expect("a number"),
                };
                assert_eq!(*shown, wanted, "{name}: {field} of {item}");
                count += 1;
            }
        }
        assert_eq!(found.next(), None, "{name}: more than described");
        for line in description.lines().filter_map(|line| line.strip_prefix("error ")) {
            let (_, number) = line.split_once(' ').expect("a field and its value");
            let complaints = complaints(&object);
            assert!(complaints.len() == 1 && complaints[0].contains(number), "{name}: {complaints:?}");
        }
    }
    assert!(count >= 1200, "only {count} fields found");
}

/// Proves that packets of a real peer have no warnings.
#[test]
fn captured_packets_have_no_warnings() {
    let mut captured = 0;
    for name in names() {
        let description = read(&format!("{name}.txt"));
        let hex = read(&format!("{name}.hex"));
        if !hex.contains("LAM/MPI 7.1.4") {
            continue;
        }
        let object = json(hex.as_bytes(), speaking(dialect(&description)));
        assert_eq!(complaints(&object), [""; 0], "{name}");
        captured += 1;
    }
    assert_eq!(captured, 6);
}

/// Proves that fields without a meaning in their type are shown apart: LAM fills them with arbitrary octets.
#[test]
fn fields_without_a_meaning_are_ignored() {
    let object = json(read("impi-long.hex").as_bytes(), speaking(Dialect::Final));
    let acknowledgement = items(&object)[1];
    assert_eq!(acknowledgement["type"], "SyncAck");
    let names: Vec<&String> = acknowledgement["fields"].as_object().expect("fields").keys().collect();
    assert_eq!(names, ["dest", "drqid", "src", "srqid"]);
    assert_eq!(acknowledgement["ignored"]["cid"], 5260204364768739328u64);
    assert_eq!(acknowledgement["ignored"]["len"], 128);
    assert_eq!(acknowledgement.get("data"), None);
    let fini = items(&object)[7];
    assert_eq!((&fini["type"], &fini["fields"]), (&json!("Fini"), &json!({})));
}

/// Proves that every command of each conversation is shown with its sender and its place.
#[test]
fn conversations_are_shown_as_they_are_described() {
    for name in ["hello", "flow", "key", "draft"] {
        let description = read(&format!("impi-startup/{name}.txt"));
        let hex = read(&format!("impi-startup/{name}.hex"));
        let object = json(hex.as_bytes(), speaking(dialect(&description)));
        assert_eq!(complaints(&object), [""; 0], "{name}");
        let mut wanted = Vec::new();
        let mut offset = 0;
        for line in description.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let ends = match words[0] {
                "send" => (format!("client {}", words[1]), "server".to_owned()),
                "reply" | "relayed" => ("server".to_owned(), format!("client {}", words[1])),
                _ => continue,
            };
            wanted.push((offset, ends));
            offset += words[2].parse::<u64>().expect("octets");
        }
        let end = |item: &Value, key: &str| item[key].as_str().expect("an end").to_owned();
        let found: Vec<_> = items(&object)
            .into_iter()
            .map(|item| (item["offset"].as_u64().expect("an offset"), (end(item, "from"), end(item, "to"))))
            .collect();
        assert_eq!(found, wanted, "{name}");
    }
}

/// Proves the values under labels: versions, signed numbers, addresses in both forms.
#[test]
fn labels_have_the_values_of_their_clients() {
    let object = json(read("impi-startup/key.hex").as_bytes(), speaking(Dialect::Final));
    let of = |from: &str, label: &str| -> Vec<Value> {
        let all = items(&object).into_iter();
        let of = all.filter(|item| item["from"] == from && item["fields"]["label"] == label);
        of.map(|item| item["fields"]["values"].clone()).collect()
    };
    assert_eq!(of("client 0", "C_VERSION"), [json!(["0.0", "0.1", "1.0"])]);
    assert_eq!(of("client 0", "C_COLL_MAXLINEAR"), [json!([-1])]);
    assert_eq!(of("client 0", "H_IPV6"), [json!(["::ffff:127.0.0.2", "::ffff:127.0.0.3"])]);
    assert_eq!(of("client 0", "P_PID"), [json!([101, -1, 1099511627776u64])]);
    assert_eq!(of("server", "H_PORT"), [json!([5001, 5002, 65535]), json!([5001, 5002, 65535])]);
    let hello = json(read("impi-startup/hello.hex").as_bytes(), speaking(Dialect::Final));
    let address =
        items(&hello).into_iter().find(|item| item["fields"]["label"] == "H_IPV6").expect("the label");
    assert_eq!(address["fields"]["values"], json!(["127.0.0.2"]));
}

/// Proves that a key is never shown, in either dialect.
#[test]
fn keys_are_not_shown() {
    for name in ["key", "draft"] {
        let hex = read(&format!("impi-startup/{name}.hex"));
        let dialect = dialect(&read(&format!("impi-startup/{name}.txt")));
        assert!(hex.contains("01 23 45 67"), "the key is in it");
        for object in [
            crate::support::text(hex.as_bytes(), speaking(dialect)),
            json(hex.as_bytes(), speaking(dialect)).to_string(),
        ] {
            let digits: String = object.chars().filter(|c| c.is_ascii_hexdigit()).collect();
            assert!(!digits.contains("01234567") && !digits.contains("89abcdef"), "{name}: {object}");
            assert!(object.contains("8 octets, which are not shown"), "{name}: {object}");
        }
    }
}
