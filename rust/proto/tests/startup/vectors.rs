//! Reads the captures of tests/golden/impi-startup, as MANIFEST.md beside it describes them.

use std::fs;
use std::path::PathBuf;

use mpjdev_proto::impi::Dialect;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A client sends this to the server.
    Send(usize, Vec<u8>),
    /// The server sends this to a client.
    Reply(usize, Vec<u8>),
    /// A client received this, which a relay has changed.
    Relayed(usize, Vec<u8>),
    /// A client closes its connection.
    Close(usize),
}

/// One conversation.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) dialect: Dialect,
    pub(crate) clients: u32,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn all() -> [Vector; 4] {
    ["hello", "flow", "key", "draft"].map(read)
}

pub(crate) fn read(name: &'static str) -> Vector {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/impi-startup");
    let text = |ending: &str| {
        let path = folder.join(format!("{name}.{ending}"));
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"))
    };
    let octets = hex(&text("hex"));
    let mut octets = octets.as_slice();
    let mut vector = Vector { name, dialect: Dialect::Final, clients: 0, steps: Vec::new() };
    for line in text("txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |k: usize| words[k].parse::<usize>().expect("a number");
        let mut take = || octets.split_off(..number(2)).expect("as many octets").to_vec();
        match words[0] {
            "dialect" if words[1] == "draft" => vector.dialect = Dialect::Draft,
            "dialect" => assert_eq!(words[1], "final"),
            "clients" => vector.clients = number(1) as u32,
            "send" => vector.steps.push(Step::Send(number(1), take())),
            "reply" => vector.steps.push(Step::Reply(number(1), take())),
            "relayed" => vector.steps.push(Step::Relayed(number(1), take())),
            "close" => vector.steps.push(Step::Close(number(1))),
            other => panic!("{name}: unknown line {other}"),
        }
    }
    assert!(octets.is_empty(), "{name}: octets without a sender");
    vector
}

impl Vector {
    /// The messages that a client sends before it closes the connection.
    pub(crate) fn said_by(&self, client: usize) -> Vec<Vec<u8>> {
        let said = self.steps.iter().filter_map(|step| match step {
            Step::Send(from, octets) if *from == client => Some(octets.clone()),
            _ => None,
        });
        said.collect()
    }

    /// The messages that a client receives.
    pub(crate) fn sent_to(&self, client: usize) -> Vec<Vec<u8>> {
        let sent = self.steps.iter().filter_map(|step| match step {
            Step::Reply(to, octets) | Step::Relayed(to, octets) if *to == client => Some(octets.clone()),
            _ => None,
        });
        sent.collect()
    }
}

fn hex(text: &str) -> Vec<u8> {
    let words = text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
    let octet = |word: &str| {
        assert_eq!(word.len(), 2, "one octet, two digits: {word}");
        u8::from_str_radix(word, 16).expect("hexadecimal digits")
    };
    words.filter(|word| !word.ends_with(':')).map(octet).collect()
}
