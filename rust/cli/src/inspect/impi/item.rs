//! What is told of a recording: one item for each command or packet, in order.

use std::collections::VecDeque;
use std::fmt;
use std::net::Ipv6Addr;

use mpjdev_proto::impi::marker::unmarked;
use mpjdev_proto::impi::startup::Tables;
use mpjdev_proto::impi::{Dialect, Proc};

use super::data::Data;

/// Where something begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Octets of the recording in front of it; in a capture those of its own direction.
    pub offset: u64,
    /// Line of the text, from 1; none in raw octets.
    pub line: Option<u64>,
}

impl Place {
    /// So many octets further on, as far as anybody can tell in the same line.
    pub(super) fn plus(self, len: usize) -> Place {
        Place { offset: self.offset.saturating_add(len as u64), ..self }
    }
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// The startup server.
    Server,
    /// A client of it, as the recorder numbers them; none where that is not known.
    Client(Option<u32>),
    /// A host of the mesh.
    Host(u32),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Server => f.write_str("server"),
            Party::Client(None) => f.write_str("client"),
            Party::Client(Some(number)) => write!(f, "client {number}"),
            Party::Host(number) => write!(f, "host {number}"),
        }
    }
}

/// Who says something to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Who says it.
    pub from: Party,
    /// Who hears it.
    pub to: Party,
}

impl Way {
    /// The part of IMPI that is spoken there, if there is one.
    pub(super) fn part(self) -> Option<Part> {
        match (self.from, self.to) {
            (Party::Server, Party::Client(_)) | (Party::Client(_), Party::Server) => Some(Part::Startup),
            (Party::Host(_), Party::Host(_)) => Some(Part::Packets),
            _ => None,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// The two protocols of IMPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The conversation with the startup server.
    Startup,
    /// The packets between hosts.
    Packets,
}

impl Part {
    /// Its name in options and headings.
    pub fn name(self) -> &'static str {
        match self {
            Part::Startup => "startup",
            Part::Packets => "packets",
        }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, unsigned or signed.
    Number(i128),
    /// A word.
    Word(String),
    /// A process.
    Proc(Proc),
    /// A process id.
    Pid(i64),
    /// A set, as far as it is shown.
    Set(Vec<Value>),
    /// What a COLL command brings.
    List {
        /// The first of them, by client where that is known.
        shown: Vec<(Option<u32>, Value)>,
        /// How many there are.
        total: u64,
    },
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Word(word) => f.write_str(word),
            Value::Proc(proc) => write!(f, "{}/{}", address(&proc.host_id), Value::Pid(proc.pid)),
            Value::Pid(pid) => match unmarked(Dialect::Final, *pid).or(unmarked(Dialect::Draft, *pid)) {
                Some(own) => write!(f, "mpj:{own}"),
                None => write!(f, "{pid}"),
            },
            Value::Set(values) => write!(f, "{{{}}}", joined(values.iter())),
            Value::List { shown, .. } => f.write_str(&joined(shown.iter().map(|(_, value)| value))),
        }
    }
}

fn joined(values: impl Iterator<Item = impl fmt::Display>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// A field of a command or a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the specification, without `pk_`.
    pub name: &'static str,
    /// What it holds.
    pub value: Value,
    /// Whether it means something there.
    pub means: bool,
}

impl Field {
    pub(super) fn new(name: &'static str, value: Value) -> Field {
        Field { name, value, means: true }
    }

    pub(super) fn number(name: &'static str, number: impl Into<i128>) -> Field {
        Field::new(name, Value::Number(number.into()))
    }
}

/// One command or packet, and what it means.
#[derive(Clone, Debug)]
pub struct Item {
    /// Of the recording, from 1.
    pub number: u64,
    /// Whose it is.
    pub part: Part,
    /// Where it begins.
    pub place: Place,
    /// Who says it to whom, if that is known.
    pub way: Option<Way>,
    /// Its type.
    pub kind: &'static str,
    /// Its fields, in their order.
    pub fields: Vec<Field>,
    /// What it means; empty where the fields say it.
    pub meaning: String,
    /// User data.
    pub data: Option<Data>,
    /// What the whole job has agreed on with it.
    pub job: Option<Box<Tables>>,
    /// What breaks the protocol.
    pub warnings: Vec<String>,
}

impl Item {
    pub(super) fn new(part: Part, place: Place, way: Option<Way>, kind: &'static str) -> Item {
        Item {
            number: 0,
            part,
            place,
            way,
            kind,
            fields: Vec::new(),
            meaning: String::new(),
            data: None,
            job: None,
            warnings: Vec::new(),
        }
    }
}

/// Where octets stop making sense, and why. Nothing of that direction is told behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Whose octets they are.
    pub part: Part,
    /// Where.
    pub place: Place,
    /// Who says it to whom, if that is known.
    pub way: Option<Way>,
    /// Why.
    pub message: String,
}

/// What is told, in order.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A command or a packet.
    Item(Box<Item>),
    /// The end of what makes sense in one direction.
    Damage(Damage),
}

impl Entry {
    /// Whose it is.
    pub fn part(&self) -> Part {
        match self {
            Entry::Item(item) => item.part,
            Entry::Damage(damage) => damage.part,
        }
    }
}

/// How much was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Commands of start-up.
    pub commands: u64,
    /// Packets, not counting what opens a connection.
    pub packets: u64,
    /// Warnings of all items.
    pub warnings: u64,
    /// Directions that stop making sense.
    pub damages: u64,
}

impl Sums {
    /// Whether all makes sense and keeps to the protocol.
    pub fn is_sound(&self) -> bool {
        self.warnings == 0 && self.damages == 0
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Damage(_) => self.damages += 1,
            Entry::Item(item) => {
                self.warnings += item.warnings.len() as u64;
                match item.part {
                    _ if [HANDSHAKE, GREETING, PROOF, END].contains(&item.kind) => {}
                    Part::Startup => self.commands += 1,
                    Part::Packets => self.packets += 1,
                }
            }
        }
    }
}

/// The type of what opens a connection of the mesh.
pub(super) const HANDSHAKE: &str = "handshake";
/// The type of what hosts of ours say behind that: who they are, each in turn.
pub(super) const GREETING: &str = "greeting";
/// The type of what they say then: that it is true.
pub(super) const PROOF: &str = "proof";
/// The type of what closes one.
pub(super) const END: &str = "end";

/// Entries that are ready.
#[derive(Debug, Default)]
pub(super) struct Told {
    entries: VecDeque<Entry>,
    items: u64,
}

impl Told {
    /// The number that the next item gets.
    pub(super) fn next_number(&self) -> u64 {
        self.items + 1
    }

    pub(super) fn item(&mut self, mut item: Item) {
        self.items += 1;
        item.number = self.items;
        self.entries.push_back(Entry::Item(Box::new(item)));
    }

    pub(super) fn damage(&mut self, part: Part, place: Place, way: Option<Way>, message: impl Into<String>) {
        self.entries.push_back(Entry::Damage(Damage { part, place, way, message: message.into() }));
    }

    pub(super) fn poll(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }
}

/// A host id or an address: in the form that LAM gives IPv4, as such; all others as IPv6 (IMPI 2.1).
pub(super) fn address(octets: &[u8; 16]) -> String {
    match octets {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if *a != 0 => format!("{a}.{b}.{c}.{d}"),
        _ => Ipv6Addr::from(*octets).to_string(),
    }
}

/// `1 octet`, `2 octets`.
pub(super) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
