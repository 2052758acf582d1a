//! An annotated dump of a message: eight octets a line, with their meaning beside them.
//!
//! The output is hex text that `inspect` reads.

use std::io::{self, Write};

use mpjdev_buffer::layout::PRIMARY_HEADER_LEN;

use crate::inspect::explain::{Explanation, Secondary, Section};
use crate::inspect::text::count;

/// Octets in a line.
const ROW: usize = 8;
const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// Writes the dump.
///
/// # Errors
/// Those of the writer.
pub fn write(out: impl Write, explanation: &Explanation<'_>) -> io::Result<()> {
    Dump { out, explanation, at: 0, is_damage_written: false }.write()
}

struct Dump<'a, W> {
    out: W,
    explanation: &'a Explanation<'a>,
    /// Octets written so far.
    at: usize,
    is_damage_written: bool,
}

/// A note if octets 1 to 3 of a header, which are unused, are not zero.
fn unused(head: &[u8]) -> &'static str {
    if head.iter().skip(1).take(3).all(|&octet| octet == 0) { "" } else { ", unused octets not zero" }
}

impl<W: Write> Dump<'_, W> {
    fn write(mut self) -> io::Result<()> {
        let octets = self.explanation.octets();
        if let (Some(p), Some(encoding)) = (self.explanation.primary_len(), self.explanation.encoding()) {
            let note = format!(
                "primary header: {}-endian, {} of primary payload",
                encoding.name(),
                count(p, "octet")
            );
            let head = &octets[..PRIMARY_HEADER_LEN];
            self.row(head, &(note + unused(head)))?;
            for section in self.explanation.sections() {
                self.section(&section)?;
            }
            self.plain(self.explanation.primary_end().min(octets.len()))?;
        }
        if let Some(secondary) = self.explanation.secondary() {
            self.secondary(secondary)?;
        }
        self.plain(octets.len())?;
        self.write_damage(usize::MAX)
    }

    fn section(&mut self, section: &Section<'_>) -> io::Result<()> {
        let (element, total) = (section.header.element, section.header.count);
        let note = format!("section {}: {element}, {}", section.index, count(total, "element"));
        self.row(section.head, &(note + unused(section.head)))?;
        let mut values = section.values();
        let per_row = ROW / element.size().max(1);
        let rows = section.data.chunks(ROW);
        let last = rows.len();
        for (k, data) in rows.enumerate() {
            let mut note = String::new();
            for value in values.by_ref().take(per_row) {
                note.push_str(&format!("{}{value}", if note.is_empty() { "" } else { " " }));
            }
            if k + 1 < last || section.padding.is_empty() {
                self.row(data, &note)?;
            } else {
                let padded = [data, section.padding].concat();
                let padding = count(section.padding.len(), "octet");
                let zero = if section.padding.iter().all(|&octet| octet == 0) { "" } else { ", not zero" };
                self.row(&padded, &format!("{note}, {padding} of padding{zero}"))?;
            }
        }
        Ok(())
    }

    fn secondary(&mut self, secondary: &Secondary<'_>) -> io::Result<()> {
        let note = format!("secondary header: {} of secondary payload", count(secondary.len, "octet"));
        let zero = secondary.head.iter().take(4).all(|&octet| octet == 0);
        let unused = if zero { "" } else { ", unused octets (or a pairing number) not zero" };
        self.row(secondary.head, &(note + unused))?;
        for (k, payload) in secondary.payload.chunks(ROW).enumerate() {
            let stream = if k == 0 && secondary.is_stream() { " Java serialization stream" } else { "" };
            let text: String = payload
                .iter()
                .map(|&octet| if matches!(octet, b' '..=b'~') { octet as char } else { '.' })
                .collect();
            self.row(payload, &format!("{text:<ROW$}{stream}"))?;
        }
        Ok(())
    }

    /// The octets up to `end`, without a meaning.
    fn plain(&mut self, end: usize) -> io::Result<()> {
        while self.at < end {
            let row_end = end.min(self.at + ROW);
            self.row(&self.explanation.octets()[self.at..row_end], "")?;
        }
        Ok(())
    }

    fn row(&mut self, octets: &[u8], note: &str) -> io::Result<()> {
        self.write_damage(self.at + octets.len())?;
        // A dump has millions of octets, and write! is slower.
        let mut digits = [b' '; 3 * ROW];
        for (place, octet) in digits.chunks_exact_mut(3).zip(octets) {
            place[1] = DIGITS[usize::from(octet >> 4)];
            place[2] = DIGITS[usize::from(octet & 15)];
        }
        let note = note.trim_end();
        let (shown, mark) = if note.is_empty() { (3 * octets.len(), "") } else { (3 * ROW, "  # ") };
        write!(self.out, "{:08x}: ", self.at)?;
        self.out.write_all(&digits[..shown])?;
        self.at += octets.len();
        writeln!(self.out, "{mark}{note}")
    }

    /// Writes the damage once, before the line that reaches beyond its offset.
    fn write_damage(&mut self, end: usize) -> io::Result<()> {
        match self.explanation.error() {
            Some(fault) if !self.is_damage_written && fault.offset < end as u64 => {
                self.is_damage_written = true;
                writeln!(self.out, "# damaged at offset {}: {}", fault.offset, fault.damage)
            }
            _ => Ok(()),
        }
    }
}
