//! One end of the messages between two processes (IMPI 8, 9).
//!
//! The driver moves octets; the machine sees headers only. The driver does the following:
//!
//! - it reads a header, [`parse`](super::packet::Packet::parse)s it, passes it to the pair of its source and
//!   destination, and stores or drops the [`data_len`](super::packet::Packet::data_len) octets behind it, as
//!   the event states;
//! - it matches arrivals with its receives ([`crate::matching`]) and calls [`Pair::matched`] in the same
//!   step;
//! - while [`Pair::wants_to_send`], it polls [`Pair::poll_transmit`] and writes the header and, directly
//!   behind it, the octets of the body.
//!
//! A Fini is sent between hosts, not processes: [`super::fini`] handles it.

use std::collections::VecDeque;

use super::event::Control;
pub use super::event::{Arrival, Event};
use super::flow::Flow;
use super::message_rx::{ArrivalId, MessageRx};
use super::message_tx::{Body, MessageTx, Send};
use super::packet::{Packet, PacketType};
use super::pair_error::{NoSuchArrival, ProtocolError, SendError, SettingsError};
use super::{Dialect, Proc};
use crate::completion::Completion;

/// The settings that both ends agree on at start-up, and the limits of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The version of the specification that the job follows.
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
    /// Most pending sends: queued ones, and those whose ids the peer may still name. At least 1.
    pub sends_max: usize,
    /// Most unmatched messages with ids; at least 4 hiwater. Twice as many answers may wait. See
    /// [`Pair::is_holding_acks`]. A peer that begins messages while the rests of more discarded ones are
    /// missing violates the protocol.
    pub arrivals_max: usize,
}

/// The state between one local and one remote process.
///
/// Commands: [`send`](Self::send), [`try_send_now`](Self::try_send_now), [`matched`](Self::matched),
/// [`discard`](Self::discard), [`hold_acks`](Self::hold_acks), [`finish`](Self::finish),
/// [`abandon`](Self::abandon). Input: [`handle_packet`](Self::handle_packet). Output:
/// [`poll_transmit`](Self::poll_transmit), which may have a packet after each of the others.
///
/// After a [`ProtocolError`] the channel must be closed: the two ends no longer agree.
///
/// Order: ProtoAcks are sent first, whatever the flow is; then SyncAcks and answers to cancel requests, in
/// the order in which they arose; then first packets of messages in the order of [`send`](Self::send), in
/// turn with the rests of matched long messages. So a long message delays no other, and no message overtakes
/// another's first packet (IMPI 8.4).
#[derive(Debug)]
pub struct Pair {
    settings: Settings,
    flow: Flow,
    message_tx: MessageTx,
    pub(super) message_rx: MessageRx,
    controls: VecDeque<Control>,
    /// Of `controls`, answers to the peer that have no entry in `message_rx`.
    answers: usize,
    is_held_by_driver: bool,
    finished: bool,
}

/// A packet to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its header.
    pub packet: Packet,
    /// The octets behind the header; `None` for packets without data.
    pub body: Option<Body>,
}

/// The operations that were pending when a channel was lost. The machine counts octets as received or sent
/// with their header, so the driver adds the message that it was reading or writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Tokens of sends, ascending: those not sent, not matched, or not handed over completely.
    pub sends: Vec<u64>,
    /// Long messages that a receive has matched and that are not complete.
    pub receives: Vec<ArrivalId>,
    /// Unmatched messages that have an id. Short ones are complete and may still be received.
    pub unmatched: Vec<ArrivalId>,
}

