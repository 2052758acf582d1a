//! The dissector: a recording in, one entry for each command or packet out.

use std::collections::{BTreeMap, VecDeque};

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::startup::layout::{CMD_LEN, Command};

use super::byte_queue::ByteQueue;
use super::data::Data;
use super::handshake::{HandshakeMessage, HandshakeState, opens_with_handshake};
use super::item::{Damage, Direction, END, Entry, HANDSHAKE, Item, Location, Part, Totals};
use super::packet::{self, Terms};
use super::recording::{CapturedPacket, Piece, Recording};
use super::startup::{self, Side, UnitReader};
use crate::inspect::error::InputError;
use crate::inspect::text::count;

/// The dialect and the part of a recording, and terms that are known from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The text of the specification that the sites follow.
    pub dialect: Dialect,
    /// The protocol of octets without marks, and the only one that is shown. `None`: recognised, and both
    /// shown.
    pub part: Option<Part>,
    /// The terms of the job.
    pub terms: Terms,
}

/// Directions that are followed.
const DIRECTIONS_MAX: usize = 4096;
/// Octets without marks that are examined to find their protocol.
const HEAD_LEN: usize = 4096;

/// Iterator over the entries of a recording. Each entry is made on demand.
#[derive(Debug)]
pub(super) struct Dissector {
    options: Options,
    recording: Recording,
    streams: BTreeMap<Option<Direction>, Stream>,
    /// The stream whose octets are dissected now.
    current: Option<Option<Direction>>,
    /// The streams to be closed at the end of the recording.
    closing: Option<VecDeque<Option<Direction>>>,
    output: Output,
    /// Whether the limit on directions was reported.
    has_reported_limit: bool,
    totals: Totals,
    error: Option<InputError>,
}

/// The octets of one direction; packets without marks perhaps of both.
#[derive(Debug, Default)]
struct Stream {
    queue: ByteQueue,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// The protocol is not known yet.
    #[default]
    New,
    Startup(UnitReader),
    Packets(HandshakeState),
    /// Nothing more is dissected.
    Over,
}

/// Entries that are ready.
#[derive(Debug, Default)]
struct Output {
    entries: VecDeque<Entry>,
    items: u64,
}

impl Output {
    fn item(&mut self, mut item: Item) {
        self.items += 1;
        item.number = self.items;
        self.entries.push_back(Entry::Item(Box::new(item)));
    }

    fn damage(
        &mut self,
        part: Part,
        location: Location,
        direction: Option<Direction>,
        message: impl Into<String>,
    ) {
        self.entries.push_back(Entry::Damage(Damage { part, location, direction, message: message.into() }));
    }
}

impl Dissector {
    pub(super) fn new(recording: Recording, options: Options) -> Dissector {
        Dissector {
            options,
            recording,
            streams: BTreeMap::new(),
            current: None,
            closing: None,
            output: Output::default(),
            has_reported_limit: false,
            totals: Totals::default(),
            error: None,
        }
    }

    /// The counts of all entries so far.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// The reason why the rest of the recording cannot be read.
    pub(super) fn error(&self) -> Option<&InputError> {
        self.error.as_ref()
    }

    pub(super) fn into_error(self) -> Option<InputError> {
        self.error
    }

    /// Dissects a piece of the recording, or a unit of the current stream; false at the end.
    fn advance(&mut self) -> bool {
        if let Some(direction) = self.current {
            if !self.step(direction) {
                self.current = None;
                if self.closing.is_some() {
                    self.close(direction);
                }
            }
            return true;
        }
        if let Some(closing) = &mut self.closing {
            self.current = closing.pop_front();
            return self.current.is_some();
        }
        match self.recording.next_piece() {
            Ok(Some(piece)) => self.handle(piece),
            Ok(None) => self.closing = Some(self.streams.keys().copied().collect()),
            Err(error) => {
                self.error = Some(error);
                self.closing = Some(VecDeque::new());
            }
        }
        true
    }

