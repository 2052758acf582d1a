//! Handling of datagrams: the peer that sent each, the destination of its octets, and the messages that it
//! completes.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::copy_out;
use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::datagram::error::PacketError;
use mpjdev_proto::datagram::extension::Extension;
use mpjdev_proto::datagram::header::Header as Fixed;
use mpjdev_proto::datagram::layout::{HEAD_LEN_MAX, HEADER_LEN, SACK_WORD_LEN, SACK_WORDS_MAX, TRAILER_LEN};
use mpjdev_proto::datagram::packet::{Packet, checksum_on};
use mpjdev_proto::datagram::reliable::connection::Disposition;
use mpjdev_proto::datagram::reliable::message_rx::{Arrival, ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::resets::Resets;
use mpjdev_proto::datagram::reliable::settings::RTS_DATA_LEN;
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sys::datagram::{self, Address, GsoBatch, Run};

use super::peer::{Eager, NumberedMessage, Peer, PeerSession};
use super::placement::Expected;
use super::probe::is_probe;
use super::staging_buffer::{Staged, StagingBuffer};
use super::transport::UdpTransport;
use crate::net::control;
use crate::net::copy::copy_octets;
use crate::net::incoming_message::IncomingMessage;
use crate::net::peer_fault::PeerFault;
use crate::net::transport::NetTransport;
use crate::{Header, Incoming, Kind, PacketHandler, Payload};

/// Location of the user data of a packet.
#[derive(Clone, Copy, Debug)]
struct Data<'a> {
    words: &'a [AtomicU64],
    at: usize,
    len: usize,
}

/// Result of a delivery: the packet to pass on.
#[derive(Debug)]
enum Resolved {
    /// No packet.
    Nothing,
    /// The user data, which are a message.
    Message(Header),
    /// A message, or its beginning, in other memory.
    Elsewhere(Header, Incoming<'static>),
    /// The user data, which are a control message between our own ranks.
    Control(i32),
}

/// Reader of datagrams.
#[derive(Debug, Default)]
pub(super) struct Reader {
    resets: Resets<SocketAddr>,
}

impl Reader {
    /// Passes a staged datagram to the state machine of its peer, and the resulting packets to `each`.
    pub(super) fn take(
        &mut self,
        transport: &UdpTransport,
        stage: &mut StagingBuffer,
        staged: &Staged,
        now: Nanos,
        each: &mut PacketHandler<'_>,
    ) {
        let (packet, head_len) = match parse(stage.words(), staged) {
            Ok(parsed) if staged.len <= transport.terms.datagram_len_max => parsed,
            Err(PacketError::Checksum { .. }) => return stage.seen.bad_checksums += 1,
            _ if is_late_probe(stage.words(), staged) => return,
            _ => return stage.seen.malformed += 1,
        };
        let Some(peer) = transport.peer_by(&packet, staged) else {
            stage.seen.unknown += 1;
            return self.answer(transport, staged, now, &packet, None);
        };
        if packet.extension.checked != peer.is_checked {
            return stage.seen.malformed += 1;
        }
        stage.touch(peer.rank as usize);
        match take_packet(transport, peer, stage, staged, head_len, &packet, now, each) {
            Ok(true) => {}
            Ok(false) => {
                let closing_reset = peer.session().connection.closing_reset();
                self.answer(transport, staged, now, &packet, closing_reset);
            }
            Err(why) => transport.close(peer, &format!("it violates the protocol: {why}"), false),
        }
    }

