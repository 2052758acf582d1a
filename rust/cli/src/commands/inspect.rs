//! `mpjdev inspect`: reads a message from a file or standard input and explains it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::inspect::explain::{Explanation, explain};
use crate::inspect::input::{INPUT_MAX, InputError, Kind, decode};
use crate::inspect::{hex, json, text};

/// Arguments of `mpjdev inspect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Raw octets and hex text are told apart by what they are: input that is text throughout is hex, anything else is \
raw. A message starts with octet 0 or 1, which no text contains.

Hex text is pairs of hexadecimal digits, with or without white space and commas between them and 0x before them. \
From '#' or '|' to the end of the line is comment, and a word that ends in ':' at the start of a line is an \
offset, which is skipped. The output of --format hex, xxd -p, hexdump -v -C and hexdump -v -e are read.

Exit status: 0 a sound message, 1 a damaged one, 2 the input cannot be read or the command line is wrong.")]
pub struct Inspect {
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// What the input is
    #[arg(long, value_enum, default_value_t = Input::Auto)]
    input: Input,

    /// Show all sections and all values in text (JSON and hex always have all)
    #[arg(long)]
    all: bool,

    /// The message: a file, or '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// An overview for people
    Text,
    /// One JSON object for programs
    Json,
    /// An annotated dump of all octets
    Hex,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Input {
    /// Find out
    Auto,
    /// The octets themselves
    Raw,
    /// Hexadecimal digits
    Hex,
}

impl Inspect {
    /// Explains the input on standard output; gives the exit status.
    pub fn run(&self) -> ExitCode {
        let octets = match self.octets() {
            Ok(octets) => octets,
            Err(e) => {
                eprintln!("mpjdev: {}: {e}", self.name());
                return ExitCode::from(crate::UNUSABLE);
            }
        };
        let explanation = explain(&octets);
        match self.print(&explanation, BufWriter::new(io::stdout().lock())) {
            // Whoever reads has seen enough.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            Err(e) => {
                eprintln!("mpjdev: standard output: {e}");
                return ExitCode::from(crate::UNUSABLE);
            }
            Ok(()) => {}
        }
        ExitCode::from(u8::from(explanation.error().is_some()))
    }

    fn is_standard_input(&self) -> bool {
        self.file == Path::new("-")
    }

    /// What errors call the input.
    fn name(&self) -> Cow<'_, str> {
        if self.is_standard_input() { "standard input".into() } else { self.file.to_string_lossy() }
    }

    fn octets(&self) -> Result<Vec<u8>, InputError> {
        let kind = match self.input {
            Input::Auto => Kind::Auto,
            Input::Raw => Kind::Raw,
            Input::Hex => Kind::Hex,
        };
        let input = if self.is_standard_input() {
            read(io::stdin().lock(), 0)?
        } else {
            let file = File::open(&self.file)?;
            let len = file.metadata()?.len();
            read(file, len)?
        };
        decode(input, kind)
    }

    fn print(&self, explanation: &Explanation<'_>, mut out: impl Write) -> io::Result<()> {
        match self.format {
            Format::Text if self.all => text::write(&mut out, explanation, text::Limits::NONE)?,
            Format::Text => text::write(&mut out, explanation, text::Limits::FEW)?,
            Format::Json => json::write(&mut out, explanation)?,
            Format::Hex => hex::write(&mut out, explanation)?,
        }
        out.flush()
    }
}

/// Reads all there is, but not more than a message can have. `len` says how much to expect, 0 for unknown.
fn read(reader: impl Read, len: u64) -> Result<Vec<u8>, InputError> {
    let mut octets = Vec::new();
    let expected = usize::try_from(len.min(INPUT_MAX)).unwrap_or(0);
    octets.try_reserve_exact(expected).map_err(|_| InputError::Memory { len })?;
    reader.take(INPUT_MAX + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > INPUT_MAX {
        return Err(InputError::TooLong { max: INPUT_MAX });
    }
    Ok(octets)
}
