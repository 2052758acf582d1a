//! The messages that open a connection between hosts: the handshake of IMPI, greeting and proof of mpjdev.

use mpjdev_bootstrap::mesh::handshake::{
    GREETING as GREETING_START, GREETING_LEN, NUMBER_LEN, PROOF_LEN, REFUSAL,
};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::marker::is_marked;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::startup::layout::HOSTS_MAX;

use super::item::{Direction, Endpoint, GREETING, HANDSHAKE, Item, PROOF};

/// Packets of a stream that are examined to find its handshake.
const PACKETS_MAX: usize = 8;

/// A message that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeMessage {
    /// The number of the host that connects (IMPI 6).
    Handshake,
    /// An mpjdev host, and a nonce.
    Greeting,
    /// The answer to the other host's nonce.
    Proof,
}

impl HandshakeMessage {
    pub(super) fn len(self) -> usize {
        match self {
            HandshakeMessage::Handshake => NUMBER_LEN,
            HandshakeMessage::Greeting => GREETING_LEN,
            HandshakeMessage::Proof => PROOF_LEN,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            HandshakeMessage::Handshake => HANDSHAKE,
            HandshakeMessage::Greeting => GREETING,
            HandshakeMessage::Proof => PROOF,
        }
    }

    /// Describes the octets of this message.
    pub(super) fn describe(self, octets: &[u8], item: &mut Item) {
        match self {
            HandshakeMessage::Handshake => handshake(octets, item),
            HandshakeMessage::Greeting => item.meaning = "an mpjdev host, and a nonce".to_owned(),
            HandshakeMessage::Proof if octets == REFUSAL => {
                item.meaning = "the host refuses the other's proof".to_owned();
                item.warn("the hosts have different keys, or belong to different jobs");
            }
            HandshakeMessage::Proof => {
                item.meaning = "the host proves that it has the key of the job".to_owned()
            }
        }
    }
}

fn handshake(octets: &[u8], item: &mut Item) {
    let Some(number) = octets.first_chunk().map(|octets| u32::from_be_bytes(*octets)) else { return };
    item.add_number("number", number);
    item.meaning = format!("host {number} has connected");
    if let Some(Direction { from: Endpoint::Host(from), to: Endpoint::Host(to) }) = item.direction {
        if from != number {
            item.warn(format!("host {from} calls itself {number}"));
        }
        if from <= to {
            item.warn("the host with the higher number connects");
        }
    }
}

/// The progress of a stream through its handshake before its first packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandshakeState {
    greetings: usize,
    proofs: usize,
    has_packets: bool,
}

impl HandshakeState {
    /// The handshake message at the front of the stream, if there is one. A stream without marks may hold
    /// both directions.
    pub(super) fn next(self, octets: &[u8], is_marked: bool) -> Option<HandshakeMessage> {
        if self.has_packets {
            return None;
        }
        let greets = octets.starts_with(&GREETING_START) || GREETING_START.starts_with(octets);
        let greetings_max = if is_marked { 1 } else { 2 };
        if greets && !octets.is_empty() && self.proofs == 0 && self.greetings < greetings_max {
            Some(HandshakeMessage::Greeting)
        } else {
            (self.proofs < self.greetings).then_some(HandshakeMessage::Proof)
        }
    }

    pub(super) fn handle(&mut self, message: HandshakeMessage) {
        self.greetings += usize::from(message == HandshakeMessage::Greeting);
        self.proofs += usize::from(message == HandshakeMessage::Proof);
    }

    /// The first packet has been read.
    pub(super) fn finish(&mut self) {
        self.has_packets = true;
    }
}

/// Whether a stream with this head opens with a handshake. A header begins with its type. A number that could
/// be a type is a handshake if the octets after it are more plausible as headers than the head itself.
pub(super) fn opens_with_handshake(head: &[u8], direction: Option<Direction>, dialect: Dialect) -> bool {
    let Some(number) = head.first_chunk().map(|octets| u32::from_be_bytes(*octets)) else { return false };
    let is_type = PacketType::from_code(number, dialect).is_some();
    if let Some(Direction { from, .. }) = direction {
        return !is_type && from == Endpoint::Host(number);
    }
    let rest = &head[NUMBER_LEN..];
    match number {
        // Host 0 connects to no other.
        0 => false,
        _ if rest.starts_with(&GREETING_START) => true,
        _ if !is_type => number <= HOSTS_MAX,
        _ if rest.is_empty() => true,
        _ => plausibility(rest, dialect) > plausibility(head, dialect),
    }
}

/// The plausibility of octets as packets: a point for each pid of usual size; none without a valid packet.
fn plausibility(mut octets: &[u8], dialect: Dialect) -> Option<u32> {
    let is_usual = |pid: i64| i32::try_from(pid).is_ok() || is_marked(dialect, pid);
    let mut points = None;
    for _ in 0..PACKETS_MAX {
        let Some(header) = octets.first_chunk::<HEADER_LEN>() else { break };
        let packet = Packet::parse(header, dialect).ok()?;
        if packet.kind.has_data() && u64::from(packet.len) > packet.msglen {
            return None;
        }
        let usual = u32::from(is_usual(packet.src.pid)) + u32::from(is_usual(packet.dest.pid));
        points = Some(points.unwrap_or(0) + usual);
        octets = octets.get(HEADER_LEN + packet.data_len() as usize..).unwrap_or(&[]);
    }
    points
}
