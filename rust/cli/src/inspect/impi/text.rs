//! The entries of a recording as text: one line for each command or packet, details and warnings below it.

use std::io::{self, Write};

use mpjdev_proto::impi::Dialect;

use super::data::{Data, Message};
use super::dissector::Dissector;
use super::item::{Damage, Entry, Item, Location, Totals};
use super::value::{List, Value};
use crate::inspect::text::count;

/// Values of a COLL command that are shown.
const VALUES_FEW: usize = 16;

/// Writes all entries and the totals. `all`: with the fields that are ignored, and with all values.
pub(super) fn write(
    mut out: impl Write,
    dialect: Dialect,
    all: bool,
    first: Option<Entry>,
    dissector: &mut Dissector,
) -> io::Result<()> {
    let mut last_part = None;
    for entry in first.into_iter().chain(dissector.by_ref()) {
        let part = entry.part();
        if last_part.replace(part) != Some(part) {
            writeln!(out, "{:<11} {} dialect", part.name(), dialect.name())?;
        }
        match entry {
            Entry::Item(item) => write_item(&mut out, &item, all)?,
            Entry::Damage(damage) => write_damage(&mut out, &damage)?,
        }
    }
    write_totals(&mut out, dissector.totals())?;
    out.flush()
}

fn write_item(out: &mut impl Write, item: &Item, all: bool) -> io::Result<()> {
    let direction =
        item.direction.map_or(String::new(), |direction| format!("{:<18}  ", direction.to_string()));
    let location_len = if item.location.line.is_some() { 18 } else { 11 };
    let (number, kind, at) = (item.number, item.kind, location(item.location));
    let line = format!("  {number:<3} {at:<location_len$}  {direction}{kind:<9} {}", fields(item, all));
    write!(out, "{}", line.trim_end())?;
    if !item.meaning.is_empty() {
        write!(out, "  # {}", item.meaning)?;
    }
    if let Some(data) = &item.data {
        write!(out, "{}", octets(data))?;
    }
    writeln!(out)?;
    if let Some(data) = &item.data {
        if let Some(message) = &data.message {
            write_below(out, ' ', &message_line(message))?;
        }
        if data.stream {
            write_below(out, ' ', "a Java serialization stream (ac ed 00 05)")?;
        }
    }
    item.warnings.iter().try_for_each(|warning| write_below(out, '!', warning))
}

fn write_damage(out: &mut impl Write, damage: &Damage) -> io::Result<()> {
    let direction = damage.direction.map_or(String::new(), |direction| format!(", {direction}"));
    writeln!(out, "damaged     {}{direction}: {}", location(damage.location), damage.message)
}

fn write_below(out: &mut impl Write, mark: char, text: &str) -> io::Result<()> {
    writeln!(out, "            {mark} {text}")
}

fn write_totals(out: &mut impl Write, totals: Totals) -> io::Result<()> {
    let mut words = Vec::new();
    if totals.commands > 0 {
        words.push(count(totals.commands, "command"));
    }
    if totals.packets > 0 || totals.commands == 0 {
        words.push(count(totals.packets, "packet"));
    }
    words.push(count(totals.warnings, "warning"));
    writeln!(out, "in all      {}", words.join(", "))
}

fn location(location: Location) -> String {
    match location.line {
        None => format!("at {}", location.offset),
        Some(line) => format!("at {}, line {line}", location.offset),
    }
}

fn fields(item: &Item, all: bool) -> String {
    let limit = if all { usize::MAX } else { VALUES_FEW };
    let ignored = item.ignored.0.iter().filter(|_| all);
    let words = item.fields.0.iter().chain(ignored).map(|(name, value)| match (*name, value) {
        ("src" | "label", value) => value.to_string(),
        ("dest", value) => format!("-> {value}"),
        (_, Value::List(values)) => list(values, limit),
        (name, value) => format!("{name}={value}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Values, each client's behind its number as far as that is known.
fn list(list: &List, limit: usize) -> String {
    let mut text = String::new();
    let mut before = None;
    for (k, (client, value)) in list.shown.iter().take(limit).enumerate() {
        text.push_str(match k {
            0 => "",
            _ if before != *client => "; ",
            _ => ", ",
        });
        if let Some(client) = client.filter(|_| before != *client) {
            text.push_str(&format!("client {client}: "));
        }
        before = *client;
        text.push_str(&value.to_string());
    }
    let more = list.total - list.shown.len().min(limit);
    if more > 0 {
        text.push_str(&format!(", ... {more} more"));
    }
    text
}

/// Data as hexadecimal digits and as text.
fn octets(data: &Data) -> String {
    let Data { len, shown, text, .. } = data;
    if shown.is_empty() {
        return format!("  | {}, not there", count(*len, "octet"));
    }
    let digits: Vec<String> = shown.iter().map(|octet| format!("{octet:02x}")).collect();
    let more = if *len > shown.len() as u64 { " ..." } else { "" };
    format!("  | {}{more} | {text}{more}", digits.join(" "))
}

fn message_line(message: &Message) -> String {
    let Message { encoding, primary_len, sections, more_sections, secondary_len, split } = message;
    let mut parts: Vec<String> =
        sections.iter().map(|section| format!("{}[{}]", section.element, section.count)).collect();
    if *more_sections {
        parts.push("...".to_owned());
    }
    let sections = if parts.is_empty() { "no sections".to_owned() } else { parts.join(", ") };
    let secondary = match secondary_len {
        None => String::new(),
        Some(0) => ", no secondary payload".to_owned(),
        Some(len) => format!(", {} of secondary payload", count(*len, "octet")),
    };
    let split = if *split == Some(true) { " in a message of its own" } else { "" };
    let primary = count(*primary_len, "octet");
    format!("mpjdev message: {encoding}-endian, {primary} of primary payload: {sections}{secondary}{split}")
}
