//! Raw octets or hex text, told apart and decoded.

use std::io;

use mpjdev_buffer::layout::{CAPACITY_MAX, COUNT_MAX, MESSAGE_OVERHEAD};
use thiserror::Error;

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
    let text = String::from_utf8_lossy(&input);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // Two digits an octet at least: never more than the input.
    let mut octets = Vec::with_capacity(input.len() / 2);
    let canonical = text.lines().next().is_some_and(is_canonical);
    for (index, line) in text.lines().enumerate() {
        decode_line(line, index + 1, canonical, &mut octets)?;
    }
    Ok(octets)
}

/// Whether a line is one of `hexdump -C`: an offset of eight digits without a colon, which would pass for four octets, and
/// the octets as text between bars.
fn is_canonical(line: &str) -> bool {
    let offset = line.split(' ').next().unwrap_or("");
    offset.len() == 8 && line[8..].starts_with("  ") && line.trim_end().ends_with('|')
}

/// Whether these octets are text throughout: no control characters but white space. The first octet of a message
/// is 0 or 1, so a message never is.
fn is_text(input: &[u8]) -> bool {
    let control = |octet: &u8| octet.is_ascii_control() && !octet.is_ascii_whitespace();
    !input.is_empty() && !input.iter().any(control) && std::str::from_utf8(input).is_ok()
}

fn decode_line(line: &str, number: usize, canonical: bool, octets: &mut Vec<u8>) -> Result<(), InputError> {
    let content = line.split(['#', '|']).next().unwrap_or("");
    let mut words = content.split([' ', '\t', ',', '\r', '\u{c}']).filter(|word| !word.is_empty()).peekable();
    words.next_if(|word| word.ends_with(':') || (canonical && word.len() == 8));
    for word in words {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        // Words are parts of the line, so their places tell the column.
        let column = digits.as_ptr().addr() - line.as_ptr().addr() + 1;
        if let Some((at, found)) = digits.char_indices().find(|(_, c)| !c.is_ascii_hexdigit()) {
            let column = line[..column - 1 + at].chars().count() + 1;
            return Err(InputError::Digit { line: number, column, found });
        }
        if !digits.len().is_multiple_of(2) {
            return Err(InputError::Half { line: number, column });
        }
        let nibble = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        octets.extend(digits.as_bytes().chunks_exact(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])));
    }
    Ok(())
}
