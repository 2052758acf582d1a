//! The entries of a dissected recording: an item for each command or packet, in order.

use std::fmt;

use serde::{Serialize, Serializer};

use super::data::Data;
use super::value::{Fields, Value};

/// The location in the recording at which octets begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Location {
    /// Octets of the recording before it. In a capture only those of the same direction count.
    pub(super) offset: u64,
    /// Line of the text, from 1; none in raw octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
}

impl Location {
    /// The location `len` octets further. The line stays the same: the lines of further octets are not known.
    pub(super) fn plus(self, len: usize) -> Location {
        Location { offset: self.offset.saturating_add(len as u64), ..self }
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Endpoint {
    Server,
    /// A client of it, by the recorder's number; none if the recording has no numbers.
    Client(Option<u32>),
    Host(u32),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Server => f.write_str("server"),
            Endpoint::Client(None) => f.write_str("client"),
            Endpoint::Client(Some(number)) => write!(f, "client {number}"),
            Endpoint::Host(number) => write!(f, "host {number}"),
        }
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A sender and a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Direction {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
}

impl Direction {
    /// The protocol between the two; none if they have no connection.
    pub(super) fn part(self) -> Option<Part> {
        match (self.from, self.to) {
            (Endpoint::Server, Endpoint::Client(_)) | (Endpoint::Client(_), Endpoint::Server) => {
                Some(Part::Startup)
            }
            (Endpoint::Host(_), Endpoint::Host(_)) => Some(Part::Packets),
            _ => None,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// One of the two protocols of IMPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Commands between clients and the startup server.
    Startup,
    /// Packets between hosts.
    Packets,
}

impl Part {
    /// The name in options and headings.
    pub fn name(self) -> &'static str {
        match self {
            Part::Startup => "startup",
            Part::Packets => "packets",
        }
    }
}

/// The type of the number that opens a connection between hosts.
pub(super) const HANDSHAKE: &str = "handshake";
/// The type of the first message of an mpjdev host.
pub(super) const GREETING: &str = "greeting";
/// The type of the second message of an mpjdev host.
pub(super) const PROOF: &str = "proof";
/// The type of the end of a direction.
pub(super) const END: &str = "end";

/// One command or packet.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Item {
    /// The position in the recording, from 1.
    pub(super) number: u64,
    pub(super) part: Part,
    #[serde(flatten)]
    pub(super) location: Location,
    #[serde(flatten)]
    pub(super) direction: Option<Direction>,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// The fields that have a meaning in this type, in their order.
    pub(super) fields: Fields,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    pub(super) ignored: Fields,
    /// The meaning in words; empty if the fields state it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) meaning: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Data>,
    /// Violations of the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

impl Item {
    pub(super) fn new(
        part: Part,
        location: Location,
        direction: Option<Direction>,
        kind: &'static str,
    ) -> Item {
        Item {
            number: 0,
            part,
            location,
            direction,
            kind,
            fields: Fields::default(),
            ignored: Fields::default(),
            meaning: String::new(),
            data: None,
            warnings: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &'static str, value: Value) {
        self.fields.0.push((name, value));
    }

    pub(super) fn add_number(&mut self, name: &'static str, number: impl Into<i128>) {
        self.add(name, Value::Number(number.into()));
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }
}

/// Malformed octets at their location. The rest of the direction is not dissected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Damage {
    pub(super) part: Part,
    #[serde(flatten)]
    pub(super) location: Location,
    #[serde(flatten)]
    pub(super) direction: Option<Direction>,
    #[serde(rename = "error")]
    pub(super) message: String,
}

/// One entry of the output.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Entry {
    /// A command or a packet.
    Item(Box<Item>),
    /// Malformed octets, the end of one direction.
    Damage(Damage),
}

impl Entry {
    /// The protocol that the entry belongs to.
    pub(super) fn part(&self) -> Part {
        match self {
            Entry::Item(item) => item.part,
            Entry::Damage(damage) => damage.part,
        }
    }
}

/// Counts of a whole recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Commands of start-up.
    pub commands: u64,
    /// Packets, without the messages that open a connection.
    pub packets: u64,
    /// Warnings of all items.
    pub warnings: u64,
    /// Directions that end in malformed octets.
    pub damages: u64,
}

impl Totals {
    /// Whether there is neither a warning nor damage.
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
