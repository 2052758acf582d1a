//! Two processes and their messages: the machine of one end of a conversation (IMPI 8, 9).
//!
//! The driver moves octets; the machine sees headers only. What a driver does:
//!
//! - it reads a header, [`parse`](super::packet::Packet::parse)s it, gives it to the pair of its source and destination,
//!   and takes the [`data_len`](super::packet::Packet::data_len) octets behind it where the event says, or nowhere;
//! - it matches what arrives with its receives ([`crate::matching`]), and says so with [`Pair::matched`] in the same step;
//! - while [`Pair::wants_to_send`], it asks [`Pair::poll_transmit`] and writes the header and, without a packet in between,
//!   the octets of the message that it names.
//!
//! Fini belongs to hosts, not to processes: it is the business of [`super::fini`].

use std::collections::VecDeque;

use super::flow::Flow;
use super::message_rx::{ArrivalId, MessageRx};
use super::message_tx::{Body, MessageTx, Mode, Send};
use super::packet::{Packet, PacketType};
use super::pair_error::{NoSuchArrival, ProtocolError, SendError, SettingsError};
use super::{Dialect, Proc};

/// What two ends have agreed on at start-up, and how much one of them keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which text the job follows.
    pub dialect: Dialect,
    /// The local process.
    pub ours: Proc,
    /// The remote process.
    pub theirs: Proc,
    /// M: most octets of user data in a packet; at least 1 (IMPI 5.5).
    pub maxdatalen: u32,
    /// Packets that one ProtoAck stands for; at least 1 (IMPI 9).
    pub ackmark: u32,
    /// Most packets without a ProtoAck; at least ackmark (IMPI 9).
    pub hiwater: u32,
    /// Most sends that are kept here: those that wait, and those whose ids the peer may still name. At least 1.
    pub sends_max: usize,
    /// Most unmatched messages with ids that the peer makes us keep; at least 4 hiwater. Twice as many answers to it may wait. See
    /// [`Pair::is_holding_acks`].
    pub arrivals_max: usize,
}

/// The state between one local and one remote process.
///
/// Commands: [`send`](Self::send), [`try_send_now`](Self::try_send_now), [`matched`](Self::matched),
/// [`discard`](Self::discard), [`cancel`](Self::cancel), [`forget`](Self::forget), [`hold_acks`](Self::hold_acks),
/// [`finish`](Self::finish), [`abandon`](Self::abandon). Input: [`handle_packet`](Self::handle_packet). Output:
/// [`poll_transmit`](Self::poll_transmit), which may have something new after each of the others.
///
/// After a [`ProtocolError`] the channel must be closed: the two ends no longer agree.
///
/// Order: ProtoAcks leave first, whatever the flow is; then SyncAcks, cancel requests and their answers, in the order in
/// which they arose; then first packets of messages in the order of [`send`](Self::send), in turn with the rest of the
/// long messages that are matched. So a long message holds up no other, and none overtakes another's first packet (IMPI 8.4).
#[derive(Debug)]
pub struct Pair {
    settings: Settings,
    pub(super) flow: Flow,
    pub(super) message_tx: MessageTx,
    pub(super) message_rx: MessageRx,
    pub(super) controls: VecDeque<Control>,
    /// Of `controls`, those that the peer has caused and that no entry of `message_rx` stands for.
    pub(super) answers: usize,
    is_held_by_driver: bool,
    finished: bool,
}

/// A packet without data that waits for the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) kind: PacketType,
    pub(super) srqid: u64,
    /// In the SyncAck of a long message the arrival's id, else 0.
    pub(super) drqid: u64,
}

/// What a packet means for the driver. Whatever it is, the packet's [`data_len`](Packet::data_len) octets follow, and
/// those of events that name no octets are to be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Event {
    /// A message begins: its first packet.
    Arrived(Arrival),
    /// A matched long message goes on.
    Continued {
        /// Which one.
        arrival: ArrivalId,
        /// Where in the message these octets belong.
        offset: u64,
        /// How many there are, at least 1.
        len: u32,
        /// Whether they are the last; the arrival's id is no longer valid then.
        last: bool,
    },
    /// The peer has matched a synchronous or a long message. A synchronous one is complete, but for its own octets if it
    /// is a long one: they are handed over with the [`Body`] that says `last`.
    Matched {
        /// Of the send.
        token: u64,
    },
    /// The message was taken back: the request is complete, its octets and its token are free.
    Cancelled {
        /// Of the send.
        token: u64,
    },
    /// The message could not be taken back; all else about it goes on, or has happened.
    NotCancelled {
        /// Of the send.
        token: u64,
    },
    /// The peer takes a message back that no receive has matched: the driver forgets it. It is answered already.
    Withdraw {
        /// Of [`Arrived`](Self::Arrived); no longer valid.
        arrival: ArrivalId,
    },
    /// The peer's host says nothing more: for [`super::fini`].
    Fini,
    /// Nothing to do.
    Nothing,
}

