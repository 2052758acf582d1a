//! Handling of packet headers: the destination of the octets that follow, and the action once they have
//! arrived.

use mpjdev_buffer::SlabSource;
use mpjdev_proto::impi::message_tx::RTS_DATA_LEN;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::pair::{Arrival, Event};

use super::channel::Channel;
use super::rx_stream::{Body, Place, STAGED_MAX};
use super::transport::TcpTransport;
use super::tx_stream::Talk;
use crate::net::control;
use crate::net::incoming_message::IncomingMessage;
use crate::{Header, Kind};

/// Action once the octets of a body have arrived.
#[derive(Debug)]
pub(super) enum What {
    /// No action.
    Nothing,
    /// Passes on a message of this rank, or an answer without octets.
    Packet(u32, Header),
    /// Passes on the beginning of a long message.
    Beginning { rank: u32, header: Header, msglen: usize },
    /// Adds a part to the rest of a long message. The last one makes the message whole.
    Part { rank: u32, token: u64, offset: usize, last: bool },
    /// Handles a control message between our own ranks.
    Control { rank: u32, tag: i32 },
    /// Handles the end of the host's packets.
    Fini,
}

impl TcpTransport {
    /// Passes a header to the state machine of its rank.
    ///
    /// # Errors
    /// The violation of the sender.
    pub(super) fn handle(&self, channel: &Channel, octets: &[u8; 128]) -> Result<Body<What>, String> {
        let dialect = self.terms.dialect;
        let packet = Packet::parse(octets, dialect).map_err(|error| error.to_string())?;
        let mut writing = channel.writing();
        writing.ending.handle_packet(packet.kind).map_err(|error| error.to_string())?;
        let at = match &writing.talks[..] {
            [_] => 0,
            talks => talks
                .iter()
                .position(|talk| talk.pair.settings().theirs == packet.src)
                .filter(|_| packet.kind != mpjdev_proto::impi::packet::PacketType::Fini)
                .unwrap_or(0),
        };
        let talk = &mut writing.talks[at];
        if talk.is_foreign {
            // A foreign rank answers no request for a heartbeat.
            self.peer_table.record_heartbeat(talk.rank);
        }
        let was_open = talk.pair.flow().is_open();
        let event = talk.pair.handle_packet(&packet).map_err(|error| error.to_string())?;
        let body = self.body_of(talk, &packet, event)?;
        if packet.kind.is_counted() {
            talk.note_counted();
        }
        let has_opened = !was_open && talk.pair.flow().is_open();
        if has_opened {
            self.note_room(channel);
        }
        if talk.pair.wants_to_send() || talk.pending_credit.is_some() || talk.failure.is_some() {
            self.flush_control(&mut writing);
            writing.pump();
            self.note_waiting(channel, &writing);
        }
        Ok(body)
    }

    fn body_of(&self, talk: &mut Talk, packet: &Packet, event: Event) -> Result<Body<What>, String> {
        let len = packet.data_len() as usize;
        let (what, place) = match event {
            Event::Arrived(arrival) => self.arrived(talk, &arrival)?,
            Event::Continued { arrival, offset, last, .. } => {
                let token = arrival.drqid();
                let room = talk.arrivals.get(&token).and_then(IncomingMessage::room);
                talk.note_rest(last, room.is_some());
                let what = What::Part { rank: talk.rank, token, offset: offset as usize, last };
                (what, room.map_or(Place::Skipped, |slab| Place::Slab(slab, offset as usize)))
            }
            Event::Matched { token } | Event::Cancelled { token } => {
                let header = Header { kind: Kind::MatchAck, token: token - 1, ..Header::default() };
                (What::Packet(talk.rank, header), Place::Skipped)
            }
            Event::Withdraw { arrival } => {
                let token = arrival.drqid();
                talk.arrivals.remove(&token);
                let header = Header { kind: Kind::Cancelled, token, ..Header::default() };
                (What::Packet(talk.rank, header), Place::Skipped)
            }
            Event::Fini => (What::Fini, Place::Skipped),
            Event::NotCancelled { .. } | Event::Nothing => (What::Nothing, Place::Skipped),
        };
        Ok(Body { place, len, done: 0, what })
    }

    /// Places a message, or its first octets.
    fn arrived(&self, talk: &mut Talk, arrival: &Arrival) -> Result<(What, Place), String> {
        let Arrival { id, cid, tag, msglen, len, .. } = *arrival;
        let (rank, len) = (talk.rank, len as usize);
        if cid == control::CONTEXT && !talk.is_foreign {
            if arrival.is_long() || len > STAGED_MAX || id.is_some() {
                return Err(format!("a message of {msglen} octets in the context of our own traffic"));
            }
            return Ok((What::Control { rank, tag }, Place::Staged));
        }
        if tag < 0 || (talk.is_foreign && !control::is_open_to_all(cid)) {
            return Err(format!("a message with tag {tag} in context {cid}, which it cannot have"));
        }
        let Ok(msglen) = usize::try_from(msglen) else {
            return Err(format!("a message of {msglen} octets"));
        };
        let mut header = Header { kind: Kind::Eager, context: cid, tag, token: 0 };
        if let Some(id) = id {
            header.token = id.drqid();
            header.kind = match len <= RTS_DATA_LEN as usize && !talk.is_foreign {
                true => Kind::Rts,
                false => Kind::Synchronous,
            };
            let arriving = match arrival.is_long() {
                true => IncomingMessage::long(id, msglen),
                false => IncomingMessage::short(id, msglen),
            };
            talk.arrivals.insert(header.token, arriving);
        }
        if arrival.is_long() {
            let place = Place::Slab(self.memory(len)?, 0);
            return Ok((What::Beginning { rank, header, msglen }, place));
        }
        let place = match len <= STAGED_MAX {
            true => Place::Staged,
            false => Place::Slab(self.memory(len)?, 0),
        };
        Ok((What::Packet(rank, header), place))
    }

    fn memory(&self, len: usize) -> Result<mpjdev_buffer::Slab, String> {
        let source: &dyn SlabSource = &*self.source;
        source.take_arrived(len).map_err(|error| format!("{len} octets that have no place here: {error}"))
    }
}
