//! `mpjdev inspect`: an explanation of a message or of an IMPI recording on standard output.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Text;
use crate::inspect::explain::{Explanation, explain};
use crate::inspect::impi::{self, Options, Part, Stop, Style, Terms};
use crate::inspect::input::{InputError, Kind, MESSAGE_MAX, RECORDING_MAX, decode, read};
use crate::inspect::{hex, json, text};

/// Arguments of `mpjdev inspect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Input that is text throughout is hex text, anything else is raw octets. A message starts with octet 0 or 1, which no text contains.

Hex text is pairs of hexadecimal digits, with or without white space and commas between them and 0x before them. \
From '#' or '|' to the end of the line is comment, and a word that ends in ':' at the start of a line is an \
offset, which is skipped. The output of --format hex, xxd -p, hexdump -v -C and hexdump -v -e are read.

--impi dissects a recording of IMPI command by command and packet by packet, and warns of commands and packets that violate the \
protocol by themselves. Its formats are text and json. The input is
  octets     of one direction of a connection to the startup server, or of a connection between hosts, with or without the four \
octets that open it
  hex text   of the same. Comments may state sender and receiver of what follows: '# client 0 to server', '# server to client \
0', '# host 1 to host 0'; with ': handshake' behind that the octets that open the connection, with '; its data are left out' a \
packet's header alone
  a capture  of lines 'client0 -> server 12 41555448 ...' and '[time] host 1 -> host 0 ...' with rows of octets below
--maxdatalen and --ackmark are known without the options if start-up is in the same input.

The JSON of --impi is
  {\"dialect\", \"items\": [...], \"commands\", \"packets\", \"warnings\", \"damages\"}
with the numbers of each, and \"error\" if the rest cannot be read. An item is
  {\"number\", \"part\", \"offset\", \"line\", \"from\", \"to\", \"type\", \"fields\": {...}, \"ignored\": {...}, \"meaning\", \"data\": \
{\"len\", \"first\", \"text\", \"message\", \"stream\"}, \"warnings\": [...]}
without what is not known. \"part\" is startup or packets. Fields have the names of the specification; those without a meaning \
in this type are in \"ignored\". \"data\" has the first octets, as hex digits and as text, and the headers of an mpjdev message \
that they begin. Where a direction stops making sense the item is
  {\"part\", \"offset\", \"line\", \"from\", \"to\", \"error\"}

Exit status: 0 a sound message, 1 a damaged one, or IMPI with warnings, 2 the input cannot be read or the command \
line is wrong.")]
pub struct Inspect {
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Form of the input
    #[arg(long, value_enum, default_value_t = Input::Auto)]
    input: Input,

    /// Show all sections, values and fields in text (JSON and hex always have all)
    #[arg(long)]
    all: bool,

    /// Dissect a recording of IMPI, or one part of it
    #[arg(long, value_enum, value_name = "PART", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    impi: Option<ImpiPart>,

    /// The text of IMPI that the sites of the recording follow
    #[arg(long, value_enum, default_value_t = Text::Final, requires = "impi")]
    dialect: Text,

    /// Most octets of data in a packet of the recording
    #[arg(long, value_name = "N", requires = "impi", value_parser = clap::value_parser!(u32).range(1..))]
    maxdatalen: Option<u32>,

    /// Packets that a ProtoAck of the recording acknowledges
    #[arg(long, value_name = "N", requires = "impi", value_parser = clap::value_parser!(u32).range(1..))]
    ackmark: Option<u32>,

    /// Accepted for old command lines; packets are not counted
    #[arg(long, hide = true, value_name = "N", requires = "impi", value_parser = clap::value_parser!(u32).range(1..))]
    hiwater: Option<u32>,

    /// The message or the recording: a file, or '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ImpiPart {
    /// Whatever the input holds
    Auto,
    /// Commands between clients and the startup server
    Startup,
    /// Packets between hosts
    Packets,
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
    /// Text is hex, anything else is raw
    Auto,
    /// Raw octets
    Raw,
    /// Hexadecimal text
    Hex,
}

impl Inspect {
    /// Explains the input on standard output and returns the exit status.
    pub fn run(&self) -> ExitCode {
        if let Some(part) = self.impi {
            return self.run_impi(part);
        }
        let octets = match self.read(MESSAGE_MAX).and_then(|input| decode(input, self.kind())) {
            Ok(octets) => octets,
            Err(e) => {
                eprintln!("mpjdev: {}: {e}", self.name());
                return ExitCode::from(crate::UNUSABLE);
            }
        };
        let explanation = explain(&octets);
        match self.print(&explanation, BufWriter::new(io::stdout().lock())) {
            // The reader has closed its end. That is no error.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            Err(e) => {
                eprintln!("mpjdev: standard output: {e}");
                return ExitCode::from(crate::UNUSABLE);
            }
            Ok(()) => {}
        }
        ExitCode::from(u8::from(explanation.error().is_some()))
    }

    fn run_impi(&self, part: ImpiPart) -> ExitCode {
        let style = match self.format {
            Format::Text => Style::Text { all: self.all },
            Format::Json => Style::Json,
            Format::Hex => {
                eprintln!("mpjdev: --impi has the formats text and json");
                return ExitCode::from(crate::UNUSABLE);
            }
        };
        let part = match part {
            ImpiPart::Auto => None,
            ImpiPart::Startup => Some(Part::Startup),
            ImpiPart::Packets => Some(Part::Packets),
        };
        let Inspect { maxdatalen, ackmark, .. } = *self;
        let terms = Terms { maxdatalen, ackmark, tag_ub: None };
        let options = Options { dialect: self.dialect.into(), part, terms };
        let out = BufWriter::new(io::stdout().lock());
        let input = self.read(RECORDING_MAX).map_err(Stop::Input);
        match input.and_then(|input| impi::dissect(input, self.kind(), options, style, out)) {
            Ok(totals) => ExitCode::from(u8::from(!totals.is_sound())),
            Err(Stop::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(Stop::Output(e)) => {
                eprintln!("mpjdev: standard output: {e}");
                ExitCode::from(crate::UNUSABLE)
            }
            Err(Stop::Input(e)) => {
                eprintln!("mpjdev: {}: {e}", self.name());
                ExitCode::from(crate::UNUSABLE)
            }
        }
    }

    fn kind(&self) -> Kind {
        match self.input {
            Input::Auto => Kind::Auto,
            Input::Raw => Kind::Raw,
            Input::Hex => Kind::Hex,
        }
    }

    fn is_standard_input(&self) -> bool {
        self.file == Path::new("-")
    }

    /// The name of the input in error texts.
    fn name(&self) -> Cow<'_, str> {
        if self.is_standard_input() { "standard input".into() } else { self.file.to_string_lossy() }
    }

    fn read(&self, max: u64) -> Result<Vec<u8>, InputError> {
        if self.is_standard_input() {
            return read(io::stdin().lock(), 0, max);
        }
        let file = File::open(&self.file)?;
        let len = file.metadata()?.len();
        read(file, len, max)
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
