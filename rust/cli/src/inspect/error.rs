//! Errors of inputs.

use std::io;

use thiserror::Error;

/// An input that cannot be read as octets.
#[derive(Debug, Error)]
pub enum InputError {
    /// The file or standard input fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Longer than any message, or than a recording may be.
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
        "line {line}, column {column}: {found:?} is not a hexadecimal digit (--input raw takes text as raw \
         octets)"
    )]
    Digit {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The character.
        found: char,
    },
    /// A line of a text capture that is damaged.
    #[error("line {line}: {what}")]
    Capture {
        /// The line, from 1.
        line: u64,
        /// The damage.
        what: &'static str,
    },
    /// A hex word with half an octet.
    #[error("line {line}, column {column}: half an octet, the word has an odd number of digits")]
    Half {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
}
