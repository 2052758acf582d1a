//! Handling of packet headers: the destination of the octets that follow, and the action once they have
//! arrived.

use mpjdev_buffer::SlabSource;
use mpjdev_proto::impi::message_tx::RTS_DATA_LEN;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::pair::{Arrival, Event};

use super::body_action::BodyAction;
use super::channel::Channel;
use super::rx_stream::{Body, BodyTarget, STAGED_MAX};
use super::transport::TcpTransport;
use super::tx_stream::PeerSession;
use crate::net::control;
use crate::net::incoming_message::IncomingMessage;
use crate::net::peer_fault::PeerFault;
use crate::{Header, Kind};

impl TcpTransport {
    /// Passes a header to the state machine of its rank.
    ///
    /// # Errors
    /// The violation of the sender.
    pub(super) fn handle(
        &self,
        channel: &Channel,
        octets: &[u8; 128],
    ) -> Result<Body<BodyAction>, PeerFault> {
        let dialect = self.terms.dialect;
        let packet = Packet::parse(octets, dialect)?;
        let mut tx = channel.tx();
        tx.ending.handle_packet(packet.kind)?;
        let at = match &tx.sessions[..] {
            [_] => 0,
            sessions => sessions
                .iter()
                .position(|session| session.pair.settings().theirs == packet.src)
                .filter(|_| packet.kind != mpjdev_proto::impi::packet::PacketType::Fini)
                .unwrap_or(0),
        };
        let session = &mut tx.sessions[at];
        if session.is_foreign {
            // A foreign rank answers no request for a heartbeat.
            self.net.peer_table.record_heartbeat(session.rank);
        }
        let was_open = session.pair.flow().is_open();
        let event = session.pair.handle_packet(&packet)?;
        let body = self.body_of(session, &packet, event)?;
        if packet.kind.is_counted() {
            session.note_counted();
        }
        let has_opened = !was_open && session.pair.flow().is_open();
        let must_send =
            session.pair.wants_to_send() || session.pending_credit.is_some() || session.failure.is_some();
        if has_opened {
            self.note_room(&mut tx);
        }
        if must_send {
            self.flush_control(&mut tx);
            tx.fill_from_sessions();
            self.note_waiting(channel, &tx);
        }
        Ok(body)
    }

    fn body_of(
        &self,
        session: &mut PeerSession,
        packet: &Packet,
        event: Event,
    ) -> Result<Body<BodyAction>, PeerFault> {
        let len = packet.data_len() as usize;
        let (what, target) = match event {
            Event::Arrived(arrival) => self.arrived(session, &arrival)?,
            Event::Continued { arrival, offset, last, .. } => {
                let token = arrival.drqid();
                let room = session.arrivals.get(&token).and_then(IncomingMessage::room);
                session.note_rest(last, room.is_some());
                let what = BodyAction::Rest { rank: session.rank, token, offset: offset as usize, last };
                (what, room.map_or(BodyTarget::Skipped, |slab| BodyTarget::Slab(slab, offset as usize)))
            }
            Event::Matched { token } => {
                let header = Header { kind: Kind::MatchAck, token: token - 1, ..Header::default() };
                (BodyAction::Packet(session.rank, header), BodyTarget::Skipped)
            }
            Event::Withdraw { arrival } => {
                let token = arrival.drqid();
                session.arrivals.remove(&token);
                let header = Header { kind: Kind::Cancelled, token, ..Header::default() };
                (BodyAction::Packet(session.rank, header), BodyTarget::Skipped)
            }
            Event::Fini => (BodyAction::Fini, BodyTarget::Skipped),
            Event::Nothing => (BodyAction::Nothing, BodyTarget::Skipped),
        };
        Ok(Body { target, len, done: 0, what })
    }

    /// Places a message, or its first octets.
    fn arrived(
        &self,
        session: &mut PeerSession,
        arrival: &Arrival,
    ) -> Result<(BodyAction, BodyTarget), PeerFault> {
        let Arrival { id, cid, tag, msglen, len, .. } = *arrival;
        let (rank, len) = (session.rank, len as usize);
        if cid == control::CONTEXT && !session.is_foreign {
            if arrival.is_long() || len > STAGED_MAX || id.is_some() {
                return Err(PeerFault::ControlLen { len: msglen });
            }
            return Ok((BodyAction::Control { rank, tag }, BodyTarget::Staged));
        }
        if tag < 0 || (session.is_foreign && !control::is_open_to_all(cid)) {
            return Err(PeerFault::Tag { tag, context: cid });
        }
        let Ok(msglen) = usize::try_from(msglen) else {
            return Err(PeerFault::Len { len: msglen });
        };
        let mut header = Header { kind: Kind::Eager, context: cid, tag, token: 0 };
        if let Some(id) = id {
            header.token = id.drqid();
            header.kind = match len <= RTS_DATA_LEN as usize && !session.is_foreign {
                true => Kind::Rts,
                false => Kind::Synchronous,
            };
            let arriving = match arrival.is_long() {
                true => IncomingMessage::long(id, msglen),
                false => IncomingMessage::short(id, msglen),
            };
            session.arrivals.insert(header.token, arriving);
        }
        if arrival.is_long() {
            let target = BodyTarget::Slab(self.memory(len)?, 0);
            return Ok((BodyAction::FirstPart { rank, header, msglen }, target));
        }
        let target = match len <= STAGED_MAX {
            true => BodyTarget::Staged,
            false => BodyTarget::Slab(self.memory(len)?, 0),
        };
        Ok((BodyAction::Packet(rank, header), target))
    }

    fn memory(&self, len: usize) -> Result<mpjdev_buffer::Slab, PeerFault> {
        let source: &dyn SlabSource = &*self.net.source;
        source.take_arrived(len).map_err(|error| PeerFault::NoMemory { len, error })
    }
}