    /// Answers a peer that uses a connection that is over or unknown to this rank. `closing_reset` is that of
    /// a closed one.
    #[cold]
    fn answer(
        &mut self,
        transport: &UdpTransport,
        staged: &Staged,
        now: Nanos,
        packet: &Packet,
        closing_reset: Option<Packet>,
    ) {
        let Some(from) = staged.from else { return };
        let Some(reset) = self.resets.answer(now, from, packet, closing_reset) else { return };
        let mut head = [0; HEAD_LEN_MAX + TRAILER_LEN];
        let Ok(len) = reset.emit(&[], &mut head) else { return };
        let (to, runs) = (Address::from(from), [Run::from(&head[..len])]);
        // The answer may be lost without harm.
        let _ =
            datagram::send(transport.socket(), &[GsoBatch { to: Some(&to), runs: &runs, segment_len: None }]);
    }
}

impl UdpTransport {
    /// The sender of a packet. Its connection id and its address must be the peer's.
    fn peer_by(&self, packet: &Packet, staged: &Staged) -> Option<&Peer> {
        let connection = packet.extension.connection;
        let is_from = |peer: &&Peer| staged.from == Some(peer.address);
        if packet.extension.rst {
            // The packet carries the id of this rank's own packets.
            return self.peers().find(is_from);
        }
        self.peer_of(self.ids.rank(connection)?).filter(is_from)
    }
}

/// The packet of a datagram, and the number of octets before its user data.
fn parse(words: &[AtomicU64], staged: &Staged) -> Result<(Packet, usize), PacketError> {
    match parse_head::<HEAD_LEN_USUAL>(words, staged) {
        // Only a long bitmap makes a head longer than that.
        Err(PacketError::Cut { .. }) if staged.len > HEAD_LEN_USUAL => {
            parse_head::<HEAD_LEN_MAX>(words, staged)
        }
        parsed => parsed,
    }
}

/// Whether the datagram is a path probe of a peer from which one was received before.
#[cold]
fn is_late_probe(words: &[AtomicU64], staged: &Staged) -> bool {
    let mut begin = [0; 4];
    if staged.len >= begin.len() {
        copy_out(words, staged.at, &mut begin);
    }
    is_probe(begin, staged.len)
}

/// Octets before the user data with all blocks, and one word of SACK.
const HEAD_LEN_USUAL: usize = HEAD_LEN_MAX - (SACK_WORDS_MAX - 1) * SACK_WORD_LEN;

/// As [`parse`], for at most `N` octets before the user data.
fn parse_head<const N: usize>(words: &[AtomicU64], staged: &Staged) -> Result<(Packet, usize), PacketError> {
    let mut octets = [0; N];
    let head = &mut octets[..staged.len.min(N)];
    copy_out(words, staged.at, head);
    let Some((fixed, rest)) = head.split_first_chunk::<HEADER_LEN>() else {
        return Err(PacketError::Cut { field: "header", end: HEADER_LEN, len: staged.len });
    };
    let (extension, _) = Extension::parse(rest)?;
    let packet = Packet { header: Fixed::parse(fixed)?, extension };
    let ends = packet.head_len() + packet.trailer_len();
    let found = staged.len.saturating_sub(ends);
    if packet.header.len as usize != found || staged.len < ends {
        return Err(PacketError::Len { len: packet.header.len, found });
    }
    if packet.extension.checked {
        check_sum(words, staged)?;
    }
    packet.check()?;
    Ok((packet, packet.head_len()))
}

/// Compares the checksum at the end of a datagram with that of its other octets.
#[cold]
fn check_sum(words: &[AtomicU64], staged: &Staged) -> Result<(), PacketError> {
    let (mut chunk, mut trailer) = ([0; SUMMED_LEN], [0; TRAILER_LEN]);
    let summed_len = staged.len - TRAILER_LEN;
    let (mut computed, mut done) = (0, 0);
    while done < summed_len {
        let chunk = &mut chunk[..SUMMED_LEN.min(summed_len - done)];
        copy_out(words, staged.at + done, chunk);
        computed = checksum_on(computed, chunk);
        done += chunk.len();
    }
    copy_out(words, staged.at + summed_len, &mut trailer);
    let found = u32::from_be_bytes(trailer);
    if found == computed { Ok(()) } else { Err(PacketError::Checksum { found, computed }) }
}

/// Octets that are summed at a time.
const SUMMED_LEN: usize = 4 << 10;

/// Passes a packet to the state machine of its peer, and the packets that it completes to `each`. Returns
/// false when the connection is over.
#[allow(clippy::too_many_arguments, reason = "a packet, its location and its destination")]
fn take_packet(
    transport: &UdpTransport,
    peer: &Peer,
    stage: &mut StagingBuffer,
    staged: &Staged,
    head_len: usize,
    packet: &Packet,
    now: Nanos,
    each: &mut PacketHandler<'_>,
) -> Result<bool, PeerFault> {
    let (at, len) = (staged.at + head_len, packet.header.len as usize);
    let rank = peer.rank as usize;
    let landed = stage.take_landed(staged.at);
    let mut session = peer.session();
    if session.connection.is_over() {
        return Ok(false);
    }
    match session.connection.handle_datagram(now, packet) {
        Disposition::Drop => {}
        Disposition::Deliver(delivery) => {
            let data = match &landed {
                Some(landed) => Data { words: landed.place().0, at: landed.place().1, len },
                None => Data { words: stage.words(), at, len },
            };
            let what = session.resolve(peer, &*transport.net.source, delivery, data)?;
            // The checksum is verified before octets go to their destination.
            let expected = session.expected.take().filter(|_| !peer.is_checked);
            drop(session);
            let was_expected = landed.is_some();
            // The receiver of the message may need to be the only holder of its memory.
            drop(landed);
            stage.note_delivery(rank, &delivery, was_expected, expected);
            let data = match what {
                Resolved::Message(_) => Data { words: stage.aligned(at, len), at: 0, len },
                _ => Data { words: stage.words(), at, len },
            };
            hand_over(transport, peer, what, data, each)?;
            session = peer.session();
        }
        Disposition::Buffer { slot } => {
            if !stage.keep(rank, slot, landed.as_ref(), at, len) {
                return Err(PeerFault::Unplaced { len });
            }
            session.tally.copied += len as u64;
        }
    }
    // A peer that was closed meanwhile delivers nothing more.
    while !session.is_closed()
        && let Some((slot, delivery)) = session.connection.poll_buffered(now)
    {
        let words = stage.kept(rank, slot).unwrap_or_default();
        let data = Data { words, at: 0, len: len_of(&delivery) };
        let what = session.resolve(peer, &*transport.net.source, delivery, data)?;
        let expected = session.expected.take().filter(|_| !peer.is_checked);
        drop(session);
        hand_over(transport, peer, what, data, each)?;
        stage.note_delivery(rank, &delivery, false, expected);
        session = peer.session();
    }
    Ok(true)
}

fn hand_over(
    transport: &UdpTransport,
    peer: &Peer,
    what: Resolved,
    data: Data<'_>,
    each: &mut PacketHandler<'_>,
) -> Result<(), PeerFault> {
    match what {
        Resolved::Nothing => Ok(()),
        Resolved::Message(header) => Ok(each(peer.rank, header, Incoming::Inline(data.words, data.len))?),
        Resolved::Elsewhere(header, incoming) => Ok(each(peer.rank, header, incoming)?),
        Resolved::Control(tag) => {
            let mut octets = vec![0; data.len];
            copy_out(data.words, data.at, &mut octets);
            transport.handle_control(peer.rank, tag, &octets)
        }
    }
}

impl PeerSession {
    /// Moves user data to their destination. Returns the packet to pass on.
    fn resolve(
        &mut self,
        peer: &Peer,
        source: &dyn SlabSource,
        delivery: Delivery,
        data: Data<'_>,
    ) -> Result<Resolved, PeerFault> {
        self.tally.data_received += data.len as u64;
        self.expected = None;
        match delivery {
            Delivery::Arrived(arrival) => {
                // The octets are copied once, either here or when the message is matched.
                self.tally.copied += data.len as u64;
                self.arrived(peer, source, &arrival, data)
            }
            Delivery::Continued { arrival, offset, is_last, .. } => {
                Ok(self.continued(arrival, offset as usize, is_last, data))
            }
        }
    }