    fn handle(&mut self, piece: Piece) {
        match piece {
            Piece::Octets { direction, location, octets } => {
                if let Some(stream) = self.stream(direction, location)
                    && !matches!(stream.state, State::Over)
                {
                    stream.queue.push(location, &octets);
                    self.current = Some(direction);
                }
            }
            Piece::Handshake { direction, location, octets } => {
                self.handle_handshake(direction, location, &octets)
            }
            Piece::Packet(packet) => self.handle_packet(&packet),
            Piece::End { direction, location } => self.handle_end(direction, location),
        }
    }

    /// The stream of this direction; none if there are too many, which is reported once.
    fn stream(&mut self, direction: Option<Direction>, location: Location) -> Option<&mut Stream> {
        if self.streams.len() >= DIRECTIONS_MAX && !self.streams.contains_key(&direction) {
            if !std::mem::replace(&mut self.has_reported_limit, true) {
                let part = direction.and_then(Direction::part).unwrap_or(Part::Packets);
                self.output.damage(
                    part,
                    location,
                    direction,
                    format!("more than {DIRECTIONS_MAX} directions"),
                );
            }
            return None;
        }
        Some(self.streams.entry(direction).or_default())
    }

    fn handle_handshake(&mut self, direction: Direction, location: Location, octets: &[u8]) {
        let Some(stream) = self.stream(Some(direction), location) else { return };
        if octets.len() != HandshakeMessage::Handshake.len() {
            stream.state = State::Over;
            let what = short(octets.len(), HANDSHAKE, HandshakeMessage::Handshake.len());
            return self.output.damage(Part::Packets, location, Some(direction), what);
        }
        if let State::New = stream.state {
            stream.state = State::Packets(HandshakeState::default());
        }
        self.open(HandshakeMessage::Handshake, Some(direction), location, octets);
    }

    fn open(
        &mut self,
        message: HandshakeMessage,
        direction: Option<Direction>,
        location: Location,
        octets: &[u8],
    ) {
        let mut item = Item::new(Part::Packets, location, direction, message.name());
        message.describe(octets, &mut item);
        self.output.item(item);
    }

    /// Dissects a packet that the recorder has cut out of its stream.
    fn handle_packet(&mut self, captured: &CapturedPacket) {
        let CapturedPacket { direction, location, header, data, data_len } = captured;
        let parsed = match header.as_slice().try_into() {
            Ok(header) => Packet::parse(header, self.options.dialect).map_err(|error| error.to_string()),
            Err(_) => Err(short(header.len(), "header", HEADER_LEN)),
        };
        let packet = match parsed {
            Ok(packet) => packet,
            Err(what) => return self.output.damage(Part::Packets, *location, Some(*direction), what),
        };
        let mut item = self.packet_item(Some(*direction), *location, &packet, data);
        let len = u64::from(packet.data_len());
        if let Some(recorded) = data_len.filter(|recorded| *recorded != len) {
            let what = if packet.kind.has_data() { "len is" } else { "a packet of this type has" };
            item.warn(format!("{what} {len}, the recording has {} of data", count(recorded, "octet")));
        }
        self.output.item(item);
    }

    fn packet_item(
        &self,
        direction: Option<Direction>,
        location: Location,
        packet: &Packet,
        data: &[u8],
    ) -> Item {
        let Options { dialect, terms, .. } = &self.options;
        let mut item = Item::new(Part::Packets, location, direction, packet::name(packet.kind));
        packet::describe(packet, *dialect, terms, &mut item);
        let len = u64::from(packet.data_len());
        let msglen = (!packet::is_rest(packet)).then_some(packet.msglen);
        item.data = (len > 0).then(|| Data::new(len, data, msglen));
        item
    }

    fn handle_end(&mut self, direction: Direction, location: Location) {
        self.close(Some(direction));
        let part = direction.part().unwrap_or(Part::Packets);
        let mut item = Item::new(part, location, Some(direction), END);
        item.meaning = match part {
            Part::Startup => "the connection is closed".to_owned(),
            Part::Packets => "end of stream".to_owned(),
        };
        if let Some(stream) = self.stream(Some(direction), location) {
            stream.state = State::Over;
        }
        self.output.item(item);
    }

