//! Hex text as octets, line by line and in parts of lines, so that a text of any length takes no memory.

use super::input::InputError;

/// Longest word that may be an offset; longer ones are digits, however many.
const WORD_MAX: usize = 40;

/// Reads hex text: pairs of digits, with or without white space and commas between them and `0x` before them, comments
/// from `#` or `|` on, offsets at the start of a line.
#[derive(Debug, Default)]
pub(crate) struct Digits {
    /// From 1; 0 before the first.
    line: usize,
    /// Characters of the line that have been read.
    column: usize,
    /// Whether lines begin with an offset without a colon, as those of `hexdump -C` do.
    is_canonical: bool,
    is_comment: bool,
    is_first_word: bool,
    /// The word that has begun, and the column of its first character.
    word: Vec<u8>,
    word_column: usize,
    /// In a word that is too long to be kept: its last digit, if it is the first of an octet.
    long: Option<Option<u8>>,
}

impl Digits {
    /// A line begins, with this part of it.
    pub(crate) fn begin_line(&mut self, part: &[u8]) {
        if self.line == 0 {
            self.is_canonical = is_canonical(part);
        }
        let (line, is_canonical) = (self.line + 1, self.is_canonical);
        let word = std::mem::take(&mut self.word);
        *self = Digits { line, is_canonical, is_first_word: true, word, ..Digits::default() };
        self.word.clear();
    }

    /// Reads a part of a line.
    ///
    /// # Errors
    /// What is no digit, with its place.
    pub(crate) fn read(&mut self, part: &[u8], octets: &mut Vec<u8>) -> Result<(), InputError> {
        for (at, &octet) in part.iter().enumerate() {
            if self.is_comment {
                return Ok(());
            }
            // Octets of a character behind its first do not count.
            self.column += usize::from(octet & 0xc0 != 0x80);
            match octet {
                b'#' | b'|' => {
                    self.end_word(octets)?;
                    self.is_comment = true;
                }
                b' ' | b'\t' | b',' | b'\r' | 0x0c => self.end_word(octets)?,
                _ => self.read_character(octet, &part[at..], octets)?,
            }
        }
        Ok(())
    }

    /// The line is over.
    ///
    /// # Errors
    /// Half an octet.
    pub(crate) fn end_line(&mut self, octets: &mut Vec<u8>) -> Result<(), InputError> {
        self.end_word(octets)
    }

    fn read_character(&mut self, octet: u8, rest: &[u8], octets: &mut Vec<u8>) -> Result<(), InputError> {
        if let Some(half) = &mut self.long {
            let Some(digit) = nibble(octet) else { return Err(no_digit(self.line, self.column, rest)) };
            *half = match half.take() {
                Some(high) => {
                    octets.push(high << 4 | digit);
                    None
                }
                None => Some(digit),
            };
            return Ok(());
        }
        if self.word.is_empty() {
            self.word_column = self.column;
        }
        self.word.push(octet);
        if self.word.len() == WORD_MAX {
            let half = self.read_word(octets)?;
            self.long = Some(half);
        }
        Ok(())
    }

    fn end_word(&mut self, octets: &mut Vec<u8>) -> Result<(), InputError> {
        let is_first = self.is_first_word;
        let half = match self.long.take() {
            Some(half) => half,
            None if self.word.is_empty() => return Ok(()),
            None => {
                self.is_first_word = false;
                let is_offset = self.word.ends_with(b":") || (self.is_canonical && self.word.len() == 8);
                if is_first && is_offset {
                    self.word.clear();
                    return Ok(());
                }
                self.read_word(octets)?
            }
        };
        match half {
            Some(_) => Err(InputError::Half { line: self.line, column: self.word_column }),
            None => Ok(()),
        }
    }

    /// The octets of the word, or of what there is of it; gives a digit that is left.
    fn read_word(&mut self, octets: &mut Vec<u8>) -> Result<Option<u8>, InputError> {
        self.is_first_word = false;
        let prefix_len = if self.word.starts_with(b"0x") { 2 } else { 0 };
        self.word_column += prefix_len;
        let digits = &self.word[prefix_len..];
        if let Some(at) = digits.iter().position(|digit| nibble(*digit).is_none()) {
            let column = self.word_column + characters(&digits[..at]);
            return Err(no_digit(self.line, column, &digits[at..]));
        }
        let value = |digit: u8| nibble(digit).unwrap_or(0);
        let (pairs, rest) = digits.as_chunks::<2>();
        octets.extend(pairs.iter().map(|[high, low]| value(*high) << 4 | value(*low)));
        let half = rest.first().map(|digit| value(*digit));
        self.word.clear();
        Ok(half)
    }
}

/// The value of a hexadecimal digit.
fn nibble(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

fn characters(octets: &[u8]) -> usize {
    octets.iter().filter(|octet| **octet & 0xc0 != 0x80).count()
}

fn no_digit(line: usize, column: usize, rest: &[u8]) -> InputError {
    let found = String::from_utf8_lossy(&rest[..rest.len().min(4)]).chars().next();
    InputError::Digit { line, column, found: found.unwrap_or(char::REPLACEMENT_CHARACTER) }
}

/// Whether a line is one of `hexdump -C`: an offset of eight digits without a colon, which would pass for four octets, and
/// the octets as text between bars.
fn is_canonical(line: &[u8]) -> bool {
    let offset_len = line.iter().position(|octet| *octet == b' ').unwrap_or(line.len());
    offset_len == 8 && line[8..].starts_with(b"  ") && line.trim_ascii_end().ends_with(b"|")
}
