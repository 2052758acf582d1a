//! A recording in pieces: raw octets, hex text or a text capture. However long it is, little of it is in memory.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;

use super::item::{Place, Way};
use super::text_form::Text;
use crate::inspect::input::{InputError, Kind, is_text, without_mark};

/// What a recording is made of, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Octets of a stream.
    Octets {
        /// Who says them to whom, if that is known.
        way: Option<Way>,
        /// Where they stand.
        place: Place,
        /// They themselves.
        octets: Vec<u8>,
    },
    /// What opens a connection of the mesh, marked as such.
    Handshake {
        /// Who says it to whom.
        way: Way,
        /// Where it stands.
        place: Place,
        /// Its octets: four, or it is damaged.
        octets: Vec<u8>,
    },
    /// A packet by itself.
    Packet(Block),
    /// Somebody says nothing more.
    End {
        /// Who to whom.
        way: Way,
        /// Where the recording says so.
        place: Place,
    },
}

/// A packet that stands by itself, so that what is wrong with it harms no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Who says it to whom.
    pub way: Way,
    /// Where it stands.
    pub place: Place,
    /// Its header: 128 octets, or it is damaged.
    pub header: Vec<u8>,
    /// The beginning of its data.
    pub data: Vec<u8>,
    /// Octets of data that it had; none where its data are left out.
    pub data_len: Option<u64>,
}

/// Octets of the input that are in memory, and the longest line of a capture.
pub(super) const BUFFER_LEN: usize = 1 << 16;

/// A recording that is read.
#[derive(Debug)]
pub struct Recording<R> {
    source: Source<R>,
    form: Form,
    /// Pieces that are ready.
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
enum Form {
    /// Octets that were given out.
    Raw {
        offset: u64,
    },
    Text(Box<Text>),
}

impl<R: Read> Recording<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn open(input: R, kind: Kind) -> Result<Self, InputError> {
        let mut source = Source::new(input);
        while !source.is_at_end && source.filled.len() < BUFFER_LEN {
            source.fill()?;
        }
        let is_hex = match kind {
            Kind::Auto => begins_as_text(source.octets(), source.is_at_end),
            Kind::Raw => false,
            Kind::Hex => true,
        };
        if is_hex {
            source.filled.start += source.filled.len() - without_mark(source.octets()).len();
        }
        let form = if is_hex { Form::Text(Box::default()) } else { Form::Raw { offset: 0 } };
        Ok(Recording { source, form, pieces: VecDeque::new() })
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// Those of the reader; text that is neither hex nor a capture. Nothing more can be read then.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, InputError> {
        let text = match &mut self.form {
            Form::Raw { offset } => {
                let Some((range, _)) = self.source.part(None)? else { return Ok(None) };
                let place = Place { offset: *offset, line: None };
                *offset += range.len() as u64;
                return Ok(Some(Piece::Octets {
                    way: None,
                    place,
                    octets: self.source.buffer[range].to_vec(),
                }));
            }
            Form::Text(text) => text,
        };
        while self.pieces.is_empty() {
            match self.source.part(Some(b'\n'))? {
                Some((range, is_whole)) => {
                    text.handle_part(&self.source.buffer[range], is_whole, &mut self.pieces)?;
                }
                None => {
                    text.finish(&mut self.pieces);
                    break;
                }
            }
        }
        Ok(self.pieces.pop_front())
    }
}

/// Whether the first octets of an input are text; all of a short one.
fn begins_as_text(octets: &[u8], is_all: bool) -> bool {
    // A character may be cut at the end.
    let cuts = if is_all { 0 } else { 3 };
    (0..=cuts.min(octets.len())).any(|cut| is_text(&octets[..octets.len() - cut]))
}

/// The input, some of it in memory.
#[derive(Debug)]
struct Source<R> {
    input: R,
    buffer: Box<[u8]>,
    /// Where in the buffer octets are that were read and not given out.
    filled: Range<usize>,
    is_at_end: bool,
}

impl<R: Read> Source<R> {
    fn new(input: R) -> Self {
        Source { input, buffer: vec![0; BUFFER_LEN].into(), filled: 0..0, is_at_end: false }
    }

    fn octets(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// Reads more into the buffer, which is not full.
    fn fill(&mut self) -> io::Result<()> {
        if self.filled.end == BUFFER_LEN {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(read) => {
                    self.is_at_end = read == 0;
                    self.filled.end += read;
                    return Ok(());
                }
            }
        }
    }

    /// The next octets up to this one, which is skipped, or as many as fit the buffer; and whether they end there. Without
    /// such an octet whatever is there.
    fn part(&mut self, end: Option<u8>) -> io::Result<Option<(Range<usize>, bool)>> {
        let mut searched = 0;
        let (len, skipped) = loop {
            let octets = self.octets();
            let found = end.and_then(|end| octets[searched..].iter().position(|octet| *octet == end));
            let is_enough =
                octets.len() == BUFFER_LEN || self.is_at_end || (end.is_none() && !octets.is_empty());
            match found {
                Some(at) => break (searched + at, 1),
                None if is_enough => break (octets.len(), 0),
                None => {
                    searched = octets.len();
                    self.fill()?;
                }
            }
        };
        if len == 0 && skipped == 0 {
            return Ok(None);
        }
        let range = self.filled.start..self.filled.start + len;
        self.filled.start = range.end + skipped;
        let is_whole = skipped == 1 || (self.is_at_end && self.filled.is_empty());
        Ok(Some((range, is_whole)))
    }
}
