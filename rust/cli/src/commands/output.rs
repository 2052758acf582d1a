//! Standard output of a command.

use std::io::{self, Write};

/// Prints a text on standard output, and returns the exit status.
pub(super) fn print(text: &str) -> u8 {
    u8::from(io::stdout().write_all(text.as_bytes()).is_err())
}
