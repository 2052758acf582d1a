//! Explanation of the octets of a message, as far as they make sense.
//!
//! Sections are parsed while they are shown, so nothing is copied and memory does not grow with the input.
//! They are parsed in order of offset, so the first damage is reported.

use mpjdev_buffer::layout::{
    MESSAGE_OVERHEAD, PAIR_FIELD, PRIMARY_HEADER_LEN, SECONDARY_HEADER_LEN, SECTION_HEADER_LEN,
};
use mpjdev_buffer::{BufferError, Damage, Encoding, PrimaryHeader, SecondaryHeader, SectionHeader, Type};

use crate::inspect::value::Value;

/// The first octets of every Java serialization stream: magic number and version.
pub const STREAM_START: [u8; 4] = [0xac, 0xed, 0x00, 0x05];
/// The unused octets of primary and section headers.
const UNUSED: std::ops::Range<usize> = 1..4;

/// Damage and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Octets from the start.
    pub offset: u64,
    /// The damage.
    pub damage: Damage,
}

/// Octets and their meaning as a message.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    octets: &'a [u8],
    encoding: Option<Encoding>,
    primary_len: Option<usize>,
    secondary: Option<Secondary<'a>>,
    section_count: usize,
    error: Option<Fault>,
}

/// A section, perhaps cut.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Its number, from 0.
    pub index: usize,
    /// Offset of its header.
    pub offset: usize,
    /// Type and count.
    pub header: SectionHeader,
    /// The octets of its header.
    pub head: &'a [u8],
    /// Its data, as many octets as are present.
    pub data: &'a [u8],
    /// The octets behind the data, as many as are present.
    pub padding: &'a [u8],
    encoding: Encoding,
}

/// The secondary header and payload.
#[derive(Clone, Copy, Debug)]
pub struct Secondary<'a> {
    /// Offset of the header.
    pub offset: usize,
    /// Octets of the payload, by the header.
    pub len: usize,
    /// The octets of the header.
    pub head: &'a [u8],
    /// The payload, as many octets as are present.
    pub payload: &'a [u8],
}

/// Explains octets.
pub fn explain(octets: &[u8]) -> Explanation<'_> {
    let mut explanation = Explanation {
        octets,
        encoding: octets.first().and_then(|&code| Encoding::from_code(code)),
        primary_len: None,
        secondary: None,
        section_count: 0,
        error: None,
    };
    explanation.error = explanation.examine().err();
    explanation
}

impl<'a> Explanation<'a> {
    /// All octets.
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// Byte order, if its octet is one.
    pub fn encoding(&self) -> Option<Encoding> {
        self.encoding
    }

    /// Octets of the primary payload, if the primary header is sound.
    pub fn primary_len(&self) -> Option<usize> {
        self.primary_len
    }

    /// The secondary header and payload, if the header is present and sound.
    pub fn secondary(&self) -> Option<&Secondary<'a>> {
        self.secondary.as_ref()
    }

    /// The first damage, if there is any.
    pub fn error(&self) -> Option<Fault> {
        self.error
    }

    /// Number of sections before the first damaged header. The last one may be cut.
    pub fn section_count(&self) -> usize {
        self.section_count
    }

    /// Offset where the primary payload ends, or would end.
    pub fn primary_end(&self) -> usize {
        PRIMARY_HEADER_LEN + self.primary_len.unwrap_or(0)
    }

    /// The sections before the first damaged header, in order.
    pub fn sections(&self) -> Sections<'a> {
        // Without a known length there is no section either: the walk ends where it begins.
        let encoding = self.encoding.unwrap_or(Encoding::NATIVE);
        let end = self.primary_end();
        Sections { octets: self.octets, encoding, at: PRIMARY_HEADER_LEN, end, index: 0, fault: None }
    }

    /// Unused octets of the primary header that are not zero: offset and octets.
    pub fn unused(&self) -> Option<(usize, &'a [u8])> {
        let unused = self.octets.get(UNUSED)?;
        unused.iter().any(|&octet| octet != 0).then_some((UNUSED.start, unused))
    }

    /// A deviation of the whole message that is no damage.
    pub fn deviation(&self) -> Option<&'static str> {
        let secondary = self.secondary?;
        if self.error.is_some() {
            return None;
        }
        let mut objects = self.sections().filter(|s| s.header.element == Type::Object).peekable();
        match (objects.peek().is_some(), secondary.len) {
            (false, 1..) => Some("there is a secondary payload, but no section of objects"),
            (true, 0) if objects.any(|s| s.header.count > 0) => {
                Some("there are sections of objects, but no secondary payload")
            }
            _ => None,
        }
    }

    fn examine(&mut self) -> Result<(), Fault> {
        let have = self.octets.len();
        let Some(head) = word(self.octets, 0) else { return Err(short(have, MESSAGE_OVERHEAD)) };
        let primary = PrimaryHeader::parse(head).map_err(|d| fault(d, 0))?;
        self.primary_len = Some(primary.primary_len);
        let at = self.primary_end();
        let secondary = self.examine_secondary(at, primary.encoding);
        let mut sections = self.sections();
        self.section_count = sections.by_ref().count();
        match sections.fault {
            Some(fault) => Err(fault),
            None => secondary,
        }
    }

    fn examine_secondary(&mut self, at: usize, encoding: Encoding) -> Result<(), Fault> {
        let have = self.octets.len();
        let Some(head) = word(self.octets, at) else { return Err(short(have, at + SECONDARY_HEADER_LEN)) };
        let header = SecondaryHeader::parse(head, encoding).map_err(|d| fault(d, at))?;
        let (len, payload_at) = (header.secondary_len, at + SECONDARY_HEADER_LEN);
        let need = payload_at + len;
        self.secondary = Some(Secondary {
            offset: at,
            len,
            head: &self.octets[at..payload_at],
            payload: &self.octets[payload_at..need.min(have)],
        });
        if have < need {
            return Err(short(have, need));
        }
        if have > need {
            return Err(fault(Damage::Long { have: have as u64, need: need as u64 }, need));
        }
        Ok(())
    }
}

