//! Dissection of IMPI recordings: the commands between clients and the startup server, and the packets
//! between hosts.
//!
//! ```text
//!  octets, hex text    +-----------+ pieces  +-----------+ units +-----------------+ entries
//!  or a text capture ->| recording |-------->| dissector |------>| startup, packet |---------> text, json
//!                      +-----------+         +-----------+       +-----------------+
//! ```
//!
//! Each command and each packet is described by itself. The recording and the one entry that is written are
//! in memory.

mod byte_queue;
mod capture;
mod data;
mod dissector;
mod handshake;
mod item;
mod json;
mod labels;
mod packet;
mod recording;
mod startup;
mod text;
mod value;

pub use dissector::Options;
pub use item::{Part, Totals};
pub use packet::Terms;

use std::io::{self, Write};

use thiserror::Error;

use super::error::InputError;
use super::input::Kind;
use dissector::Dissector;
use recording::Recording;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Lines of text.
    Text {
        /// Whether ignored fields and all values are shown.
        all: bool,
    },
    /// One object for programs.
    Json,
}

/// The reason why a dissection ends before its recording does.
#[derive(Debug, Error)]
pub enum Stop {
    /// The rest of the recording cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Writes what a recording holds.
///
/// # Errors
/// Those of the writer; text that is neither hex nor a capture. What precedes such text is written.
pub fn dissect(
    input: Vec<u8>,
    kind: Kind,
    options: Options,
    style: Style,
    out: impl Write,
) -> Result<Totals, Stop> {
    let mut dissector = Dissector::new(Recording::new(input.into(), kind), options);
    let first = dissector.next();
    // An input that cannot be read at all has no output.
    if first.is_some() || dissector.error().is_none() {
        match style {
            Style::Text { all } => text::write(out, options.dialect, all, first, &mut dissector)?,
            Style::Json => json::write(out, options.dialect, first, &mut dissector)?,
        }
    }
    let totals = dissector.totals();
    match dissector.into_error() {
        Some(error) => Err(Stop::Input(error)),
        None => Ok(totals),
    }
}