impl Pair {
    /// A pair with nothing sent and nothing received.
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

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counters of the flow in both directions.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) has a packet. Cheap.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.flow.is_ack_due() || (self.flow.is_open() && self.has_queued())
    }

    /// Whether a packet waits to be sent, now or after a ProtoAck.
    #[inline]
    pub fn has_queued(&self) -> bool {
        !self.controls.is_empty() || self.message_tx.has_queued()
    }

    /// Sends a short standard message if no packet is queued and the flow is open.
    /// The packet carries the whole message, and the machine stores nothing. Otherwise `None`, and nothing
    /// changes: [`send`](Self::send) it.
    #[inline]
    #[must_use]
    pub fn try_send_now(&mut self, send: &Send) -> Option<Packet> {
        let plain = send.completion == Completion::Standard && !self.finished;
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

    /// Queues a message behind all earlier ones.
    ///
    /// # Errors
    /// [`SendError::Full`]: `sends_max` are pending; try again when one is complete. [`SendError::Finished`].
    pub fn send(&mut self, send: Send) -> Result<(), SendError> {
        if self.finished {
            return Err(SendError::Finished);
        }
        self.message_tx.push(send)
    }

    /// A receive has matched this message, whether or not it has room for all of it: the rest is drained in
    /// any case (IMPI 17). A sender that waits for the match gets a SyncAck. The id of a short message
    /// becomes invalid.
    ///
    /// # Errors
    /// No message with this id waits to be matched: a mistake of the driver; nothing changes.
    pub fn matched(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let answer = self.message_rx.matched(arrival)?;
        if let Some(control) = answer {
            self.answer(control);
        }
        self.settle();
        Ok(())
    }

    /// The octets of this message are not needed, whether or not it is matched. Its sender sees a match. Its
    /// further packets give [`Event::Nothing`]. The id becomes invalid.
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

    /// Holds or releases ProtoAcks, for a driver whose memory for unexpected messages is full.
    pub fn hold_acks(&mut self, hold: bool) {
        self.is_held_by_driver = hold;
        self.settle();
    }

    /// Whether ProtoAcks are held back: by the driver, or because hiwater more messages could exceed
    /// `arrivals_max`. The peer may have to stop; matching its messages lets it continue.
    pub const fn is_holding_acks(&self) -> bool {
        self.flow.is_holding_acks()
    }

    /// Refuses further sends. Queued ones continue.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether this process has finished, all its sends are complete, and all answers are sent. ProtoAcks may
    /// still follow.
    pub fn is_done(&self) -> bool {
        self.finished && !self.has_queued() && self.message_tx.is_empty() && self.message_rx.is_idle()
    }

    /// The channel is lost: returns and drops all that was pending. The pair is unusable afterwards.
    pub fn abandon(&mut self) -> Abandoned {
        self.finished = true;
        self.controls.clear();
        self.answers = 0;
        let (receives, unmatched) = self.message_rx.take_all();
        self.settle();
        Abandoned { sends: self.message_tx.take_all(), receives, unmatched }
    }

    /// A packet was received: its header, before its data.
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
            // No cancel was requested.
            kind @ (PacketType::CancelYes | PacketType::CancelNo) => {
                return Err(ProtocolError::Answer { kind, srqid: packet.srqid });
            }
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
        if self.message_rx.drained_len() > self.settings.arrivals_max {
            return Err(ProtocolError::Drained { most: self.settings.arrivals_max });
        }
        let id = self.message_rx.insert(packet);
        Ok(Event::Arrived(Arrival::of(packet, Some(id))))
    }

    /// The next packet, if one may be sent. The octets of its body follow directly.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.poll_transmit_there(|body| body.len)
    }

    /// As [`poll_transmit`](Self::poll_transmit). `there` returns how many octets of the given part of a long
    /// message's rest may be sent in one packet, from its beginning. The rest waits while these are none.
    /// Other packets are sent meanwhile, except rests of later messages.
    pub fn poll_transmit_there(&mut self, there: impl Fn(&Body) -> u32) -> Option<Transmit> {
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
                let body = self.message_tx.poll(&mut packet, there)?;
                Transmit { packet, body: Some(body) }
            }
        };
        self.flow.count_sent();
        Some(transmit)
    }

    fn transmit_control(&mut self, control: Control) -> Transmit {
        match control.kind {
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

    /// Queues an answer to the peer. An answer with a drqid is counted by its arrival.
    pub(super) fn answer(&mut self, control: Control) {
        self.answers += usize::from(control.drqid == 0);
        self.controls.push_back(control);
    }

    /// Holds ProtoAcks while hiwater more packets could exceed a limit. Matched long messages do not count:
    /// their receives bound them, and they complete only if the peer may send. While ProtoAcks are held, at
    /// most hiwater packets are in flight; a peer that sends more violates the flow.
    ///
    /// Answers have a bound of their own. Both ends may queue the answers to all unmatched messages at the
    /// same time, and must not hold ProtoAcks then, since they would deadlock.
    fn settle(&mut self) {
        let Settings { arrivals_max, hiwater, .. } = self.settings;
        let more = hiwater as usize;
        // Drained messages do not count either: their rests come only if the peer may send.
        let is_full = self.message_rx.buffered_len() + more > arrivals_max
            || self.answers + more > answers_max(arrivals_max);
        self.flow.hold_acks(self.is_held_by_driver || is_full);
    }

    /// Panics when an invariant does not hold. For tests, after every step.
    pub fn check_invariants(&self) {
        self.flow.check_invariants();
        self.message_tx.check_invariants();
        self.message_rx.check_invariants();
        let (unmatched, most) = (self.message_rx.buffered_len(), self.settings.arrivals_max);
        assert!(unmatched <= most, "{unmatched} messages are kept");
        let kept = unmatched + self.answers;
        assert!(kept <= most.saturating_add(answers_max(most)), "{kept} messages and answers are kept");
        let of_arrival = |c: &&Control| c.kind == PacketType::SyncAck && c.drqid != 0;
        let of_arrivals = self.controls.iter().filter(of_arrival).count();
        assert_eq!(self.answers + of_arrivals, self.controls.len());
        assert_eq!(of_arrivals, self.message_rx.syncacks_queued());
        assert!(self.is_held_by_driver <= self.is_holding_acks());
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

/// Least `arrivals_max` as a multiple of hiwater: hiwater messages before ProtoAcks are held, and more than
/// hiwater in flight then.
const ARRIVALS_PER_HIWATER: usize = 4;

/// Most answers that wait, for a limit of unmatched messages. One end exceeds this only while the other end
/// sends messages, and an end sends messages only when no answers wait there. So ProtoAcks are never held at
/// both ends because of answers alone.
const fn answers_max(arrivals_max: usize) -> usize {
    arrivals_max.saturating_mul(2)
}