    /// Dissects the next unit of a stream; false if more octets are needed.
    fn step(&mut self, direction: Option<Direction>) -> bool {
        let Some(stream) = self.streams.get_mut(&direction) else { return false };
        match &stream.state {
            _ if stream.queue.len() == 0 => false,
            State::Over => false,
            State::New => self.begin(direction),
            State::Startup(_) => self.step_startup(direction),
            State::Packets(handshakes) => match handshakes.next(stream.queue.octets(), direction.is_some()) {
                Some(message) => self.step_handshake(direction, message),
                None => self.step_packet(direction),
            },
        }
    }

    /// Finds the protocol of a stream.
    fn begin(&mut self, direction: Option<Direction>) -> bool {
        let Options { dialect, part, .. } = self.options;
        let Some(stream) = self.streams.get_mut(&direction) else { return false };
        let octets = stream.queue.octets();
        let head = &octets[..octets.len().min(HEAD_LEN)];
        let needed = if direction.is_some() { HandshakeMessage::Handshake.len() } else { HEAD_LEN };
        if head.len() < needed && self.closing.is_none() {
            return false;
        }
        let part = direction.and_then(Direction::part).or(part).unwrap_or_else(|| guess_part(head));
        if part == Part::Startup {
            stream.state = State::Startup(UnitReader::new(dialect, Side::of(direction, head)));
            return true;
        }
        let has_handshake = opens_with_handshake(head, direction, dialect);
        stream.state = State::Packets(HandshakeState::default());
        !has_handshake || self.step_handshake(direction, HandshakeMessage::Handshake)
    }

    fn step_startup(&mut self, direction: Option<Direction>) -> bool {
        let Some(Stream { queue, state: State::Startup(units) }) = self.streams.get_mut(&direction) else {
            return false;
        };
        let Some(head) = queue.octets().first_chunk() else { return false };
        let unit = match units.next(*head) {
            Ok(unit) => unit,
            Err(error) => return self.give_up(direction, Part::Startup, error.to_string()),
        };
        if queue.len() < unit.head_len() + unit.payload_len() {
            return false;
        }
        let location = queue.location();
        queue.take(unit.head_len());
        let payload = queue.take(unit.payload_len());
        let side = units.handle(unit);
        let direction = direction.unwrap_or_else(|| side.direction());
        let mut item = Item::new(Part::Startup, location, Some(direction), unit.name());
        let Options { dialect, terms, .. } = &mut self.options;
        startup::describe(side, unit, &payload, *dialect, terms, &mut item);
        self.output.item(item);
        true
    }

    fn step_handshake(&mut self, direction: Option<Direction>, message: HandshakeMessage) -> bool {
        let Some(Stream { queue, state: State::Packets(handshakes) }) = self.streams.get_mut(&direction)
        else {
            return false;
        };
        if queue.len() < message.len() {
            return false;
        }
        let location = queue.location();
        let octets = queue.take(message.len());
        handshakes.handle(message);
        self.open(message, direction, location, &octets);
        true
    }

    fn step_packet(&mut self, direction: Option<Direction>) -> bool {
        let dialect = self.options.dialect;
        let Some(Stream { queue, state: State::Packets(handshakes) }) = self.streams.get_mut(&direction)
        else {
            return false;
        };
        let Some(header) = queue.octets().first_chunk::<HEADER_LEN>() else { return false };
        let packet = match Packet::parse(header, dialect) {
            Ok(packet) => packet,
            Err(error) => return self.give_up(direction, Part::Packets, error.to_string()),
        };
        handshakes.finish();
        let (location, data_len) = (queue.location(), packet.data_len() as usize);
        if queue.len() < HEADER_LEN + data_len {
            return false;
        }
        queue.take(HEADER_LEN);
        let data = queue.take(data_len);
        let item = self.packet_item(direction, location, &packet, &data);
        self.output.item(item);
        true
    }

