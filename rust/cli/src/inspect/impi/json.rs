//! The entries of a recording as one JSON object. `mpjdev inspect --help` lists its keys.

use std::cell::RefCell;
use std::io::{self, Write};

use mpjdev_proto::impi::Dialect;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::dissector::Dissector;
use super::item::{Entry, Totals};

/// Writes the object and a line end. Each entry is written before the next one is made.
pub(super) fn write(
    mut out: impl Write,
    dialect: Dialect,
    first: Option<Entry>,
    dissector: &mut Dissector,
) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::new(&mut out);
    let mut object = serializer.serialize_map(None)?;
    object.serialize_entry("dialect", dialect.name())?;
    let entries = first.into_iter().chain(dissector.by_ref());
    object.serialize_entry("items", &Sequence(RefCell::new(entries)))?;
    let Totals { commands, packets, warnings, damages } = dissector.totals();
    object.serialize_entry("commands", &commands)?;
    object.serialize_entry("packets", &packets)?;
    object.serialize_entry("warnings", &warnings)?;
    object.serialize_entry("damages", &damages)?;
    if let Some(error) = dissector.error() {
        object.serialize_entry("error", &error.to_string())?;
    }
    SerializeMap::end(object)?;
    writeln!(out)?;
    out.flush()
}

/// A sequence that is read while it is written.
struct Sequence<I>(RefCell<I>);

impl<I: Iterator<Item = Entry>> Serialize for Sequence<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}
