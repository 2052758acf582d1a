//! A message as text: one line for each part, and notes below it.

use std::fmt;
use std::io::{self, Write};

use mpjdev_buffer::Type;

use crate::inspect::explain::{Explanation, Secondary, Section, not_zero};

/// Limits of the output.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sections.
    pub sections: usize,
    /// Values of each section.
    pub values: usize,
}

impl Limits {
    /// A screen full.
    pub const FEW: Limits = Limits { sections: 40, values: 10 };
    /// Everything.
    pub const NONE: Limits = Limits { sections: usize::MAX, values: usize::MAX };
}

/// Writes the explanation.
///
/// # Errors
/// Those of the writer.
pub fn write(mut out: impl Write, explanation: &Explanation<'_>, limits: Limits) -> io::Result<()> {
    let octets = count(explanation.octets().len(), "octet");
    match explanation.encoding() {
        Some(encoding) => writeln!(out, "message     {octets}, {}-endian", encoding.name())?,
        None => writeln!(out, "message     {octets}, byte order unknown")?,
    }
    if let Some((offset, unused)) = explanation.unused() {
        note(&mut out, &not_zero("unused octets", offset, unused))?;
    }
    if let Some(p) = explanation.primary_len() {
        let sections = count(explanation.section_count(), "section");
        writeln!(out, "primary     {} at 8, {sections}", count(p, "octet"))?;
        for section in explanation.sections().take(limits.sections) {
            write_section(&mut out, &section, limits.values)?;
        }
        let more = explanation.section_count().saturating_sub(limits.sections);
        if more > 0 {
            writeln!(out, "  ... {} more (--all shows them)", count(more, "section"))?;
        }
    }
    if let Some(secondary) = explanation.secondary() {
        write_secondary(&mut out, secondary)?;
    }
    if let Some(deviation) = explanation.deviation() {
        note(&mut out, deviation)?;
    }
    if let Some(fault) = explanation.error() {
        writeln!(out, "damaged     at offset {}: {}", fault.offset, fault.damage)?;
    }
    Ok(())
}

fn write_section(out: &mut impl Write, section: &Section<'_>, limit: usize) -> io::Result<()> {
    let (element, total) = (section.header.element, section.header.count);
    write!(out, "  {:<3} at {:<6} {:<12}", section.index, section.offset, format!("{element}[{total}]"))?;
    if element == Type::Object && total > 0 {
        write!(out, " in the secondary payload")?;
    }
    for (k, value) in section.values().take(limit).enumerate() {
        write!(out, "{} {value}", if k == 0 { "" } else { "," })?;
    }
    let (present, shown) = (section.present(), section.values().take(limit).count());
    if element != Type::Object && present > shown {
        write!(out, ", ... {} more", present - shown)?;
    }
    if total > present {
        write!(out, "; {} missing", total - present)?;
    }
    writeln!(out)?;
    section.notes().iter().try_for_each(|text| note(out, text))
}

fn write_secondary(out: &mut impl Write, secondary: &Secondary<'_>) -> io::Result<()> {
    let (len, at) = (secondary.len, secondary.payload_offset());
    match len {
        0 => writeln!(out, "secondary   none")?,
        _ if secondary.is_stream() => {
            writeln!(
                out,
                "secondary   {} at {at}, a Java serialization stream (ac ed 00 05)",
                count(len, "octet")
            )?;
        }
        _ => writeln!(out, "secondary   {} at {at}, not a Java serialization stream", count(len, "octet"))?,
    }
    secondary.note().map_or(Ok(()), |text| note(out, &text))
}

fn note(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "            ! {text}")
}

/// `1 octet`, `2 octets`.
pub(crate) fn count<N: fmt::Display + PartialEq + From<u8>>(n: N, what: &str) -> String {
    format!("{n} {what}{}", if n == N::from(1) { "" } else { "s" })
}