/// The first packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// None: the machine has forgotten the message already, and nothing has to be said of it. Else the driver calls
    /// [`Pair::matched`] in the same step in which a receive takes it.
    pub id: Option<ArrivalId>,
    /// Context id.
    pub cid: u64,
    /// Rank of the sender in the communicator; in the draft always 0, the rank follows from the process there.
    pub lsrank: i32,
    /// Tag.
    pub tag: i32,
    /// Octets of the whole message, as its sender says: nothing to allocate before they come.
    pub msglen: u64,
    /// Octets of it in this packet, at most msglen and maxdatalen.
    pub len: u32,
    /// Whether its sender waits for the match.
    pub synchronous: bool,
}

impl Arrival {
    /// Whether more of it comes when it is matched.
    #[inline]
    pub const fn is_long(&self) -> bool {
        (self.len as u64) < self.msglen
    }
}

/// A packet to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its header.
    pub packet: Packet,
    /// What follows the header; none behind packets that have no data.
    pub body: Option<Body>,
}

/// What was pending when a channel was lost: nothing of it will happen any more. What the driver is just reading or
/// writing it knows itself: to the machine octets have come, or left, with the header in front of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Tokens of sends, ascending: those that had not left, not been matched, not been handed over, or not been answered.
    pub sends: Vec<u64>,
    /// Long messages that a receive has matched and that are not complete.
    pub receives: Vec<ArrivalId>,
    /// Messages that no receive has matched and that have an id: short ones are whole, and may still be received.
    pub unmatched: Vec<ArrivalId>,
}

