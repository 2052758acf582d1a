//! A recording in pieces: raw octets, hex text or a text capture.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use mpjdev_proto::impi::layout::HEADER_LEN;

use super::capture::{self, Line, Mark, Words};
use super::item::{Direction, Location};
use crate::inspect::digits::Digits;
use crate::inspect::error::InputError;
use crate::inspect::input::{Kind, is_hex, without_mark};

/// A piece of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Octets of a stream; without a direction if the recording states none.
    Octets { direction: Option<Direction>, location: Location, octets: Bytes },
    /// Octets that are marked as the handshake of a connection between hosts.
    Handshake { direction: Direction, location: Location, octets: Vec<u8> },
    /// One packet. Damage of it harms no other packet.
    Packet(CapturedPacket),
    /// The end of a direction.
    End { direction: Direction, location: Location },
}

/// A packet that the recorder has cut out of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    pub(super) direction: Direction,
    pub(super) location: Location,
    /// 128 octets, unless the packet is damaged.
    pub(super) header: Vec<u8>,
    /// The first octets of the data.
    pub(super) data: Vec<u8>,
    /// Octets of data that the packet had; none if the recording leaves its data out.
    pub(super) data_len: Option<u64>,
}

/// A recording that is read piece by piece.
#[derive(Debug)]
pub(super) struct Recording {
    /// The octets that are not read yet.
    input: Bytes,
    form: Form,
    /// The number of the last line, from 1.
    line: u64,
    /// Pieces that are ready.
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
enum Form {
    Raw,
    Hex(Hex),
    Capture(Capture),
}

impl Recording {
    pub(super) fn new(mut input: Bytes, kind: Kind) -> Recording {
        let form = if is_hex(&input, kind) {
            input = input.slice_ref(without_mark(&input));
            if is_capture(&input) { Form::Capture(Capture::default()) } else { Form::Hex(Hex::default()) }
        } else {
            Form::Raw
        };
        Recording { input, form, line: 0, pieces: VecDeque::new() }
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// Text that is neither hex nor a capture. Nothing more can be read then.
    pub(super) fn next_piece(&mut self) -> Result<Option<Piece>, InputError> {
        while self.pieces.is_empty() && !self.input.is_empty() {
            if let Form::Raw = self.form {
                let octets = std::mem::take(&mut self.input);
                return Ok(Some(Piece::Octets { direction: None, location: Location::default(), octets }));
            }
            let end = self.input.iter().position(|octet| *octet == b'\n');
            let line = self.input.split_to(end.map_or(self.input.len(), |end| end + 1));
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            self.line += 1;
            match &mut self.form {
                Form::Raw => {}
                Form::Hex(hex) => hex.handle_line(self.line, line, &mut self.pieces)?,
                Form::Capture(capture) => capture.handle_line(self.line, line, &mut self.pieces)?,
            }
        }
        if self.pieces.is_empty() {
            match &mut self.form {
                Form::Raw => {}
                Form::Hex(hex) => self.pieces.extend(hex.header.take().map(Piece::Packet)),
                Form::Capture(capture) => capture.finish_packet(&mut self.pieces),
            }
        }
        Ok(self.pieces.pop_front())
    }
}

/// Whether a text is a capture: the first line that is neither empty nor a comment decides.
fn is_capture(text: &[u8]) -> bool {
    let mut lines = text.split(|octet| *octet == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty() && !line.trim_ascii().starts_with(b"#"));
    first.is_some_and(|line| capture::line(String::from_utf8_lossy(line).trim_end()).is_some())
}

/// Hex text. Its comments may state sender and receiver.
#[derive(Debug, Default)]
struct Hex {
    digits: Digits,
    /// The last mark.
    mark: Option<Mark>,
    /// Octets that were read so far.
    offset: u64,
    /// The header so far of a packet whose data are left out.
    header: Option<CapturedPacket>,
}

impl Hex {
    fn handle_line(
        &mut self,
        line: u64,
        text: &[u8],
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), InputError> {
        let comment = text.trim_ascii();
        if comment.starts_with(b"#")
            && let Some(mark) = capture::mark(&String::from_utf8_lossy(comment))
        {
            self.mark = Some(mark);
            pieces.extend(self.header.take().map(Piece::Packet));
        }
        let mut octets = Vec::new();
        self.digits.read_line(text, &mut octets)?;
        if !octets.is_empty() {
            let location = Location { offset: self.offset, line: Some(line) };
            self.offset += octets.len() as u64;
            self.handle_octets(location, octets, pieces);
        }
        Ok(())
    }