    /// Handles a message, or its first octets.
    fn arrived(
        &mut self,
        peer: &Peer,
        source: &dyn SlabSource,
        arrival: &Arrival,
        data: Data<'_>,
    ) -> Result<Resolved, PeerFault> {
        let Arrival { id, context, tag, total, .. } = *arrival;
        if context == control::CONTEXT {
            self.tally.data_received -= data.len as u64;
            self.tally.copied -= data.len as u64;
            return match id {
                None => Ok(Resolved::Control(tag)),
                Some(_) => Err(PeerFault::ControlLen { len: total }),
            };
        }
        if tag < 0 {
            return Err(PeerFault::Tag { tag, context });
        }
        let Ok(total) = usize::try_from(total) else {
            return Err(PeerFault::Len { len: total });
        };
        self.tally.received += 1;
        let mut header = Header { kind: Kind::Eager, context, tag, token: 0 };
        let Some(id) = id else { return Ok(Resolved::Message(header)) };
        if !arrival.is_synchronous && !arrival.is_rendezvous {
            return self.begin_eager(peer, source, id, header, total, data);
        }
        header.token = id.destination_id().into();
        header.kind = match arrival.is_rendezvous || total <= RTS_DATA_LEN as usize {
            true => Kind::Rts,
            false => Kind::Synchronous,
        };
        if data.len == total {
            let arriving = NumberedMessage::new(IncomingMessage::short(id, total), total);
            self.arrivals.insert(header.token, arriving);
            return Ok(Resolved::Message(header));
        }
        let mut arriving = IncomingMessage::long(id, total);
        let begun = arriving.begin(taken(source, data.len, data)?, data.len);
        self.arrivals.insert(header.token, NumberedMessage::new(arriving, data.len));
        Ok(Resolved::Elsewhere(header, Incoming::Reference(begun)))
    }

