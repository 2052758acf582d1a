//! User data of a packet: what is shown of them, and what they begin.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Damage, Encoding, Type};

use crate::inspect::explain::{STREAM_START, explain};

/// Octets of a packet's data that are looked at.
pub(super) const KEPT_MAX: usize = 4096;
/// Octets of them that are shown.
pub(super) const SHOWN_MAX: usize = 16;
/// Sections of a message that are named.
const SECTIONS_MAX: usize = 8;

/// The data of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// How many octets there are.
    pub len: u64,
    /// The first of them; none where the recording leaves them out.
    pub shown: Vec<u8>,
    /// What they begin, if that can be told.
    pub content: Option<Content>,
}

/// What a message has in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An mpjdev message.
    Message(Message),
    /// A Java serialization stream: the second half of such a message.
    Stream,
}

/// The headers of an mpjdev message, as far as they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Byte order.
    pub encoding: Encoding,
    /// p.
    pub primary_len: usize,
    /// Types and counts of the first sections.
    pub sections: Vec<(Type, usize)>,
    /// Whether there may be more of them.
    pub has_more: bool,
    /// s, if its header is there.
    pub secondary_len: Option<usize>,
    /// Whether the secondary payload comes in a message of its own.
    pub is_split: bool,
}

impl Data {
    /// The data of a packet that begins a message, `kept` its first octets; or that does not, and then nothing is made of
    /// them.
    pub(super) fn new(len: u64, kept: &[u8], msglen: Option<u64>) -> Data {
        let shown = kept[..kept.len().min(SHOWN_MAX)].to_vec();
        let content = msglen.and_then(|msglen| recognise(kept, msglen));
        Data { len, shown, content }
    }

    /// The shown octets as text, where they are such.
    pub fn text(&self) -> String {
        let shown =
            |octet: &u8| if octet.is_ascii_graphic() || *octet == b' ' { *octet as char } else { '.' };
        self.shown.iter().map(shown).collect()
    }
}

/// What the octets at the beginning of a message of this length are. Nothing marks an mpjdev message as such: all its
/// headers have to fit, and its length.
fn recognise(kept: &[u8], msglen: u64) -> Option<Content> {
    if kept.starts_with(&STREAM_START) {
        return Some(Content::Stream);
    }
    let explanation = explain(kept);
    let (encoding, primary_len) = (explanation.encoding()?, explanation.primary_len()?);
    let first_len = (MESSAGE_OVERHEAD + primary_len) as u64;
    let secondary_len = explanation.secondary().map(|secondary| secondary.len);
    let is_split = first_len == msglen && secondary_len != Some(0);
    match explanation.error().map(|fault| fault.damage) {
        None if kept.len() as u64 == msglen => {}
        // There are more octets of it than these.
        Some(Damage::Short { need, .. }) => {
            let is_whole = match secondary_len {
                Some(_) => need == msglen || is_split,
                None => first_len <= msglen,
            };
            if !is_whole {
                return None;
            }
        }
        _ => return None,
    }
    let sections = explanation.sections().take(SECTIONS_MAX);
    let sections: Vec<_> = sections.map(|section| (section.header.element, section.header.count)).collect();
    let has_more = explanation.section_count() > sections.len() || secondary_len.is_none();
    let is_split = is_split && secondary_len.is_some();
    Some(Content::Message(Message { encoding, primary_len, sections, has_more, secondary_len, is_split }))
}