    /// Reports malformed octets, and dissects no more of their stream.
    fn give_up(&mut self, direction: Option<Direction>, part: Part, message: String) -> bool {
        let Some(stream) = self.streams.get_mut(&direction) else { return false };
        let location = stream.queue.location();
        *stream = Stream { state: State::Over, ..Stream::default() };
        self.output.damage(part, location, direction, message);
        false
    }

    /// Ends a stream, and reports an incomplete last unit.
    fn close(&mut self, direction: Option<Direction>) {
        let Some(stream) = self.streams.get_mut(&direction) else { return };
        let Stream { queue, state } =
            std::mem::replace(stream, Stream { state: State::Over, ..Stream::default() });
        let (octets, end, len) = (queue.octets(), queue.end(), queue.len());
        if len == 0 {
            return;
        }
        match state {
            State::Over => {}
            State::Startup(units) => {
                let what = match octets.first_chunk().map(|head| units.next(*head)) {
                    Some(Ok(unit)) => {
                        partial(len - unit.head_len(), unit.payload_len(), &format!(" of {}", unit.name()))
                    }
                    _ => short(len, "command", CMD_LEN),
                };
                self.output.damage(Part::Startup, end, direction, what);
            }
            State::New => {
                let part = direction.and_then(Direction::part).unwrap_or(Part::Packets);
                let what = match part {
                    Part::Startup => short(len, "command", CMD_LEN),
                    Part::Packets => short(len, HANDSHAKE, HandshakeMessage::Handshake.len()),
                };
                self.output.damage(part, end, direction, what);
            }
            State::Packets(handshakes) => {
                let what = match handshakes.next(octets, direction.is_some()) {
                    Some(message) => short(len, message.name(), message.len()),
                    None => self.close_packet(direction, &queue),
                };
                self.output.damage(Part::Packets, end, direction, what);
            }
        }
    }

    /// Shows a packet with truncated data, if its header is present, and returns the damage.
    fn close_packet(&mut self, direction: Option<Direction>, queue: &ByteQueue) -> String {
        let Some((header, data)) = queue.octets().split_first_chunk::<HEADER_LEN>() else {
            return short(queue.len(), "header", HEADER_LEN);
        };
        match Packet::parse(header, self.options.dialect) {
            Ok(packet) => {
                let item = self.packet_item(direction, queue.location(), &packet, data);
                self.output.item(item);
                partial(data.len(), packet.data_len() as usize, " of data")
            }
            Err(error) => error.to_string(),
        }
    }
}

impl Iterator for Dissector {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            while let Some(entry) = self.output.entries.pop_front() {
                if self.options.part.is_none_or(|part| entry.part() == part) {
                    self.totals.add(&entry);
                    return Some(entry);
                }
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

/// `3 octets of a header, 128 needed`.
fn short(len: usize, name: &str, needed: usize) -> String {
    format!("{} of a {name}, {needed} needed", count(len, "octet"))
}

/// `3 of the 8 octets of data`.
fn partial(len: usize, needed: usize, what: &str) -> String {
    format!("{len} of the {}{what}", count(needed, "octet"))
}

/// The protocol of octets without marks. Start-up begins with a command, or with the server's answer to AUTH
/// and a command.
fn guess_part(head: &[u8]) -> Part {
    let is_command = |at: usize| {
        let code =
            head.get(at..).and_then(|octets| octets.first_chunk()).map(|code| i32::from_be_bytes(*code));
        code.is_some_and(|code| Command::from_code(code).is_some())
    };
    // In a header the first of these numbers is the type, and a host id follows both.
    let is_answer = matches!(head, [0, 0, 0, 0 | 1, 0, 0, 0, 0 | 8, ..]);
    if is_command(0) || (is_answer && is_command(8)) { Part::Startup } else { Part::Packets }
}