    /// Begins an eager message of several parts. Its memory is allocated at once, and the message is passed
    /// on when it is whole.
    fn begin_eager(
        &mut self,
        peer: &Peer,
        source: &dyn SlabSource,
        id: ArrivalId,
        header: Header,
        total: usize,
        data: Data<'_>,
    ) -> Result<Resolved, PeerFault> {
        if total > peer.eager_max {
            return Err(PeerFault::EagerLen { len: total });
        }
        let slab = taken(source, total, data)?;
        // The sender waits for no match. It charges the message until the rank returns the credit.
        self.connection.matched(id)?;
        self.eager = Some(Eager { id, header, slab, len: total, end: data.len });
        Ok(Resolved::Nothing)
    }

    /// Handles a later part of a message.
    fn continued(&mut self, id: ArrivalId, offset: usize, is_last: bool, data: Data<'_>) -> Resolved {
        let connection = self.connection.settings().ours;
        if let Some(eager) = self.eager.as_mut().filter(|eager| eager.id == id) {
            self.tally.copied += place(data, &eager.slab, offset);
            if !is_last {
                eager.end = eager.end.max(offset + data.len);
                let Eager { slab, end, len, .. } = eager;
                self.expected = Expected::new((connection, 0), slab.clone(), *end, *len, data.len);
                return Resolved::Nothing;
            }
            let Some(Eager { header, slab, len, .. }) = self.eager.take() else { return Resolved::Nothing };
            return Resolved::Elsewhere(header, Incoming::Reference(Payload::Physical(slab, len)));
        }
        let token = u64::from(id.destination_id());
        let Some(NumberedMessage { arriving, end, prefix }) = self.arrivals.get_mut(&token) else {
            return Resolved::Nothing;
        };
        *end = (*end).max(offset + data.len);
        match arriving.room() {
            Some(slab) => {
                self.tally.copied += place(data, &slab, offset);
                let ids = (connection, id.destination_id());
                self.expected = Expected::new(ids, slab, *end, arriving.len(), data.len);
            }
            None => arriving.capture_headers(offset, |i| octet(&data, i), data.len),
        }
        if !is_last {
            let part = prefix.add(offset, data.len).and_then(|arrived| arriving.note_arrived(arrived));
            let Some(part) = part else { return Resolved::Nothing };
            let header = Header { kind: Kind::RendezvousPart, token, ..Header::default() };
            return Resolved::Elsewhere(header, Incoming::Reference(part));
        }
        self.expected = None;
        let Some(NumberedMessage { arriving, .. }) = self.arrivals.remove(&token) else {
            return Resolved::Nothing;
        };
        let header = Header { kind: Kind::RendezvousData, token, ..Header::default() };
        Resolved::Elsewhere(header, arriving.into_whole())
    }
}

/// Octets of the packet.
fn len_of(delivery: &Delivery) -> usize {
    match delivery {
        Delivery::Arrived(arrival) => arrival.len as usize,
        Delivery::Continued { len, .. } => *len as usize,
    }
}

/// Copies octets to their destination unless they were received there. Returns the number of copied octets.
fn place(data: Data<'_>, slab: &Slab, at: usize) -> u64 {
    if std::ptr::eq(data.words, slab.words()) && data.at == at {
        return 0;
    }
    copy_octets(data.words, data.at, slab.words(), at, data.len);
    data.len as u64
}

/// Memory for `len` octets that begins with these.
fn taken(source: &dyn SlabSource, len: usize, data: Data<'_>) -> Result<Slab, PeerFault> {
    let slab = source.take_arrived(len).map_err(|error| PeerFault::NoMemory { len, error })?;
    copy_octets(data.words, data.at, slab.words(), 0, data.len);
    Ok(slab)
}

fn octet(data: &Data<'_>, at: usize) -> u8 {
    let mut octet = [0];
    copy_out(data.words, data.at + at, &mut octet);
    octet[0]
}
