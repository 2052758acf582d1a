//! The explanation as one JSON object, for programs.
//!
//! `{"encoding":"big|little","primary_len":n,"sections":[{"type":"int","count":3,"values":[..]}],"secondary_len":n}`
//!
//! A damaged message has `"error":{"offset":n,"message":".."}` at the end and lacks what is not known. Values are
//! written as they are found: the output takes no memory, however large the message.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::inspect::explain::{Explanation, Fault, Section, Sections};

/// Writes the object and a line end.
///
/// # Errors
/// Those of the writer.
pub fn write(mut out: impl Write, explanation: &Explanation<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut out, &Whole(explanation))?;
    writeln!(out)
}

struct Whole<'a>(&'a Explanation<'a>);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(encoding) = self.0.encoding() {
            map.serialize_entry("encoding", encoding.name())?;
        }
        if let Some(p) = self.0.primary_len() {
            map.serialize_entry("primary_len", &p)?;
        }
        map.serialize_entry("sections", &Each(self.0.sections()))?;
        if let Some(secondary) = self.0.secondary() {
            map.serialize_entry("secondary_len", &secondary.len)?;
        }
        if let Some(fault) = self.0.error() {
            map.serialize_entry("error", &Error(fault))?;
        }
        map.end()
    }
}

struct Each<'a>(Sections<'a>);

impl Serialize for Each<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone().map(One))
    }
}

struct One<'a>(Section<'a>);

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("type", self.0.header.element.name())?;
        map.serialize_entry("count", &self.0.header.count)?;
        map.serialize_entry("values", &Values(&self.0))?;
        map.end()
    }
}

struct Values<'a>(&'a Section<'a>);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.values())
    }
}

struct Error(Fault);

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("offset", &self.0.offset)?;
        map.serialize_entry("message", &self.0.damage.to_string())?;
        map.end()
    }
}
