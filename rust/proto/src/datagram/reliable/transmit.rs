//! The choice of the next packet to send (5.3 to 5.8).
//!
//! | in this order | waits for |
//! |---|---|
//! | PTO probes: one or two packets that were sent before | nothing |
//! | the first lost packet | congestion window, except for the first one after a cut; pace |
//! | the next packet of a message, or FIN | congestion window, the peer's window, pace |
//! | a packet without a message: an urgent ack, a window probe | nothing |

use super::super::extension::Extension;
use super::super::layout::{DELAY_LEN, SACK_LEN, SACK_WORD_LEN};
use super::super::packet::Packet;
use super::super::sequence::FullSequence;
use super::connection::Connection;
use super::content::{Body, Content};
use super::loss::Cause;
use super::pacing::Pace;
use super::pending_acks::{Urgency, quarter};
use super::time::Nanos;

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Header and extension.
    pub packet: Packet,
    /// The user data, if the packet carries part of a message.
    pub body: Option<Body>,
}

impl Connection {
    /// The next datagram that may be sent at `now`.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Transmit> {
        self.poll_transmit_if(now, |_| true)
    }

    /// As [`poll_transmit`](Self::poll_transmit). Granted octets of a message wait until `is_there` returns
    /// true for them. Other packets are sent meanwhile.
    #[inline]
    pub fn poll_transmit_if(&mut self, now: Nanos, is_there: impl Fn(&Body) -> bool) -> Option<Transmit> {
        if self.close.is_over() {
            return self.close.poll_reset().then(|| self.reset());
        }
        if let Some(transmit) = self.poll_probe(now) {
            return Some(transmit);
        }
        let has_new = || self.message_tx.is_ready(&is_there) || self.is_fin_next();
        if (self.packet_tx.first_lost().is_some() || has_new())
            && let Some(transmit) = self.poll_windowed(now, &is_there)
        {
            return Some(transmit);
        }
        if self.pending_acks.urgency().is_some() || self.has_pure_ack_req {
            return Some(self.transmit_pure(now));
        }
        None
    }

    fn is_fin_next(&self) -> bool {
        self.close.is_closing() && self.message_tx.is_idle() && self.message_rx.is_idle()
    }

    fn poll_probe(&mut self, now: Nanos) -> Option<Transmit> {
        while let Some(number) = self.probes[0].take().or_else(|| self.probes[1].take()) {
            if let Some(content) = self.packet_tx.retransmit(now, number) {
                self.note_retransmission(now, Cause::Probe);
                self.note_ack_req(number);
                return Some(self.transmit(now, number, &content, true));
            }
        }
        None
    }

    /// A packet that needs the congestion window.
    fn poll_windowed(&mut self, now: Nanos, is_there: &impl Fn(&Body) -> bool) -> Option<Transmit> {
        let window = u64::from(self.congestion.window());
        let in_flight = self.packet_tx.in_flight() as u64;
        let lost = self.packet_tx.first_lost();
        let has_retransmit_allowance = self.has_retransmit_allowance && lost.is_some();
        if in_flight >= window && !has_retransmit_allowance {
            return None;
        }
        let (una, next) = (self.packet_tx.una(), self.packet_tx.next());
        let room = self.send_window.room(una, next);
        if lost.is_none() && room == 0 {
            self.schedule_window_probe(now);
            return None;
        }
        let pace = self.pace();
        let ready_at = self.pacing.ready_at(now, &pace);
        if ready_at > now {
            self.paced_until = Some(ready_at);
            return None;
        }
        let transmit = match lost {
            Some(number) => self.transmit_lost(now, number)?,
            None => self.transmit_new(now, window.saturating_sub(in_flight).min(room), is_there)?,
        };
        self.has_retransmit_allowance = false;
        self.pacing.sent(now, &pace, len(&transmit.packet));
        self.waiting_since.get_or_insert(now);
        Some(transmit)
    }

    fn pace(&self) -> Pace {
        Pace {
            window: self.congestion.window(),
            advertised: self.send_window.size(self.packet_tx.una()),
            smoothed: self.rtt.smoothed(),
            len: self.settings.datagram_len_max,
            gain: if self.congestion.is_in_slow_start() { 200 } else { 125 },
        }
    }

    /// The peer's window is closed. An ack of a packet in flight will report it; if none is in flight, a
    /// probe must ask.
    fn schedule_window_probe(&mut self, now: Nanos) {
        if self.packet_tx.is_empty() {
            self.send_window.schedule_probe(now, self.rtt.base_pto());
            self.waiting_since.get_or_insert(now);
        }
    }

    /// The window probe is due. The messages that waited may have been cancelled.
    pub(super) fn probe_window(&mut self, now: Nanos) {
        if self.message_tx.has_queued() || self.is_fin_next() {
            self.send_window.probe_sent(now, self.rtt.base_pto());
            self.counters.window_probes += 1;
            self.has_pure_ack_req = true;
            return;
        }
        self.send_window.cancel_probe();
        if self.packet_tx.is_empty() {
            self.waiting_since = None;
        }
    }

    fn transmit_lost(&mut self, now: Nanos, number: u64) -> Option<Transmit> {
        let content = self.packet_tx.retransmit(now, number)?;
        self.note_retransmission(now, Cause::Loss);
        self.note_ack_req(number);
        Some(self.transmit(now, number, &content, true))
    }

    /// Sends a new packet; `left` new packets may be sent now, with this one.
    fn transmit_new(&mut self, now: Nanos, left: u64, is_there: &impl Fn(&Body) -> bool) -> Option<Transmit> {
        self.send_window.cancel_probe();
        let content = match self.message_tx.poll(is_there) {
            Some(content) => content,
            None => {
                self.close.fin_sent(self.packet_tx.next());
                Content::fin()
            }
        };
        if content.token != 0 {
            self.pending_acks.message_sent(now);
        }
        let ack_req = self.requests_ack(left) || content.is_fin;
        let number = self.packet_tx.push(now, content);
        if ack_req {
            self.note_ack_req(number);
        }
        self.counters.sent += 1;
        Some(self.transmit(now, number, &content, ack_req))
    }

    /// Whether the packet that is sent now requests an ack: a quarter of the window after the last request,
    /// when no other packet may follow and no request is open, and at a flush (5.6).
    fn requests_ack(&mut self, left: u64) -> bool {
        let una = self.packet_tx.una();
        let since = self.packet_tx.next() + 1 - self.ack_requested.max(una);
        let window = u64::from(self.congestion.window()).min(self.send_window.size(una));
        let is_flushed = self.is_flushing && !self.message_tx.has_queued();
        if is_flushed {
            self.is_flushing = false;
        }
        since >= quarter(window) || (left <= 1 && self.ack_requested <= una) || is_flushed
    }

    fn note_ack_req(&mut self, number: u64) {
        self.ack_requested = self.ack_requested.max(number + 1);
    }

    fn transmit(&mut self, now: Nanos, number: u64, content: &Content, ack_req: bool) -> Transmit {
        let mut packet = self.packet(Some(FullSequence::of(number)));
        content.fill(&mut packet);
        packet.extension.ack_req = ack_req;
        // A fragment made when datagrams were longer leaves no room for blocks.
        let room = self.settings.room().saturating_sub(content.octets_len());
        self.counters.piggy_backed += u64::from(self.pending_acks.is_pending());
        self.attach_ack(now, &mut packet, room);
        Transmit { packet, body: content.body() }
    }

    fn transmit_pure(&mut self, now: Nanos) -> Transmit {
        let mut packet = self.packet(None);
        packet.extension.ack_req = std::mem::replace(&mut self.has_pure_ack_req, false);
        if packet.extension.ack_req {
            self.ack_requested = self.packet_tx.next();
        }
        match self.pending_acks.urgency() {
            Some(Urgency::Drained) => self.counters.acks_drained += 1,
            Some(Urgency::Late) => self.counters.acks_late += 1,
            Some(Urgency::Needed) | None => {}
        }
        let room = self.settings.room();
        self.attach_ack(now, &mut packet, room);
        // No other packet has more room, so nothing is left for a second ack.
        self.pending_acks.ack_sent();
        self.counters.pure_acks += 1;
        Transmit { packet, body: None }
    }

    fn packet(&mut self, seq: Option<FullSequence>) -> Packet {
        let next = self.packet_rx.next();
        let window = self.packet_rx.window().advertise(next);
        let mut packet =
            Packet { extension: Extension::new(self.settings.theirs, window), ..Packet::default() };
        packet.extension.checked = self.settings.checked;
        packet.number(seq, Some(FullSequence::of(next)));
        packet
    }

    /// Attaches the ack, as far as there is room. A fragment may leave no room for blocks; an urgent report
    /// then gets a packet of its own.
    fn attach_ack(&mut self, now: Nanos, packet: &mut Packet, room: usize) {
        let extension = &mut packet.extension;
        let mut room = room;
        extension.nak = self.packet_rx.has_gap();
        let words_max = room.saturating_sub(SACK_LEN) / SACK_WORD_LEN;
        let mut says_all = true;
        if extension.nak {
            let sack = (words_max > 0).then(|| self.packet_rx.sack(words_max));
            says_all = sack.is_some_and(|sack| sack.reach() >= self.packet_rx.reach());
            room -= sack.map_or(0, |sack| SACK_LEN + sack.words().len() * SACK_WORD_LEN);
            extension.sack = sack;
        }
        // Also when all of it was reported before: that ack may be lost, and no round trip is measured
        // without a delay.
        if room >= DELAY_LEN {
            let reach = extension.sack.map_or(0, |sack| sack.reach());
            extension.delay_us = self.packet_rx.delay_us(now, reach);
        }
        extension.duplicate = self.packet_rx.has_duplicate();
        self.packet_rx.clear_duplicate();
        if says_all {
            self.pending_acks.ack_sent();
        } else {
            self.pending_acks.ack_sent_in_part();
        }
    }

    /// A RST with the id that this end chose for the connection.
    fn reset(&mut self) -> Transmit {
        let mut packet = reset(self.settings.ours);
        packet.extension.checked = self.settings.checked;
        Transmit { packet, body: None }
    }

    /// The RST that answers late packets of a connection that has closed in order: it acks all of them.
    #[must_use]
    pub fn closing_reset(&self) -> Option<Packet> {
        if !self.close.is_closed() {
            return None;
        }
        let mut packet = reset(self.settings.ours);
        packet.number(None, Some(FullSequence::of(self.packet_rx.next())));
        packet.extension.duplicate = true;
        Some(packet)
    }
}

/// The answer to a packet of an unknown connection, with that packet's connection id (5.8).
pub(super) fn reset(connection: u64) -> Packet {
    let mut packet = Packet { extension: Extension::new(connection, 0), ..Packet::default() };
    packet.extension.rst = true;
    packet.number(None, Some(FullSequence::of(0)));
    packet
}

/// Octets of the datagram.
const fn len(packet: &Packet) -> usize {
    packet.head_len() + packet.header.len as usize + packet.trailer_len()
}
