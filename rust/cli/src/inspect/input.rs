//! Raw octets or hex text, told apart and decoded.

use std::io;

use mpjdev_buffer::layout::{CAPACITY_MAX, COUNT_MAX, MESSAGE_OVERHEAD};
use thiserror::Error;

use super::digits::Digits;

/// Longest input that is read: the largest message there can be, and one octet to see that it is too long.
pub const INPUT_MAX: u64 = (MESSAGE_OVERHEAD + CAPACITY_MAX + COUNT_MAX) as u64 + 1;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hex text when it is text throughout, else raw octets.
    Auto,
    /// The octets themselves.
    Raw,
    /// Hexadecimal digits.
    Hex,
}

/// An input that cannot be read as octets.
#[derive(Debug, Error)]
pub enum InputError {
    /// The file or standard input fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Longer than any message.
    #[error("longer than {max} octets, the largest input")]
    TooLong {
        /// The limit.
        max: u64,
    },
    /// Too long for the memory of this machine.
    #[error("no memory for its {len} octets")]
    Memory {
        /// Length of the file.
        len: u64,
    },
    /// Text that is not hex.
    #[error(
        "line {line}, column {column}: {found:?} is not a hexadecimal digit (--input raw takes text as raw octets)"
    )]
    Digit {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The character.
        found: char,
    },
    /// A line of a capture of IMPI that does not stand for what it should.
    #[error("line {line}: {what}")]
    Capture {
        /// From 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A hex word with half an octet.
    #[error("line {line}, column {column}: half an octet, the word has an odd number of digits")]
    Half {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
}

/// The octets of an input.
///
/// # Errors
/// Hex text was asked for or found, and it is not that.
pub fn decode(input: Vec<u8>, kind: Kind) -> Result<Vec<u8>, InputError> {
    let hex = match kind {
        Kind::Auto => is_text(&input),
        Kind::Raw => false,
        Kind::Hex => true,
    };
    if !hex {
        return Ok(input);
    }
    let text = without_mark(&input);
    // Two digits an octet at least: never more than the input.
    let mut octets = Vec::with_capacity(input.len() / 2);
    let mut digits = Digits::default();
    for line in text.split(|octet| *octet == b'\n') {
        digits.begin_line(line);
        digits.read(line, &mut octets)?;
        digits.end_line(&mut octets)?;
    }
    Ok(octets)
}

/// Text without the byte order mark that may stand in front of it.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Whether these octets are text throughout: no control characters but white space. The first octet of a message
/// is 0 or 1, so a message never is.
pub(crate) fn is_text(input: &[u8]) -> bool {
    let control = |octet: &u8| octet.is_ascii_control() && !octet.is_ascii_whitespace();
    !input.is_empty() && !input.iter().any(control) && std::str::from_utf8(input).is_ok()
}
