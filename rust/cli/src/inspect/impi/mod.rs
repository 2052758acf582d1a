//! Explains what the sites of an IMPI job say: their conversation with the startup server, and the packets between hosts.
//!
//! ```text
//!  octets, hex text    +-----------+ pieces  +-----------+ commands +--------------+ items
//!  or a text capture ->| recording |-------->| explainer |--------->| startup,     |-------> text, json
//!                      +-----------+         +-----------+ packets  | packets, book|
//!                                                                   +--------------+
//! ```
//!
//! Everything streams: of an input of any length a piece, a packet's first octets and a bounded book of ids are in memory.

mod book;
mod capture;
mod conversation;
mod data;
mod explainer;
mod held;
mod item;
mod json;
mod labels;
mod observer;
mod packets;
mod recording;
mod startup;
mod text;
mod text_form;

pub use book::Agreed;
pub use data::{Content, Data, Message};
pub use explainer::{Explainer, Question};
pub use item::{Damage, Entry, Field, Item, Part, Party, Place, Sums, Value, Way};
pub use recording::{Block, Piece, Recording};

use std::io::{self, Read, Write};

use thiserror::Error;

use super::input::{InputError, Kind};

/// How to tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people; `all` with the fields that mean nothing where they stand, and with all values.
    Text {
        /// Whether all is shown.
        all: bool,
    },
    /// For programs.
    Json,
}

/// Why an explanation ends before its recording does.
#[derive(Debug, Error)]
pub enum Stop {
    /// The rest of the recording cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The explanation cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Explains a recording.
///
/// # Errors
/// Those of the reader and the writer; text that is neither hex nor a capture. What came before is explained.
pub fn explain(
    input: impl Read,
    kind: Kind,
    question: Question,
    style: Style,
    out: impl Write,
) -> Result<Sums, Stop> {
    let mut writer = Writer::new(out, question, style);
    let mut explainer = Explainer::new(question);
    let read = read(input, kind, &mut explainer, &mut writer);
    let error = match read {
        Err(Stop::Output(error)) => return Err(Stop::Output(error)),
        Err(Stop::Input(error)) => Some(error),
        Ok(()) => None,
    };
    if error.is_none() {
        explainer.finish();
    }
    while let Some(entry) = explainer.poll() {
        writer.entry(&entry)?;
    }
    // Of an input that cannot be read at all there is nothing to tell.
    if error.is_none() || writer.has_begun() {
        writer.finish(&explainer, error.as_ref())?;
    }
    match error {
        Some(error) => Err(Stop::Input(error)),
        None => Ok(explainer.sums()),
    }
}

fn read<W: Write>(
    input: impl Read,
    kind: Kind,
    explainer: &mut Explainer,
    writer: &mut Writer<W>,
) -> Result<(), Stop> {
    let mut recording = Recording::open(input, kind)?;
    while let Some(piece) = recording.next_piece()? {
        explainer.handle(piece);
        while let Some(entry) = explainer.poll() {
            writer.entry(&entry)?;
        }
    }
    Ok(())
}

enum Writer<W> {
    Text(text::Lines<W>),
    Json(json::Object<W>),
}

impl<W: Write> Writer<W> {
    fn new(out: W, question: Question, style: Style) -> Self {
        match style {
            Style::Text { all } => Writer::Text(text::Lines::new(out, question.dialect, all)),
            Style::Json => Writer::Json(json::Object::new(out, question.dialect)),
        }
    }

    fn has_begun(&self) -> bool {
        match self {
            Writer::Text(lines) => lines.has_begun(),
            Writer::Json(object) => object.has_begun(),
        }
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match self {
            Writer::Text(lines) => lines.entry(entry),
            Writer::Json(object) => object.entry(entry),
        }
    }

    fn finish(&mut self, explainer: &Explainer, error: Option<&InputError>) -> io::Result<()> {
        let (sums, open) = (explainer.sums(), explainer.open());
        match self {
            Writer::Text(lines) => lines.finish(sums, open),
            Writer::Json(object) => object.finish(sums, open, error.map(InputError::to_string)),
        }
    }
}
