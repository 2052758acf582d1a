//! The whole recording: what it is, and whose business each piece of it is.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::layout::Command;

use super::book::Agreed;
use super::item::{Entry, Part, Sums, Told};
use super::packets::{Packets, opens_with_handshake};
use super::recording::Piece;
use super::startup::Startup;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question {
    /// Which text of the specification the recording follows.
    pub dialect: Dialect,
    /// What the recording is, or which part of it is wanted; none: find out.
    pub part: Option<Part>,
    /// What is known from elsewhere.
    pub agreed: Agreed,
}

/// Explains a recording: pieces in with [`handle`](Self::handle), then [`finish`](Self::finish); after each of them
/// [`poll`](Self::poll) until it gives nothing.
#[derive(Debug)]
pub struct Explainer {
    question: Question,
    /// What the octets without a mark are; before that is known they are kept.
    unmarked: Unmarked,
    startup: Startup,
    packets: Packets,
    told: Told,
    sums: Sums,
}

#[derive(Debug)]
enum Unmarked {
    Unknown(Vec<Piece>),
    Known(Part),
}

/// Octets that are looked at to find out what a recording is.
const HEAD_LEN: usize = 4096;

impl Explainer {
    /// Nothing has come.
    pub fn new(question: Question) -> Explainer {
        Explainer {
            question,
            unmarked: Unmarked::Unknown(Vec::new()),
            startup: Startup::new(question.dialect),
            packets: Packets::new(question.dialect, question.agreed),
            told: Told::default(),
            sums: Sums::default(),
        }
    }

    /// Takes in the next piece.
    pub fn handle(&mut self, piece: Piece) {
        if let (Unmarked::Unknown(kept), Piece::Octets { way: None, .. }) = (&mut self.unmarked, &piece) {
            kept.push(piece);
            if head(kept).len() >= HEAD_LEN {
                self.recognise();
            }
            return;
        }
        self.pass_on(piece);
    }

    /// There are no more.
    pub fn finish(&mut self) {
        self.recognise();
        self.startup.finish(&mut self.told);
        self.packets.finish(&mut self.told);
    }

    /// What is to be told next.
    pub fn poll(&mut self) -> Option<Entry> {
        loop {
            let entry = self.told.poll()?;
            if self.question.part.is_none_or(|wanted| entry.part() == wanted) {
                self.sums.add(&entry);
                return Some(entry);
            }
        }
    }

    /// What was told so far.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// Messages that wait for a SyncAck at the end, long ones that are not complete, cancel requests without an answer.
    pub fn open(&self) -> [u64; 3] {
        if self.question.part == Some(Part::Startup) { [0; 3] } else { self.packets.open() }
    }

    /// Finds out what the octets are that have no mark.
    fn recognise(&mut self) {
        let Unmarked::Unknown(kept) = &mut self.unmarked else { return };
        let mut kept = std::mem::take(kept);
        let head = head(&kept);
        let part = self.question.part.unwrap_or_else(|| recognised(&head));
        self.unmarked = Unmarked::Known(part);
        if part == Part::Packets && opens_with_handshake(&head, self.question.dialect) {
            self.cut_handshake(&mut kept);
        }
        kept.into_iter().for_each(|piece| self.pass_on(piece));
    }

    /// Takes the first four octets off an unmarked stream.
    fn cut_handshake(&mut self, kept: &mut [Piece]) {
        let mut number = Vec::new();
        let mut begin = None;
        for piece in kept {
            if let Piece::Octets { place, octets, .. } = piece {
                begin.get_or_insert(*place);
                let len = octets.len().min(4 - number.len());
                number.extend(octets.drain(..len));
                *place = place.plus(len);
            }
        }
        self.packets.handle_handshake(None, begin.unwrap_or_default(), &number, &mut self.told);
    }

    fn pass_on(&mut self, piece: Piece) {
        let told = &mut self.told;
        let way = match &piece {
            Piece::Octets { way, .. } => *way,
            Piece::Handshake { way, .. } | Piece::End { way, .. } => Some(*way),
            Piece::Packet(block) => Some(block.way),
        };
        let part = match (way, &self.unmarked) {
            (Some(way), _) => way.part().unwrap_or(Part::Packets),
            (None, Unmarked::Known(part)) => *part,
            (None, Unmarked::Unknown(_)) => Part::Packets,
        };
        match (part, piece) {
            (Part::Startup, Piece::Octets { way, place, octets }) => {
                if let Some(tables) = self.startup.handle_octets(way, place, &octets, told) {
                    self.packets.learn(&tables);
                }
            }
            (Part::Startup, Piece::End { way, place }) => self.startup.handle_end(way, place, told),
            (_, Piece::Octets { way, place, octets }) => {
                self.packets.handle_octets(way, place, &octets, told)
            }
            (_, Piece::Handshake { way, place, octets }) => {
                self.packets.handle_handshake(Some(way), place, &octets, told);
            }
            (_, Piece::Packet(block)) => self.packets.handle_block(&block, told),
            (_, Piece::End { way, place }) => self.packets.handle_end(way, place, told),
        }
    }
}

/// The first octets of these pieces.
fn head(pieces: &[Piece]) -> Vec<u8> {
    let octets = pieces.iter().flat_map(|piece| match piece {
        Piece::Octets { octets, .. } => octets.as_slice(),
        _ => &[],
    });
    octets.copied().take(HEAD_LEN).collect()
}

/// What octets without a mark are: a conversation begins with a command, or with the server's answer to AUTH and a command.
fn recognised(head: &[u8]) -> Part {
    let command = |at: usize| {
        let code = head.get(at..at + 4).and_then(|code| code.try_into().ok()).map(i32::from_be_bytes);
        code.is_some_and(|code| Command::from_code(code).is_some())
    };
    // In a header the first of these numbers is the type, the octets behind both a host id.
    let is_answer = |head: &[u8]| matches!(head, [0, 0, 0, 0 | 1, 0, 0, 0, 0 | 8, ..]);
    if command(0) || (is_answer(head) && command(8)) { Part::Startup } else { Part::Packets }
}
