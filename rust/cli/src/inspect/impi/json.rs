//! The explanation as one JSON object, for programs; `mpjdev inspect --help` has its keys.

use std::io::{self, Write};

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::Tables;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::data::{Content, Data, Message};
use super::item::{Damage, Entry, Field, Item, Place, Sums, Value, Way, address};
use super::text::name;

/// Writes entries as they come.
#[derive(Debug)]
pub(super) struct Object<W> {
    out: W,
    dialect: Dialect,
    has_begun: bool,
}

impl<W: Write> Object<W> {
    pub(super) fn new(out: W, dialect: Dialect) -> Self {
        Object { out, dialect, has_begun: false }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn begin(&mut self) -> io::Result<()> {
        write!(self.out, "{{\"dialect\":\"{}\",\"items\":[", name(self.dialect))
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match std::mem::replace(&mut self.has_begun, true) {
            true => write!(self.out, ",")?,
            false => self.begin()?,
        }
        match entry {
            Entry::Item(item) => serde_json::to_writer(&mut self.out, &One(item))?,
            Entry::Damage(damage) => serde_json::to_writer(&mut self.out, &Broken(damage))?,
        }
        Ok(())
    }

    /// Ends the object. `error`: why the rest of the recording could not be read.
    pub(super) fn finish(&mut self, sums: Sums, open: [u64; 3], error: Option<String>) -> io::Result<()> {
        let Sums { commands, packets, warnings, damages } = sums;
        let [unmatched, incomplete, cancels] = open;
        if !self.has_begun {
            self.begin()?;
        }
        write!(
            self.out,
            "],\"commands\":{commands},\"packets\":{packets},\"warnings\":{warnings},\"damages\":{damages},\
             \"unmatched\":{unmatched},\"incomplete\":{incomplete},\"cancels\":{cancels}"
        )?;
        if let Some(error) = error {
            write!(self.out, ",\"error\":{}", serde_json::Value::String(error))?;
        }
        writeln!(self.out, "}}")?;
        self.out.flush()
    }
}

fn place<M: SerializeMap>(map: &mut M, place: Place, way: Option<Way>) -> Result<(), M::Error> {
    map.serialize_entry("offset", &place.offset)?;
    if let Some(line) = place.line {
        map.serialize_entry("line", &line)?;
    }
    if let Some(way) = way {
        map.serialize_entry("from", &way.from.to_string())?;
        map.serialize_entry("to", &way.to.to_string())?;
    }
    Ok(())
}

struct One<'a>(&'a Item);

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("number", &item.number)?;
        map.serialize_entry("part", item.part.name())?;
        place(&mut map, item.place, item.way)?;
        map.serialize_entry("type", item.kind)?;
        let (means, other): (Vec<&Field>, Vec<&Field>) = item.fields.iter().partition(|field| field.means);
        map.serialize_entry("fields", &Fields(&means))?;
        if !other.is_empty() {
            map.serialize_entry("ignored", &Fields(&other))?;
        }
        if !item.meaning.is_empty() {
            map.serialize_entry("meaning", &item.meaning)?;
        }
        if let Some(data) = &item.data {
            map.serialize_entry("data", &Octets(data))?;
        }
        if let Some(tables) = &item.job {
            map.serialize_entry("job", &Job(tables))?;
        }
        if !item.warnings.is_empty() {
            map.serialize_entry("warnings", &item.warnings)?;
        }
        map.end()
    }
}

struct Broken<'a>(&'a Damage);

impl Serialize for Broken<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("part", self.0.part.name())?;
        place(&mut map, self.0.place, self.0.way)?;
        map.serialize_entry("error", &self.0.message)?;
        map.end()
    }
}

struct Fields<'a>(&'a [&'a Field]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|field| (field.name, Held(&field.value))))
    }
}

struct Held<'a>(&'a Value);

impl Serialize for Held<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => serializer.serialize_u64(number),
                (_, number) => serializer.serialize_i64(number.unwrap_or(i64::MIN)),
            },
            Value::Word(word) => serializer.serialize_str(word),
            Value::Pid(pid) => serializer.serialize_i64(*pid),
            Value::Proc(proc) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("address", &address(&proc.host_id))?;
                map.serialize_entry("pid", &proc.pid)?;
                map.end()
            }
            Value::Set(values) => serializer.collect_seq(values.iter().map(Held)),
            Value::List { shown, .. } => serializer.collect_seq(shown.iter().map(|(_, value)| Held(value))),
        }
    }
}

struct Octets<'a>(&'a Data);

impl Serialize for Octets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("len", &data.len)?;
        if !data.shown.is_empty() {
            let digits: String = data.shown.iter().map(|octet| format!("{octet:02x}")).collect();
            map.serialize_entry("first", &digits)?;
            map.serialize_entry("text", &data.text())?;
        }
        match &data.content {
            Some(Content::Message(message)) => map.serialize_entry("message", &Headers(message))?,
            Some(Content::Stream) => map.serialize_entry("stream", &true)?,
            None => {}
        }
        map.end()
    }
}

struct Headers<'a>(&'a Message);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("encoding", message.encoding.name())?;
        map.serialize_entry("primary_len", &message.primary_len)?;
        map.serialize_entry("sections", &Sections(message))?;
        map.serialize_entry("more_sections", &message.has_more)?;
        if let Some(len) = message.secondary_len {
            map.serialize_entry("secondary_len", &len)?;
            map.serialize_entry("split", &message.is_split)?;
        }
        map.end()
    }
}

struct Sections<'a>(&'a Message);

impl Serialize for Sections<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.sections.len()))?;
        for (element, total) in &self.0.sections {
            list.serialize_element(&serde_json::json!({"type": element.name(), "count": total}))?;
        }
        list.end()
    }
}

struct Job<'a>(&'a Tables);

impl Serialize for Job<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tables = self.0;
        let mut map = serializer.serialize_map(None)?;
        let counts = [
            ("clients", tables.clients.len() as u64),
            ("hosts", tables.hosts.len() as u64),
            ("ranks", tables.procs.len() as u64),
            ("maxdatalen", tables.maxdatalen.into()),
            ("ackmark", tables.ackmark.into()),
            ("hiwater", tables.hiwater.into()),
            ("tag_ub", tables.tag_ub.into()),
            ("xsize", tables.xsize.into()),
            ("maxlinear", tables.maxlinear.into()),
        ];
        counts.iter().try_for_each(|(name, number)| map.serialize_entry(name, number))?;
        map.end()
    }
}
