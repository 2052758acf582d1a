//! `mpjdev inspect`: an explanation of a message or of an IMPI recording on standard output.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Text;
use crate::inspect::error::InputError;
use crate::inspect::explain::{Explanation, explain};
use crate::inspect::impi::{self, Options, Part, Stop, Style, Terms};
use crate::inspect::input::{Kind, MESSAGE_MAX, RECORDING_MAX, decode, read};
use crate::inspect::{hex, json, text};

/// Arguments of `mpjdev inspect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Input that consists of text is read as hex text, all other input as raw octets. A message begins with octet \
0 or 1, which no text contains.

Hex text is pairs of hexadecimal digits, with or without white space, commas and 0x before them. A comment \
begins with '#' or '|' and ends with the line. A word at the start of a line that ends in ':' is an offset \
and is skipped. The output of --format hex, xxd -p, hexdump -v -C and hexdump -v -e is hex text.

--impi dissects a recording of IMPI command by command and packet by packet, and warns of each command or \
packet that violates the protocol by itself. Its formats are text and json. The input is
  octets     of one direction of a connection to the startup server or between hosts, with or without the \
four octets that open the connection
  hex text   of such octets. Comments may state sender and receiver of the octets that follow: '# client 0 \
to server', '# server to client 0', '# host 1 to host 0'; followed by ': handshake' for the octets that open \
the connection, and by '; its data are left out' for the header of a packet alone
  a capture  of lines 'client0 -> server 12 41555448 ...' and '[time] host 1 -> host 0 ...' with rows of \
octets below
If the recording holds the start-up of the job, --maxdatalen and --ackmark are taken from it.

The JSON of --impi is
  {\"dialect\", \"items\": [...], \"commands\", \"packets\", \"warnings\", \"damages\"}
with the number of each, and \"error\" if the rest cannot be read. An item is
  {\"number\", \"part\", \"offset\", \"line\", \"from\", \"to\", \"type\", \"fields\": {...}, \"ignored\": \
{...}, \"meaning\", \"data\": {\"len\", \"first\", \"text\", \"message\", \"stream\"}, \"warnings\": [...]}
without the keys whose value is not known. \"part\" is startup or packets. Fields have the names of the \
specification; \"ignored\" holds those without a meaning in this type. \"data\" holds the first octets as \
hex digits and as text, and the headers of an mpjdev message that begins there. Where a direction cannot be \
dissected further, the item is
  {\"part\", \"offset\", \"line\", \"from\", \"to\", \"error\"}

Exit status: 0 a sound message, 1 a damaged message or a recording with warnings, 2 the input cannot be read \
or the command line is wrong.")]
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

    /// Version of the IMPI specification that the sites of the recording follow
    #[arg(long, value_enum, default_value_t = Text::Final, requires = "impi")]
    dialect: Text,

    /// Maximum octets of data in a packet of the recording
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
    /// All parts that the input holds
    Auto,
    /// Commands between clients and the startup server
    Startup,
    /// Packets between hosts
    Packets,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// An overview
    Text,
    /// One JSON object
    Json,
    /// An annotated dump of all octets
    Hex,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Input {
    /// Text is hex, all other input is raw
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
                return ExitCode::from(super::UNUSABLE);
            }
        };
        let explanation = explain(&octets);
        match self.print(&explanation, BufWriter::new(io::stdout().lock())) {
            // The reader has closed its end. That is no error.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            Err(e) => {
                eprintln!("mpjdev: standard output: {e}");
                return ExitCode::from(super::UNUSABLE);
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
                return ExitCode::from(super::UNUSABLE);
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
                ExitCode::from(super::UNUSABLE)
            }
            Err(Stop::Input(e)) => {
                eprintln!("mpjdev: {}: {e}", self.name());
                ExitCode::from(super::UNUSABLE)
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