impl Pair {
    /// Nothing sent, nothing received.
    ///
    /// # Errors
    /// Settings that contradict each other, named.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self {
            flow: Flow::new(settings.ackmark, settings.hiwater)?,
            message_tx: MessageTx::new(settings.maxdatalen, settings.sends_max),
            message_rx: MessageRx::new(),
            controls: VecDeque::new(),
            answers: 0,
            is_held_by_driver: false,
            finished: false,
            settings,
        })
    }

    /// As given.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counters of the flow, both ways.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) has a packet. Cheap.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.flow.is_ack_due() || (self.flow.is_open() && self.has_queued())
    }

    /// Whether something is to leave, now or when the peer has acknowledged what is under way.
    #[inline]
    pub fn has_queued(&self) -> bool {
        !self.controls.is_empty() || self.message_tx.has_queued()
    }

    /// Sends a short standard message that cannot be cancelled, if nothing is before it and the flow is open: the packet
    /// leaves with all octets of the message behind it, and the machine keeps nothing. Else None, and nothing has happened:
    /// [`send`](Self::send) it.
    #[inline]
    #[must_use]
    pub fn try_send_now(&mut self, send: &Send) -> Option<Packet> {
        let plain = send.mode == Mode::Standard && !send.cancellable && !self.finished;
        let short = send.msglen <= u64::from(self.settings.maxdatalen);
        let first = self.flow.is_open() && !self.flow.is_ack_due() && !self.has_queued();
        if !(plain && short && first) {
            return None;
        }
        self.flow.count_sent();
        let mut packet = self.packet(PacketType::Data);
        self.message_tx.fill_now(&mut packet, send);
        Some(packet)
    }

    /// Takes a message to be sent behind all earlier ones.
    ///
    /// # Errors
    /// [`SendError::Full`]: `sends_max` are kept already; try again when one is complete. [`SendError::Finished`].
    pub fn send(&mut self, send: Send) -> Result<(), SendError> {
        if self.finished {
            return Err(SendError::Finished);
        }
        self.message_tx.push(send)
    }

    /// A receive has taken this message, whether or not it has room for all of it: what is too much is drained all the
    /// same (IMPI 17). Its sender is told if it waits for that. The id of a short message is no longer valid.
    ///
    /// # Errors
    /// There is no such message that waits to be matched: a mistake of the driver; nothing changes.
    pub fn matched(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let answer = self.message_rx.matched(arrival)?;
        if let Some(control) = answer {
            self.answer(control);
        }
        self.settle();
        Ok(())
    }

    /// Nobody wants the octets of this message, whether or not it is matched. Its sender cannot tell that from a match.
    /// [`Event::Nothing`] is all that comes of its further packets. The id is no longer valid.
    ///
    /// # Errors
    /// There is no such message: a mistake of the driver; nothing changes.
    pub fn discard(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let was_buffered = self.message_rx.is_buffered(arrival);
        if was_buffered {
            self.matched(arrival)?;
        }
        let is_drained = self.message_rx.drain(arrival);
        self.settle();
        if was_buffered || is_drained { Ok(()) } else { Err(NoSuchArrival(arrival)) }
    }

    /// Holds ProtoAcks back from now on, or no longer: for a driver whose memory for unexpected messages is full.
    pub fn hold_acks(&mut self, hold: bool) {
        self.is_held_by_driver = hold;
        self.settle();
    }

    /// Whether ProtoAcks are held back: because the driver says so, or because the peer makes us keep so much that hiwater
    /// more might be above `arrivals_max`. The peer may come to a stop; matching its messages lets it go on.
    pub const fn is_holding_acks(&self) -> bool {
        self.flow.is_holding_acks()
    }

    /// Takes no more sends. Those that are there go on.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether nothing is left to do for the sake of this process: it has finished, all its sends are complete, and all
    /// answers have left. ProtoAcks may still come and go.
    pub fn is_done(&self) -> bool {
        self.finished && !self.has_queued() && self.message_tx.is_empty() && self.message_rx.is_idle()
    }

    /// The channel is lost: gives all that was pending, and forgets it. The pair is of no use after that.
    pub fn abandon(&mut self) -> Abandoned {
        self.finished = true;
        self.controls.clear();
        self.answers = 0;
        let (receives, unmatched) = self.message_rx.take_all();
        self.settle();
        Abandoned { sends: self.message_tx.take_all(), receives, unmatched }
    }

    /// A packet has come: its header, in front of its data.
    ///
    /// # Errors
    /// The peer breaks the protocol, or the flow control: its channel must be closed.
    #[inline]
    pub fn handle_packet(&mut self, packet: &Packet) -> Result<Event, ProtocolError> {
        let plain = packet.kind == PacketType::Data && packet.srqid == 0;
        if plain && u64::from(packet.len) == packet.msglen && packet.len <= self.settings.maxdatalen {
            self.check_ends(packet)?;
            self.flow.count_received()?;
            return Ok(Event::Arrived(Arrival::of(packet, None)));
        }
        self.handle_other(packet)
    }

    fn handle_other(&mut self, packet: &Packet) -> Result<Event, ProtocolError> {
        if packet.kind == PacketType::Fini {
            return Ok(Event::Fini);
        }
        self.check_ends(packet)?;
        if packet.kind.is_counted() {
            self.flow.count_received()?;
        }
        let event = match packet.kind {
            PacketType::Data | PacketType::DataSync => self.handle_data(packet)?,
            PacketType::ProtoAck => {
                self.flow.handle_protoack()?;
                Event::Nothing
            }
            PacketType::SyncAck => self.message_tx.handle_syncack(packet.srqid, packet.drqid)?,
            PacketType::Cancel => self.handle_cancel(packet.srqid),
            PacketType::CancelYes => self.message_tx.handle_cancelyes(packet.srqid)?,
            PacketType::CancelNo => self.message_tx.handle_cancelno(packet.srqid)?,
            PacketType::Fini => Event::Fini,
        };
        self.settle();
        Ok(event)
    }

    #[inline]
    fn check_ends(&self, packet: &Packet) -> Result<(), ProtocolError> {
        if packet.src != self.settings.theirs {
            return Err(ProtocolError::Src { found: packet.src, expected: self.settings.theirs });
        }
        if packet.dest != self.settings.ours {
            return Err(ProtocolError::Dest { found: packet.dest, expected: self.settings.ours });
        }
        Ok(())
    }

    fn handle_data(&mut self, packet: &Packet) -> Result<Event, ProtocolError> {
        let (len, msglen, maxdatalen) = (packet.len, packet.msglen, self.settings.maxdatalen);
        if len > maxdatalen {
            return Err(ProtocolError::Len { len, maxdatalen });
        }
        if u64::from(len) > msglen {
            return Err(ProtocolError::LenAboveMsglen { len, msglen });
        }
        if packet.kind == PacketType::Data && u64::from(len) < msglen {
            return self.message_rx.handle_continuation(packet);
        }
        let id = self.message_rx.insert(packet);
        Ok(Event::Arrived(Arrival::of(packet, Some(id))))
    }

    /// The next packet, if one may leave. Its body's octets follow it at once.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if self.flow.poll_protoack() {
            return Some(Transmit { packet: self.packet(PacketType::ProtoAck), body: None });
        }
        if !self.flow.is_open() {
            return None;
        }
        let transmit = match self.controls.pop_front() {
            Some(control) => self.transmit_control(control),
            None => {
                let mut packet = self.packet(PacketType::Data);
                let body = self.message_tx.poll(&mut packet)?;
                Transmit { packet, body: Some(body) }
            }
        };
        self.flow.count_sent();
        Some(transmit)
    }

    fn transmit_control(&mut self, control: Control) -> Transmit {
        match control.kind {
            PacketType::Cancel => self.message_tx.cancel_left(control.srqid),
            PacketType::SyncAck if control.drqid != 0 => self.message_rx.syncack_left(control.drqid),
            _ => self.answers -= 1,
        }
        self.settle();
        let Control { kind, srqid, drqid } = control;
        Transmit { packet: Packet { srqid, drqid, ..self.packet(kind) }, body: None }
    }

    #[inline]
    fn packet(&self, kind: PacketType) -> Packet {
        Packet::new(kind, self.settings.ours, self.settings.theirs)
    }

    /// Queues an answer to the peer. One with a drqid is counted by its arrival.
    pub(super) fn answer(&mut self, control: Control) {
        self.answers += usize::from(control.drqid == 0);
        self.controls.push_back(control);
    }

    /// Holds ProtoAcks as long as hiwater more packets might be too many. Long messages that are matched do not count, they are
    /// bounded by the receives that took them, and end only if the peer may go on. The peer has at most hiwater under way
    /// whose ProtoAcks are held; a peer that sends more violates the flow.
    ///
    /// Answers have a bound of their own. Those to all that was unmatched may be queued at once, at both ends, and neither may
    /// hold ProtoAcks then: what waits for the flow would wait for ever.
    fn settle(&mut self) {
        let Settings { arrivals_max, hiwater, .. } = self.settings;
        let more = hiwater as usize;
        // What is drained belongs to no receive any more, so it counts here.
        let unmatched = self.message_rx.buffered_len() + self.message_rx.drained_len();
        let is_full = unmatched + more > arrivals_max || self.answers + more > answers_max(arrivals_max);
        self.flow.hold_acks(self.is_held_by_driver || is_full);
    }

    /// Panics when something is not what it must be after every step.
    pub fn check_invariants(&self) {
        self.flow.check_invariants();
        self.message_tx.check_invariants();
        self.message_rx.check_invariants();
        let (unmatched, most) = (self.message_rx.buffered_len(), self.settings.arrivals_max);
        assert!(unmatched <= most, "{unmatched} messages are kept");
        let kept = unmatched + self.answers;
        assert!(kept <= most.saturating_add(answers_max(most)), "{kept} messages and answers are kept");
        let of_arrival = |c: &&Control| c.kind == PacketType::SyncAck && c.drqid != 0;
        let cancels = self.controls.iter().filter(|c| c.kind == PacketType::Cancel).count();
        let of_arrivals = self.controls.iter().filter(of_arrival).count();
        assert_eq!(self.answers + cancels + of_arrivals, self.controls.len());
        assert_eq!(cancels, self.message_tx.cancels_queued());
        assert_eq!(of_arrivals, self.message_rx.syncacks_queued());
        assert!(self.is_held_by_driver <= self.is_holding_acks());
    }
}