/// Iterator over the sections; ends before a damaged one.
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    octets: &'a [u8],
    encoding: Encoding,
    at: usize,
    end: usize,
    index: usize,
    fault: Option<Fault>,
}

impl<'a> Iterator for Sections<'a> {
    type Item = Section<'a>;

    fn next(&mut self) -> Option<Section<'a>> {
        let (at, have) = (self.at, self.octets.len());
        let left = self.end - at;
        if left == 0 || self.fault.is_some() {
            return None;
        }
        let header = match SectionHeader::parse(word(self.octets, at)?, self.encoding) {
            Ok(header) => header,
            Err(damage) => {
                self.fault = Some(fault(damage, at));
                return None;
            }
        };
        let needed = SECTION_HEADER_LEN + header.padded_len();
        if needed > left {
            let damage = Damage::SectionLen { needed: needed as u64, available: left as u64 };
            self.fault = Some(fault(damage, at));
            return None;
        }
        let data_at = at + SECTION_HEADER_LEN;
        let data_end = data_at + header.data_len();
        let part = |from: usize, to: usize| &self.octets[from.min(have)..to.min(have)];
        let section = Section {
            index: self.index,
            offset: at,
            header,
            head: part(at, data_at),
            data: part(data_at, data_end),
            padding: part(data_end, at + needed),
            encoding: self.encoding,
        };
        self.at += needed;
        self.index += 1;
        Some(section)
    }
}

impl<'a> Section<'a> {
    /// The elements whose octets are present, in order; none for objects.
    pub fn values(&self) -> impl Iterator<Item = Value> + use<'a> {
        let (element, encoding) = (self.header.element, self.encoding);
        // A section of objects has no octets; its pieces only need a size above 0.
        self.data.chunks_exact(element.size().max(1)).map(move |e| Value::decode(e, element, encoding))
    }

    /// Number of elements whose octets are present.
    pub fn present(&self) -> usize {
        match self.header.element.size() {
            0 => self.header.count,
            size => self.data.len() / size,
        }
    }

    /// Offset of its first data octet.
    pub fn data_offset(&self) -> usize {
        self.offset + SECTION_HEADER_LEN
    }

    /// Octets that a reader ignores or corrects, in order of offset. Each note names its offset.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let unused = &self.head[UNUSED];
        if unused.iter().any(|&octet| octet != 0) {
            notes.push(not_zero("unused octets", self.offset + UNUSED.start, unused));
        }
        if self.header.element == Type::Boolean {
            let mut odd = self.data.iter().enumerate().filter(|(_, octet)| **octet > 1);
            if let Some((at, octet)) = odd.next() {
                let (more, offset) = (odd.count(), self.data_offset() + at);
                let others = if more == 0 { String::new() } else { format!(", and {more} more like it") };
                notes.push(format!("boolean octet {octet:#04x} at {offset} reads as true{others}"));
            }
        }
        if self.padding.iter().any(|&octet| octet != 0) {
            notes.push(not_zero("padding", self.data_offset() + self.data.len(), self.padding));
        }
        notes
    }
}

impl Secondary<'_> {
    /// Offset of the payload.
    pub fn payload_offset(&self) -> usize {
        self.offset + SECONDARY_HEADER_LEN
    }

    /// Whether the payload begins as a Java serialization stream does.
    pub fn is_stream(&self) -> bool {
        self.payload.starts_with(&STREAM_START)
    }

    /// A note if the unused octets are not zero.
    pub fn note(&self) -> Option<String> {
        let unused = &self.head[PAIR_FIELD];
        let what = "unused octets (or a pairing number)";
        unused.iter().any(|&octet| octet != 0).then(|| not_zero(what, self.offset, unused))
    }
}

/// The note on octets that a writer leaves zero.
pub fn not_zero(what: &str, offset: usize, octets: &[u8]) -> String {
    let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("{what} at {offset} not zero: {}", octets.join(" "))
}

/// The eight octets at `at`, if they are all there.
fn word(octets: &[u8], at: usize) -> Option<[u8; 8]> {
    octets.get(at..at + 8)?.try_into().ok()
}

fn short(have: usize, need: usize) -> Fault {
    fault(Damage::Short { have: have as u64, need: need as u64 }, have)
}

/// The fault that a reader of messages reports for this damage at this offset.
fn fault(damage: Damage, at: usize) -> Fault {
    match damage.at(at) {
        BufferError::Damaged { offset, damage } => Fault { offset, damage },
        _ => Fault { offset: at as u64, damage },
    }
}
