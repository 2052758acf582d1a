//! Text as pieces: hex text, whose comments may say who speaks, or a capture.

use std::collections::{BTreeMap, VecDeque};

use mpjdev_proto::impi::layout::HEADER_LEN;

use super::capture::{self, Line, Mark, Words};
use super::item::{Place, Way};
use super::recording::{Block, Piece};
use crate::inspect::digits::Digits;
use crate::inspect::input::InputError;

/// Octets of a packet that are taken from text; a header has 128, and of data nobody needs more.
const KEPT_MAX: usize = 1 << 16;

/// Directions whose octets are counted.
const WAYS_MAX: usize = 4096;

/// Where a text is.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// From 1.
    line: u64,
    /// Whether the last part did not end its line.
    is_in_line: bool,
    form: Form,
}

/// What a text is; the first line that is neither empty nor a comment decides.
#[derive(Debug)]
enum Form {
    Hex { is_certain: bool, hex: Hex },
    Capture(Capture),
}

impl Default for Form {
    fn default() -> Self {
        Form::Hex { is_certain: false, hex: Hex::default() }
    }
}

impl Text {
    /// Reads a line, or a part of a long one.
    pub(super) fn handle_part(
        &mut self,
        part: &[u8],
        is_whole: bool,
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), InputError> {
        let begins = !std::mem::replace(&mut self.is_in_line, !is_whole);
        self.line += u64::from(begins);
        let is_one_line = begins && is_whole;
        let text = part.trim_ascii();
        if let Form::Hex { is_certain, .. } = &mut self.form
            && !*is_certain
            && !text.is_empty()
            && !text.starts_with(b"#")
        {
            *is_certain = true;
            if is_one_line && capture::line(String::from_utf8_lossy(part).trim_end()).is_some() {
                self.form = Form::Capture(Capture::default());
            }
        }
        match &mut self.form {
            Form::Capture(capture) if is_one_line => capture.handle_line(self.line, part, pieces),
            Form::Capture(_) => Err(no_line(self.line)),
            Form::Hex { hex, .. } => hex.handle_part(self.line, part, begins, is_whole, pieces),
        }
    }

    /// The text is over.
    pub(super) fn finish(&mut self, pieces: &mut VecDeque<Piece>) {
        match &mut self.form {
            Form::Hex { hex, .. } => pieces.extend(hex.header.take().map(Piece::Packet)),
            Form::Capture(capture) => capture.finish_packet(pieces),
        }
    }
}

fn no_line(line: u64) -> InputError {
    InputError::Capture { line, what: "not a line of a capture" }
}

/// Hex text.
#[derive(Debug, Default)]
struct Hex {
    digits: Digits,
    /// What the last mark says.
    mark: Option<Mark>,
    /// Octets that were read so far.
    offset: u64,
    /// A packet whose data are left out, as far as its header has come.
    header: Option<Block>,
}

impl Hex {
    fn handle_part(
        &mut self,
        line: u64,
        part: &[u8],
        begins: bool,
        is_whole: bool,
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), InputError> {
        let mut octets = Vec::new();
        if begins {
            self.digits.begin_line(part);
            let comment = part.trim_ascii();
            if is_whole && comment.starts_with(b"#") {
                self.handle_comment(&String::from_utf8_lossy(comment), pieces);
            }
        }
        self.digits.read(part, &mut octets)?;
        if is_whole {
            self.digits.end_line(&mut octets)?;
        }
        if !octets.is_empty() {
            let place = Place { offset: self.offset, line: Some(line) };
            self.offset += octets.len() as u64;
            self.handle_octets(place, octets, pieces);
        }
        Ok(())
    }

    fn handle_comment(&mut self, comment: &str, pieces: &mut VecDeque<Piece>) {
        if let Some(mark) = capture::mark(comment) {
            self.mark = Some(mark);
            pieces.extend(self.header.take().map(Piece::Packet));
        }
    }