    fn handle_octets(&mut self, location: Location, octets: Vec<u8>, pieces: &mut VecDeque<Piece>) {
        match self.mark {
            Some(Mark { direction, has_no_data: true, .. }) => {
                let new = CapturedPacket {
                    direction,
                    location,
                    header: Vec::new(),
                    data: Vec::new(),
                    data_len: None,
                };
                self.header.get_or_insert(new).header.extend(octets);
            }
            Some(Mark { direction, is_handshake: true, .. }) => {
                pieces.push_back(Piece::Handshake { direction, location, octets });
            }
            mark => {
                let direction = mark.map(|mark| mark.direction);
                pieces.push_back(Piece::Octets { direction, location, octets: octets.into() });
            }
        }
    }
}

/// A text capture.
#[derive(Debug, Default)]
struct Capture {
    /// Octets of each direction so far.
    offsets: BTreeMap<Direction, u64>,
    /// The packet whose rows are read.
    packet: Option<CapturedPacket>,
}

impl Capture {
    fn handle_line(
        &mut self,
        line: u64,
        text: &[u8],
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), InputError> {
        let no_line = InputError::Capture { line, what: "not a line of a capture" };
        let Ok(text) = std::str::from_utf8(text) else { return Err(no_line) };
        let text = text.trim_end();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let Some(read) = capture::line(text) else { return Err(no_line) };
        if !matches!(read, Line::Header { .. } | Line::Data { .. }) {
            self.finish_packet(pieces);
        }
        match read {
            Line::Header { offset, octets } => self.header_row(line, offset, octets)?,
            Line::Data { len, octets } => self.data_row(line, len, octets)?,
            Line::Startup { direction, len, octets } => {
                let octets = words(line, octets)?;
                if octets.len() as u64 != len {
                    let what = "the number of octets is not the one in front of them";
                    return Err(InputError::Capture { line, what });
                }
                let location = self.advance(line, direction, len);
                pieces.push_back(match len {
                    0 => Piece::End { direction, location },
                    _ => Piece::Octets { direction: Some(direction), location, octets: octets.into() },
                });
            }
            Line::Handshake { direction, octets } => {
                let octets = words(line, octets)?;
                let location = self.advance(line, direction, octets.len() as u64);
                pieces.push_back(Piece::Handshake { direction, location, octets });
            }
            Line::End { direction } => {
                pieces.push_back(Piece::End { direction, location: self.advance(line, direction, 0) });
            }
            Line::Packet { direction } => {
                let location = self.advance(line, direction, 0);
                let (header, data) = (Vec::new(), Vec::new());
                self.packet = Some(CapturedPacket { direction, location, header, data, data_len: Some(0) });
            }
        }
        Ok(())
    }

    /// Counts `len` octets of this direction, and returns their location.
    fn advance(&mut self, line: u64, direction: Direction, len: u64) -> Location {
        let offset = self.offsets.entry(direction).or_default();
        let location = Location { offset: *offset, line: Some(line) };
        *offset = offset.saturating_add(len);
        location
    }

    /// Emits the packet whose rows are complete.
    fn finish_packet(&mut self, pieces: &mut VecDeque<Piece>) {
        if let Some(packet) = self.packet.take() {
            let len = (packet.header.len() as u64).saturating_add(packet.data_len.unwrap_or(0));
            self.advance(0, packet.direction, len);
            pieces.push_back(Piece::Packet(packet));
        }
    }

    fn header_row(&mut self, line: u64, offset: usize, octets: Words<'_>) -> Result<(), InputError> {
        let what = "octets of a header that do not follow those before them";
        let packet = self
            .packet
            .as_mut()
            .filter(|packet| packet.header.len() == offset && offset < HEADER_LEN && packet.data.is_empty());
        let packet = packet.ok_or(InputError::Capture { line, what })?;
        packet.header.extend(words(line, octets)?);
        Ok(())
    }

    fn data_row(&mut self, line: u64, len: Option<u64>, octets: Words<'_>) -> Result<(), InputError> {
        let what = "data that do not follow a header";
        let packet = self.packet.as_mut().filter(|packet| packet.data_len == Some(0));
        let packet = packet.ok_or(InputError::Capture { line, what })?;
        packet.data = words(line, octets)?;
        packet.data_len = Some(len.unwrap_or(packet.data.len() as u64));
        Ok(())
    }
}

fn words(line: u64, words: Words<'_>) -> Result<Vec<u8>, InputError> {
    let what = "not hexadecimal digits, two an octet";
    words.read().ok_or(InputError::Capture { line, what })
}
