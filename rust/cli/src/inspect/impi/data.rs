//! User data of a packet: the first octets, and the mpjdev message that they begin.

use mpjdev_buffer::Damage;
use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use serde::{Serialize, Serializer};

use crate::inspect::explain::{STREAM_START, explain};

/// Octets of data that are examined.
const EXAMINED_MAX: usize = 4096;
/// Octets of data that are shown.
const SHOWN_MAX: usize = 16;
/// Sections of a message that are named.
const SECTIONS_MAX: usize = 8;

/// The data of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Data {
    pub(super) len: u64,
    /// The first octets; none if the recording leaves them out.
    #[serde(rename = "first", serialize_with = "digits", skip_serializing_if = "Vec::is_empty")]
    pub(super) shown: Vec<u8>,
    /// The same octets as text, with a dot for each that is not printable.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    /// The mpjdev message that the data begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Message>,
    /// Whether the data begin a Java serialization stream, the second half of such a message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream: bool,
}

/// The headers of an mpjdev message, as far as they are present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Message {
    pub(super) encoding: &'static str,
    pub(super) primary_len: usize,
    pub(super) sections: Vec<Section>,
    /// Whether there may be more sections.
    pub(super) more_sections: bool,
    /// Octets of the secondary payload, if its header is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secondary_len: Option<usize>,
    /// Whether the secondary payload travels in a message of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) split: Option<bool>,
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Section {
    #[serde(rename = "type")]
    pub(super) element: &'static str,
    pub(super) count: usize,
}

fn digits<S: Serializer>(octets: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>())
}

impl Data {
    /// Data of `len` octets, of which `octets` are recorded. `msglen` is the length of the message that they
    /// begin; none if they begin no message.
    pub(super) fn new(len: u64, octets: &[u8], msglen: Option<u64>) -> Data {
        let examined = &octets[..octets.len().min(EXAMINED_MAX)];
        let is_examined = examined.len() as u64 == len.min(EXAMINED_MAX as u64);
        let msglen = msglen.filter(|_| is_examined);
        let stream = msglen.is_some() && examined.starts_with(&STREAM_START);
        let message = msglen.filter(|_| !stream).and_then(|msglen| message(examined, msglen));
        let shown = examined[..examined.len().min(SHOWN_MAX)].to_vec();
        let printable = |octet: &u8| if matches!(octet, b' '..=b'~') { *octet as char } else { '.' };
        let text = shown.iter().map(printable).collect();
        Data { len, shown, text, message, stream }
    }
}

/// The mpjdev message of this length that these octets begin. Nothing marks a message as such, so all its
/// headers and its length must fit.
fn message(octets: &[u8], msglen: u64) -> Option<Message> {
    let explanation = explain(octets);
    let (encoding, primary_len) = (explanation.encoding()?.name(), explanation.primary_len()?);
    let first_len = (MESSAGE_OVERHEAD + primary_len) as u64;
    let secondary_len = explanation.secondary().map(|secondary| secondary.len);
    let is_split = first_len == msglen && secondary_len != Some(0);
    match explanation.error().map(|fault| fault.damage) {
        None if octets.len() as u64 == msglen => {}
        // The message has more octets than these.
        Some(Damage::Short { need, .. }) => {
            let fits = match secondary_len {
                Some(_) => need == msglen || is_split,
                None => first_len <= msglen,
            };
            if !fits {
                return None;
            }
        }
        _ => return None,
    }
    let sections = explanation.sections().take(SECTIONS_MAX);
    let sections: Vec<_> = sections
        .map(|section| Section { element: section.header.element.name(), count: section.header.count })
        .collect();
    let more_sections = explanation.section_count() > sections.len() || secondary_len.is_none();
    let split = secondary_len.map(|_| is_split);
    Some(Message { encoding, primary_len, sections, more_sections, secondary_len, split })
}
