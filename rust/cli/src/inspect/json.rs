//! A message as one JSON object.
//!
//! ```text
//! {"encoding":"big|little","primary_len":n,"sections":[{"type":"int","count":3,"values":[..]}],
//!  "secondary_len":n}
//! ```
//!
//! A damaged message has `"error":{"offset":n,"message":".."}` at the end and lacks what is not known. Values
//! are written while they are decoded, so the output takes no memory.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::inspect::explain::{Explanation, Fault, Section, Sections};

#[derive(Serialize)]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_len: Option<usize>,
    #[serde(serialize_with = "sections")]
    sections: Sections<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secondary_len: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

#[derive(Serialize)]
struct SectionObject<'a> {
    #[serde(rename = "type")]
    element: &'static str,
    count: usize,
    #[serde(serialize_with = "values")]
    values: Section<'a>,
}

#[derive(Serialize)]
struct Error {
    offset: u64,
    message: String,
}

/// Writes the object and a line end.
///
/// # Errors
/// Those of the writer.
pub fn write(mut out: impl Write, explanation: &Explanation<'_>) -> io::Result<()> {
    let error = |Fault { offset, damage }| Error { offset, message: damage.to_string() };
    let message = Message {
        encoding: explanation.encoding().map(|encoding| encoding.name()),
        primary_len: explanation.primary_len(),
        sections: explanation.sections(),
        secondary_len: explanation.secondary().map(|secondary| secondary.len),
        error: explanation.error().map(error),
    };
    serde_json::to_writer(&mut out, &message)?;
    writeln!(out)
}

fn sections<S: Serializer>(sections: &Sections<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sections.clone().map(|section| SectionObject {
        element: section.header.element.name(),
        count: section.header.count,
        values: section,
    }))
}

fn values<S: Serializer>(section: &Section<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(section.values())
}
