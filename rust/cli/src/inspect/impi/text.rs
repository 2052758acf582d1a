//! The explanation for people: one line for each command or packet, what else is to be said of it below.

use std::io::{self, Write};

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::Tables;

use super::data::{Content, Data, Message};
use super::item::{Damage, Entry, Field, Item, Part, Place, Sums, Value, count};

/// Values of a COLL command that are shown.
const VALUES_FEW: usize = 16;

/// Writes entries as they come.
#[derive(Debug)]
pub(super) struct Lines<W> {
    out: W,
    dialect: Dialect,
    /// Whether fields that mean nothing are shown as well, and all values.
    all: bool,
    part: Option<Part>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W, dialect: Dialect, all: bool) -> Self {
        Lines { out, dialect, all, part: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.part.is_some()
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let part = entry.part();
        if self.part != Some(part) {
            self.part = Some(part);
            writeln!(self.out, "{:<11} {} dialect", part.name(), name(self.dialect))?;
        }
        match entry {
            Entry::Item(item) => self.item(item),
            Entry::Damage(damage) => self.damage(damage),
        }
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        let way = item.way.map_or(String::new(), |way| format!("{:<18}  ", way.to_string()));
        let fields = self.fields(&item.fields);
        let place_len = if item.place.line.is_some() { 18 } else { 11 };
        let (number, kind, at) = (item.number, item.kind, place(item.place));
        let line = format!("  {number:<3} {at:<place_len$}  {way}{kind:<9} {fields}");
        write!(self.out, "{}", line.trim_end())?;
        if !item.meaning.is_empty() {
            write!(self.out, "  # {}", item.meaning)?;
        }
        if let Some(data) = &item.data {
            write!(self.out, "{}", octets(data))?;
        }
        writeln!(self.out)?;
        match item.data.as_ref().and_then(|data| data.content.as_ref()) {
            Some(Content::Message(message)) => self.below(' ', &message_line(message))?,
            Some(Content::Stream) => self.below(' ', "a Java serialization stream (ac ed 00 05)")?,
            None => {}
        }
        if let Some(tables) = &item.job {
            self.below(' ', &job_line(tables))?;
        }
        item.warnings.iter().try_for_each(|warning| self.below('!', warning))
    }

    fn fields(&self, fields: &[Field]) -> String {
        let shown = fields.iter().filter(|field| field.means || self.all);
        let limit = if self.all { usize::MAX } else { VALUES_FEW };
        let words = shown.map(|field| match (field.name, &field.value) {
            ("src" | "label", value) => value.to_string(),
            ("dest", value) => format!("-> {value}"),
            (_, Value::List { shown, total }) => list(shown, *total, limit),
            (name, value) => format!("{name}={value}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        let way = damage.way.map_or(String::new(), |way| format!(", {way}"));
        writeln!(self.out, "damaged     {}{way}: {}", place(damage.place), damage.message)
    }

    fn below(&mut self, mark: char, text: &str) -> io::Result<()> {
        writeln!(self.out, "            {mark} {text}")
    }

    /// Writes what it all comes to.
    pub(super) fn finish(&mut self, sums: Sums, open: [u64; 3]) -> io::Result<()> {
        let mut said: Vec<String> = Vec::new();
        if sums.commands > 0 {
            said.push(count(sums.commands, "command"));
        }
        if sums.packets > 0 || sums.commands == 0 {
            said.push(count(sums.packets, "packet"));
        }
        said.push(count(sums.warnings, "warning"));
        let left = [" not matched", " not complete", " without an answer to its cancel request"];
        let left = open.into_iter().zip(left).filter(|(open, _)| *open > 0);
        said.extend(left.map(|(open, what)| count(open, "message") + what));
        writeln!(self.out, "in all      {}", said.join(", "))?;
        self.out.flush()
    }
}

pub(super) fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Final => "final",
        Dialect::Draft => "draft",
    }
}

fn place(place: Place) -> String {
    match place.line {
        None => format!("at {}", place.offset),
        Some(line) => format!("at {}, line {line}", place.offset),
    }
}

/// Values by client, as far as that is known.
fn list(shown: &[(Option<u32>, Value)], total: u64, limit: usize) -> String {
    let mut text = String::new();
    let mut before = None;
    for (k, (client, value)) in shown.iter().take(limit).enumerate() {
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
    let more = total - shown.len().min(limit) as u64;
    if more > 0 {
        text.push_str(&format!(", ... {more} more"));
    }
    text
}

/// Data as hexadecimal digits and as text.
fn octets(data: &Data) -> String {
    let Data { len, shown, .. } = data;
    if shown.is_empty() {
        return format!("  | {}, not there", count(*len, "octet"));
    }
    let digits: Vec<String> = shown.iter().map(|octet| format!("{octet:02x}")).collect();
    let more = if *len > shown.len() as u64 { " ..." } else { "" };
    format!("  | {}{more} | {}{more}", digits.join(" "), data.text())
}

fn message_line(message: &Message) -> String {
    let Message { encoding, primary_len, sections, has_more, secondary_len, is_split } = message;
    let mut parts: Vec<String> =
        sections.iter().map(|(element, total)| format!("{element}[{total}]")).collect();
    if *has_more {
        parts.push("...".to_owned());
    }
    let sections = if parts.is_empty() { "no sections".to_owned() } else { parts.join(", ") };
    let secondary = match secondary_len {
        None => String::new(),
        Some(0) => ", no secondary payload".to_owned(),
        Some(len) => format!(", {} of secondary payload", count(*len as u64, "octet")),
    };
    let split = if *is_split { " in a message of its own" } else { "" };
    let primary = count(*primary_len as u64, "octet");
    format!(
        "mpjdev message: {}-endian, {primary} of primary payload: {sections}{secondary}{split}",
        encoding.name()
    )
}

fn job_line(tables: &Tables) -> String {
    let Tables { clients, hosts, procs, maxdatalen, ackmark, hiwater, tag_ub, xsize, maxlinear } = tables;
    let counts =
        [(clients.len(), "client"), (hosts.len(), "host")].map(|(n, what)| count(n as u64, what)).join(", ");
    format!(
        "job: {counts}, {} in MPI_COMM_WORLD; maxdatalen {maxdatalen}, ackmark {ackmark}, hiwater {hiwater}, \
         largest tag {tag_ub}, xsize {xsize}, maxlinear {maxlinear}",
        count(procs.len() as u64, "rank")
    )
}