    /// What octets are, by the mark in front of them.
    fn handle_octets(&mut self, place: Place, octets: Vec<u8>, pieces: &mut VecDeque<Piece>) {
        match self.mark {
            Some(Mark { way, has_no_data: true, .. }) => {
                let begun = Block { way, place, header: Vec::new(), data: Vec::new(), data_len: None };
                let block = self.header.get_or_insert(begun);
                block.header.extend(octets);
                // Longer than any header, and told as such.
                block.header.truncate(KEPT_MAX);
            }
            Some(Mark { way, is_handshake: true, .. }) => {
                pieces.push_back(Piece::Handshake { way, place, octets })
            }
            mark => pieces.push_back(Piece::Octets { way: mark.map(|mark| mark.way), place, octets }),
        }
    }
}

/// A capture.
#[derive(Debug, Default)]
struct Capture {
    /// Octets of each direction so far.
    offsets: BTreeMap<Way, u64>,
    packet: Option<Block>,
}

impl Capture {
    fn handle_line(
        &mut self,
        line: u64,
        text: &[u8],
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), InputError> {
        let text = std::str::from_utf8(text).map_err(|_| no_line(line))?.trim_end();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let read = capture::line(text).ok_or_else(|| no_line(line))?;
        match read {
            Line::Header { offset, octets } => return self.header_row(line, offset, octets),
            Line::Data { len, octets } => return self.data_row(line, len, octets),
            _ => self.finish_packet(pieces),
        }
        match read {
            Line::Said { way, len, octets } => {
                let octets = words(line, octets)?;
                if octets.len() as u64 != len {
                    let what = "the number of octets is not the one in front of them";
                    return Err(InputError::Capture { line, what });
                }
                let place = self.advance(line, way, len);
                pieces.push_back(match len {
                    0 => Piece::End { way, place },
                    _ => Piece::Octets { way: Some(way), place, octets },
                });
            }
            Line::Handshake { way, octets } => {
                let octets = words(line, octets)?;
                let place = self.advance(line, way, octets.len() as u64);
                pieces.push_back(Piece::Handshake { way, place, octets });
            }
            Line::End { way } => pieces.push_back(Piece::End { way, place: self.advance(line, way, 0) }),
            Line::Packet { way } => {
                let (header, data) = (Vec::new(), Vec::new());
                let place = self.advance(line, way, 0);
                self.packet = Some(Block { way, place, header, data, data_len: Some(0) });
            }
            Line::Header { .. } | Line::Data { .. } => {}
        }
        Ok(())
    }

    /// The place of octets of this direction, which are behind it from now on.
    fn advance(&mut self, line: u64, way: Way, len: u64) -> Place {
        if self.offsets.len() >= WAYS_MAX && !self.offsets.contains_key(&way) {
            return Place { offset: 0, line: Some(line) };
        }
        let offset = self.offsets.entry(way).or_default();
        let place = Place { offset: *offset, line: Some(line) };
        *offset = offset.saturating_add(len);
        place
    }

    /// Another line than one of a packet has come.
    fn finish_packet(&mut self, pieces: &mut VecDeque<Piece>) {
        if let Some(packet) = self.packet.take() {
            let len = packet.header.len() as u64 + packet.data_len.unwrap_or(0);
            self.advance(0, packet.way, len);
            pieces.push_back(Piece::Packet(packet));
        }
    }

    fn header_row(&mut self, line: u64, offset: usize, octets: Words<'_>) -> Result<(), InputError> {
        match &mut self.packet {
            Some(packet)
                if packet.header.len() == offset && offset < HEADER_LEN && packet.data.is_empty() =>
            {
                packet.header.extend(words(line, octets)?);
                Ok(())
            }
            _ => Err(InputError::Capture {
                line,
                what: "octets of a header that do not follow those before them",
            }),
        }
    }

    fn data_row(&mut self, line: u64, len: Option<u64>, octets: Words<'_>) -> Result<(), InputError> {
        let Some(packet) = self.packet.as_mut().filter(|packet| packet.data_len == Some(0)) else {
            return Err(InputError::Capture { line, what: "data that do not follow a header" });
        };
        packet.data = words(line, octets)?;
        packet.data_len = Some(len.unwrap_or(packet.data.len() as u64));
        Ok(())
    }
}

fn words(line: u64, words: Words<'_>) -> Result<Vec<u8>, InputError> {
    let what = "not hexadecimal digits, two an octet";
    let mut octets = Vec::new();
    words.read(&mut octets).ok_or(InputError::Capture { line, what })?;
    Ok(octets)
}
