//! Inputs: raw octets or hex text, read and decoded.

use std::io::Read;

use mpjdev_buffer::layout::{CAPACITY_MAX, COUNT_MAX, MESSAGE_OVERHEAD};

use super::digits::Digits;
use super::error::InputError;

/// Octets of the longest message, and one more to show that it is too long.
pub const MESSAGE_MAX: u64 = (MESSAGE_OVERHEAD + CAPACITY_MAX + COUNT_MAX) as u64 + 1;
/// Octets of the longest recording that is read.
pub const RECORDING_MAX: u64 = 1 << 30;

/// The form of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hex text if it is text throughout, else raw octets.
    Auto,
    /// Raw octets.
    Raw,
    /// Hexadecimal digits.
    Hex,
}

/// Reads a whole input of at most `max` octets. `expected_len` is its length if that is known, else 0.
///
/// # Errors
/// Those of the reader; no memory; a longer input.
pub fn read(reader: impl Read, expected_len: u64, max: u64) -> Result<Vec<u8>, InputError> {
    let mut octets = Vec::new();
    let len = usize::try_from(expected_len.min(max)).unwrap_or(0);
    octets.try_reserve_exact(len).map_err(|_| InputError::Memory { len: expected_len })?;
    reader.take(max + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > max {
        return Err(InputError::TooLong { max });
    }
    Ok(octets)
}

/// The octets of an input.
///
/// # Errors
/// Hex text that is damaged.
pub fn decode(input: Vec<u8>, kind: Kind) -> Result<Vec<u8>, InputError> {
    if !is_hex(&input, kind) {
        return Ok(input);
    }
    // An octet has two digits or more, so the vector does not grow.
    let mut octets = Vec::with_capacity(input.len() / 2);
    let mut digits = Digits::default();
    for line in without_mark(&input).split(|octet| *octet == b'\n') {
        digits.read_line(line, &mut octets)?;
    }
    Ok(octets)
}

/// Whether an input is hex text.
pub(crate) fn is_hex(input: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Auto => is_text(input),
        Kind::Raw => false,
        Kind::Hex => true,
    }
}

/// Text without the byte order mark that may precede it.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Whether these octets are UTF-8 text without control characters but white space. A message is not: its
/// first octet is 0 or 1.
fn is_text(input: &[u8]) -> bool {
    let control = |octet: &u8| octet.is_ascii_control() && !octet.is_ascii_whitespace();
    !input.is_empty() && !input.iter().any(control) && std::str::from_utf8(input).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an input is read up to its limit and no further.
    #[test]
    fn input_above_the_limit_is_refused() {
        assert_eq!(read(&[7; 10][..], 0, 10).expect("it fits"), [7; 10]);
        assert!(matches!(read(&[7; 11][..], 0, 10), Err(InputError::TooLong { max: 10 })));
        assert!(matches!(read(std::io::repeat(7), u64::MAX, 10), Err(InputError::TooLong { max: 10 })));
    }
}