impl Arrival {
    #[inline]
    fn of(packet: &Packet, id: Option<ArrivalId>) -> Self {
        Self {
            id,
            cid: packet.cid,
            lsrank: packet.lsrank,
            tag: packet.tag,
            msglen: packet.msglen,
            len: packet.len,
            // The first packet of a long message is DataSync in every mode (IMPI 8.3).
            synchronous: packet.kind == PacketType::DataSync,
        }
    }
}

impl Settings {
    /// # Errors
    /// The first limit with which the machine cannot work.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Self { maxdatalen, hiwater, sends_max, arrivals_max, .. } = *self;
        if maxdatalen < super::layout::MAXDATALEN_MIN {
            return Err(SettingsError::Maxdatalen);
        }
        if sends_max == 0 {
            return Err(SettingsError::SendsMax);
        }
        Flow::new(self.ackmark, hiwater)?;
        if arrivals_max < (hiwater as usize).saturating_mul(ARRIVALS_PER_HIWATER) {
            return Err(SettingsError::ArrivalsMax { arrivals_max, hiwater });
        }
        Ok(())
    }
}

/// How many times hiwater the peer must be able to make us keep at least: more than hiwater that are under way, behind hiwater
/// before holding ProtoAcks begins.
const ARRIVALS_PER_HIWATER: usize = 4;

/// Most answers that wait, for so many unmatched messages. An end has more of them than those to all unmatched messages and
/// what is under way only if the other end sends messages meanwhile, for which that must have no answers waiting: so never
/// both have, and ProtoAcks are not held at both ends because of answers alone.
const fn answers_max(arrivals_max: usize) -> usize {
    arrivals_max.saturating_mul(2)
}
