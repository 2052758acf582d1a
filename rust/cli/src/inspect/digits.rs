//! Hex text as octets, line by line.

use super::error::InputError;

/// A reader of hex text: pairs of digits, with or without white space and commas between them and `0x` before
/// them. A comment begins with `#` or `|`. A line may begin with an offset.
#[derive(Debug, Default)]
pub(crate) struct Digits {
    /// The number of the last line, from 1.
    line: usize,
    /// Whether lines begin with an offset without a colon, as those of `hexdump -C` do.
    is_canonical: bool,
}

impl Digits {
    /// Reads a line and adds its octets.
    ///
    /// # Errors
    /// A character that is no digit, or half an octet, with its position.
    pub(crate) fn read_line(&mut self, line: &[u8], octets: &mut Vec<u8>) -> Result<(), InputError> {
        if self.line == 0 {
            self.is_canonical = is_canonical(line);
        }
        self.line += 1;
        let comment = line.iter().position(|octet| matches!(octet, b'#' | b'|'));
        let text = &line[..comment.unwrap_or(line.len())];
        let mut at = 0;
        let mut is_first = true;
        for word in text.split(|octet| matches!(octet, b' ' | b'\t' | b',' | b'\r' | 0x0c)) {
            let is_offset = is_first && (word.ends_with(b":") || (self.is_canonical && word.len() == 8));
            if !word.is_empty() {
                is_first = false;
            }
            if !is_offset {
                self.read_word(text, at, word, octets)?;
            }
            at += word.len() + 1;
        }
        Ok(())
    }

    /// Reads the word at this index of the line.
    fn read_word(&self, line: &[u8], at: usize, word: &[u8], octets: &mut Vec<u8>) -> Result<(), InputError> {
        let digits = word.strip_prefix(b"0x").unwrap_or(word);
        let at = at + word.len() - digits.len();
        let column = |at: usize| line[..at].iter().filter(|octet| is_character(**octet)).count() + 1;
        octets.reserve(digits.len() / 2);
        for (k, pair) in digits.chunks(2).enumerate() {
            let mut value = 0;
            for (j, digit) in pair.iter().enumerate() {
                let Some(digit) = (*digit as char).to_digit(16) else {
                    let at = at + 2 * k + j;
                    let found = String::from_utf8_lossy(&line[at..line.len().min(at + 4)]).chars().next();
                    let found = found.unwrap_or(char::REPLACEMENT_CHARACTER);
                    return Err(InputError::Digit { line: self.line, column: column(at), found });
                };
                value = value << 4 | digit as u8;
            }
            if pair.len() < 2 {
                return Err(InputError::Half { line: self.line, column: column(at) });
            }
            octets.push(value);
        }
        Ok(())
    }
}

/// Whether an octet of UTF-8 begins a character.
fn is_character(octet: u8) -> bool {
    octet & 0xc0 != 0x80
}

/// Whether a line is one of `hexdump -C`: an offset of eight digits without a colon, which resembles four
/// octets, and the octets as text between bars.
fn is_canonical(line: &[u8]) -> bool {
    let offset_len = line.iter().position(|octet| *octet == b' ').unwrap_or(line.len());
    offset_len == 8 && line[8..].starts_with(b"  ") && line.trim_ascii_end().ends_with(b"|")
}
